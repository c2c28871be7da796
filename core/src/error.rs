//! How requests to the outside can fail, as the core needs to know it. Texts stay with the adapter.

use crate::reason::FailReason;
use serde::{Deserialize, Serialize};

/// Why a request to the server has no usable answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "error", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ApiError {
    /// No byte of the request left this machine.
    NotSent,
    /// The request may have been acted upon: no answer came, or it broke off.
    Unknown,
    /// 429, or 503 with a time to wait.
    Throttled {
        /// Milliseconds that the server asks to wait, if it said.
        retry_after_ms: Option<u32>,
    },
    /// 5xx, 408, 425, or the word of something before the server, such as a redirect or a page under a 4xx: it may work later.
    Server {
        /// The HTTP status.
        status: u16,
    },
    /// Any other answer that is not a success.
    Refused {
        /// The HTTP status.
        status: u16,
        /// What the body says it is about.
        kind: Refusal,
    },
    /// A success whose body cannot be read.
    Undecodable,
}

/// What a refusal is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Refusal {
    /// 404, "task not found".
    TaskGone,
    /// 404, "runtime not found".
    RuntimeGone,
    /// 404, "workspace not found".
    WorkspaceGone,
    /// 404 of a route that this server does not have.
    RouteMissing,
    /// 401: the credential is not known (any more).
    Unauthorized,
    /// 401 from a server whose clock is more than five minutes away from ours: whatever it says of the credential may come from that. Since
    /// trace 1.3.
    ClockSkew,
    /// 403.
    Forbidden,
    /// Anything else.
    Other,
}

impl Refusal {
    /// Whether the credential is not good enough.
    pub const fn is_about_credential(self) -> bool {
        matches!(self, Self::Unauthorized | Self::ClockSkew | Self::Forbidden)
    }
}

impl ApiError {
    /// Whether the same request may succeed later although nothing changes here. A refused credential counts:
    /// it can be replaced, and work in hand must outlive that.
    pub const fn is_passing(self) -> bool {
        match self {
            Self::NotSent
            | Self::Unknown
            | Self::Throttled { .. }
            | Self::Server { .. }
            | Self::Undecodable => true,
            Self::Refused { kind, .. } => kind.is_about_credential(),
        }
    }

    /// Whether the server may have done what was asked for, so that what must not be done twice has to be asked about first. A 502
    /// or 504 is the word of a proxy that has lost sight of the server.
    pub const fn leaves_doubt(self) -> bool {
        matches!(self, Self::Unknown | Self::Undecodable | Self::Server { status: 502 | 504 })
    }

    /// Whether the credential is not good enough for this request.
    pub const fn is_about_credential(self) -> bool {
        matches!(self, Self::Refused { kind, .. } if kind.is_about_credential())
    }

    /// What a refusal is about, if this is one.
    pub const fn refusal(self) -> Option<Refusal> {
        match self {
            Self::Refused { kind, .. } => Some(kind),
            _ => None,
        }
    }
}

/// Why work on the disk did not succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "error", rename_all = "snake_case")]
#[non_exhaustive]
pub enum FsError {
    /// The deadline passed; whatever did the work is gone.
    TimedOut,
    /// It was cancelled; whatever did the work is gone.
    Cancelled,
    /// It failed; the adapter keeps the text.
    Failed {
        /// For the report.
        reason: FailReason,
    },
}
