//! A daemon that stops wherever a test wants it to: it speaks with a supervisor and its helper byte by byte.

use crate::bench::signal;
use longshore_io_tokio::supervise::record::RunDir;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, ExitStatus, Stdio};

pub(crate) const MARKER: &str = "marker-of-a-raw-launch";

/// A supervisor that is ready, and the ends of the sockets that its daemon has.
pub(crate) struct Raw {
    supervisor: Child,
    control: UnixStream,
    helper: UnixStream,
}

impl Raw {
    pub(crate) fn start() -> Self {
        let (control, theirs) = UnixStream::pair().expect("a pair");
        let (mut helper, helpers) = UnixStream::pair().expect("a pair");
        let supervisor = Command::new(env!("CARGO_BIN_EXE_longshore-under-test"))
            .arg("supervise")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::from(OwnedFd::from(helpers)))
            .spawn()
            .expect("it runs");
        let mut control = control;
        assert_eq!(read(&mut control).0, b'M', "ready");
        assert_eq!(read(&mut helper).0, b'H', "hello");
        Self { supervisor, control, helper }
    }

    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.supervisor.id()).expect("a pid")
    }

    /// The supervisor does nothing until [`go`](Self::go).
    pub(crate) fn stop(&self) {
        signal(self.pid(), Signal::STOP);
    }

    pub(crate) fn go(pid: i32) {
        signal(pid, Signal::CONT);
    }

    /// Tells the helper what to become.
    pub(crate) fn exec(&mut self, program: &str, args: &[&str], cwd: &std::path::Path) {
        let mut call = Vec::new();
        put(&mut call, program.as_bytes());
        put(&mut call, cwd.as_os_str().as_encoded_bytes());
        put(&mut call, &(args.len() as u64).to_le_bytes());
        for arg in args {
            put(&mut call, arg.as_bytes());
        }
        put(&mut call, b"LONGSHORE_RUN");
        put(&mut call, MARKER.as_bytes());
        self.helper.write_all(&frame(b'X', &call)).expect("the helper listens");
    }

    /// The bytes of the order to launch in a directory.
    pub(crate) fn order(dir: &RunDir) -> Vec<u8> {
        let order: Value = json!({ "launch": {
            "version": 1, "task": "task", "attempt": 1, "marker": MARKER, "run_dir": dir.path(),
            "keep_stdin_open": false, "spool_budget": 1_000_000, "leftover_grace_ms": 500,
        }});
        frame(b'M', order.to_string().as_bytes())
    }

    pub(crate) fn write(&mut self, order: &[u8]) {
        self.control.write_all(order).expect("it fits the socket");
    }

    /// The daemon is gone; what is left is the supervisor to wait for.
    pub(crate) fn die(self) -> Orphan {
        Orphan(self.supervisor)
    }
}

/// A supervisor without a daemon.
pub(crate) struct Orphan(Child);

impl Orphan {
    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.0.id()).expect("a pid")
    }

    /// Waits for its end.
    pub(crate) async fn ended(mut self) -> ExitStatus {
        tokio::task::spawn_blocking(move || self.0.wait().expect("our child")).await.expect("no panic")
    }
}

/// What a daemon makes before it gives the order.
pub(crate) fn make_dir(dir: &RunDir) {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir.path()).expect("made");
    std::fs::write(dir.file("prompt"), "").expect("written");
    std::fs::write(dir.file("alive"), MARKER).expect("written");
}

fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    out.extend_from_slice(bytes);
}

fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![kind];
    out.extend_from_slice(&u32::try_from(payload.len()).expect("small").to_le_bytes());
    out.extend_from_slice(payload);
    out
}

fn read(from: &mut UnixStream) -> (u8, Vec<u8>) {
    let mut head = [0; 5];
    from.read_exact(&mut head).expect("a frame");
    let [kind, length @ ..] = head;
    let mut payload = vec![0; u32::from_le_bytes(length) as usize];
    from.read_exact(&mut payload).expect("a whole frame");
    (kind, payload)
}
