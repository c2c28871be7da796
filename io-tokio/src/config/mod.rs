//! The daemon's configuration: defaults, `config.json`, environment and flags, each beating the one before.
//!
//! A value that cannot be used is an error that names where it came from and what would be right. Nothing in here
//! reads the process's environment: it is handed in as an [`Env`].

mod agents;
pub mod duration;
mod env;
mod error;
pub mod file;
mod flags;
mod gc;
mod layers;
mod modes;
mod profile;
pub mod server_url;
mod settings;
pub mod shell_words;
pub mod size;
pub mod token_file;

pub use agents::{AgentSettings, CodexFeatures, OpenclawSettings};
pub use duration::GoDuration;
pub use env::Env;
pub use error::{ConfigError, Source};
pub use file::ConfigFile;
pub use flags::Flags;
pub use gc::GcSettings;
pub use modes::{ClaimMode, OnSigterm};
pub use profile::{DEFAULT_HEALTH_PORT, NAMED_HEALTH_PORTS, Profile, StateDirs};
pub use settings::{LogRotation, Settings, UpdateSettings, Watchdogs};
pub use token_file::TokenFile;
