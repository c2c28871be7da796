//! Signals that ask the program to end.

use crate::ignored::is_ignored;
use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interrupt {
    /// Ctrl-C: SIGINT.
    CtrlC,
    /// A polite kill, as from a service manager: SIGTERM.
    Terminate,
    /// A terminal that was closed: SIGHUP.
    HangUp,
}

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

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) {
        self.which().await;
    }

    /// The next one.
    pub(crate) async fn which(&mut self) -> Interrupt {
        tokio::select! {
            () = received(&mut self.int) => Interrupt::CtrlC,
            _ = self.term.recv() => Interrupt::Terminate,
            () = received(&mut self.hup) => Interrupt::HangUp,
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
