//! The transcript of a run: what is posted, and what the server says it has.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Levels of nesting in a tool's input that are passed on. The server refuses a whole batch that nests deeper than
/// its own limit.
pub const MAX_INPUT_DEPTH: usize = 512;

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageKind {
    /// Text of the agent.
    Text,
    /// Its reasoning.
    Thinking,
    /// It calls a tool.
    ToolUse,
    /// What the tool said.
    ToolResult,
    /// Something went wrong.
    Error,
}

/// One message of the transcript. It is read again only from our own disk.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Message {
    /// From 1, rising by one within a task, at most `i32::MAX`.
    pub seq: u32,
    /// What it is.
    #[serde(rename = "type")]
    pub kind: MessageKind,
    /// Name of the tool; left out if empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tool: String,
    /// Text, reasoning or error; left out if empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub content: String,
    /// Arguments of the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<ToolInput>,
    /// Result of the tool; left out if empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
}

impl Message {
    /// What it takes, in bytes: roughly as much as on the wire.
    pub fn size(&self) -> usize {
        let input = self.input.as_ref().map_or(0, |input| input.get().len());
        64 + self.tool.len() + self.content.len() + self.output.len() + input
    }
}

/// A batch of messages.
#[derive(Clone, Debug, Serialize)]
pub struct MessagesRequest<'a> {
    /// In order; the whole batch is stored or nothing.
    pub messages: &'a [Message],
}

/// Arguments of a tool: always an object, as the server refuses the whole batch for anything else.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ToolInput(Box<RawValue>);

impl ToolInput {
    /// Takes the arguments as the agent wrote them. What is no object becomes `{"value": …}`, and what nests deeper
    /// than [`MAX_INPUT_DEPTH`] becomes that with its JSON as a text. `None` for `null`.
    pub fn new(raw: &RawValue) -> Option<Self> {
        let text = raw.get();
        if text == "null" {
            return None;
        }
        let value = if is_deeper_than(MAX_INPUT_DEPTH, text) {
            serde_json::Value::from(text).to_string()
        } else if text.starts_with('{') {
            return Some(Self(raw.to_owned()));
        } else {
            text.to_owned()
        };
        RawValue::from_string(format!(r#"{{"value":{value}}}"#)).ok().map(Self)
    }

    /// The object.
    pub fn get(&self) -> &str {
        self.0.get()
    }
}

/// Whether valid JSON nests deeper than `limit`.
fn is_deeper_than(limit: usize, json: &str) -> bool {
    let (mut depth, mut in_text, mut escaped) = (0, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => in_text = !in_text,
            b'{' | b'[' if !in_text => depth += 1,
            b'}' | b']' if !in_text => depth -= 1,
            _ => {}
        }
        if depth > limit {
            return true;
        }
    }
    false
}

/// A message that the server has, by what tells it from others.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct StoredMessage {
    /// Its number.
    pub seq: i64,
    /// What it is, in the server's words.
    #[serde(rename = "type", default, deserialize_with = "super::lenient::field")]
    pub kind: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::register::Readable;

    fn input(json: String) -> Option<String> {
        ToolInput::new(&RawValue::from_string(json).expect("json")).map(|input| input.get().to_owned())
    }

    #[test]
    fn a_tools_input_is_always_an_object() {
        assert_eq!(input("null".into()), None);
        assert_eq!(input(r#"{ "a":[1.0] }"#.into()).as_deref(), Some(r#"{ "a":[1.0] }"#));
        assert_eq!(input("[1]".into()).as_deref(), Some(r#"{"value":[1]}"#));
        assert_eq!(input("\"x\"".into()).as_deref(), Some(r#"{"value":"x"}"#));
    }

    #[test]
    fn a_bottomless_input_becomes_a_text() {
        let deep = |levels: usize| format!(r#"{{"a":{}"]"{}}}"#, "[".repeat(levels), "]".repeat(levels));
        let fits = deep(MAX_INPUT_DEPTH - 1);
        assert_eq!(input(fits.clone()), Some(fits));
        let wrapped = input(deep(MAX_INPUT_DEPTH)).expect("an object");
        let value: serde_json::Value = serde_json::from_str(&wrapped).expect("json");
        assert_eq!(value["value"].as_str(), Some(deep(MAX_INPUT_DEPTH).as_str()));
    }

    #[test]
    fn empty_fields_are_left_out() {
        let message = Message {
            seq: 3,
            kind: MessageKind::ToolUse,
            tool: "Bash".into(),
            content: String::new(),
            input: ToolInput::new(&RawValue::from_string("{}".into()).expect("json")),
            output: String::new(),
        };
        let text = serde_json::to_string(&MessagesRequest { messages: &[message] }).expect("json");
        assert_eq!(text, r#"{"messages":[{"seq":3,"type":"tool_use","tool":"Bash","input":{}}]}"#);
    }

    #[test]
    fn stored_messages_are_told_by_their_number() {
        let stored: Readable<StoredMessage> =
            Readable::list(r#"[{"task_id":"t","seq":1,"type":"text","content":"x"},{"seq":"2"},{"seq":3}]"#)
                .expect("a list");
        let numbers: Vec<_> = stored.items.iter().map(|message| message.seq).collect();
        assert_eq!((numbers, stored.unusable), (vec![1, 3], 1));
    }
}
