//! Recorded histories: what happened to a daemon and what it did about it, as JSON lines.
//!
//! A trace is a [`Header`], then one line for each step with its event and its effects, a digest of the state now and then,
//! and checkpoints from which a replay can begin in the middle of a life. Steps that are missing are said by a
//! [`Gap`]. [`encode`] writes lines, [`Reader`] reads them, [`Replay`] feeds them to a core and compares.
//!
//! ```
//! use longshore_core::{
//!     config::Config, daemon::Daemon, effect::Effects, event::Event, rng::Seed, time::Now,
//!     trace::{Header, Mode, Reader, Replay, encode},
//! };
//!
//! // Record …
//! let (config, seed, now, mut fx) = (Config::default(), Seed(1), Now::default(), Effects::new());
//! let mut daemon = Daemon::new(config.clone(), seed, now, &mut fx).expect("defaults are in bounds");
//! let mut lines = Vec::new();
//! encode::header(&mut lines, &Header::new("example", config, seed, now))?;
//! encode::start(&mut lines, now, fx.as_slice())?;
//! fx.clear();
//! daemon.handle(now, &Event::stop(), &mut fx);
//! encode::step(&mut lines, 1, now, &Event::stop(), fx.as_slice())?;
//! encode::digest(&mut lines, 1, daemon.digest())?;
//!
//! // … and replay.
//! let report = Replay::new(Mode::Strict).run(Reader::new(lines.as_slice())?)?;
//! assert_eq!((report.compared, report.digests), (2, 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod audit;
mod context;
mod diff;
pub mod encode;
mod format;
mod reader;
mod rebase;
mod replay;
mod salvage;
mod trouble;

pub use audit::{Audit, Audited, Finding, Near};
pub use context::{Context, Difference, Divergence};
pub use format::{
    Checkpoint, DigestAt, End, FORMAT, Gap, Header, IMPORTED, Note, Origin, Record, Step, StepNumber,
    Version, version_of,
};
pub use reader::{MAX_LINE, Reader, Torn, TraceError};
pub use rebase::{Rebase, RebaseError, Rebased};
pub use replay::{Mode, Replay, ReplayError, Report, Seen};
pub use salvage::Salvage;
pub use trouble::{Damage, Place, Trouble, Troubles};

#[cfg(test)]
mod samples;
