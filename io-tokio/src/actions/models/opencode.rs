//! `OpenCode`: a line for each model, and in its longer list a JSON object behind it.

use super::Cli;
use super::levels::{in_order, levels, thinking};
use super::lines::{is_slashed, of_provider, slashed};
use crate::wire::action::Model;
use serde_json::Value;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(15);

pub(super) async fn ask(cli: Cli<'_>) -> Result<Vec<Model>, String> {
    match cli.says(&["models", "--verbose"], LIMIT).await {
        Ok(text) => Ok(verbose(&text)),
        // An older one does not know the flag.
        Err(_) => Ok(slashed(&cli.says(&["models"], LIMIT).await?)),
    }
}

fn verbose(text: &str) -> Vec<Model> {
    let mut models: Vec<Model> = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        if let Some(model) = models.last_mut()
            && rest.trim_start().starts_with('{')
        {
            let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
            if let Some(Ok(object)) = values.next() {
                rest = &rest[values.byte_offset()..];
                told(model, &object);
                continue;
            }
        }
        let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
        let id = line.trim();
        if is_slashed(id) && !id.contains(char::is_whitespace) {
            models.push(of_provider(id));
        }
        rest = after;
    }
    models
}

/// What the object says: a name, and how hard the model can be told to think.
fn told(model: &mut Model, object: &Value) {
    if let Some(name) = object["name"].as_str().filter(|name| !name.is_empty()) {
        name.clone_into(&mut model.label);
    }
    let values: Vec<&str> = match (&object["variants"], &object["reasoning"]) {
        (Value::Object(variants), _) => variants.keys().map(String::as_str).collect(),
        (Value::Array(variants), _) => variants.iter().filter_map(name_of).collect(),
        (_, Value::Array(efforts)) => efforts.iter().filter_map(name_of).collect(),
        (_, Value::Object(reasoning)) => reasoning
            .get("efforts")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(name_of)
            .collect(),
        _ => Vec::new(),
    };
    model.thinking = thinking(levels(in_order(values)), "");
}

fn name_of(value: &Value) -> Option<&str> {
    value.as_str().or_else(|| value["id"].as_str()).or_else(|| value["name"].as_str())
}
