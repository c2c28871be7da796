//! What the server did in a history, as far as it can be told from the events of the daemon and from how often each request was acted upon: enough to
//! see in a script, without its world, that a report or a message was lost or taken twice.

use super::world::Call;
use super::{Input, Runner};
use crate::config::Config;
use crate::effect::{ApiCall, Effect, Fact};
use crate::error::{ApiError, Refusal};
use crate::event::{ApiReply, ClaimKey, Event, Recovered, RunEvent, TaskStatus};
use crate::id::OpId;
use crate::rng::Seed;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How often the server acted upon the request that a line of a script ends: up to which message each time, 0 if it was no post of messages.
pub type Served = Vec<u32>;

/// How a trace says it, for a request whose answer says otherwise.
const NOTE: &str = "served: ";

#[derive(Serialize, Deserialize)]
struct Note {
    op: OpId,
    upto: Served,
}

/// What a request of which only this answer is known was: acted upon once if that is a good one, else never.
pub fn honest(call: &ApiCall, r: &Result<ApiReply, ApiError>) -> Served {
    r.as_ref().ok().map(|reply| vec![upto(call, reply)]).unwrap_or_default()
}

/// Up to which message the server has acted.
pub(crate) fn upto(call: &ApiCall, reply: &ApiReply) -> u32 {
    match (call, reply) {
        (ApiCall::Messages { upto, .. }, ApiReply::Known { upto: part }) => *part.min(upto),
        (ApiCall::Messages { upto, .. }, _) => *upto,
        _ => 0,
    }
}

/// The text of a note about a request.
///
/// # Errors
/// If serialisation fails, which no number is known to make it do.
#[cfg(feature = "sim")]
pub(crate) fn note(op: OpId, served: &Served) -> Result<String, serde_json::Error> {
    Ok(format!("{NOTE}{}", serde_json::to_string(&Note { op, upto: served.clone() })?))
}

/// Reads such a text.
pub fn read_note(text: &str) -> Option<(OpId, Served)> {
    let note: Note = serde_json::from_str(text.strip_prefix(NOTE)?).ok()?;
    Some((note.op, note.upto))
}

/// What the server has of one claim.
#[derive(Debug, Default)]
struct Row {
    said: Vec<u32>,
    /// Messages of its last run.
    have: Option<u32>,
    heard: bool,
    /// The server ended it, or has it no more.
    over: bool,
    /// What the server has is not what it says, or it cannot say it: who sends twice then does right.
    excused: bool,
}

/// What is untrue at the end of a script: the rule, and a story. `served` has the deeds of the server for each line; of a line that it does not have, or
/// has nothing for, they are [`honest`].
pub fn untrue(
    cfg: &Config,
    seed: Seed,
    script: &[Input],
    served: &BTreeMap<usize, Served>,
) -> Option<(&'static str, String)> {
    untrue_until(cfg, seed, script, served, &|| false)
}

/// The same, until `stop` says so, which is asked before each line: then nothing is known to be untrue.
pub(crate) fn untrue_until(
    cfg: &Config,
    seed: Seed,
    script: &[Input],
    served: &BTreeMap<usize, Served>,
    stop: &dyn Fn() -> bool,
) -> Option<(&'static str, String)> {
    let mut runner = Runner::new(cfg.clone(), seed).ok()?;
    let mut rows = BTreeMap::new();
    for (line, input) in script.iter().enumerate() {
        if stop() {
            return None;
        }
        let mut doubled = None;
        if let Input::Event { event, .. } = input {
            match event {
                Event::Api { op, r } => {
                    if let Some(Call::Api(call)) = runner.world.open.get(op) {
                        let deeds = served.get(&line).cloned().unwrap_or_else(|| honest(call, r));
                        doubled = answered(&mut rows, call, r, &deeds);
                    }
                }
                // What the server had before this life began is not in the script.
                Event::Recovered {
                    offer,
                    was: Recovered::Launched { acked, .. } | Recovered::Ended { acked, .. },
                    ..
                } => {
                    let before = || Row { said: (1..=*acked).collect(), ..Row::default() };
                    rows.entry(offer.claim).or_insert_with(before);
                }
                Event::Run { op, run: RunEvent::Ended { outcome } } => {
                    if let Some(Call::Run(call)) = runner.world.open.get(op) {
                        row(&mut rows, call.claim()).have = Some(outcome.have);
                    }
                }
                _ => {}
            }
        }
        let effects = runner.take(input);
        let found = doubled.or_else(|| effects.iter().find_map(|effect| said_so(&mut rows, effect)));
        if found.is_some() {
            return found;
        }
    }
    None
}

fn row(rows: &mut BTreeMap<ClaimKey, Row>, claim: ClaimKey) -> &mut Row {
    rows.entry(claim).or_default()
}

fn answered(
    rows: &mut BTreeMap<ClaimKey, Row>,
    call: &ApiCall,
    r: &Result<ApiReply, ApiError>,
    deeds: &Served,
) -> Option<(&'static str, String)> {
    let claim = match call {
        ApiCall::Messages { claim, .. }
        | ApiCall::MessagesKnown { claim, .. }
        | ApiCall::Status { claim }
        | ApiCall::Lease { claim }
        | ApiCall::Complete { claim }
        | ApiCall::Fail { claim, .. }
        | ApiCall::CancelAck { claim } => *claim,
        _ => return None,
    };
    let row = row(rows, claim);
    row.over |= match r {
        // Ended, or taken back.
        Ok(ApiReply::Task { status }) => !matches!(
            status,
            TaskStatus::Dispatched | TaskStatus::WaitingLocalDirectory | TaskStatus::Running
        ),
        Err(ApiError::Refused { kind, .. }) => *kind != Refusal::RouteMissing,
        _ => false,
    };
    match call {
        ApiCall::Messages { after, .. } => {
            for seq in deeds.iter().flat_map(|upto| after + 1..=*upto) {
                let last = row.said.last().copied().unwrap_or(0);
                if seq <= last && !row.excused {
                    return Some((
                        "TRANSCRIPT",
                        format!("claim {}: message {seq} comes after {last}", claim.0),
                    ));
                }
                row.said.push(seq);
            }
        }
        ApiCall::MessagesKnown { .. } => {
            let has = row.said.last().copied().unwrap_or(0);
            row.excused |= !matches!(r, Ok(ApiReply::Known { upto }) if *upto == has);
        }
        ApiCall::Complete { .. } | ApiCall::Fail { .. } | ApiCall::CancelAck { .. } => {
            row.heard |= !deeds.is_empty();
        }
        _ => {}
    }
    None
}

/// What the daemon believes that the server has, against what that has.
fn said_so(rows: &mut BTreeMap<ClaimKey, Row>, effect: &Effect) -> Option<(&'static str, String)> {
    match effect {
        Effect::Fact { fact: Fact::Reported { claim, .. } } => {
            let unheard = !row(rows, *claim).heard;
            unheard.then(|| {
                ("ONE-END", format!("claim {} is said to be reported; no server took that", claim.0))
            })
        }
        Effect::Fact { fact: Fact::MessagesRefused { claim, .. } } => {
            row(rows, *claim).over = true;
            None
        }
        Effect::Forget { claim } => {
            let row = rows.remove(claim)?;
            let have = row.have.filter(|_| !row.over && !row.excused)?;
            let count = row.said.len();
            let lost = count < usize::try_from(have).unwrap_or(usize::MAX);
            lost.then(|| ("TRANSCRIPT", format!("claim {}: {count} messages of {have} are there", claim.0)))
        }
        _ => None,
    }
}
