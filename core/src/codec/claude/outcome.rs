//! What the run came to, from the agent's word, its exit, and who ended it.
//!
//! Order of precedence: the agent's word that it failed; a cancel; its word that it succeeded; who else ended it; what
//! broke. A success that was said stays one, however the process ended.

use super::turn::Said;
use super::verdict::Verdict;
use super::{LABEL, Run};
use crate::codec::classify;
use crate::codec::duration::Spelled;
use crate::codec::outcome::{EndedBy, Exit, Outcome, Status};
use crate::reason::FailReason;

/// Texts by which the agent says that it cannot resume a session, in lower case.
const RESUME_REJECTED: &[&str] = &[
    "no conversation found",
    "no saved session found",
    "已绑定另外",
    "bound to another account",
    "bound to a different account",
];

/// Why a run did not complete, before the tail of stderr is added.
struct Failure {
    status: Status,
    error: String,
    /// If it is certain; else the text decides.
    reason: Option<FailReason>,
}

impl Failure {
    fn new(error: String, reason: Option<FailReason>) -> Self {
        Self { status: Status::Failed, error, reason }
    }

    fn of(status: Status, error: String, reason: FailReason) -> Self {
        Self { status, error, reason: Some(reason) }
    }
}

/// The outcome of `run`, whose stderr ended with `stderr`.
pub(super) fn of(mut run: Run, stderr: &str, wrote_nothing: bool, exit: Exit, ended_by: EndedBy) -> Outcome {
    let mut outcome = match judge(&mut run, wrote_nothing, exit, ended_by) {
        Ok(said) => {
            let mut outcome = Outcome::completed(said.text);
            outcome.session_id = run.session.of_success();
            if said.is_cut {
                outcome.warn(format!(
                    "{LABEL}'s result had no text, and its last message was cut to stand in for it"
                ));
            }
            warn_of_success(&mut outcome, &run, exit, ended_by);
            outcome
        }
        Err(failure) => {
            let mut outcome = failed(failure, stderr);
            // Where the agent was not let go on, another session proves nothing.
            let another = run.session.is_another() && !ended_by.is_us() && ended_by != EndedBy::Lost;
            let said = says_rejected(&outcome.error) && !ended_by.is_us();
            outcome.resume_rejected = run.session.was_resume() && (another || said);
            outcome.session_id = if outcome.resume_rejected { None } else { run.session.proven() };
            outcome
        }
    };
    if run.oversized > 0 {
        outcome.warn(format!("{} lines of {LABEL}'s output were too long and were skipped", run.oversized));
    }
    if run.noise > 0 {
        outcome.warn(format!("{} lines of {LABEL}'s output were no events", run.noise));
    }
    if run.usage.overflowed {
        outcome.warn(format!("{LABEL} named too many models; the usage of some is missing"));
    }
    outcome.tools_started = run.tools_started;
    outcome.usage = run.usage.into_counts();
    outcome
}

/// The output of a run that completed, or why it did not.
fn judge(run: &mut Run, wrote_nothing: bool, exit: Exit, ended_by: EndedBy) -> Result<Said, Failure> {
    let verdict = match run.verdict.take() {
        // An agent that is told to end says that it was interrupted: why we ended it says more.
        Some(Verdict::Failure { interrupted: true, .. }) if ended_by.is_us() => None,
        verdict => verdict,
    };
    if let Some(Verdict::Failure { error, reason, .. }) = verdict {
        return Err(Failure::new(error, reason));
    }
    if ended_by == EndedBy::Cancel {
        return Err(Failure::of(Status::Cancelled, "execution cancelled".to_owned(), FailReason::Cancelled));
    }
    if let Some(Verdict::Success { text }) = verdict {
        if run.in_background {
            let error = format!(
                "{LABEL} left a task running in the background; it ends with the turn, so it has to run in the foreground"
            );
            return Err(Failure::new(error, None));
        }
        // A run that says nothing at all is legal.
        return Ok(if text.is_empty() {
            std::mem::take(&mut run.fallback)
        } else {
            Said { text, is_cut: false }
        });
    }
    Err(without_result(run, wrote_nothing, exit, ended_by))
}

/// Why a run ended without the agent's word on it.
fn without_result(run: &Run, wrote_nothing: bool, exit: Exit, ended_by: EndedBy) -> Failure {
    match ended_by {
        EndedBy::Timeout { after } => {
            let error = format!("{LABEL} timed out after {}", Spelled(after));
            return Failure::of(Status::Timeout, error, FailReason::Timeout);
        }
        EndedBy::IdleWatchdog { silent, in_tool } => {
            let tool = if in_tool { " while a tool was running" } else { "" };
            let error = format!("{LABEL} was ended as nothing came from it for {}{tool}", Spelled(silent));
            return Failure::of(Status::IdleWatchdog, error, FailReason::IdleWatchdog);
        }
        EndedBy::Shutdown => {
            let error = format!("{LABEL} was ended as the daemon stops");
            return Failure::of(Status::Failed, error, FailReason::RuntimeOffline);
        }
        EndedBy::Lost => {
            let error = format!("{LABEL} is gone, with the process that kept it, and left no result");
            return Failure::of(Status::Failed, error, FailReason::RuntimeRecovery);
        }
        EndedBy::Itself | EndedBy::AfterResult | EndedBy::Cancel => {}
    }
    if let Some(error) = &run.stdout_error {
        return Failure::new(format!("{LABEL} stdout read error: {error}"), None);
    }
    if let Some(error) = &run.stdin_error
        && !run.session.is_named()
    {
        let exited =
            if exit.is_success() { String::new() } else { format!("; it exited with error: {exit}") };
        return Failure::new(format!("{LABEL} could not be given its prompt: {error}{exited}"), None);
    }
    if !exit.is_success() {
        return Failure::new(format!("{LABEL} exited with error: {exit}"), None);
    }
    let error = format!("{LABEL} stream ended without terminal result");
    if wrote_nothing {
        return Failure::new(format!("{error}: it wrote nothing"), Some(FailReason::EmptyOutput));
    }
    Failure::new(error, None)
}

fn failed(failure: Failure, stderr: &str) -> Outcome {
    let Failure { status, mut error, reason } = failure;
    if !stderr.is_empty() {
        error = format!("{error}; {LABEL} stderr: {stderr}");
    }
    let reason = reason.unwrap_or_else(|| classify::of_failed_run(&error));
    Outcome::failed(status, reason, error)
}

fn says_rejected(error: &str) -> bool {
    let error = error.to_lowercase();
    RESUME_REJECTED.iter().any(|phrase| error.contains(phrase))
}

/// What went wrong around a success.
fn warn_of_success(outcome: &mut Outcome, run: &Run, exit: Exit, ended_by: EndedBy) {
    match ended_by {
        EndedBy::AfterResult | EndedBy::Cancel => {}
        EndedBy::Itself if exit.is_success() => {}
        EndedBy::Itself => outcome.warn(format!("{LABEL} succeeded, but exited with error: {exit}")),
        EndedBy::Timeout { .. } | EndedBy::IdleWatchdog { .. } | EndedBy::Shutdown => {
            outcome.warn(format!("{LABEL} succeeded, but had to be ended as it stayed"));
        }
        EndedBy::Lost => outcome.warn(format!("{LABEL} succeeded, but nobody saw how it exited")),
    }
    if let Some(error) = &run.stdin_error {
        outcome.warn(format!("{LABEL} succeeded, but its stdin could not be written: {error}"));
    }
    if let Some(error) = &run.stdout_error {
        outcome.warn(format!("{LABEL} succeeded, but its stdout could not be read to the end: {error}"));
    }
}
