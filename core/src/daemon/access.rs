//! What holds for all machines at once: the server takes the credential or does not, the machine has slept, many tasks are to be looked at.

use super::State;
use super::route::split;
use crate::access::{self, Turn};
use crate::effect::{Effects, Fact};
use crate::env::Cx;
use crate::error::{ApiError, Refusal};
use crate::event::{ApiReply, ClaimKey, WsEvent};
use crate::id::OpId;
use crate::link::Named;
use crate::op::ApiOp;
use crate::timer::TimerKey;

/// So many looks at statuses are on their way at once for hints and the like; the other tasks wait in line.
const MOST_LOOKS: usize = 64;

impl State {
    /// What a control connection is to name.
    pub(super) fn named(&self) -> Named {
        Named { set: self.runtimes.generation(), without: self.beats.left_out() }
    }

    /// What the end of a request says of the credential. A claim that is forbidden is a matter of that claim; and a renewal is refused for
    /// credentials that are good for everything else, so it is only a reason to ask.
    pub(super) fn heard(
        &mut self,
        op: OpId,
        kind: &ApiOp,
        r: &Result<ApiReply, ApiError>,
        out: &mut Effects,
    ) {
        let refusal = r.as_ref().err().copied().and_then(ApiError::refusal);
        let about = refusal.is_some_and(Refusal::is_about_credential);
        let claim = matches!(kind, ApiOp::Claim { .. } | ApiOp::ClaimOver { .. } | ApiOp::ClaimOne { .. });
        if !self.env.access.counts(op) || (claim && refusal == Some(Refusal::Forbidden)) {
            return;
        }
        if r.is_ok() {
            if self.env.access.taken(self.now.mono) {
                self.access_back(matches!(kind, ApiOp::Workspaces), out);
            }
        } else if about && *kind == ApiOp::Renew {
            if self.runtimes.has_list() {
                split!(self, out => cx, runtimes);
                runtimes.sync(&mut cx);
            }
        } else if about {
            self.refused(out);
        }
    }

    /// What the control connection says of the credential.
    pub(super) fn heard_over(&mut self, ws: &WsEvent, out: &mut Effects) {
        match ws {
            WsEvent::Refused { kind, .. }
                if kind.is_about_credential() && self.link.epoch() == self.env.access.epoch() =>
            {
                self.refused(out);
            }
            WsEvent::Ack { gone: false, .. } => {
                let period = self.cfg.timers.access;
                if self.env.access.acked(self.now.mono, period) {
                    self.access_back(false, out);
                }
            }
            _ => {}
        }
    }

    /// Before the first list the start itself says what a refusal means; and a stop goes on as it is.
    fn refused(&mut self, out: &mut Effects) {
        if !self.env.access.is_lost() && self.runtimes.has_list() && self.shutdown.is_serving() {
            self.turn(Turn::Lost);
            split!(self, out => cx);
            cx.fact(Fact::AccessLost);
            access::try_later(&mut cx, TimerKey::Access);
        }
    }

    fn turn(&mut self, turn: Turn) {
        let (last, period) = (self.env.ops.last(), self.cfg.timers.access);
        self.env.access.turn(self.now.mono, turn, last, period);
    }

    /// Another credential is in use: what became of the one before says nothing of it.
    pub(super) fn another_credential(&mut self, out: &mut Effects) {
        if self.env.access.is_lost() {
            self.access_back(false, out);
        } else {
            self.turn(Turn::Back);
        }
    }

    /// The server takes the credential from now on. `listed` says that the list is what tells it.
    fn access_back(&mut self, listed: bool, out: &mut Effects) {
        self.turn(Turn::Back);
        self.back = Some(listed);
        split!(self, out => cx);
        cx.disarm(&TimerKey::Access);
        cx.fact(Fact::AccessBack);
    }

    /// Everything that waited for the credential is done at once: after the event that says so has had its effect.
    pub(super) fn catch_up(&mut self, out: &mut Effects) {
        let Some(listed) = self.back.take() else { return };
        split!(self, out => cx, runtimes);
        let (owed, changes) = runtimes.unbarred(&mut cx, listed);
        self.changed(changes, out);
        let named = self.named();
        split!(self, out => cx, claims, beats, link, tasks, late);
        beats.all_now(&mut cx);
        claims.wake(&mut cx, None);
        link.dial_if_due(&mut cx, named);
        late.unbarred(&mut cx);
        for task in tasks.values_mut() {
            task.unbarred(&mut cx);
        }
        self.look_at_all(out);
        for runtime in owed {
            self.orphans_due(&runtime, out);
        }
    }

    /// It is time to ask whether the credential is still refused.
    pub(super) fn access_due(&mut self, out: &mut Effects) {
        split!(self, out => cx, runtimes, shutdown);
        if cx.is_barred() && shutdown.is_serving() {
            runtimes.probe(&mut cx);
            access::try_later(&mut cx, TimerKey::Access);
        }
    }

    /// The machine has slept, for so many milliseconds: to the server this daemon was gone, and what was on its way is dead.
    pub(super) fn woke(&mut self, slept: u64, out: &mut Effects) {
        let named = self.named();
        split!(self, out => cx, runtimes, claims, beats, link, tasks, late);
        cx.fact(Fact::Woke { slept });
        if link.is_up() && !cx.is_barred() {
            beats.link_down();
            claims.link_down();
        }
        link.woke(&mut cx, named);
        beats.all_now(&mut cx);
        runtimes.sync(&mut cx);
        claims.wake(&mut cx, None);
        late.woke(&mut cx);
        for task in tasks.values_mut() {
            task.renew_lease(&mut cx);
            task.server_answers(&mut cx);
        }
        self.look_at_all(out);
    }

    /// Whatever may have been missed while there was no control connection.
    pub(super) fn look_at_everything(&mut self, out: &mut Effects) {
        split!(self, out => cx, runtimes);
        runtimes.sync(&mut cx);
        runtimes.all_profiles_changed(&mut cx);
        self.look_at_all(out);
    }

    /// Looks at every task, as soon as there is room for that.
    pub(super) fn look_at_all(&mut self, out: &mut Effects) {
        let all: Vec<ClaimKey> = self.tasks.keys().copied().collect();
        self.look_at(all, out);
    }

    /// Looks at these tasks, as soon as there is room for that.
    pub(super) fn look_at(&mut self, claims: impl IntoIterator<Item = ClaimKey>, out: &mut Effects) {
        split!(self, out => cx, tasks, look_line);
        for claim in claims {
            let Some(task) = tasks.get_mut(&claim) else { continue };
            if cx.env.ops.looks() < MOST_LOOKS {
                task.look(&mut cx);
            } else if task.queue_look() {
                look_line.push_back(claim);
            }
        }
    }

    /// Gives room that came free to those in line.
    pub(super) fn look_on(&mut self, out: &mut Effects) {
        while self.env.ops.looks() < MOST_LOOKS {
            let Some(claim) = self.look_line.pop_front() else { return };
            split!(self, out => cx, tasks);
            if let Some(task) = tasks.get_mut(&claim) {
                task.look(&mut cx);
            }
        }
    }
}
