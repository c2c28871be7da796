//! Where the answer to comments goes.

use super::fence::token;
use crate::wire::task::Task;
use std::fmt::Write;

/// How to answer: under the trigger if there is one thread, under the last comment of each if there are several.
pub(super) fn instructions(task: &Task) -> String {
    let issue = token(&task.issue_id).unwrap_or("<issue id>");
    let threads = threads(task);
    let mut text = String::from("\n## Where to answer\n\n");
    if threads.len() < 2 {
        let parent = token(&task.trigger_comment_id).unwrap_or("<comment id>");
        let _ = writeln!(
            text,
            "Write your answer to a file and post it once:\n`multica issue comment add {issue} --parent {parent} --content-file <file>`"
        );
        return text;
    }
    text.push_str(
        "The comments are in several threads. Answer each thread on its own, with one comment:\n\n",
    );
    for (thread, last) in threads {
        let _ = writeln!(
            text,
            "- thread `{thread}`: `multica issue comment add {issue} --parent {last} --content-file <file>`"
        );
    }
    text
}

/// Threads with the last comment of each, in order of their first appearance.
fn threads(task: &Task) -> Vec<(String, String)> {
    let mut threads: Vec<(String, String)> = Vec::new();
    let earlier = task.coalesced_comments.iter().map(|comment| (&comment.thread_id, &comment.id));
    for (thread, comment) in earlier.chain([(&task.trigger_thread_id, &task.trigger_comment_id)]) {
        // The root of a thread may come without naming itself.
        let thread = if thread.is_empty() { comment } else { thread };
        let (Some(thread), Some(comment)) = (token(thread), token(comment)) else { continue };
        match threads.iter_mut().find(|(known, _)| known == thread) {
            Some((_, last)) => comment.clone_into(last),
            None => threads.push((thread.to_owned(), comment.to_owned())),
        }
    }
    threads
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_is_answered_at_the_trigger_and_several_each_at_their_end() {
        let one: Task =
            serde_json::from_str(r#"{"issue_id":"i","trigger_comment_id":"c9","trigger_thread_id":"t"}"#)
                .expect("task");
        assert!(instructions(&one).contains("comment add i --parent c9 --content-file"));
        let two: Task = serde_json::from_str(
            r#"{"issue_id":"i","trigger_comment_id":"c9","trigger_thread_id":"t1","coalesced_comments":[
                {"id":"c1","thread_id":"t1"},{"id":"c2","thread_id":"t2"},{"id":"c3","thread_id":"t2"}]}"#,
        )
        .expect("task");
        let text = instructions(&two);
        let (first, second) = (text.find("thread `t1`").expect("t1"), text.find("thread `t2`").expect("t2"));
        assert!(first < second && text.contains("--parent c9") && text.contains("--parent c3"));
        assert!(!text.contains("--parent c1"));
    }
}
