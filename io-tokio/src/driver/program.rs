//! Which program a task is run with.

use super::host::Host;
use super::profiles;
use crate::actions;
use crate::book::Entry;
use longshore_core::id::{ProfileId, RuntimeId, WorkspaceId};
use longshore_core::reason::FailReason;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long the disk may take to say where a program is.
const LIMIT: Duration = Duration::from_secs(10);

/// A program, and the arguments that come before all others.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) path: PathBuf,
    pub(super) prefix: Vec<String>,
}

/// The program for a task, or why there is none, for people.
pub(super) async fn of(host: &Arc<Host>, entry: &Entry) -> Result<Program, (FailReason, String)> {
    let found = match &entry.profile {
        None => {
            let agent = host.prober.for_launch(&entry.provider).await;
            agent.map(|agent| Program { path: agent.path.clone(), prefix: Vec::new() })
        }
        Some(profile) => of_profile(host, entry, profile).await,
    };
    found.map_err(|why| (FailReason::MissingExecutable, why))
}

async fn of_profile(host: &Arc<Host>, entry: &Entry, id: &ProfileId) -> Result<Program, String> {
    let workspace = WorkspaceId::new(entry.task.workspace_id.as_str());
    let profile = host.served().profile(&workspace, id).ok_or_else(|| {
        format!("the custom runtime {id} that the task is for was removed or switched off after the task was taken; choose another runtime for the agent")
    })?;
    let called = if profile.name.is_empty() { id.as_str() } else { &profile.name };
    let sentence = |why: &str| format!("the custom runtime {called} cannot be used on this machine: {why}");
    let usable = profile.here.as_ref().map_err(|why| sentence(why))?;
    if usable.cli.provider != entry.provider {
        return Err(sentence("it is driven as another agent by now; run the task again"));
    }
    let mut path = usable.path.clone();
    if !tokio::fs::metadata(&path).await.is_ok_and(|meta| meta.is_file()) {
        // Version managers move programs.
        let end = Instant::now() + LIMIT;
        path =
            profiles::locate(host, id.as_str(), &profile.command, end).await.map_err(|why| sentence(&why))?;
    }
    Ok(Program { path, prefix: profile.args.clone() })
}

/// The program of a runtime as it is now; `None` if there is none that works. It is what answers for the runtime's models.
pub(super) async fn of_runtime(host: &Host, runtime: &RuntimeId) -> Option<actions::Program> {
    let (workspace, provider, profile) = {
        let set = host.set();
        let hosted = set.runtimes.get(runtime)?;
        (hosted.workspace.clone(), hosted.provider.clone(), hosted.profile.clone())
    };
    let Some(profile) = profile else {
        let agent = host.prober.for_launch(provider.as_str()).await.ok()?;
        let (path, version_line) = (agent.path.clone(), agent.version_line.clone());
        return Some(actions::Program { path, args: Vec::new(), version_line });
    };
    let profile = host.served().profile(&workspace, &profile)?;
    let agent = profile.here.as_ref().ok()?;
    let (path, version_line) = (agent.path.clone(), agent.version_line.clone());
    Some(actions::Program { path, args: profile.args.clone(), version_line })
}
