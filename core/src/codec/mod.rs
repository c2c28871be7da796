//! Agent protocols: the bytes that an agent CLI writes become typed messages, and what has to be written back is said.
//!
//! Codecs do no IO and know no time. What they read may be hostile or broken: nothing panics, memory is bounded, and no
//! event is dropped whole because one part of it is odd. Only an explicit word of the agent that it succeeded makes a
//! run complete.
//!
//! ```
//! use longshore_core::codec::{self, Codec, options::Options, outcome::{EndedBy, Exit, Status}};
//!
//! let claude = codec::for_provider("claude").expect("there is a codec for it");
//! let (argv, first) = (claude.argv(&Options::default()), claude.first_input("Say hello."));
//! let mut run = claude.start(&Options::default());
//! let mut out = Vec::new();
//! run.stdout(br#"{"type":"result","subtype":"success","result":"Hello."}"#, &mut out);
//! run.stdout_end(&mut out);
//! let outcome = run.finish(Exit::code(0), EndedBy::Itself);
//! assert_eq!((outcome.status, outcome.output.as_str()), (Status::Completed, "Hello."));
//! # assert!(argv.args.contains(&"-p".to_owned()) && first.ends_with('\n'));
//! ```

pub mod arg_filter;
pub mod calls;
pub mod classify;
pub mod claude;
pub mod duration;
pub mod json;
mod json_repair;
pub mod lines;
pub mod message;
pub mod options;
pub mod outcome;
pub mod retry;
pub mod stderr;
#[cfg(test)]
mod tests;

use message::Output;
use options::{Args, Options};
use outcome::{EndedBy, Exit, Outcome};
use retry::RejectionSigns;
use serde::{Deserialize, Serialize};

/// The reading side of one run of an agent. An implementation is plain data, so that a run can be taken up again after
/// a restart; see [`Codec::consumed`].
pub trait Codec {
    /// Takes the next bytes of the agent's stdout, cut anywhere, and adds what they mean to `out`.
    fn stdout(&mut self, bytes: &[u8], out: &mut Vec<Output>);

    /// Stdout has ended: takes a last line without an end.
    fn stdout_end(&mut self, out: &mut Vec<Output>);

    /// Takes the next bytes of the agent's stderr, of which the last [`stderr::MAX_TAIL`] are kept.
    fn stderr(&mut self, bytes: &[u8]);

    /// The prompt, or an answer, could not be written to the agent's stdin. The run goes on: it may not need it.
    fn stdin_failed(&mut self, error: &str);

    /// Stdout could not be read to its end.
    fn stdout_failed(&mut self, error: &str);

    /// The offset in stdout from which reading has to go on with the serialised form of this codec: the end of the last
    /// complete line, or inside of a line that is being skipped.
    fn consumed(&self) -> u64;

    /// Whether the agent has said how the run ended.
    fn has_result(&self) -> bool;

    /// What the run came to; to be called once, after [`stdout_end`](Self::stdout_end).
    fn finish(&mut self, exit: Exit, ended_by: EndedBy) -> Outcome;
}

/// A family of agent CLIs that speak one protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// Claude Code, stream-json in both directions.
    Claude,
}

/// The family of a provider, if there is a codec for it.
pub fn for_provider(provider: &str) -> Option<Family> {
    match provider {
        "claude" => Some(Family::Claude),
        _ => None,
    }
}

impl Family {
    /// Those of a custom runtime's arguments that may come before all others: before those that start a run, where
    /// [`argv`](Self::argv) puts them, and before those that ask for the version.
    pub fn launch_prefix(self, prefix: &[String]) -> Args {
        match self {
            Self::Claude => claude::launch_prefix(prefix),
        }
    }

    /// The arguments that start a run, behind the program.
    pub fn argv(self, options: &Options) -> Args {
        match self {
            Self::Claude => claude::argv(options),
        }
    }

    /// What has to be written to the agent's stdin first, which then stays open until [`Output::Result`].
    pub fn first_input(self, prompt: &str) -> String {
        match self {
            Self::Claude => claude::first_input(prompt),
        }
    }

    /// The codec of a run that is started with `options`.
    pub fn start(self, options: &Options) -> AgentCodec {
        match self {
            Self::Claude => AgentCodec::Claude(Box::new(claude::Claude::new(options))),
        }
    }

    /// Whether each text is a whole block, so that two of them are two paragraphs; otherwise they are pieces of one.
    pub const fn speaks_in_blocks(self) -> bool {
        match self {
            Self::Claude => true,
        }
    }

    /// What tells that a resume was rejected.
    pub const fn rejection_signs(self) -> RejectionSigns {
        match self {
            Self::Claude => RejectionSigns::Certain,
        }
    }
}

/// The codec of a run, of whichever family.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "family", content = "state", rename_all = "snake_case")]
pub enum AgentCodec {
    /// A run of Claude Code.
    Claude(Box<claude::Claude>),
}

impl AgentCodec {
    fn codec(&mut self) -> &mut dyn Codec {
        match self {
            Self::Claude(claude) => claude.as_mut(),
        }
    }

    fn codec_ref(&self) -> &dyn Codec {
        match self {
            Self::Claude(claude) => claude.as_ref(),
        }
    }
}

impl Codec for AgentCodec {
    fn stdout(&mut self, bytes: &[u8], out: &mut Vec<Output>) {
        self.codec().stdout(bytes, out);
    }

    fn stdout_end(&mut self, out: &mut Vec<Output>) {
        self.codec().stdout_end(out);
    }

    fn stderr(&mut self, bytes: &[u8]) {
        self.codec().stderr(bytes);
    }

    fn stdin_failed(&mut self, error: &str) {
        self.codec().stdin_failed(error);
    }

    fn stdout_failed(&mut self, error: &str) {
        self.codec().stdout_failed(error);
    }

    fn consumed(&self) -> u64 {
        self.codec_ref().consumed()
    }

    fn has_result(&self) -> bool {
        self.codec_ref().has_result()
    }

    fn finish(&mut self, exit: Exit, ended_by: EndedBy) -> Outcome {
        self.codec().finish(exit, ended_by)
    }
}
