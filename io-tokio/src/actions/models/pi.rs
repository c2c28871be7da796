//! Pi and Oh-My-Pi. Pi is asked over its RPC mode, and if that does not answer, for its table.

use super::levels::{levels, thinking};
use super::{Cli, first_object, named};
use crate::discover::dialogue::Next;
use crate::wire::action::Model;
use serde_json::{Value, json};
use std::time::Duration;

const RPC: [&str; 6] =
    ["--mode", "rpc", "--no-session", "--no-skills", "--no-prompt-templates", "--no-context-files"];
const RPC_LIMIT: Duration = Duration::from_secs(7);
const TABLE_LIMIT: Duration = Duration::from_secs(8);
const OMP_LIMIT: Duration = Duration::from_secs(15);
/// Levels that each model that thinks has, unless it maps one of them to nothing.
const USUAL: [&str; 5] = ["off", "minimal", "low", "medium", "high"];
/// Levels that a model has only if it maps them to something.
const MAPPED: [&str; 2] = ["xhigh", "max"];

pub(super) async fn pi(cli: Cli<'_>) -> Result<Vec<Model>, String> {
    match rpc(cli).await {
        Some(models) if !models.is_empty() => Ok(models),
        _ => {
            let said = cli.listen(&["--list-models"], TABLE_LIMIT).await?;
            let printed = if said.stdout.trim().is_empty() { &said.stderr } else { &said.stdout };
            Ok(table(printed))
        }
    }
}

async fn rpc(cli: Cli<'_>) -> Option<Vec<Model>> {
    let argv = cli.argv(&RPC);
    let ask = |id: &str, kind: &str| json!({ "id": id, "type": kind }).to_string();
    let first = vec![ask("state", "get_state"), ask("models", "get_available_models")];
    let (mut state, mut models) = (None, None);
    let heard = |line: &str| {
        let Ok(reply) = serde_json::from_str::<Value>(line) else { return Next::Wait };
        if reply["type"] != "response" {
            return Next::Wait;
        }
        match reply["command"].as_str().or_else(|| reply["id"].as_str()) {
            Some("get_state" | "state") => state = Some(reply["data"].clone()),
            Some("get_available_models" | "models") => models = Some(reply["data"].clone()),
            _ => {}
        }
        match (&state, &models) {
            (Some(state), Some(models)) => Next::Done(read(state, models)),
            _ => Next::Wait,
        }
    };
    cli.dialogue(&argv, None, RPC_LIMIT).ask(first, heard).await.ok().flatten()
}

fn read(state: &Value, models: &Value) -> Vec<Model> {
    let current = &state["model"];
    let listed = models["models"].as_array().or_else(|| models.as_array());
    let model = |listed: &Value| {
        let (provider, id) = (listed["provider"].as_str().unwrap_or_default(), listed["id"].as_str()?);
        let full = if provider.is_empty() { id.to_owned() } else { format!("{provider}/{id}") };
        let map = &listed["thinkingLevelMap"];
        let values = USUAL
            .iter()
            .filter(|level| !map.get(**level).is_some_and(Value::is_null))
            .chain(MAPPED.iter().filter(|level| map.get(**level).is_some_and(|to| !to.is_null())));
        let thinks = listed["reasoning"].as_bool().unwrap_or(false);
        Some(Model {
            provider: provider.to_owned(),
            default: current["id"] == listed["id"] && current["provider"] == listed["provider"],
            thinking: thinks.then(|| thinking(levels(values.copied()), "")).flatten(),
            ..named(&full, listed["name"].as_str().unwrap_or_default())
        })
    };
    listed.into_iter().flatten().filter_map(model).collect()
}

/// Columns `provider` and `model`, with a head.
fn table(text: &str) -> Vec<Model> {
    let row = |line: &str| {
        let mut columns = line.split_whitespace();
        let (provider, id) = (columns.next()?, columns.next()?);
        let head = provider.eq_ignore_ascii_case("provider") || provider.chars().all(|c| "-─=".contains(c));
        (!head).then(|| Model { provider: provider.to_owned(), ..named(&format!("{provider}/{id}"), id) })
    };
    text.lines().filter_map(row).collect()
}

pub(super) async fn omp(cli: Cli<'_>) -> Result<Vec<Model>, String> {
    let text = cli.says(&["models", "--json"], OMP_LIMIT).await?;
    let listed = first_object(&text).ok_or("Oh-My-Pi printed no list of models")?;
    let model = |listed: &Value| {
        let text = |key: &str| listed[key].as_str().unwrap_or_default().to_owned();
        let (provider, id, selector) = (text("provider"), text("id"), text("selector"));
        let id = match (selector.is_empty(), provider.is_empty()) {
            (false, _) => selector,
            (true, false) => format!("{provider}/{id}"),
            (true, true) => id,
        };
        (!id.is_empty()).then(|| Model { provider, ..named(&id, &text("name")) })
    };
    Ok(listed["models"].as_array().into_iter().flatten().filter_map(model).collect())
}
