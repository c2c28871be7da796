//! Rows as the wire shows them.

use super::capabilities::Capabilities;
use super::content::{Comment, Content};
use super::skills::Skill;
use crate::secret::Secret;
use longshore_core::id::{ProfileId, TaskId};
use longshore_core::plane::{Completion, Message, Profile, Runtime, Subject, Task, Text, Workspace};
use longshore_core::time::{Now, UnixMillis};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// RFC 3339 in UTC, to the second.
pub(super) fn stamp(at: UnixMillis) -> String {
    moment(at, "%Y-%m-%dT%H:%M:%SZ")
}

/// RFC 3339 in UTC, with what there is below the second.
pub(super) fn fine_stamp(at: UnixMillis) -> String {
    moment(at, "%Y-%m-%dT%H:%M:%S%.fZ")
}

fn moment(at: UnixMillis, format: &str) -> String {
    jiff::Timestamp::from_millisecond(at.0).unwrap_or_default().strftime(format).to_string()
}

fn stamp_or_null(at: Option<Now>) -> Value {
    at.map_or(Value::Null, |at| stamp(at.wall).into())
}

/// 40 hex digits that nobody can guess.
pub(super) fn random_hex() -> String {
    let mut digits = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
    digits.truncate(40);
    digits
}

/// Lower-case hex SHA-256.
pub(super) fn hex_digest(of: &[u8]) -> String {
    use std::fmt::Write as _;
    Sha256::digest(of).iter().fold(String::with_capacity(64), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// Which kind of work it is, as the server's display data names it.
fn kind(task: &Task, content: &Content) -> &'static str {
    match task.subject {
        Subject::Chat(_) => "chat",
        Subject::Autopilot(_) => "autopilot",
        Subject::QuickCreate => "quick_create",
        _ if content.task_fields.contains_key("trigger_comment_id") => "comment",
        _ => "direct",
    }
}

/// The columns of a task that every answer has.
pub(super) fn task_row(task: &Task, content: &Content) -> Map<String, Value> {
    let issue = if let Subject::Issue(id) = &task.subject { &**id } else { "" };
    let row = json!({
        "id": task.id.as_str(),
        "agent_id": &*task.agent,
        "runtime_id": task.runtime.as_str(),
        "issue_id": issue,
        "workspace_id": task.workspace.as_str(),
        "kind": kind(task, content),
        "status": task.state.as_str(),
        "priority": task.priority,
        "attempt": task.attempt,
        "max_attempts": task.max_attempts,
        "created_at": stamp(task.created_at.wall),
        "dispatched_at": stamp_or_null(task.dispatched_at),
        "started_at": stamp_or_null(task.started_at),
        "completed_at": stamp_or_null(task.ended_at),
        "result": task.result.as_ref().map_or(Value::Null, result),
        "error": task.error.as_deref(),
        "delivered_comment_ids": delivered(task, content),
        "attribution": { "source": "direct_human", "precise": true },
    });
    let Value::Object(mut row) = row else { return Map::new() };
    let mut put = |name: &str, value: Option<&str>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            row.insert(name.into(), value.into());
        }
    };
    put("failure_reason", task.failure_reason.as_deref());
    put("parent_task_id", task.parent.as_ref().map(TaskId::as_str));
    put("work_dir", task.work_dir.as_deref());
    put("relative_work_dir", task.work_dir.as_deref().and_then(relative));
    put("durable_work_dir", task.durable_work_dir.as_deref());
    put("relative_durable_work_dir", task.durable_work_dir.as_deref().and_then(relative));
    put("branch_name", task.branch_name.as_deref());
    match &task.subject {
        Subject::Chat(id) => put("chat_session_id", Some(id)),
        Subject::Autopilot(id) => put("autopilot_run_id", Some(id)),
        _ => {}
    }
    for name in OF_ROW {
        if let Some(value) = content.task_fields.get(name) {
            row.insert(name.into(), value.clone());
        }
    }
    attribute(&mut row, task);
    if !content.comments.is_empty() {
        let ids = content.comments.iter().map(|comment| comment.id.as_str());
        row.insert("coalesced_comment_ids".into(), ids.collect());
    }
    row
}

/// Says of a retry what it is a retry of.
fn attribute(row: &mut Map<String, Value>, task: &Task) {
    let attribution = row.get_mut("attribution").and_then(Value::as_object_mut);
    if let (Some(attribution), Some(parent)) = (attribution, &task.parent) {
        attribution.insert("retry_of_task_id".into(), parent.as_str().into());
    }
}

/// Fields of a task's texts that every answer has, not only the claim.
const OF_ROW: [&str; 5] =
    ["trigger_comment_id", "trigger_summary", "handoff_note", "is_leader_task", "attribution"];

/// The comments that a claim brought.
fn delivered(task: &Task, content: &Content) -> Value {
    let trigger = content.task_fields.get("trigger_comment_id").cloned();
    let earlier = content.comments.iter().map(|comment| Value::from(comment.id.as_str()));
    if task.deliveries == 0 { Value::Array(Vec::new()) } else { earlier.chain(trigger).collect() }
}

/// A task's directory below the workspaces root: its last three parts.
fn relative(path: &str) -> Option<&str> {
    let (at, _) = path.trim_end_matches('/').rmatch_indices('/').nth(2)?;
    Some(&path[at + 1..])
}

fn result(of: &Completion) -> Value {
    let mut out = json!({
        "output": &*of.output,
        "pr_url": &*of.pr_url,
        "session_id": &*of.session_id,
        "work_dir": &*of.work_dir,
    });
    let more = [
        ("durable_work_dir", &of.durable_work_dir),
        ("branch_name", &of.branch_name),
        ("retired_session_id", &of.retired_session_id),
    ];
    for (name, value) in more {
        if !value.is_empty() {
            out[name] = (&**value).into();
        }
    }
    if of.session_rollout_missing {
        out["session_rollout_missing"] = true.into();
    }
    out
}

/// A task as a claim hands it out, with a new token for its agent. This is the one place where secrets are shown.
pub(super) fn claim(task: &Task, content: &Content, skills: &[Skill], to: Capabilities) -> Value {
    let mut row = task_row(task, content);
    let mut agent = Map::new();
    agent.insert("id".into(), (&*task.agent).into());
    let name = if content.agent_name.is_empty() { "agent" } else { &content.agent_name };
    agent.insert("name".into(), name.into());
    agent.insert("instructions".into(), content.instructions.as_str().into());
    if !content.custom_env.is_empty() {
        let env = content.custom_env.iter().map(|(name, value)| (name.clone(), value.expose().into()));
        agent.insert("custom_env".into(), Value::Object(env.collect()));
    }
    if !content.custom_args.is_empty() {
        agent.insert("custom_args".into(), content.custom_args.clone().into());
    }
    if !content.model.is_empty() {
        agent.insert("model".into(), content.model.as_str().into());
    }
    if !skills.is_empty() {
        let (name, list) = if to.skill_bundles {
            ("skill_refs", skills.iter().map(Skill::reference).collect())
        } else {
            ("skills", skills.iter().map(Skill::inlined).collect())
        };
        agent.insert(name.into(), Value::Array(list));
    }
    agent.extend(content.agent_fields.clone());
    let token = Secret::new(format!("mat_{}", random_hex()));
    row.insert("auth_token".into(), token.expose().into());
    row.insert("leader_role_resolved".into(), true.into());
    row.insert("requesting_user_name".into(), "operator".into());
    if !content.thread_name.is_empty() {
        row.insert("thread_name".into(), content.thread_name.as_str().into());
    }
    if let Some(session) = &task.prior_session {
        row.insert("prior_session_id".into(), (&**session).into());
    }
    if let Some(dir) = &task.prior_work_dir {
        row.insert("prior_work_dir".into(), (&**dir).into());
    }
    if task.prior_session_unavailable {
        row.insert("prior_session_resume_unavailable".into(), true.into());
    }
    row.insert("agent".into(), Value::Object(agent));
    row.extend(content.task_fields.clone());
    attribute(&mut row, task);
    if !content.comments.is_empty() {
        if to.coalesced_comments {
            row.insert("coalesced_comments".into(), content.comments.iter().map(comment).collect());
        } else {
            row.remove("coalesced_comment_ids");
            row.insert("trigger_comment_content".into(), folded(content).into());
        }
    }
    Value::Object(row)
}

fn comment(of: &Comment) -> Value {
    let mut out = json!({ "id": of.id, "content": of.content });
    let more = [
        ("thread_id", &of.thread_id),
        ("author_type", &of.author_type),
        ("author_name", &of.author_name),
        ("created_at", &of.created_at),
    ];
    for (name, value) in more {
        if !value.is_empty() {
            out[name] = value.as_str().into();
        }
    }
    out
}

/// All comments in one text, for daemons that show only one.
fn folded(content: &Content) -> String {
    let named = |name: &str| content.task_fields.get(name).and_then(Value::as_str).unwrap_or_default();
    let earlier = content.comments.iter().map(|it| (it.author_name.as_str(), it.content.as_str()));
    let all = earlier.chain([(named("trigger_author_name"), named("trigger_comment_content"))]);
    let all = all.filter(|(_, text)| !text.is_empty());
    let all =
        all.map(|(author, text)| if author.is_empty() { text.into() } else { format!("{author}: {text}") });
    all.collect::<Vec<String>>().join("\n\n")
}

/// A workspace's repositories with their version, and its settings.
pub(super) fn repos(row: &Workspace) -> Value {
    let list = row.repos.iter().map(|repo| {
        let mut out = json!({ "url": &*repo.url });
        if !repo.description.is_empty() {
            out["description"] = (&*repo.description).into();
        }
        out
    });
    let mut urls: Vec<_> = row.repos.iter().map(|repo| &*repo.url).collect();
    urls.sort_unstable();
    // The plane takes nothing but an object.
    let settings = serde_json::from_str::<Map<_, _>>(&row.settings).unwrap_or_default();
    json!({
        "repos": list.collect::<Vec<_>>(),
        "repos_version": hex_digest(urls.join("\n").as_bytes()),
        "settings": Value::Object(settings),
    })
}

/// A runtime profile.
pub(super) fn profile(row: &Profile) -> Value {
    json!({
        "id": row.id.as_str(),
        "workspace_id": row.workspace.as_str(),
        "display_name": &*row.spec.display_name,
        "protocol_family": row.spec.family.as_str(),
        "command_name": &*row.spec.command,
        "description": row.spec.description.as_deref(),
        "fixed_args": row.spec.fixed_args.iter().map(|arg| &**arg).collect::<Vec<_>>(),
        "visibility": &*row.spec.visibility,
        "created_by": OWNER,
        "enabled": row.spec.enabled,
        "created_at": stamp(row.created_at.wall),
        "updated_at": stamp(row.updated_at.wall),
    })
}

/// The one person that there is.
pub(super) const OWNER: &str = "00000000-0000-4000-8000-00000000beef";

/// A runtime's row.
pub(super) fn runtime(row: &Runtime) -> Value {
    let header = match row.provider.as_str() {
        "claude" => "claude (stream-json)",
        "codex" => "codex app-server",
        other => other,
    };
    let device = [&*row.device_name, &*row.version];
    let device: Vec<_> = device.into_iter().filter(|part| !part.is_empty()).collect();
    let mut out = json!({
        "id": row.id.as_str(),
        "workspace_id": row.workspace.as_str(),
        "daemon_id": &*row.daemon_id,
        "name": &*row.name,
        "custom_name": null,
        "runtime_mode": "local",
        "provider": row.provider.as_str(),
        "launch_header": header,
        "status": if row.online { "online" } else { "offline" },
        "device_info": device.join(" · "),
        "metadata": {
            "version": &*row.version,
            "cli_version": &*row.cli_version,
            "launched_by": &*row.launched_by,
            "capabilities": row.capabilities.iter().map(|it| &**it).collect::<Vec<_>>(),
        },
        "owner_id": OWNER,
        "visibility": "private",
        "profile_id": row.profile.as_ref().map(ProfileId::as_str),
        "last_seen_at": stamp(row.last_seen.wall),
        "created_at": stamp(row.created_at.wall),
        "updated_at": stamp(row.updated_at.wall),
    });
    if let Some(reason) = &row.offline_reason {
        out["metadata"]["offline_reason"] = json!({ "code": &*reason.code, "detail": &*reason.detail });
    }
    out
}

/// A stored message.
pub(super) fn message(task: &Task, message: &Message) -> Value {
    let mut out = json!({
        "task_id": task.id.as_str(),
        "seq": message.seq,
        "type": &*message.kind,
        "created_at": fine_stamp(message.at.wall),
    });
    let mut put = |name: &str, value: Option<&Text>| {
        if let Some(value) = value {
            out[name] = (&**value).into();
        }
    };
    put("tool", message.tool.as_ref());
    put("content", message.content.as_ref());
    put("output", message.output.as_ref());
    if let Subject::Issue(id) = &task.subject {
        put("issue_id", Some(id));
    }
    if let Some(input) = message.input.as_deref().and_then(|input| serde_json::from_str(input).ok()) {
        out["input"] = input;
    }
    out
}
