//! Lanes of the daemon, of requests that belong to no task, of runtimes and of slots.

use super::Scene;
use crate::trace::render::drawing::{Bar, Lane, Mark};
use crate::trace::render::look::{Kind, MarkKind};
use crate::trace::render::text::Text;
use crate::trace::words;
use longshore_core::effect::{KillStep, StopPhase};
use longshore_core::id::{ProfileId, Provider, SlotIndex, WorkspaceId};
use longshore_core::story::{
    Begin, Domain, End, Hint, Life, LifeEnd, Moment, Request, RequestKind, Span, Story, What,
};

/// Lanes of the daemon: its lives, and its control link.
pub(super) const DAEMON_LANES: u32 = 2;
/// Lanes of requests: claims, others to the server, and to the disk.
pub(super) const REQUEST_LANES: u32 = 3;

/// Numbers of all slots that a task held.
pub(super) fn slot_numbers(story: &Story) -> Vec<SlotIndex> {
    let mut all: Vec<_> = story.slots.iter().map(|held| held.slot).collect();
    all.sort_unstable();
    all.dedup();
    all
}

impl Scene<'_> {
    pub(super) fn daemon(&self) -> Vec<Lane> {
        let mut lives = Lane { label: "lives".into(), ..Lane::default() };
        let mut link = Lane { label: "control link".into(), ..Lane::default() };
        for (life, it) in self.story.lives.iter().enumerate() {
            self.life(life, it, &mut lives.bars);
            link.bars.extend(it.linked.iter().map(|span| self.bar(Kind::Serving, "connected", life, span)));
            let barred = "the server refuses the credential";
            link.bars.extend(it.barred.iter().map(|span| self.bar(Kind::Wait, barred, life, span)));
            if let Some(ready) = it.ready {
                let (label, at) = ("every workspace was tried".into(), self.at(life, ready.at));
                lives.marks.push(Mark { kind: MarkKind::Note, label, at, step: self.step(life, ready) });
            }
        }
        let whole = self.story.moments.iter().filter(|it| it.task.is_none() && it.runtime.is_none());
        lives.marks.extend(whole.filter_map(|moment| self.moment(moment)));
        vec![lives, link]
    }

    /// A life, and the parts of its stop.
    fn life(&self, life: usize, it: &Life, bars: &mut Vec<Bar>) {
        let (Some(first), Some(last)) = (it.first, it.last) else { return };
        let mut parts = vec![(first, StopPhase::Serving)];
        parts.extend(it.stopping.iter().copied());
        for (i, (from, phase)) in parts.iter().enumerate() {
            if *phase == StopPhase::Exited {
                continue;
            }
            let to = parts.get(i + 1).map_or(last, |next| next.0);
            let span = Span { begin: Begin::Seen(*from), end: End::Seen(to) };
            let serving = *phase == StopPhase::Serving;
            let kind = if serving { Kind::Serving } else { Kind::Stopping };
            let label = if serving { format!("life {}", life + 1) } else { words::stopping(*phase).into() };
            let mut bar = self.bar(kind, label, life, &span);
            bar.open.begin = i == 0 && first.n > 0;
            bar.open.end = to == last && !matches!(it.end, LifeEnd::Exit { .. });
            bar.first = bar.first.filter(|_| !bar.open.begin);
            bar.last = bar.last.filter(|_| !bar.open.end);
            bar.detail = vec![
                ("core".into(), it.core.as_str().into()),
                ("slots".into(), it.slots.map_or_else(|| "not known".to_owned(), |n| n.to_string()).into()),
                ("ended".into(), words::life_end(&it.end).into()),
            ];
            bars.push(bar);
        }
    }

    /// Something that happened, as a mark; `None` for what happens to every run.
    pub(super) fn moment(&self, moment: &Moment) -> Option<Mark> {
        let kind = match &moment.what {
            What::Kill(KillStep::CloseInput) => return None,
            What::Stop(_) | What::Kill(_) | What::Exit(_) => MarkKind::Stop,
            _ => MarkKind::Note,
        };
        let label = words::moment(moment);
        let (at, step) = (self.at(moment.life.get(), moment.at.at), self.step(moment.life.get(), moment.at));
        Some(Mark { kind, label: label.into(), at, step })
    }

    pub(super) fn requests(&self) -> Vec<Lane> {
        let lane = |label: &str| Lane { label: label.into(), ..Lane::default() };
        let mut lanes = vec![lane("claims"), lane("server"), lane("disk")];
        for request in self.story.requests.iter().filter(|it| it.task.is_none()) {
            let number = self.request_lane(request);
            if let Some(own) = number.checked_sub(self.requests)
                && own < REQUEST_LANES
            {
                lanes[own as usize].bars.push(self.request(request));
            }
        }
        let anybody = self.story.hints.iter().filter(|hint| hint.runtime.is_none());
        lanes[0].marks.extend(anybody.map(|hint| self.hint(hint)));
        lanes
    }

    /// Where a request that belongs to no task is drawn.
    pub(super) fn request_lane(&self, request: &Request) -> u32 {
        match (request.runtime, request.kind.domain()) {
            (Some(runtime), _) => self.runtimes + runtime.get() as u32,
            (None, _) if request.kind.is_claim() => self.requests,
            (None, Domain::Server) => self.requests + 1,
            (None, _) => self.requests + 2,
        }
    }

    /// A request as a bar; one about a task is thin.
    pub(super) fn request(&self, request: &Request) -> Bar {
        let kind = match request.kind {
            _ if request.task.is_some() => Kind::Call,
            kind if kind.is_claim() => Kind::Claim,
            RequestKind::Beat => Kind::Beat,
            _ => Kind::Request,
        };
        let about = match &request.about {
            // It has no lane of its own.
            None if request.task.is_none() && request.kind == RequestKind::Run => {
                " of a task that is not known".to_owned()
            }
            about => about.as_ref().map_or(String::new(), |about| format!(" {about}")),
        };
        let mut bar =
            self.bar(kind, format!("{}{about}", request.kind.as_str()), request.life.get(), &request.span);
        bar.failed = request.ending.is_some_and(|ending| !ending.is_done())
            && !words::ended_as_told(request, self.story);
        let ending = words::request_ending(request, self.story).unwrap_or_else(|| "not recorded".to_owned());
        bar.detail = vec![
            ("request".into(), format!("#{}", request.op.0).into()),
            ("ended with".into(), ending.into()),
        ];
        if request.cancelled.is_some() {
            bar.detail.push(("cancelled".into(), "yes".into()));
        }
        bar
    }

    pub(super) fn runtimes(&self) -> Vec<Lane> {
        let mut lanes: Vec<Lane> = self
            .story
            .runtimes
            .iter()
            .map(|runtime| {
                let provider = runtime.provider.as_ref().map_or("", Provider::as_str);
                let mut detail: Vec<(Text, Text)> = Vec::new();
                for (name, value) in [
                    ("workspace", runtime.workspace.as_ref().map(WorkspaceId::as_str)),
                    ("provider", runtime.provider.as_ref().map(Provider::as_str)),
                    ("profile", runtime.profile.as_ref().map(ProfileId::as_str)),
                ] {
                    detail.extend(value.map(|value| (name.into(), value.into())));
                }
                let online = runtime.online.iter().map(|online| {
                    let mut bar = self.bar(Kind::Serving, "registered", online.life.get(), &online.span);
                    bar.failed = online.gone.is_some();
                    bar.detail.clone_from(&detail);
                    if online.gone.is_some() {
                        bar.detail
                            .push(("ended because".into(), "the server has no such runtime any more".into()));
                    }
                    bar
                });
                let bars = online.collect();
                Lane { label: runtime.id.as_str().into(), note: provider.into(), bars, marks: Vec::new() }
            })
            .collect();
        for request in self.story.requests.iter().filter(|it| it.task.is_none()) {
            if let Some(runtime) = request.runtime {
                lanes[runtime.get()].bars.push(self.request(request));
            }
        }
        for hint in &self.story.hints {
            if let Some(runtime) = hint.runtime {
                lanes[runtime.get()].marks.push(self.hint(hint));
            }
        }
        for moment in &self.story.moments {
            if let (Some(runtime), None) = (moment.runtime, moment.task) {
                lanes[runtime.get()].marks.extend(self.moment(moment));
            }
        }
        lanes
    }

    fn hint(&self, hint: &Hint) -> Mark {
        let task = hint.task.as_ref().map_or(String::new(), |task| format!(" of {task}"));
        let waited =
            hint.waited.map_or(String::new(), |why| format!("; it waits {}", words::wait(why, self.story)));
        Mark {
            kind: MarkKind::Hint,
            label: format!("hint{task}{waited}").into(),
            at: self.at(hint.life.get(), hint.at.at),
            step: self.step(hint.life.get(), hint.at),
        }
    }

    pub(super) fn slots(&self, numbers: &[SlotIndex]) -> Vec<Lane> {
        let mut lanes: Vec<_> = numbers
            .iter()
            .map(|slot| Lane { label: format!("slot {}", slot.0).into(), ..Lane::default() })
            .collect();
        for held in &self.story.slots {
            let Ok(lane) = numbers.binary_search(&held.slot) else { continue };
            let task = &self.story[held.task];
            let mut bar = self.bar(Kind::Held, words::task(task), held.life.get(), &held.span);
            bar.failed = super::tasks::outcome(task).is_some_and(|(kind, _)| kind == MarkKind::Failed);
            bar.detail = self.task_detail(task);
            lanes[lane].bars.push(bar);
        }
        lanes
    }
}
