//! Claude Code: which models there are is known, and how hard they can be told to think is in its `--help`.

use super::levels::{levels, thinking};
use super::{Cli, named};
use crate::wire::action::Model;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// The default one is the second.
const MODELS: [(&str, &str); 9] = [
    ("claude-sonnet-5", "Claude Sonnet 5"),
    (DEFAULT, "Claude Sonnet 4.6"),
    ("claude-fable-5", "Claude Fable 5"),
    ("claude-opus-5", "Claude Opus 5"),
    ("claude-opus-4-8", "Claude Opus 4.8"),
    ("claude-opus-4-7", "Claude Opus 4.7"),
    ("claude-haiku-4-5-20251001", "Claude Haiku 4.5"),
    ("claude-opus-4-6", "Claude Opus 4.6"),
    ("claude-sonnet-4-5", "Claude Sonnet 4.5"),
];
const DEFAULT: &str = "claude-sonnet-4-6";
/// All levels that it ever had.
const ALL: [&str; 5] = ["low", "medium", "high", "xhigh", "max"];
/// Those that each version has, if it cannot be asked.
const LEAST: [&str; 3] = ["low", "medium", "high"];
const HELP_LIMIT: Duration = Duration::from_secs(10);
/// What a version's help says is good for so long.
const KEPT: Duration = Duration::from_mins(10);
const MOST_KEPT: usize = 16;

/// What the help of a program of some version says.
#[derive(Debug, Default)]
pub(super) struct Efforts(Mutex<BTreeMap<Key, (Instant, Vec<String>)>>);

/// Program, arguments before all others, and version.
type Key = (PathBuf, Vec<String>, String);

impl Efforts {
    /// All models, with what the program at hand can be told.
    pub(super) async fn models(&self, cli: Cli<'_>) -> Vec<Model> {
        let known = self.of(cli).await;
        let model = |(id, label): &(&str, &str)| Model {
            default: *id == DEFAULT,
            thinking: thinking(
                levels(known.iter().map(String::as_str).filter(|level| allows(id, level))),
                "medium",
            ),
            ..named(id, label)
        };
        MODELS.iter().map(model).collect()
    }

    async fn of(&self, cli: Cli<'_>) -> Vec<String> {
        let program = cli.program;
        let key = (program.path.clone(), program.args.clone(), program.version_line.clone());
        {
            let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((_, efforts)) = kept.get(&key).filter(|(at, _)| at.elapsed() < KEPT) {
                return efforts.clone();
            }
        }
        match cli.says(&["--help"], HELP_LIMIT).await {
            Ok(help) => {
                let efforts = in_help(&help);
                let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                kept.retain(|_, (at, _)| at.elapsed() < KEPT);
                if kept.len() < MOST_KEPT {
                    kept.insert(key, (Instant::now(), efforts.clone()));
                }
                efforts
            }
            Err(why) => {
                tracing::debug!("how hard Claude Code can be told to think is not known: {why}");
                LEAST.map(str::to_owned).into()
            }
        }
    }
}

/// Which levels a model has. One that is not named here has all.
fn allows(model: &str, level: &str) -> bool {
    match model {
        "claude-sonnet-4-6" | "claude-sonnet-4-5" => level != "xhigh",
        "claude-haiku-4-5-20251001" => LEAST.contains(&level),
        _ => true,
    }
}

/// The levels in the help text; all if they cannot be read, and none if there is no such option.
fn in_help(help: &str) -> Vec<String> {
    let Some((_, rest)) = help.split_once("--effort") else { return Vec::new() };
    // What belongs to the next option begins on a line of its own.
    let mut own = String::new();
    for (nth, line) in rest.lines().enumerate() {
        if nth > 0 && line.trim_start().starts_with('-') {
            break;
        }
        own.push_str(line.trim());
        own.push(' ');
    }
    let words = |list: &str| {
        list.split([',', '|', ' '])
            .map(|word| word.trim_matches(['"', '\'', '`']).to_owned())
            .filter(|word| ALL.contains(&word.as_str()))
            .collect::<Vec<_>>()
    };
    let lists = own.split('(').skip(1).filter_map(|part| part.split_once(')'));
    lists
        .map(|(list, _)| words(list))
        .find(|list| !list.is_empty())
        .unwrap_or_else(|| ALL.map(str::to_owned).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_levels_are_read_from_the_help() {
        for (help, levels) in [
            (
                "  --effort <level>  Effort level (low, medium, high, max)\n  --other (xhigh)",
                "low medium high max",
            ),
            ("  --effort <level>\n        How hard (choices: \"low\", \"high\")\n", "low high"),
            ("  --effort <level>  How hard\n  --mode (low, max)\n", "low medium high xhigh max"),
            ("  --model <m>  (low, high)", ""),
        ] {
            assert_eq!(in_help(help).join(" "), levels, "{help}");
        }
    }
}
