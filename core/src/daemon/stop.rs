//! A stop, step by step: claims end and are waited for, runs are ended and reported, then the process goes. The runtimes are taken off line
//! early, so that the server gives them nothing more.

use super::State;
use super::route::split;
use crate::claim::Claims;
use crate::effect::{ApiCall, Effects, ExitCause, Fact, StopPhase};
use crate::env::Cx;
use crate::op::ApiOp;
use crate::timer::TimerKey;

impl State {
    /// Somebody wants the daemon to end.
    pub(super) fn stop(&mut self, out: &mut Effects) {
        if !self.shutdown.is_serving() {
            if !self.shutdown.forced && self.shutdown.phase() < StopPhase::Exited {
                self.shutdown.forced = true;
                split!(self, out => cx);
                let within = cx.timing().stop_forced;
                cx.arm(TimerKey::Stop, within);
            }
            return;
        }
        split!(self, out => cx, runtimes, claims, beats, link, tasks, shutdown);
        shutdown.advance(StopPhase::Claims);
        cx.fact(Fact::Stopping { phase: StopPhase::Claims });
        claims.close(&mut cx);
        let hosted = runtimes.close(&mut cx);
        beats.close(&mut cx);
        link.close(&mut cx);
        if !hosted.is_empty() {
            shutdown.deregistering = true;
            let within = cx.timing().stop_deregister;
            cx.api(ApiOp::Deregister { last: true }, ApiCall::Deregister { runtimes: hosted }, within);
        }
        let mut ended = Vec::new();
        for (claim, task) in tasks.iter_mut() {
            task.stop(&mut cx);
            ended.push(*claim);
        }
        let within = cx.timing().stop_claims;
        cx.arm(TimerKey::Stop, within);
        for claim in ended {
            self.reap(claim, out);
        }
    }

    /// The stop waited long enough for what it waits for.
    pub(super) fn stop_due(&mut self, out: &mut Effects) {
        if self.shutdown.forced {
            self.leave(out);
            return;
        }
        split!(self, out => cx, shutdown);
        match shutdown.phase() {
            // The claims are ended now; what one of them brings all the same is still handed back.
            StopPhase::Claims => Claims::cancel_open(&mut cx),
            StopPhase::Tasks | StopPhase::Deregistering => self.leave(out),
            StopPhase::Serving | StopPhase::Exited => {}
        }
    }

    /// Goes on as far as the state allows.
    pub(super) fn stop_on(&mut self, out: &mut Effects) {
        if self.shutdown.phase() == StopPhase::Claims && self.claims.on_their_way() == 0 {
            self.enter_stop(StopPhase::Tasks, out);
            split!(self, out => cx);
            let within = cx.timing().stop_tasks;
            cx.arm(TimerKey::Stop, within);
        }
        if self.shutdown.phase() == StopPhase::Tasks && self.tasks.is_empty() {
            self.enter_stop(StopPhase::Deregistering, out);
            split!(self, out => cx);
            let within = cx.timing().stop_deregister;
            cx.arm(TimerKey::Stop, within);
        }
        if self.shutdown.phase() == StopPhase::Deregistering && !self.shutdown.deregistering {
            self.leave(out);
        }
    }

    fn enter_stop(&mut self, phase: StopPhase, out: &mut Effects) {
        split!(self, out => cx, shutdown);
        if shutdown.advance(phase) {
            cx.fact(Fact::Stopping { phase });
        }
    }

    fn leave(&mut self, out: &mut Effects) {
        self.enter_stop(StopPhase::Exited, out);
        split!(self, out => cx);
        cx.disarm(&TimerKey::Stop);
        self.exit(ExitCause::Stopped, out);
    }
}
