//! Which fields bodies have, and of which types.

use super::tape::Said;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The fields of the bodies of one route: `messages[].seq: number`.
#[derive(Debug)]
pub(super) struct Shape {
    /// Those that all of them have.
    pub(super) always: BTreeSet<String>,
    /// Those that at least one of them has.
    pub(super) ever: BTreeSet<String>,
}

/// The shapes of all routes that were used.
pub(super) fn shapes<'a>(said: impl IntoIterator<Item = &'a Said>) -> BTreeMap<&'a str, Shape> {
    let mut all: BTreeMap<&str, Shape> = BTreeMap::new();
    for said in said {
        let mut fields = BTreeSet::new();
        collect(&said.body, "", &mut fields);
        match all.get_mut(said.route.as_str()) {
            None => {
                let shape = Shape { always: fields.clone(), ever: fields };
                all.insert(&said.route, shape);
            }
            Some(shape) => {
                shape.always.retain(|field| fields.contains(field));
                shape.ever.extend(fields);
            }
        }
    }
    all
}

fn collect(value: &Value, path: &str, into: &mut BTreeSet<String>) {
    let kind = match value {
        // No body, and no items: nothing to tell apart.
        Value::Null if path.is_empty() => return,
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "text",
        Value::Array(items) => {
            for item in items {
                collect(item, &format!("{path}[]"), into);
            }
            "list"
        }
        // What an agent gives a tool is its own affair.
        Value::Object(fields) => {
            if path.rsplit('.').next() != Some("input") {
                for (name, value) in fields {
                    let name = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    collect(value, &name, into);
                }
            }
            "object"
        }
    };
    if !path.is_empty() {
        into.insert(format!("{path}: {kind}"));
    }
}
