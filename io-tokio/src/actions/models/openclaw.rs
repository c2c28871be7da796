//! `OpenClaw`: its models are the agents that its user has configured.

use super::{Cli, named};
use crate::wire::action::Model;
use serde_json::Value;
use std::time::Duration;
use tokio::time::Instant;

const LIMIT: Duration = Duration::from_secs(30);

pub(super) async fn ask(cli: Cli<'_>) -> Result<Vec<Model>, String> {
    let started = Instant::now();
    let ways: [&[&str]; 3] = [
        &["agents", "list", "--json"],
        &["agents", "list", "--output", "json"],
        &["agents", "list", "-o", "json"],
    ];
    for way in ways {
        let left = left(started)?;
        if let Ok(text) = cli.says(way, left).await
            && let Some(agents) = read(&text)
        {
            return Ok(agents);
        }
    }
    Ok(table(&cli.says(&["agents", "list"], left(started)?).await?))
}

/// What is left of the time for all ways.
fn left(started: Instant) -> Result<Duration, String> {
    let left = LIMIT.checked_sub(started.elapsed()).filter(|left| !left.is_zero());
    left.ok_or_else(|| format!("`openclaw agents list` has not answered within {LIMIT:?}"))
}

/// A list of agents, or an object that has one; `None` if it is neither.
fn read(text: &str) -> Option<Vec<Model>> {
    let at = text.find(['[', '{'])?;
    let value: Value = serde_json::Deserializer::from_str(&text[at..]).into_iter().next()?.ok()?;
    let agents = value.as_array().or_else(|| value["agents"].as_array())?;
    let agent = |value: &Value| {
        let id = value.as_str().or_else(|| value["id"].as_str()).filter(|id| !id.is_empty())?;
        let default = value["isDefault"].as_bool().or_else(|| value["default"].as_bool()).unwrap_or(false);
        Some(Model { default, ..named(id, value["name"].as_str().unwrap_or_default()) })
    };
    Some(agents.iter().filter_map(agent).collect())
}

/// The first column of what people read; a list has bullets, a table a head and rules.
fn table(text: &str) -> Vec<Model> {
    let id = |line: &str| {
        let line = line.trim_matches(|c: char| c.is_whitespace() || "│|-*•─".contains(c));
        let id = line.split(|c: char| c.is_whitespace() || c == '│' || c == '|').next()?;
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let head = ["id", "agent", "agents", "name"].contains(&id.to_ascii_lowercase().as_str())
            || id.ends_with(':');
        (!id.is_empty() && !head && id.chars().all(plain)).then(|| named(id, id))
    };
    text.lines().filter_map(id).collect()
}
