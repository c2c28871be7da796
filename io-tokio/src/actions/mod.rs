//! What the server asks for in its replies to heartbeats, done: the models of an agent CLI, the skills and MCP servers that its user has, one
//! skill in full, another version of this program. Whatever comes of it is a report; the core sees to it that the server gets that.

mod book;
mod models;
mod skills;

pub use book::{Ask, Book};
pub use models::Catalogues;

use crate::config::Env;
use crate::wire::action::{ActionReport, SkillReport};
use longshore_core::id::Provider;
use std::path::{Path, PathBuf};

/// What an action may know of the machine.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The environment that agent CLIs are started with.
    pub env: Env,
    /// The user's home directory.
    pub home: PathBuf,
    /// The agent CLI of the runtime, if it is there.
    pub agent: Option<Program>,
}

/// An agent CLI as it will be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Its program.
    pub path: PathBuf,
    /// Arguments before all others.
    pub args: Vec<String>,
    /// What it says its version is.
    pub version_line: String,
}

/// Does what is asked for. When this is dropped, whatever it has started is gone.
pub async fn perform(
    machine: &Machine,
    catalogues: &Catalogues,
    ask: Ask,
    provider: Option<&Provider>,
) -> ActionReport {
    let Some(provider) = provider.map(Provider::as_str) else {
        return ActionReport::failed("this machine does not have the runtime any more");
    };
    match ask {
        Ask::Update(version) => ActionReport::failed(no_update(&version)),
        Ask::Models => match catalogues.list(machine, provider).await {
            Ok(report) => ActionReport::Models(report),
            Err(why) => ActionReport::failed(why),
        },
        Ask::LocalSkills => {
            let (places, provider) = (skills::Places::of(machine, provider), provider.to_owned());
            blocking(move || ActionReport::Skills(skills::list(&places, &provider))).await
        }
        Ask::ImportSkill(key) => {
            let (places, provider) = (skills::Places::of(machine, provider), provider.to_owned());
            blocking(move || match skills::load(&places, &provider, &key) {
                Ok(skill) => ActionReport::Skill(SkillReport { skill, ..SkillReport::default() }),
                Err(why) => ActionReport::failed(why.to_string()),
            })
            .await
        }
    }
}

async fn blocking(work: impl FnOnce() -> ActionReport + Send + 'static) -> ActionReport {
    let failed = |error| {
        ActionReport::failed(format!("looking at the skills of this machine failed ({error}); this is a bug"))
    };
    tokio::task::spawn_blocking(work).await.unwrap_or_else(failed)
}

fn no_update(version: &str) -> String {
    let to = if version.is_empty() { String::new() } else { format!(" to {version}") };
    format!(
        "longshore does not replace its own program, so it was not updated{to}. Update it the way it was installed (a package manager, or \
         `cargo install`) on the machine, then run `longshore daemon restart` there: work that runs goes on meanwhile"
    )
}

/// A path as people read it: what is below the home directory starts with `~`.
fn shown(path: &Path, home: &Path) -> String {
    match path.strip_prefix(home) {
        Ok(below) if !home.as_os_str().is_empty() => format!("~/{}", below.display()),
        _ => path.display().to_string(),
    }
}
