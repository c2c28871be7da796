//! What is said of a server that does not answer as it should: one line when that begins and one when it is over, not one for each request.

use super::apart::Apart;
use super::api;
use super::host::Host;
use crate::http::{CallError, Limit, RejectKind};
use longshore_core::effect::ApiCall;
use longshore_core::event::ApiReply;
use longshore_core::id::WorkspaceId;
use longshore_core::story::RequestKind;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// A connection that the server was just closing ends within this time; one that ends later, or is given up, was not that.
const PROMPT: Duration = Duration::from_secs(5);
/// What has not failed for so long, because nobody asks for it any more, fails no more.
const STALE: Duration = Duration::from_mins(10);

type Answer = Result<ApiReply, CallError>;

/// What was said, and not yet taken back.
#[derive(Debug, Default)]
pub(super) struct Reach {
    answering: Mutex<Answering>,
    refused: Mutex<BTreeMap<Needed, Refused>>,
}

/// What nothing is served without.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Needed {
    List,
    Registration(WorkspaceId),
    Claim,
}

/// What was said of the refusal of something.
#[derive(Debug, Default)]
struct Refused {
    /// The status that was said, if that is still so.
    told: Option<u16>,
    apart: Apart,
}

impl Refused {
    /// Takes note of an answer at `now`, with the status if it is a refusal, and tells whether that is worth a line.
    fn take(&mut self, status: Option<u16>, now: Instant) -> bool {
        let is_word = status.is_some() && status != self.told && self.apart.lets(now);
        if is_word || status.is_none() {
            self.told = status;
        }
        is_word
    }
}

/// Whether the server answers what it is asked.
///
/// That one route works says nothing of another one: what was said is taken back by an answer to something that failed. If others still
/// fail, they say so again.
#[derive(Debug, Default)]
struct Answering {
    /// What failed when it was asked for last, and when.
    failing: BTreeMap<RequestKind, Instant>,
    /// The last connection ended without an answer. One that the server was just closing does that too: it is not worth a word.
    doubtful: bool,
    /// That it does not was said.
    told: bool,
    /// Where a route fails every other time, the server is gone and back with each request.
    apart: Apart,
}

/// What one request tells of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sign {
    /// It answered.
    Answered,
    /// The connection ended without a whole answer of HTTP.
    BrokeOff,
    /// It cannot be reached, or what answers is not it, or is broken.
    Failed,
    /// Nothing.
    None,
}

/// What is worth a line of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    /// It does not answer any more.
    Gone,
    /// It answers again.
    Back,
}

/// Takes note of an answer to a call, the limits of which it had and how long it took.
pub(super) fn note(host: &Host, call: &ApiCall, took: (&Limit, Duration), answer: &Answer) {
    let kind = match call {
        // One that fails over the control connection is sent again over HTTP, which is what counts. One that does not is as good.
        ApiCall::ClaimOver { .. } if answer.is_err() => return,
        ApiCall::ClaimOver { .. } => RequestKind::Claim,
        call => call.into(),
    };
    host.reach.note_reached(kind, Sign::of(call, took, answer), answer);
    let needed = match call {
        ApiCall::Workspaces => Needed::List,
        ApiCall::Register { workspace, .. } => Needed::Registration(workspace.clone()),
        // Where there is no route for many, each runtime is asked for.
        ApiCall::Claim(_) if is_rejected_as(answer, &[RejectKind::RouteMissing]) => return,
        // Those are registered again, or not ours any more, which is said there.
        ApiCall::Claim(_) | ApiCall::ClaimOne(_)
            if is_rejected_as(answer, &[RejectKind::RuntimeGone, RejectKind::WorkspaceGone]) =>
        {
            return;
        }
        ApiCall::Claim(_) | ApiCall::ClaimOne(_) | ApiCall::ClaimOver { .. } => Needed::Claim,
        _ => return,
    };
    host.reach.note_needed(needed, answer);
}

fn is_rejected_as(answer: &Answer, kinds: &[RejectKind]) -> bool {
    matches!(answer, Err(CallError::Rejected(refusal)) if kinds.contains(&refusal.kind))
}

impl Sign {
    fn of(call: &ApiCall, (limit, took): (&Limit, Duration), answer: &Answer) -> Self {
        let is_of_server = match answer {
            Err(CallError::Rejected(refusal)) if refusal.kind == RejectKind::RouteMissing => {
                !api::is_everywhere(call)
            }
            // What is no word of the server was said by something before it.
            Err(CallError::Rejected(refusal)) => api::refusal(refusal).is_some(),
            Ok(_) | Err(CallError::Throttled { .. }) => true,
            Err(CallError::Unknown { .. }) if limit.is_cancelled_after(took) => return Self::None,
            Err(CallError::Unknown { .. }) if took < PROMPT => return Self::BrokeOff,
            Err(
                CallError::NotSent { .. }
                | CallError::Unknown { .. }
                | CallError::ServerError { .. }
                | CallError::Undecodable { .. },
            ) => false,
        };
        if is_of_server { Self::Answered } else { Self::Failed }
    }
}

impl Answering {
    /// Takes note of a sign at `now`, and tells what it is worth saying.
    fn take(&mut self, kind: RequestKind, sign: Sign, now: Instant) -> Option<Word> {
        match sign {
            Sign::None => None,
            Sign::Answered => {
                self.doubtful = false;
                self.failing.retain(|_, at| now.saturating_duration_since(*at) < STALE);
                if self.failing.remove(&kind).is_some() {
                    self.failing.clear();
                }
                let is_back = self.told && self.failing.is_empty();
                self.told &= !is_back;
                is_back.then_some(Word::Back)
            }
            Sign::BrokeOff if !self.doubtful && self.failing.is_empty() => {
                self.doubtful = true;
                None
            }
            Sign::Failed | Sign::BrokeOff => {
                self.failing.insert(kind, now);
                let is_word = !self.told && self.apart.lets(now);
                self.told |= is_word;
                is_word.then_some(Word::Gone)
            }
        }
    }
}

impl Reach {
    fn note_reached(&self, kind: RequestKind, sign: Sign, answer: &Answer) {
        let word =
            self.answering.lock().unwrap_or_else(PoisonError::into_inner).take(kind, sign, Instant::now());
        match (word, answer) {
            (Some(Word::Gone), Err(error)) => tracing::warn!(
                %error,
                "the server does not answer as it should; check the server URL, what serves there and any proxy on the way; it is asked again and again"
            ),
            (Some(_), _) => tracing::info!("the server answers again"),
            (None, _) => {}
        }
    }

    fn note_needed(&self, needed: Needed, answer: &Answer) {
        let status = match answer {
            Ok(_) => None,
            Err(CallError::Rejected(refusal)) => Some(refusal.status),
            // Said above.
            Err(_) => return,
        };
        let mut all = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let is_news = all.entry(needed.clone()).or_default().take(status, Instant::now());
        if let Err(error) = answer
            && is_news
            // What to do about a credential is said where it is kept.
            && status != Some(401)
        {
            match needed {
                Needed::List => tracing::warn!(
                    "the server does not tell the workspaces; they are asked for again and again: {error}"
                ),
                Needed::Registration(workspace) => tracing::warn!(
                    %workspace,
                    "the server refuses the registration, and nothing of the workspace is served; it is tried again and again: {error}"
                ),
                Needed::Claim => {
                    tracing::warn!("the server hands over no tasks; it is asked again and again: {error}");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::apart::APART;
    use proptest::prelude::*;
    use tokio_util::sync::CancellationToken;

    fn unknown() -> Answer {
        Err(CallError::Unknown { why: "connection closed before message completed".to_owned() })
    }

    #[test]
    fn a_connection_that_ends_is_a_sign_unless_we_ended_it() {
        let cancel = CancellationToken::new();
        let long = Duration::from_secs(9);
        let limit = Limit::from(long).or_when(cancel.clone());
        let sign = |took| Sign::of(&ApiCall::Renew, (&limit, took), &unknown());
        assert_eq!(sign(Duration::ZERO), Sign::BrokeOff);
        assert_eq!(sign(PROMPT), Sign::Failed, "a server that takes connections and never answers");
        cancel.cancel();
        assert_eq!(sign(PROMPT), Sign::None);
        assert_eq!(sign(long), Sign::Failed, "whoever ended it was to do so at its deadline");
    }

    fn said(signs: &[(RequestKind, Sign, u64)]) -> Vec<Word> {
        let (mut answering, begun) = (Answering::default(), Instant::now());
        let take = |(kind, sign, secs): &(RequestKind, Sign, u64)| {
            answering.take(*kind, *sign, begun + Duration::from_secs(*secs))
        };
        signs.iter().filter_map(take).collect()
    }

    #[test]
    fn one_connection_that_ends_is_not_worth_a_word_but_the_next_one_is() {
        let signs = |all: &[Sign]| all.iter().map(|sign| (RequestKind::Beat, *sign, 0)).collect::<Vec<_>>();
        let few = signs(&[Sign::BrokeOff, Sign::Answered, Sign::BrokeOff, Sign::None]);
        assert_eq!(said(&few), []);
        assert_eq!(said(&[few, signs(&[Sign::BrokeOff])].concat()), [Word::Gone]);
    }

    #[test]
    fn a_route_that_fails_beside_others_that_work_is_told_once_and_its_end_when_it_works() {
        let (fails, works) = (RequestKind::Claim, RequestKind::Beat);
        let mut signs: Vec<_> =
            (0..900).flat_map(|n| [(fails, Sign::Failed, n), (works, Sign::Answered, n)]).collect();
        assert_eq!(said(&signs), [Word::Gone]);
        signs.push((fails, Sign::Answered, 900));
        assert_eq!(said(&signs), [Word::Gone, Word::Back]);
    }

    #[test]
    fn a_route_that_fails_every_other_time_is_told_once_a_minute() {
        let sign = |n: u64| if n.is_multiple_of(2) { Sign::Failed } else { Sign::Answered };
        let signs: Vec<_> = (0..120).map(|n| (RequestKind::Claim, sign(n), n)).collect();
        assert_eq!(said(&signs), [Word::Gone, Word::Back, Word::Gone, Word::Back]);
    }

    #[test]
    fn after_an_outage_the_first_answer_to_what_had_failed_is_told_as_its_end() {
        let (claim, beat) = (RequestKind::Claim, RequestKind::Beat);
        let down = [(claim, Sign::Failed, 0), (beat, Sign::Failed, 1), (claim, Sign::Failed, 2)];
        assert_eq!(said(&[&down[..], &[(beat, Sign::Answered, 9)]].concat()), [Word::Gone, Word::Back]);
    }

    #[test]
    fn what_nobody_asks_for_any_more_fails_no_more() {
        let failed = (RequestKind::Start, Sign::Failed, 0);
        let answered = |secs| (RequestKind::Beat, Sign::Answered, secs);
        assert_eq!(said(&[failed, answered(599)]), [Word::Gone]);
        assert_eq!(said(&[failed, answered(600)]), [Word::Gone, Word::Back]);
    }

    #[test]
    fn a_refusal_is_told_once_until_it_is_another_one_and_at_most_once_a_minute() {
        let (mut refused, begun) = (Refused::default(), Instant::now());
        let mut told = |status, secs| refused.take(status, begun + Duration::from_secs(secs));
        let all = [
            (None, 0),
            (Some(404), 1),
            (Some(404), 90),
            (Some(403), 91),
            (Some(403), 92),
            (None, 93),
            (Some(403), 94),
        ];
        assert_eq!(
            all.map(|(status, secs)| told(status, secs)),
            [false, true, false, true, false, false, false]
        );
        assert!(told(Some(403), 151) && !told(Some(403), 300), "what came too early is told by the next one");
    }

    proptest! {
        /// Whatever comes: that it is gone and that it is back are said in turn, the one at most once a minute and within a minute, the other
        /// with an answer.
        #[test]
        fn each_loss_is_told_once_and_so_is_its_end(
            signs in prop::collection::vec((0..3_usize, 0..4_u8, 0..40_u64), 0..60),
        ) {
            let mut answering = Answering::default();
            let mut now = Instant::now();
            let mut told_gone = false;
            let mut told_at = None;
            for (kind, sign, later) in signs {
                now += Duration::from_secs(later);
                let sign = [Sign::Answered, Sign::BrokeOff, Sign::Failed, Sign::None][usize::from(sign)];
                match answering.take(RequestKind::ALL[kind], sign, now) {
                    Some(Word::Back) => {
                        prop_assert!(told_gone && sign == Sign::Answered);
                        told_gone = false;
                    }
                    Some(_) => {
                        prop_assert!(!told_gone && sign != Sign::Answered);
                        prop_assert!(told_at.is_none_or(|at| now - at >= APART));
                        (told_gone, told_at) = (true, Some(now));
                    }
                    None => {}
                }
                if sign == Sign::Failed {
                    prop_assert!(told_gone || told_at.is_some_and(|at| now - at < APART));
                }
            }
            for kind in RequestKind::ALL {
                answering.take(*kind, Sign::Answered, now);
            }
            prop_assert!(!answering.told, "once all is answered, nothing is left to be taken back");
        }
    }
}
