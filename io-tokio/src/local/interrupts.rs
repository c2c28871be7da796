//! Signals that ask the program to end.

use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Ctrl-C, a polite kill, and a terminal that was closed. While it lives none of them ends the process by itself.
pub(crate) struct Interrupts {
    int: Signal,
    term: Signal,
    /// Not for a program that was started with `nohup`.
    hup: Option<Signal>,
}

impl Interrupts {
    /// From now on the signals are caught.
    pub(crate) fn catch() -> io::Result<Self> {
        let hangup = SignalKind::hangup();
        Ok(Self {
            int: signal(SignalKind::interrupt())?,
            term: signal(SignalKind::terminate())?,
            hup: if is_ignored(hangup) { None } else { Some(signal(hangup)?) },
        })
    }

    /// The next one.
    pub(crate) async fn next(&mut self) {
        let hangup = async {
            match &mut self.hup {
                Some(hup) => hup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.int.recv() => {}
            _ = self.term.recv() => {}
            _ = hangup => {}
        }
    }
}

/// Whether this process was started with the signal ignored. Where the system does not tell, it was not.
fn is_ignored(kind: SignalKind) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (kind.as_raw_value() - 1) & 1 == 1
}
