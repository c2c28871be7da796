//! Which way a claim for many runtimes goes: over the control connection once the server has said over that very one that it takes
//! claims, else over HTTP. And what is done when nobody knows whether the server has acted upon it.

use crate::effect::{ApiCall, ClaimCall, ClaimScope, Fact};
use crate::env::Cx;
use crate::error::ApiError;
use crate::event::ApiReply;
use crate::id::{ConnGen, Generation, OpId};
use crate::op::ApiOp;
use crate::time::Instant;
use crate::timer::TimerKey;
use crate::token::{ClaimPass, SlotPermit};
use serde::{Deserialize, Serialize};

/// What a claim for many is made of, whichever way it goes.
pub(crate) type ManyClaim = (Vec<SlotPermit>, ClaimPass, ClaimScope);

/// The choice.
#[derive(Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Transport {
    /// The connection that is up, if it takes claims.
    able: Option<ConnGen>,
    /// A claim of unknown fate may still bring tasks: no other is sent before the timer fires.
    held_off: bool,
    /// The next claim goes over HTTP, even if the connection takes claims: otherwise a connection that loses each of them starves the queue.
    http_next: bool,
    /// Since when the claim over the connection should have been answered: it is waited for all the same, for as long as nothing else could be
    /// claimed anyway.
    #[serde(default)]
    overdue: Option<Instant>,
}

/// What the end of a claim over the connection means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It was answered.
    Taken,
    /// The server has handed nothing over, and HTTP may have better luck.
    OverHttp,
    /// It may have handed something over.
    HoldOff,
}

impl Verdict {
    pub(super) fn of(result: &Result<ApiReply, ApiError>) -> Self {
        match result {
            Ok(ApiReply::Claimed { .. }) => Self::Taken,
            Err(
                ApiError::NotSent
                | ApiError::Throttled { .. }
                | ApiError::Server { .. }
                | ApiError::Refused { .. },
            ) => Self::OverHttp,
            // A success that cannot be read handed over what it did not say.
            Ok(_) | Err(ApiError::Unknown | ApiError::Undecodable) => Self::HoldOff,
        }
    }
}

impl Transport {
    /// The server takes claims over this connection.
    pub(super) fn takes_claims(&mut self, conn: ConnGen) {
        self.able = Some(conn);
    }

    /// Another connection, or none: nothing is known of it.
    pub(super) fn forget(&mut self) {
        self.able = None;
    }

    pub(super) const fn is_held_off(&self) -> bool {
        self.held_off
    }

    /// The next claim goes over HTTP.
    pub(super) fn prefer_http(&mut self) {
        self.http_next = true;
    }

    /// Sends a new claim.
    pub(super) fn send(&mut self, cx: &mut Cx<'_>, set: Generation, claim: ManyClaim) -> OpId {
        let http = std::mem::take(&mut self.http_next);
        let (hold, pass, scope) = claim;
        self.overdue = None;
        match self.able.filter(|_| !http) {
            Some(conn) => {
                let claim = ClaimCall::new(set, scope.clone(), &hold);
                let within = cx.timing().claim_over;
                cx.api(ApiOp::ClaimOver { hold, pass, scope }, ApiCall::ClaimOver { conn, claim }, within)
            }
            None => Self::send_http(cx, set, (hold, pass, scope)),
        }
    }

    /// Sends a claim over HTTP.
    pub(super) fn send_http(cx: &mut Cx<'_>, set: Generation, (hold, pass, scope): ManyClaim) -> OpId {
        let call = ClaimCall::new(set, scope.clone(), &hold);
        let within = cx.timing().claim_batch;
        cx.api(ApiOp::Claim { hold, pass, scope }, ApiCall::Claim(call), within)
    }

    /// The claim over the connection has not been answered in time.
    pub(super) fn is_overdue(&mut self, cx: &Cx<'_>) {
        self.overdue = Some(cx.now.mono);
    }

    /// A claim is of unknown fate. What it was waited for beyond its time counts.
    pub(super) fn hold_off(&mut self, cx: &mut Cx<'_>) {
        self.held_off = true;
        cx.fact(Fact::HeldOff);
        let now = cx.now.mono;
        let until = self.overdue.take().unwrap_or(now).after(cx.timing().claim_hold_off);
        cx.arm_at(TimerKey::HoldOff, until.max(now));
    }

    /// The wait is over.
    pub(super) fn hold_off_ended(&mut self) {
        self.held_off = false;
        self.http_next = true;
    }

    /// Nothing is claimed any more.
    pub(super) fn close(&mut self, cx: &mut Cx<'_>) {
        self.forget();
        cx.disarm(&TimerKey::HoldOff);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Refusal;

    #[test]
    fn inv_42_only_what_nobody_knows_is_held_off() {
        let refused = ApiError::Refused { status: 404, kind: Refusal::Other };
        for (result, verdict) in [
            (Ok(ApiReply::Claimed { offers: Vec::new(), unusable: 0 }), Verdict::Taken),
            (Ok(ApiReply::Done), Verdict::HoldOff),
            (Err(ApiError::Unknown), Verdict::HoldOff),
            (Err(ApiError::Undecodable), Verdict::HoldOff),
            (Err(ApiError::NotSent), Verdict::OverHttp),
            (Err(ApiError::Server { status: 500 }), Verdict::OverHttp),
            (Err(ApiError::Throttled { retry_after_ms: None }), Verdict::OverHttp),
            (Err(refused), Verdict::OverHttp),
        ] {
            assert_eq!(Verdict::of(&result), verdict, "{result:?}");
        }
    }
}
