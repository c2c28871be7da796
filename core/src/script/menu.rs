//! What can happen next in a world, in full: for a search that tries it all.

use super::Input;
use super::reply::refusal;
use super::world::{Call, Link, World};
use crate::effect::{ApiCall, FsCall};
use crate::error::{ApiError, FsError};
use crate::event::{
    ApiReply, ClaimKey, Event, Offer, RunEnd, RunEvent, RunOutcome, StopKind, TaskStatus, WsEvent,
};
use crate::id::{EnvRoot, OpId, TaskId};
use crate::reason::FailReason;
use crate::time::{Instant, Now};

/// Stops of one history at most: the second one hurries the first, and a third is the same as the second.
const MOST_STOPS: u8 = 2;
/// A run says no more than so many messages.
const MOST_MESSAGES: u32 = 2;

/// One thing that can happen.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    pub(super) input: Input,
    /// Whether something goes wrong by it, or somebody interferes.
    pub(super) fault: bool,
}

/// Good answers, and bad ones.
#[derive(Default)]
struct Menu {
    good: Vec<Event>,
    bad: Vec<Event>,
}

impl World {
    /// Everything worth trying next, in a fixed order; nothing after the exit.
    pub(super) fn menu(&self, wakeup: Option<Instant>) -> Vec<Choice> {
        if self.exited {
            return Vec::new();
        }
        let mut menu = Menu::default();
        for (op, call) in &self.open {
            match call {
                Call::Api(api) => self.api_menu(*op, api, &mut menu),
                Call::Fs(fs) => self.fs_menu(*op, fs, &mut menu),
                Call::Run(_) => self.run_menu(*op, &mut menu),
            }
        }
        self.link_menu(&mut menu);
        if self.stops < MOST_STOPS {
            menu.bad.push(Event::Stop { how: StopKind::Now });
        }
        menu.bad.extend(self.last.back().cloned());
        let now = self.now;
        let choice = |fault| move |event| Choice { input: Input::Event { now, event }, fault };
        let mut all: Vec<Choice> = menu.good.into_iter().map(choice(false)).collect();
        if let Some(at) = wakeup {
            let ahead = i64::try_from(at.since(now.mono).as_millis()).unwrap_or(i64::MAX);
            let wall = crate::time::UnixMillis(now.wall.0.saturating_add(ahead));
            let input = Input::Event { now: Now::new(now.mono.max(at), wall), event: Event::Tick };
            all.push(Choice { input, fault: false });
        }
        all.extend(menu.bad.into_iter().map(choice(true)));
        // Which of the requests on their way the server has taken is drawn from this number.
        all.push(Choice { input: Input::Crash { now, fate: 0 }, fault: true });
        all
    }

    fn api_menu(&self, op: OpId, call: &ApiCall, menu: &mut Menu) {
        let answer = |r| Event::Api { op, r };
        menu.good.push(self.well(op, &Call::Api(call.clone())));
        if self.cancelled.contains(&op) {
            menu.good.push(answer(Err(ApiError::Unknown)));
            return;
        }
        if matches!(call, ApiCall::Claim(_) | ApiCall::ClaimOne(_) | ApiCall::ClaimOver { .. }) {
            menu.good.extend(
                self.one_task(call)
                    .map(|offer| answer(Ok(ApiReply::Claimed { offers: vec![offer], unusable: 0 }))),
            );
        }
        if matches!(call, ApiCall::Status { .. }) {
            let status = |status| answer(Ok(ApiReply::Task { status }));
            menu.bad.extend([TaskStatus::Cancelled, TaskStatus::Queued].map(status));
        }
        let refused = ApiError::Refused { status: 404, kind: refusal(call) };
        menu.bad.extend([ApiError::NotSent, ApiError::Unknown, refused].map(|error| answer(Err(error))));
    }

    /// A task that the server did not give out yet, for the first runtime that is asked for.
    fn one_task(&self, call: &ApiCall) -> Option<Offer> {
        let runtime = self.scope(call).nth(0)?.clone();
        let claim = ClaimKey(self.next_claim + 1);
        let task = TaskId::new(format!("t-new-{}", claim.0));
        let root = EnvRoot::new(format!("ws/{task}"));
        Some(Offer { claim, task, runtime, root, prior: None, fault: None, in_place: false })
    }

    fn fs_menu(&self, op: OpId, call: &FsCall, menu: &mut Menu) {
        menu.good.push(self.well(op, &Call::Fs(call.clone())));
        let failed = FsError::Failed { reason: FailReason::SkillBundleUnavailable };
        let error = if self.cancelled.contains(&op) { FsError::Cancelled } else { failed };
        let ended = Event::Fs { op, r: Err(error) };
        if self.cancelled.contains(&op) { menu.good.push(ended) } else { menu.bad.push(ended) }
    }

    fn run_menu(&self, op: OpId, menu: &mut Menu) {
        let model = self.runs.get(&op).copied().unwrap_or_default();
        let run = |run| Event::Run { op, run };
        let ended = |end| {
            let outcome = RunOutcome { end, have: model.have, usage: false, resume_rejected: false };
            run(RunEvent::Ended { outcome })
        };
        if self.cancelled.contains(&op) {
            menu.good.push(ended(RunEnd::Failed { reason: FailReason::Cancelled }));
        } else if !model.launched {
            menu.good.push(run(RunEvent::Launched));
        } else {
            if model.have < MOST_MESSAGES {
                menu.good.push(run(RunEvent::Progress { have: model.have + 1, session: false, tools: 0 }));
            }
            if !model.result {
                menu.good.push(run(RunEvent::Result));
            }
        }
        menu.good.push(ended(RunEnd::Completed));
        menu.bad.push(ended(RunEnd::Failed { reason: FailReason::ProcessFailure }));
    }

    fn link_menu(&self, menu: &mut Menu) {
        let conn = self.conn;
        match self.link {
            Link::Off => {}
            Link::Dialing => {
                menu.good.push(Event::Ws { conn, ws: WsEvent::Up });
                menu.bad.push(Event::Ws { conn, ws: WsEvent::Down });
            }
            Link::Up => {
                menu.bad.push(Event::Ws { conn, ws: WsEvent::Down });
                let runtime = self.runtimes.get(0).cloned();
                menu.bad.push(Event::Ws { conn, ws: WsEvent::TaskAvailable { runtime, task: None } });
            }
        }
    }
}
