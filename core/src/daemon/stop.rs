//! A stop, step by step. Claims end first and are waited for. Then, by the kind of stop: runs are ended and reported (`Now`, which takes the
//! runtimes off line early, so that the server gives them nothing more), or end by themselves while beats go on (`Drain`, which takes
//! them off line last), or go on without this process (`Restart`, which takes nothing off line). A second request hurries, a third one
//! ends the process.

use super::State;
use super::route::split;
use crate::claim::Claims;
use crate::effect::{ApiCall, Effects, ExitCause, Fact, StopPhase};
use crate::env::Cx;
use crate::event::StopKind;
use crate::id::RuntimeId;
use crate::op::ApiOp;
use crate::timer::TimerKey;
use std::time::Duration;

impl State {
    /// Somebody wants the daemon to end.
    pub(super) fn stop(&mut self, how: StopKind, out: &mut Effects) {
        match self.shutdown.ask() {
            1 => self.begin_stop(how, out),
            2 => self.force(out),
            _ => self.leave(out),
        }
    }

    fn begin_stop(&mut self, how: StopKind, out: &mut Effects) {
        split!(self, out => cx, runtimes, claims, gc, shutdown);
        shutdown.begin(how);
        shutdown.advance(StopPhase::Claims);
        cx.fact(Fact::Stopping { phase: StopPhase::Claims });
        claims.close(&mut cx);
        gc.close(&mut cx);
        match how {
            StopKind::Now => self.end_runs(out),
            StopKind::Drain { within_ms } => {
                runtimes.close(&mut cx);
                shutdown.until = within_ms.map(|ms| cx.now.mono.after(Duration::from_millis(ms)));
            }
            StopKind::Restart => {
                runtimes.rest(&mut cx);
                self.leave_runs(out);
            }
        }
        self.wait_for(Some(self.cfg.timers.stop_claims), out);
    }

    /// Ends what runs, and takes the runtimes off line: the beginning of a plain stop, and the end of a drain that took too long.
    fn end_runs(&mut self, out: &mut Effects) {
        split!(self, out => cx, beats, link, actions, tasks, late, shutdown);
        shutdown.begin(StopKind::Now);
        shutdown.until = None;
        shutdown.last_tries = true;
        beats.close(&mut cx);
        link.close(&mut cx);
        actions.close(&mut cx);
        late.hurry(&mut cx);
        let mut ended = Vec::with_capacity(tasks.len());
        for (claim, task) in tasks.iter_mut() {
            task.stop(&mut cx);
            ended.push(*claim);
        }
        self.deregister_all(out);
        for claim in ended {
            self.reap(claim, out);
        }
    }

    /// Ends the tasks that have no run yet, and lets go of those that have one.
    fn leave_runs(&mut self, out: &mut Effects) {
        split!(self, out => cx, actions, tasks, late, shutdown);
        actions.close(&mut cx);
        shutdown.last_tries = true;
        late.hurry(&mut cx);
        let mut ended = Vec::new();
        for (claim, task) in tasks.iter_mut() {
            if task.is_running() {
                task.launch_no_more();
                shutdown.left.insert(*claim);
            } else {
                task.stop(&mut cx);
                ended.push(*claim);
            }
        }
        for claim in ended {
            self.reap(claim, out);
        }
    }

    /// The second request: nothing is waited for any more, but for a second to get the last things said. Runs are killed, except for those
    /// that a restart leaves alone. It never makes the stop longer: a last wait that is nearly over stays so.
    fn force(&mut self, out: &mut Effects) {
        let mut last = self.is_last_wait();
        if self.shutdown.is_draining() && self.shutdown.phase() < StopPhase::Deregistering {
            self.end_runs(out);
            last = false;
        }
        split!(self, out => cx, tasks, shutdown);
        if !shutdown.is_restart() {
            for task in tasks.values_mut() {
                task.kill(&mut cx);
            }
        }
        let second = cx.now.mono.after(cx.timing().stop_forced);
        let present = cx.env.timers.at(&TimerKey::Stop).filter(|_| last);
        cx.arm_at(TimerKey::Stop, present.map_or(second, |at| at.min(second)));
    }

    /// Whether the process ends when the present wait is over, if nothing that is waited for ends before.
    fn is_last_wait(&self) -> bool {
        self.shutdown.phase() > StopPhase::Claims || self.shutdown.claims_cancelled
    }

    /// Takes every runtime off line, once.
    fn deregister_all(&mut self, out: &mut Effects) {
        split!(self, out => cx, runtimes, shutdown);
        let mut hosted = runtimes.close(&mut cx);
        hosted.append(&mut shutdown.also);
        hosted.sort_unstable();
        hosted.dedup();
        self.deregister(hosted, out);
    }

    /// A registration that was on its way when the stop began put these on line. Until a drain is over they stay: some may be
    /// the runtimes of tasks that still run.
    pub(super) fn registered_too_late(&mut self, hosted: Vec<RuntimeId>, out: &mut Effects) {
        if self.shutdown.is_restart() {
            // The next process has the same runtimes.
        } else if self.shutdown.is_draining() && self.shutdown.phase() < StopPhase::Deregistering {
            self.shutdown.also.extend(hosted);
        } else {
            self.deregister(hosted, out);
        }
    }

    /// Takes runtimes off line, as part of a stop.
    fn deregister(&mut self, runtimes: Vec<RuntimeId>, out: &mut Effects) {
        if !runtimes.is_empty() {
            split!(self, out => cx, shutdown);
            shutdown.deregistering += 1;
            let within = cx.timing().stop_deregister;
            cx.api(ApiOp::Deregister { last: true }, ApiCall::Deregister { runtimes, broken: None }, within);
        }
    }

    /// The stop waited long enough for what it waits for.
    pub(super) fn stop_due(&mut self, out: &mut Effects) {
        if self.shutdown.is_forced() {
            self.leave(out);
            return;
        }
        let (phase, timing) = (self.shutdown.phase(), &self.cfg.timers);
        let (claims, tasks) = (timing.stop_claims, timing.stop_tasks);
        if self.shutdown.until.is_some_and(|at| at <= self.now.mono) {
            let first = phase == StopPhase::Claims && !self.shutdown.claims_cancelled;
            self.end_runs(out);
            self.wait_for(Some(if first { claims } else { tasks }), out);
            return;
        }
        match phase {
            // The claims are ended now; what one of them brings all the same is still handed back. A restart only waits no longer.
            StopPhase::Claims if self.shutdown.is_restart() => self.shutdown.claims_given_up = true,
            StopPhase::Claims if !self.shutdown.claims_cancelled => {
                self.shutdown.claims_cancelled = true;
                split!(self, out => cx);
                Claims::cancel_open(&mut cx);
                self.wait_for(Some(tasks), out);
            }
            // A claim that never ends is no reason to end what runs.
            StopPhase::Claims if self.shutdown.is_draining() => self.shutdown.claims_given_up = true,
            StopPhase::Claims | StopPhase::Tasks | StopPhase::Deregistering => self.leave(out),
            StopPhase::Serving | StopPhase::Exited => {}
        }
    }

    /// Goes on as far as the state allows.
    pub(super) fn stop_on(&mut self, out: &mut Effects) {
        let tasks = self.cfg.timers.stop_tasks;
        if self.shutdown.phase() == StopPhase::Claims
            && (self.claims.on_their_way() == 0 || self.shutdown.claims_given_up)
        {
            self.enter_stop(StopPhase::Tasks, (!self.shutdown.is_draining()).then_some(tasks), out);
        }
        if self.shutdown.phase() == StopPhase::Tasks && self.tasks.len() == self.shutdown.left.len() {
            if !self.shutdown.last_tries {
                // The drain is over: what is left are reports that the server would not take before, and a directory that is being
                // freed. They do not make it longer than it was to be: then the runtimes go off line.
                self.shutdown.last_tries = true;
                split!(self, out => cx, late);
                late.hurry(&mut cx);
                self.wait_for(Some(tasks), out);
            }
            if self.late.is_spent() && !self.gc.is_removing() {
                self.runs_are_over(out);
            }
        }
        if self.shutdown.phase() == StopPhase::Deregistering
            && self.shutdown.deregistering == 0
            && !self.runtimes.is_registering()
        {
            self.leave(out);
        }
    }

    /// No task is waited for any more.
    fn runs_are_over(&mut self, out: &mut Effects) {
        if self.shutdown.is_restart() {
            self.leave(out);
            return;
        }
        let draining = self.shutdown.is_draining();
        self.enter_stop(StopPhase::Deregistering, Some(self.cfg.timers.stop_deregister), out);
        if draining {
            split!(self, out => cx, beats, link, actions);
            beats.close(&mut cx);
            link.close(&mut cx);
            actions.close(&mut cx);
            self.deregister_all(out);
        }
    }

    /// Goes on to the next thing to wait for, and for how long.
    fn enter_stop(&mut self, phase: StopPhase, within: Option<Duration>, out: &mut Effects) {
        split!(self, out => cx, shutdown);
        if shutdown.advance(phase) {
            cx.fact(Fact::Stopping { phase });
        }
        self.wait_for(within, out);
    }

    /// Bounds the present wait: by `within`, by what a drain has left, and never anew once the stop is hurried.
    fn wait_for(&mut self, within: Option<Duration>, out: &mut Effects) {
        split!(self, out => cx, shutdown);
        if shutdown.is_forced() {
            return;
        }
        let wait = within.map(|within| cx.now.mono.after(within));
        match [wait, shutdown.until].into_iter().flatten().min() {
            Some(at) => cx.arm_at(TimerKey::Stop, at),
            None => cx.disarm(&TimerKey::Stop),
        }
    }

    fn leave(&mut self, out: &mut Effects) {
        let cause = if self.shutdown.is_restart() { ExitCause::Restarting } else { ExitCause::Stopped };
        self.enter_stop(StopPhase::Exited, Some(Duration::ZERO), out);
        self.exit(cause);
    }
}
