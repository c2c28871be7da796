//! Agent CLIs that print a model on each line.

use super::levels::{levels, thinking};
use super::{Cli, Known, named};
use crate::wire::action::Model;
use serde_json::Value;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(15);
const ANTIGRAVITY_LIMIT: Duration = Duration::from_secs(10);

/// `id - Label (note)`, where the note may say that it is the default.
pub(super) async fn cursor(cli: Cli<'_>) -> Known {
    let models = match cli.says(&["--list-models"], LIMIT).await {
        Ok(text) => text.lines().filter_map(cursor_line).collect(),
        Err(why) => {
            tracing::warn!("Cursor does not say which models it has: {why}");
            Vec::new()
        }
    };
    if models.is_empty() {
        return Known::Instead(vec![Model { default: true, ..named("auto", "Auto") }]);
    }
    Known::Listed(models)
}

fn cursor_line(line: &str) -> Option<Model> {
    let (id, label) = line.trim().split_once(" - ")?;
    let id = id.trim();
    if id.is_empty() || id.contains(char::is_whitespace) {
        return None;
    }
    let default = label.to_ascii_lowercase().contains("default");
    let label = label.split(" (").next().unwrap_or(label).trim();
    Some(Model { default, ..named(id, label) })
}

/// The first column is `provider/model`.
pub(super) async fn deveco(cli: Cli<'_>) -> Result<Vec<Model>, String> {
    Ok(slashed(&cli.says(&["models"], LIMIT).await?))
}

/// What stands first on a line and has a slash in it.
pub(super) fn slashed(text: &str) -> Vec<Model> {
    let id = |line: &str| line.split_whitespace().next().filter(|id| is_slashed(id)).map(str::to_owned);
    text.lines().filter_map(id).map(|id| of_provider(&id)).collect()
}

/// Whether it is `provider/model`.
pub(super) fn is_slashed(id: &str) -> bool {
    id.split_once('/').is_some_and(|(provider, model)| !provider.is_empty() && !model.is_empty())
}

/// A model whose id starts with its provider.
pub(super) fn of_provider(id: &str) -> Model {
    let provider = id.split_once('/').map_or("", |(provider, _)| provider);
    Model { provider: provider.to_owned(), ..named(id, id) }
}

/// `id<TAB>label`.
pub(super) async fn antigravity(cli: Cli<'_>) -> Result<Vec<Model>, String> {
    let text = cli.says(&["models"], ANTIGRAVITY_LIMIT).await?;
    let model = |line: &str| {
        let (id, label) = line.split_once('\t')?;
        (!id.trim().is_empty()).then(|| named(id.trim(), label.trim()))
    };
    Ok(text.lines().filter_map(model).collect())
}

/// A frame of the type `models`, with what each can be told.
pub(super) async fn dsh(cli: Cli<'_>) -> Result<Vec<Model>, String> {
    let text = cli.says(&["--profile", "multica", "--list-models"], LIMIT).await?;
    let frames = text.lines().filter_map(|line| serde_json::from_str::<Value>(line.trim()).ok());
    let frame = frames.into_iter().find(|frame| frame["type"] == "models");
    let frame = frame.ok_or("DeepSeek Harness printed no list of models")?;
    let listed = frame["models"].as_array().map_or(&[] as &[Value], Vec::as_slice);
    let model = |listed: &Value| {
        let id = listed["id"].as_str().filter(|id| !id.is_empty())?;
        let told = &listed["thinking"];
        let values = told["supported_levels"].as_array().into_iter().flatten();
        let values = values.filter_map(|level| level.as_str().or_else(|| level["value"].as_str()));
        Some(Model {
            provider: listed["provider"].as_str().unwrap_or_default().to_owned(),
            default: listed["default"].as_bool().unwrap_or(false),
            thinking: thinking(levels(values), told["default_level"].as_str().unwrap_or_default()),
            ..named(id, listed["label"].as_str().unwrap_or_default())
        })
    };
    Ok(listed.iter().filter_map(model).collect())
}
