//! The machines around tasks: the set of runtimes, heartbeats, the connection, and the late outbox.

use super::{Machine, holds};
use crate::beats::Beats;
use crate::effect::ReportKind;
use crate::env::{Cx, Env};
use crate::error::{ApiError, FsError};
use crate::event::{ApiReply, ClaimKey, FsReply, Probed, Registered, Standing};
use crate::id::{ConnGen, Generation, OpId, Provider, RuntimeId, TaskId, WorkspaceId};
use crate::late::{Entry, Late};
use crate::link::{Link, Named};
use crate::op::{ApiOp, OpKind};
use crate::runtimes::{Ours, Runtimes};
use crate::script::Choose;
use crate::timer::TimerKey;
use serde::{Deserialize, Serialize};

type Reply = Result<ApiReply, ApiError>;

fn runtime(choose: &mut dyn Choose) -> RuntimeId {
    RuntimeId::new(["r-a", "r-b", "r-c"][choose.below(3) as usize])
}

/// A set of runtimes that serves one workspace, and what it leaves undone.
pub(crate) fn serving(cx: &mut Cx<'_>) -> Runtimes {
    let mut runtimes = Runtimes::default();
    runtimes.start(cx);
    loop {
        let Some((op, probe)) = cx.env.ops.iter().next().map(|(op, kind)| (op, *kind == OpKind::Probe))
        else {
            break;
        };
        cx.disarm(&TimerKey::Op(op));
        if probe {
            cx.env.ops.close_fs(op);
            Machine::looked(&mut runtimes, cx, op, true);
        } else if let Some(kind) = cx.env.ops.close_api(op) {
            let reply = Runtimes::well(&kind);
            runtimes.answered(cx, op, kind, Ok(reply));
        }
    }
    for key in [TimerKey::Sync, TimerKey::Renew, TimerKey::Discover, TimerKey::Versions] {
        cx.disarm(&key);
    }
    runtimes
}

impl Machine for Runtimes {
    fn start(cx: &mut Cx<'_>) -> Self {
        let mut runtimes = Self::default();
        Self::start(&mut runtimes, cx);
        runtimes
    }

    fn poke(&mut self, cx: &mut Cx<'_>, choose: &mut dyn Choose) {
        match choose.below(3) {
            0 => self.sync(cx),
            1 => self.profiles_changed(cx, &WorkspaceId::new("w-1")),
            _ => {
                self.gone(cx, &runtime(choose));
            }
        }
    }

    fn due(&mut self, cx: &mut Cx<'_>, timer: &TimerKey) {
        match timer {
            TimerKey::Sync => self.sync(cx),
            TimerKey::Renew => self.renew(cx),
            TimerKey::Register(workspace) => {
                self.register_due(cx, workspace);
            }
            TimerKey::Profiles(workspace) => {
                self.profiles_due(cx, workspace);
            }
            TimerKey::Discover => self.discover_due(cx),
            TimerKey::Versions => self.versions_due(cx),
            TimerKey::Orphans(runtime) => {
                self.orphans_due(cx, runtime, Ours::Nothing);
            }
            other => panic!("{other:?} is not of this machine"),
        }
    }

    fn answered(&mut self, cx: &mut Cx<'_>, op: OpId, kind: ApiOp, r: Reply) {
        match kind {
            ApiOp::Renew => {}
            ApiOp::Workspaces => {
                self.listed(cx, r);
            }
            ApiOp::Register(workspace) if self.is_closed() => {
                self.registered_too_late(op, &workspace, &r);
            }
            ApiOp::Register(workspace) => {
                self.registered(cx, (op, &workspace), r, &|_| Ours::Nothing);
            }
            ApiOp::Orphans(runtime) => {
                let passing = r.err().filter(|error| error.is_passing());
                self.orphans_done(cx, (op, &runtime), passing, Ours::Nothing);
            }
            ApiOp::Deregister { .. } => {
                self.deregistered(cx, op);
            }
            ApiOp::Profiles(workspace) => {
                self.profiles_told(cx, (op, &workspace), &r);
            }
            other => panic!("{other:?} is not of this machine"),
        }
    }

    fn looked(&mut self, cx: &mut Cx<'_>, op: OpId, well: bool) {
        let works = |name| Probed { provider: Provider::new(name), standing: Standing::Works { version: 1 } };
        let agents = ["claude", "codex"].map(works).into();
        let r = if well { Ok(FsReply::Probed { agents }) } else { Err(FsError::TimedOut) };
        if Self::looked(self, cx, op, &r) {
            self.after_look(cx, well);
        }
    }

    fn close(&mut self, cx: &mut Cx<'_>) -> bool {
        Self::close(self, cx);
        true
    }

    /// The list, the credential and two kinds of looks have periods of their own.
    fn is_at_rest(&self, env: &Env) -> bool {
        self.is_ready() && self.len() == 3 && env.timers.len() == 4
    }

    fn well(kind: &ApiOp) -> ApiReply {
        match kind {
            ApiOp::Workspaces => ApiReply::Workspaces { list: vec![WorkspaceId::new("w-1")], legacy: false },
            ApiOp::Register(_) => {
                let of = |(id, provider): (&str, &str)| Registered {
                    id: RuntimeId::new(id),
                    provider: Provider::new(provider),
                    profile: None,
                };
                let named = [("r-a", "claude"), ("r-b", "codex"), ("r-c", "claude")];
                ApiReply::Registered { runtimes: named.into_iter().map(of).collect() }
            }
            ApiOp::Profiles(_) => ApiReply::Profiles { signature: 7, count: 0 },
            _ => ApiReply::Done,
        }
    }
}

impl Machine for Beats {
    fn start(cx: &mut Cx<'_>) -> Self {
        let mut beats = Self::default();
        for id in ["r-a", "r-b", "r-c"] {
            beats.add(cx, &RuntimeId::new(id));
        }
        beats
    }

    fn poke(&mut self, cx: &mut Cx<'_>, choose: &mut dyn Choose) {
        match choose.below(12) {
            0..3 => self.link_down(),
            3..6 => self.hint(cx, &runtime(choose)),
            6 => self.ask_all(cx),
            7 => self.all_now(cx),
            8..11 => self.acked(cx, &runtime(choose)),
            _ => self.remove(cx, &runtime(choose)),
        }
    }

    fn due(&mut self, cx: &mut Cx<'_>, timer: &TimerKey) {
        let TimerKey::Beat(runtime) = timer else { panic!("{timer:?} is not of this machine") };
        Self::due(self, cx, runtime);
    }

    fn answered(&mut self, cx: &mut Cx<'_>, op: OpId, kind: ApiOp, r: Reply) {
        let ApiOp::Beat(runtime) = kind else { panic!("{kind:?} is not of this machine") };
        if self.beaten(cx, &runtime, op, r).gone {
            self.remove(cx, &runtime);
        }
    }

    fn close(&mut self, cx: &mut Cx<'_>) -> bool {
        Self::close(self, cx);
        true
    }

    /// Each beats on.
    fn is_at_rest(&self, env: &Env) -> bool {
        env.timers.len() <= 3
    }

    fn well(_: &ApiOp) -> ApiReply {
        ApiReply::Beaten { gone: false, actions: Vec::new() }
    }
}

/// The connection, and the state of the set that it is for.
#[derive(Hash, Serialize, Deserialize)]
struct Wire {
    link: Link,
    set: Generation,
}

impl Wire {
    fn named(&self) -> Named {
        Named { set: self.set, without: Vec::new() }
    }
}

impl Machine for Wire {
    fn start(cx: &mut Cx<'_>) -> Self {
        let mut wire = Self { link: Link::default(), set: Generation(1) };
        let named = wire.named();
        wire.link.dial(cx, named);
        wire
    }

    fn poke(&mut self, cx: &mut Cx<'_>, choose: &mut dyn Choose) {
        let lives = (0..1_000).any(|n| self.link.is_current(ConnGen(n)));
        match choose.below(7) {
            0 => {
                self.set.0 += 1;
                self.link.set_changed(cx, self.named());
            }
            1 | 2 if lives => self.link.down(cx),
            3 if lives => {
                self.link.refused(cx, self.named());
            }
            4 => self.link.woke(cx, self.named()),
            _ if lives => {
                self.link.up(cx, self.named());
            }
            _ => {}
        }
        if self.link.is_asking() && choose.one_in(2) {
            self.link.told_why(cx, self.named());
        }
    }

    fn due(&mut self, cx: &mut Cx<'_>, timer: &TimerKey) {
        match timer {
            TimerKey::Link => self.link.dial(cx, self.named()),
            TimerKey::Reconcile => {
                self.link.reconcile(cx);
            }
            other => panic!("{other:?}: not of this machine"),
        }
    }

    fn answered(&mut self, _: &mut Cx<'_>, _: OpId, kind: ApiOp, _: Reply) {
        panic!("{kind:?}: this machine asks nothing");
    }

    fn close(&mut self, cx: &mut Cx<'_>) -> bool {
        self.link.close(cx);
        true
    }

    fn is_at_rest(&self, env: &Env) -> bool {
        env.timers.len() == 0
    }
}

/// The late outbox, and how many entries it ever got.
#[derive(Hash, Serialize, Deserialize)]
struct Outbox {
    late: Late,
    added: u64,
}

impl Machine for Outbox {
    fn start(_: &mut Cx<'_>) -> Self {
        Self { late: Late::default(), added: 0 }
    }

    fn poke(&mut self, cx: &mut Cx<'_>, choose: &mut dyn Choose) {
        if choose.one_in(2) {
            self.late.nudge(cx);
            return;
        }
        self.added += 1;
        let report = choose.one_in(2).then_some(ReportKind::Complete);
        let entry = Entry {
            claim: ClaimKey(self.added),
            task: TaskId::new(format!("t-{}", self.added)),
            runtime: runtime(choose),
            report,
            sent: 1,
            have: 1 + choose.below(3) + u32::from(report.is_none()),
            ask: choose.one_in(3),
            usage: choose.one_in(3),
            tries: 6,
            spent: false,
        };
        self.late.add(cx, entry);
    }

    fn due(&mut self, cx: &mut Cx<'_>, timer: &TimerKey) {
        assert_eq!(*timer, TimerKey::Late);
        self.late.send(cx);
    }

    fn answered(&mut self, cx: &mut Cx<'_>, op: OpId, _: ApiOp, r: Reply) {
        self.late.replied(cx, op, r);
    }

    fn is_at_rest(&self, env: &Env) -> bool {
        self.late.is_empty() && env.timers.len() == 0
    }
}

#[test]
fn the_set_of_runtimes_keeps_the_laws() {
    holds::<Runtimes>();
}

#[test]
fn heartbeats_keep_the_laws() {
    holds::<Beats>();
}

#[test]
fn the_connection_keeps_the_laws() {
    holds::<Wire>();
}

#[test]
fn the_late_outbox_keeps_the_laws() {
    holds::<Outbox>();
}
