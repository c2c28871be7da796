//! A flag that signals set, for long work that looks at it, and that gives what it has when it is to stop.

use crate::ignored::is_ignored;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// From now on SIGINT and SIGTERM set the flag; the second one ends the process at once. A SIGINT that this process was started to ignore stays
/// ignored.
///
/// # Errors
/// If the system does not let them be caught.
pub(crate) fn set_by_signals() -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        if signal == SIGINT && is_ignored(signal) {
            continue;
        }
        // In this order: the one that sets it must not find it set.
        flag::register_conditional_default(signal, Arc::clone(&stop))?;
        flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}
