//! `outbox.jsonl`: what the agent said and the server may not have, and where reading goes on.
//!
//! Before messages are handed to a request for the first time they are written here, followed by where in the agent's output they end
//! and in which state its codec is there. So a message that a server may have always has the same number and the same text, and what
//! follows is read from the agent's output again. Lines after the last [`At`] are of a write that was cut short: nobody was told of
//! them, and they are read from the output again as well.

use super::VERSION;
use super::store::replace;
use crate::book::{Stream, Tools};
use crate::regular;
use crate::supervise::Position;
use crate::wire::message::Message;
use longshore_core::codec::AgentCodec;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Bytes that the journal may have beside twice what is still in it, before it is written anew.
const SLACK: u64 = 1 << 20;

/// One line.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    /// The agent said this.
    Said(Message),
    /// Up to here is all that comes before.
    At(Box<At>),
    /// The server has the messages up to this number.
    Taken(u32),
}

/// The same to be written, without a copy.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum LineRef<'a> {
    Said(&'a Message),
    At(&'a At),
    Taken(u32),
}

/// A place in the agent's output with all that it takes to go on from there.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct At {
    version: u32,
    /// Which attempt's output this is about.
    pub attempt: u32,
    /// Bytes of its standard output that are dealt with: up to the end of a line, or into one that is skipped.
    pub stdout: u64,
    /// Bytes of its standard error that are dealt with.
    pub stderr: u64,
    /// The number of the last message before.
    pub last: u32,
    /// Reads on.
    pub codec: AgentCodec,
    /// Tools at work.
    #[serde(default)]
    pub tools: Tools,
    /// The session that the agent named.
    #[serde(default)]
    pub session: Option<String>,
    /// Whether it said that it is done.
    #[serde(default)]
    pub result: bool,
    /// Whether it was asked to go on with an earlier session.
    #[serde(default)]
    pub resumed: bool,
}

impl At {
    /// The state of a stream, and the number of the last message that came of it.
    pub fn of(stream: &Stream, last: u32) -> Self {
        let Position { stdout, stderr } = stream.position();
        Self {
            version: VERSION,
            attempt: stream.attempt,
            stdout,
            stderr,
            last,
            codec: stream.codec.clone(),
            tools: stream.tools.clone(),
            session: stream.session.clone(),
            result: stream.result,
            resumed: stream.resumed,
        }
    }

    /// The stream, to be read on.
    pub fn stream(self) -> Stream {
        let Self { attempt, stderr, codec, tools, session, result, resumed, .. } = self;
        Stream { attempt, codec, stderr, tools, session, result, resumed }
    }

    /// Where to read on.
    pub const fn position(&self) -> Position {
        Position { stdout: self.stdout, stderr: self.stderr }
    }
}

/// What a journal holds.
#[derive(Debug, Default)]
pub struct Replayed {
    /// The server is known to have the messages up to this number.
    pub taken: u32,
    /// The last number there is.
    pub last: u32,
    /// Messages that the server may not have, in order.
    pub unsent: VecDeque<Message>,
    /// `unsent` was left on the disk, to be read when it is to be sent.
    pub is_left: bool,
    /// Where reading goes on; `None` to begin with the first byte.
    pub at: Option<At>,
    /// Bytes up to the end of the last write that was not cut short.
    pub whole: u64,
}

/// Why a journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file system says no.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A later version wrote it.
    #[error("it has form {found}; this version reads up to form {VERSION}")]
    Version {
        /// Its form.
        found: u32,
    },
}

/// The journal of one claim, open to be written.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: Option<File>,
    /// Bytes that are in it, as far as it was written or read by this process.
    length: u64,
}

impl Journal {
    /// The journal at a path, of which only the first `whole` bytes count ([`Replayed::whole`]; 0 for a new one). The file is made when
    /// there is something to write.
    pub fn new(path: impl Into<PathBuf>, whole: u64) -> Self {
        Self { path: path.into(), file: None, length: whole }
    }

    /// Whether there is anything in it.
    pub const fn is_made(&self) -> bool {
        self.length > 0
    }

    /// Whether it is to be written anew, given how many bytes of it are still needed.
    pub const fn is_bloated(&self, needed: usize) -> bool {
        self.length > SLACK + 2 * needed as u64
    }

    /// What it holds.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn replay(&self) -> Result<Replayed, JournalError> {
        Self::read(&self.path)
    }

    /// Adds messages and the place that they lead to.
    ///
    /// # Errors
    /// When it cannot be written; then what was added counts as not written.
    pub fn add(&mut self, new: &[Message], at: &At) -> io::Result<()> {
        let mut bytes = Vec::new();
        for message in new {
            push(&mut bytes, &LineRef::Said(message))?;
        }
        push(&mut bytes, &LineRef::At(at))?;
        self.append(&bytes)
    }

    /// The server has the messages up to here.
    ///
    /// # Errors
    /// When it cannot be written: then the next process asks the server.
    pub fn taken(&mut self, upto: u32) -> io::Result<()> {
        let mut bytes = Vec::new();
        push(&mut bytes, &LineRef::Taken(upto))?;
        self.append(&bytes)
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let file = regular::open(File::options().append(true).create(true).mode(0o600), &self.path)?;
                // What a kill cut short must not stand before what comes next.
                file.set_len(self.length)?;
                none.insert(file)
            }
        };
        if let Err(error) = file.write_all(bytes) {
            // A part of it may be there, such as half of a line: it goes, so that what comes next can be read. Where it does not go now, it
            // does before anything else is written.
            if file.set_len(self.length).is_err() {
                self.file = None;
            }
            return Err(error);
        }
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// Writes it anew in one step: all messages that the server may not have, the place that they lead to, and up to where it has them.
    ///
    /// # Errors
    /// When it cannot be written; then the old one is as it was.
    pub fn write_anew(&mut self, live: &[Message], at: &At, taken: u32) -> io::Result<()> {
        let mut bytes = Vec::new();
        push(&mut bytes, &LineRef::Taken(taken))?;
        for message in live {
            push(&mut bytes, &LineRef::Said(message))?;
        }
        push(&mut bytes, &LineRef::At(at))?;
        replace(&self.path, &bytes)?;
        // The old one is no longer at its place.
        (self.file, self.length) = (None, bytes.len() as u64);
        Ok(())
    }

    /// The file, for what makes it survive a power cut.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads a journal; one that is not there is empty. Damage in it costs what comes after, which is read from the agent's output
    /// again.
    ///
    /// # Errors
    /// See [`JournalError`].
    pub fn read(path: &Path) -> Result<Replayed, JournalError> {
        let mut replayed = Replayed::default();
        let file = match regular::open(File::options().read(true), path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(replayed),
            other => other?,
        };
        let mut reader = BufReader::new(file);
        let mut said: VecDeque<Message> = VecDeque::new();
        let (mut text, mut read, mut last) = (Vec::new(), 0, 0);
        loop {
            text.clear();
            reader.read_until(b'\n', &mut text)?;
            if !text.ends_with(b"\n") {
                break;
            }
            read += text.len() as u64;
            let Ok(line) = serde_json::from_slice(&text) else {
                later_version(&text)?;
                break;
            };
            match line {
                // The same message once more, as earlier builds wrote it under load: sent again, it would be there twice.
                Line::Said(message) if message.seq <= last => {}
                Line::Said(message) => {
                    last = message.seq;
                    said.push_back(message);
                }
                Line::Taken(upto) => replayed.taken = replayed.taken.max(upto),
                Line::At(at) if at.version > VERSION => {
                    return Err(JournalError::Version { found: at.version });
                }
                Line::At(at) => {
                    replayed.last = at.last;
                    replayed.at = Some(*at);
                    replayed.unsent.append(&mut said);
                }
            }
            if said.is_empty() {
                replayed.whole = read;
            }
        }
        while replayed.unsent.front().is_some_and(|message| message.seq <= replayed.taken) {
            replayed.unsent.pop_front();
        }
        Ok(replayed)
    }
}

/// A line of a later version may have a form that is not known here: it must not be taken for damage.
fn later_version(text: &[u8]) -> Result<(), JournalError> {
    #[derive(Deserialize)]
    struct AtOnly {
        at: super::record::Versioned,
    }
    match serde_json::from_slice::<AtOnly>(text) {
        Ok(AtOnly { at }) if at.version > VERSION => Err(JournalError::Version { found: at.version }),
        _ => Ok(()),
    }
}

fn push(bytes: &mut Vec<u8>, line: &LineRef<'_>) -> io::Result<()> {
    serde_json::to_writer(&mut *bytes, line)?;
    bytes.push(b'\n');
    Ok(())
}

#[cfg(test)]
#[path = "journal_tests.rs"]
mod tests;
