//! What one message of the agent says, block by block.

use super::Run;
use crate::codec::json::{self, Json};
use crate::codec::message::{AgentMessage, MAX_NAME, MAX_TEXT, MAX_TOOL_RESULT, Output, cut, pieces};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Bytes of the last text that are kept in case the result has none.
const MAX_FALLBACK: usize = 1 << 20;

/// Something that the agent said.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Said {
    pub(super) text: String,
    /// Whether the text was longer than what is kept.
    pub(super) is_cut: bool,
}

impl Said {
    fn push(&mut self, text: &str) {
        let kept = cut(text, MAX_FALLBACK - self.text.len().min(MAX_FALLBACK));
        self.text.push_str(kept);
        self.is_cut |= kept.len() < text.len();
    }
}

/// What a message had in it.
#[derive(Default)]
struct Turn {
    said: Said,
    used_tool: bool,
    /// Something of an unknown kind, so that the text may not be all that was said.
    not_understood: bool,
}

impl Run {
    /// A message of the agent.
    pub(super) fn assistant(&mut self, event: Json<'_>, out: &mut Vec<Output>) {
        self.session.worked();
        let mut turn = Turn::default();
        match event.field("message").filter(|message| message.is_object()) {
            Some(message) => {
                let [model, content, usage] = message.fields(["model", "content", "usage"]);
                self.usage.of_message(model, usage);
                match content {
                    Some(content) if content.is_array() => {
                        content.each_item(|block| self.block(block, &mut turn, out));
                    }
                    Some(content) => match content.string() {
                        Some(text) => say(&text, &mut turn, out),
                        None => turn.not_understood = !content.is_null(),
                    },
                    None => {}
                }
            }
            None => turn.not_understood = true,
        }
        if turn.used_tool || turn.not_understood {
            self.fallback = Said::default();
        } else if !turn.said.text.is_empty() {
            self.fallback = turn.said;
        }
    }

    fn block(&mut self, block: Json<'_>, turn: &mut Turn, out: &mut Vec<Output>) {
        match block.text("type").as_ref() {
            "text" => say(&block.text("text"), turn, out),
            "thinking" => {
                let [thinking, text] = block.fields(["thinking", "text"]).map(text_of);
                let thought = if thinking.is_empty() { text } else { thinking };
                out.extend(
                    pieces(&thought, MAX_TEXT)
                        .map(|piece| Output::Message(AgentMessage::Thinking { text: piece.to_owned() })),
                );
            }
            "tool_use" => {
                turn.used_tool = true;
                self.tools_started = self.tools_started.saturating_add(1);
                let [id, name, input] = block.fields(["id", "name", "input"]);
                let call_id = cut(&text_of(id), MAX_NAME).to_owned();
                let name = cut(&text_of(name), MAX_NAME).to_owned();
                let input = input.filter(|input| input.is_object()).map_or("{}", Json::raw);
                let input = json::without_forbidden_escapes(input).into_owned();
                self.calls.started(&call_id, &name);
                out.push(Output::Message(AgentMessage::ToolUse { call_id, name, input }));
            }
            _ => turn.not_understood = true,
        }
    }

    /// A message to the agent: the results of its tools.
    pub(super) fn user(&mut self, event: Json<'_>, out: &mut Vec<Output>) {
        self.session.prompt_taken();
        let Some(content) = event.field("message").and_then(|message| message.field("content")) else {
            return;
        };
        content.each_item(|block| {
            if block.text("type") != "tool_result" {
                return;
            }
            let [id, content] = block.fields(["tool_use_id", "content"]);
            let call_id = cut(&text_of(id), MAX_NAME).to_owned();
            // The text of the JSON value as it stands: a string keeps its quotes.
            let output = cut(content.map_or("", Json::raw), MAX_TOOL_RESULT).to_owned();
            self.in_background |= content.is_some_and(went_to_background);
            let name = self.calls.ended(&call_id);
            out.push(Output::Message(AgentMessage::ToolResult { call_id, name, output }));
        });
    }
}

fn say(text: &str, turn: &mut Turn, out: &mut Vec<Output>) {
    turn.said.push(text);
    out.extend(
        pieces(text, MAX_TEXT).map(|piece| Output::Message(AgentMessage::Text { text: piece.to_owned() })),
    );
}

fn text_of(value: Option<Json<'_>>) -> Cow<'_, str> {
    value.and_then(Json::string).unwrap_or_default()
}

/// Whether a tool's result says that the tool goes on in the background.
fn went_to_background(content: Json<'_>) -> bool {
    let is_launched = |value: Json<'_>| value.text("status") == "async_launched";
    let mut found = is_launched(content);
    content.each_item(|item| found |= is_launched(item));
    if let Some(inner) = content.field("content") {
        inner.each_item(|item| found |= is_launched(item));
    }
    found
}
