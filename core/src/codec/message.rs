//! What a codec says while it reads: the agent's messages, and what the run has to do.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Bytes of a text or a thought in one message; a longer one becomes several.
pub const MAX_TEXT: usize = 256 << 10;

/// Bytes of a tool's result that are kept.
pub const MAX_TOOL_RESULT: usize = 8192;

/// Bytes of an id or a name that are kept.
pub const MAX_NAME: usize = 1024;

/// One entry of a run's transcript.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AgentMessage {
    /// The agent said something.
    Text {
        /// At most [`MAX_TEXT`] bytes.
        text: String,
    },
    /// The agent thought something.
    Thinking {
        /// At most [`MAX_TEXT`] bytes.
        text: String,
    },
    /// The agent called a tool.
    ToolUse {
        /// Ties the result to the call; may be empty.
        call_id: String,
        /// The tool.
        name: String,
        /// A JSON object as text, as long as the line it came on. It may be nested deeper than a strict reader goes, but
        /// has no lone surrogate and no `\u0000` in it.
        input: String,
    },
    /// A tool has ended.
    ToolResult {
        /// The call that has ended; may be empty.
        call_id: String,
        /// The tool, where the call was seen; else empty.
        name: String,
        /// What it gave, at most [`MAX_TOOL_RESULT`] bytes; in which form depends on the agent.
        output: String,
    },
    /// The agent reported an error that does not end the run.
    Error {
        /// The error.
        text: String,
    },
    /// Something that a reader of the transcript should know about it, in the daemon's words.
    Note {
        /// The note.
        text: String,
    },
}

/// What a codec wants to be done, in this order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "output", content = "value", rename_all = "snake_case")]
pub enum Output {
    /// Add this to the transcript.
    Message(AgentMessage),
    /// The session that a later run can continue. It comes at most once, and only when the agent has taken the prompt and
    /// has not merely failed to find the session it was to resume.
    Session(String),
    /// Write this to the agent's stdin as it is; it ends with a line feed.
    Write(String),
    /// The agent has said how the run ended: close its stdin. Comes at most once; other outputs may follow.
    Result,
    /// For the daemon's own log, not for the transcript.
    Log {
        /// How bad the agent or the codec thinks it is: `debug`, `info`, `warn` or `error`, or what the agent calls it.
        level: String,
        /// At most 1 KiB.
        text: String,
    },
}

impl fmt::Display for Output {
    /// Kind and size only: texts do not belong in a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, bytes) = match self {
            Self::Message(AgentMessage::Text { text }) => ("text", text.len()),
            Self::Message(AgentMessage::Thinking { text }) => ("thinking", text.len()),
            Self::Message(AgentMessage::ToolUse { input, .. }) => ("tool use", input.len()),
            Self::Message(AgentMessage::ToolResult { output, .. }) => ("tool result", output.len()),
            Self::Message(AgentMessage::Error { text }) => ("error", text.len()),
            Self::Message(AgentMessage::Note { text }) => ("note", text.len()),
            Self::Session(id) => ("session", id.len()),
            Self::Write(line) => ("write", line.len()),
            Self::Result => ("result", 0),
            Self::Log { text, .. } => ("log", text.len()),
        };
        write!(f, "{kind} of {bytes} bytes")
    }
}

/// The start of `text`, at most `max` bytes, cut between characters.
pub fn cut(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

/// `text` in pieces of at most `max` bytes (at least one character each), cut between characters; none for no text.
pub fn pieces(text: &str, max: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let (piece, after) = rest.split_at(rest.floor_char_boundary(max).max(first.len_utf8()));
        rest = after;
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_cut_never_splits_a_character() {
        assert_eq!(cut("aé", 2), "a");
        assert_eq!(cut("aé", 3), "aé");
        assert_eq!(cut("", 3), "");
    }

    proptest! {
        #[test]
        fn pieces_are_the_whole_text_and_within_the_bound(text in "\\PC{0,60}", max in 1usize..10) {
            let all: Vec<&str> = pieces(&text, max).collect();
            prop_assert_eq!(&all.concat(), &text);
            prop_assert!(all.iter().all(|p| !p.is_empty() && p.len() <= max.max(4)));
        }
    }
}
