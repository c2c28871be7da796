//! What health answers say, published as it changes.

use super::Driver;
use crate::discover::{Problem, SkippedAgent};
use crate::health::{DaemonState, HealthSnapshot, WorkspaceHealth};
use longshore_core::effect::{PhaseName, StopPhase};
use std::collections::BTreeMap;

impl Driver {
    /// Publishes what health answers say of the daemon and its tasks.
    pub(super) fn publish_tasks(&self) {
        let view = self.daemon.view();
        let state = match view.stop_phase() {
            // A core that has tried everything is ready; with nothing to run tasks with the daemon waits for something, or ends.
            StopPhase::Serving if view.is_ready() && self.host.has_work() => DaemonState::Running,
            StopPhase::Serving => DaemonState::Starting,
            _ if view.is_draining() => DaemonState::Draining,
            _ => DaemonState::Stopping,
        };
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let active = count(view.tasks().count());
        let running = count(view.tasks().filter(|task| task.phase == Some(PhaseName::Running)).count());
        let now = (state, active, running, count(view.parked_tasks()), !view.has_access());
        self.health.send_if_modified(|snapshot| {
            let seen = |s: &HealthSnapshot| {
                let counts = (s.active_task_count, s.running_task_count, s.resource_wait_task_count);
                (s.state, counts.0, counts.1, counts.2, s.access_refused)
            };
            let before = seen(snapshot);
            (snapshot.state, snapshot.active_task_count) = (now.0, now.1);
            (snapshot.running_task_count, snapshot.resource_wait_task_count) = (now.2, now.3);
            snapshot.access_refused = now.4;
            before != now
        });
    }

    /// Publishes which runtimes there are.
    pub(super) fn publish_runtimes(&self) {
        let mut workspaces: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (id, hosted) in &self.host.set().runtimes {
            workspaces.entry(hosted.workspace.as_str().to_owned()).or_default().push(id.as_str().to_owned());
        }
        self.health.send_modify(|snapshot| {
            let workspaces = workspaces.into_iter().map(|(id, runtimes)| WorkspaceHealth { id, runtimes });
            snapshot.workspaces = workspaces.collect();
        });
    }

    /// Publishes what the latest look at the agent CLIs found. One that worked and now takes its time is still used.
    pub(super) fn publish_agents(&self) {
        let prober = &self.host.prober;
        let Some(found) = prober.latest() else { return };
        let is_used = |skipped: &SkippedAgent| {
            skipped.problem == Problem::Slow && prober.known(skipped.cli.provider).is_some()
        };
        let (slow, skipped): (Vec<_>, Vec<_>) = found.skipped.iter().partition(|skipped| is_used(skipped));
        let works = found.agents.iter().map(|agent| agent.cli).chain(slow.iter().map(|slow| slow.cli));
        let agents: Vec<String> = works.map(|cli| cli.provider.to_owned()).collect();
        let skipped: BTreeMap<_, _> =
            skipped.iter().map(|s| (s.cli.provider.to_owned(), s.problem.to_string())).collect();
        self.health.send_if_modified(|snapshot| {
            let is_news = (&snapshot.agents, &snapshot.skipped_agents) != (&agents, &skipped);
            (snapshot.agents, snapshot.skipped_agents) = (agents, skipped);
            is_news
        });
    }
}
