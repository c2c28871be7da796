//! Which request of one history stands for which of another. Requests are numbered as they are sent, so a history with other events, or of another
//! version of the core, has other numbers; what an event answers is found again by what the request is about.

use super::label::effect_label;
use crate::effect::{ApiCall, Effect, WsCmd};
use crate::event::Event;
use crate::id::{ConnGen, OpId};
use std::collections::BTreeMap;

/// For a number that nobody has: so much is added where ours has it.
const BEYOND: u64 = 1_000_000;

/// What a request is about.
#[derive(Clone, Debug)]
struct About {
    label: String,
    key: String,
}

/// Requests and connections of a history that is known, and those of one that is being made from its events.
#[derive(Clone, Debug, Default)]
pub struct Addresses {
    /// Asked there; no event about it was seen yet.
    theirs: BTreeMap<OpId, About>,
    /// Asked here; nothing there stands for it yet.
    ours: BTreeMap<OpId, About>,
    same: BTreeMap<OpId, OpId>,
    their_conn: ConnGen,
    our_conn: ConnGen,
    /// Whether requests are unknown that were sent before: their numbers are the same here and there.
    middle: bool,
}

impl Addresses {
    /// From the beginning of a life.
    pub fn new() -> Self {
        Self::default()
    }

    /// From the middle of a life, where both histories are the same.
    pub fn middle() -> Self {
        Self { middle: true, ..Self::default() }
    }

    /// Takes note of what the known history asks for in a step.
    pub fn asked_there(&mut self, effects: &[Effect]) {
        for effect in effects {
            match asked(effect) {
                Some((op, about)) => drop(self.theirs.insert(op, about)),
                None => self.their_conn = connect(effect).unwrap_or(self.their_conn),
            }
        }
    }

    /// Takes note of what the new history asks for in a step.
    pub fn asked_here(&mut self, effects: &[Effect]) {
        for effect in effects {
            match asked(effect) {
                Some((op, about)) => drop(self.ours.insert(op, about)),
                None => self.our_conn = connect(effect).unwrap_or(self.our_conn),
            }
        }
    }

    /// The first request of the new history that nothing stands for yet and whose label begins with one of `prefixes`; it is taken as answered.
    pub fn take(&mut self, prefixes: &[&str]) -> Option<(OpId, String)> {
        let wanted = |about: &About| prefixes.iter().any(|prefix| about.label.starts_with(prefix));
        let op = self.ours.iter().find(|(_, about)| wanted(about)).map(|(op, _)| *op)?;
        self.ours.remove(&op).map(|about| (op, about.label))
    }

    /// Makes an event of the known history one of the new one. Returns whether it can be: not if it answers a request that the new history does not
    /// have. An event that fits nothing there fits nothing here.
    pub fn translate(&mut self, event: &mut Event) -> bool {
        match event {
            Event::Api { op, .. } | Event::Fs { op, .. } | Event::Run { op, .. } => match self.find(*op) {
                Some(to) => {
                    *op = to;
                    true
                }
                None => false,
            },
            Event::Ws { conn, .. } => {
                let off = i64::from(conn.0) - i64::from(self.their_conn.0);
                let to = if self.middle && self.their_conn == ConnGen(0) {
                    i64::from(conn.0)
                } else {
                    i64::from(self.our_conn.0) + off
                };
                *conn = ConnGen(u32::try_from(to).unwrap_or(u32::MAX));
                true
            }
            Event::Tick
            | Event::Credential
            | Event::Stop { .. }
            | Event::Recovered { .. }
            | Event::Gate { .. } => true,
        }
    }

    fn find(&mut self, op: OpId) -> Option<OpId> {
        if let Some(to) = self.same.get(&op) {
            return Some(*to);
        }
        let Some(about) = self.theirs.remove(&op) else {
            let taken = self.ours.contains_key(&op) && !self.middle;
            return Some(if taken { OpId(op.0.saturating_add(BEYOND)) } else { op });
        };
        let same = |wanted: fn(&About) -> &str| {
            let alike = |it: &&About| wanted(it) == wanted(&about);
            // Of several that are about the same, the one that was sent as the same one of them.
            let before = self.theirs.range(..op).filter(|(_, it)| alike(it)).count();
            let mut ours = self.ours.iter().filter(|(_, it)| alike(it)).map(|(op, _)| *op);
            ours.clone().nth(before).or_else(|| ours.next())
        };
        let to = same(|about| &about.label).or_else(|| same(|about| &about.key))?;
        self.ours.remove(&to);
        self.same.insert(op, to);
        Some(to)
    }
}

fn asked(effect: &Effect) -> Option<(OpId, About)> {
    match effect {
        Effect::Api { op, .. } | Effect::Fs { op, .. } | Effect::Run { op, .. } => {
            Some((*op, About { label: effect_label(effect), key: key(effect) }))
        }
        _ => None,
    }
}

const fn connect(effect: &Effect) -> Option<ConnGen> {
    match effect {
        Effect::Ws { conn, cmd: WsCmd::Connect { .. } } => Some(*conn),
        _ => None,
    }
}

/// What a request is about, without what follows from the history before it.
pub(super) fn key(effect: &Effect) -> String {
    match effect {
        Effect::Api { call, .. } => api_key(call).unwrap_or_else(|| effect_label(effect)),
        _ => effect_label(effect),
    }
}

fn api_key(call: &ApiCall) -> Option<String> {
    match call {
        ApiCall::Claim(_) => Some("claim".into()),
        ApiCall::ClaimOver { .. } => Some("claim-over".into()),
        ApiCall::Messages { claim, .. } => Some(format!("messages {}", claim.0)),
        ApiCall::MessagesKnown { claim, .. } => Some(format!("known {}", claim.0)),
        ApiCall::Deregister { .. } => Some("deregister".into()),
        _ => None,
    }
}
