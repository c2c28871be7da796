//! What makes records survive a power cut, beside the work: one thread that does one thing after the other. What is asked for again before
//! it is done is done once, so a disk that hangs lets nothing grow.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// From the first wish to what is done about it. An fsync makes others wait for the file system's journal, so none is to fall on the way from
/// a claim to its agent, or from a result to its report; and what is over by then needs none.
const GATHER: Duration = Duration::from_millis(50);

/// The thread, once there is something to do. It ends when this is dropped and all is done.
#[derive(Debug, Default)]
pub(super) struct Syncer(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    work: Mutex<Work>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Work {
    /// Files that are to be durable, with their names.
    files: BTreeSet<PathBuf>,
    /// Directories that mean nothing any more.
    dirs: BTreeSet<PathBuf>,
    /// Whether something is being done.
    busy: bool,
    started: bool,
    /// Somebody waits.
    urgent: bool,
    closed: bool,
}

impl Work {
    fn is_done(&self) -> bool {
        self.files.is_empty() && self.dirs.is_empty() && !self.busy
    }
}

impl Shared {
    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Syncer {
    /// Makes a file durable, some time soon.
    pub(super) fn sync(&self, file: PathBuf) {
        self.give(|work| work.files.insert(file));
    }

    /// Removes a directory with what is in it.
    pub(super) fn remove(&self, dir: PathBuf) {
        self.give(|work| work.dirs.insert(dir));
    }

    /// Waits until all that was given so far is done.
    pub(super) fn settle(&self) {
        let mut work = self.0.work();
        work.urgent = true;
        self.0.changed.notify_all();
        while work.started && !work.is_done() {
            work = self.0.changed.wait(work).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn give(&self, what: impl FnOnce(&mut Work) -> bool) {
        let mut work = self.0.work();
        what(&mut work);
        if !work.started {
            let shared = Arc::clone(&self.0);
            let thread = std::thread::Builder::new().name("ledger-sync".to_owned()).stack_size(128 * 1024);
            match thread.spawn(move || serve(&shared)) {
                Ok(_) => work.started = true,
                Err(error) => {
                    tracing::error!(%error, "no thread can be started: the ledger does not survive a power cut, and is not tidied up");
                    (work.files, work.dirs) = (BTreeSet::new(), BTreeSet::new());
                    return;
                }
            }
        }
        drop(work);
        self.0.changed.notify_all();
    }
}

impl Drop for Syncer {
    fn drop(&mut self) {
        self.0.work().closed = true;
        self.0.changed.notify_all();
    }
}

fn serve(shared: &Shared) {
    let mut complained = false;
    loop {
        let (files, dirs) = {
            let mut work = shared.work();
            work.busy = false;
            shared.changed.notify_all();
            while work.is_done() {
                if work.closed {
                    return;
                }
                work.urgent = false;
                work = shared.changed.wait(work).unwrap_or_else(PoisonError::into_inner);
            }
            let more = |work: &mut Work| !work.urgent && !work.closed;
            let gathered = shared.changed.wait_timeout_while(work, GATHER, more);
            let mut work = gathered.unwrap_or_else(PoisonError::into_inner).0;
            work.busy = true;
            (std::mem::take(&mut work.files), std::mem::take(&mut work.dirs))
        };
        if let Err(error) = sync(files.iter().filter(|file| !dirs.iter().any(|dir| file.starts_with(dir))))
            && !std::mem::replace(&mut complained, true)
        {
            tracing::warn!(%error, "the ledger may not survive a power cut");
        }
        for dir in dirs {
            if let Err(error) = fs::remove_dir_all(&dir)
                && error.kind() != io::ErrorKind::NotFound
            {
                tracing::warn!(%error, dir = %dir.display(), "what is left of a task's record cannot be removed");
            }
        }
    }
}

/// Makes files durable, then their names, each directory once. A file that is gone, or was replaced, needs it no more: the one in its place
/// has a turn of its own. One that cannot be made so is no reason to leave out the others; the first error is given.
fn sync<'a>(files: impl Iterator<Item = &'a PathBuf>) -> io::Result<()> {
    let mut dirs = BTreeSet::new();
    let mut result = Ok(());
    for file in files {
        match one(file) {
            Ok(true) => dirs.extend(file.ancestors().skip(1).take(2)),
            Ok(false) => {}
            Err(error) => result = result.and(Err(error)),
        }
    }
    dirs.into_iter().fold(result, |result, dir| result.and(one(dir).map(drop)))
}

/// Whether it is there.
fn one(path: &Path) -> io::Result<bool> {
    match File::open(path) {
        Ok(open) => open.sync_all().map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
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

    #[test]
    fn nothing_to_do_is_not_waited_for_and_the_thread_ends_with_its_owner() {
        let syncer = Syncer::default();
        syncer.settle();
        syncer.sync("/never/there".into());
        syncer.settle();
        let shared = Arc::clone(&syncer.0);
        drop(syncer);
        while Arc::strong_count(&shared) > 1 {
            std::thread::yield_now();
        }
        assert!(shared.work().is_done());
    }
}
