//! What is known of one claim.

use super::Found;
use super::recovery::Kept;
use crate::effect::ReportKind;
use crate::error::{ApiError, Refusal};
use crate::event::{ApiReply, Offer, Recovered, RunOutcome, TaskStatus};
use crate::id::{EnvRoot, OpId, Provider, SlotIndex};
use crate::reason::FailReason;
use crate::time::Instant;

/// How far something is that happens once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Stage {
    #[default]
    Not,
    Open(OpId),
    Failed,
    Done,
}

/// One claim, from its offer to the moment when it is forgotten.
#[derive(Clone, Debug)]
pub(super) struct Life {
    pub(super) offer: Offer,
    pub(super) provider: Option<Provider>,
    pub(super) slot: Option<SlotIndex>,
    /// Whether it has a directory to be closed.
    pub(super) dir: bool,
    /// What its record says.
    pub(super) kept: Option<Kept>,
    /// How far it was in an earlier process that it was taken over from.
    pub(super) recovered: Option<Recovered>,
    /// Whether an earlier process reported it, and its record did not say so.
    pub(super) reported_before: bool,
    /// Directories that are marked for it.
    pub(super) roots: Vec<EnvRoot>,
    /// Whether it had a slot once: it was not only failed back.
    pub(super) taken: bool,
    /// Whether it may still have to wait for a directory of the user, or for a slot to go with it.
    pub(super) waits: bool,
    pub(super) parked: bool,
    /// Whether its directories are marked.
    pub(super) marked: bool,
    pub(super) resolve: Stage,
    pub(super) ending: bool,
    /// What it is to be failed with, whatever it came to: it was ended by a watchdog.
    pub(super) forced: Option<FailReason>,
    /// Something other than a stop ends it.
    pub(super) ended: bool,
    /// The agent gave its result.
    pub(super) answered: bool,
    pub(super) prepare: Stage,
    pub(super) prepare_at: Instant,
    pub(super) lease: Option<OpId>,
    /// When the lease was last refreshed, or an answer about it came.
    pub(super) lease_at: Instant,
    /// When the server last granted the lease, and whether it has failed to since.
    pub(super) granted_at: Instant,
    pub(super) refused: bool,
    pub(super) start: Option<OpId>,
    /// A `/start` of unknown fate was sent.
    pub(super) maybe_started: bool,
    pub(super) started: bool,
    /// The server said that it runs, after a `/start` of unknown fate.
    pub(super) seen_running: bool,
    pub(super) run: Option<OpId>,
    pub(super) runs: u8,
    pub(super) outcome: Option<RunOutcome>,
    pub(super) have: u32,
    pub(super) sent: u32,
    pub(super) post: Option<OpId>,
    /// The fate of a post is not known.
    pub(super) post_unknown: bool,
    pub(super) session: bool,
    pub(super) pin: Stage,
    pub(super) usage: Stage,
    pub(super) usage_due: bool,
    /// Nothing waits for it any more.
    pub(super) usage_late: bool,
    pub(super) settling: Option<Instant>,
    pub(super) unwind: Stage,
    pub(super) seal: Stage,
    pub(super) report: Report,
    /// The server said that the task has ended.
    pub(super) server_ended: bool,
    /// The server said that the task is not this claim's any more.
    pub(super) lost: bool,
    pub(super) released: bool,
    pub(super) forgotten: bool,
    /// The server may have said that it wants to hear nothing.
    gone: bool,
}

/// Its terminal report.
#[derive(Clone, Debug, Default)]
pub(super) struct Report {
    pub(super) kind: Option<ReportKind>,
    pub(super) open: Option<OpId>,
    pub(super) first: Option<Instant>,
    pub(super) tries: u32,
    pub(super) taken: bool,
    /// It was answered with a row that is somebody else's by now.
    pub(super) superseded: bool,
    /// The last one was refused for good; and whether because there is no such task.
    pub(super) refused: Option<bool>,
    pub(super) late: bool,
    /// Whether a try was answered, or timed out.
    pub(super) answered: bool,
}

impl Life {
    pub(super) fn new(
        offer: Offer,
        provider: Option<Provider>,
        slot: Option<SlotIndex>,
        now: Instant,
    ) -> Self {
        let roots = offer.roots().cloned().collect();
        let taken = slot.is_some();
        Self {
            taken,
            waits: taken && offer.in_place,
            parked: false,
            marked: taken && !offer.in_place,
            resolve: Stage::Not,
            granted_at: now,
            refused: false,
            offer,
            provider,
            dir: slot.is_some(),
            slot,
            kept: None,
            recovered: None,
            reported_before: false,
            roots,
            ending: false,
            forced: None,
            ended: false,
            answered: false,
            prepare: Stage::Not,
            prepare_at: now,
            lease: None,
            lease_at: now,
            start: None,
            maybe_started: false,
            started: false,
            seen_running: false,
            run: None,
            runs: 0,
            outcome: None,
            have: 0,
            sent: 0,
            post: None,
            post_unknown: false,
            session: false,
            pin: Stage::Not,
            usage: Stage::Not,
            usage_due: false,
            usage_late: false,
            settling: None,
            unwind: Stage::Not,
            seal: Stage::Not,
            report: Report::default(),
            server_ended: false,
            lost: false,
            released: false,
            forgotten: false,
            gone: false,
        }
    }

    /// Whether nothing was begun in its directory.
    pub(super) fn is_bare(&self) -> bool {
        self.prepare == Stage::Not && self.recovered.is_none()
    }

    /// Whether it was to work in a directory of the user, and has touched nothing yet.
    pub(super) const fn is_untouched(&self) -> bool {
        self.offer.in_place && self.taken && !self.marked
    }

    /// Whether its lease is to be kept.
    pub(super) fn is_leased(&self) -> bool {
        (self.waits || self.marked)
            && self.prepare != Stage::Failed
            && !(self.started || self.ending || self.released)
            && self.runs == 0
            && self.settling.is_none()
            && self.report.kind.is_none()
    }

    /// The server granted the lease, or did not.
    pub(super) const fn granted(&mut self, ok: bool, now: Instant) {
        self.refused = !ok;
        if ok {
            self.granted_at = now;
        }
    }

    /// Whether nothing has to be reported any more.
    pub(super) fn is_reported(&self) -> bool {
        self.report.taken
            || self.report.refused.is_some_and(|gone| gone || self.report.kind != Some(ReportKind::Complete))
    }

    /// Whether its end is still to be told to the server.
    pub(super) fn is_owed(&self) -> bool {
        !self.is_reported() && (!self.released || self.report.late)
    }

    /// Whether nothing may be said about its end.
    pub(super) const fn may_be_silent(&self) -> bool {
        self.lost || (self.report.kind.is_none() && (self.gone || self.server_ended))
    }

    /// Whether the server knows no such task: what is left of its messages goes with it.
    pub(super) fn is_gone(&self) -> bool {
        self.report.refused == Some(true)
    }

    /// A post of messages ended.
    pub(super) fn posted(&mut self, upto: u32, result: &Result<ApiReply, ApiError>) {
        self.post = None;
        match result {
            Ok(ApiReply::Known { upto: part }) => self.sent = self.sent.max((*part).min(upto)),
            Err(ApiError::Unknown | ApiError::Undecodable) => self.post_unknown = true,
            Err(error) if error.is_passing() => {}
            // Refused for good: skipped.
            Ok(_) | Err(_) => self.sent = self.sent.max(upto),
        }
    }

    /// The server said which messages it has.
    pub(super) fn known(&mut self, result: &Result<ApiReply, ApiError>) {
        self.post = None;
        match result {
            Ok(ApiReply::Known { upto }) => {
                // More than is known here was sent by an earlier process.
                self.post_unknown = *upto > self.have;
                self.sent = (*upto).clamp(self.sent, self.have);
            }
            Err(error) if error.is_passing() => {}
            Ok(_) | Err(_) => self.post_unknown = false,
        }
    }

    /// The server said where the task is.
    pub(super) fn status(&mut self, result: &Result<ApiReply, ApiError>) {
        if self.report.kind.is_some() || self.seal != Stage::Not {
            return;
        }
        match result {
            Ok(ApiReply::Task { status }) if status.is_terminal() => self.server_ended = true,
            Ok(ApiReply::Task { status: TaskStatus::Queued }) if self.settling.is_none() => self.lost = true,
            Ok(ApiReply::Task { status: TaskStatus::Running })
                if self.maybe_started && self.start.is_none() =>
            {
                self.seen_running = true;
            }
            Ok(ApiReply::Task { status: TaskStatus::Queued | TaskStatus::Deferred }) => self.gone = true,
            Err(error) if error.refusal() == Some(Refusal::TaskGone) => self.gone = true,
            _ => {}
        }
    }

    /// `/start` ended.
    pub(super) fn start_ended(&mut self, result: &Result<ApiReply, ApiError>) {
        self.start = None;
        match result {
            Ok(_) => self.started = true,
            Err(ApiError::NotSent) => {}
            Err(error) if error.is_passing() && error.refusal().is_none() => self.maybe_started = true,
            Err(_) => {}
        }
    }

    /// A terminal report ended.
    pub(super) fn report_ended(&mut self, result: &Result<ApiReply, ApiError>, found: &mut Found) {
        self.report.open = None;
        self.report.answered = true;
        match result {
            // The row is as it was.
            Ok(ApiReply::Task { status: TaskStatus::Running }) => {}
            Ok(reply) => {
                found.require(!self.report.taken, "I8", || {
                    format!("claim {} has two accepted reports", self.offer.claim.0)
                });
                self.report.taken = true;
                self.report.superseded = matches!(
                    reply,
                    ApiReply::Task {
                        status: TaskStatus::Queued
                            | TaskStatus::Deferred
                            | TaskStatus::Dispatched
                            | TaskStatus::WaitingLocalDirectory
                    }
                );
            }
            Err(error) if error.is_passing() => {}
            Err(error) => self.report.refused = Some(error.refusal() == Some(Refusal::TaskGone)),
        }
    }

    /// Whether everything that the agent said is with the server.
    pub(super) const fn is_drained(&self) -> bool {
        self.sent == self.have && self.post.is_none()
    }
}
