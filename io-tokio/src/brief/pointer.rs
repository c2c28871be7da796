//! The pointer file in the work directory: in a few lines, what this task is about.

use super::fence::{fenced, token, token_or};
use crate::wire::task::{Kind, Task};
use std::fmt::Write;

/// The text of `.agent_context/issue_context.md`.
pub fn pointer(task: &Task) -> String {
    let mut text = String::from("# This task\n\n");
    let issue = token_or(&task.issue_id, "<issue id>");
    match task.kind() {
        Kind::Chat => {
            let _ = writeln!(text, "A chat (session `{}`).", token_or(&task.chat_session_id, "?"));
        }
        Kind::Autopilot => {
            let _ = writeln!(
                text,
                "A run of an autopilot.\n\n- run: `{}`\n- autopilot: `{}`\n- started by: {}",
                token_or(&task.autopilot_run_id, "?"),
                token_or(&task.autopilot_id, "?"),
                token_or(&task.autopilot_source, "unknown"),
            );
            fence_if(&mut text, "Title", &task.autopilot_title);
            fence_if(&mut text, "Text", &task.autopilot_description);
            if let Some(payload) = &task.autopilot_trigger_payload {
                fence_if(&mut text, "What the trigger brought", payload.get());
            }
        }
        Kind::Comment => {
            let comment = token_or(&task.trigger_comment_id, "?");
            let _ = writeln!(
                text,
                "A comment (`{comment}`) on an issue.\n\n- `multica issue get {issue} --output json`"
            );
        }
        Kind::Assignment => {
            let _ = writeln!(
                text,
                "An issue that was assigned to you.\n\n- `multica issue get {issue} --output json`"
            );
        }
        Kind::QuickCreate => {
            fence_if(&mut text, "One issue is to be made of this text", &task.quick_create_prompt);
        }
        Kind::Bare => text.push_str("It came without an issue or a chat; the prompt is all there is.\n"),
    }
    if matches!(task.kind(), Kind::Comment | Kind::Assignment) {
        fence_if(&mut text, "Note of whoever assigned it", &task.handoff_note);
    }
    if let Some(project) = token(&task.project_id) {
        let _ = writeln!(text, "\nProject `{project}`: see `.multica/project/resources.json`.");
    }
    text
}

fn fence_if(text: &mut String, label: &str, content: &str) {
    if !content.trim().is_empty() {
        let _ = write!(text, "\n{label}:\n\n{}", fenced(content));
    }
}
