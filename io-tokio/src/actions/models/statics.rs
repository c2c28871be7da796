//! Lists that stand in for an agent CLI that does not say which models it has.

use super::levels::{ORDER, levels, thinking};
use super::named;
use crate::wire::action::Model;

fn plain(ids: &[&str]) -> Vec<Model> {
    let model = |(nth, id): (usize, &&str)| Model { default: nth == 0, ..named(id, id) };
    ids.iter().enumerate().map(model).collect()
}

/// Codex: models, and the last of the levels from `low` on, and the default one.
pub(super) fn codex() -> Vec<Model> {
    const LEVELS: [&str; 6] = ["low", "medium", "high", "xhigh", "max", "ultra"];
    const MODELS: [(&str, usize, &str); 8] = [
        ("gpt-5.6-sol", 6, "low"),
        ("gpt-5.6-terra", 6, "medium"),
        ("gpt-5.6-luna", 5, "medium"),
        ("gpt-5.5", 4, "medium"),
        ("gpt-5.4", 4, "medium"),
        ("gpt-5.4-mini", 4, "medium"),
        ("gpt-5.3-codex", 4, "medium"),
        ("gpt-5.2", 4, "medium"),
    ];
    let mut models = plain(&MODELS.map(|(id, ..)| id));
    for (model, (_, count, default)) in models.iter_mut().zip(MODELS) {
        model.thinking = thinking(levels(LEVELS[..count].iter().copied()), default);
    }
    models
}

pub(super) fn codebuddy() -> Vec<Model> {
    let mut models = plain(&[
        "claude-sonnet-4.6",
        "claude-opus-4.7",
        "gemini-3.1-pro",
        "gpt-5.5",
        "deepseek-v3-2-volc-ioa",
    ]);
    for model in &mut models {
        model.thinking = thinking(levels(ORDER[1..].iter().copied()), "medium");
    }
    models
}

pub(super) fn copilot() -> Vec<Model> {
    let mut models = plain(&[
        "gpt-5.5",
        "gpt-5.4",
        "gpt-5.4-mini",
        "gpt-5.3-codex",
        "gpt-5.2-codex",
        "gpt-5.2",
        "gpt-5-mini",
        "gpt-4.1",
        "claude-opus-4.7",
        "claude-sonnet-4.6",
        "claude-sonnet-4.5",
        "claude-haiku-4.5",
    ]);
    // Which one it uses if none is chosen depends on the person's plan.
    models[0].default = false;
    models
}

pub(super) fn grok() -> Vec<Model> {
    let mut models = plain(&["grok-4.5", "grok-composer-2.5-fast"]);
    models[0].thinking = thinking(levels(["low", "medium", "high"]), "");
    models
}
