//! The thread that writes: all that has gathered in one transaction, again until it is written.

use super::Change;
use super::file::File;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use thiserror::Error;
use tokio::sync::watch;

/// Change lists that one transaction takes at most.
const MOST: usize = 4096;
/// The pause before a failed transaction is tried again.
const AGAIN: Duration = Duration::from_millis(500);

/// A call was done, and is not known to be on the disk.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the control plane cannot write its database ({0}): make room on its disk; it tries again by itself")]
pub(in crate::plane) struct Unwritten(pub(in crate::plane) String);

/// How far the writing has come.
#[derive(Clone, Debug, Default)]
struct Progress {
    /// All change lists up to this one are on the disk.
    written: u64,
    /// The last of those that could not be written, and why not.
    failed: Option<(u64, String)>,
}

/// Takes changes, in order, and tells when they are written. Dropping it writes what is left.
#[derive(Debug)]
pub(in crate::plane) struct Writer {
    lists: Option<Sender<(u64, Vec<Change>)>>,
    sent: u64,
    progress: watch::Receiver<Progress>,
    thread: Option<JoinHandle<()>>,
}

/// What one call has to wait for.
#[derive(Debug)]
pub(in crate::plane) struct Due {
    number: u64,
    progress: watch::Receiver<Progress>,
}

impl Writer {
    pub(in crate::plane) fn start(file: File) -> io::Result<Self> {
        let (lists, taken) = channel();
        let (tell, progress) = watch::channel(Progress::default());
        let thread = std::thread::Builder::new().name("plane-database".into()).spawn(move || {
            write_all(&taken, &tell, |changes| file.write(changes).map_err(|why| why.to_string()));
        })?;
        Ok(Self { lists: Some(lists), sent: 0, progress, thread: Some(thread) })
    }

    /// Has these changes written after all earlier ones.
    pub(in crate::plane) fn send(&mut self, changes: Vec<Change>) {
        self.sent += 1;
        if let Some(lists) = &self.lists {
            // The thread ends only after this end of the channel.
            let _ = lists.send((self.sent, changes));
        }
    }

    /// What has been sent so far, to be waited for.
    pub(in crate::plane) fn due(&self) -> Due {
        Due { number: self.sent, progress: self.progress.clone() }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.lists = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed; nothing can be done about it here.
            let _ = thread.join();
        }
    }
}

impl Due {
    /// Waits until it is on the disk.
    pub(in crate::plane) async fn written(mut self) -> Result<(), Unwritten> {
        let number = self.number;
        let over = |now: &Progress| {
            now.written >= number || now.failed.as_ref().is_some_and(|(upto, _)| *upto >= number)
        };
        match self.progress.wait_for(over).await {
            Ok(now) if now.written >= number => Ok(()),
            Ok(now) => Err(Unwritten(now.failed.as_ref().map(|(_, why)| why.clone()).unwrap_or_default())),
            Err(_) => Err(Unwritten("its writer has ended; this is a bug".into())),
        }
    }
}

fn write_all(
    taken: &Receiver<(u64, Vec<Change>)>,
    tell: &watch::Sender<Progress>,
    mut write: impl FnMut(&[Change]) -> Result<(), String>,
) {
    let mut waiting: Vec<Change> = Vec::new();
    let mut upto = 0;
    loop {
        let got = if waiting.is_empty() {
            taken.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            taken.recv_timeout(AGAIN)
        };
        let ends = matches!(got, Err(RecvTimeoutError::Disconnected));
        for (number, changes) in got.into_iter().chain(taken.try_iter().take(MOST)) {
            upto = number;
            waiting.extend(changes);
        }
        if !waiting.is_empty() {
            match write(&waiting) {
                Ok(()) => {
                    waiting.clear();
                    tell.send_replace(Progress { written: upto, failed: None });
                }
                Err(why) => {
                    tracing::error!("the control plane's database cannot be written: {why}");
                    tell.send_modify(|now| now.failed = Some((upto, why)));
                }
            }
        }
        if ends {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plane::database::Table;

    #[tokio::test]
    async fn what_cannot_be_written_is_told_and_written_later_in_order() {
        let (lists, taken) = channel();
        let (tell, progress) = watch::channel(Progress::default());
        let (done, written) = channel();
        let thread = std::thread::spawn(move || {
            let mut failures = 1;
            write_all(&taken, &tell, |changes| {
                if failures > 0 {
                    failures -= 1;
                    return Err("no space left".into());
                }
                let keys: Vec<_> = changes.iter().map(|change| change.key.clone()).collect();
                done.send(keys).map_err(|why| why.to_string())
            });
        });
        let change = |key: &str| vec![Change { table: Table::Singles, key: key.into(), value: None }];
        let due = |number| Due { number, progress: progress.clone() };
        lists.send((1, change("a"))).expect("it listens");
        let failed = due(1).written().await.expect_err("the disk is full");
        assert!(failed.to_string().contains("no space left"), "{failed}");
        lists.send((2, change("b"))).expect("it listens");
        due(2).written().await.expect("there is room again");
        due(1).written().await.expect("this one too");
        assert_eq!(written.recv().expect("written"), ["a", "b"]);
        drop(lists);
        thread.join().expect("it ends");
    }
}
