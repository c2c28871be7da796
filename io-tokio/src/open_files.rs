//! How many files the system lets this process have open at a time, and how many are needed.
//!
//! Where there are too few, calls fail in the middle of things, and some libraries panic. So that is told before anything is begun.

use crate::cli::Command;
use rustix::process::{Resource, getrlimit};

/// For a command that only asks: the runtime, a connection, a file or two.
const COMMAND: u64 = 24;
/// For a daemon with a few tasks at a time. One task needs some fifty with the daemon itself, and each further one some eight.
const DAEMON: u64 = 128;

/// Too few files may be open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "this process may have no more than {limit} files open at a time, and `longshore {command}` needs {needed}: raise the limit, with \
     `ulimit -n {needed}` in the shell that starts it, or with LimitNOFILE= in a systemd unit"
)]
pub(crate) struct TooFewFiles {
    command: &'static str,
    limit: u64,
    needed: u64,
}

/// Whether the limit is high enough for the command.
///
/// # Errors
/// It is not.
pub(crate) fn check(command: &Command) -> Result<(), TooFewFiles> {
    // Without a limit there is nothing to run into.
    getrlimit(Resource::Nofile).current.map_or(Ok(()), |limit| judge(command, limit))
}

fn judge(command: &Command, limit: u64) -> Result<(), TooFewFiles> {
    let (command, needed) = match command {
        Command::DaemonStart(_) => ("daemon start", DAEMON),
        Command::DaemonRestart(_) => ("daemon restart", DAEMON),
        Command::Demo(_) => ("demo", DAEMON),
        Command::Local(_) => ("local", DAEMON),
        Command::DaemonStop(_) => ("daemon stop", COMMAND),
        Command::DaemonStatus(_) => ("daemon status", COMMAND),
        Command::DaemonLogs(_) => ("daemon logs", COMMAND),
        Command::Trace(_) => ("trace", COMMAND),
        Command::Version(_) => return Ok(()),
    };
    if limit < needed { Err(TooFewFiles { command, limit, needed }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Demo, VersionOutput};

    #[test]
    fn the_error_says_the_limit_what_is_needed_and_how_to_raise_it() {
        let demo = Command::Demo(Demo::default());
        assert_eq!(judge(&demo, DAEMON), Ok(()));
        let text = judge(&demo, 6).expect_err("too few").to_string();
        for words in ["no more than 6 files", "`longshore demo` needs 128", "`ulimit -n 128`", "LimitNOFILE"]
        {
            assert!(text.contains(words), "{text}");
        }
        assert_eq!(judge(&Command::Version(VersionOutput::Text), 3), Ok(()), "it opens nothing");
    }
}
