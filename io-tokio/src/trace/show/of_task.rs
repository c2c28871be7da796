//! The lines of one task, and those of a request.

use super::lines::Lines;
use crate::trace::{parts, words};
use longshore_core::effect::PhaseName;
use longshore_core::story::{Begin, Fate, Hint, Origin, Request, Span, Task};
use std::time::Duration;

impl Lines<'_> {
    pub(super) fn task_told(&mut self, nth: usize, task: &Task) {
        let (name, life) = (words::task(task), task.life);
        self.came(nth, task, &name);
        for (phase, span) in task.phases.iter().zip(parts::phases(task)) {
            // What is over within its step is no news.
            let (from, to) = phase.span.known(self.story[life].until());
            if phase.name == PhaseName::AwaitingRoot && from == to && phase.span.duration().is_some() {
                continue;
            }
            let since = words::since(phase.span.begin, &self.story[life]);
            let lasted = words::lasted(span, &self.story[life]);
            self.say(
                life,
                phase.span.begin.first(),
                format!("task {name}: {} ({lasted}){since}", words::phase(phase.name)),
            );
        }
        for wait in &task.waits {
            let reason = words::wait(wait.reason, self.story);
            let lasted = words::lasted(wait.span, &self.story[life]);
            self.say(life, wait.span.begin.first(), format!("task {name} waits {lasted} {reason}"));
        }
        self.run(task, &name);
        for (at, why) in &task.endings {
            self.say(life, *at, format!("task {name} is to end: {}", words::ending(*why)));
        }
        self.over(task, &name);
        if self.wanted.tasks.is_some() {
            for ix in task.requests.clone() {
                let request = self.story[ix].clone();
                self.request(&request, parts::request(self.story, ix, task));
            }
            self.lease(task, &name);
        }
    }

    fn came(&mut self, nth: usize, task: &Task, name: &str) {
        let story = self.story;
        let runtime = task
            .runtime
            .map_or_else(String::new, |ix| format!(" for runtime {}", words::runtime_of(story, ix)));
        let slot = self.slots.get(&nth).copied();
        let slot = slot.filter(|held| held.span.begin == task.here.begin);
        let slot = slot.map_or_else(String::new, |held| format!(" in slot {}", held.slot.0));
        let how = match task.origin {
            Origin::Admitted(_) => format!("is taken{runtime}{slot}"),
            Origin::HandedBack(_, reason) => {
                format!("is failed back without a run{runtime}: {}", reason.as_str())
            }
            Origin::Recovered(_) => format!("is taken over from an earlier process{runtime}{slot}"),
            Origin::Offered(_) if story[task.life].is_imported() => match task.runtime {
                Some(_) => format!("came{runtime}"),
                None => "came, for a runtime that the log does not name".to_owned(),
            },
            Origin::Offered(_) => {
                format!("is offered{runtime}; what the daemon did about it was not recorded")
            }
            Origin::Unknown => {
                let since = words::since(task.here.begin, &story[task.life]);
                // Of some the trace has only what is delivered after their end.
                let is = if task.here.end.seen() == Some(task.here.begin.first()) { "over" } else { "here" };
                format!("is {is}{runtime}{slot}{since}")
            }
        };
        let hint = task.origin.claim().and_then(|claim| {
            let of = |hint: &&&Hint| hint.task == task.id;
            self.hints.get(&claim)?.iter().find(of).map(|hint| task.here.begin.first().at.since(hint.at.at))
        });
        let hint = hint
            .map_or_else(String::new, |after: Duration| format!(", {} after its hint", words::length(after)));
        self.say(task.life, task.here.begin.first(), format!("task {name} {how}{hint}"));
    }

    fn run(&mut self, task: &Task, name: &str) {
        let life = task.life;
        for launch in &task.launches {
            let how = match (launch.span.begin, launch.attached, launch.fresh) {
                (Begin::Before(_), ..) => "its agent works",
                (_, true, _) => "its agent, which an earlier process launched, is followed",
                (_, _, true) => "its agent is launched again, without the session that turned out dead",
                _ => "its agent is launched",
            };
            let (begun, since) =
                (launch.span.begin.first(), words::since(launch.span.begin, &self.story[life]));
            self.say(life, begun, format!("task {name}: {how}{since}"));
            if let Some(at) = launch.spoke {
                // Of one that was launched before, this may not be the first word.
                let is_first = launch.span.begin.seen().filter(|_| !launch.attached);
                let after = is_first.map_or_else(String::new, |begun| {
                    format!(", after {}", words::length(at.at.since(begun.at)))
                });
                self.say(life, at, format!("task {name}: its agent says something{after}"));
            }
            if let Some(at) = launch.answered {
                self.say(life, at, format!("task {name}: its agent has given its result"));
            }
            let how = words::request_ending(&self.story[launch.request], self.story);
            if let (Some(at), Some(how)) = (launch.span.end.seen(), how) {
                // What was launched in an earlier process took longer than it is followed.
                let lasted = words::lasted(parts::launch(launch), &self.story[life]);
                self.say(life, at, format!("task {name}: its agent is over after {lasted}: {how}"));
            }
        }
    }

    fn over(&mut self, task: &Task, name: &str) {
        let life = task.life;
        match task.fate {
            Fate::Reported { at, report, tries } => {
                let tries = match tries {
                    // A log does not count them.
                    _ if self.story[life].is_imported() => String::new(),
                    1 => ", at the first try".to_owned(),
                    _ => format!(", at try {tries}"),
                };
                self.say(life, at, format!("task {name} is reported as {}{tries}", words::report(report)));
            }
            Fate::Superseded { at, status } => {
                self.say(
                    life,
                    at,
                    format!("task {name} is not reported: the server has it as {}", words::status(status)),
                );
            }
            Fate::Refused { at, status } => {
                self.say(life, at, format!("task {name}: the server refuses its report for good ({status})"));
            }
            Fate::Open | Fate::Silent | Fate::Abandoned | Fate::Kept | Fate::Unknown => {}
        }
        if let Some(at) = task.here.end.seen().filter(|at| *at != task.here.begin.first()) {
            let lasted = words::lasted(parts::here(task), &self.story[life]);
            self.say(life, at, format!("task {name} is over after {lasted}: {}", words::fate(task.fate)));
        }
        if let Some(Span { begin, .. }) = task.late {
            let since = words::since(begin, &self.story[life]);
            let text = format!("task {name}: what it still owes the server is sent in the background{since}");
            self.say(life, begin.first(), text);
        }
        if let Some((at, Some(late))) = task.forgotten.map(|at| (at, parts::late(task))) {
            let lasted = words::lasted(late, &self.story[life]);
            self.say(life, at, format!("task {name} owes nothing more, after {lasted}"));
        }
    }

    /// `span` is when it was under way, or what it is about.
    pub(super) fn request(&mut self, request: &Request, span: Span) {
        let about =
            request.about.as_deref().map_or_else(String::new, |about| format!(" {}", words::clean(about)));
        let end = words::request_ending(request, self.story).unwrap_or_else(|| "no end is known".to_owned());
        let cancelled = if request.cancelled.is_some() { ", cancelled" } else { "" };
        let lasted = words::lasted(span, &self.story[request.life]);
        let text = format!(
            "  request {}: {}{about} ({lasted}{cancelled}): {end}",
            request.op.0,
            request.kind.as_str()
        );
        self.say(request.life, request.span.begin.first(), text);
    }

    fn lease(&mut self, task: &Task, name: &str) {
        let margin =
            |margin: Option<i64>| margin.map_or_else(String::new, |ms| format!(", {}", words::margin(ms)));
        for grant in task.lease.grants.iter().skip(1) {
            self.say(
                task.life,
                grant.at,
                format!("task {name}: its lease is extended{}", margin(grant.margin_ms)),
            );
        }
        if let Some((at, left)) = task.lease.over {
            self.say(task.life, at, format!("task {name} needs its lease no more{}", margin(left)));
        }
    }
}
