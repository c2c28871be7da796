//! Tells runs that something in their directory changed.
//!
//! A wake-up says nothing but "look again": the spools' lengths and `exit.json` are the truth.

use std::io;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::Notify;

#[cfg(target_os = "linux")]
pub(super) use by_inotify::{Watch, Watcher};
#[cfg(not(target_os = "linux"))]
pub(super) use by_polling::{Watch, Watcher};

#[cfg(target_os = "linux")]
mod by_inotify {
    use super::{Arc, Notify, Path, io};
    use futures_util::StreamExt;
    use inotify::{EventMask, Inotify, WatchDescriptor, WatchMask, Watches};
    use std::collections::BTreeMap;
    use std::sync::{Mutex, PoisonError};
    use tokio::task::AbortHandle;

    /// Room for events between two reads, in bytes; the kernel merges equal neighbours and tells of an overflow.
    const BUFFER: usize = 16 * 1024;

    type Waiting = Arc<Mutex<BTreeMap<i32, Arc<Notify>>>>;

    /// One inotify instance for all runs.
    pub(in super::super) struct Watcher {
        watches: Watches,
        waiting: Waiting,
        reader: AbortHandle,
    }

    impl Watcher {
        /// Starts to listen, on the runtime of the caller.
        pub(in super::super) fn start() -> io::Result<Self> {
            let inotify = Inotify::init()?;
            let watches = inotify.watches();
            let waiting = Waiting::default();
            let mut events = inotify.into_event_stream(vec![0; BUFFER])?;
            let shared = Arc::clone(&waiting);
            let reader = tokio::spawn(async move {
                while let Some(event) = events.next().await {
                    let waiting = shared.lock().unwrap_or_else(PoisonError::into_inner);
                    let all = event.as_ref().map_or(true, |event| event.mask.contains(EventMask::Q_OVERFLOW));
                    if all {
                        waiting.values().for_each(|run| run.notify_one());
                    } else if let Some(run) =
                        event.ok().and_then(|event| waiting.get(&event.wd.get_watch_descriptor_id()))
                    {
                        run.notify_one();
                    }
                }
            });
            Ok(Self { watches, waiting, reader: reader.abort_handle() })
        }

        /// Watches one run directory until the handle is dropped.
        pub(in super::super) fn watch(self: &Arc<Self>, dir: &Path) -> io::Result<Watch> {
            let changed = Arc::new(Notify::new());
            // A supervisor that dies, however, closes its files: that is an event as well.
            let mask = WatchMask::MODIFY | WatchMask::MOVED_TO | WatchMask::CLOSE_WRITE | WatchMask::ONLYDIR;
            let descriptor = self.watches.clone().add(dir, mask)?;
            let id = descriptor.get_watch_descriptor_id();
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.insert(id, Arc::clone(&changed));
            drop(waiting);
            Ok(Watch { watcher: Arc::clone(self), descriptor: Some(descriptor), changed })
        }
    }

    impl Drop for Watcher {
        fn drop(&mut self) {
            self.reader.abort();
        }
    }

    /// One watched directory.
    pub(in super::super) struct Watch {
        watcher: Arc<Watcher>,
        descriptor: Option<WatchDescriptor>,
        changed: Arc<Notify>,
    }

    impl Watch {
        /// Waits for the next change; one that came since the last call counts. Cancel-safe.
        pub(in super::super) async fn changed(&self) {
            self.changed.notified().await;
        }
    }

    impl Drop for Watch {
        fn drop(&mut self) {
            if let Some(descriptor) = self.descriptor.take() {
                let mut waiting = self.watcher.waiting.lock().unwrap_or_else(PoisonError::into_inner);
                waiting.remove(&descriptor.get_watch_descriptor_id());
                // Fails when the directory is gone, and the watch with it.
                let _ = self.watcher.watches.clone().remove(descriptor);
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod by_polling {
    use super::{Arc, Path, io};
    use std::time::Duration;

    const PAUSE: Duration = Duration::from_millis(20);

    pub(in super::super) struct Watcher;

    impl Watcher {
        #[expect(clippy::unnecessary_wraps, reason = "the other implementation can fail")]
        pub(in super::super) fn start() -> io::Result<Self> {
            Ok(Self)
        }

        #[expect(clippy::unnecessary_wraps, reason = "the other implementation can fail")]
        pub(in super::super) fn watch(self: &Arc<Self>, _dir: &Path) -> io::Result<Watch> {
            Ok(Watch)
        }
    }

    pub(in super::super) struct Watch;

    impl Watch {
        pub(in super::super) async fn changed(&self) {
            tokio::time::sleep(PAUSE).await;
        }
    }
}
