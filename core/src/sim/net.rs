//! The way to the server and back, and the control connection.

use super::fault::Fault;
use super::marks::Mark;
use super::queue::{Fate, What};
use super::world::{About, Open, World};
use crate::effect::{ApiCall, WsCmd};
use crate::error::{ApiError, Refusal};
use crate::event::{ApiReply, Event, WsEvent};
use crate::id::{ConnGen, OpId};
use crate::plane::Hint;
use crate::script::{Choose, upto};
use crate::time::Instant;

/// The adapter's own limit comes so long after the core's.
const BACK_STOP: u64 = 5_000;
/// So long it takes at most to notice that a control connection is dead.
const UNNOTICED: u32 = 90_000;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum LinkState {
    #[default]
    Off,
    Dialing,
    Up,
    /// The daemon thinks that it is up.
    Dead,
}

/// The control connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Link {
    pub(super) conn: ConnGen,
    pub(super) state: LinkState,
    /// When the last frame arrives: none overtakes it.
    last: u64,
}

impl World {
    /// One way of a request.
    fn way(&mut self) -> u64 {
        if self.is_about(Fault::Reorder) && self.hit(Fault::Reorder) {
            return self.below(4_000);
        }
        let most = self.cfg.load.latency + 1;
        self.below(most)
    }

    pub(super) fn ask(&mut self, op: OpId, call: ApiCall, deadline: Instant) {
        self.open.insert(op, Open { about: about(&call), unsent: false, cancelled: false });
        self.note_report(&call);
        let (life, out) = (self.lives, self.way());
        let done = |r| What::Done { life, op, event: Event::Api { op, r: Err(r) } };
        let stop = self.life.as_ref().map_or(0, |life| life.at(deadline)) + BACK_STOP;
        if let ApiCall::ClaimOver { conn, .. } = &call
            && (self.link.conn != *conn || !matches!(self.link.state, LinkState::Up | LinkState::Dead))
        {
            self.queue.push(self.now + 1, done(ApiError::NotSent));
            return;
        }
        if let Some(error) = self.before_server() {
            self.queue.push(self.now + out, done(error));
            return;
        }
        let over_dead = matches!(call, ApiCall::ClaimOver { .. }) && self.link.state == LinkState::Dead;
        if over_dead || self.hit(Fault::Stall) || self.is_about(Fault::Outage) {
            if let Some(open) = self.open.get_mut(&op) {
                open.unsent = true;
            }
            self.queue.push(stop, done(ApiError::Unknown));
            return;
        }
        let fate = self.fate();
        if fate == Fate::Hangs {
            self.queue.push(stop, done(ApiError::Unknown));
        }
        let slow = if self.hit(Fault::SlowServer) { self.below(12_000) } else { 0 };
        self.queue.push(self.now + out + slow, What::Arrive { life, op, call, fate });
    }

    /// What ends a request before the server sees it, or before the server does anything.
    fn before_server(&mut self) -> Option<ApiError> {
        if self.is_about(Fault::Outage) && self.chance.percent(70) || self.hit(Fault::NotSent) {
            return Some(ApiError::NotSent);
        }
        if self.hit(Fault::ServerError) {
            return Some(ApiError::Server { status: if self.chance.one_in(3) { 503 } else { 500 } });
        }
        if self.hit(Fault::Throttled) {
            let list = [None, Some(0), Some(2_000), Some(20_000)];
            return Some(ApiError::Throttled { retry_after_ms: list[self.chance.below(4) as usize] });
        }
        self.hit(Fault::Unauthorized)
            .then_some(ApiError::Refused { status: 401, kind: Refusal::Unauthorized })
    }

    fn fate(&mut self) -> Fate {
        if self.hit(Fault::LostReply) {
            Fate::Lost
        } else if self.hit(Fault::StallAfter) {
            Fate::Hangs
        } else if self.hit(Fault::BadGateway) {
            Fate::Gateway
        } else if self.hit(Fault::Garbled) {
            Fate::Garbled
        } else {
            Fate::Answered
        }
    }

    /// A request reaches the server. Who sent it may be dead by now.
    pub(super) fn arrive(&mut self, life: u32, op: OpId, call: &ApiCall, fate: Fate) {
        self.note_late_post(life, op, call);
        if let ApiCall::RecoverOrphans { runtime } = call
            // One that nobody waits for any more was sent before what it now finds; no daemon can call it back.
            && life == self.lives
            && self.open.contains_key(&op)
        {
            self.orphans_are_orphans(runtime);
        }
        let reply = self.commit_of(life, op, call);
        #[cfg(feature = "canary")]
        let (reply, fate) = self.sabotage((life, op), call, reply, fate);
        if fate != Fate::Answered && matches!(call, ApiCall::Start(_)) && reply.is_ok() {
            self.marks.hit(Mark::StartInDoubt);
        }
        let r = match fate {
            Fate::Answered => reply,
            Fate::Lost => Err(ApiError::Unknown),
            Fate::Hangs => return,
            Fate::Gateway => Err(ApiError::Server { status: 502 }),
            Fate::Garbled => reply.and(Err(ApiError::Undecodable)),
        };
        let over = matches!(call, ApiCall::ClaimOver { conn, .. }
            if *conn != self.link.conn || self.link.state != LinkState::Up);
        let r = if over { Err(ApiError::Unknown) } else { r };
        let at = self.now + self.way();
        self.queue.push(at, What::Done { life, op, event: Event::Api { op, r } });
    }

    /// Does what is asked, and takes note of it for a failure that is made small.
    fn commit_of(&mut self, life: u32, op: OpId, call: &ApiCall) -> Result<ApiReply, ApiError> {
        let reply = self.commit(call);
        if self.cfg.record
            && life == self.lives
            && let (Ok(reply), Some(life)) = (&reply, &mut self.life)
        {
            life.served.entry(op).or_default().push(upto(call, reply));
        }
        reply
    }

    #[cfg(feature = "canary")]
    fn sabotage(
        &mut self,
        (life, op): (u32, OpId),
        call: &ApiCall,
        reply: Result<ApiReply, ApiError>,
        fate: Fate,
    ) -> (Result<ApiReply, ApiError>, Fate) {
        use super::config::Canary;
        let again = self.cfg.canary == Some(Canary::RetriesPosts);
        if again && fate == Fate::Lost && matches!(call, ApiCall::Messages { .. }) {
            return (self.commit_of(life, op, call), Fate::Answered);
        }
        (reply, fate)
    }

    /// The core wants an early end.
    pub(super) fn cancel(&mut self, op: OpId) {
        if self.hit(Fault::CancelIgnored) {
            return;
        }
        let soon = self.now + self.below(40);
        let Some(open) = self.open.get_mut(&op) else { return };
        if std::mem::replace(&mut open.cancelled, true) {
            return;
        }
        let unsent = open.unsent;
        let life = self.lives;
        let event = match open.about {
            About::Prepare(_) | About::Collect | About::OtherFs => {
                Event::Fs { op, r: Err(crate::error::FsError::Cancelled) }
            }
            About::Run(_) => return,
            _ if unsent && self.chance.one_in(2) => Event::Api { op, r: Err(ApiError::NotSent) },
            _ => Event::Api { op, r: Err(ApiError::Unknown) },
        };
        self.queue.push(soon, What::Done { life, op, event });
    }

    /// What the server pushes, as far as a connection takes it there.
    pub(super) fn push_hints(&mut self) {
        for hint in self.plane.take_hints() {
            self.frame(match hint {
                Hint::TaskAvailable { runtime, task } => {
                    WsEvent::TaskAvailable { runtime: Some(runtime), task }
                }
                Hint::WorkspacesChanged => WsEvent::WorkspacesChanged,
                Hint::ProfilesChanged { workspace, .. } => WsEvent::ProfilesChanged { workspace },
            });
        }
    }

    /// Frames come in order, or not at all.
    pub(super) fn frame(&mut self, ws: WsEvent) {
        if self.link.state == LinkState::Up {
            self.link.last = self.link.last.max(self.now + self.way());
            let event = Event::Ws { conn: self.link.conn, ws };
            self.queue.push(self.link.last, What::Tell { life: self.lives, event });
        }
    }

    pub(super) fn ws(&mut self, conn: ConnGen, cmd: &WsCmd) {
        match cmd {
            WsCmd::Connect { .. } => {
                let at = self.now + self.way() + self.way();
                self.link = Link { conn, state: LinkState::Dialing, last: at };
                let fails = self.is_about(Fault::Outage) || self.hit(Fault::Disconnect);
                let ws = if fails { WsEvent::Down } else { WsEvent::Up };
                self.queue.push(at, What::Tell { life: self.lives, event: Event::Ws { conn, ws } });
            }
            WsCmd::Close => self.link.state = LinkState::Off,
            WsCmd::Beat { runtime } => {
                if self.link.state != LinkState::Up || self.link.conn != conn {
                    return;
                }
                let now = self.server_now();
                let gone = self.plane.heartbeat(now, runtime).is_err();
                let claims = self.cfg.seed.is_multiple_of(3) && !self.is_about(Fault::OldServer);
                self.frame(WsEvent::Ack { runtime: runtime.clone(), gone, claims, actions: Vec::new() });
                if self.hit(Fault::Disconnect) {
                    self.break_link();
                }
            }
        }
    }

    /// The daemon is about to be told something of its connection.
    pub(super) fn link_told(&mut self, conn: ConnGen, ws: &WsEvent) {
        if conn != self.link.conn {
            return;
        }
        match ws {
            WsEvent::Up if self.link.state == LinkState::Dialing => {
                self.link.state = LinkState::Up;
                if self.open.values().any(|open| open.about == About::Claim) {
                    self.marks.hit(Mark::ReconnectInClaim);
                }
            }
            WsEvent::Down => self.link.state = LinkState::Off,
            _ => {}
        }
    }

    pub(super) fn break_link(&mut self) {
        if self.link.state == LinkState::Up {
            self.frame(WsEvent::Down);
            self.link.state = LinkState::Dead;
        }
    }

    pub(super) fn half_open(&mut self) {
        if self.link.state == LinkState::Up {
            self.link.state = LinkState::Dead;
            let at = self.now + self.below(UNNOTICED);
            self.link.last = self.link.last.max(at);
            let event = Event::Ws { conn: self.link.conn, ws: WsEvent::Down };
            self.queue.push(self.link.last, What::Tell { life: self.lives, event });
        }
    }

    /// A post that its sender has given up, or did not live to see answered: nobody can tell whether it will still arrive, so it may be
    /// sent again.
    fn note_late_post(&mut self, life: u32, op: OpId, call: &ApiCall) {
        if let ApiCall::Messages { claim, .. } = call
            && (life != self.lives || self.life.is_none() || !self.open.contains_key(&op))
            && let Some(claim) = self.claims.get_mut(claim)
        {
            claim.late_post = true;
        }
    }

    /// Takes note of a report that is sent.
    fn note_report(&mut self, call: &ApiCall) {
        let About::Report(key) = about(call) else { return };
        let life = self.lives;
        if let Some(claim) = self.claims.get_mut(&key) {
            if claim.tried_in.is_some_and(|first| first != life) {
                self.marks.hit(Mark::ReportThroughRestart);
            }
            claim.tried_in.get_or_insert(life);
        }
    }
}

const fn about(call: &ApiCall) -> About {
    match call {
        ApiCall::Claim(_) | ApiCall::ClaimOver { .. } | ApiCall::ClaimOne(_) => About::Claim,
        ApiCall::Start(call) => About::Start(call.claim()),
        ApiCall::Lease { claim } => About::Lease(*claim),
        ApiCall::Complete { claim } | ApiCall::Fail { claim, .. } | ApiCall::CancelAck { claim } => {
            About::Report(*claim)
        }
        ApiCall::Messages { claim, upto, .. } => About::Messages(*claim, *upto),
        _ => About::OtherApi,
    }
}
