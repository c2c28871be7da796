//! What the server asks for in its answers to heartbeats: kept before the core hears of it, done when the core says so, and reported.

use super::host::Host;
use super::program;
use crate::actions::{self, Machine};
use crate::config::Env;
use crate::http::{CallError, Limit};
use crate::prepare::environment;
use crate::service::state_dir;
use crate::supervise::asked::{self, ASKED_VARIABLE};
use crate::wire::action::ActionReport;
use crate::wire::heartbeat::HeartbeatReply;
use longshore_core::error::FsError;
use longshore_core::event::{Action, ActionKind, ApiReply, FsReply};
use longshore_core::id::{ActionId, RuntimeId};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Keeps what a reply asks for. Returns what the core has to know of it.
pub(super) fn keep(host: &Host, runtime: &RuntimeId, reply: HeartbeatReply) -> Vec<Action> {
    let asked = reply.into_actions();
    if asked.is_empty() {
        return Vec::new();
    }
    host.actions.keep(host.provider_of(runtime).as_ref(), asked)
}

/// Does one. That it could not be done, or was told to end, is a result, too.
pub(super) async fn act(
    host: &Arc<Host>,
    (runtime, action): (&RuntimeId, &Action),
    cancel: CancellationToken,
) -> Result<FsReply, FsError> {
    let Some((ask, provider)) = host.actions.begin(&action.id) else {
        // The report says the same.
        return Ok(FsReply::Done);
    };
    // What is asked for its models is what runs tasks, and gets no more of the daemon's own.
    let env = host.env.iter().filter(|(name, _)| environment::passes_on(name)).cloned();
    let mut env = Env::from_pairs(env);
    env.set(ASKED_VARIABLE, asked::mark(&state_dir(&host.settings)));
    let done = async {
        let agent = program::of_runtime(host, runtime).await;
        let machine = Machine { env, home: host.settings.dirs.home.clone(), agent };
        actions::perform(&machine, &host.catalogues, ask, provider.as_ref()).await
    };
    let (report, result) = tokio::select! {
        biased;
        report = done => (report, Ok(FsReply::Done)),
        // What it has started ends with it.
        () = cancel.cancelled() => {
            let limit = host.timing.action.as_secs();
            let why = format!("it was not done within {limit} s, and was ended");
            (ActionReport::failed(why), Err(FsError::Cancelled))
        }
    };
    host.actions.done(&action.id, report);
    result
}

/// Tells the server what came of one.
pub(super) async fn report(
    host: &Host,
    (runtime, id, kind): (&RuntimeId, &ActionId, ActionKind),
    limit: Limit,
) -> Result<ApiReply, CallError> {
    let lost = || Arc::new(ActionReport::failed("the daemon has lost what it was asked for; ask again"));
    let report = host.actions.report(id).unwrap_or_else(lost);
    host.client.report_action(kind, runtime, id, &report, limit).await.map(|()| ApiReply::Done)
}
