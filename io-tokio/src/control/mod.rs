//! The commands of a daemon's life: start in the background, stop, drain, restart, status, logs.
//!
//! A daemon is found by its port, and known by what it answers there. No file is ever the ground for sending a signal: a process
//! gets one only if it was seen to be the daemon that answered, see `process.rs`.

mod background;
mod detached;
mod error;
mod health;
mod logs;
mod pid_file;
mod place;
mod preflight;
mod process;
mod recorded;
mod restart;
mod running;
mod status;
mod stop;
mod tail;

pub use background::start;
pub use detached::{Announcer, Startup};
pub use error::ControlError;
pub use health::{Health, Seen, StatedProfile, probe};
pub use logs::logs;
pub use pid_file::PidFile;
pub use place::Place;
pub use recorded::{Recorded, Recording, recorded};
pub use restart::make_way;
pub use status::status;
pub use stop::stop;

use std::fmt::Display;
use std::io::Write;

/// One line for people, on standard error. That nobody reads it is no error.
fn say(line: impl Display) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// A number of tasks in words.
fn tasks(n: u64) -> String {
    if n == 1 { "1 task".to_owned() } else { format!("{n} tasks") }
}
