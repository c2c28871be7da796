//! One method for each route that a daemon uses.
//!
//! Each takes a [`Limit`], for which a `Duration` will do, and fails with a [`CallError`]. Where the reply is a task
//! row, look at its status: that the server answered 200 proves nothing.

use super::client::Client;
use super::error::CallError;
use super::limit::Limit;
use super::request::{Reply, Request};
use crate::wire::action::ActionReport;
use crate::wire::claim::{ClaimReply, ClaimRequest};
use crate::wire::gc::{self, IssuesRequest, Subject};
use crate::wire::heartbeat::{HeartbeatReply, HeartbeatRequest};
use crate::wire::json::{self, DecodeError};
use crate::wire::message::{MessagesRequest, StoredMessage};
use crate::wire::register::{
    self, DeregisterRequest, Readable, Recovered, RegisterReply, RegisterRequest, Renewal, Repos,
    RuntimeProfile, Workspace,
};
use crate::wire::report::{
    CancelAckRequest, CompleteRequest, FailRequest, ProgressRequest, SessionRequest, UsageRequest,
    WaitRequest,
};
use crate::wire::routes::{self, Route};
use crate::wire::skill::{Bundle, ResolveReply, ResolveRequest, SkillRef};
use crate::wire::status::{Row, TaskStatus};
use longshore_core::event::ActionKind;
use longshore_core::id::{ActionId, RuntimeId, TaskId, WorkspaceId};
use serde::{Deserialize, Serialize};

/// The list of workspaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Workspaces {
    /// It is still what it was.
    Unchanged,
    /// It is this.
    List {
        /// The workspaces.
        list: Readable<Workspace>,
        /// To ask later whether it changed.
        etag: Option<String>,
    },
}

type Result<T> = std::result::Result<T, CallError>;

impl Client {
    /// Extends the daemon's own token: the one that is in its file by now, if it is from one.
    pub async fn renew_token(&self, limit: impl Into<Limit>) -> Result<Renewal> {
        self.credential().look_before_renewal().await;
        self.post(routes::RENEW, &[], None::<&()>, limit, |text| json::decode(text, "an object")).await
    }

    /// Workspaces of this machine, if they are not what they were at `etag`.
    pub async fn workspaces(&self, etag: Option<&str>, limit: impl Into<Limit>) -> Result<Workspaces> {
        self.workspaces_at(routes::WORKSPACES, etag, limit).await
    }

    /// The same from a server that has no such route.
    pub async fn workspaces_legacy(&self, limit: impl Into<Limit>) -> Result<Workspaces> {
        self.workspaces_at(routes::WORKSPACES_LEGACY, None, limit).await
    }

    async fn workspaces_at(
        &self,
        route: Route,
        etag: Option<&str>,
        limit: impl Into<Limit>,
    ) -> Result<Workspaces> {
        let reply = self.call(Request::new(route, &[])?.unless(etag), limit).await?;
        if reply.status == 304 {
            return Ok(Workspaces::Unchanged);
        }
        let list = read(&reply, Readable::list)?;
        Ok(Workspaces::List { list, etag: reply.etag })
    }

    /// Repositories of a workspace.
    pub async fn repos(&self, workspace: &WorkspaceId, limit: impl Into<Limit>) -> Result<Repos> {
        self.get(routes::REPOS, &[workspace.as_str()], limit, |text| json::decode(text, "an object")).await
    }

    /// Custom runtimes of a workspace.
    pub async fn runtime_profiles(
        &self,
        workspace: &WorkspaceId,
        limit: impl Into<Limit>,
    ) -> Result<Readable<RuntimeProfile>> {
        self.get(routes::RUNTIME_PROFILES, &[workspace.as_str()], limit, register::runtime_profiles).await
    }

    /// Registers the runtimes of this machine in a workspace.
    pub async fn register(
        &self,
        request: &RegisterRequest,
        limit: impl Into<Limit>,
    ) -> Result<RegisterReply> {
        self.post(routes::REGISTER, &[], Some(request), limit, RegisterReply::decode).await
    }

    /// Takes runtimes offline.
    pub async fn deregister(&self, request: &DeregisterRequest<'_>, limit: impl Into<Limit>) -> Result<()> {
        self.post(routes::DEREGISTER, &[], Some(request), limit, acknowledged).await
    }

    /// Ends what an earlier process left behind on a runtime. Kills live work if called later.
    pub async fn recover_orphans(&self, runtime: &RuntimeId, limit: impl Into<Limit>) -> Result<Recovered> {
        let shape = |text: &str| json::decode(text, "an object");
        self.post(routes::RECOVER_ORPHANS, &[runtime.as_str()], None::<&()>, limit, shape).await
    }

    /// Says that a runtime is alive. The reply may hand something out that is not handed out again.
    pub async fn heartbeat(
        &self,
        request: &HeartbeatRequest<'_>,
        limit: impl Into<Limit>,
    ) -> Result<HeartbeatReply> {
        self.post(routes::HEARTBEAT, &[], Some(request), limit, |text| json::decode(text, "an object")).await
    }

    /// Says what came of something that a reply to a heartbeat asked for. May be repeated.
    pub async fn report_action(
        &self,
        kind: ActionKind,
        runtime: &RuntimeId,
        id: &ActionId,
        report: &ActionReport,
        limit: impl Into<Limit>,
    ) -> Result<()> {
        let route = match kind {
            ActionKind::Update => routes::UPDATE_RESULT,
            ActionKind::Models => routes::MODELS_RESULT,
            ActionKind::LocalSkills => routes::LOCAL_SKILLS_RESULT,
            ActionKind::ImportSkill => routes::IMPORT_RESULT,
            _ => return Err(CallError::NotSent { why: "this version does not know the request".to_owned() }),
        };
        self.post(route, &[runtime.as_str(), id.as_str()], Some(report), limit, acknowledged).await
    }

    /// Claims for several runtimes.
    pub async fn claim_batch(
        &self,
        request: &ClaimRequest<'_>,
        limit: impl Into<Limit>,
    ) -> Result<ClaimReply> {
        self.post(routes::CLAIM_BATCH, &[], Some(request), limit, ClaimReply::batch).await
    }

    /// Claims for one runtime.
    pub async fn claim_one(&self, runtime: &RuntimeId, limit: impl Into<Limit>) -> Result<ClaimReply> {
        self.post(routes::CLAIM_ONE, &[runtime.as_str()], None::<&()>, limit, ClaimReply::single).await
    }

    /// Keeps a claimed task ours while it is prepared.
    pub async fn prepare_lease(
        &self,
        runtime: &RuntimeId,
        task: &TaskId,
        limit: impl Into<Limit>,
    ) -> Result<Row> {
        let ids = [runtime.as_str(), task.as_str()];
        self.post(routes::PREPARE_LEASE, &ids, None::<&()>, limit, row).await
    }

    /// Fetches one skill of a claimed task. May be repeated.
    pub async fn resolve_skill(
        &self,
        runtime: &RuntimeId,
        task: &TaskId,
        skill: &SkillRef,
        limit: impl Into<Limit>,
    ) -> Result<Vec<Bundle>> {
        let ids = [runtime.as_str(), task.as_str()];
        let request = ResolveRequest::new(skill);
        let shape = |text: &str| json::decode(text, "a list of skill bundles");
        let reply: ResolveReply =
            self.post(routes::SKILL_BUNDLES, &ids, Some(&request), limit, shape).await?;
        Ok(reply.bundles)
    }

    /// Says that a task waits for the user's directory.
    pub async fn wait_local_directory(
        &self,
        task: &TaskId,
        request: &WaitRequest<'_>,
        limit: impl Into<Limit>,
    ) -> Result<Row> {
        self.post(routes::WAIT_LOCAL_DIRECTORY, &[task.as_str()], Some(request), limit, row).await
    }

    /// Says that a run starts. Not to be repeated without asking for the status.
    pub async fn start(&self, task: &TaskId, limit: impl Into<Limit>) -> Result<Row> {
        self.post(routes::START, &[task.as_str()], None::<&()>, limit, row).await
    }

    /// Where a task is.
    pub async fn status(&self, task: &TaskId, limit: impl Into<Limit>) -> Result<TaskStatus> {
        self.get(routes::STATUS, &[task.as_str()], limit, TaskStatus::reply).await
    }

    /// A line for whoever watches.
    pub async fn progress(
        &self,
        task: &TaskId,
        request: &ProgressRequest<'_>,
        limit: impl Into<Limit>,
    ) -> Result<()> {
        self.post(routes::PROGRESS, &[task.as_str()], Some(request), limit, acknowledged).await
    }

    /// Adds to the transcript. A batch that is sent twice is stored twice.
    pub async fn post_messages(
        &self,
        task: &TaskId,
        request: &MessagesRequest<'_>,
        limit: impl Into<Limit>,
    ) -> Result<()> {
        self.post(routes::MESSAGES, &[task.as_str()], Some(request), limit, taken).await
    }

    /// What the transcript holds from about `since` on: look at the numbers.
    pub async fn messages_since(
        &self,
        task: &TaskId,
        since: u32,
        limit: impl Into<Limit>,
    ) -> Result<Readable<StoredMessage>> {
        let request =
            Request::new(routes::MESSAGES_READ, &[task.as_str()])?.query(&format!("?since={since}"));
        read(&self.call(request, limit).await?, Readable::list)
    }

    /// Names the session to resume.
    pub async fn pin_session(
        &self,
        task: &TaskId,
        request: &SessionRequest<'_>,
        limit: impl Into<Limit>,
    ) -> Result<()> {
        self.post(routes::SESSION, &[task.as_str()], Some(request), limit, acknowledged).await
    }

    /// What a run used so far.
    pub async fn report_usage(
        &self,
        task: &TaskId,
        request: &UsageRequest<'_>,
        limit: impl Into<Limit>,
    ) -> Result<()> {
        self.post(routes::USAGE, &[task.as_str()], Some(request), limit, taken).await
    }

    /// A run ended well. May be repeated.
    pub async fn complete(
        &self,
        task: &TaskId,
        request: &CompleteRequest,
        limit: impl Into<Limit>,
    ) -> Result<Row> {
        self.post(routes::COMPLETE, &[task.as_str()], Some(request), limit, row).await
    }

    /// A run did not end well. May be repeated.
    pub async fn fail(&self, task: &TaskId, request: &FailRequest, limit: impl Into<Limit>) -> Result<Row> {
        self.post(routes::FAIL, &[task.as_str()], Some(request), limit, row).await
    }

    /// A cancelled run is over. May be repeated.
    pub async fn cancel_ack(
        &self,
        task: &TaskId,
        request: &CancelAckRequest,
        limit: impl Into<Limit>,
    ) -> Result<()> {
        self.post(routes::CANCEL_ACK, &[task.as_str()], Some(request), limit, taken).await
    }

    /// What became of several issues of a workspace.
    pub async fn gc_issues(
        &self,
        workspace: &WorkspaceId,
        request: &IssuesRequest<'_>,
        limit: impl Into<Limit>,
    ) -> Result<Vec<Subject>> {
        self.post(routes::GC_ISSUES, &[workspace.as_str()], Some(request), limit, gc::issues).await
    }

    /// What became of one issue: for servers that cannot be asked about several.
    pub async fn gc_issue(&self, id: &str, limit: impl Into<Limit>) -> Result<Subject> {
        self.get(routes::GC_ISSUE, &[id], limit, gc::subject).await
    }

    /// What became of a chat.
    pub async fn gc_chat(&self, id: &str, limit: impl Into<Limit>) -> Result<Subject> {
        self.get(routes::GC_CHAT, &[id], limit, gc::subject).await
    }

    /// What became of an autopilot's run.
    pub async fn gc_autopilot_run(&self, id: &str, limit: impl Into<Limit>) -> Result<Subject> {
        self.get(routes::GC_AUTOPILOT_RUN, &[id], limit, gc::subject).await
    }

    /// What became of a task that was to make an issue.
    pub async fn gc_task(&self, id: &str, limit: impl Into<Limit>) -> Result<Subject> {
        self.get(routes::GC_TASK, &[id], limit, gc::subject).await
    }

    async fn get<T>(
        &self,
        route: Route,
        ids: &[&str],
        limit: impl Into<Limit>,
        decode: impl FnOnce(&str) -> std::result::Result<T, DecodeError>,
    ) -> Result<T> {
        read(&self.call(Request::new(route, ids)?, limit).await?, decode)
    }

    async fn post<B: Serialize, T>(
        &self,
        route: Route,
        ids: &[&str],
        body: Option<&B>,
        limit: impl Into<Limit>,
        decode: impl FnOnce(&str) -> std::result::Result<T, DecodeError>,
    ) -> Result<T> {
        let mut request = Request::new(route, ids)?;
        if let Some(body) = body {
            request = request.body(body)?;
        }
        read(&self.call(request, limit).await?, decode)
    }
}

fn read<T>(reply: &Reply, decode: impl FnOnce(&str) -> std::result::Result<T, DecodeError>) -> Result<T> {
    decode(&reply.text).map_err(|why| CallError::Undecodable { status: reply.status, why: why.to_string() })
}

/// A task row of which only the status counts.
pub(crate) fn row(text: &str) -> std::result::Result<Row, DecodeError> {
    json::decode(text, "a task")
}

/// A reply that says where something is, or just that it was done: an object with a text `status`. Whatever sits before the server answers 200 too.
pub(crate) fn taken(text: &str) -> std::result::Result<(), DecodeError> {
    json::decode::<Row>(text, "an object with a text `status`").map(drop)
}

/// A reply that says no more than that it was done: any object, or nothing. A proxy's page is neither.
pub(crate) fn acknowledged(text: &str) -> std::result::Result<(), DecodeError> {
    #[derive(Deserialize)]
    struct Anything {}
    if text.trim().is_empty() {
        return Ok(());
    }
    json::decode::<Anything>(text, "an object").map(|Anything {}| ())
}
