//! The one fresh try of a run whose session could not be resumed.

use super::classify;
use super::outcome::{Outcome, Status};
use crate::reason::FailReason;

/// Whether a family of agents can tell that a resume was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RejectionSigns {
    /// It can: only [`Outcome::resume_rejected`] counts.
    Certain,
    /// It cannot: a failed resume looks like any early failure.
    None,
}

/// Whether a run that was to resume a session and came to `outcome` should be tried again without that session. The
/// caller knows whether it was such a run, and tries at most once.
pub fn wants_fresh_session(outcome: &Outcome, signs: RejectionSigns) -> bool {
    outcome.status == Status::Failed
        && outcome.tools_started == 0
        && (outcome.resume_rejected
            || classify::is_unresumable_history(&outcome.error)
            || classify::is_auth_unresolved(&outcome.error)
            || (signs == RejectionSigns::None && outcome.session_id.is_none() && may_be_the_session(outcome)))
}

/// The outcome to report of a run that was tried again: the second if it got anywhere, with what both have used.
pub fn reconcile(first: Outcome, second: Outcome) -> Outcome {
    let second_counts = second.session_id.is_some() || second.status == Status::Completed;
    let (mut kept, dropped) = if second_counts { (second, first) } else { (first, second) };
    for (model, usage) in dropped.usage {
        kept.usage.entry(model).or_default().add(&usage);
    }
    for warning in dropped.warnings {
        kept.warn(warning);
    }
    kept
}

/// Whether the failure may come of the session, rather than of what any session would meet.
fn may_be_the_session(outcome: &Outcome) -> bool {
    !matches!(
        outcome.reason,
        Some(
            FailReason::ProviderNetwork
                | FailReason::ProviderCapacity
                | FailReason::ProviderQuota
                | FailReason::ProviderServerError
                | FailReason::ProviderAuth
                | FailReason::MissingConfig
                | FailReason::ModelNotFound
                | FailReason::MissingExecutable
                | FailReason::UnsupportedVersion
                | FailReason::AgentTimeout
        )
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::outcome::Usage;

    fn failed(reason: FailReason, error: &str) -> Outcome {
        Outcome::failed(Status::Failed, reason, error.to_owned())
    }

    #[test]
    fn agents_16_5_only_a_failed_run_without_tools_is_tried_again() {
        let rejected = Outcome { resume_rejected: true, ..failed(FailReason::Unknown, "gone") };
        assert!(wants_fresh_session(&rejected, RejectionSigns::Certain));
        let busy = Outcome { tools_started: 1, ..rejected.clone() };
        assert!(!wants_fresh_session(&busy, RejectionSigns::Certain));
        let late = Outcome { status: Status::Timeout, ..rejected };
        assert!(!wants_fresh_session(&late, RejectionSigns::Certain));
        let plain = failed(FailReason::Unknown, "odd");
        assert!(!wants_fresh_session(&plain, RejectionSigns::Certain));
        assert!(wants_fresh_session(&plain, RejectionSigns::None));
        let network = failed(FailReason::ProviderNetwork, "dns");
        assert!(!wants_fresh_session(&network, RejectionSigns::None));
        let auth = failed(FailReason::Unknown, "Could not resolve authentication method");
        assert!(wants_fresh_session(&auth, RejectionSigns::Certain));
    }

    #[test]
    fn agents_16_5_the_second_try_counts_if_it_got_anywhere_and_usage_is_summed() {
        let used = |outcome: Outcome, input| {
            let mut outcome = outcome;
            outcome.usage.insert("m".into(), Usage { input, ..Usage::default() });
            outcome
        };
        let first = used(failed(FailReason::Unknown, "first"), 2);
        let nowhere = reconcile(first.clone(), used(failed(FailReason::Unknown, "second"), 3));
        assert_eq!((nowhere.error.as_str(), nowhere.usage["m"].input), ("first", 5));
        let done = reconcile(first.clone(), used(Outcome::completed("done".into()), 3));
        assert_eq!((done.output.as_str(), done.session_id, done.usage["m"].input), ("done", None, 5));
        let second = Outcome { session_id: Some("s".into()), ..failed(FailReason::Unknown, "second") };
        assert_eq!(reconcile(first, second).error, "second");
    }
}
