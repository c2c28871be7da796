//! Which models an agent CLI has, as far as it says so itself; one file for each way of asking. What is asked is the program that a task would
//! be run with.

mod acp;
mod claude;
mod codex;
mod levels;
mod lines;
mod openclaw;
mod opencode;
mod pi;
mod statics;

use super::{Machine, Program};
use crate::discover::capture::CaptureError;
use crate::discover::dialogue::{Dialogue, Said};
use crate::wire::action::{Model, ModelsReport};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// A list is good for so long.
const KEPT: Duration = Duration::from_mins(1);
/// Lists that are kept at most.
const MOST_KEPT: usize = 64;
/// Models of one list at most, and the bytes of one text of them.
const MOST_MODELS: usize = 2_000;
const LONGEST_TEXT: usize = 512;

/// Lists that were had a moment ago.
#[derive(Debug, Default)]
pub struct Catalogues {
    lists: Mutex<BTreeMap<String, (Instant, ModelsReport)>>,
    efforts: claude::Efforts,
}

/// An agent CLI that is asked.
#[derive(Clone, Copy)]
struct Cli<'a> {
    machine: &'a Machine,
    program: &'a Program,
}

impl Cli<'_> {
    /// Runs it with these arguments behind its own, and takes what it prints if it ended well.
    async fn says(self, args: &[&str], limit: Duration) -> Result<String, String> {
        let said = self.listen(args, limit).await?;
        if !said.status.success() {
            return Err(format!("`{}` ended with {}", self.call(args), said.status));
        }
        Ok(said.stdout)
    }

    /// The same however it ended.
    async fn listen(self, args: &[&str], limit: Duration) -> Result<Said, String> {
        let all = self.argv(args);
        self.dialogue(&all, None, limit).listen().await.map_err(|error| self.failure(args, &error))
    }

    fn argv<'b>(&'b self, args: &'b [&'b str]) -> Vec<&'b OsStr> {
        self.program.args.iter().map(String::as_str).chain(args.iter().copied()).map(OsStr::new).collect()
    }

    fn dialogue<'b>(&'b self, args: &'b [&'b OsStr], cwd: Option<&'b Path>, limit: Duration) -> Dialogue<'b> {
        Dialogue { program: &self.program.path, args, env: &self.machine.env, cwd, limit }
    }

    /// As a person would type it: arguments of the user may hold secrets and are left out.
    fn call(self, args: &[&str]) -> String {
        let name = self
            .program
            .path
            .file_name()
            .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        std::iter::once(name.as_str()).chain(args.iter().copied()).collect::<Vec<_>>().join(" ")
    }

    fn failure(self, args: &[&str], error: &CaptureError) -> String {
        format!("`{}` could not be asked for its models: {error}", self.call(args))
    }
}

/// What is known of an agent CLI's models.
enum Known {
    /// It said so.
    Listed(Vec<Model>),
    /// It did not, and this stands in.
    Instead(Vec<Model>),
    /// Nothing can be chosen.
    Unsupported,
}

impl Catalogues {
    /// The models of the agent CLI; from a moment ago if that is not long.
    ///
    /// # Errors
    /// It could not be asked, and nothing can stand in: a text for a person.
    pub async fn list(&self, machine: &Machine, provider: &str) -> Result<ModelsReport, String> {
        let gone = || format!("the agent CLI of {provider} is not on this machine any more");
        let program = machine.agent.as_ref().ok_or_else(gone)?;
        let cli = Cli { machine, program };
        if provider == "claude" {
            return Ok(report(Known::Listed(self.efforts.models(cli).await)));
        }
        let key = format!("{provider}:{}\0{}", program.path.display(), program.args.join("\0"));
        if let Some(known) = self.fresh(&key) {
            return Ok(known);
        }
        let report = report(ask(cli, provider).await?);
        if !report.fallback && !report.models.is_empty() {
            self.keep(key, report.clone());
        }
        Ok(report)
    }

    fn fresh(&self, key: &str) -> Option<ModelsReport> {
        let lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        lists.get(key).filter(|(at, _)| at.elapsed() < KEPT).map(|(_, list)| list.clone())
    }

    fn keep(&self, key: String, list: ModelsReport) {
        let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        lists.retain(|_, (at, _)| at.elapsed() < KEPT);
        if lists.len() < MOST_KEPT {
            lists.insert(key, (Instant::now(), list));
        }
    }
}

async fn ask(cli: Cli<'_>, provider: &str) -> Result<Known, String> {
    Ok(match provider {
        "codex" => codex::ask(cli).await,
        "cursor" => lines::cursor(cli).await,
        "deveco" => Known::Listed(lines::deveco(cli).await?),
        "antigravity" => Known::Listed(lines::antigravity(cli).await?),
        "dsh" => Known::Listed(lines::dsh(cli).await?),
        "opencode" => Known::Listed(opencode::ask(cli).await?),
        "openclaw" => Known::Listed(openclaw::ask(cli).await?),
        "pi" => Known::Listed(pi::pi(cli).await?),
        "omp" => Known::Listed(pi::omp(cli).await?),
        "copilot" => or_instead(acp::ask(cli, provider).await, statics::copilot()),
        "codebuddy" => {
            or_instead(acp::ask(cli, provider).await.map(levels::for_codebuddy), statics::codebuddy())
        }
        "grok" => or_instead(acp::ask(cli, provider).await, statics::grok()),
        "hermes" | "kimi" | "kiro" | "qoder" | "qoderclicn" | "reasonix" | "traecli" | "dim" => {
            Known::Listed(acp::ask(cli, provider).await.unwrap_or_else(|why| {
                tracing::warn!(provider, "no models are known: {why}");
                Vec::new()
            }))
        }
        "qwenpaw" | "mcode" => Known::Unsupported,
        _ => Known::Listed(Vec::new()),
    })
}

fn or_instead(asked: Result<Vec<Model>, String>, instead: Vec<Model>) -> Known {
    match asked {
        Ok(models) if !models.is_empty() => Known::Listed(models),
        Ok(_) => Known::Instead(instead),
        Err(why) => {
            tracing::warn!("a list of models stands in for the agent CLI's own: {why}");
            Known::Instead(instead)
        }
    }
}

fn report(known: Known) -> ModelsReport {
    let (mut models, supported, fallback) = match known {
        Known::Listed(models) => (models, true, false),
        Known::Instead(models) => (models, true, true),
        Known::Unsupported => (Vec::new(), false, false),
    };
    let mut seen = std::collections::BTreeSet::new();
    let fits = |text: &str| !text.is_empty() && text.len() <= LONGEST_TEXT;
    models.retain(|model| {
        fits(&model.id) && model.label.len() <= LONGEST_TEXT && seen.insert(model.id.clone())
    });
    models.truncate(MOST_MODELS);
    ModelsReport { models, supported, fallback, ..ModelsReport::default() }
}

/// A model of which only the name is known.
fn named(id: &str, label: &str) -> Model {
    Model {
        id: id.to_owned(),
        label: if label.is_empty() { id } else { label }.to_owned(),
        ..Model::default()
    }
}

/// What is behind the first brace of a text, as JSON: whatever was printed before it is not looked at.
fn first_object(text: &str) -> Option<serde_json::Value> {
    let starts = text.match_indices('{').take(64);
    starts
        .filter_map(|(at, _)| {
            let mut values = serde_json::Deserializer::from_str(&text[at..]).into_iter();
            values.next().and_then(Result::ok)
        })
        .find(serde_json::Value::is_object)
}

#[cfg(test)]
mod tests;
