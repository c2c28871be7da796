//! The daemon's end of a FIFO: what it does not take now is held and sent later, in order.

use super::error::StdinError;
use std::io;
use std::path::Path;
use tokio::net::unix::pipe;

pub(super) struct Outbound {
    fifo: pipe::Sender,
    held: Vec<u8>,
    limit: usize,
    /// Nobody reads any more: the supervisor is gone.
    broken: bool,
}

impl Outbound {
    /// Opens a FIFO that has a reader; at most `limit` bytes are held.
    pub(super) fn open(path: &Path, limit: usize) -> io::Result<Self> {
        let fifo = pipe::OpenOptions::new().open_sender(path)?;
        Ok(Self { fifo, held: Vec::new(), limit, broken: false })
    }

    /// Sends or holds all of `bytes`, or nothing of it.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), StdinError> {
        self.flush();
        if self.broken {
            return Err(StdinError::Closed);
        }
        if self.held.len().saturating_add(bytes.len()) > self.limit {
            return Err(StdinError::Full { held: self.held.len() });
        }
        self.held.extend_from_slice(bytes);
        self.flush();
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Sends what the FIFO takes now.
    pub(super) fn flush(&mut self) {
        while !self.held.is_empty() {
            match self.fifo.try_write(&self.held) {
                Ok(count) => drop(self.held.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => {
                    self.broken = true;
                    self.held = Vec::new();
                }
            }
        }
    }

    /// Waits until [`flush`](Self::flush) can go on; for ever when nothing is held. Cancel-safe.
    pub(super) async fn writable(&self) {
        if self.is_empty() || self.fifo.writable().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
