//! What makes records survive a power cut, beside the work: one thread that does one thing after the other.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};

#[derive(Debug)]
enum Work {
    /// Make a file and its name durable.
    Sync(PathBuf),
    /// Remove a directory that means nothing any more.
    Remove(PathBuf),
    /// Say that all before is done.
    Tell(Sender<()>),
}

/// The thread, once there is something to do. It ends when this is dropped and all is done.
#[derive(Debug, Default)]
pub(super) struct Syncer {
    work: Mutex<Option<Sender<Work>>>,
}

impl Syncer {
    /// Makes a file durable, some time soon.
    pub(super) fn sync(&self, file: PathBuf) {
        self.give(Work::Sync(file));
    }

    /// Removes a directory with what is in it.
    pub(super) fn remove(&self, dir: PathBuf) {
        self.give(Work::Remove(dir));
    }

    /// Waits until all that was given so far is done.
    pub(super) fn settle(&self) {
        let (told, done) = channel();
        self.give(Work::Tell(told));
        // Without a thread the sender is gone, and so is the wait.
        let _ = done.recv();
    }

    fn give(&self, work: Work) {
        let mut sender = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        if sender.is_none() {
            let (give, take) = channel();
            let thread = std::thread::Builder::new().name("ledger-sync".to_owned()).stack_size(128 * 1024);
            match thread.spawn(move || serve(&take)) {
                Ok(_) => *sender = Some(give),
                Err(error) => {
                    tracing::error!(%error, "no thread can be started; the ledger does not survive a power cut");
                    return;
                }
            }
        }
        if let Some(sender) = &*sender {
            // The thread takes what there is until this is dropped.
            let _ = sender.send(work);
        }
    }
}

fn serve(work: &Receiver<Work>) {
    let mut complained = false;
    while let Ok(next) = work.recv() {
        match next {
            Work::Sync(file) => {
                if let Err(error) = sync(&file)
                    && !std::mem::replace(&mut complained, true)
                {
                    tracing::warn!(%error, file = %file.display(), "the ledger may not survive a power cut");
                }
            }
            Work::Remove(dir) => {
                if let Err(error) = fs::remove_dir_all(&dir)
                    && error.kind() != io::ErrorKind::NotFound
                {
                    tracing::warn!(%error, dir = %dir.display(), "what is left of a task's record cannot be removed");
                }
            }
            Work::Tell(told) => drop(told.send(())),
        }
    }
}

/// A file that is gone, or was replaced, needs it no more: the one in its place has a turn of its own.
fn sync(file: &Path) -> io::Result<()> {
    let gone = |error: io::Error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) };
    match File::open(file) {
        Ok(open) => open.sync_all()?,
        Err(error) => return gone(error),
    }
    let Some(dir) = file.parent() else { return Ok(()) };
    for dir in [Some(dir), dir.parent()].into_iter().flatten() {
        match File::open(dir) {
            Ok(open) => open.sync_all()?,
            Err(error) => return gone(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_was_given_is_done_once_it_is_waited_for() {
        let temp = tempfile::tempdir().expect("a directory");
        let (file, dir) = (temp.path().join("file"), temp.path().join("dir"));
        fs::write(&file, "x").expect("written");
        fs::create_dir_all(dir.join("below")).expect("made");
        let syncer = Syncer::default();
        syncer.sync(file.clone());
        syncer.sync(temp.path().join("never there"));
        syncer.remove(dir.clone());
        syncer.settle();
        assert!(file.exists() && !dir.exists());
    }
}
