//! The prepare lease: while a task is prepared and started, the server is told every 15 s that it still is.

use crate::effect::ApiCall;
use crate::env::Cx;
use crate::error::ApiError;
use crate::event::{ApiReply, ClaimKey};
use crate::id::OpId;
use crate::op::{ApiOp, TaskOp};
use crate::time::Instant;
use crate::timer::TimerKey;
use crate::token::LeaseStopped;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// One task's lease.
#[derive(Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Lease {
    /// The next refresh is due then.
    Armed { due: Instant },
    /// A refresh is on its way; the next one is due then.
    InFlight { op: OpId, due: Instant },
    /// The last refresh is on its way, cancelled.
    Stopping { op: OpId },
}

impl Lease {
    /// The claim itself granted the first 45 s: the first refresh is one period away.
    pub(crate) fn start(cx: &mut Cx<'_>, claim: ClaimKey) -> Self {
        let due = cx.now.mono.after(cx.timing().lease);
        cx.arm_at(TimerKey::Lease(claim), due);
        Self::Armed { due }
    }

    /// Sends a refresh, if none is on its way.
    pub(crate) fn due(&mut self, cx: &mut Cx<'_>, claim: ClaimKey) {
        let Self::Armed { due } = *self else { return };
        let within = cx.timing().lease_request;
        let op = cx.api(ApiOp::Task(claim, TaskOp::Lease), ApiCall::Lease { claim }, within);
        *self = Self::InFlight { op, due };
    }

    /// Sends one although it is not due yet; the next one is one period away.
    pub(crate) fn renew(&mut self, cx: &mut Cx<'_>, claim: ClaimKey) {
        if let Self::Armed { due } = self {
            *due = cx.now.mono;
            cx.disarm(&TimerKey::Lease(claim));
            self.due(cx, claim);
        }
    }

    /// A refresh ended. Returns whether the server's view of the task should be asked for: it refused.
    pub(crate) fn replied(
        &mut self,
        cx: &mut Cx<'_>,
        claim: ClaimKey,
        op: OpId,
        result: &Result<ApiReply, ApiError>,
    ) -> bool {
        let Self::InFlight { op: open, due } = *self else { return false };
        if open != op {
            return false;
        }
        let period = cx.timing().lease;
        let mut next = due.after(period);
        if next <= cx.now.mono {
            next = cx.now.mono.after(period);
        }
        if let Err(error) = result {
            next = next.max(cx.now.mono.after(cx.patience(Duration::ZERO, *error)));
        }
        cx.arm_at(TimerKey::Lease(claim), next);
        *self = Self::Armed { due: next };
        result.as_ref().err().is_some_and(|error| !error.is_passing())
    }

    /// The server granted it anew by the way: the next refresh is one period away. One that is on its way comes first.
    pub(crate) fn granted(&mut self, cx: &mut Cx<'_>, claim: ClaimKey) {
        if let Self::Armed { due } = self {
            *due = cx.now.mono.after(cx.timing().lease);
            cx.arm_at(TimerKey::Lease(claim), *due);
        }
    }

    /// Ends it: at once, or when the refresh that is on its way has ended.
    pub(crate) fn stop(self, cx: &mut Cx<'_>, claim: ClaimKey) -> Result<LeaseStopped, Self> {
        cx.disarm(&TimerKey::Lease(claim));
        match self {
            Self::Armed { .. } => Ok(LeaseStopped::mint()),
            Self::InFlight { op, .. } => {
                cx.cancel(op);
                Err(Self::Stopping { op })
            }
            Self::Stopping { .. } => Err(self),
        }
    }

    /// The last refresh ended.
    pub(crate) fn stopped(self, op: OpId) -> Result<LeaseStopped, Self> {
        match self {
            Self::Stopping { op: open } if open == op => Ok(LeaseStopped::mint()),
            other => Err(other),
        }
    }
}
