//! The lines of a story, in the order in which things happened.

use crate::trace::words;
use longshore_core::story::{At, Claim, ClaimIx, Hint, LifeIx, Online, SlotUse, Story, Task, TaskIx, What};
use std::collections::BTreeMap;

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
pub(super) struct Lines<'a> {
    pub(super) story: &'a Story,
    pub(super) wanted: &'a Wanted,
    /// The slot that a task got first.
    pub(super) slots: BTreeMap<usize, &'a SlotUse>,
    /// Hints that named a task, by the claim that followed.
    pub(super) hints: BTreeMap<ClaimIx, Vec<&'a Hint>>,
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
        1 => format!("task {}", tasks[0]),
        2..=NAMED => format!("tasks {}", tasks.join(", ")),
        all => format!("{all} tasks: {}, …", tasks[..NAMED].join(", ")),
    }
}

impl Lines<'_> {
    pub(super) fn say(&mut self, life: LifeIx, at: At, text: String) {
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
                let lost = words::count(gap.lost, "step is", "steps are");
                say(at, format!("— {lost} missing from step {} on; {then} —", gap.n));
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
                    say(span.begin.first(), format!("{begins}{}", words::since(span.begin, life)));
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
                let since = words::since(span.begin, &story[*life]);
                self.say(*life, span.begin.first(), format!("runtime {name} is registered{since}"));
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
                    self.request(request, request.span);
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
                let after = words::length(sent.at.since(hint.at.at));
                format!("; the claim waits {after} {}", words::wait(reason, story))
            }
            (None, Some(reason)) => format!("; no claim follows: {}", words::no_claim(reason, story)),
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
        let twice = if duplicates > 0 {
            format!(", and {} here already", words::count(duplicates, "that was", "that were"))
        } else {
            String::new()
        };
        // A log does not say when it was sent.
        let after = if story[claim.life].is_imported() { String::new() } else { format!(", after {took}") };
        self.say(claim.life, at, format!("{} {what}{twice}{after}", request.kind.as_str()));
    }

    /// What somebody did comes before all that follows from it, what the daemon states comes after it.
    fn moments(&mut self, causes: bool) {
        let story = self.story;
        let is_cause = |what: &What| matches!(what, What::Stop(_) | What::Credential | What::Note(_));
        for moment in story.moments.iter().filter(|moment| is_cause(&moment.what) == causes) {
            let text = words::moment(moment);
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
