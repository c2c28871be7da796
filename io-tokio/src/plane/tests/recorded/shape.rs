//! Where two answers differ in what a daemon can rely on: fields, types, and the words that are looked at.

use serde_json::Value;

/// Fields whose very words count.
const WORDS: [&str; 9] =
    ["status", "error", "provider", "runtime_mode", "launch_header", "kind", "type", "source", "profile_id"];
/// Fields whose inner names are data.
const OPAQUE: [&str; 3] = ["custom_env", "settings", "input"];

const fn kind(of: &Value) -> &'static str {
    match of {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The differences, each with its place.
pub(super) fn differences(recorded: &Value, ours: &Value) -> Vec<String> {
    let mut out = Vec::new();
    differ("$", "", recorded, ours, &mut out);
    out.sort();
    out.dedup();
    out
}

fn differ(at: &str, field: &str, recorded: &Value, ours: &Value, out: &mut Vec<String>) {
    match (recorded, ours) {
        (Value::Object(recorded), Value::Object(ours)) => {
            if OPAQUE.contains(&field) {
                return;
            }
            for (name, value) in recorded {
                match ours.get(name) {
                    Some(own) => differ(&format!("{at}.{name}"), name, value, own, out),
                    None => out.push(format!("{at}.{name} is missing")),
                }
            }
            for name in ours.keys().filter(|name| !recorded.contains_key(*name)) {
                out.push(format!("{at}.{name} is not recorded"));
            }
        }
        (Value::Array(recorded), Value::Array(ours)) => {
            if recorded.len() != ours.len() {
                out.push(format!("{at} has another number of elements"));
            }
            for (value, own) in recorded.iter().zip(ours) {
                differ(&format!("{at}[]"), field, value, own, out);
            }
        }
        (Value::String(recorded), Value::String(ours)) if WORDS.contains(&field) && recorded != ours => {
            out.push(format!("{at} is {ours:?}, recorded is {recorded:?}"));
        }
        _ if kind(recorded) != kind(ours) => {
            out.push(format!("{at} is {}, recorded is {}", kind(ours), kind(recorded)));
        }
        _ => {}
    }
}

#[test]
fn differences_are_found_in_fields_types_and_words() {
    use serde_json::json;
    let recorded = json!({ "id": "a", "status": "ok", "list": [{ "n": 1 }], "gone": 1, "at": null });
    let ours = json!({ "id": "b", "status": "no", "list": [{ "n": "1" }, {}], "more": 1, "at": "x" });
    assert_eq!(
        differences(&recorded, &ours),
        [
            "$.at is string, recorded is null",
            "$.gone is missing",
            "$.list has another number of elements",
            "$.list[].n is string, recorded is number",
            "$.more is not recorded",
            "$.status is \"no\", recorded is \"ok\"",
        ]
    );
    assert_eq!(differences(&recorded, &recorded), [""; 0]);
}
