//! Short texts for what a story has.

use longshore_core::effect::{EndReason, KillStep, PhaseName, ReportKind, StopPhase};
use longshore_core::event::StopKind;
use longshore_core::reason::FailReason;
use longshore_core::story::{Fate, Origin, Story, Task, WaitReason};

/// A phase, as the architecture names it.
pub(super) const fn phase(name: PhaseName) -> &'static str {
    match name {
        PhaseName::Resolving => "looking at the user's directory",
        PhaseName::AwaitingDirectory => "waiting for the user's directory",
        PhaseName::AwaitingSlot => "waiting for a slot",
        PhaseName::AwaitingRoot => "waiting for its env root",
        PhaseName::Preparing => "preparing",
        PhaseName::Starting => "starting",
        PhaseName::Running => "running",
        PhaseName::Settling => "settling",
        PhaseName::Reporting => "reporting",
        PhaseName::Sealing => "sealing",
        _ => "in another phase",
    }
}

/// A task's name, also if the trace has only the claim.
pub(super) fn task(task: &Task) -> String {
    task.id.as_ref().map_or_else(|| format!("claim {}", task.claim.0), |id| id.as_str().to_owned())
}

/// What something waits for.
pub(super) fn wait(reason: WaitReason, story: &Story) -> String {
    match reason {
        WaitReason::Slot => "no slot is free".into(),
        WaitReason::Directory { holder, parked } => {
            let who = holder.map_or_else(|| "another task".into(), |holder| task(&story[holder]));
            let how = if parked { ", without a slot meanwhile" } else { "" };
            format!("{who} works in the user's directory{how}")
        }
        WaitReason::Collector => "the collector frees the env root".into(),
        WaitReason::LeaseEnd => "the last refresh of the lease ends".into(),
        WaitReason::Retry { request, after } => {
            format!("{} is tried again after: {after}", story[request].kind.as_str())
        }
        WaitReason::ClaimOnItsWay => "a claim is on its way already".into(),
        WaitReason::HeldOff => "a claim of unknown fate may have brought tasks".into(),
        WaitReason::Credential => "the server refuses the credential".into(),
        WaitReason::Closed => "the daemon stops, or somebody holds the gate".into(),
        _ => "not recorded".into(),
    }
}

/// How a task came here.
pub(super) fn origin(origin: Origin) -> String {
    match origin {
        Origin::Admitted(_) => "claimed".into(),
        Origin::HandedBack(_, reason) => format!("claimed and handed back: {}", fail(reason)),
        Origin::Recovered(_) => "taken over from an earlier process".into(),
        Origin::Offered(_) => "offered; what was done about it is not recorded".into(),
        Origin::Unknown => "not recorded".into(),
    }
}

/// What became of a task's report.
pub(super) fn fate(fate: Fate) -> String {
    match fate {
        Fate::Open => "not reported yet".into(),
        Fate::Reported { report: kind, tries: 1, .. } => report(kind),
        Fate::Reported { report: kind, tries, .. } => format!("{}, taken at try {tries}", report(kind)),
        Fate::Superseded { status, .. } => {
            format!("superseded: the server has it as {status:?}").to_lowercase()
        }
        Fate::Refused { status, .. } => format!("the server refused the report with {status}"),
        Fate::Silent => "nothing to report".into(),
        Fate::Abandoned => "abandoned at the daemon's end".into(),
        Fate::Kept => "kept for the next process".into(),
        Fate::Unknown => "not recorded".into(),
    }
}

/// A report.
pub(super) fn report(kind: ReportKind) -> String {
    match kind {
        ReportKind::Complete => "completed".into(),
        ReportKind::Fail { reason } => format!("failed: {}", fail(reason)),
        ReportKind::CancelAck => "cancelled".into(),
    }
}

fn fail(reason: FailReason) -> &'static str {
    reason.as_str()
}

/// Why a task was to end.
pub(super) const fn ending(why: EndReason) -> &'static str {
    match why {
        EndReason::Stop => "ended: the daemon stops",
        EndReason::Idle => "ended: the agent says nothing",
        EndReason::TooLong => "ended: it runs for too long",
        EndReason::PrepareTimeout => "ended: its preparation takes too long",
        EndReason::Server => "ended: the server says so",
        _ => "ended",
    }
}

/// How a run was told to end.
pub(super) const fn kill(step: KillStep) -> &'static str {
    match step {
        KillStep::CloseInput => "the agent's input is closed",
        KillStep::End { .. } => "the agent is told to end",
        KillStep::Kill => "the agent is killed",
        _ => "the agent is ended",
    }
}

/// What kind of stop somebody asked for.
pub(super) const fn stop(kind: StopKind) -> &'static str {
    match kind {
        StopKind::Now => "stop",
        StopKind::Drain { .. } => "stop when the tasks are over",
        StopKind::Restart => "restart",
        _ => "another stop",
    }
}

/// What a stop waits for.
pub(super) const fn stopping(phase: StopPhase) -> &'static str {
    match phase {
        StopPhase::Serving => "serving",
        StopPhase::Claims => "stopping: claims",
        StopPhase::Tasks => "stopping: tasks",
        StopPhase::Deregistering => "stopping: runtimes go off line",
        StopPhase::Exited => "stopped",
        _ => "stopping",
    }
}
