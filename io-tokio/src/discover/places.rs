//! Where the agent CLIs of this machine are, before anybody asks them anything.

use super::file_mark::FileMark;
use super::lookup::{self, Lookup};
use super::probe::Problem;
use super::registry::AgentCli;
use super::{Search, SkippedAgent};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// A program that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) path: PathBuf,
    pub(super) file: Option<FileMark>,
}

impl Place {
    pub(super) fn at(path: PathBuf) -> Self {
        Self { file: FileMark::of(&path), path }
    }
}

/// Where each agent CLI is, by its number in the search.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// Those that are there.
    pub(super) found: BTreeMap<usize, Place>,
    /// Those that are not where the user said.
    pub(super) misplaced: BTreeMap<usize, SkippedAgent>,
    /// Those that are on no `PATH`, and that the login shell may know.
    pub(super) missing: BTreeMap<usize, &'static str>,
}

impl Places {
    /// Takes in what the login shell said.
    pub(super) fn add(&mut self, said: &BTreeMap<String, PathBuf>) {
        let news = self.missing.iter().filter_map(|(i, name)| {
            let path = said.get(*name).filter(|path| lookup::is_executable(path))?;
            Some((*i, Place::at(path.clone())))
        });
        self.found.extend(news.collect::<Vec<_>>());
        self.missing.retain(|i, _| !self.found.contains_key(i));
    }
}

impl Search {
    /// Looks in all places but the login shell. It reads the disk, and so may take as long as the disk does.
    pub(super) fn places(&self) -> Places {
        let lookup = self.lookup();
        let mut places = Places::default();
        for (i, cli) in self.clis.iter().enumerate() {
            match (self.place(&lookup, cli), self.configured(cli)) {
                (Some(path), _) => drop(places.found.insert(i, Place::at(path))),
                (None, Some(command)) => {
                    let problem = Problem::Missing { command: command.clone(), variable: cli.path_var };
                    places.misplaced.insert(i, SkippedAgent { cli, path: None, problem });
                }
                (None, None) => drop(places.missing.insert(i, cli.command)),
            }
        }
        places
    }

    /// Looks for one of them again.
    pub(super) fn place_of(&self, cli: &AgentCli) -> Option<PathBuf> {
        self.place(&self.lookup(), cli)
    }

    /// Whether the login shell may be asked where it is: nobody said where.
    pub(super) fn is_default(&self, cli: &AgentCli) -> bool {
        self.configured(cli).is_none()
    }

    /// The absolute path of any command, as an agent CLI is looked for.
    pub(super) fn command(&self, command: &OsStr) -> Option<PathBuf> {
        self.lookup().find(command)
    }

    pub(super) fn lookup(&self) -> Lookup {
        Lookup::new(&self.env, &self.home, &self.cwd)
    }

    fn place(&self, lookup: &Lookup, cli: &AgentCli) -> Option<PathBuf> {
        match self.configured(cli) {
            Some(command) => lookup.find(command),
            None => lookup.find(OsStr::new(cli.command)).or_else(|| in_app_bundle(cli, &self.home)),
        }
    }

    fn configured(&self, cli: &AgentCli) -> Option<&OsString> {
        self.settings.get(cli.provider)?.command.as_ref()
    }
}

/// On macOS the Codex CLI also comes inside of apps.
fn in_app_bundle(cli: &AgentCli, home: &Path) -> Option<PathBuf> {
    if !cfg!(target_os = "macos") || cli.provider != "codex" {
        return None;
    }
    let roots = [PathBuf::from("/Applications"), home.join("Applications")];
    let apps = roots.iter().flat_map(|root| ["ChatGPT.app", "Codex.app"].map(|app| root.join(app)));
    apps.map(|app| app.join("Contents/Resources/codex")).find(|path| lookup::is_executable(path))
}
