//! What an agent says, for people who read it in a terminal.

use crate::plane::Message;
use serde_json::Value;
use std::io::{self, Write};

/// Characters of a line about a tool.
const TOOL_LINE: usize = 120;
/// The arguments that say most about a tool call, the best first.
const TELLING: [&str; 8] =
    ["command", "file_path", "path", "pattern", "url", "query", "description", "prompt"];

/// Prints a transcript as it grows: texts to the one writer, tools as short lines to the other.
pub(crate) struct Speech<O, E> {
    out: O,
    err: E,
    seen: i32,
    last: String,
}

impl<O: Write, E: Write> Speech<O, E> {
    pub(crate) fn new(out: O, err: E) -> Self {
        Self { out, err, seen: 0, last: String::new() }
    }

    /// The place of the last message that was printed.
    pub(crate) fn seen(&self) -> i32 {
        self.seen
    }

    /// Prints what is new. A batch may come twice, so messages are told apart by their places.
    pub(crate) fn hear(&mut self, transcript: &[Message]) -> io::Result<()> {
        for message in transcript {
            if message.seq <= self.seen {
                continue;
            }
            self.seen = message.seq;
            let content = message.content.as_deref().unwrap_or_default();
            match &*message.kind {
                "text" => self.say(content)?,
                "tool_use" => {
                    let tool = message.tool.as_deref().unwrap_or("tool");
                    writeln!(self.err, "· {}", call(tool, message.input.as_deref()))?;
                }
                "error" => writeln!(self.err, "! {}", one_line(content, TOOL_LINE))?,
                // Thoughts and the results of tools are in the work, not in the answer.
                _ => {}
            }
        }
        Ok(())
    }

    /// Prints the final answer, unless that is what was said last.
    pub(crate) fn answer(&mut self, answer: &str) -> io::Result<()> {
        if answer.trim().is_empty() || answer.trim() == self.last.trim() {
            return Ok(());
        }
        self.say(answer)
    }

    fn say(&mut self, text: &str) -> io::Result<()> {
        text.clone_into(&mut self.last);
        writeln!(self.out, "{}", plain(text.trim_end()))?;
        self.out.flush()
    }
}

/// A tool call in a few words.
pub(crate) fn call(tool: &str, input: Option<&str>) -> String {
    let input: Value = input.and_then(|input| serde_json::from_str(input).ok()).unwrap_or_default();
    let told = TELLING.iter().find_map(|name| input[*name].as_str()).unwrap_or_default();
    one_line(&format!("{tool} {told}"), TOOL_LINE)
}

/// The text without what would steer a terminal: control characters other than line ends and tabs.
pub(crate) fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}

/// The text on one line of at most `most` characters.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    let mut line = String::new();
    for word in words {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.chars().count() > most {
            let kept: String = line.chars().take(most.saturating_sub(1)).collect();
            return kept + "…";
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use longshore_core::time::{Instant, Now, UnixMillis};

    fn message(seq: i32, kind: &str, content: &str) -> Message {
        let at = Now::new(Instant::ZERO, UnixMillis(0));
        Message {
            seq,
            kind: kind.into(),
            tool: None,
            content: Some(content.into()),
            input: None,
            output: None,
            at,
        }
    }

    fn printed(hear: impl FnOnce(&mut Speech<&mut Vec<u8>, &mut Vec<u8>>)) -> (String, String) {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        hear(&mut Speech::new(&mut out, &mut err));
        (String::from_utf8(out).expect("UTF-8"), String::from_utf8(err).expect("UTF-8"))
    }

    #[test]
    fn texts_are_printed_once_and_tools_go_beside_them() {
        let tool = Message {
            tool: Some("Bash".into()),
            input: Some(r#"{"command":"cargo test\n--all"}"#.into()),
            ..message(2, "tool_use", "")
        };
        let said = [message(1, "text", "first"), tool, message(3, "thinking", "hm")];
        let (out, err) = printed(|speech| {
            speech.hear(&said[..1]).expect("printed");
            speech.hear(&said).expect("printed");
            speech.hear(&said).expect("printed");
        });
        assert_eq!((out.as_str(), err.as_str()), ("first\n", "· Bash cargo test --all\n"));
    }

    #[test]
    fn the_answer_ends_the_output_and_is_not_repeated() {
        let (same, _) = printed(|speech| {
            speech.hear(&[message(1, "text", "Four.\n")]).expect("printed");
            speech.answer("Four.").expect("printed");
        });
        assert_eq!(same, "Four.\n");
        let (other, _) = printed(|speech| {
            speech.hear(&[message(1, "text", "I count.")]).expect("printed");
            speech.answer("Four.").expect("printed");
        });
        assert_eq!(other, "I count.\nFour.\n");
    }

    #[test]
    fn what_an_agent_says_does_not_steer_the_terminal() {
        assert_eq!(plain("a\x1b[2Jb\r\n\tc\x07\u{9b}"), "a[2Jb\n\tc");
        assert_eq!(one_line("a\n\n b\x1bc  d", 20), "a b c d");
        assert_eq!(one_line("abcdef ghi", 5), "abcd…");
    }
}
