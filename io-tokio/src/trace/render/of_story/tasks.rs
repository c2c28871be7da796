//! Lanes of tasks: their phases, and below them what they wait for, hold and ask for.

use super::Scene;
use crate::trace::render::drawing::{Lane, Mark};
use crate::trace::render::look::{Kind, MarkKind};
use crate::trace::render::text::Text;
use crate::trace::{parts, words};
use longshore_core::effect::{PhaseName, ReportKind};
use longshore_core::story::{At, Begin, Domain, End, Fate, Span, Story, Task};

/// The lane of each task among those of tasks. A claim that went through several lives has one.
pub(super) fn lanes(story: &Story) -> Vec<u32> {
    let (mut lanes, mut next) = (Vec::with_capacity(story.tasks.len()), 0);
    for task in &story.tasks {
        let lane = task.before.and_then(|before| lanes.get(before.get()).copied()).unwrap_or_else(|| {
            next += 1;
            next - 1
        });
        lanes.push(lane);
    }
    lanes
}

/// How a task ended, and when that was known.
pub(super) fn outcome(task: &Task) -> Option<(MarkKind, Option<At>)> {
    let over = task.here.end.seen();
    match task.fate {
        Fate::Reported { at, report, .. } => Some((of_report(report), Some(at))),
        Fate::Superseded { at, .. } => Some((MarkKind::Cancelled, Some(at))),
        Fate::Refused { at, .. } => Some((MarkKind::Failed, Some(at))),
        Fate::Silent => Some((MarkKind::Cancelled, over)),
        Fate::Abandoned => Some((MarkKind::Failed, over)),
        Fate::Open | Fate::Kept | Fate::Unknown => None,
    }
}

const fn of_report(report: ReportKind) -> MarkKind {
    match report {
        ReportKind::Complete => MarkKind::Completed,
        ReportKind::Fail { .. } => MarkKind::Failed,
        ReportKind::CancelAck => MarkKind::Cancelled,
    }
}

const fn kind_of(phase: PhaseName) -> Kind {
    match phase {
        PhaseName::Resolving
        | PhaseName::AwaitingDirectory
        | PhaseName::AwaitingSlot
        | PhaseName::AwaitingRoot => Kind::Waiting,
        PhaseName::Preparing => Kind::Preparing,
        PhaseName::Starting => Kind::Starting,
        PhaseName::Running => Kind::Running,
        PhaseName::Settling => Kind::Settling,
        PhaseName::Reporting => Kind::Reporting,
        PhaseName::Sealing => Kind::Sealing,
        _ => Kind::Held,
    }
}

impl Scene<'_> {
    pub(super) fn tasks(&self) -> Vec<Lane> {
        let count = self.task_lanes.iter().max().map_or(0, |last| *last as usize + 1);
        let mut lanes = vec![Lane::default(); count];
        for (task, lane) in self.story.tasks.iter().zip(&self.task_lanes) {
            let lane = &mut lanes[*lane as usize];
            lane.label = words::task(task).into();
            lane.note = note(task).into();
            self.task(task, lane);
        }
        let task_moments = self.story.moments.iter().filter_map(|it| Some((it.task?, it)));
        for (task, moment) in task_moments {
            lanes[self.task_lanes[task.get()] as usize].marks.extend(self.moment(moment));
        }
        for mark in &self.story.marks {
            let lane = &mut lanes[self.task_lanes[mark.task.get()] as usize];
            lane.bars.push(self.bar(Kind::RootMark, mark.root.as_str(), mark.life.get(), &mark.span));
        }
        for path in &self.story.paths {
            let lane = &mut lanes[self.task_lanes[path.task.get()] as usize];
            lane.bars.push(self.bar(Kind::PathLock, path.path.as_str(), path.life.get(), &path.span));
        }
        lanes
    }

    fn task(&self, task: &Task, lane: &mut Lane) {
        let life = task.life.get();
        let detail = self.task_detail(task);
        let outcome = outcome(task);
        let failed = outcome.is_some_and(|(kind, _)| kind == MarkKind::Failed);
        for (phase, span) in task.phases.iter().zip(parts::phases(task)) {
            let mut bar = self.bar(kind_of(phase.name), words::phase_alone(phase.name), life, &span);
            bar.failed = failed && phase.name == PhaseName::Running && badly(task);
            bar.detail.clone_from(&detail);
            lane.bars.push(bar);
        }
        if task.phases.is_empty() {
            // Nothing is known but that it was here.
            let mut bar = self.bar(Kind::Waiting, "phases are not recorded", life, &parts::here(task));
            bar.detail.clone_from(&detail);
            lane.bars.push(bar);
        }
        let waits = task.waits.iter();
        lane.bars.extend(
            waits.map(|wait| self.bar(Kind::Wait, words::wait(wait.reason, self.story), life, &wait.span)),
        );
        self.lease(task, lane);
        // A run is what the phase shows already.
        let calls = task.requests.iter().map(|request| &self.story[*request]);
        lane.bars.extend(calls.filter(|it| it.kind.domain() != Domain::Agent).map(|it| self.request(it)));
        if let Some(late) = parts::late(task) {
            lane.bars.push(self.bar(Kind::Call, "reported in the background", life, &late));
        }
        let mut mark = |kind, label: String, at: At| {
            lane.marks.push(Mark {
                kind,
                label: label.into(),
                at: self.at(life, at.at),
                step: self.step(life, at),
            });
        };
        for (at, why) in &task.endings {
            mark(MarkKind::Stop, format!("is to end: {}", words::ending(*why)), *at);
        }
        if let Some((kind, Some(at))) = outcome {
            mark(kind, words::fate_at_length(task.fate), at);
        }
    }

    /// The lease from its first grant until it was not needed any more.
    fn lease(&self, task: &Task, lane: &mut Lane) {
        let Some(first) = task.lease.grants.first() else { return };
        let end = match task.lease.over {
            Some((at, _)) => End::Seen(at),
            None => task.lease.grants.last().map_or(End::Open, |last| End::After(last.at)),
        };
        let span = Span { begin: Begin::Seen(first.at), end };
        let mut bar = self.bar(Kind::Lease, "lease", task.life.get(), &span);
        let least = task.lease.margins().min();
        bar.failed = least.is_some_and(|ms| ms < 0);
        bar.detail.push(("granted".into(), task.lease.grants.len().to_string().into()));
        if let Some(ms) = least {
            bar.detail.push(("nearest to its end".into(), words::margin(ms).into()));
        }
        lane.bars.push(bar);
        for grant in task.lease.grants.iter().skip(1) {
            let left = grant.margin_ms.map_or(String::new(), |ms| format!(", {}", words::margin(ms)));
            lane.marks.push(Mark {
                kind: MarkKind::Extended,
                label: format!("lease extended{left}").into(),
                at: self.at(task.life.get(), grant.at.at),
                step: self.step(task.life.get(), grant.at),
            });
        }
    }

    /// What there is to say about a task, for each of its bars.
    pub(super) fn task_detail(&self, task: &Task) -> Vec<(Text, Text)> {
        let mut all: Vec<(Text, Text)> = vec![("task".into(), words::task(task).into())];
        let mut add =
            |name: &str, value: Option<String>| all.extend(value.map(|it| (name.into(), it.into())));
        add("claim", Some(task.claim.0.to_string()));
        add("runtime", task.runtime.map(|runtime| self.story[runtime].id.as_str().to_owned()));
        add("env root", task.root.as_ref().map(|root| root.as_str().to_owned()));
        add("came", Some(words::origin(task.origin)));
        add("in the user's directory", task.in_place.filter(|it| *it).map(|_| "yes".to_owned()));
        add("launches", (task.launches.len() > 1).then(|| task.launches.len().to_string()));
        add("messages", (task.messages > 0).then(|| task.messages.to_string()));
        add("outcome", Some(words::fate_at_length(task.fate)));
        all
    }
}

/// Whether it was the run that went wrong.
fn badly(task: &Task) -> bool {
    task.launches
        .iter()
        .filter_map(|launch| launch.outcome)
        .any(|outcome| !matches!(outcome.end, longshore_core::event::RunEnd::Completed))
}

/// Provider and outcome.
fn note(task: &Task) -> String {
    let provider = task.provider.as_ref().map(|it| it.as_str().to_owned());
    let outcome = match task.fate {
        Fate::Open | Fate::Unknown => None,
        fate => Some(words::fate_at_length(fate)),
    };
    [provider, outcome].into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::records::story;
    use crate::trace::render::of_story::{Steps, of_story};
    use crate::trace::render::svg;
    use crate::trace::test_traces::over_lives;

    /// `trace show` and `trace stats` say of the same that it lasted so long at least.
    #[test]
    fn a_phase_of_two_lives_is_drawn_with_one_end_in_each() {
        let (mut rests, mut left) = (0, 0);
        for seed in 0..24 {
            let records = over_lives(seed);
            let mut steps = Steps::default();
            for record in &records {
                steps.record(record);
            }
            let story = story(records);
            let drawing = of_story("", &story, steps, &[], Vec::new());
            let group = drawing.groups.last().expect("tasks are the last group");
            let thick = |lane: &Lane| {
                let bars = lane.bars.iter().filter(|bar| !bar.kind.look().thin).cloned();
                bars.collect::<Vec<_>>().into_iter()
            };
            let mut bars: Vec<_> = group.lanes.iter().map(thick).collect();
            let of_tasks: Vec<Vec<_>> = (story.tasks.iter().zip(lanes(&story)))
                .map(|(task, lane)| bars[lane as usize].by_ref().take(task.phases.len().max(1)).collect())
                .collect();
            for (task, bars) in story.tasks.iter().zip(&of_tasks) {
                for (nth, (phase, bar)) in task.phases.iter().zip(bars).enumerate() {
                    assert_eq!(bar.label.as_str(), words::phase_alone(phase.name));
                    let is_part = task.goes_on_in(nth) || phase.span.begin.seen().is_none();
                    assert_eq!(bar.open.begin, is_part, "seed {seed}: {bar:?}");
                    rests += usize::from(task.goes_on_in(nth));
                }
                if let Some(before) = task.before.filter(|_| task.goes_on_in(0)) {
                    let bar = of_tasks[before.get()].last().expect("a bar for each task");
                    assert!(bar.open.end, "seed {seed}: it goes on: {bar:?}");
                    left += 1;
                }
            }
            let is_followed = |task: &Task| {
                let phases = task.phases.iter().enumerate();
                phases.filter(|(nth, it)| it.name == PhaseName::Running && task.goes_on_in(*nth)).count()
            };
            if story.tasks.iter().any(|task| is_followed(task) > 0) {
                assert!(svg(&drawing, usize::MAX).contains("<title>running, at least "), "seed {seed}");
            }
        }
        assert!(rests > 5 && left > 5, "{rests}, {left}");
    }
}
