//! A run's supervisor as a process of the system: our child, or one that an earlier daemon started.

use super::link::wake;
use crate::supervise::record::{Identity, Status};
use rustix::process::Signal;
use tokio::process::Child;

/// Whose process it is decides how it can be signalled and how its end is seen.
pub(super) enum Keeper {
    /// We have not reaped it, so its number is its own.
    Child(Child),
    /// As a status names it. Nothing but that very process is ever signalled.
    Stranger { supervisor: Identity, boot_id: Option<String> },
    /// It is of an earlier boot, or nothing names it.
    Unknown,
}

impl Keeper {
    /// The supervisor that a status of this boot names.
    pub(super) fn of(status: Option<&Status>) -> Self {
        status.map_or(Self::Unknown, |status| Self::Stranger {
            supervisor: status.supervisor.clone(),
            boot_id: status.boot_id.clone(),
        })
    }

    /// Whether its end tells itself.
    pub(super) fn is_ours(&self) -> bool {
        matches!(self, Self::Child(_))
    }

    /// Waits for its end; for ever when it is not ours. Cancel-safe.
    pub(super) async fn ended(&mut self) -> String {
        let Self::Child(child) = self else { return std::future::pending().await };
        match child.wait().await {
            Ok(status) => status.to_string(),
            Err(error) => format!("its end is unknown: {error}"),
        }
    }

    /// Lets it go on if somebody has stopped it.
    pub(super) fn wake(&self) {
        match self {
            Self::Child(child) => wake(child),
            Self::Stranger { .. } | Self::Unknown => self.signal_stranger(Signal::CONT),
        }
    }

    /// The kernel kills the agent with it; what else is left is found by its marker.
    pub(super) fn kill(&mut self) {
        match self {
            Self::Child(child) => drop(child.start_kill()),
            Self::Stranger { .. } | Self::Unknown => self.signal_stranger(Signal::KILL),
        }
    }
}

#[cfg(target_os = "linux")]
impl Keeper {
    /// Whether somebody has stopped it.
    pub(super) fn is_stopped(&self) -> bool {
        use crate::supervise::procfs::Stat;
        let stat = match self {
            Self::Child(child) => child.id().and_then(|pid| Stat::of(i32::try_from(pid).ok()?)),
            Self::Stranger { .. } | Self::Unknown => self.stranger(),
        };
        stat.is_some_and(|stat| stat.stopped)
    }

    fn stranger(&self) -> Option<crate::supervise::procfs::Stat> {
        let Self::Stranger { supervisor, boot_id } = self else { return None };
        crate::supervise::procfs::living(supervisor, boot_id.as_deref())
    }

    fn signal_stranger(&self, signal: Signal) {
        if let Some(stat) = self.stranger() {
            crate::supervise::tree::signal_same(&stat, signal);
        }
    }
}

#[cfg(not(target_os = "linux"))]
impl Keeper {
    /// Nothing tells.
    #[expect(clippy::unused_self, reason = "elsewhere it is looked at")]
    pub(super) fn is_stopped(&self) -> bool {
        false
    }

    #[expect(clippy::unused_self, reason = "nothing proves that the number is still its own")]
    fn signal_stranger(&self, _signal: Signal) {}
}
