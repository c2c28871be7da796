//! What earlier daemons left that nobody waits for: it goes while the daemon starts.

use crate::supervise::asked;
use crate::tempdir;
use std::path::PathBuf;
use std::time::SystemTime;

/// Ends what an earlier daemon asked and left, beside everything else.
pub(super) fn asked_ones(state: PathBuf) {
    tokio::task::spawn_blocking(move || match asked::end_left(&state) {
        0 => {}
        processes => tracing::warn!(
            processes,
            "processes that an earlier daemon had asked for a version, or the like, were still there and were ended"
        ),
    });
}

/// Removes what an earlier daemon left of its tasks' temp dirs, beside everything else.
pub(super) fn temp_dirs(base: Option<PathBuf>) {
    tokio::task::spawn_blocking(move || {
        let base = base.as_ref().map(|base| base.as_os_str());
        match tempdir::sweep(base, None, SystemTime::now()) {
            Ok(swept) if swept.removed > 0 => {
                tracing::info!(
                    removed = swept.removed,
                    bytes = swept.bytes,
                    "old temp dirs of tasks removed"
                );
            }
            Ok(_) => {}
            Err(error) => tracing::debug!(%error, "old temp dirs could not be looked for"),
        }
    });
}
