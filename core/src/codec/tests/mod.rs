//! Tests of whole codecs: bytes in, messages and an outcome out.

mod argv;
mod bounds;
mod bugs;
mod chunking;
mod control;
mod endings;
mod messages;
mod resume;
mod usage;

use super::message::{AgentMessage, Output};
use super::options::Options;
use super::outcome::{EndedBy, Exit, Outcome};
use super::{AgentCodec, Codec, Family};

/// A run that was fed with `stdout`, and all that the codec said.
struct Fed {
    run: AgentCodec,
    out: Vec<Output>,
}

fn feed_with(options: &Options, stdout: impl AsRef<[u8]>) -> Fed {
    let mut fed = Fed { run: Family::Claude.start(options), out: Vec::new() };
    fed.run.stdout(stdout.as_ref(), &mut fed.out);
    fed.run.stdout_end(&mut fed.out);
    fed
}

fn feed(stdout: impl AsRef<[u8]>) -> Fed {
    feed_with(&Options::default(), stdout)
}

impl Fed {
    fn messages(&self) -> Vec<AgentMessage> {
        self.out
            .iter()
            .filter_map(|output| match output {
                Output::Message(message) => Some(message.clone()),
                _ => None,
            })
            .collect()
    }

    fn sessions(&self) -> Vec<&str> {
        self.out
            .iter()
            .filter_map(|output| match output {
                Output::Session(id) => Some(id.as_str()),
                _ => None,
            })
            .collect()
    }

    fn written(&self) -> Vec<&str> {
        self.out
            .iter()
            .filter_map(|output| match output {
                Output::Write(line) => Some(line.as_str()),
                _ => None,
            })
            .collect()
    }

    fn end(mut self, exit: Exit, ended_by: EndedBy) -> Outcome {
        self.run.finish(exit, ended_by)
    }

    fn exits(self, code: i32) -> Outcome {
        self.end(Exit::code(code), EndedBy::Itself)
    }
}

fn text(text: &str) -> AgentMessage {
    AgentMessage::Text { text: text.into() }
}

fn thinking(text: &str) -> AgentMessage {
    AgentMessage::Thinking { text: text.into() }
}

fn tool_use(call_id: &str, name: &str, input: &str) -> AgentMessage {
    AgentMessage::ToolUse { call_id: call_id.into(), name: name.into(), input: input.into() }
}

fn tool_result(call_id: &str, name: &str, output: &str) -> AgentMessage {
    AgentMessage::ToolResult { call_id: call_id.into(), name: name.into(), output: output.into() }
}

const INIT: &str = r#"{"type":"system","subtype":"init","session_id":"s-1","model":"m-1"}
"#;

const DONE: &str = r#"{"type":"result","subtype":"success","is_error":false,"result":"All done.","session_id":"s-1"}
"#;

/// A message of the agent that says `words` (which have to need no escapes).
fn says(words: &str) -> String {
    format!(
        r#"{{"type":"assistant","message":{{"model":"m-1","content":[{{"type":"text","text":"{words}"}}]}}}}"#
    ) + "\n"
}

/// A message of the agent with these content blocks.
fn blocks(blocks: &str) -> String {
    format!(r#"{{"type":"assistant","message":{{"model":"m-1","content":[{blocks}]}}}}"#) + "\n"
}
