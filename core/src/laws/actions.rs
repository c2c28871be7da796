//! What the server asks for in its answers to heartbeats.

use super::{Machine, holds};
use crate::actions::Actions;
use crate::env::{Cx, Env};
use crate::error::ApiError;
use crate::event::{Action, ActionKind, ApiReply};
use crate::id::{ActionId, OpId, RuntimeId};
use crate::op::{ApiOp, DiskWork};
use crate::script::Choose;
use crate::timer::TimerKey;

impl Machine for Actions {
    fn start(_: &mut Cx<'_>) -> Self {
        Self::default()
    }

    fn poke(&mut self, cx: &mut Cx<'_>, choose: &mut dyn Choose) {
        let some = |_| Action {
            id: ActionId::new(format!("a-{}", choose.below(40))),
            kind: [ActionKind::Models, ActionKind::ImportSkill][choose.below(2) as usize],
        };
        let asked: Vec<Action> = (0..12).map(some).collect();
        let hosted = !choose.one_in(5);
        self.asked(cx, &RuntimeId::new("r-a"), hosted, &asked);
    }

    fn due(&mut self, cx: &mut Cx<'_>, timer: &TimerKey) {
        let TimerKey::ActionRetry(action) = timer else { panic!("{timer:?} is not of this machine") };
        Self::due(self, cx, action);
    }

    fn answered(&mut self, cx: &mut Cx<'_>, op: OpId, kind: ApiOp, r: Result<ApiReply, ApiError>) {
        let ApiOp::Action(action) = kind else { panic!("{kind:?} is not of this machine") };
        self.reported(cx, op, &action, &r);
    }

    fn worked(&mut self, cx: &mut Cx<'_>, op: OpId, work: DiskWork) {
        let DiskWork::Act(action) = work else { panic!("{work:?} is not of this machine") };
        self.done(cx, op, &action);
    }

    fn close(&mut self, cx: &mut Cx<'_>) -> bool {
        Self::close(self, cx);
        true
    }

    fn is_at_rest(&self, env: &Env) -> bool {
        self.len() == 0 && env.timers.len() == 0
    }
}

#[test]
fn what_beats_ask_for_keeps_the_laws() {
    holds::<Actions>();
}
