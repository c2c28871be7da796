//! Codex: newer versions list the models that they were made with.

use super::levels::{levels, thinking};
use super::{Cli, Known, first_object, named, statics};
use crate::discover::version;
use crate::wire::action::{Level, Model, ServiceTier};
use crate::wire::lenient;
use serde::Deserialize;
use std::time::Duration;

/// The first version that can be asked.
const SINCE: (u32, u32, u32) = (0, 122, 0);
const LIMIT: Duration = Duration::from_secs(15);

#[derive(Default, Deserialize)]
#[serde(default)]
struct Listed {
    #[serde(deserialize_with = "lenient::field")]
    slug: String,
    #[serde(deserialize_with = "lenient::field")]
    display_name: String,
    #[serde(deserialize_with = "lenient::field")]
    visibility: String,
    #[serde(deserialize_with = "lenient::field")]
    default_reasoning_level: String,
    #[serde(deserialize_with = "lenient::list")]
    supported_reasoning_levels: Vec<Effort>,
    #[serde(deserialize_with = "lenient::list")]
    service_tiers: Vec<ServiceTier>,
}

#[derive(Deserialize)]
struct Effort {
    effort: String,
    #[serde(default, deserialize_with = "lenient::field")]
    description: String,
}

pub(super) async fn ask(cli: Cli<'_>) -> Known {
    if version(&cli.program.version_line).is_none_or(|version| version < SINCE) {
        return Known::Instead(statics::codex());
    }
    match cli.says(&["debug", "models", "--bundled"], LIMIT).await {
        Ok(text) => match read(&text) {
            models if models.is_empty() => Known::Instead(statics::codex()),
            models => Known::Listed(models),
        },
        Err(why) => {
            tracing::warn!("a list of models stands in for the one of Codex: {why}");
            Known::Instead(statics::codex())
        }
    }
}

fn read(text: &str) -> Vec<Model> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct All {
        #[serde(deserialize_with = "lenient::list")]
        models: Vec<Listed>,
    }
    let all: All =
        first_object(text).and_then(|found| serde_json::from_value(found).ok()).unwrap_or_default();
    let shown = all.models.into_iter().filter(|model| model.visibility != "hide" && !model.slug.is_empty());
    let model = |(nth, listed): (usize, Listed)| {
        let efforts = listed.supported_reasoning_levels.into_iter().flat_map(|effort| {
            let described = Some(effort.description).filter(|text| !text.is_empty());
            levels([effort.effort.as_str()])
                .into_iter()
                .map(move |level| Level { description: described.clone(), ..level })
        });
        Model {
            default: nth == 0,
            thinking: thinking(efforts.collect(), &listed.default_reasoning_level),
            service_tiers: listed.service_tiers,
            ..named(&listed.slug, &listed.display_name)
        }
    };
    shown.enumerate().map(model).collect()
}
