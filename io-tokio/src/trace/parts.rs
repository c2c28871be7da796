//! What one life has of something that an earlier process began. In the steps of that life it has a beginning, which is not its own: how long it
//! was so is told, drawn and counted as what is known at least.

use longshore_core::story::{Begin, Launch, Origin, RequestIx, Span, Story, Task};

/// The same with a beginning that is earlier.
const fn rest(span: Span) -> Span {
    Span { begin: Begin::Before(span.begin.first()), end: span.end }
}

const fn rest_if(is_rest: bool, span: Span) -> Span {
    if is_rest { rest(span) } else { span }
}

/// When a task was here.
pub(super) const fn here(task: &Task) -> Span {
    rest_if(matches!(task.origin, Origin::Recovered(_)), task.here)
}

/// When each of its phases was, in order.
pub(super) fn phases(task: &Task) -> impl Iterator<Item = Span> {
    task.phases.iter().enumerate().map(|(nth, phase)| rest_if(task.goes_on_in(nth), phase.span))
}

/// How long its end was told in the background. One that came without a phase was over before.
pub(super) fn late(task: &Task) -> Option<Span> {
    let is_rest = matches!(task.origin, Origin::Recovered(_)) && task.phases.is_empty();
    Some(rest_if(is_rest, task.late?))
}

/// When an agent was at work.
pub(super) const fn launch(launch: &Launch) -> Span {
    rest_if(launch.attached, launch.span)
}

/// When a request was under way, of which `task` says what it is about.
pub(super) fn request(story: &Story, ix: RequestIx, task: &Task) -> Span {
    let is_rest = task.launches.iter().any(|launch| launch.attached && launch.request == ix);
    rest_if(is_rest, story[ix].span)
}
