//! What the double can be told to do.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The environment variable that holds the script. It is none of the daemon's own family, as agents are given no such from the server.
pub const SCRIPT_ENV: &str = "AGENT_DOUBLE_SCRIPT";
/// What a script in a prompt comes after.
pub const PROMPT_MARK: &str = "longshore-double:";

/// One thing to do. In JSON: `"hang"`, or `{"say":"text"}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Step {
    /// Anywhere in the script: do not announce the session.
    NoInit,
    /// Anywhere in the script: do not read the prompt first. The script must come from the environment.
    NoPrompt,
    /// Say something.
    Say(String),
    /// Say the value of an environment variable as `NAME=value`, or `NAME is not set`.
    SayEnv(String),
    /// Say the prompt.
    SayPrompt,
    /// Think something.
    Think(String),
    /// Call a tool and get its result.
    Tool {
        /// The tool.
        name: String,
        /// Its arguments.
        input: Value,
        /// Its result.
        output: String,
    },
    /// Ask for permission to use a tool, and wait for the answer.
    Ask {
        /// The tool.
        tool: String,
        /// Its arguments.
        input: Value,
    },
    /// Wait so many milliseconds.
    Sleep(u64),
    /// Write a line to standard error.
    Stderr(String),
    /// Write a text to standard output as it is.
    Raw(String),
    /// Write bytes, given as hex digits, to standard output as they are.
    RawHex(String),
    /// Say many things, each numbered and filled up to so many bytes.
    Flood {
        /// How many.
        lines: u64,
        /// How long each text is at least.
        #[serde(default)]
        bytes: usize,
    },
    /// Say numbers, from 1 on, as a flood does, until a file is there; at least one.
    Count {
        /// The file.
        until: String,
        /// Milliseconds between two.
        #[serde(default)]
        every: u64,
        /// How long each text is at least.
        #[serde(default)]
        bytes: usize,
    },
    /// Write a file, relative to the working directory.
    Write {
        /// Its path.
        path: String,
        /// What is in it.
        text: String,
    },
    /// From now on survive SIGTERM and SIGINT.
    IgnoreTerm,
    /// Do nothing until standard input is closed.
    HangUntilEof,
    /// Do nothing, for ever.
    Hang,
    /// Start a child that holds standard output.
    Spawn {
        /// For so many milliseconds.
        ms: u64,
        /// Whether in a session of its own.
        #[serde(default)]
        own_session: bool,
        /// Where to write its process id.
        #[serde(default)]
        pid_file: Option<String>,
    },
    /// Run a shell text, which has the double's standard output, and wait for the shell itself.
    Shell(String),
    /// Report success with this answer.
    Result(String),
    /// Report failure with this text.
    Error(String),
    /// Exit at once.
    Exit(u8),
}

/// The script as the text for [`SCRIPT_ENV`].
pub fn script_text(steps: &[Step]) -> String {
    serde_json::to_string(steps).expect("steps are plain data")
}

/// Reads a script; bytes after its end mean nothing.
pub(super) fn read(text: &str) -> Result<Vec<Step>, serde_json::Error> {
    Vec::deserialize(&mut serde_json::Deserializer::from_str(text))
}

/// The script in a prompt, if there is one.
pub(super) fn in_prompt(prompt: &str) -> Option<&str> {
    prompt.split_once(PROMPT_MARK).map(|(_, script)| script.trim_start())
}
