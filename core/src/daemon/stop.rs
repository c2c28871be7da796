//! A stop, step by step: claims end and are waited for, runs are ended and reported, then the process goes. The runtimes are taken off line
//! early, so that the server gives them nothing more.

use super::State;
use super::route::split;
use crate::claim::Claims;
use crate::effect::{ApiCall, Effects, ExitCause, Fact, StopPhase};
use crate::env::Cx;
use crate::id::RuntimeId;
use crate::op::ApiOp;
use crate::timer::TimerKey;
use std::time::Duration;

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
        let mut ended = Vec::new();
        for (claim, task) in tasks.iter_mut() {
            task.stop(&mut cx);
            ended.push(*claim);
        }
        let within = cx.timing().stop_claims;
        cx.arm(TimerKey::Stop, within);
        self.deregister(hosted, out);
        for claim in ended {
            self.reap(claim, out);
        }
    }

    /// Takes runtimes off line, as part of a stop.
    pub(super) fn deregister(&mut self, runtimes: Vec<RuntimeId>, out: &mut Effects) {
        if !runtimes.is_empty() {
            split!(self, out => cx, shutdown);
            shutdown.deregistering += 1;
            let within = cx.timing().stop_deregister;
            cx.api(ApiOp::Deregister { last: true }, ApiCall::Deregister { runtimes }, within);
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
            StopPhase::Claims if !shutdown.claims_cancelled => {
                shutdown.claims_cancelled = true;
                Claims::cancel_open(&mut cx);
                let within = cx.timing().stop_tasks;
                cx.arm(TimerKey::Stop, within);
            }
            StopPhase::Claims | StopPhase::Tasks | StopPhase::Deregistering => self.leave(out),
            StopPhase::Serving | StopPhase::Exited => {}
        }
    }

    /// Goes on as far as the state allows.
    pub(super) fn stop_on(&mut self, out: &mut Effects) {
        if self.shutdown.phase() == StopPhase::Claims && self.claims.on_their_way() == 0 {
            let within = self.cfg.timers.stop_tasks;
            self.enter_stop(StopPhase::Tasks, within, out);
        }
        if self.shutdown.phase() == StopPhase::Tasks && self.tasks.is_empty() {
            let within = self.cfg.timers.stop_deregister;
            self.enter_stop(StopPhase::Deregistering, within, out);
        }
        if self.shutdown.phase() == StopPhase::Deregistering
            && self.shutdown.deregistering == 0
            && !self.runtimes.is_registering()
        {
            self.leave(out);
        }
    }

    /// Goes on to the next thing to wait for, and for how long: no longer than a hurried stop has left.
    fn enter_stop(&mut self, phase: StopPhase, within: Duration, out: &mut Effects) {
        split!(self, out => cx, shutdown);
        if shutdown.advance(phase) {
            cx.fact(Fact::Stopping { phase });
        }
        if !shutdown.forced {
            cx.arm(TimerKey::Stop, within);
        }
    }

    fn leave(&mut self, out: &mut Effects) {
        self.enter_stop(StopPhase::Exited, Duration::ZERO, out);
        self.exit(ExitCause::Stopped);
    }
}
