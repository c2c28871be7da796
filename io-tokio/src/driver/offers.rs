//! From a claimed task to what the core may know of it: ids that are safe, a directory, and whether it can be run at all.

use super::host::Host;
use super::local::{self, Binding};
use crate::prepare;
use crate::wire::claim::ClaimReply;
use crate::wire::task::Task;
use longshore_core::event::{ApiReply, Offer};
use longshore_core::id::{EnvRoot, RuntimeId, TaskId, is_safe_component};
use longshore_core::reason::FailReason;
use std::path::Path;

/// Stands for the directory of a task that gets none.
const NO_ROOT: &str = "-";

/// Takes the tasks of a reply in. `asked` is the runtime, if only one was asked for.
pub(super) fn take(host: &Host, reply: ClaimReply, asked: Option<&RuntimeId>) -> ApiReply {
    for unusable in &reply.unusable {
        tracing::error!(
            index = unusable.index,
            reason = unusable.reason,
            "the server handed over something that is no task; it cannot be reported and will be offered again or time out there"
        );
    }
    let mut unusable = reply.unusable.len();
    let mut offers = Vec::new();
    for task in reply.tasks {
        match offer(host, task, asked) {
            Some(offer) => offers.push(offer),
            None => unusable += 1,
        }
    }
    ApiReply::Claimed { offers, unusable: u16::try_from(unusable).unwrap_or(u16::MAX) }
}

fn offer(host: &Host, mut task: Task, asked: Option<&RuntimeId>) -> Option<Offer> {
    if !is_safe_component(&task.id) {
        tracing::error!(
            task_id_bytes = task.id.len(),
            "a claimed task has an id that can be no part of a path or URL; it cannot be reported"
        );
        return None;
    }
    if task.runtime_id.is_empty()
        && let Some(asked) = asked
    {
        asked.as_str().clone_into(&mut task.runtime_id);
    }
    let runtime = RuntimeId::new(task.runtime_id.as_str());
    let binding = local::binding(&task, &host.identity.daemon_id);
    let trouble = trouble(&task, &binding);
    let root = prepare::predicted_root(&task.workspace_id, &task.id);
    let prior = prior(&host.settings.workspaces_root, &task);
    let (provider, profile) = match host.made_of(&runtime) {
        Some((provider, profile)) => (provider.as_str().to_owned(), profile),
        None => Default::default(),
    };
    let id = TaskId::new(task.id.as_str());
    let entry = host.book.add(task, provider, profile);
    host.register_secret(entry.claim.0, &entry.task.auth_token);
    let mut in_place = false;
    if let Binding::Directory(directory) = binding {
        in_place = !directory.shared;
        entry.disk().local = Some(directory);
    }
    let fault = trouble.map(|(reason, text)| {
        tracing::warn!(task = %id, reason = reason.as_str(), "{text}");
        entry.trouble(text);
        reason
    });
    Some(Offer {
        claim: entry.claim,
        task: id,
        runtime,
        fault: fault.or_else(|| root.is_none().then_some(FailReason::InvalidTaskIdentity)),
        root: root.unwrap_or_else(|| EnvRoot::new(NO_ROOT)),
        prior,
        in_place,
    })
}

fn prior(workspaces_root: &Path, task: &Task) -> Option<EnvRoot> {
    if task.prior_work_dir.is_empty() {
        return None;
    }
    prepare::prior_root(&[workspaces_root], &task.prior_work_dir)
}

/// Why a task cannot be run, if it cannot.
fn trouble(task: &Task, binding: &Binding) -> Option<(FailReason, String)> {
    let identity = |text: &str| Some((FailReason::InvalidTaskIdentity, text.to_owned()));
    match &task.agent {
        None => return identity("the task names no agent, so it was not run"),
        Some(agent) if !agent.id.is_empty() && !task.agent_id.is_empty() && agent.id != task.agent_id => {
            return identity("the task names two different agents, so it was not run");
        }
        Some(_) => {}
    }
    if !is_safe_component(&task.workspace_id) {
        return identity("the task's workspace id is empty or can be no part of a path, so it was not run");
    }
    if prepare::predicted_root(&task.workspace_id, &task.id).is_none() {
        return identity("the task's workspace or task id gives no name for a directory, so it was not run");
    }
    match binding {
        Binding::Refused(why) => Some((FailReason::LocalDirectoryError, why.clone())),
        Binding::None | Binding::Directory(_) => None,
    }
}
