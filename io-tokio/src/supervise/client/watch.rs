//! Tells runs that something in their directory changed.
//!
//! A wake-up says nothing but "look again": the spools' lengths and `exit.json` are the truth.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// From one look to the next where nobody tells of changes.
const LOOK: Duration = Duration::from_millis(20);

/// Watches run directories, with one inotify instance for all of them where there is one to be had.
pub(super) struct Watcher {
    #[cfg(target_os = "linux")]
    inotify: Option<Arc<by_inotify::Watcher>>,
}

impl Watcher {
    /// Starts to listen, on the runtime of the caller.
    pub(super) fn start() -> Self {
        Self {
            #[cfg(target_os = "linux")]
            inotify: by_inotify::Watcher::start().map(Arc::new).map_err(warn).ok(),
        }
    }

    /// Watches one directory until the result is dropped.
    #[cfg_attr(
        not(target_os = "linux"),
        expect(clippy::unused_self, unused_variables, reason = "looks need neither")
    )]
    pub(super) fn watch(&self, dir: &Path) -> Watch {
        Watch {
            #[cfg(target_os = "linux")]
            inotify: self.inotify.as_ref().and_then(|watcher| watcher.watch(dir).map_err(warn).ok()),
        }
    }
}

#[cfg(target_os = "linux")]
fn warn(error: std::io::Error) -> std::io::Error {
    let text = "cannot watch run directories and looks at them instead; raise fs.inotify.max_user_instances \
                or fs.inotify.max_user_watches";
    tracing::warn!(%error, "{text}");
    error
}

/// One watched directory.
pub(super) struct Watch {
    #[cfg(target_os = "linux")]
    inotify: Option<by_inotify::Watch>,
}

impl Watch {
    /// Waits until something may have changed since the last call. Cancel-safe.
    pub(super) async fn changed(&self) {
        #[cfg(target_os = "linux")]
        if let Some(watch) = &self.inotify {
            return watch.changed().await;
        }
        tokio::time::sleep(LOOK).await;
    }
}

#[cfg(target_os = "linux")]
mod by_inotify {
    use super::{Arc, Path};
    use futures_util::StreamExt;
    use inotify::{EventMask, Inotify, WatchDescriptor, WatchMask, Watches};
    use std::collections::BTreeMap;
    use std::io;
    use std::sync::{Mutex, PoisonError};
    use tokio::sync::Notify;
    use tokio::task::AbortHandle;

    /// Room for events between two reads, in bytes; the kernel merges equal neighbours and tells of an overflow.
    const BUFFER: usize = 16 * 1024;

    type Waiting = Arc<Mutex<BTreeMap<i32, Arc<Notify>>>>;

    /// One inotify instance for all runs.
    pub(super) struct Watcher {
        watches: Watches,
        waiting: Waiting,
        reader: AbortHandle,
    }

    impl Watcher {
        /// Starts to listen, on the runtime of the caller.
        pub(super) fn start() -> io::Result<Self> {
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
        pub(super) fn watch(self: &Arc<Self>, dir: &Path) -> io::Result<Watch> {
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
    pub(super) struct Watch {
        watcher: Arc<Watcher>,
        descriptor: Option<WatchDescriptor>,
        changed: Arc<Notify>,
    }

    impl Watch {
        /// Waits for the next change; one that came since the last call counts. Cancel-safe.
        pub(super) async fn changed(&self) {
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
