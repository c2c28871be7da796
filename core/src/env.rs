//! What every machine of the core may use: time, settings, the table of requests, the deadlines, chance, and the way out.

use crate::access::{self, Access};
use crate::config::{Config, Timing};
use crate::effect::{ApiCall, Effect, Effects, Fact, FsCall, KillStep, LaunchCall, PhaseName, WsCmd};
use crate::error::ApiError;
use crate::event::ClaimKey;
use crate::id::{ActionId, ConnGen, OpId};
use crate::op::{ApiOp, FsOp, GcOp, OpKind, Ops};
use crate::rng::Rng;
use crate::time::{Instant, Now};
use crate::timer::{TimerKey, Timers};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The shared part of the state.
#[derive(Debug, Hash, Serialize, Deserialize)]
pub(crate) struct Env {
    pub(crate) ops: Ops,
    pub(crate) timers: Timers,
    pub(crate) rng: Rng,
    /// Whether the server takes the credential.
    pub(crate) access: Access,
}

/// One step's view of it.
pub(crate) struct Cx<'a> {
    pub(crate) now: Now,
    pub(crate) cfg: &'a Config,
    pub(crate) env: &'a mut Env,
    pub(crate) out: &'a mut Effects,
}

impl Cx<'_> {
    pub(crate) fn timing(&self) -> &Timing {
        &self.cfg.timers
    }

    /// Whether the server refuses the credential: then nothing new is begun, and what is due waits until that has changed.
    pub(crate) const fn is_barred(&self) -> bool {
        self.env.access.is_lost()
    }

    /// How long to wait after this failure, if it would otherwise be `wait`: what is refused because of the credential is not asked for more
    /// often than whether that is still so.
    pub(crate) fn patience(&mut self, wait: Duration, error: ApiError) -> Duration {
        // What was refused to the credential before this one is tried with the new one soon.
        if error.is_about_credential() && self.is_barred() { wait.max(access::later(self)) } else { wait }
    }

    /// Asks the server; the request is cancelled after `within`.
    pub(crate) fn api(&mut self, kind: ApiOp, call: ApiCall, within: Duration) -> OpId {
        let op = self.env.ops.open(OpKind::Api(kind));
        let deadline = self.now.mono.after(within);
        self.env.timers.arm(TimerKey::Op(op), deadline);
        self.out.push(Effect::Api { op, call, deadline });
        op
    }

    pub(crate) fn fs(&mut self, claim: ClaimKey, kind: FsOp, call: FsCall) -> OpId {
        let op = self.env.ops.open(OpKind::Fs(claim, kind));
        self.out.push(Effect::Fs { op, call });
        op
    }

    /// Lets the collector work on the disk; it is told to end after the time for that.
    pub(crate) fn gc(&mut self, kind: GcOp, call: FsCall) -> OpId {
        let op = self.env.ops.open(OpKind::Gc(kind));
        let within = self.timing().gc_work;
        self.arm(TimerKey::Op(op), within);
        self.out.push(Effect::Fs { op, call });
        op
    }

    /// Looks at the agent CLIs; the look is told to end after the time for it.
    pub(crate) fn probe(&mut self, call: FsCall) -> OpId {
        let op = self.env.ops.open(OpKind::Probe);
        let within = self.timing().probe;
        self.arm(TimerKey::Op(op), within);
        self.out.push(Effect::Fs { op, call });
        op
    }

    /// Does what the server asks for; it is told to end after the time for that.
    pub(crate) fn act(&mut self, action: ActionId, call: FsCall) -> OpId {
        let op = self.env.ops.open(OpKind::Act(action));
        let within = self.timing().action;
        self.arm(TimerKey::Op(op), within);
        self.out.push(Effect::Fs { op, call });
        op
    }

    pub(crate) fn run(&mut self, claim: ClaimKey, call: LaunchCall) -> OpId {
        let op = self.env.ops.open(OpKind::Run(claim));
        self.out.push(Effect::Run { op, call });
        op
    }

    pub(crate) fn kill(&mut self, op: OpId, step: KillStep) {
        self.out.push(Effect::Kill { op, step });
    }

    pub(crate) fn ws(&mut self, conn: ConnGen, cmd: WsCmd) {
        self.out.push(Effect::Ws { conn, cmd });
    }

    /// Asks for an early end, once: the completion still comes, and no deadline asks again.
    pub(crate) fn cancel(&mut self, op: OpId) {
        if self.env.ops.cancel(op) {
            self.env.timers.disarm(&TimerKey::Op(op));
            self.out.push(Effect::Cancel { op });
        }
    }

    pub(crate) fn fact(&mut self, fact: Fact) {
        self.out.push(Effect::Fact { fact });
    }

    pub(crate) fn phase(&mut self, claim: ClaimKey, phase: PhaseName) {
        self.fact(Fact::Phase { claim, phase });
    }

    pub(crate) fn emit(&mut self, effect: Effect) {
        self.out.push(effect);
    }

    pub(crate) fn arm(&mut self, key: TimerKey, within: Duration) {
        self.env.timers.arm(key, self.now.mono.after(within));
    }

    pub(crate) fn arm_at(&mut self, key: TimerKey, at: Instant) {
        self.env.timers.arm(key, at);
    }

    pub(crate) fn disarm(&mut self, key: &TimerKey) {
        self.env.timers.disarm(key);
    }
}
