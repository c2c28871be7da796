//! The pure, deterministic core of longshore: it decides what a daemon for coding agents does next.
//!
//! [`daemon::Daemon`] takes one event at a time and writes effects. An adapter carries the effects out and gives back what came of
//! them. The core reads no clock, starts no thread, opens no file or socket and draws no chance number that is not in its
//! seed, so that a recorded history replays to the same effects and the same digest.
//!
//! ```
//! use longshore_core::{config::Config, daemon::Daemon, effect::Effects, event::Event, rng::Seed, time::Now};
//!
//! let mut effects = Effects::new();
//! let now = Now::default();
//! let mut daemon = Daemon::new(Config::default(), Seed(1), now, &mut effects).expect("defaults are in bounds");
//! for effect in effects.drain() {
//!     // Start it; do not wait for it. Its completion comes back as an event.
//!     println!("{effect:?}");
//! }
//! // Sleep until the next event, or until `next_wakeup`; then:
//! daemon.handle(now, &Event::Tick, &mut effects);
//! ```

//!
//! | module | what |
//! |---|---|
//! | [`daemon`], [`event`], [`effect`], [`config`] | the core and its vocabulary |
//! | [`ledger`] | what must outlive the process, and the events for the next one |
//! | [`codec`] | the protocols of agent CLIs: bytes in, messages out |
//! | [`plane`] | a control plane as a pure machine |
//! | [`trace`] | histories as JSON lines, and their replay |
//! | [`story`] | what a trace tells: lives, tasks, slots, requests, and how they belong together |
//! | [`said`] | the words of the vocabulary, as a person reads them |
//! | [`observe`] | every rule, checked from outside, and the catalogue of all invariants |
//! | [`script`] | a small world for a daemon: for seeds, property tests, fuzzers and exhaustive search; makes failing histories small |
//! | `sim` | a large world in virtual time (feature `sim`) |

mod access;
mod actions;
mod backoff;
mod beats;
mod claim;
pub mod codec;
pub mod config;
pub mod daemon;
mod digest;
pub mod effect;
mod env;
pub mod error;
pub mod event;
mod fact;
mod gc;
pub mod id;
mod late;
#[cfg(test)]
mod laws;
pub mod ledger;
mod link;
pub mod observe;
mod op;
mod paths;
pub mod plane;
pub mod reason;
pub mod rng;
mod roots;
mod runtimes;
pub mod said;
pub mod script;
mod shutdown;
#[cfg(feature = "sim")]
pub mod sim;
pub mod story;
mod task;
pub mod time;
mod timer;
mod token;
pub mod trace;
pub mod watcher;

pub use backoff::Backoff;
pub use timer::TimerKey;
