//! Counting what was used, by model.

use crate::codec::json::Json;
use crate::codec::message::{MAX_NAME, cut};
use crate::codec::outcome::{MAX_MODELS, Usage, UsageByModel};
use serde::{Deserialize, Serialize};

/// What was used so far.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct UsageBook {
    by_model: UsageByModel,
    /// The model that the run asked for.
    configured: String,
    /// The model that the agent named last.
    named: String,
    /// Whether there were too many models.
    pub(super) overflowed: bool,
}

impl UsageBook {
    pub(super) fn new(configured: &str) -> Self {
        Self { configured: configured.to_owned(), ..Self::default() }
    }

    /// The agent named its model.
    pub(super) fn named(&mut self, model: &str) {
        if !model.is_empty() {
            cut(model, MAX_NAME).clone_into(&mut self.named);
        }
    }

    /// One message's usage is added to its model's.
    pub(super) fn of_message(&mut self, model: Option<Json<'_>>, usage: Option<Json<'_>>) {
        if let Some(model) = model.and_then(Json::string) {
            self.named(&model);
        }
        if let Some(usage) = usage {
            self.add(&self.model(), &snake_case(usage));
        }
    }

    /// What the result says replaces what was counted, if it says anything.
    pub(super) fn of_result(
        &mut self,
        model: Option<Json<'_>>,
        by_model: Option<Json<'_>>,
        sum: Option<Json<'_>>,
    ) {
        let mut told = UsageBook::default();
        if let Some(by_model) = by_model {
            by_model.each_field(|name, usage| {
                told.add(cut(&name.string().unwrap_or_default(), MAX_NAME), &camel_case(usage));
            });
        }
        if told.by_model.is_empty()
            && let Some(sum) = sum
        {
            let model = model.and_then(Json::string).filter(|model| !model.is_empty());
            let model = model.map_or_else(|| self.model(), |model| cut(&model, MAX_NAME).to_owned());
            told.add(&model, &snake_case(sum));
        }
        if !told.by_model.is_empty() {
            self.by_model = told.by_model;
            self.overflowed |= told.overflowed;
        }
    }

    /// The counts, without models of which nothing was used.
    pub(super) fn into_counts(self) -> UsageByModel {
        self.by_model
    }

    fn model(&self) -> String {
        if self.named.is_empty() { cut(&self.configured, MAX_NAME).to_owned() } else { self.named.clone() }
    }

    fn add(&mut self, model: &str, usage: &Usage) {
        if usage.is_zero() || model.is_empty() {
            return;
        }
        if let Some(sum) = self.by_model.get_mut(model) {
            sum.add(usage);
        } else if self.by_model.len() < MAX_MODELS {
            self.by_model.insert(model.to_owned(), *usage);
        } else {
            self.overflowed = true;
        }
    }
}

/// The API's own spelling, as in messages.
fn snake_case(usage: Json<'_>) -> Usage {
    counts(usage.fields([
        "input_tokens",
        "output_tokens",
        "cache_read_input_tokens",
        "cache_creation_input_tokens",
    ]))
}

/// The spelling of the sums by model.
fn camel_case(usage: Json<'_>) -> Usage {
    counts(usage.fields(["inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens"]))
}

fn counts(fields: [Option<Json<'_>>; 4]) -> Usage {
    let [input, output, cache_read, cache_write] = fields.map(|n| n.and_then(Json::u64).unwrap_or_default());
    Usage { input, output, cache_read, cache_write, cost_usd_ticks: 0 }
}
