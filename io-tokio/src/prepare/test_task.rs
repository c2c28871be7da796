//! Tasks for tests.

use crate::wire::task::Task;

/// A task from JSON with some fields in place of its own, as `,"name":value,…`.
pub(super) fn with_fields(base: &str, extra: &str) -> Task {
    type Fields = serde_json::Map<String, serde_json::Value>;
    let mut fields: Fields = serde_json::from_str(base).expect("an object");
    let extra = format!("{{{}}}", extra.trim_start_matches(','));
    fields.extend(serde_json::from_str::<Fields>(&extra).expect("an object"));
    serde_json::from_value(serde_json::Value::Object(fields)).expect("a task")
}
