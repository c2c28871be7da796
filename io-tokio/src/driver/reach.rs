//! What is said of a server that does not answer as it should: one line when that begins and one when it is over, not one for each request.

use super::api;
use super::host::Host;
use crate::http::{CallError, Limit, RejectKind};
use longshore_core::effect::ApiCall;
use longshore_core::event::ApiReply;
use longshore_core::id::WorkspaceId;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Where one route fails and all others work, the server is gone and back with every other request: that is told no more often.
const APART: Duration = Duration::from_mins(1);

type Answer = Result<ApiReply, CallError>;

/// What was said, and not yet taken back.
#[derive(Debug, Default)]
pub(super) struct Reach {
    answering: Mutex<Answering>,
    /// What nothing is served without, and the status by which it was refused.
    refused: Mutex<BTreeMap<Needed, u16>>,
}

/// What nothing is served without.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Needed {
    List,
    Registration(WorkspaceId),
}

/// Whether the server answers what it is asked, and since when another word of it is none too many.
#[derive(Debug, Default)]
struct Answering {
    now: State,
    quiet_until: Option<Instant>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// It answered the last request that it could answer.
    #[default]
    Well,
    /// The last connection ended without an answer. One that the server was just closing does that too: it is not worth a word.
    Doubtful,
    /// It does not, and that was said.
    Badly,
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

/// Takes note of an answer to a call within `limit`.
pub(super) fn note(host: &Host, call: &ApiCall, limit: &Limit, answer: &Answer) {
    // One that fails over the control connection is sent again over HTTP, which is what counts.
    if matches!(call, ApiCall::ClaimOver { .. }) {
        return;
    }
    host.reach.note_reached(Sign::of(call, limit, answer), answer);
    let needed = match call {
        ApiCall::Workspaces => Needed::List,
        ApiCall::Register { workspace, .. } => Needed::Registration(workspace.clone()),
        _ => return,
    };
    host.reach.note_needed(needed, answer);
}

impl Sign {
    fn of(call: &ApiCall, limit: &Limit, answer: &Answer) -> Self {
        let is_of_server = match answer {
            Err(CallError::Rejected(refusal)) if refusal.kind == RejectKind::RouteMissing => {
                !api::is_everywhere(call)
            }
            // What is no word of the server was said by something before it.
            Err(CallError::Rejected(refusal)) => api::refusal(refusal).is_some(),
            Ok(_) | Err(CallError::Throttled { .. }) => true,
            Err(CallError::Unknown { .. }) if limit.is_cancelled() => return Self::None,
            Err(CallError::Unknown { .. }) => return Self::BrokeOff,
            Err(
                CallError::NotSent { .. } | CallError::ServerError { .. } | CallError::Undecodable { .. },
            ) => false,
        };
        if is_of_server { Self::Answered } else { Self::Failed }
    }
}

impl Answering {
    /// Takes note of a sign at `now`, and tells what it is worth saying.
    fn take(&mut self, sign: Sign, now: Instant) -> Option<Word> {
        let (next, word) = match (self.now, sign) {
            (same, Sign::None) => (same, None),
            (State::Badly, Sign::Answered) => (State::Well, Some(Word::Back)),
            (_, Sign::Answered) => (State::Well, None),
            (State::Badly, _) => (State::Badly, None),
            (State::Well, Sign::BrokeOff) => (State::Doubtful, None),
            // Not said yet: the next one says it, once it is time.
            (same, _) if self.quiet_until.is_some_and(|until| now < until) => (same, None),
            (_, Sign::Failed | Sign::BrokeOff) => {
                self.quiet_until = Some(now + APART);
                (State::Badly, Some(Word::Gone))
            }
        };
        self.now = next;
        word
    }
}

impl Reach {
    fn note_reached(&self, sign: Sign, answer: &Answer) {
        let word = self.answering.lock().unwrap_or_else(PoisonError::into_inner).take(sign, Instant::now());
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
        let refused = match answer {
            Ok(_) => 0,
            Err(CallError::Rejected(refusal)) => refusal.status,
            // Said above.
            Err(_) => return,
        };
        let mut all = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let before = all.insert(needed.clone(), refused).unwrap_or_default();
        if refused == 0 {
            all.remove(&needed);
        }
        if let Err(error) = answer
            && before != refused
            // What to do about a credential is said where it is kept.
            && refused != 401
        {
            match needed {
                Needed::List => tracing::warn!(
                    "the server does not tell the workspaces; they are asked for again and again: {error}"
                ),
                Needed::Registration(workspace) => tracing::warn!(
                    %workspace,
                    "the server refuses the registration, and nothing of the workspace is served; it is tried again and again: {error}"
                ),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tokio_util::sync::CancellationToken;

    fn unknown() -> Answer {
        Err(CallError::Unknown { why: "connection closed before message completed".to_owned() })
    }

    #[test]
    fn a_connection_that_ends_is_a_sign_unless_we_ended_it() {
        let cancel = CancellationToken::new();
        let limit = Limit::from(Duration::from_secs(1)).or_when(cancel.clone());
        assert_eq!(Sign::of(&ApiCall::Renew, &limit, &unknown()), Sign::BrokeOff);
        cancel.cancel();
        assert_eq!(Sign::of(&ApiCall::Renew, &limit, &unknown()), Sign::None);
    }

    #[test]
    fn one_connection_that_ends_is_not_worth_a_word_but_the_next_one_is() {
        let mut answering = Answering::default();
        let now = Instant::now();
        let said =
            [Sign::BrokeOff, Sign::Answered, Sign::BrokeOff, Sign::None, Sign::BrokeOff, Sign::Answered]
                .map(|sign| answering.take(sign, now));
        assert_eq!(said, [None, None, None, None, Some(Word::Gone), Some(Word::Back)]);
    }

    #[test]
    fn one_route_that_fails_beside_others_that_work_is_told_once_a_minute() {
        let mut answering = Answering::default();
        let begun = Instant::now();
        let said = (0..1000).filter_map(|n| {
            let sign = if n % 2 == 0 { Sign::Failed } else { Sign::Answered };
            answering.take(sign, begun + Duration::from_millis(120) * n)
        });
        assert_eq!(said.collect::<Vec<_>>(), [Word::Gone, Word::Back, Word::Gone, Word::Back]);
    }

    proptest! {
        /// Whatever comes: that it is gone and that it is back are said in turn, the one at most once a minute and within a minute, the other
        /// at once.
        #[test]
        fn each_loss_is_told_once_and_so_is_its_end(signs in prop::collection::vec((0..4_u8, 0..40_u64), 0..60)) {
            let mut answering = Answering::default();
            let mut now = Instant::now();
            let mut told_gone = false;
            let mut told_at = None;
            for (sign, later) in signs {
                now += Duration::from_secs(later);
                let sign = [Sign::Answered, Sign::BrokeOff, Sign::Failed, Sign::None][usize::from(sign)];
                match answering.take(sign, now) {
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
                match sign {
                    Sign::Answered => prop_assert!(!told_gone),
                    Sign::Failed => prop_assert!(told_gone || told_at.is_some_and(|at| now - at < APART)),
                    Sign::BrokeOff | Sign::None => {}
                }
            }
        }
    }
}
