//! An agent's output as far as it is read: its codec, and what was learned of the run on the way.

use super::tools::Tools;
use crate::supervise::Position;
use longshore_core::codec::message::Output;
use longshore_core::codec::{AgentCodec, Codec};

/// One attempt's output.
#[derive(Clone, Debug)]
pub struct Stream {
    /// Which attempt's: the number that names its run directory.
    pub attempt: u32,
    /// Reads it.
    pub codec: AgentCodec,
    /// Bytes of its standard error that were read.
    pub stderr: u64,
    /// Tools at work.
    pub tools: Tools,
    /// The session that the agent named.
    pub session: Option<String>,
    /// Whether it said that it is done.
    pub result: bool,
    /// Whether it was asked to go on with an earlier session.
    pub resumed: bool,
}

impl Stream {
    /// Nothing is read yet.
    pub fn new(attempt: u32, codec: AgentCodec, resumed: bool) -> Self {
        Self { attempt, codec, stderr: 0, tools: Tools::default(), session: None, result: false, resumed }
    }

    /// Up to where the output need not be read again.
    pub fn position(&self) -> Position {
        Position { stdout: self.codec.consumed(), stderr: self.stderr }
    }

    /// Takes the next bytes of standard output.
    pub fn stdout(&mut self, bytes: &[u8], outputs: &mut Vec<Output>) {
        self.codec.stdout(bytes, outputs);
    }

    /// Takes the next bytes of standard error.
    pub fn stderr(&mut self, bytes: &[u8]) {
        self.stderr += bytes.len() as u64;
        self.codec.stderr(bytes);
    }
}
