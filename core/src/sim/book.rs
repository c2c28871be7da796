//! What truly became of each claim, beside what the server believes.

use crate::effect::{EndReason, ReportKind};
use crate::event::{Offer, RunOutcome};
use crate::id::PathKey;

/// One claim whose answer reached the daemon.
#[derive(Debug)]
pub(super) struct Claim {
    pub(super) offer: Offer,
    /// Its last run, among the agents.
    pub(super) run: Option<usize>,
    /// What its last run came to.
    pub(super) outcome: Option<RunOutcome>,
    /// The user's directory that it works in, once that was looked at.
    pub(super) path: Option<PathKey>,
    /// Why the daemon ended it before its time.
    pub(super) ending: Option<EndReason>,
    /// The report that ended the task on the server.
    pub(super) taken: Option<ReportKind>,
    /// Whether the server has seen a report of it, whatever it did to the row.
    pub(super) heard: bool,
    /// The life of the daemon that first sent a report.
    pub(super) tried_in: Option<u32>,
    /// A post of its messages reached the server after nobody waited for it any more.
    pub(super) late_post: bool,
    /// Nothing is owed any more.
    pub(super) forgotten: bool,
    /// The process that had it ended, and its successor knows nothing of it.
    pub(super) cut: bool,
}

impl Claim {
    pub(super) const fn new(offer: Offer) -> Self {
        Self {
            offer,
            run: None,
            outcome: None,
            path: None,
            ending: None,
            taken: None,
            heard: false,
            tried_in: None,
            late_post: false,
            forgotten: false,
            cut: false,
        }
    }
}
