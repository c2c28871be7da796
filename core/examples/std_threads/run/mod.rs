//! Server and daemon together, for one task.
#![expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "the bans are the core's; an adapter does what the core must not"
)]

mod driver;
mod http;
mod process;
mod server;

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// What the server knows at the end.
#[derive(Debug)]
pub(crate) struct Told {
    /// The task's state, in the words of the wire.
    pub(crate) state: &'static str,
    /// What the agent said.
    pub(crate) transcript: Vec<String>,
    /// Every request that the daemon made, in order, as method and path.
    pub(crate) requests: Vec<String>,
    /// Where the daemon worked. Gone by now.
    pub(crate) dir: PathBuf,
}

/// Starts a server with one task, and a daemon that runs `script` for it, until the task is over and the daemon has stopped. What the daemon does
/// goes to `log`.
pub(crate) fn run(script: &str, log: &mut dyn FnMut(String)) -> io::Result<Told> {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    let nth = RUNS.fetch_add(1, Ordering::Relaxed);
    let dir = std::env::temp_dir().join(format!("longshore-example-{}-{nth}", std::process::id()));
    std::fs::create_dir(&dir)?;
    let server = server::Server::start()?;
    let ran = driver::Driver::new(server.address(), dir.clone(), script).run(log);
    let plane = server.stop();
    std::fs::remove_dir_all(&dir)?;
    ran?;
    let plane = plane?;
    Ok(Told { state: plane.state(), transcript: plane.transcript(), requests: plane.requests, dir })
}
