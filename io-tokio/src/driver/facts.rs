//! What the core states, as log lines for operators.

use super::absent;
use crate::book::Book;
use longshore_core::effect::{EndReason, ExitReport, Fact, ReportKind};
use longshore_core::event::ClaimKey;
use longshore_core::said::name;
use std::time::{Duration, Instant};

/// That the server takes nothing, and that it does again, is said this often at most.
const SAY: Duration = Duration::from_mins(1);

/// What was said of the server's taking the credential.
#[derive(Debug, Default)]
pub(super) struct AccessTold {
    at: Option<Instant>,
    /// It was said that it does not.
    lost: bool,
}

impl AccessTold {
    /// Says so if this fact is about it: not again and again where it changes all the time.
    pub(super) fn log(&mut self, fact: &Fact) {
        match fact {
            Fact::AccessLost if self.at.is_none_or(|at| at.elapsed() >= SAY) => {
                (self.at, self.lost) = (Some(Instant::now()), true);
                tracing::warn!(
                    "the server takes nothing from this daemon: no task is claimed until it does, and what is at work goes on; look at the account \
                     and the credential"
                );
            }
            Fact::AccessBack if std::mem::take(&mut self.lost) => {
                tracing::info!(
                    "the server takes the credential; everything that waited for that is done now"
                );
            }
            _ => {}
        }
    }
}

/// Writes one fact to the log.
pub(super) fn log(book: &Book, fact: &Fact) {
    let task =
        |claim: &ClaimKey| book.get(*claim).map(|entry| entry.id.as_str().to_owned()).unwrap_or_default();
    match fact {
        Fact::Ready => tracing::info!("ready"),
        Fact::Admitted { task, runtime, slot, .. } => {
            tracing::info!(%task, %runtime, slot = slot.0, "task claimed");
        }
        Fact::Parked { claim, holder } => {
            let holder = task(holder);
            tracing::info!(
                task = task(claim),
                holder,
                "the task waits for its directory; its slot is free meanwhile"
            );
        }
        Fact::Unparked { claim, slot } => {
            tracing::info!(task = task(claim), slot = slot.0, "the task has its directory and a slot");
        }
        Fact::ActionOver { action, taken } => {
            tracing::info!(%action, taken, "what the server asked for is over");
        }
        Fact::ActionDropped { action } => {
            tracing::warn!(%action, "what the server asked for is not done: too much is asked for, or the runtime is not here any more");
        }
        Fact::Duplicate { task } => {
            tracing::warn!(%task, "the server offered a task again that is being worked on here; ignored");
        }
        Fact::HandedBack { task, reason, .. } => {
            tracing::warn!(%task, reason = reason.as_str(), "task failed back without a run");
        }
        Fact::Unusable { count } => {
            // Said where their reasons are known.
            tracing::debug!(count, "claimed tasks cannot be named to the server; they time out there");
        }
        Fact::Phase { claim, phase } => {
            tracing::debug!(task = task(claim), phase = name(phase), "task moved on");
        }
        Fact::Ending { claim, why } => match why {
            EndReason::Server => {
                tracing::info!(task = task(claim), "the server has ended the task; its run is ended");
            }
            EndReason::Idle => {
                tracing::warn!(task = task(claim), "the agent was silent for too long; its run is ended");
            }
            EndReason::TooLong => {
                tracing::warn!(task = task(claim), "the run took longer than it may; it is ended");
            }
            EndReason::PrepareTimeout => tracing::warn!(task = task(claim), "preparation took too long"),
            _ => tracing::info!(task = task(claim), "the daemon stops; the run is ended"),
        },
        Fact::Reported { claim, report, tries } => {
            let task = task(claim);
            match report {
                ReportKind::Complete => tracing::info!(task, tries, "task completed"),
                ReportKind::Fail { reason } => {
                    tracing::warn!(task, tries, reason = reason.as_str(), "task failed");
                }
                ReportKind::CancelAck => tracing::info!(task, tries, "task cancelled"),
            }
        }
        Fact::ReportLate { claim } => tracing::warn!(
            task = task(claim),
            "the server does not take the task's report yet; it is tried in the background until it does"
        ),
        Fact::ReportSuperseded { claim, status } => tracing::error!(
            task = task(claim),
            status = name(status),
            "the server has given the task to somebody else meanwhile, and does not take this run's report: what the run did is in its directory"
        ),
        // Said once, by whoever saw the answer.
        Fact::ReportRefused { claim, .. } if absent::is_cancel_ack(book, *claim) => {
            tracing::info!(task = task(claim), "task cancelled; this server takes no word of that");
        }
        Fact::UsageLost { claim } if absent::is_usage(book, *claim) => {
            tracing::debug!(task = task(claim), "this server takes no token counts");
        }
        Fact::ReportRefused { claim, status } => {
            tracing::error!(task = task(claim), status, "the server refuses the task's report for good");
        }
        Fact::MessagesRefused { claim, upto, status } => {
            tracing::error!(
                task = task(claim),
                upto,
                status,
                "the server refuses messages of the task; they are skipped"
            );
        }
        Fact::UsageLate { claim } => {
            tracing::warn!(
                task = task(claim),
                "the server does not take the task's token counts; they are tried on and on in the background"
            );
        }
        Fact::UsageLost { claim } => {
            tracing::error!(task = task(claim), "the server refuses the task's token counts; they are lost");
        }
        Fact::Released { claim, slot } => {
            tracing::debug!(task = task(claim), slot = slot.map(|slot| slot.0), "task is over");
        }
        // The HTTP client says what to do about it, and not each time.
        Fact::Unauthorized => tracing::debug!("a request was refused because of the credential"),
        Fact::Woke { slept } => {
            tracing::info!(
                seconds = slept / 1000,
                "the machine has slept; everything that is due is done now"
            );
        }
        Fact::RuntimeGone { runtime } => {
            tracing::warn!(%runtime, "the server has deleted the runtime; its workspace is registered again");
        }
        Fact::HeldOff => {
            tracing::debug!(
                "a claim over the control connection may or may not have been taken; the next one waits"
            );
        }
        Fact::PerRuntimeClaims => {
            tracing::info!("the server has no common claim for all runtimes; each asks for itself");
        }
        Fact::Collected { root, what, ok: true } => {
            tracing::info!(%root, what = name(what), "a directory was freed");
        }
        Fact::Collected { root, what, .. } => {
            tracing::warn!(%root, what = name(what), "a directory could not be freed");
        }
        Fact::Uncollected { left } => {
            tracing::info!(left, "more directories are there to be freed than one round takes");
        }
        Fact::Stopping { phase } => tracing::info!(phase = name(phase), "stopping"),
        Fact::Stray { total } => tracing::debug!(total, "events that fitted nothing"),
        // Among them that access is lost or back, which is said elsewhere, and not each time.
        _ => {}
    }
}

/// Writes the last words to the log.
pub(super) fn log_exit(report: &ExitReport) {
    for task in &report.abandoned {
        tracing::error!(%task, "the task's end could not be reported; the next daemon reports it");
    }
    for task in &report.kept {
        tracing::info!(%task, "the task's run goes on; the next daemon takes it over");
    }
    tracing::info!(cause = name(&report.cause), "daemon ends");
}
