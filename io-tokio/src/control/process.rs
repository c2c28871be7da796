//! The process of a daemon, told apart from whatever else may have its number.
//!
//! On Linux a process is held by a handle that its number cannot be taken over from. The number alone, from a file or an answer, proves
//! nothing: the process counts only if it began when the daemon says that it began, or, for a daemon that does not say so, if it
//! holds the very socket that answered. To be ended by force it must also be ours and look like a daemon.

use std::time::Duration;

/// A process that was seen to be the daemon.
pub(super) struct Process(system::Process);

impl Process {
    /// The daemon's process, where it can be told. `started` is what the daemon says, in ticks since the machine's start; `port` is where it
    /// answered just now.
    pub(super) fn of_daemon(pid: i32, started: Option<u64>, port: u16) -> Option<Self> {
        system::Process::of_daemon(pid, started, port).map(Self)
    }

    /// Waits until it has ended; whether it did in time.
    pub(super) async fn ended(&self, within: Duration) -> bool {
        self.0.ended(within).await
    }

    /// Whether it may be ended by force; else what is not sure about it.
    pub(super) fn may_be_ended(&self) -> Result<(), String> {
        self.0.may_be_ended()
    }

    /// Asks it to end, as `kill` does.
    pub(super) fn terminate(&self) {
        self.0.terminate();
    }

    /// Ends it.
    pub(super) fn kill(&self) {
        self.0.kill();
    }
}

#[cfg(target_os = "linux")]
mod system {
    use crate::health::{process_start, socket_of_listener};
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::process::{Pid, PidfdFlags, Signal, geteuid, pidfd_open, pidfd_send_signal};
    use std::fs;
    use std::net::{Ipv4Addr, SocketAddrV4};
    use std::os::fd::OwnedFd;
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;
    use std::time::Duration;

    /// Programs that are daemons of the protocol.
    const PROGRAMS: [&str; 2] = ["longshore", "multica"];

    pub(super) struct Process {
        pid: i32,
        handle: OwnedFd,
    }

    impl Process {
        pub(super) fn of_daemon(pid: i32, started: Option<u64>, port: u16) -> Option<Self> {
            // First the handle, then the look: what is seen while the handle's process lives is seen of that process.
            let handle = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
            let process = Self { pid, handle };
            let proven = match started {
                Some(started) => process_start(u32::try_from(pid).ok()?) == Some(started),
                None => process.listens_at(port),
            };
            (proven && process.lives()).then_some(process)
        }

        fn listens_at(&self, port: u16) -> bool {
            let Some(socket) = socket_of_listener(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)) else {
                return false;
            };
            let wanted = format!("socket:[{socket}]");
            let open = fs::read_dir(format!("/proc/{}/fd", self.pid)).into_iter().flatten().flatten();
            open.filter_map(|entry| fs::read_link(entry.path()).ok()).any(|to| to == Path::new(&wanted))
        }

        fn lives(&self) -> bool {
            !has_ended(&self.handle, Duration::ZERO)
        }

        pub(super) async fn ended(&self, within: Duration) -> bool {
            let Ok(handle) = self.handle.try_clone() else {
                tokio::time::sleep(within).await;
                return !self.lives();
            };
            tokio::task::spawn_blocking(move || has_ended(&handle, within)).await.is_ok_and(|ended| ended)
        }

        pub(super) fn may_be_ended(&self) -> Result<(), String> {
            let owner = fs::metadata(format!("/proc/{}", self.pid)).map(|meta| meta.uid());
            if owner.ok() != Some(geteuid().as_raw()) {
                return Err("it belongs to another user".to_owned());
            }
            let name = |path: &Path| {
                // A program that was replaced has this behind its name.
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                name.trim_end_matches(" (deleted)").to_owned()
            };
            let program = fs::read_link(format!("/proc/{}/exe", self.pid)).map(|path| name(&path));
            let own = std::env::current_exe().map(|path| name(&path)).ok();
            let program = program.map_err(|_| "its program cannot be seen".to_owned())?;
            let line = fs::read(format!("/proc/{}/cmdline", self.pid)).unwrap_or_default();
            let mut words = line.split(|byte| *byte == 0);
            let is_daemon = words.any(|word| word == b"daemon");
            if !is_daemon || !(PROGRAMS.contains(&program.as_str()) || own.as_deref() == Some(&program)) {
                return Err(format!("it runs {program:?}, which is none that is known as a daemon"));
            }
            if self.lives() { Ok(()) } else { Err("it has just ended".to_owned()) }
        }

        pub(super) fn terminate(&self) {
            // One that has ended needs none.
            let _ = pidfd_send_signal(&self.handle, Signal::TERM);
        }

        pub(super) fn kill(&self) {
            let _ = pidfd_send_signal(&self.handle, Signal::KILL);
        }
    }

    /// Whether the process of a handle ends in time. A signal of our own ends the wait early, with the answer of that moment.
    fn has_ended(handle: &OwnedFd, within: Duration) -> bool {
        let limit = Timespec::try_from(within).ok();
        poll(&mut [PollFd::new(handle, PollFlags::IN)], limit.as_ref()).is_ok_and(|ready| ready > 0)
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use std::process::{Child, Command, Stdio};

        fn sleeper() -> Child {
            let mut command = Command::new("sleep");
            command.arg("1000").stdin(Stdio::null()).spawn().expect("started")
        }

        fn id(child: &Child) -> i32 {
            i32::try_from(child.id()).expect("a process id")
        }

        #[tokio::test]
        async fn cli_128_a_number_alone_is_no_daemon() {
            let mut child = sleeper();
            let started = process_start(child.id()).expect("Linux tells");
            assert!(
                Process::of_daemon(id(&child), Some(started + 1), 1).is_none(),
                "another had this number"
            );
            assert!(Process::of_daemon(id(&child), None, 1).is_none(), "it does not listen");
            let process = Process::of_daemon(id(&child), Some(started), 1).expect("it began then");
            let doubt = process.may_be_ended().expect_err("it is no daemon");
            assert!(doubt.contains("sleep"), "{doubt}");
            assert!(!process.ended(Duration::ZERO).await);
            child.kill().expect("killed");
            assert!(process.ended(Duration::from_secs(30)).await);
            child.wait().expect("reaped");
            assert!(Process::of_daemon(id(&child), Some(started), 1).is_none(), "it has ended");
        }

        #[test]
        fn who_holds_the_socket_is_the_daemon() {
            let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
            let port = listener.local_addr().expect("bound").port();
            let me = i32::try_from(std::process::id()).expect("a process id");
            assert!(Process::of_daemon(me, None, port).is_some());
            let mut other = sleeper();
            assert!(Process::of_daemon(id(&other), None, port).is_none());
            other.kill().expect("killed");
            other.wait().expect("reaped");
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::time::Duration;

    /// Here nothing tells one process from a later one of the same number.
    pub(super) struct Process(std::convert::Infallible);

    impl Process {
        pub(super) fn of_daemon(_pid: i32, _started: Option<u64>, _port: u16) -> Option<Self> {
            None
        }

        pub(super) async fn ended(&self, _within: Duration) -> bool {
            match self.0 {}
        }

        pub(super) fn may_be_ended(&self) -> Result<(), String> {
            match self.0 {}
        }

        pub(super) fn terminate(&self) {
            match self.0 {}
        }

        pub(super) fn kill(&self) {
            match self.0 {}
        }
    }
}
