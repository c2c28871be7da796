//! Blocks about one run, which come after the body of its prompt and never before it.

use super::fence::{email, name, token, token_or};
use super::prompt::Turn;
use crate::wire::task::{Kind, Task};
use std::fmt::Write;

/// All blocks that apply, in their fixed order.
pub(super) fn blocks(task: &Task, turn: Turn) -> String {
    let mut text = String::new();
    siblings(&mut text, task);
    if turn.shared_directory {
        text.push_str(
            "\n## Shared directory\n\nYour working directory is a person's own, and another run may be changing it right now. Look at a file again just before\n\
             you change it, and leave alone what you did not come for.\n",
        );
    }
    if turn.resume_lost || task.prior_session_resume_unavailable {
        continuity(&mut text, task);
    }
    initiator(&mut text, task);
    apps(&mut text, task);
    text
}

fn siblings(text: &mut String, task: &Task) {
    if !matches!(task.kind(), Kind::Comment | Kind::Assignment) || task.active_sibling_runs.is_empty() {
        return;
    }
    text.push_str("\n## You are also running elsewhere\n\nThese runs of yours are in flight. Do not do their work again, and do not undo it:\n\n");
    for run in &task.active_sibling_runs {
        let label = token(&run.issue_identifier).or(token(&run.issue_id)).unwrap_or("another issue");
        let id = token_or(&run.task_id, "<task id>");
        let _ = write!(text, "- {label}");
        let title = name(&run.issue_title);
        if !title.is_empty() {
            let _ = write!(text, " ({title})");
        }
        let _ = write!(text, ": {}", token_or(&run.status, "running"));
        let since = token(&run.started_at)
            .map(|at| ("since", at))
            .or(token(&run.created_at).map(|at| ("queued", at)));
        if let Some((word, at)) = since {
            let _ = write!(text, " {word} {at}");
        }
        let _ = writeln!(text, ", `multica issue run-messages {id}`");
    }
}

fn continuity(text: &mut String, task: &Task) {
    text.push_str(
        "\n## Your memory of this may be incomplete\n\nAn earlier session of yours could not be continued. ",
    );
    match task.kind() {
        Kind::Comment | Kind::Assignment => {
            let issue = token_or(&task.issue_id, "<issue id>");
            let _ = writeln!(
                text,
                "Before you go on, read the discussion (`multica issue comment list {issue}`) and,\nif need be, what earlier runs did (`multica issue runs {issue}`)."
            );
        }
        Kind::Chat => text.push_str(
            "Before you answer, look up what was said (`multica chat history`). If it cannot be\nread, say openly that you do not remember rather than guess.\n",
        ),
        _ => text.push_str("What it knew is gone: do not rely on memories of it.\n"),
    }
}

fn initiator(text: &mut String, task: &Task) {
    let who = name(&task.initiator_name);
    if task.initiator_type.is_empty() && who.is_empty() {
        return;
    }
    let kind = if task.initiator_type == "agent" { "the agent" } else { "the member" };
    let who = if who.is_empty() { "(no name given)" } else { &who };
    let _ = write!(text, "\n## Who set this off\n\nThis run was set off by {kind} {who}");
    if let Some(address) = email(&task.initiator_email) {
        let _ = write!(text, " <{address}>");
    }
    text.push_str(".\n");
}

fn apps(text: &mut String, task: &Task) {
    let apps: Vec<_> =
        task.connected_apps.iter().filter_map(|app| Some((token(&app.server_name)?, app))).collect();
    if apps.is_empty() {
        return;
    }
    text.push_str("\n## Connected apps\n\nYou find them as MCP servers:\n\n");
    for (server, app) in apps {
        let shown = if app.toolkit_name.is_empty() { &app.toolkit_slug } else { &app.toolkit_name };
        let _ = writeln!(text, "- `{server}`: {}", name(shown));
    }
}
