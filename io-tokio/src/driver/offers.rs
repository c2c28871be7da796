//! From a claimed task to what the core may know of it: ids that are safe, a directory, and whether it can be run at all.

use super::apart::Apart;
use super::host::Host;
use super::local::{self, Binding};
use crate::prepare;
use crate::wire::claim::ClaimReply;
use crate::wire::task::Task;
use longshore_core::event::{ApiReply, Offer};
use longshore_core::id::{EnvRoot, RuntimeId, TaskId, is_safe_component};
use longshore_core::reason::FailReason;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use tokio::time::Instant;

/// Stands for the directory of a task that gets none.
const NO_ROOT: &str = "-";

/// What was handed over that is no task, and not told yet: it comes again with each claim.
#[derive(Debug, Default)]
pub(super) struct Unusable(Mutex<Untold>);

#[derive(Debug, Default)]
struct Untold {
    count: usize,
    apart: Apart,
}

impl Untold {
    /// Takes note of so many at `now`. Gives how many are to be told, of which these are the last.
    fn take(&mut self, count: usize, now: Instant) -> Option<usize> {
        self.count = self.count.saturating_add(count);
        (count > 0 && self.apart.lets(now)).then(|| std::mem::take(&mut self.count))
    }
}

impl Unusable {
    /// Tells of things that are no tasks, each by the reason why not.
    fn note(&self, reasons: &[&str]) {
        let mut untold = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some(count), Some(reason)) = (untold.take(reasons.len(), Instant::now()), reasons.first()) {
            tracing::error!(
                count,
                reason,
                "the server handed over something that is no task; it cannot be reported, and will be offered again or time out there"
            );
        }
    }
}

/// Takes the tasks of a reply in. `asked` is the runtime, if only one was asked for.
pub(super) fn take(host: &Host, reply: ClaimReply, asked: Option<&RuntimeId>) -> ApiReply {
    let mut unusable: Vec<_> = reply.unusable.iter().map(|it| it.reason).collect();
    let mut offers = Vec::new();
    for task in reply.tasks {
        if is_safe_component(&task.id) {
            offers.push(offer(host, task, asked));
        } else {
            unusable.push("its id can be no part of a path or URL");
        }
    }
    host.unusable.note(&unusable);
    ApiReply::Claimed { offers, unusable: u16::try_from(unusable.len()).unwrap_or(u16::MAX) }
}

fn offer(host: &Host, mut task: Task, asked: Option<&RuntimeId>) -> Offer {
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
    Offer {
        claim: entry.claim,
        task: id,
        runtime,
        fault: fault.or_else(|| root.is_none().then_some(FailReason::InvalidTaskIdentity)),
        root: root.unwrap_or_else(|| EnvRoot::new(NO_ROOT)),
        prior,
        in_place,
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::apart::APART;
    use std::time::Duration;

    #[test]
    fn what_is_no_task_is_told_once_a_minute_and_none_is_left_out() {
        let (mut untold, begun) = (Untold::default(), Instant::now());
        let told: Vec<_> = (0..125)
            .filter_map(|secs| Some((secs, untold.take(4, begun + Duration::from_secs(secs))?)))
            .collect();
        assert_eq!(told, [(0, 4), (60, 240), (120, 240)]);
        assert_eq!(untold.take(0, begun + APART * 9), None, "an answer with tasks alone is no occasion");
    }
}
