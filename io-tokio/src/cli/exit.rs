//! How a command ends: exit codes and the one line that says what went wrong.

use crate::config::Env;
use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

/// The exit codes of the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// 0: done.
    Success,
    /// 1: anything without a code of its own, and every failure of the daemon's start and stop.
    Failed,
    /// 2: the server was not reached.
    Network,
    /// 3: the server refused the credential.
    Denied,
    /// 4: the server does not know what was asked for.
    NotFound,
    /// 5: the server refused the request as it was.
    Rejected,
    /// What a command's own documentation says.
    Code(u8),
}

impl Exit {
    /// The number.
    pub const fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Failed => 1,
            Self::Network => 2,
            Self::Denied => 3,
            Self::NotFound => 4,
            Self::Rejected => 5,
            Self::Code(code) => code,
        }
    }

    /// The code for an answer that is no success.
    pub fn of_http_status(status: u16) -> Self {
        match status {
            401 | 403 => Self::Denied,
            404 => Self::NotFound,
            400 | 422 => Self::Rejected,
            _ => Self::Failed,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// What was to be told could not be written, as on a full disk.
#[derive(Debug, thiserror::Error)]
#[error("the output could not be written: {0}")]
pub struct Unwritten(#[source] io::Error);

/// Writes text that a command was asked for, at once. That nobody reads it any more is no error.
///
/// # Errors
/// It does not go there.
pub fn print(out: &mut dyn Write, text: &str) -> Result<(), Unwritten> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Unwritten(error)),
        _ => Ok(()),
    }
}

/// One line for people. With `debug` each cause follows on a line of its own.
pub fn explain(error: &dyn Error, debug: bool) -> String {
    let mut text = format!("error: {error}");
    let mut cause = error.source().filter(|_| debug);
    while let Some(inner) = cause {
        text.push_str("\n  caused by: ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}

/// Whether `MULTICA_DEBUG` asks for causes: any word but 0, false, no and off does.
pub fn debug_wanted(env: &Env) -> bool {
    let word = env.text("MULTICA_DEBUG").ok().flatten().map(str::to_ascii_lowercase);
    word.is_some_and(|w| !matches!(w.as_str(), "0" | "false" | "no" | "off"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ConfigError;

    #[test]
    fn answers_of_the_server_have_their_codes() {
        for (status, want) in [(401, 3), (403, 3), (404, 4), (400, 5), (422, 5), (409, 1), (429, 1), (503, 1)]
        {
            assert_eq!(Exit::of_http_status(status).code(), want, "{status}");
        }
    }

    #[test]
    fn causes_are_shown_on_request() {
        let error = ConfigError::CurrentDir(io::Error::other("gone"));
        assert_eq!(explain(&error, false).lines().count(), 1);
        let read = ConfigError::Read { path: "/c".into(), source: io::Error::other("gone") };
        assert!(explain(&read, true).ends_with("\n  caused by: gone"));
        let wanted = |value| debug_wanted(&Env::from_pairs([("MULTICA_DEBUG", value)]));
        assert_eq!([wanted("1"), wanted("yes"), wanted("OFF"), wanted(" ")], [true, true, false, false]);
    }
}
