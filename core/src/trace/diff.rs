//! Where two effects, or two states, differ, field by field.

use crate::effect::Effect;
use serde_json::Value;

/// Most fields that are named.
const MOST: usize = 8;
/// Longest text of one value, in characters.
const WIDE: usize = 120;

/// One text for each field that differs, at most [`MOST`].
pub(super) fn fields(recorded: &Effect, produced: &Effect) -> Vec<String> {
    let mut out = Vec::new();
    if let (Ok(a), Ok(b)) = (serde_json::to_value(recorded), serde_json::to_value(produced)) {
        walk("", &a, &b, &mut out);
    }
    out
}

/// The same for two texts of JSON.
pub(super) fn texts(recorded: &str, produced: &str) -> Vec<String> {
    let mut out = Vec::new();
    if let (Ok(a), Ok(b)) = (serde_json::from_str(recorded), serde_json::from_str(produced)) {
        walk("", &a, &b, &mut out);
    }
    out
}

fn walk(path: &str, a: &Value, b: &Value, out: &mut Vec<String>) {
    if a == b || out.len() >= MOST {
        return;
    }
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            let only_b = b.keys().filter(|key| !a.contains_key(*key));
            for key in a.keys().chain(only_b) {
                let null = Value::Null;
                walk(&join(path, key), a.get(key).unwrap_or(&null), b.get(key).unwrap_or(&null), out);
            }
        }
        (Value::Array(a), Value::Array(b)) => {
            if a.len() != b.len() {
                out.push(format!("{path}: {} elements were recorded, {} were produced", a.len(), b.len()));
            }
            for (i, (a, b)) in a.iter().zip(b).enumerate() {
                walk(&join(path, &i.to_string()), a, b, out);
            }
        }
        _ => out.push(format!("{path}: {} was recorded, {} was produced", short(a), short(b))),
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(WIDE) {
        Some((cut, _)) => format!("{} …", &text[..cut]),
        None => text,
    }
}
