//! The lines of a story, in the order in which things happened.

use crate::trace::words;
use longshore_core::effect::PhaseName;
use longshore_core::story::{
    At, Begin, Claim, ClaimIx, Ending, Fate, Hint, LifeIx, Online, Origin, SlotUse, Span, Story, Task,
    TaskIx, What,
};
use std::collections::BTreeMap;
use std::time::Duration;

/// Tasks that a line names at most.
const NAMED: usize = 2;

/// What is to be told; everything if nothing is named.
#[derive(Clone, Debug, Default)]
pub(super) struct Wanted {
    /// Only these tasks, by their place in the story, and their requests.
    pub(super) tasks: Option<Vec<usize>>,
    /// Only this runtime, by its place, and its tasks.
    pub(super) runtime: Option<usize>,
}

impl Wanted {
    fn everything(&self) -> bool {
        self.tasks.is_none() && self.runtime.is_none()
    }

    fn task(&self, nth: usize, task: &Task) -> bool {
        let runtime = self.runtime.is_none_or(|wanted| task.runtime.is_some_and(|of| of.get() == wanted));
        runtime && self.tasks.as_ref().is_none_or(|wanted| wanted.binary_search(&nth).is_ok())
    }

    fn task_of(&self, ix: TaskIx, story: &Story) -> bool {
        self.task(ix.get(), &story[ix])
    }

    fn runtime(&self, nth: usize) -> bool {
        self.tasks.is_none() && self.runtime.is_none_or(|wanted| wanted == nth)
    }
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) life: usize,
    pub(super) at: At,
    pub(super) text: String,
}

/// Collects the lines of a story.
struct Lines<'a> {
    story: &'a Story,
    wanted: &'a Wanted,
    /// The slot that a task got first.
    slots: BTreeMap<usize, &'a SlotUse>,
    /// Hints that named a task, by the claim that followed.
    hints: BTreeMap<ClaimIx, Vec<&'a Hint>>,
    list: Vec<Line>,
}

/// Every line that is wanted, by life and step.
pub(super) fn lines(story: &Story, wanted: &Wanted) -> Vec<Line> {
    let mut lines = Lines {
        story,
        wanted,
        slots: story.slots.iter().rev().map(|held| (held.task.get(), held)).collect(),
        hints: BTreeMap::new(),
        list: Vec::new(),
    };
    for hint in story.hints.iter().filter(|hint| hint.task.is_some()) {
        if let Some(claim) = hint.claim {
            lines.hints.entry(claim).or_default().push(hint);
        }
    }
    lines.moments(true);
    lines.lives();
    lines.runtimes();
    for hint in &story.hints {
        lines.hint(hint);
    }
    for claim in &story.claims {
        lines.claim(claim);
    }
    for (nth, task) in story.tasks.iter().enumerate() {
        if wanted.task(nth, task) {
            lines.task_told(nth, task);
        }
    }
    lines.moments(false);
    let mut list = lines.list;
    // Within a step the order in which they were found is that of cause and effect.
    list.sort_by_key(|line| (line.life, line.at.n));
    list
}

/// The first tasks of a list, and how many more there are.
fn some_of(tasks: &[String]) -> String {
    match tasks.len() {
        0 => "nothing new".to_owned(),
        1..=NAMED => format!("task {}", tasks.join(", ")),
        all => format!("{all} tasks: {}, …", tasks[..NAMED].join(", ")),
    }
}

impl Lines<'_> {
    fn say(&mut self, life: LifeIx, at: At, text: String) {
        self.list.push(Line { life: life.get(), at, text });
    }

    fn lives(&mut self) {
        let story = self.story;
        for (nth, life) in story.lives.iter().enumerate() {
            let mut say = |at: At, text: String| self.list.push(Line { life: nth, at, text });
            for gap in &life.gaps {
                let at = gap.until.or(gap.after).unwrap_or_default();
                let then = if gap.restored {
                    "a checkpoint says what was there after them"
                } else {
                    "what was there after them is not known"
                };
                say(at, format!("— {} steps are missing from step {} on; {then} —", gap.lost, gap.n));
            }
            if !self.wanted.everything() {
                continue;
            }
            if let Some(at) = life.ready {
                say(at, "every workspace was tried: the daemon is ready".to_owned());
            }
            for (spans, begins, ends) in [
                (&life.linked, "the control connection is up", "the control connection is gone"),
                (
                    &life.barred,
                    "the server refuses the credential: nothing is asked of it",
                    "the server takes the credential again",
                ),
            ] {
                for span in spans {
                    match span.begin {
                        Begin::Seen(at) => say(at, begins.to_owned()),
                        Begin::Before(at) => say(at, format!("{begins}, since before this step")),
                    }
                    if let Some(at) = span.end.seen() {
                        say(at, format!("{ends}, after {}", words::lasted(*span, life)));
                    }
                }
            }
            for (at, phase) in &life.stopping {
                say(*at, words::stopping(*phase).to_owned());
            }
        }
    }

    fn runtimes(&mut self) {
        let story = self.story;
        for (nth, runtime) in story.runtimes.iter().enumerate().filter(|(nth, _)| self.wanted.runtime(*nth)) {
            let name = words::runtime(runtime);
            for Online { life, span, claimable, gone } in &runtime.online {
                match span.begin {
                    Begin::Seen(at) => self.say(*life, at, format!("runtime {name} is registered")),
                    Begin::Before(at) => {
                        self.say(*life, at, format!("runtime {name} is registered, since before this step"));
                    }
                }
                if let Some(at) = claimable {
                    self.say(*life, *at, format!("runtime {name}: its tasks may be asked for"));
                }
                if let Some(at) = span.end.seen() {
                    let lasted = words::lasted(*span, &story[*life]);
                    let why = if gone.is_some() { ": the server has forgotten it" } else { "" };
                    self.say(*life, at, format!("runtime {name} leaves the set after {lasted}{why}"));
                }
            }
            if self.wanted.runtime == Some(nth) {
                for request in
                    story.requests.iter().filter(|request| request.runtime.is_some_and(|of| of.get() == nth))
                {
                    self.request(request);
                }
            }
        }
    }

    fn hint(&mut self, hint: &Hint) {
        let story = self.story;
        let named = hint
            .claim
            .is_some_and(|claim| story[claim].tasks.iter().any(|ix| self.wanted.task_of(*ix, story)));
        let runtime =
            self.wanted.tasks.is_none() && hint.runtime.is_none_or(|of| self.wanted.runtime(of.get()));
        if !named && !runtime {
            return;
        }
        let about = match (&hint.task, hint.runtime) {
            (Some(task), Some(runtime)) => format!(
                "task {} may be there for runtime {}",
                words::clean(task.as_str()),
                words::runtime_of(story, runtime)
            ),
            (Some(task), None) => format!("task {} may be there", words::clean(task.as_str())),
            (None, Some(runtime)) => format!("a task of runtime {} ended", words::runtime_of(story, runtime)),
            (None, None) => "a task ended".to_owned(),
        };
        let then = match (hint.claim, hint.waited) {
            (Some(_), None) => "; a claim is sent at once".to_owned(),
            (Some(claim), Some(reason)) => {
                let sent = story[story[claim].request].span.begin.first();
                format!(
                    "; the claim waits {} {}",
                    words::length(sent.at.since(hint.at.at)),
                    words::wait(reason, story)
                )
            }
            (None, Some(reason)) => format!("; no claim follows: it waits {}", words::wait(reason, story)),
            (None, None) => String::new(),
        };
        self.say(hint.life, hint.at, format!("hint: {about}{then}"));
    }

    fn claim(&mut self, claim: &Claim) {
        let story = self.story;
        let request = &story[claim.request];
        let Some(at) = request.span.end.seen() else { return };
        let wanted: Vec<String> = claim
            .tasks
            .iter()
            .filter(|ix| self.wanted.task_of(**ix, story))
            .map(|ix| words::task(&story[*ix]))
            .collect();
        let failed = request.ending.is_some_and(|ending| !ending.is_done()) && self.wanted.everything();
        let duplicates = if self.wanted.everything() { claim.duplicates.len() } else { 0 };
        if wanted.is_empty() && !failed && duplicates == 0 {
            return;
        }
        let took = words::lasted(request.span, &story[claim.life]);
        let what = match request.ending {
            Some(ending) if !ending.is_done() => format!("ends: {ending}"),
            _ => format!("brings {}", some_of(&wanted)),
        };
        let twice =
            if duplicates > 0 { format!(", and {duplicates} that were here already") } else { String::new() };
        self.say(claim.life, at, format!("{} {what}{twice}, after {took}", request.kind.as_str()));
    }

    fn task_told(&mut self, nth: usize, task: &Task) {
        let (name, life) = (words::task(task), task.life);
        self.came(nth, task, &name);
        for phase in &task.phases {
            // What is over within its step is no news.
            let (from, to) = phase.span.known(self.story[life].until());
            if phase.name == PhaseName::AwaitingRoot && from == to && phase.span.duration().is_some() {
                continue;
            }
            let since =
                if matches!(phase.span.begin, Begin::Before(_)) { ", since before this step" } else { "" };
            let lasted = words::lasted(phase.span, &self.story[life]);
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
                self.request(&request);
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
            Origin::Offered(_) => {
                format!("is offered{runtime}; what the daemon did about it was not recorded")
            }
            Origin::Unknown => format!("is here{runtime}{slot}, since before this step"),
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
            let how = match (launch.attached, launch.fresh) {
                (true, _) => "its agent is followed",
                (_, true) => "its agent is launched again, without the session that turned out dead",
                _ => "its agent is launched",
            };
            let begun = launch.span.begin.first();
            self.say(life, begun, format!("task {name}: {how}"));
            if let Some(at) = launch.spoke {
                let after = words::length(at.at.since(begun.at));
                self.say(life, at, format!("task {name}: its agent says something, after {after}"));
            }
            if let Some(at) = launch.answered {
                self.say(life, at, format!("task {name}: its agent has given its result"));
            }
            if let (Some(at), Some(outcome)) = (launch.span.end.seen(), launch.outcome) {
                let lasted = words::lasted(launch.span, &self.story[life]);
                self.say(
                    life,
                    at,
                    format!("task {name}: its agent is over after {lasted}: {}", Ending::Run(outcome)),
                );
            }
        }
    }

    fn over(&mut self, task: &Task, name: &str) {
        let life = task.life;
        match task.fate {
            Fate::Reported { at, report, tries } => {
                let tries =
                    if tries == 1 { "at the first try".to_owned() } else { format!("at try {tries}") };
                self.say(life, at, format!("task {name} is reported as {}, {tries}", words::report(report)));
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
            let lasted = words::lasted(task.here, &self.story[life]);
            self.say(life, at, format!("task {name} is over after {lasted}: {}", words::fate(task.fate)));
        }
        if let Some(Span { begin, .. }) = task.late {
            let at = begin.first();
            self.say(
                life,
                at,
                format!("task {name}: what it still owes the server is sent in the background"),
            );
        }
        if let Some((at, Some(late))) = task.forgotten.map(|at| (at, task.late)) {
            let lasted = words::lasted(late, &self.story[life]);
            self.say(life, at, format!("task {name} owes nothing more, after {lasted}"));
        }
    }

    fn request(&mut self, request: &longshore_core::story::Request) {
        let about =
            request.about.as_deref().map_or_else(String::new, |about| format!(" {}", words::clean(about)));
        let end = request.ending.map_or_else(|| "no end is known".to_owned(), |ending| ending.to_string());
        let cancelled = if request.cancelled.is_some() { ", cancelled" } else { "" };
        let lasted = words::lasted(request.span, &self.story[request.life]);
        let text = format!(
            "  request {}: {}{about} ({lasted}{cancelled}): {end}",
            request.op.0,
            request.kind.as_str()
        );
        self.say(request.life, request.span.begin.first(), text);
    }

    fn lease(&mut self, task: &Task, name: &str) {
        let margin = |margin: Option<i64>| {
            margin.map_or_else(String::new, |ms| format!(", {} before it ran out", words::signed(ms)))
        };
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

    /// What somebody did comes before all that follows from it, what the daemon states comes after it.
    fn moments(&mut self, causes: bool) {
        let story = self.story;
        let is_cause = |what: &What| matches!(what, What::Stop(_) | What::Credential | What::Note(_));
        for moment in story.moments.iter().filter(|moment| is_cause(&moment.what) == causes) {
            let text = words::moment(&moment.what);
            match (moment.task, moment.runtime) {
                (Some(ix), _) if self.wanted.task_of(ix, story) => {
                    self.say(moment.life, moment.at, format!("task {}: {text}", words::task(&story[ix])));
                }
                (None, Some(ix)) if self.wanted.runtime(ix.get()) => {
                    self.say(
                        moment.life,
                        moment.at,
                        format!("runtime {}: {text}", words::runtime_of(story, ix)),
                    );
                }
                (None, None) if self.wanted.everything() => self.say(moment.life, moment.at, text),
                _ => {}
            }
        }
    }
}
