//! The watchdogs of a run: how long it has said nothing, and how long it has run, both without the machine's sleep.
//!
//! What the agent says only moves a mark: the deadline stays where it is, and when it comes it looks how much of the time is really over
//! and waits for the rest. So a talkative agent costs nothing, and a machine that slept loses no run: it could not speak meanwhile.

use super::Task;
use super::phase::{Phase, RunStage};
use crate::effect::EndReason;
use crate::env::Cx;
use crate::event::ClaimKey;
use crate::id::Provider;
use crate::time::Awake;
use crate::timer::TimerKey;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A watchdog that comes this late was not looked at in time: the machine or the daemon stood still in a way that no clock tells.
const LATE: Duration = Duration::from_secs(2);
/// Then what the agent said meanwhile gets this long to arrive.
const HEAR_OUT: Duration = Duration::from_secs(5);

/// The signs of life of a run that is live.
#[derive(Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Pulse {
    /// When it was launched.
    begun: Awake,
    /// When it last gave a sign.
    last: Awake,
    /// Whether its process was seen.
    launched: bool,
    /// Whether a tool of it is at work.
    in_tool: bool,
    /// Whether it was over and is waited for a little longer.
    heard_out: bool,
}

impl Pulse {
    /// From the moment when the launch is asked for: one that hangs is silence, too.
    pub(super) fn start(cx: &mut Cx<'_>, claim: ClaimKey, provider: Option<&Provider>) -> Self {
        let now = cx.now.awake();
        if let Some(window) = cx.timing().silence(provider, false) {
            cx.arm(TimerKey::Idle(claim), window);
        }
        let limit = cx.timing().run_limit;
        if !limit.is_zero() {
            cx.arm(TimerKey::RunLimit(claim), limit);
        }
        Self { begun: now, last: now, launched: false, in_tool: false, heard_out: false }
    }

    /// The process exists: its time begins now, once.
    pub(super) fn launched(&mut self, cx: &Cx<'_>) {
        if !std::mem::replace(&mut self.launched, true) {
            self.begun = cx.now.awake();
            self.last = self.begun;
        }
    }

    /// The agent said something, or a tool began or ended. Another window has another deadline, which may be an earlier one.
    pub(super) fn said(&mut self, cx: &mut Cx<'_>, claim: ClaimKey, provider: Option<&Provider>, tools: u32) {
        self.last = cx.now.awake();
        self.heard_out = false;
        let in_tool = tools > 0;
        if in_tool == std::mem::replace(&mut self.in_tool, in_tool) {
            return;
        }
        match cx.timing().silence(provider, in_tool) {
            Some(window) => cx.arm(TimerKey::Idle(claim), window),
            None => cx.disarm(&TimerKey::Idle(claim)),
        }
    }

    /// The run is not live any more.
    pub(super) fn stop(cx: &mut Cx<'_>, claim: ClaimKey) {
        cx.disarm(&TimerKey::Idle(claim));
        cx.disarm(&TimerKey::RunLimit(claim));
    }
}

impl Task {
    fn live(&mut self) -> Option<&mut Pulse> {
        match &mut self.phase {
            Phase::Running(run) if run.stage == RunStage::Live => Some(&mut run.pulse),
            _ => None,
        }
    }

    /// The run may have been silent for too long.
    pub(super) fn idle_due(&mut self, cx: &mut Cx<'_>) {
        let (claim, provider) = (self.claim, self.provider.clone());
        let Some(pulse) = self.live() else { return };
        let Some(window) = cx.timing().silence(provider.as_ref(), pulse.in_tool) else { return };
        let silent = cx.now.awake().since(pulse.last);
        let rest = window.saturating_sub(silent);
        if !rest.is_zero() {
            cx.arm(TimerKey::Idle(claim), rest);
        } else if silent > window.saturating_add(LATE) && !std::mem::replace(&mut pulse.heard_out, true) {
            cx.arm(TimerKey::Idle(claim), HEAR_OUT.min(window));
        } else {
            self.end(cx, EndReason::Idle);
        }
    }

    /// The run may have taken too long.
    pub(super) fn run_limit_due(&mut self, cx: &mut Cx<'_>) {
        let claim = self.claim;
        let Some(pulse) = self.live() else { return };
        let rest = cx.timing().run_limit.saturating_sub(cx.now.awake().since(pulse.begun));
        if rest.is_zero() {
            self.end(cx, EndReason::TooLong);
        } else {
            cx.arm(TimerKey::RunLimit(claim), rest);
        }
    }
}
