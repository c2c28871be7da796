//! What can be wrong with the configuration: each error names where the value came from and what would be right.

use std::fmt;
use std::path::PathBuf;
use thiserror::Error;

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Nothing said anything: the built-in value.
    Default,
    /// A key of a config file.
    File {
        /// The file.
        path: PathBuf,
        /// The key, with dots between levels.
        key: String,
    },
    /// An environment variable.
    Env(String),
    /// A flag of the command line, with its dashes.
    Flag(&'static str),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("the built-in default"),
            Self::File { path, key } => write!(f, "key {key} of {}", path.display()),
            Self::Env(name) => write!(f, "environment variable {name}"),
            Self::Flag(name) => write!(f, "flag {name}"),
        }
    }
}

/// The configuration cannot be used.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// A value is not what its place takes.
    #[error("{place}{}: {problem}; expected {expected}", shown(value.as_ref()))]
    Value {
        /// Where the value stands.
        place: Source,
        /// The value as text; `None` where it must not or cannot be shown.
        value: Option<String>,
        /// What is wrong with it.
        problem: String,
        /// What would be right.
        expected: String,
    },
    /// A config file could not be read.
    #[error("cannot read the config file {}: {source}; make it readable for this user", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A config file is no JSON object.
    #[error("the config file {} is not valid: {problem}; repair it, or move it away and log in again", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// What the parser says, without any of the file's content.
        problem: String,
    },
    /// There is no home directory to keep state in.
    #[error(
        "HOME is not set to an absolute path; set it to the home directory of the user that runs longshore"
    )]
    Home,
    /// The working directory is gone, so that relative paths mean nothing.
    #[error("cannot find the current directory: {0}; start longshore in a directory that exists")]
    CurrentDir(std::io::Error),
    /// A profile name that cannot be a directory of its own.
    #[error(
        "profile name {name:?} cannot be used: write a plain name such as `dev`, or `team/dev` outside of a task"
    )]
    Profile {
        /// The name.
        name: String,
    },
}

/// Longer values are cut in messages.
const MAX_SHOWN: usize = 120;

fn shown(value: Option<&String>) -> String {
    match value {
        Some(v) if v.len() <= MAX_SHOWN => format!(" ({v:?})"),
        Some(v) => format!(" ({:?}…)", v.chars().take(MAX_SHOWN).collect::<String>()),
        None => String::new(),
    }
}

impl ConfigError {
    pub(crate) fn env(name: &str, problem: &str, expected: &str) -> Self {
        Self::value(Source::Env(name.to_owned()), None, problem, expected)
    }

    pub(crate) fn value(place: Source, value: Option<&str>, problem: &str, expected: &str) -> Self {
        Self::Value {
            place,
            value: value.map(str::to_owned),
            problem: problem.to_owned(),
            expected: expected.to_owned(),
        }
    }
}
