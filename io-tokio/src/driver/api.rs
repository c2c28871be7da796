//! Requests of the core to the server, carried out.

use super::host::Host;
use super::{absent, action, collect, local, messages, offers, over, profiles, reach, register};
use crate::http::endpoints::Workspaces;
use crate::http::{CallError, Limit, RejectKind, Rejection};
use crate::wire::claim::ClaimRequest;
use crate::wire::heartbeat::HeartbeatRequest;
use crate::wire::report::{CancelAckRequest, SessionRequest, UsageRequest, WaitRequest};
use crate::wire::status::TaskStatus as WireStatus;
use longshore_core::effect::ApiCall;
use longshore_core::error::{ApiError, Refusal};
use longshore_core::event::{ApiReply, ClaimKey, TaskStatus};
use longshore_core::id::is_safe_component;
use std::sync::Arc;
use std::time::{Duration, Instant};

type Result<T> = std::result::Result<T, CallError>;

/// Carries out one request. Whatever happens, it ends within the limit.
pub(super) async fn perform(
    host: &Arc<Host>,
    call: &ApiCall,
    limit: Limit,
) -> std::result::Result<ApiReply, ApiError> {
    let begun = Instant::now();
    let result = ask(host, call, limit.clone()).await;
    reach::note(host, call, (&limit, begun.elapsed()), &result);
    absent::note(host, call, &result);
    match result {
        Ok(reply) => Ok(reply),
        Err(error) => {
            tracing::debug!(call = name(call), %error, "a request to the server had no success");
            if let (ApiCall::Complete { claim }, CallError::Rejected(_)) = (call, &error)
                && let Some(entry) = host.book.get(*claim)
            {
                entry.ending().refusal = Some(error.to_string());
            }
            Err(if is_everywhere(call) { for_core_of_all(&error) } else { for_core(&error) })
        }
    }
}

/// Whether every server has the route.
pub(super) const fn is_everywhere(call: &ApiCall) -> bool {
    matches!(
        call,
        ApiCall::Start(_) | ApiCall::Messages { .. } | ApiCall::Complete { .. } | ApiCall::Fail { .. }
    )
}

async fn ask(host: &Arc<Host>, call: &ApiCall, limit: Limit) -> Result<ApiReply> {
    let client = &host.client;
    match call {
        ApiCall::Renew => client.renew_token(limit).await.map(|renewal| {
            tracing::debug!(renewed = renewal.renewed, expires_at = renewal.expires_at, "credential checked");
            ApiReply::Done
        }),
        ApiCall::Workspaces => workspaces(host, limit).await,
        ApiCall::Profiles { workspace } => profiles::fetch(host, workspace, limit).await,
        ApiCall::Register { workspace, agents, profiles } => {
            register::register(host, workspace, agents, *profiles, limit).await
        }
        ApiCall::RecoverOrphans { runtime } => client.recover_orphans(runtime, limit).await.map(|recovered| {
            if recovered.orphaned > 0 {
                tracing::info!(%runtime, orphaned = recovered.orphaned, retried = recovered.retried, "tasks of an earlier daemon were failed");
            }
            ApiReply::Done
        }),
        ApiCall::Deregister { runtimes, broken } => {
            register::deregister(host, runtimes, broken.as_ref(), limit).await
        }
        ApiCall::Beat { runtime } => {
            let request = HeartbeatRequest { runtime_id: runtime, supports_batch_import: true };
            client.heartbeat(&request, limit).await.map(|reply| ApiReply::Beaten {
                gone: reply.runtime_gone,
                actions: action::keep(host, runtime, reply),
            })
        }
        ApiCall::ActionResult { runtime, action, kind } => {
            action::report(host, (runtime, action, *kind), limit).await
        }
        ApiCall::Claim(call) => {
            let runtime_ids = host.set().in_scope(call.scope());
            let request = ClaimRequest {
                daemon_id: &host.identity.daemon_id,
                runtime_ids: &runtime_ids,
                max_tasks: u32::from(call.max()),
            };
            client.claim_batch(&request, limit).await.map(|reply| offers::take(host, reply, None))
        }
        ApiCall::ClaimOver { conn, claim } => over::claim(host, *conn, claim, limit).await,
        ApiCall::ClaimOne(call) => {
            let reply = client.claim_one(call.runtime(), limit).await;
            reply.map(|reply| offers::take(host, reply, Some(call.runtime())))
        }
        ApiCall::Collectable { root } => collect::collectable(host, root, limit).await,
        _ => about_task(host, call, limit).await,
    }
}

async fn about_task(host: &Host, call: &ApiCall, limit: Limit) -> Result<ApiReply> {
    let client = &host.client;
    let entry = |claim: ClaimKey| {
        let forgotten = || CallError::NotSent { why: "the claim was forgotten".to_owned() };
        host.book.get(claim).ok_or_else(forgotten)
    };
    let row = |status| ApiReply::Task { status: for_core_status(status) };
    match call {
        ApiCall::Lease { claim } => {
            let entry = entry(*claim)?;
            let runtime = entry.task.runtime_id.as_str().into();
            client.prepare_lease(&runtime, &entry.id, limit).await.map(|task| row(task.status))
        }
        ApiCall::WaitDirectory { claim, holder } => {
            let entry = entry(*claim)?;
            let name = entry.disk().local.as_ref().map(|local| local.name.clone()).unwrap_or_default();
            let holder = holder.and_then(|holder| host.book.get(holder));
            let reason = local::wait_reason(&name, holder.as_ref().map(|holder| holder.id.as_str()));
            let request = WaitRequest { reason: &reason };
            client.wait_local_directory(&entry.id, &request, limit).await.map(|task| row(task.status))
        }
        ApiCall::Start(call) => {
            let entry = entry(call.claim())?;
            client.start(&entry.id, limit).await.map(|task| row(task.status))
        }
        ApiCall::Status { claim } => client.status(&entry(*claim)?.id, limit).await.map(row),
        ApiCall::Messages { claim, after, upto } => {
            messages::post(host, &entry(*claim)?, *after, *upto, limit).await
        }
        ApiCall::MessagesKnown { claim, after } => {
            messages::known(host, &entry(*claim)?, *after, limit).await
        }
        ApiCall::Usage { claim } => {
            let entry = entry(*claim)?;
            let usage = entry.usage();
            if usage.is_empty() {
                return Ok(ApiReply::Done);
            }
            client
                .report_usage(&entry.id, &UsageRequest { usage: &usage }, limit)
                .await
                .map(|()| ApiReply::Done)
        }
        ApiCall::Pin { claim } => {
            let entry = entry(*claim)?;
            let session = entry.ending().session.clone().unwrap_or_default();
            let work_dir = entry.work_dir().unwrap_or_default();
            let request = SessionRequest { session_id: &session, work_dir: &work_dir };
            client.pin_session(&entry.id, &request, limit).await.map(|()| ApiReply::Done)
        }
        ApiCall::Complete { claim } => {
            let entry = entry(*claim)?;
            client.complete(&entry.id, &entry.completion(), limit).await.map(|task| row(task.status))
        }
        ApiCall::Fail { claim, reason } => {
            let entry = entry(*claim)?;
            client.fail(&entry.id, &entry.failure(*reason), limit).await.map(|task| row(task.status))
        }
        ApiCall::CancelAck { claim } => {
            let entry = entry(*claim)?;
            client.cancel_ack(&entry.id, &CancelAckRequest::default(), limit).await.map(|()| ApiReply::Done)
        }
        _ => Err(CallError::NotSent { why: "this version does not know the request".to_owned() }),
    }
}

async fn workspaces(host: &Host, limit: Limit) -> Result<ApiReply> {
    let (etag, legacy) = {
        let listed = host.listed();
        (listed.etag.clone(), listed.legacy)
    };
    let mut legacy = legacy;
    let mut reply = if legacy {
        host.client.workspaces_legacy(limit.clone()).await
    } else {
        host.client.workspaces(etag.as_deref(), limit.clone()).await
    };
    if !legacy && reply.as_ref().err().and_then(CallError::rejected_as) == Some(RejectKind::RouteMissing) {
        tracing::info!("the server has only the older workspace list; it is asked every five minutes");
        legacy = true;
        reply = host.client.workspaces_legacy(limit).await;
    }
    let mut listed = host.listed();
    listed.legacy = legacy;
    match reply? {
        Workspaces::Unchanged => {}
        Workspaces::List { list, etag } => {
            let unsafe_ids = list.items.iter().filter(|ws| !is_safe_component(ws.id.as_str())).count();
            if list.unusable + unsafe_ids > 0 {
                tracing::warn!(
                    count = list.unusable + unsafe_ids,
                    "the server lists workspaces that cannot be used"
                );
            }
            let known = list.items.into_iter().map(|ws| ws.id).filter(|id| is_safe_component(id.as_str()));
            if list.unusable > 0 {
                // An entry that cannot be read may be one that is served already: nothing is taken for lost.
                let mut all = listed.list.clone();
                all.extend(known.filter(|id| !listed.list.contains(id)).collect::<Vec<_>>());
                listed.list = all;
                listed.etag = None;
            } else {
                listed.list = known.collect();
                listed.etag = etag;
            }
        }
    }
    listed.is_told = true;
    let list = listed.list.clone();
    drop(listed);
    host.forget_others(&list);
    host.heard.send_replace(());
    Ok(ApiReply::Workspaces { list, legacy })
}

/// What the core needs to know of a failure.
pub(super) fn for_core(error: &CallError) -> ApiError {
    match error {
        CallError::NotSent { .. } => ApiError::NotSent,
        CallError::Unknown { .. } => ApiError::Unknown,
        CallError::Throttled { retry_after, .. } => {
            let ms = |d: &Duration| u32::try_from(d.as_millis()).unwrap_or(u32::MAX);
            ApiError::Throttled { retry_after_ms: retry_after.as_ref().map(ms) }
        }
        CallError::ServerError { status, .. } => ApiError::Server { status: *status },
        CallError::Undecodable { .. } => ApiError::Undecodable,
        CallError::Rejected(rejection) => {
            let status = rejection.status;
            match refusal(rejection) {
                Some(kind) => ApiError::Refused { status, kind },
                None => ApiError::Server { status },
            }
        }
    }
}

/// The same for a route that every server has: that it is missing is the word of something before the server, and passes.
pub(super) fn for_core_of_all(error: &CallError) -> ApiError {
    match error {
        CallError::Rejected(rejection) if rejection.kind == RejectKind::RouteMissing => {
            ApiError::Server { status: rejection.status }
        }
        _ => for_core(error),
    }
}

/// What a refusal is about; `None` if it is none that lasts.
pub(super) fn refusal(rejection: &Rejection) -> Option<Refusal> {
    Some(match rejection.kind {
        // The word of something before the server, such as a login page: it passes.
        RejectKind::TryAgain | RejectKind::Redirected | RejectKind::Foreign => return None,
        RejectKind::TaskGone => Refusal::TaskGone,
        RejectKind::RuntimeGone => Refusal::RuntimeGone,
        RejectKind::WorkspaceGone => Refusal::WorkspaceGone,
        RejectKind::RouteMissing => Refusal::RouteMissing,
        RejectKind::Unauthorized if rejection.is_doubtful() => Refusal::ClockSkew,
        RejectKind::Unauthorized => Refusal::Unauthorized,
        RejectKind::Forbidden => Refusal::Forbidden,
        _ => Refusal::Other,
    })
}

fn for_core_status(status: WireStatus) -> TaskStatus {
    match status {
        WireStatus::Queued => TaskStatus::Queued,
        WireStatus::Dispatched => TaskStatus::Dispatched,
        WireStatus::WaitingLocalDirectory => TaskStatus::WaitingLocalDirectory,
        WireStatus::Running => TaskStatus::Running,
        WireStatus::Completed => TaskStatus::Completed,
        WireStatus::Failed => TaskStatus::Failed,
        WireStatus::Cancelled => TaskStatus::Cancelled,
        WireStatus::Deferred => TaskStatus::Deferred,
        WireStatus::Unknown => TaskStatus::Other,
    }
}

pub(super) fn name(call: &ApiCall) -> &'static str {
    match call {
        ApiCall::Renew => "renew",
        ApiCall::Workspaces => "workspaces",
        ApiCall::Profiles { .. } => "runtime-profiles",
        ApiCall::Register { .. } => "register",
        ApiCall::RecoverOrphans { .. } => "recover-orphans",
        ApiCall::Deregister { .. } => "deregister",
        ApiCall::Beat { .. } => "heartbeat",
        ApiCall::ActionResult { .. } => "action-result",
        ApiCall::Claim(_) => "claim",
        ApiCall::ClaimOver { .. } => "claim-over",
        ApiCall::ClaimOne(_) => "claim-one",
        ApiCall::Lease { .. } => "prepare-lease",
        ApiCall::WaitDirectory { .. } => "wait-local-directory",
        ApiCall::Start(_) => "start",
        ApiCall::Status { .. } => "status",
        ApiCall::Messages { .. } => "messages",
        ApiCall::MessagesKnown { .. } => "messages-since",
        ApiCall::Usage { .. } => "usage",
        ApiCall::Pin { .. } => "session",
        ApiCall::Complete { .. } => "complete",
        ApiCall::Fail { .. } => "fail",
        ApiCall::CancelAck { .. } => "cancel-ack",
        ApiCall::Collectable { .. } => "gc-check",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bug_26_a_token_that_is_refused_by_a_clock_far_from_ours_is_not_called_bad() {
        let now = jiff::Timestamp::now().as_millisecond();
        for (ahead, kind) in
            [(0, Refusal::Unauthorized), (7_200, Refusal::ClockSkew), (-7_200, Refusal::ClockSkew)]
        {
            let server_time = Some(longshore_core::time::UnixMillis(now + ahead * 1000));
            let kind_of = RejectKind::Unauthorized;
            let rejection = Rejection { status: 401, kind: kind_of, body_head: String::new(), server_time };
            assert_eq!(for_core(&CallError::Rejected(rejection)), ApiError::Refused { status: 401, kind });
        }
        let untold = Rejection {
            status: 401,
            kind: RejectKind::Unauthorized,
            body_head: String::new(),
            server_time: None,
        };
        assert_eq!(refusal(&untold), Some(Refusal::Unauthorized), "without a date");
    }

    #[test]
    fn a_redirect_is_no_refusal() {
        // Found by a proxy's login page before `/complete`: the finished task was reported as failed.
        let rejection = |kind| Rejection { status: 302, kind, body_head: String::new(), server_time: None };
        let error = CallError::Rejected(rejection(RejectKind::Redirected));
        assert_eq!(for_core(&error), ApiError::Server { status: 302 });
        assert!(for_core(&error).is_passing());
    }
}
