//! What happened at a moment, in words.

use super::{clean, count, length};
use longshore_core::effect::{Effect, EndReason, Fact, KillStep, StopPhase};
use longshore_core::event::{GateOwner, StopKind};
use longshore_core::script::effect_label;
use longshore_core::story::{Moment, What};
use std::fmt::Write as _;
use std::time::Duration;

pub(in crate::trace) const fn ending(why: EndReason) -> &'static str {
    match why {
        EndReason::Stop => "the daemon stops",
        EndReason::Idle => "its agent said nothing for too long",
        EndReason::TooLong => "its agent took too long",
        EndReason::PrepareTimeout => "its preparation took too long",
        EndReason::Server => "the server has ended or forgotten it",
        _ => "for a reason that this version does not know",
    }
}

pub(in crate::trace) fn stop(how: StopKind) -> String {
    match how {
        StopKind::Now => "a stop is asked for".to_owned(),
        StopKind::Drain { within_ms: None } => "a drain is asked for".to_owned(),
        StopKind::Drain { within_ms: Some(ms) } => {
            format!("a drain within {} is asked for", length(Duration::from_millis(ms)))
        }
        StopKind::Restart => "a restart is asked for".to_owned(),
        _ => "an end is asked for".to_owned(),
    }
}

pub(in crate::trace) const fn stopping(phase: StopPhase) -> &'static str {
    match phase {
        StopPhase::Serving => "the daemon serves",
        StopPhase::Claims => "the stop waits for claims",
        StopPhase::Tasks => "the stop waits for tasks",
        StopPhase::Deregistering => "the stop waits for the runtimes to go off line",
        StopPhase::Exited => "the stop is over",
        _ => "the stop goes on",
    }
}

/// What happened at a moment.
pub(in crate::trace) fn moment(of: &Moment) -> String {
    match &of.what {
        What::Kill(step) if of.task.is_none() => {
            format!("the agent of a task that is not known {}", kill(*step))
        }
        What::Kill(step) => format!("its agent {}", kill(*step)),
        What::Fact(of) => fact(of),
        What::Stop(how) => stop(*how),
        What::Gate { owner, answer } => {
            let who = match owner {
                GateOwner::ServerUpdate => "an update by the server",
                GateOwner::SelfUpdate => "an update",
                GateOwner::Reload => "a reload",
                GateOwner::Demotion => "an agent CLI that is taken off line",
                _ => "somebody",
            };
            let got = if *answer == longshore_core::effect::GateAnswer::Granted {
                "has it"
            } else {
                "does not get it"
            };
            format!("{who} wants the daemon idle, and {got}")
        }
        What::Credential => "another credential is in use".to_owned(),
        What::Note(text) => format!("note: {}", clean(text)),
        What::Exit(report) => {
            let mut text = "the daemon ends".to_owned();
            for (tasks, what) in [(&report.abandoned, "not reported"), (&report.kept, "left to the next one")]
            {
                if !tasks.is_empty() {
                    let tasks = count(tasks.len(), "task is", "tasks are");
                    let _ = write!(text, "; {tasks} {what}");
                }
            }
            text
        }
        _ => "something that this version has no words for".to_owned(),
    }
}

fn kill(step: KillStep) -> String {
    match step {
        KillStep::CloseInput => "gets no more input".to_owned(),
        KillStep::End { grace_ms } => {
            format!("is told to end within {}", length(Duration::from_millis(u64::from(grace_ms))))
        }
        KillStep::Kill => "is killed".to_owned(),
        _ => "is told something that this version does not know".to_owned(),
    }
}

fn fact(of: &Fact) -> String {
    match of {
        Fact::HeldOff => "a claim has an unknown fate: none is sent for a while".to_owned(),
        Fact::Collected { root, ok, .. } => {
            let done = if *ok { "is freed" } else { "could not be freed" };
            format!("directory {} {done}", clean(root.as_str()))
        }
        Fact::Uncollected { left } => {
            let left = count(*left, "directory is", "directories are");
            format!("{left} left for the next round of the collector")
        }
        Fact::Duplicate { task } => format!("task {} was here already, and is ignored", clean(task.as_str())),
        Fact::Unusable { count: tasks } => {
            let tasks = count(*tasks, "claimed task", "claimed tasks");
            format!("{tasks} cannot be named to the server")
        }
        Fact::MessagesRefused { upto, status, .. } => {
            format!("the server refuses messages up to {upto} for good ({status})")
        }
        Fact::UsageLate { .. } => "its usage goes on being reported in the background".to_owned(),
        Fact::UsageLost { .. } => "the server refuses its usage for good".to_owned(),
        Fact::Unauthorized => "the server refuses the credential".to_owned(),
        Fact::Reconciled => "everything is looked at again, as the control connection is up".to_owned(),
        Fact::Woke { slept } => {
            format!("the machine has slept for {}", length(Duration::from_millis(*slept)))
        }
        Fact::Held { provider } => format!("agent CLI {} is taken off line", clean(provider.as_str())),
        Fact::Freed { provider } => format!("agent CLI {} works again", clean(provider.as_str())),
        Fact::ActionOver { action, taken } => {
            let done = if *taken { "is taken" } else { "will never be taken" };
            format!("the result of action {} {done}", clean(action.as_str()))
        }
        Fact::ActionDropped { action } => {
            format!("action {} is left undone: too many wait", clean(action.as_str()))
        }
        Fact::RuntimeGone { .. } => "the server has no such runtime any more".to_owned(),
        Fact::PerRuntimeClaims => "the server has no batch claim: each runtime asks for itself".to_owned(),
        Fact::Stray { total } => {
            format!("something comes that nobody waits for: {total} in this life so far")
        }
        other => clean(&effect_label(&Effect::Fact { fact: other.clone() })),
    }
}
