//! Asks one agent CLI for its version.

use super::capture::{CaptureError, Probe};
use super::not_executable::{self, Repair};
use super::probes::{Answer, Question};
use super::registry::{AgentCli, Version};
use super::version::{version, version_line};
use crate::config::Env;
use std::ffi::{OsStr, OsString};
use std::time::Duration;
use thiserror::Error;
use tokio::time::{Instant, sleep};

/// Programs that are asked at the same time.
pub const PROBES_AT_ONCE: usize = 8;
const ATTEMPTS: u32 = 2;
const PAUSE: Duration = Duration::from_millis(500);
/// A program that took longer to fail is not asked again.
const QUICK: Duration = Duration::from_secs(1);
const VERSION_LIMIT: Duration = Duration::from_secs(10);
const GATE_LIMIT: Duration = Duration::from_secs(5);

/// Why an agent CLI cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Problem {
    /// The command that was configured is not there.
    #[error("{} is no program; correct {variable}, or unset it to look for the default command", command.display())]
    Missing {
        /// The command.
        command: OsString,
        /// The variable that configures it.
        variable: &'static str,
    },
    /// The system cannot run the file.
    #[error("{}", not_executable::explain(repair.as_ref()))]
    NotExecutable {
        /// What would repair it, if known.
        repair: Option<Repair>,
    },
    /// It did not say its version.
    #[error("asked for its version, {reason}; run it by hand to see more")]
    NoVersion {
        /// What happened instead.
        reason: String,
    },
    /// It does not speak the daemon's protocol.
    #[error("it did not say that it speaks the daemon's protocol ({reason}); update it")]
    Gate {
        /// What happened instead.
        reason: String,
    },
    /// It takes its time.
    #[error("it has not said its version yet; it is waited for, and used as soon as it does")]
    Slow,
    /// It is too old.
    #[error("version {}.{}.{} is too old; update it to {}.{}.{} or later", found.0, found.1, found.2, least.0, least.1, least.2)]
    TooOld {
        /// Its version.
        found: Version,
        /// The oldest that works.
        least: Version,
    },
}

/// Asks a program for its version, and where it has one, for its protocol.
pub(super) async fn ask(question: &Question, env: &Env) -> Answer {
    let (line, gate) = tokio::join!(version_of(question, env), gate(question, env));
    line.and_then(|line| gate.map(|()| line))
}

async fn version_of(question: &Question, env: &Env) -> Answer {
    let args: Vec<&OsStr> = question.args.iter().map(OsStr::new).collect();
    let (program, limit) = (question.program.as_path(), VERSION_LIMIT);
    let enough = |text: &str| version(text).is_some();
    let probe = Probe { program, args: &args, env, limit, enough, makes_session: false };
    let mut attempt = 1;
    loop {
        let begun = Instant::now();
        let problem = match probe.run().await {
            Ok(text) if !text.trim().is_empty() => return Ok(version_line(&text)),
            Ok(_) => Problem::NoVersion { reason: "it printed nothing".to_owned() },
            Err(CaptureError::Start(e))
                if e.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error()) =>
            {
                return Err(Problem::NotExecutable { repair: not_executable::repair(program) });
            }
            Err(error) => Problem::NoVersion { reason: error.to_string() },
        };
        if attempt == ATTEMPTS || begun.elapsed() >= QUICK {
            return Err(problem);
        }
        attempt += 1;
        sleep(PAUSE).await;
    }
}

async fn gate(question: &Question, env: &Env) -> Result<(), Problem> {
    let Some(args) = question.gate else { return Ok(()) };
    let args: Vec<&OsStr> = args.iter().map(OsStr::new).collect();
    let enough = |text: &str| text.lines().any(speaks_version_1);
    let program = question.program.as_path();
    let probe = Probe { program, args: &args, env, limit: GATE_LIMIT, enough, makes_session: false };
    match probe.run().await {
        Ok(text) if enough(&text) => Ok(()),
        Ok(_) => Err(Problem::Gate { reason: "its answer was another one".to_owned() }),
        Err(error) => Err(Problem::Gate { reason: error.to_string() }),
    }
}

fn speaks_version_1(line: &str) -> bool {
    serde_json::from_str::<serde_json::Value>(line).is_ok_and(|answer| {
        answer["v"] == 1
            && answer["type"] == "probe"
            && answer["runtime"] == "dsh"
            && answer["protocol_version"] == 1
    })
}

/// A version that cannot be read is not too old.
pub(super) fn recent_enough(cli: &AgentCli, line: String) -> Result<String, Problem> {
    match (version(&line), cli.min_version) {
        (Some(found), Some(least)) if found < least => Err(Problem::TooOld { found, least }),
        _ => Ok(line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discover::agent_cli;

    #[test]
    fn only_a_version_that_is_readable_can_be_too_old() {
        let claude = agent_cli("claude").expect("known");
        assert!(recent_enough(claude, "2.0.0 (Claude Code)".into()).is_ok());
        assert!(recent_enough(claude, "nightly".into()).is_ok());
        let error = recent_enough(claude, "1.9.99".into()).expect_err("too old").to_string();
        assert_eq!(error, "version 1.9.99 is too old; update it to 2.0.0 or later");
        let kimi = agent_cli("kimi").expect("known");
        assert!(recent_enough(kimi, "0.0.1".into()).is_ok());
    }
}
