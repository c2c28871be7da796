//! Signals that ask the program to end.

use crate::ignored::is_ignored;
use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Ctrl-C, a polite kill, and a terminal that was closed. While it lives none of them ends the process by itself.
pub(crate) struct Interrupts {
    /// Not for a program that a script started in the background.
    int: Option<Signal>,
    term: Signal,
    /// Not for a program that was started with `nohup`.
    hup: Option<Signal>,
}

impl Interrupts {
    /// From now on the signals are caught.
    pub(crate) fn catch() -> io::Result<Self> {
        Ok(Self {
            int: wanted(SignalKind::interrupt())?,
            term: signal(SignalKind::terminate())?,
            hup: wanted(SignalKind::hangup())?,
        })
    }

    /// The next one.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            () = received(&mut self.int) => {}
            _ = self.term.recv() => {}
            () = received(&mut self.hup) => {}
        }
    }
}

fn wanted(kind: SignalKind) -> io::Result<Option<Signal>> {
    if is_ignored(kind.as_raw_value()) { Ok(None) } else { signal(kind).map(Some) }
}

async fn received(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}
