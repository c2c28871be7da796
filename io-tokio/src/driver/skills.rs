//! The skills that a task's claim names, fetched before its directory is prepared.

use super::disk::Trouble;
use super::host::Host;
use crate::book::Entry;
use crate::prepare::skill::Skill;
use crate::skills::Wanted;
use longshore_core::error::FsError;
use longshore_core::id::RuntimeId;
use longshore_core::reason::FailReason;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Gets them, or says why the task cannot have them. A cancel ends it at once: what is still being written then is the cache's, not the task's.
pub(super) async fn fetched(
    host: &Host,
    entry: &Entry,
    backstop: Duration,
    cancel: &CancellationToken,
) -> Result<Vec<Skill>, Trouble> {
    let skills = entry.task.agent.as_ref().map(|agent| agent.skill_refs.as_slice()).unwrap_or_default();
    if skills.is_empty() {
        return Ok(Vec::new());
    }
    let workspace = &entry.task.workspace_id;
    let runtime = RuntimeId::new(entry.task.runtime_id.as_str());
    let wanted = Wanted { workspace, runtime: &runtime, task: &entry.id, skills };
    let late = |error| {
        let after = host.settings.prepare_timeout;
        let text = format!(
            "the task's preparation did not end within {after:?}: its skills were still being fetched"
        );
        Trouble { error, text }
    };
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(late(FsError::Cancelled)),
        got = host.skills.get(&host.client, wanted) => match got {
            Ok(skills) => Ok(skills.iter().map(|skill| Skill::fetched(skill, workspace)).collect()),
            Err(missing) => {
                let reason = FailReason::SkillBundleUnavailable;
                Err(Trouble { error: FsError::Failed { reason }, text: missing.to_string() })
            }
        },
        () = tokio::time::sleep(backstop) => Err(late(FsError::TimedOut)),
    }
}
