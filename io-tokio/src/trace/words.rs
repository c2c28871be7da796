//! The words in which the commands that tell of a trace, and its pictures, speak of times, phases, waits and ends.

mod moment;

pub(super) use moment::{ending, moment, stopping};

use longshore_core::effect::{ExitCause, PhaseName, ReportKind};
use longshore_core::event::{RunEnd, RunOutcome, TaskStatus};
use longshore_core::reason::FailReason;
use longshore_core::story::{
    Begin, End, Ending, Fate, Life, LifeEnd, Origin, Request, Runtime, RuntimeIx, Span, Story, Task, TaskIx,
    WaitReason,
};
use std::fmt::{Display, Write as _};
use std::time::Duration;

/// Text of a trace for a terminal: what could steer it is escaped.
pub(super) fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        // Marks that change the direction of what follows are no control characters, and as misleading.
        let steers = c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if steers { out.extend(c.escape_unicode()) } else { out.push(c) }
    }
    out
}

/// A time on the axis of a story: hours, minutes, seconds and milliseconds.
pub(super) fn clock(at: Duration) -> String {
    let ms = at.as_millis();
    format!("{}:{:02}:{:02}.{:03}", ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60, ms % 1000)
}

/// How long something took.
pub(super) fn length(of: Duration) -> String {
    let ms = of.as_millis();
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        60_000..3_600_000 => format!("{} min {} s", ms / 60_000, ms / 1000 % 60),
        _ => format!("{} h {} min", ms / 3_600_000, ms / 60_000 % 60),
    }
}

/// So many of something, or what so many do: "1 step", "2 steps".
pub(super) fn count<N: Display + PartialEq + From<u8>>(n: N, one: &str, many: &str) -> String {
    let what = if n == N::from(1) { one } else { many };
    format!("{n} {what}")
}

/// Milliseconds, which may be negative.
pub(super) fn signed(ms: i64) -> String {
    let length = length(Duration::from_millis(ms.unsigned_abs()));
    if ms < 0 { format!("-{length}") } else { length }
}

/// How long a span was, and what of that is not known.
pub(super) fn lasted(span: Span, life: &Life) -> String {
    let (from, to) = span.known(life.until());
    let known = length(to.since(from));
    match (span.begin, span.end) {
        (Begin::Seen(_), End::Seen(_)) => known,
        (Begin::Seen(_), End::Open) => format!("{known} so far"),
        (Begin::Before(_), End::Open) => format!("at least {known} so far"),
        _ => format!("at least {known}"),
    }
}

/// Since when something is so whose beginning is not recorded; empty if that is recorded.
pub(super) fn since(begin: Begin, life: &Life) -> &'static str {
    match begin {
        Begin::Seen(_) => "",
        Begin::Before(at) if life.has_step(at.n) => ", since before this step",
        Begin::Before(at) if life.first.is_none_or(|first| at.n < first.n) => {
            ", since before the records begin"
        }
        Begin::Before(_) => ", since before the gap ended",
    }
}

/// How far from its expiry a lease was, in milliseconds: negative if it had run out.
pub(super) fn margin(ms: i64) -> String {
    let time = length(Duration::from_millis(ms.unsigned_abs()));
    if ms < 0 { format!("{time} after it had run out") } else { format!("{time} before it ran out") }
}

/// Whether the last record says only that another segment goes on. Where that one is not there, nothing says how the recording ended.
pub(super) fn goes_on(why: &str) -> bool {
    why == "rotated"
}

/// How a life ended.
pub(super) fn life_end(end: &LifeEnd) -> String {
    match end {
        LifeEnd::Exit { report, .. } => match report.cause {
            ExitCause::Stopped => "the daemon stopped, as it was asked to".to_owned(),
            ExitCause::Restarting => {
                "the daemon made room for its next process, as it was asked to".to_owned()
            }
            ExitCause::Unauthorized => "the daemon ended, as the server refused its credential".to_owned(),
            _ => "the daemon ended".to_owned(),
        },
        LifeEnd::Recording { why, .. } if !goes_on(why) => format!("the recording ended: {}", clean(why)),
        LifeEnd::Recording { .. } | LifeEnd::Unsaid => {
            "then nothing: the daemon was killed, or still records".to_owned()
        }
    }
}

pub(super) const fn phase(name: PhaseName) -> &'static str {
    match name {
        PhaseName::Resolving => "resolving",
        PhaseName::AwaitingDirectory => "awaiting directory",
        PhaseName::AwaitingSlot => "awaiting slot",
        PhaseName::AwaitingRoot => "awaiting root",
        PhaseName::Preparing => "preparing",
        PhaseName::Starting => "starting",
        PhaseName::Running => "running",
        PhaseName::Settling => "settling",
        PhaseName::Reporting => "reporting",
        PhaseName::Sealing => "sealing",
        _ => "in another phase",
    }
}

/// A phase where there is no other word beside it: those in which a task waits say for what.
pub(super) const fn phase_alone(name: PhaseName) -> &'static str {
    match name {
        PhaseName::Resolving => "looking at the user's directory",
        PhaseName::AwaitingDirectory => "waiting for the user's directory",
        PhaseName::AwaitingSlot => "waiting for a slot",
        PhaseName::AwaitingRoot => "waiting for its env root",
        other => phase(other),
    }
}

/// The name of a task: its id, or the number of its claim if only that is known.
pub(super) fn task(task: &Task) -> String {
    task.id.as_ref().map_or_else(|| format!("#{}", task.claim.0), |id| clean(id.as_str()))
}

fn task_of(story: &Story, ix: TaskIx) -> String {
    task(&story[ix])
}

/// A runtime with what is known of it.
pub(super) fn runtime(of: &Runtime) -> String {
    let mut text = clean(of.id.as_str());
    let about = [of.provider.as_ref().map(|provider| clean(provider.as_str()))];
    let about = about.into_iter().chain([of.workspace.as_ref().map(|workspace| clean(workspace.as_str()))]);
    let about: Vec<String> = about.flatten().collect();
    if !about.is_empty() {
        let _ = write!(text, " ({})", about.join(", "));
    }
    text
}

pub(super) fn runtime_of(story: &Story, ix: RuntimeIx) -> String {
    runtime(&story[ix])
}

/// Why something waits, after "waits".
pub(super) fn wait(reason: WaitReason, story: &Story) -> String {
    match reason {
        WaitReason::Slot => "for a slot: all are taken".to_owned(),
        WaitReason::Directory { holder, parked } => {
            let holder =
                holder.map_or_else(|| "another task".to_owned(), |ix| format!("task {}", task_of(story, ix)));
            let slot = if parked { "without a slot" } else { "with its slot" };
            format!("for its directory, {slot}: {holder} works there")
        }
        WaitReason::Collector => "for the collector, which frees its directory".to_owned(),
        WaitReason::LeaseEnd => "for the last refresh of its lease to end".to_owned(),
        WaitReason::Retry { request, after } => {
            format!("to send {} again: {after}", story[request].kind.as_str())
        }
        WaitReason::ClaimOnItsWay => "for a claim that is on its way".to_owned(),
        WaitReason::HeldOff => "as a claim of unknown fate may have brought tasks".to_owned(),
        WaitReason::Credential => "for a credential that the server takes".to_owned(),
        WaitReason::Closed => "as nothing is claimed: the daemon stops or is to be idle".to_owned(),
        _ => "for a reason that the trace does not tell".to_owned(),
    }
}

/// Why no claim follows a hint.
pub(super) fn no_claim(reason: WaitReason, story: &Story) -> String {
    match reason {
        WaitReason::Closed => "the daemon stops, or is to be idle".to_owned(),
        WaitReason::HeldOff => "a claim of unknown fate may have brought tasks".to_owned(),
        WaitReason::Unknown => "the trace does not tell why".to_owned(),
        _ => format!("it waits {}", wait(reason, story)),
    }
}

/// The kind of a wait, the same for the same kind.
pub(super) const fn wait_kind(reason: WaitReason) -> &'static str {
    match reason {
        WaitReason::Slot => "slot",
        WaitReason::Directory { .. } => "directory",
        WaitReason::Collector => "collector",
        WaitReason::LeaseEnd => "end of the lease",
        WaitReason::Retry { .. } => "retry",
        WaitReason::ClaimOnItsWay => "claim on its way",
        WaitReason::HeldOff => "claim of unknown fate",
        WaitReason::Credential => "credential",
        WaitReason::Closed => "no claims",
        _ => "unknown",
    }
}

pub(super) const fn status(of: TaskStatus) -> &'static str {
    match of {
        TaskStatus::Queued => "queued",
        TaskStatus::Dispatched => "dispatched",
        TaskStatus::WaitingLocalDirectory => "waiting for a local directory",
        TaskStatus::Running => "running",
        TaskStatus::Completed => "completed",
        TaskStatus::Failed => "failed",
        TaskStatus::Cancelled => "cancelled",
        TaskStatus::Deferred => "deferred",
        _ => "in a state that this version does not know",
    }
}

pub(super) fn report(kind: ReportKind) -> String {
    match kind {
        ReportKind::Complete => "completed".to_owned(),
        ReportKind::Fail { reason } => format!("failed ({})", reason.as_str()),
        ReportKind::CancelAck => "cancelled".to_owned(),
    }
}

/// What became of a task, in few words and always the same for the same.
pub(super) fn fate(of: Fate) -> String {
    match of {
        Fate::Open => "not over".to_owned(),
        Fate::Reported { report: kind, .. } => report(kind),
        Fate::Superseded { .. } => "given to somebody else".to_owned(),
        Fate::Refused { status, .. } => format!("report refused with {status}"),
        Fate::Silent => "not reported: the server ended it".to_owned(),
        Fate::Abandoned => "not reported when the daemon ended".to_owned(),
        Fate::Kept => "left to the next daemon".to_owned(),
        Fate::Unknown => "unknown".to_owned(),
    }
}

/// What became of a task, with how often that was tried and what the server has instead.
pub(super) fn fate_at_length(of: Fate) -> String {
    match of {
        Fate::Reported { report: kind, tries, .. } if tries > 1 => {
            format!("{}, taken at try {tries}", report(kind))
        }
        Fate::Superseded { status: had, .. } => format!("{}: the server has it as {}", fate(of), status(had)),
        _ => fate(of),
    }
}

/// How a task came here.
pub(super) fn origin(of: Origin) -> String {
    match of {
        Origin::Admitted(_) => "claimed".to_owned(),
        Origin::HandedBack(_, reason) => format!("claimed and handed back: {}", reason.as_str()),
        Origin::Recovered(_) => "taken over from an earlier process".to_owned(),
        Origin::Offered(_) => "offered; what was done about it is not recorded".to_owned(),
        Origin::Unknown => "not recorded".to_owned(),
    }
}

/// How a request ended. The end of an agent that was told to end is what was asked for, and no failure of its own.
pub(super) fn request_ending(request: &Request, story: &Story) -> Option<String> {
    let ending = request.ending?;
    Some(if ended_as_told(request, story) {
        "ended as it was told to".to_owned()
    } else {
        ending.to_string()
    })
}

/// Whether a run is over as its task was to end, without anything that the agent made of it itself.
pub(super) fn ended_as_told(request: &Request, story: &Story) -> bool {
    let reason = FailReason::RuntimeOffline;
    let told = RunEnd::Failed { reason };
    let Some(Ending::Run(RunOutcome { end, resume_rejected: false, .. })) = request.ending else {
        return false;
    };
    let (Some(task), Some(over), true) = (request.task, request.span.end.seen(), end == told) else {
        return false;
    };
    let run = request.span.begin.first().n..=over.n;
    story[task].endings.iter().any(|(at, _)| run.contains(&at.n))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_said_otherwise_than_none_or_many() {
        let all = [0_usize, 1, 2, 11].map(|n| count(n, "life", "lives"));
        assert_eq!(all, ["0 lives", "1 life", "2 lives", "11 lives"]);
        assert_eq!(count(1_u64, "step is", "steps are"), "1 step is");
    }
}
