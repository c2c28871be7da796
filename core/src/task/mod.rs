//! One task, from its claim to the end of everything it holds.

mod directory;
mod idle;
#[cfg(test)]
mod laws;
mod lease;
mod outbox;
mod phase;
pub(crate) mod recover;
pub(crate) mod report;
mod run;
mod settle;
mod start;
mod watch;

use crate::effect::{Effect, EndReason, Fact, FsCall, Keep, PhaseName, ReportKind};
use crate::env::Cx;
use crate::error::{ApiError, FsError};
use crate::event::{ApiReply, ClaimKey, FsReply, Offer};
use crate::id::{EnvRoot, OpId, Provider, RuntimeId, SlotIndex, TaskId};
use crate::late::Entry;
use crate::op::{FsOp, TaskOp};
use crate::reason::FailReason;
use crate::roots::EnvRoots;
use crate::timer::TimerKey;
use crate::token::{EnvRootGuard, ParkPermit, PathGuard, Prepared, SlotPermit};
use lease::Lease;
use outbox::{Messages, Side, SideKind};
use phase::Phase;
use report::Report;
use serde::{Deserialize, Serialize};
use watch::{Seen, Watch};

/// A task that was taken.
#[derive(Debug, Hash, Serialize, Deserialize)]
pub(crate) struct Task {
    claim: ClaimKey,
    id: TaskId,
    runtime: RuntimeId,
    provider: Option<Provider>,
    root: EnvRoot,
    prior: Option<EnvRoot>,
    slot: Option<SlotPermit>,
    marks: Vec<EnvRootGuard>,
    /// The user's directory that it works in, and nobody else.
    #[serde(default)]
    directory: Option<PathGuard>,
    /// Held for as long as it waits without a slot.
    #[serde(default)]
    park: Option<ParkPermit>,
    phase: Phase,
    ending: Option<EndReason>,
    watch: Watch,
    messages: Messages,
    usage: Side,
    pin: Side,
    /// Whether the server does not count the task as this claim's any more: then nothing is reported.
    lost: bool,
    /// Whether the collector's record is due at the end.
    record: bool,
    /// Whether the daemon stops: nothing is launched any more.
    stopping: bool,
    /// Whether anything was begun in its directory, by this process or an earlier one: it then has to be unwound and sealed.
    touched: bool,
    /// Whether an agent was launched for it, by this process or an earlier one.
    ran: bool,
    /// What the late outbox has to take over, and how often it was tried.
    late_report: Option<(ReportKind, u32)>,
}

/// What a finished task hands back.
#[derive(Debug)]
pub(crate) struct Remains {
    pub(crate) claim: ClaimKey,
    pub(crate) id: TaskId,
    pub(crate) runtime: RuntimeId,
    pub(crate) provider: Option<Provider>,
    pub(crate) slot: Option<SlotPermit>,
    pub(crate) marks: Vec<EnvRootGuard>,
    pub(crate) late: Option<Entry>,
}

impl Task {
    fn new(offer: Offer, provider: Option<Provider>, slot: Option<SlotPermit>) -> Self {
        Self {
            claim: offer.claim,
            id: offer.task,
            runtime: offer.runtime,
            provider,
            prior: offer.prior.filter(|prior| *prior != offer.root),
            root: offer.root,
            slot,
            marks: Vec::new(),
            directory: None,
            park: None,
            phase: Phase::Moving,
            ending: None,
            watch: Watch::default(),
            messages: Messages::default(),
            usage: Side::default(),
            pin: Side::default(),
            lost: false,
            stopping: false,
            touched: false,
            record: false,
            ran: false,
            late_report: None,
        }
    }

    /// Takes a task: marks its directories, then prepares. One that works in a directory of the user has its turn there first.
    pub(crate) fn admit(
        cx: &mut Cx<'_>,
        offer: Offer,
        provider: Provider,
        slot: SlotPermit,
        roots: &mut EnvRoots,
    ) -> Self {
        let (index, in_place) = (slot.index, offer.in_place);
        cx.emit(Effect::Keep {
            claim: offer.claim,
            entry: Keep::Claimed { offer: offer.clone(), provider: provider.clone() },
        });
        let mut task = Self::new(offer, Some(provider), Some(slot));
        let (claim, id, runtime) = (task.claim, task.id.clone(), task.runtime.clone());
        cx.fact(Fact::Admitted { claim, task: id, runtime, slot: index });
        task.watch = Watch::start(cx, claim);
        let lease = Lease::start(cx, claim);
        if in_place {
            task.resolve(cx, lease);
        } else {
            task.mark_and_prepare(cx, lease, roots);
        }
        task
    }

    fn mark(&mut self, roots: &mut EnvRoots) {
        for root in [Some(self.root.clone()), self.prior.clone()].into_iter().flatten() {
            self.marks.extend(roots.acquire(&root, self.claim));
        }
    }

    fn mark_and_prepare(&mut self, cx: &mut Cx<'_>, lease: Lease, roots: &mut EnvRoots) {
        let claim = self.claim;
        self.mark(roots);
        cx.phase(claim, PhaseName::AwaitingRoot);
        // The time of the preparation begins here, whatever is waited for.
        let within = cx.timing().prepare;
        cx.arm(TimerKey::Prepare(claim), within);
        self.phase = Phase::AwaitingRoot { lease };
        self.prepare_once_marked(cx);
    }

    /// Fails a task back without running it: it needs neither slot nor directory. `provider` is that of its runtime, if it is here.
    pub(crate) fn hand_back(
        cx: &mut Cx<'_>,
        offer: Offer,
        provider: Option<Provider>,
        reason: FailReason,
    ) -> Self {
        let provider = provider.unwrap_or_else(|| Provider::new(""));
        cx.emit(Effect::Keep { claim: offer.claim, entry: Keep::Claimed { offer: offer.clone(), provider } });
        Self::fail_back(cx, offer, reason)
    }

    fn fail_back(cx: &mut Cx<'_>, offer: Offer, reason: FailReason) -> Self {
        let mut task = Self::new(offer, None, None);
        cx.fact(Fact::HandedBack { claim: task.claim, task: task.id.clone(), reason });
        task.keep_ended(cx, Some(ReportKind::Fail { reason }));
        task.enter_report(cx, ReportKind::Fail { reason });
        task
    }

    /// Has the outcome written down, so that it outlives this process: before it is told, and whenever it changes.
    fn keep_ended(&self, cx: &mut Cx<'_>, report: Option<ReportKind>) {
        let (_, have, _) = self.messages.rest();
        let path = self.directory.as_ref().filter(|_| self.touched).map(|lock| lock.path.clone());
        let usage = !self.usage.is_settled() || self.usage.is_late();
        let entry = Keep::Ended { report, have, usage, ran: self.ran, path };
        cx.emit(Effect::Keep { claim: self.claim, entry });
    }

    pub(crate) const fn id(&self) -> &TaskId {
        &self.id
    }

    pub(crate) const fn runtime(&self) -> &RuntimeId {
        &self.runtime
    }

    pub(crate) const fn provider(&self) -> Option<&Provider> {
        self.provider.as_ref()
    }

    pub(crate) fn slot(&self) -> Option<SlotIndex> {
        self.slot.as_ref().map(|slot| slot.index)
    }

    pub(crate) fn marks(&self) -> u64 {
        self.marks.len() as u64
    }

    /// The directories that are marked for it.
    pub(crate) fn marked_roots(&self) -> impl Iterator<Item = &EnvRoot> {
        self.marks.iter().map(|mark| &mark.root)
    }

    /// The directories that it marks, or will.
    pub(crate) fn wanted_roots(&self) -> impl Iterator<Item = &EnvRoot> {
        std::iter::once(&self.root).chain(&self.prior)
    }

    /// What its terminal report is, once it is being sent.
    pub(crate) const fn report_kind(&self) -> Option<ReportKind> {
        if let Phase::Reporting(report) = &self.phase { Some(report.kind()) } else { None }
    }

    pub(crate) fn phase_name(&self) -> Option<PhaseName> {
        self.phase.name()
    }

    /// Whether nothing is left to do here: a post of messages that the late outbox would have to follow must have ended.
    pub(crate) const fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Over) && !self.messages.is_posting()
    }

    /// Whether its end is still to be told to the server.
    pub(crate) fn owes_report(&self) -> bool {
        match &self.phase {
            Phase::Settling(settling) => settling.verdict.is_some(),
            Phase::Sealing { .. } | Phase::Over => self.late_report.is_some(),
            _ => true,
        }
    }

    fn wanted_marks(&self) -> usize {
        1 + usize::from(self.prior.is_some())
    }

    /// A mark that waited for the collector is granted.
    pub(crate) fn marked(&mut self, cx: &mut Cx<'_>, mark: EnvRootGuard) {
        self.marks.push(mark);
        self.prepare_once_marked(cx);
    }

    fn prepare_once_marked(&mut self, cx: &mut Cx<'_>) {
        if !matches!(self.phase, Phase::AwaitingRoot { .. }) || self.marks.len() < self.wanted_marks() {
            return;
        }
        let Some(slot) = self.slot() else { return };
        let Phase::AwaitingRoot { lease } = std::mem::replace(&mut self.phase, Phase::Moving) else { return };
        let claim = self.claim;
        self.touched = true;
        let op = cx.fs(claim, FsOp::Prepare, FsCall::Prepare { claim, root: self.root.clone(), slot });
        cx.phase(claim, PhaseName::Preparing);
        self.phase = Phase::Preparing { op, lease };
    }

    /// Work on the disk ended.
    pub(crate) fn fs_ended(
        &mut self,
        cx: &mut Cx<'_>,
        roots: &mut EnvRoots,
        op: OpId,
        kind: FsOp,
        result: Result<FsReply, FsError>,
    ) {
        match kind {
            // Routed to where the lines for directories are.
            FsOp::Resolve => {}
            FsOp::Prepare => self.prepared(cx, roots, op, result),
            FsOp::Unwind => self.unwound(cx, op),
            FsOp::Seal => {
                if matches!(self.phase, Phase::Sealing { op: open } if open == op) {
                    self.messages.halt(cx, self.claim);
                    self.phase = Phase::Over;
                }
            }
        }
    }

    fn prepared(
        &mut self,
        cx: &mut Cx<'_>,
        roots: &mut EnvRoots,
        op: OpId,
        result: Result<FsReply, FsError>,
    ) {
        if !matches!(&self.phase, Phase::Preparing { op: open, .. } if *open == op) {
            return;
        }
        let Phase::Preparing { lease, .. } = std::mem::replace(&mut self.phase, Phase::Moving) else {
            return;
        };
        match result {
            Ok(FsReply::Prepared { root }) => {
                if root != self.root && self.prior.as_ref() != Some(&root) {
                    let Some(mark) = roots.acquire(&root, self.claim) else {
                        // The collector deletes it at this moment: it cannot be worked in.
                        roots.forget_waiter(self.claim);
                        self.prepare_failed(cx, lease, FailReason::RuntimeOffline);
                        return;
                    };
                    self.marks.push(mark);
                }
                self.enter_start(cx, Prepared::mint(root), lease);
            }
            Ok(_) => self.prepare_failed(cx, lease, FailReason::PrepareFailed),
            Err(FsError::TimedOut) => self.prepare_failed(cx, lease, FailReason::Timeout),
            Err(FsError::Cancelled) => self.prepare_failed(cx, lease, FailReason::RuntimeOffline),
            Err(FsError::Failed { reason }) => self.prepare_failed(cx, lease, reason),
        }
    }

    fn prepare_failed(&mut self, cx: &mut Cx<'_>, lease: Lease, reason: FailReason) {
        // A refresh that is on its way changes nothing any more: its answer finds no phase that waits for it.
        let _stopped = lease.stop(cx, self.claim);
        let verdict = self.verdict(ReportKind::Fail { reason });
        self.enter_settle(cx, verdict, false);
    }

    /// What is reported, given what would be if nobody had ended the task; `None` if nothing is.
    fn verdict(&self, natural: ReportKind) -> Option<ReportKind> {
        Some(match self.ending {
            Some(EndReason::Server) if self.lost => return None,
            Some(EndReason::Server) => ReportKind::CancelAck,
            Some(EndReason::Idle) => ReportKind::Fail { reason: FailReason::IdleWatchdog },
            Some(EndReason::TooLong | EndReason::PrepareTimeout) => {
                ReportKind::Fail { reason: FailReason::Timeout }
            }
            // A stop that came too late to change anything leaves the result as it is.
            Some(EndReason::Stop) if natural == ReportKind::Complete => natural,
            Some(EndReason::Stop) => ReportKind::Fail { reason: FailReason::RuntimeOffline },
            None => natural,
        })
    }

    /// Ends the task before its time. A later reason of higher rank takes the place of an earlier one.
    pub(crate) fn end(&mut self, cx: &mut Cx<'_>, why: EndReason) {
        if matches!(
            self.phase,
            Phase::Settling(_) | Phase::Reporting(_) | Phase::Sealing { .. } | Phase::Over
        ) || self.ending >= Some(why)
        {
            return;
        }
        let first = self.ending.replace(why).is_none();
        cx.fact(Fact::Ending { claim: self.claim, why });
        if first {
            self.interrupt(cx);
        }
    }

    fn interrupt(&mut self, cx: &mut Cx<'_>) {
        cx.disarm(&TimerKey::Prepare(self.claim));
        cx.disarm(&TimerKey::Lease(self.claim));
        match &mut self.phase {
            Phase::AwaitingRoot { .. } => self.wait_no_more(cx),
            Phase::AwaitingDirectory { .. } | Phase::AwaitingSlot { .. } => {
                self.quit(cx, FailReason::RuntimeOffline);
            }
            Phase::Resolving { op, .. } | Phase::Preparing { op, .. } => {
                let op = *op;
                cx.cancel(op);
            }
            Phase::Starting { .. } => self.interrupt_start(cx),
            Phase::Running(_) => self.interrupt_run(cx),
            Phase::LeaseEnding { .. }
            | Phase::Moving
            | Phase::Settling(_)
            | Phase::Reporting(_)
            | Phase::Sealing { .. }
            | Phase::Over => {}
        }
    }

    /// Ends the wait for the directory: nothing was touched, so nothing is unwound.
    fn wait_no_more(&mut self, cx: &mut Cx<'_>) {
        if let Phase::AwaitingRoot { lease } = std::mem::replace(&mut self.phase, Phase::Moving) {
            let _stopped = lease.stop(cx, self.claim);
        }
        if let Some(kind) = self.verdict(ReportKind::Fail { reason: FailReason::RuntimeOffline }) {
            self.keep_ended(cx, Some(kind));
            self.enter_report(cx, kind);
        } else {
            self.watch.stop(cx, self.claim);
            self.phase = Phase::Over;
        }
    }

    /// A hint or a reconnect says that the server may have ended the task.
    pub(crate) fn look(&mut self, cx: &mut Cx<'_>) {
        self.watch.hinted(cx, self.claim);
    }

    /// There is no room for its look now. Returns whether it is to have a place in the line.
    pub(crate) const fn queue_look(&mut self) -> bool {
        self.watch.queue()
    }

    /// The server takes the credential again: what waited for that goes out.
    pub(crate) fn unbarred(&mut self, cx: &mut Cx<'_>) {
        let claim = self.claim;
        self.renew_lease(cx);
        self.start_unbarred(cx);
        self.messages.unbarred(cx, claim);
        self.usage.unbarred(cx, claim, SideKind::Usage);
        self.pin.unbarred(cx, claim, SideKind::Pin);
        if let Phase::Reporting(report) = &mut self.phase {
            report.unbarred(cx, claim);
        }
    }

    /// The server may have waited for its lease.
    pub(crate) fn renew_lease(&mut self, cx: &mut Cx<'_>) {
        let claim = self.claim;
        if let Some(lease) = self.phase.lease_mut().filter(|_| self.ending.is_none()) {
            lease.renew(cx, claim);
        }
    }

    /// A request about this task ended.
    pub(crate) fn api_ended(
        &mut self,
        cx: &mut Cx<'_>,
        op: OpId,
        kind: TaskOp,
        result: Result<ApiReply, ApiError>,
    ) {
        let claim = self.claim;
        match kind {
            TaskOp::Lease => self.lease_ended(cx, op, &result),
            TaskOp::WaitDirectory => self.wait_told(cx, &result),
            TaskOp::Start => self.start_ended(cx, op, &result),
            TaskOp::StartStatus => self.start_status(cx, op, &result),
            TaskOp::Watch => self.watched(cx, op, &result),
            TaskOp::Check => self.checked(cx, op, &result),
            TaskOp::Messages { upto } => {
                self.messages.posted(cx, claim, op, upto, result);
                self.settle_on(cx);
            }
            TaskOp::Known => {
                self.messages.known(cx, claim, op, result);
                self.settle_on(cx);
            }
            TaskOp::Usage => {
                self.usage.replied(cx, claim, SideKind::Usage, op, result);
                self.settle_on(cx);
            }
            TaskOp::Pin => self.pin.replied(cx, claim, SideKind::Pin, op, result),
            TaskOp::Report => self.report_ended(cx, op, result),
        }
    }

    fn watched(&mut self, cx: &mut Cx<'_>, op: OpId, result: &Result<ApiReply, ApiError>) {
        if let Phase::Settling(settling) = &mut self.phase
            && settling.verdict.is_some()
            && matches!(result, Ok(ApiReply::Task { status }) if status.is_terminal())
        {
            // The last look came back after the run had ended: what it saw still counts.
            settling.verdict = Some(ReportKind::CancelAck);
            self.record = false;
            self.keep_ended(cx, Some(ReportKind::CancelAck));
        }
        match self.watch.replied(cx, self.claim, op, result) {
            Seen::Stands => {}
            Seen::Ended => self.end(cx, EndReason::Server),
            Seen::Lost => {
                self.lost = true;
                self.end(cx, EndReason::Server);
            }
        }
    }

    /// A deadline of this task passed.
    pub(crate) fn due(&mut self, cx: &mut Cx<'_>, timer: &TimerKey) {
        let claim = self.claim;
        match timer {
            TimerKey::Prepare(_) => self.end(cx, EndReason::PrepareTimeout),
            TimerKey::Lease(_) => {
                if let Some(lease) = self.phase.lease_mut() {
                    lease.due(cx, claim);
                }
            }
            TimerKey::StartRetry(_) => self.start_retry(cx),
            TimerKey::Watch(_) => self.watch.check(cx, claim),
            TimerKey::Flush(_) => self.messages.due(cx, claim),
            TimerKey::UsageRetry(_) => self.usage.send(cx, claim, SideKind::Usage),
            TimerKey::PinRetry(_) => self.pin.send(cx, claim, SideKind::Pin),
            TimerKey::Drain(_) => self.drain_due(cx),
            TimerKey::RunEnd(_) => self.run_end_due(cx),
            TimerKey::Idle(_) => self.idle_due(cx),
            TimerKey::RunLimit(_) => self.run_limit_due(cx),
            TimerKey::ReportRetry(_) => {
                if let Phase::Reporting(report) = &mut self.phase {
                    report.send(cx, claim);
                }
            }
            _ => {}
        }
    }

    fn enter_report(&mut self, cx: &mut Cx<'_>, kind: ReportKind) {
        self.watch.stop(cx, self.claim);
        cx.phase(self.claim, PhaseName::Reporting);
        let mut report = Report::new(cx, kind);
        report.send(cx, self.claim);
        self.phase = Phase::Reporting(report);
    }

    fn report_ended(&mut self, cx: &mut Cx<'_>, op: OpId, result: Result<ApiReply, ApiError>) {
        let Phase::Reporting(report) = &mut self.phase else { return };
        match report.replied(cx, self.claim, op, result) {
            report::Step::Wait => {}
            report::Step::Another => {
                let kind = report.kind();
                self.keep_ended(cx, Some(kind));
                if let Phase::Reporting(report) = &mut self.phase {
                    report.send(cx, self.claim);
                }
            }
            report::Step::Settled => {
                // A process that is killed before the seal must not have it reported twice.
                self.keep_ended(cx, None);
                self.enter_seal(cx);
            }
            report::Step::Late => {
                self.late_report = Some((report.kind(), report.tries()));
                self.enter_seal(cx);
            }
        }
    }

    fn enter_seal(&mut self, cx: &mut Cx<'_>) {
        if !self.touched {
            self.phase = Phase::Over;
            return;
        }
        let (claim, record) = (self.claim, self.record);
        cx.phase(claim, PhaseName::Sealing);
        let op = cx.fs(claim, FsOp::Seal, FsCall::Seal { claim, record });
        self.phase = Phase::Sealing { op };
    }

    /// Takes the finished task apart.
    pub(crate) fn remains(self, cx: &mut Cx<'_>) -> Remains {
        let claim = self.claim;
        for timer in [
            TimerKey::Prepare(claim),
            TimerKey::Lease(claim),
            TimerKey::StartRetry(claim),
            TimerKey::Watch(claim),
            TimerKey::Flush(claim),
            TimerKey::UsageRetry(claim),
            TimerKey::PinRetry(claim),
            TimerKey::Drain(claim),
            TimerKey::RunEnd(claim),
            TimerKey::Idle(claim),
            TimerKey::RunLimit(claim),
            TimerKey::ReportRetry(claim),
        ] {
            cx.disarm(&timer);
        }
        let (sent, have, ask) = self.messages.rest();
        let usage = self.usage.is_late();
        let owes = self.late_report.is_some() || sent < have || usage;
        let late = owes.then(|| Entry {
            claim,
            task: self.id.clone(),
            runtime: self.runtime.clone(),
            report: self.late_report.map(|(kind, _)| kind),
            sent,
            have,
            ask,
            usage,
            tries: self.late_report.map_or(0, |(_, tries)| tries),
            spent: false,
        });
        Remains {
            claim,
            id: self.id,
            runtime: self.runtime,
            // A task that waited for its directory without a slot has given back its room already.
            provider: self.provider.filter(|_| self.slot.is_some() || self.ran),
            slot: self.slot,
            marks: self.marks,
            late,
        }
    }
}
