//! Claude Code: stream-json in both directions, one JSON object a line.

mod argv;
mod control;
mod events;
mod input;
mod outcome;
mod preflight;
mod session;
mod turn;
mod usage;
mod verdict;

pub use argv::{argv, launch_prefix};
pub use input::first_input;
pub use preflight::{BypassAsRoot, check_bypass};

use super::Codec;
use super::calls::OpenCalls;
use super::lines::LineSplitter;
use super::message::{MAX_NAME, Output, cut};
use super::options::Options;
use super::outcome::{EndedBy, Exit, Outcome};
use super::stderr::StderrTail;
use serde::{Deserialize, Serialize};
use session::Session;
use turn::Said;
use usage::UsageBook;
use verdict::Verdict;

/// What error texts call the agent.
const LABEL: &str = "claude";

/// The codec of one run of Claude Code.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Claude {
    lines: LineSplitter,
    stderr: StderrTail,
    run: Run,
}

/// What is known of the run so far.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Run {
    session: Session,
    usage: UsageBook,
    calls: OpenCalls,
    tools_started: u64,
    /// The last thing the agent said, in case its result has no text.
    fallback: Said,
    /// Whether a tool went on in the background.
    in_background: bool,
    verdict: Option<Verdict>,
    /// Lines that were no events.
    noise: u64,
    /// Lines that were too long.
    oversized: u64,
    stdin_error: Option<String>,
    stdout_error: Option<String>,
}

impl Claude {
    /// The codec of a run that is started with `options`.
    pub fn new(options: &Options) -> Self {
        Self {
            run: Run {
                session: Session::new(&options.resume_session),
                usage: UsageBook::new(&options.model),
                ..Run::default()
            },
            ..Self::default()
        }
    }
}

impl Codec for Claude {
    fn stdout(&mut self, bytes: &[u8], out: &mut Vec<Output>) {
        let Self { lines, run, .. } = self;
        lines.push(bytes, |line| run.line(&line, out));
    }

    fn stdout_end(&mut self, out: &mut Vec<Output>) {
        let Self { lines, run, .. } = self;
        lines.finish(|line| run.line(&line, out));
    }

    fn stderr(&mut self, bytes: &[u8]) {
        self.stderr.push(bytes);
    }

    fn stdin_failed(&mut self, error: &str) {
        self.run.stdin_error.get_or_insert_with(|| cut(error, MAX_NAME).to_owned());
    }

    fn stdout_failed(&mut self, error: &str) {
        self.run.stdout_error.get_or_insert_with(|| cut(error, MAX_NAME).to_owned());
    }

    fn consumed(&self) -> u64 {
        self.lines.consumed()
    }

    fn has_result(&self) -> bool {
        self.run.verdict.is_some()
    }

    fn finish(&mut self, exit: Exit, ended_by: EndedBy) -> Outcome {
        // A caller that forgot the end of stdout loses the messages of the last line, but not the verdict in it.
        self.stdout_end(&mut Vec::new());
        let wrote_nothing = self.lines.consumed() == 0;
        outcome::of(std::mem::take(&mut self.run), &self.stderr.text(), wrote_nothing, exit, ended_by)
    }
}
