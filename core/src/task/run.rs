//! The run itself: launched from a prepared directory with a stopped lease, ended by its own result, by the server, or by a stop.

use super::Task;
use super::idle::Pulse;
use super::outbox::SideKind;
use super::phase::{Phase, RunStage, Running};
use crate::effect::{Effect, EndReason, Keep, KillStep, LaunchCall, PhaseName, ReportKind};
use crate::env::Cx;
use crate::event::{RunEnd, RunEvent, RunOutcome};
use crate::id::OpId;
use crate::reason::FailReason;
use crate::timer::TimerKey;
use crate::token::{LeaseStopped, Prepared};
use std::time::Duration;

/// A supervisor escalates by itself; the core waits this much longer before it insists.
const SUPERVISOR_MARGIN: Duration = Duration::from_secs(2);

impl Task {
    pub(super) fn launch(&mut self, cx: &mut Cx<'_>, prepared: Prepared, lease: LeaseStopped, fresh: bool) {
        let (Some(slot), None) = (self.slot(), self.ending) else {
            let verdict = self.verdict(ReportKind::Fail { reason: FailReason::RuntimeOffline });
            self.enter_settle(cx, verdict, false);
            return;
        };
        let claim = self.claim;
        if !fresh {
            cx.phase(claim, PhaseName::Running);
            cx.emit(Effect::Progress { claim, step: 1 });
        }
        let path = self.directory.as_ref().map(|lock| lock.path.clone());
        cx.emit(Effect::Keep { claim, entry: Keep::Launched { slot, path } });
        self.ran = true;
        let op = cx.run(claim, LaunchCall::new(claim, slot, fresh, &prepared, &lease));
        let pulse = Pulse::start(cx, claim, self.provider.as_ref());
        let proof = Some((prepared, lease));
        self.phase = Phase::Running(Running { proof, op, stage: RunStage::Live, pulse, fresh });
    }

    /// Something about the run, short of its end.
    pub(crate) fn run_event(&mut self, cx: &mut Cx<'_>, op: OpId, event: &RunEvent) {
        let Phase::Running(run) = &mut self.phase else { return };
        if run.op != op {
            return;
        }
        let claim = self.claim;
        match event {
            RunEvent::Launched => run.pulse.launched(cx),
            RunEvent::Ended { .. } => {}
            RunEvent::Progress { have, session, tools } => {
                if run.stage == RunStage::Live {
                    run.pulse.said(cx, claim, self.provider.as_ref(), *tools);
                }
                self.messages.have(cx, claim, *have);
                if *session {
                    self.pin.ready();
                    self.pin.send(cx, claim, SideKind::Pin);
                }
            }
            RunEvent::Result => {
                if run.stage == RunStage::Live {
                    run.stage = RunStage::Answered;
                    Pulse::stop(cx, claim);
                    cx.kill(op, KillStep::CloseInput);
                    let grace = cx.timing().result_grace;
                    cx.arm(TimerKey::RunEnd(claim), grace);
                }
            }
        }
    }

    pub(super) fn interrupt_run(&mut self, cx: &mut Cx<'_>) {
        if let Phase::Running(run) = &mut self.phase
            && run.stage < RunStage::Ending
        {
            tell_to_end(cx, run, self.claim);
        }
    }

    /// A run that should be over is not.
    pub(super) fn run_end_due(&mut self, cx: &mut Cx<'_>) {
        let Phase::Running(run) = &mut self.phase else { return };
        match run.stage {
            RunStage::Live | RunStage::Answered => tell_to_end(cx, run, self.claim),
            RunStage::Ending | RunStage::Killed => {
                run.stage = RunStage::Killed;
                cx.kill(run.op, KillStep::Kill);
                let again = cx.timing().kill_grace.max(SUPERVISOR_MARGIN);
                cx.arm(TimerKey::RunEnd(self.claim), again);
            }
        }
    }

    /// The last process is gone.
    pub(crate) fn run_ended(&mut self, cx: &mut Cx<'_>, op: OpId, outcome: RunOutcome) {
        if !matches!(&self.phase, Phase::Running(run) if run.op == op) {
            return;
        }
        let Phase::Running(run) = std::mem::replace(&mut self.phase, Phase::Moving) else { return };
        cx.disarm(&TimerKey::RunEnd(self.claim));
        Pulse::stop(cx, self.claim);
        self.messages.have(cx, self.claim, outcome.have);
        if outcome.usage {
            self.usage.ready();
        }
        let again = outcome.resume_rejected && !run.fresh && self.ending.is_none();
        // A run that was only followed is not launched: what it takes is not here any more. The server gives the task out again.
        if again
            && !self.stopping
            && let Some((prepared, lease)) = run.proof
        {
            self.launch(cx, prepared, lease, true);
            return;
        }
        let natural = match outcome.end {
            RunEnd::Completed => ReportKind::Complete,
            RunEnd::Failed { .. } if again => ReportKind::Fail { reason: FailReason::RuntimeOffline },
            RunEnd::Failed { reason } => ReportKind::Fail { reason },
        };
        let verdict = self.verdict(natural);
        self.record = verdict.is_some_and(|kind| kind != ReportKind::CancelAck);
        self.enter_settle(cx, verdict, true);
    }

    /// Whether a stop would cut off work: an agent that has given its result only has to end.
    pub(crate) const fn is_answered(&self) -> bool {
        matches!(&self.phase, Phase::Running(run) if matches!(run.stage, RunStage::Answered))
    }

    /// Whether its agent is launched and not over.
    pub(crate) const fn is_running(&self) -> bool {
        matches!(self.phase, Phase::Running(_))
    }

    /// The run goes on when the daemon ends, but is not launched a second time by this process.
    pub(crate) const fn launch_no_more(&mut self) {
        self.stopping = true;
    }

    /// Whether the next process of this daemon takes the task over: its run goes on.
    pub(crate) const fn is_kept(&self) -> bool {
        self.is_running()
    }

    /// Ends the run at once: the daemon waits no longer.
    pub(crate) fn kill(&mut self, cx: &mut Cx<'_>) {
        self.interrupt_run(cx);
        if let Phase::Running(run) = &mut self.phase
            && run.stage < RunStage::Killed
        {
            run.stage = RunStage::Killed;
            cx.kill(run.op, KillStep::Kill);
        }
    }

    /// Whether its report waits for the server to be there again.
    pub(crate) const fn waits_for_server(&self) -> bool {
        matches!(&self.phase, Phase::Reporting(report) if report.waits_for_server())
    }

    /// The server is there again.
    pub(crate) fn server_answers(&mut self, cx: &mut Cx<'_>) {
        if let Phase::Reporting(report) = &mut self.phase
            && report.waits_for_server()
        {
            cx.disarm(&TimerKey::ReportRetry(self.claim));
            report.send(cx, self.claim);
        }
    }

    /// Ends the task because the daemon stops.
    pub(crate) fn stop(&mut self, cx: &mut Cx<'_>) {
        self.stopping = true;
        if let Phase::Reporting(report) = &mut self.phase {
            // There may be no time left for the wait that it is in.
            cx.disarm(&TimerKey::ReportRetry(self.claim));
            report.send(cx, self.claim);
        } else if !self.is_answered() {
            self.end(cx, EndReason::Stop);
        }
    }
}

fn tell_to_end(cx: &mut Cx<'_>, run: &mut Running, claim: crate::event::ClaimKey) {
    let grace = cx.timing().kill_grace;
    run.stage = RunStage::Ending;
    Pulse::stop(cx, claim);
    cx.kill(run.op, KillStep::End { grace_ms: u32::try_from(grace.as_millis()).unwrap_or(u32::MAX) });
    cx.arm(TimerKey::RunEnd(claim), grace + SUPERVISOR_MARGIN);
}
