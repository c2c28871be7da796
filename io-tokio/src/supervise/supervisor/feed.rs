//! The agent's stdin: the prompt first, then what comes through the `stdin` FIFO.
//!
//! Never blocks: an agent that does not read, or that closes its stdin at once, holds up nothing else.

use std::fs::File;
use std::io::{self, PipeWriter, Read, Write};

/// How much is held between source and pipe, in bytes.
const CHUNK: usize = 16 * 1024;

pub(super) struct Feed {
    /// `None` when it was closed, by us or by the agent.
    pipe: Option<PipeWriter>,
    prompt: Option<File>,
    /// Open for both, so that a daemon that dies is no end of input.
    fifo: File,
    held: Vec<u8>,
    closing: bool,
}

impl Feed {
    /// `pipe` and `fifo` must not block. With `closing`, the end of the prompt is the end of the input.
    pub(super) fn new(pipe: PipeWriter, prompt: File, fifo: File, closing: bool) -> Self {
        Self { pipe: Some(pipe), prompt: Some(prompt), fifo, held: Vec::new(), closing }
    }

    /// What is in the FIFO now goes to the agent, then its stdin is closed.
    pub(super) fn close_when_empty(&mut self) {
        self.closing = true;
    }

    /// The pipe, to learn that it is writable, or (with `false`) only that the agent closed it.
    pub(super) fn pipe(&self) -> Option<(&PipeWriter, bool)> {
        self.pipe.as_ref().map(|pipe| (pipe, !self.held.is_empty()))
    }

    /// The FIFO, while its bytes are wanted.
    pub(super) fn fifo(&self) -> Option<&File> {
        (self.held.is_empty() && self.prompt.is_none()).then_some(&self.fifo)
    }

    /// The agent closed its stdin: what is still to come is thrown away.
    pub(super) fn agent_closed(&mut self) {
        self.pipe = None;
        self.prompt = None;
        self.held = Vec::new();
    }

    /// Moves what can be moved without waiting.
    pub(super) fn pump(&mut self) {
        loop {
            if self.held.is_empty() && !self.refill() {
                return;
            }
            let Some(pipe) = &mut self.pipe else {
                self.held.clear();
                continue;
            };
            match pipe.write(&self.held) {
                Ok(count) => drop(self.held.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => self.agent_closed(),
            }
        }
    }

    /// Takes the next piece of the input; false when there is none now.
    fn refill(&mut self) -> bool {
        self.held.resize(CHUNK, 0);
        let mut count = 0;
        if let Some(prompt) = &mut self.prompt {
            count = prompt.read(&mut self.held).unwrap_or(0);
            if count == 0 {
                self.prompt = None;
            }
        }
        if self.prompt.is_none() {
            count = self.fifo.read(&mut self.held).unwrap_or(0);
            if count == 0 && self.closing {
                self.pipe = None;
            }
        }
        self.held.truncate(count);
        if count == 0 {
            self.held = Vec::new();
        }
        count > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn feed(dir: &Path, prompt: &[u8], closing: bool) -> (Feed, io::PipeReader, File) {
        let path = dir.join("prompt");
        std::fs::write(&path, prompt).expect("written");
        let fifo = dir.join("stdin");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRUSR | nix::sys::stat::Mode::S_IWUSR)
            .expect("made");
        let open = || File::options().read(true).write(true).open(&fifo).expect("opened");
        let (ours, daemons) = (open(), open());
        rustix::io::ioctl_fionbio(&ours, true).expect("non-blocking");
        let (reader, writer) = io::pipe().expect("a pipe");
        rustix::io::ioctl_fionbio(&writer, true).expect("non-blocking");
        (Feed::new(writer, File::open(path).expect("there"), ours, closing), reader, daemons)
    }

    #[test]
    fn the_prompt_comes_first_then_the_fifo_and_close_waits_for_both() {
        let dir = tempfile::tempdir().expect("a directory");
        let (mut feed, mut reader, mut daemon) = feed(dir.path(), b"prompt ", false);
        daemon.write_all(b"more").expect("fits the FIFO");
        feed.pump();
        assert!(feed.fifo().is_some());
        daemon.write_all(b" and more").expect("fits the FIFO");
        feed.close_when_empty();
        feed.pump();
        assert!(feed.pipe().is_none());
        let mut got = String::new();
        reader.read_to_string(&mut got).expect("closed");
        assert_eq!(got, "prompt more and more");
    }

    #[test]
    fn bug_31_an_agent_that_does_not_read_blocks_nothing_and_loses_nothing() {
        let dir = tempfile::tempdir().expect("a directory");
        let prompt: Vec<u8> = (0..1_000_000_u32).map(|n| n as u8).collect();
        let (mut feed, mut reader, _daemon) = feed(dir.path(), &prompt, true);
        feed.pump();
        assert!(matches!(feed.pipe(), Some((_, true))), "waits for room");
        let mut got = Vec::new();
        let mut buffer = vec![0; 40_000];
        loop {
            feed.pump();
            match reader.read(&mut buffer).expect("readable") {
                0 => break,
                count => got.extend_from_slice(&buffer[..count]),
            }
        }
        assert!(got == prompt);
    }

    #[test]
    fn bug_31_input_for_an_agent_that_closed_its_stdin_is_thrown_away_without_filling_up() {
        let dir = tempfile::tempdir().expect("a directory");
        let (mut feed, reader, mut daemon) = feed(dir.path(), &vec![1; 200_000], false);
        drop(reader);
        feed.pump();
        assert!(feed.pipe().is_none());
        for _ in 0..4 {
            daemon.write_all(&vec![2; 40_000]).expect("fits the emptied FIFO");
            feed.pump();
        }
    }
}
