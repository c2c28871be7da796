//! The daemon's side: warm pairs, preparation with a deadline, the launch, and what a run says.

mod attach;
mod error;
mod keeper;
mod launcher;
mod leftover;
mod link;
mod lost;
mod outbound;
mod pair;
mod run;
mod spec;
mod spool;
mod unlaunched;
mod watch;

pub use error::{AttachError, LaunchError, PrepareError, SpawnError, StdinError};
pub use launcher::Launcher;
#[cfg(target_os = "linux")]
pub(super) use lost::kill_where;
pub use pair::{Pair, Ready};
pub use run::{Position, Run, RunEvent};
pub use spec::{Credit, DEFAULT_LEFTOVER_GRACE, DEFAULT_SPOOL_BUDGET, LaunchSpec};
