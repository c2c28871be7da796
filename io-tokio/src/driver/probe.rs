//! Looks at the agent CLIs, as the core asks for them.

use super::host::Host;
use crate::discover::LookError;
use longshore_core::error::FsError;
use longshore_core::event::FsReply;
use longshore_core::reason::FailReason;
use tokio_util::sync::CancellationToken;

/// Looks once. It ends only after what earlier processes left is in the core's hands: nothing is registered, and so nothing claimed,
/// before that.
pub(super) async fn look(host: &Host, all: bool, cancel: CancellationToken) -> Result<FsReply, FsError> {
    let looked = async { tokio::join!(host.prober.look(all), host.recovered.wait()).0 };
    let found = tokio::select! {
        found = looked => found,
        () = cancel.cancelled() => return Err(FsError::Cancelled),
    };
    match found {
        Ok(found) => Ok(FsReply::Probed { agents: found.standings() }),
        Err(error) => {
            tracing::warn!("{error}; it is tried again");
            Err(match error {
                LookError::Disk(_) => FsError::TimedOut,
                _ => FsError::Failed { reason: FailReason::Unknown },
            })
        }
    }
}
