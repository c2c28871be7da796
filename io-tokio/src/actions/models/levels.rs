//! How hard a model can be told to think: the levels that agent CLIs know, and how they are shown.

use crate::wire::action::{Level, Model, Thinking};

/// From little to much.
pub(super) const ORDER: [&str; 7] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/// The levels with these values, in their order.
pub(super) fn levels<'a>(values: impl IntoIterator<Item = &'a str>) -> Vec<Level> {
    values
        .into_iter()
        .map(|value| Level { value: value.to_owned(), label: label(value), description: None })
        .collect()
}

/// What can be chosen; nothing if there are no levels. A default that is none of them is no default.
pub(super) fn thinking(supported_levels: Vec<Level>, default: &str) -> Option<Thinking> {
    let default_level =
        supported_levels.iter().any(|level| level.value == default).then(|| default.to_owned());
    (!supported_levels.is_empty()).then_some(Thinking { supported_levels, default_level })
}

/// In the order from little to much; those that are not in it come last, as they came.
pub(super) fn in_order(mut values: Vec<&str>) -> Vec<&str> {
    values.sort_by_key(|value| ORDER.iter().position(|known| known == value).unwrap_or(ORDER.len()));
    values
}

fn label(value: &str) -> String {
    if value == "xhigh" {
        return "Extra high".to_owned();
    }
    let mut letters = value.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// `CodeBuddy` thinks at any level from `minimal` on, whatever it says of single models; what it says is taken as far as that goes.
pub(super) fn for_codebuddy(mut models: Vec<Model>) -> Vec<Model> {
    for model in &mut models {
        let said: Vec<Level> =
            model.thinking.take().map(|thinking| thinking.supported_levels).unwrap_or_default();
        let known: Vec<Level> =
            said.into_iter().filter(|level| ORDER[1..].contains(&level.value.as_str())).collect();
        model.thinking =
            thinking(if known.is_empty() { levels(ORDER[1..].iter().copied()) } else { known }, "medium");
    }
    models
}
