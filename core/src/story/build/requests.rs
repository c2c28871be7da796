//! Requests: sent, ended, and what their ends say of a task.

use super::course::{How, Tried};
use super::scene::Scene;
use crate::effect::{ApiCall, FsCall, LaunchCall};
use crate::error::{ApiError, FsError};
use crate::event::{ApiReply, FsReply, RunEvent, TaskStatus};
use crate::id::{EnvRoot, OpId, RuntimeId};
use crate::plane::limits::PREPARE_LEASE;
use crate::story::{
    Domain, End, Ending, Grant, Launch, Request, RequestIx, RequestKind, RuntimeIx, Span, TaskIx,
};
use crate::time::Instant;

/// What a request is about, beside what it asks for.
#[derive(Clone, Debug, Default)]
pub(super) struct About {
    pub(super) task: Option<TaskIx>,
    pub(super) runtime: Option<RuntimeIx>,
    pub(super) other: Option<String>,
    pub(super) deadline: Option<Instant>,
}

const fn runtime_of(call: &ApiCall) -> Option<&RuntimeId> {
    match call {
        ApiCall::RecoverOrphans { runtime }
        | ApiCall::Beat { runtime }
        | ApiCall::ActionResult { runtime, .. } => Some(runtime),
        ApiCall::ClaimOne(call) => Some(call.runtime()),
        _ => None,
    }
}

fn other_of(call: &ApiCall) -> Option<String> {
    Some(match call {
        ApiCall::Profiles { workspace } | ApiCall::Register { workspace, .. } => workspace.to_string(),
        ApiCall::Deregister { runtimes, .. } => {
            runtimes.iter().map(RuntimeId::as_str).collect::<Vec<_>>().join(" ")
        }
        ApiCall::Messages { after, upto, .. } => format!("{}..{upto}", after.saturating_add(1)),
        ApiCall::Fail { reason, .. } => reason.as_str().to_owned(),
        ApiCall::Collectable { root } => root.to_string(),
        ApiCall::ActionResult { action, .. } => action.to_string(),
        _ => return None,
    })
}

impl Scene<'_> {
    /// A request is on its way.
    pub(super) fn open(&mut self, op: OpId, kind: RequestKind, about: About, span: Span) -> RequestIx {
        let ix = RequestIx::next(&self.story.requests);
        let About { task, runtime, other, deadline } = about;
        self.story.requests.push(Request {
            life: self.course.life,
            op,
            kind,
            task,
            runtime,
            about: other,
            span,
            deadline,
            cancelled: None,
            ending: None,
        });
        self.course.ops.insert(op, ix);
        self.course.open.insert(op);
        if let Some(task) = task {
            self.story[task].requests.push(ix);
        }
        ix
    }

    pub(super) fn api_sent(&mut self, op: OpId, call: &ApiCall, deadline: Instant) {
        let kind = RequestKind::from(call);
        let late = kind.is_report() || matches!(Tried::of(kind), Some(Tried::Messages | Tried::Usage));
        let task = call.claim();
        let task = task.and_then(|claim| if late { self.perhaps_late(claim) } else { self.task(claim) });
        let runtime = runtime_of(call).map(|runtime| self.runtime(runtime));
        let about = About { task, runtime, other: other_of(call), deadline: Some(deadline) };
        let request = self.open(op, kind, about, Span::from(self.at));
        self.claim_sent(request, call);
        let Some(task) = task else { return };
        self.course.step.touched.insert(task);
        if let Some(what) = Tried::of(kind) {
            self.end_retry(task, what, How::Over);
        }
        if let ApiCall::WaitDirectory { holder: Some(holder), .. } = call {
            let holder = self.task(*holder);
            self.waits_for_directory(task, holder, false);
        }
        if kind == RequestKind::Status && self.course.step.start_of == Some(task) {
            self.course.step.start_of = None;
            self.course.held(task).asking = Some(request);
        }
    }

    pub(super) fn fs_sent(&mut self, op: OpId, call: &FsCall) {
        let task = call.claim().and_then(|claim| self.task(claim));
        let runtime = if let FsCall::Act { runtime, .. } = call { Some(self.runtime(runtime)) } else { None };
        let other = match call {
            FsCall::Collect(call) => {
                self.course.freeing.entry(call.root().clone()).or_default();
                Some(call.root().to_string())
            }
            FsCall::Act { action, .. } => Some(action.id.to_string()),
            FsCall::Prepare { root, .. } => Some(root.to_string()),
            _ => None,
        };
        let about = About { task, runtime, other, deadline: None };
        self.open(op, RequestKind::from(call), about, Span::from(self.at));
        if let (FsCall::Prepare { root, .. }, Some(task)) = (call, task) {
            // It is marked, by now at the latest.
            self.story[task].root.get_or_insert_with(|| root.clone());
            let marked = self.marked_by_now(task);
            self.mark_once(task, root, marked);
        }
    }

    pub(super) fn launched(&mut self, op: OpId, call: &LaunchCall) {
        let task = self.task(call.claim());
        let about = About { task, ..About::default() };
        let span = Span::from(self.at);
        let request = self.open(op, RequestKind::Run, about, span);
        let Some(task) = task else { return };
        self.course.held(task);
        self.story[task].launches.push(Launch {
            request,
            slot: Some(call.slot()),
            fresh: call.fresh(),
            attached: call.attached().is_some(),
            span,
            launched: None,
            spoke: None,
            answered: None,
            outcome: None,
        });
    }

    pub(super) fn cancelled(&mut self, op: OpId) {
        if let Some(request) = self.course.ops.get(&op).copied() {
            self.story[request].cancelled.get_or_insert(self.at);
        }
    }

    /// The request that an event is about, if it is on its way. One that was never told of was sent before the records begin, or while steps
    /// were lost.
    fn on_its_way(&mut self, op: OpId, domain: Domain) -> Option<RequestIx> {
        if let Some(request) = self.course.ops.get(&op).copied() {
            let told = &self.story[request];
            let fits = told.kind.domain() == domain;
            if self.course.step.stray && self.course.doubt(told.span.begin.first().n).is_some() {
                // It has ended while steps were lost, and this is nonsense.
                self.lose_request(request);
                return None;
            }
            return Some(request).filter(|_| fits && self.course.open.contains(&op));
        }
        if self.course.is_whole || self.course.step.stray {
            return None;
        }
        let kind = match domain {
            Domain::Server => RequestKind::UnknownApi,
            Domain::Disk => RequestKind::UnknownFs,
            Domain::Agent => RequestKind::Run,
        };
        let span = self.already();
        Some(self.open(op, kind, About::default(), span))
    }

    fn close(&mut self, request: RequestIx, ending: Ending) {
        let at = self.at;
        let request = &mut self.story[request];
        request.span.close(End::Seen(at));
        request.ending = Some(ending);
        self.course.open.remove(&request.op);
    }

    pub(super) fn lose_request(&mut self, request: RequestIx) {
        let told = &mut self.story[request];
        let Some(before) = self.course.doubt(told.span.begin.first().n) else { return };
        told.span.close(End::After(before));
        let (op, task, kind) = (told.op, told.task, told.kind);
        self.course.open.remove(&op);
        if let (Some(task), RequestKind::Run) = (task, kind) {
            self.launch_ended(task, request, End::After(before));
        }
        self.claim_lost(request);
    }

    pub(super) fn api_ended(&mut self, op: OpId, r: &Result<ApiReply, ApiError>) {
        let Some(request) = self.on_its_way(op, Domain::Server) else { return };
        let ending = r.as_ref().map_or_else(|error| Ending::Api(*error), |_| Ending::Done);
        self.close(request, ending);
        let claims = matches!(r, Ok(ApiReply::Claimed { .. }));
        if self.course.header.is_imported() {
            // The answer is all that there is of it.
            self.story[request].kind = match r {
                Ok(ApiReply::Claimed { .. }) => RequestKind::Claim,
                Ok(ApiReply::Registered { .. }) => RequestKind::Register,
                Ok(ApiReply::Task { .. }) => RequestKind::Status,
                _ => self.story[request].kind,
            };
        }
        let (kind, task) = (self.story[request].kind, self.story[request].task);
        if kind.is_claim() || (claims && kind == RequestKind::UnknownApi) {
            self.claim_ended(request, ending, r.as_ref().ok());
        }
        let Some(task) = task else { return };
        if !self.course.alive.contains_key(&task) {
            return;
        }
        self.course.step.touched.insert(task);
        match kind {
            RequestKind::Lease | RequestKind::WaitDirectory if ending.is_done() => {
                self.lease_granted(task, request);
            }
            RequestKind::Start => self.start_ended(task, request, ending),
            RequestKind::Status => self.status_told(task, request, r),
            _ => {}
        }
        let passing = r.as_ref().err().is_some_and(|error| error.is_passing());
        let unchanged = kind.is_report() && matches!(r, Ok(ApiReply::Task { status: TaskStatus::Running }));
        if let Some(what) = Tried::of(kind).filter(|what| *what != Tried::Start && (passing || unchanged)) {
            self.try_failed(task, what, request, ending);
        }
    }

    /// The server granted the lease: it counts from when that was asked for.
    pub(super) fn lease_granted(&mut self, task: TaskIx, request: RequestIx) {
        let at = self.at;
        let expiry = self.sent(request).map(|sent| sent.at.after(PREPARE_LEASE));
        let held = self.course.held(task);
        let before = std::mem::replace(&mut held.expiry, expiry);
        let margin_ms = before.map(|before| margin(before, at.at));
        if self.story[task].lease.over.is_none() {
            self.story[task].lease.grants.push(Grant { at, by: Some(request), margin_ms });
        }
    }

    /// The lease is not needed any more: because the task is started, or because it is to end.
    pub(super) fn lease_over(&mut self, task: TaskIx, started: bool) {
        let expiry = self.course.alive.get_mut(&task).and_then(|held| held.expiry.take());
        let lease = &mut self.story[task].lease;
        if lease.over.is_none() && !lease.grants.is_empty() {
            lease.over = Some((self.at, expiry.filter(|_| started).map(|expiry| margin(expiry, self.at.at))));
        }
    }

    fn start_ended(&mut self, task: TaskIx, request: RequestIx, ending: Ending) {
        if ending.is_done() {
            self.lease_over(task, true);
            self.end_retry(task, Tried::Start, How::Over);
            self.course.held(task).accepted = true;
            return;
        }
        self.course.step.start_of = Some(task);
        self.course.held(task).start_failed = Some((request, ending));
        self.try_failed(task, Tried::Start, request, ending);
    }

    /// The look at the status that was to say what became of a `/start`.
    fn status_told(&mut self, task: TaskIx, request: RequestIx, r: &Result<ApiReply, ApiError>) {
        let held = self.course.held(task);
        if held.asking != Some(request) {
            return;
        }
        held.asking = None;
        let failed = held.start_failed;
        if matches!(r, Ok(ApiReply::Task { status: TaskStatus::Running })) {
            self.course.held(task).accepted = true;
        } else if let Some((start, ending)) = failed {
            self.try_failed(task, Tried::Start, start, ending);
        }
    }

    pub(super) fn fs_ended(&mut self, op: OpId, r: &Result<FsReply, FsError>) {
        let Some(request) = self.on_its_way(op, Domain::Disk) else { return };
        let ending = r.as_ref().map_or_else(|error| Ending::Fs(*error), |_| Ending::Done);
        self.close(request, ending);
        if self.course.header.is_imported() && matches!(r, Ok(FsReply::Prepared { .. })) {
            self.story[request].kind = RequestKind::Prepare;
        }
        let told = &self.story[request];
        if told.kind == RequestKind::Collect {
            if let Some(root) = told.about.as_deref().map(EnvRoot::from) {
                self.freed(&root);
            }
            return;
        }
        let (kind, Some(task)) = (told.kind, told.task) else { return };
        if !self.course.alive.contains_key(&task) {
            return;
        }
        match (kind, r) {
            (RequestKind::Resolve, Ok(FsReply::Resolved { path })) => {
                self.course.held(task).path = Some(path.clone());
            }
            (RequestKind::Prepare, Ok(FsReply::Prepared { root })) => {
                // Where it is not known whether the collector frees it, it is not known whether the task may have it.
                let other = !self.course.held(task).roots.contains(root) && !self.course.is_in_doubt();
                if other && !self.course.freeing.contains_key(root) {
                    self.mark_once(task, root, Span::from(self.at));
                }
            }
            (RequestKind::Unwind, _) => self.free_path(task, How::Now),
            _ => {}
        }
    }

    pub(super) fn ran(&mut self, op: OpId, run: &RunEvent) {
        let Some(request) = self.on_its_way(op, Domain::Agent) else { return };
        let task = self.story[request].task;
        if let Some(task) = task {
            self.course.held(task);
        }
        let at = self.at;
        let launch = |story: &mut crate::story::Story| {
            let task = task?;
            story[task].launches.iter().rposition(|launch| launch.request == request)
        };
        let nth = launch(self.story);
        let mut told = task.zip(nth).map(|(task, nth)| {
            let task = &mut self.story[task];
            (&mut task.launches[nth], &mut task.messages)
        });
        match run {
            RunEvent::Launched => {
                if let Some((launch, _)) = &mut told {
                    launch.launched.get_or_insert(at);
                }
            }
            RunEvent::Progress { have, .. } => {
                if let Some((launch, messages)) = &mut told {
                    launch.spoke.get_or_insert(at);
                    **messages = (**messages).max(*have);
                }
            }
            RunEvent::Result => {
                if let Some((launch, _)) = &mut told {
                    launch.answered.get_or_insert(at);
                }
            }
            RunEvent::Ended { outcome } => {
                if let Some((launch, messages)) = &mut told {
                    launch.outcome = Some(*outcome);
                    **messages = (**messages).max(outcome.have);
                }
                self.close(request, Ending::Run(*outcome));
                if let Some(task) = task {
                    self.launch_ended(task, request, End::Seen(at));
                }
            }
        }
    }

    fn launch_ended(&mut self, task: TaskIx, request: RequestIx, end: End) {
        let launches = &mut self.story[task].launches;
        if let Some(launch) = launches.iter_mut().rfind(|launch| launch.request == request) {
            launch.span.close(end);
        }
    }
}

/// Milliseconds from an instant to the expiry of a lease; negative if it has run out.
fn margin(expiry: Instant, at: Instant) -> i64 {
    let ms = |instant: Instant| i64::try_from(instant.as_millis()).unwrap_or(i64::MAX);
    ms(expiry).saturating_sub(ms(at))
}
