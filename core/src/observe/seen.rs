//! One step, as the smaller books look at it: what happened that fits, and what is wanted.

use super::ops::{Closed, What};
use super::{At, Found, agents, boot, deadlines, freshness, late, link, register, watch};
use crate::daemon::View;
use crate::effect::{ApiCall, Effect};
use crate::event::{Event, WsEvent};
use crate::id::{ConnGen, OpId};

/// One step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen<'a> {
    pub(super) at: At<'a>,
    /// What happened; none if it fits nothing.
    pub(super) event: Option<&'a Event>,
    pub(super) closed: Option<&'a Closed<'a>>,
    pub(super) effects: &'a [Effect],
    pub(super) view: View<'a>,
}

impl<'a> Seen<'a> {
    /// The request to the server that ended, if one did.
    pub(super) fn ended(&self) -> Option<(OpId, &'a ApiCall)> {
        match self.closed {
            Some(Closed { op, what: What::Api(call), .. }) => Some((*op, call)),
            _ => None,
        }
    }

    /// What came over the control connection that counts.
    pub(super) const fn ws(&self) -> Option<(ConnGen, &'a WsEvent)> {
        match self.event {
            Some(Event::Ws { conn, ws }) => Some((*conn, ws)),
            _ => None,
        }
    }

    /// Whether this is wanted.
    pub(super) fn wants(&self, what: impl Fn(&Effect) -> bool) -> bool {
        self.effects.iter().any(what)
    }

    /// Whether such a request is sent.
    pub(super) fn sends(&self, what: impl Fn(&ApiCall) -> bool) -> bool {
        self.wants(|effect| matches!(effect, Effect::Api { call, .. } if what(call)))
    }

    /// Whether nothing can be said about what is missing: the daemon stops, or has looked at the clock late.
    pub(super) const fn excuses(&self) -> bool {
        self.at.stopping || self.at.due
    }
}

/// The smaller books.
#[derive(Clone, Debug, Default)]
pub(super) struct Books {
    agents: agents::AgentBook,
    boot: boot::BootBook,
    deadlines: deadlines::DeadlineBook,
    freshness: freshness::FreshnessBook,
    late: late::LateBook,
    link: link::LinkBook,
    register: register::RegisterBook,
    watch: watch::WatchBook,
}

impl Books {
    pub(super) fn step(&mut self, seen: &Seen<'_>, found: &mut Found) {
        if seen.wants(|effect| matches!(effect, Effect::Exit { .. })) {
            boot::BootBook::exits(seen, found);
            return;
        }
        self.agents.step(seen, found);
        self.boot.step(seen, &self.agents, found);
        self.deadlines.step(seen, found);
        self.freshness.step(seen, found);
        self.late.step(seen, found);
        self.link.step(seen, found);
        self.register.step(seen, &self.agents, found);
        self.watch.step(seen, found);
    }
}
