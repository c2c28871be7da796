//! Trace events as Chrome writes them and Perfetto reads them: one JSON object with a list of events. Times are microseconds from the beginning
//! of the story.
//!
//! Each life has some processes: its tasks (a thread each), its slots, its requests and what happened to the daemon. Arrows go from a hint to
//! its claim, and from a claim to the tasks that it brought.

use super::lanes::Lanes;
use crate::trace::{parts, words};
use longshore_core::story::{
    Begin, Domain, End, Hint, Life, LifeIx, RequestIx, SlotUse, Span, Story, Task, TaskIx,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

/// The processes of one life, in the order in which they are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    Daemon = 1,
    Slots,
    Tasks,
    Server,
    Disk,
    Runtimes,
}

impl Group {
    const ALL: [Self; 6] = [Self::Daemon, Self::Slots, Self::Tasks, Self::Server, Self::Disk, Self::Runtimes];

    const fn name(self) -> &'static str {
        match self {
            Self::Daemon => "daemon",
            Self::Slots => "slots",
            Self::Tasks => "tasks",
            Self::Server => "requests to the server",
            Self::Disk => "work on the disk",
            Self::Runtimes => "runtimes",
        }
    }

    /// The number of this process in a life.
    const fn pid(self, life: LifeIx) -> usize {
        life.get() * 10 + self as usize
    }
}

/// Threads of the daemon's process.
mod thread {
    pub(super) const EVENTS: usize = 1;
    pub(super) const HINTS: usize = 2;
    pub(super) const LINK: usize = 3;
    pub(super) const STOP: usize = 4;
    pub(super) const GAPS: usize = 5;
}

/// Where something is drawn.
#[derive(Clone, Copy, Debug)]
struct Place {
    pid: usize,
    tid: usize,
    ts: u64,
}

struct Writer<'a, W> {
    story: &'a Story,
    out: &'a mut W,
    first: bool,
    /// Where each request is.
    requests: BTreeMap<usize, Place>,
    /// The last number of an arrow.
    arrows: usize,
}

/// Writes a story.
///
/// # Errors
/// If `out` cannot be written to.
pub(super) fn write(story: &Story, out: &mut impl Write) -> io::Result<()> {
    out.write_all(b"{\"displayTimeUnit\":\"ms\",\"traceEvents\":[")?;
    let mut writer = Writer { story, out, first: true, requests: BTreeMap::new(), arrows: 0 };
    writer.everything()?;
    let wall = story.lives.first().map(|life| life.start.wall.0);
    writeln!(out, "\n],\"otherData\":{}}}", json!({ "begun_unix_ms": wall, "lives": story.lives.len() }))
}

impl<W: Write> Writer<'_, W> {
    fn everything(&mut self) -> io::Result<()> {
        for (nth, life) in self.story.lives.iter().enumerate() {
            self.life(nth, life)?;
        }
        self.requests()?;
        self.slots()?;
        self.runtimes()?;
        for (nth, task) in self.story.tasks.iter().enumerate() {
            self.task(nth, task)?;
        }
        self.arrows()?;
        self.moments()
    }

    fn event(&mut self, event: &Value) -> io::Result<()> {
        let comma = if std::mem::take(&mut self.first) { "\n" } else { ",\n" };
        self.out.write_all(comma.as_bytes())?;
        serde_json::to_writer(&mut *self.out, event).map_err(io::Error::from)
    }

    fn name(&mut self, what: &str, pid: usize, tid: usize, name: &str) -> io::Result<()> {
        self.event(&json!({ "ph": "M", "name": what, "pid": pid, "tid": tid, "args": { "name": name } }))
    }

    fn thread(&mut self, pid: usize, tid: usize, name: &str) -> io::Result<()> {
        self.name("thread_name", pid, tid, name)?;
        let args = json!({ "sort_index": tid });
        self.event(&json!({ "ph": "M", "name": "thread_sort_index", "pid": pid, "tid": tid, "args": args }))
    }

    /// From when to when something is drawn, in microseconds.
    fn extent(&self, life: LifeIx, span: Span) -> (u64, u64) {
        let life = &self.story[life];
        let (from, to) = span.known(life.until());
        (micros(life.since_story(from)), micros(life.since_story(to)))
    }

    fn bar(
        &mut self,
        life: LifeIx,
        span: Span,
        (pid, tid): (usize, usize),
        name: &str,
        args: Value,
    ) -> io::Result<Place> {
        let (ts, end) = self.extent(life, span);
        let mut all = Map::new();
        all.insert("step".to_owned(), json!(span.begin.first().n));
        if matches!(span.begin, Begin::Before(_)) {
            all.insert("begin".to_owned(), json!("not recorded"));
        }
        match span.end {
            End::Seen(_) => {}
            End::After(_) => drop(all.insert("end".to_owned(), json!("not recorded"))),
            End::Open => drop(all.insert("end".to_owned(), json!("still so at the end of the records"))),
        }
        if span.duration().is_none() {
            // How long the bar is says less than it seems to.
            all.insert("lasted".to_owned(), json!(words::lasted(span, &self.story[life])));
        }
        if let Value::Object(args) = args {
            all.extend(args.into_iter().filter(|(_, value)| !value.is_null()));
        }
        let event = json!({ "ph": "X", "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": end - ts, "args": all });
        self.event(&event)?;
        Ok(Place { pid, tid, ts })
    }

    fn life(&mut self, nth: usize, life: &Life) -> io::Result<()> {
        let Some(ix) = self.story.life(nth) else { return Ok(()) };
        for group in Group::ALL {
            let pid = group.pid(ix);
            self.name("process_name", pid, 0, &format!("life {}: {}", nth + 1, group.name()))?;
            let args = json!({ "sort_index": pid });
            self.event(
                &json!({ "ph": "M", "name": "process_sort_index", "pid": pid, "tid": 0, "args": args }),
            )?;
        }
        let pid = Group::Daemon.pid(ix);
        for (tid, name) in [
            (thread::EVENTS, "events"),
            (thread::HINTS, "hints"),
            (thread::LINK, "connection"),
            (thread::STOP, "stop"),
            (thread::GAPS, "gaps"),
        ] {
            self.thread(pid, tid, name)?;
        }
        for span in &life.linked {
            self.bar(ix, *span, (pid, thread::LINK), "connected", Value::Null)?;
        }
        for span in &life.barred {
            self.bar(ix, *span, (pid, thread::EVENTS), "credential refused", Value::Null)?;
        }
        for gap in &life.gaps {
            if let (Some(after), Some(until)) = (gap.after, gap.until) {
                let span = Span { begin: Begin::Seen(after), end: End::Seen(until) };
                let args = json!({ "missing steps": gap.lost });
                self.bar(ix, span, (pid, thread::GAPS), "steps are missing", args)?;
            }
        }
        let ends = life.stopping.iter().skip(1).map(|(at, _)| End::Seen(*at)).chain([End::Open]);
        for ((at, phase), end) in life.stopping.iter().zip(ends) {
            let span = Span { begin: Begin::Seen(*at), end };
            self.bar(ix, span, (pid, thread::STOP), words::stopping(*phase), Value::Null)?;
        }
        Ok(())
    }

    fn requests(&mut self) -> io::Result<()> {
        let mut lanes: BTreeMap<usize, Lanes> = BTreeMap::new();
        for (nth, request) in self.story.requests.iter().enumerate() {
            let group = match request.kind.domain() {
                Domain::Server => Group::Server,
                Domain::Disk => Group::Disk,
                // They are in their tasks.
                Domain::Agent => continue,
            };
            let (pid, (from, to)) = (group.pid(request.life), self.extent(request.life, request.span));
            let tid = lanes.entry(pid).or_default().place(from, to) + 1;
            let task = request.task.map(|ix| words::task(&self.story[ix]));
            let args = json!({
                "request": request.op.0,
                "task": task,
                "about": request.about,
                "ended": request.ending.map(|ending| ending.to_string()),
                "cancelled": request.cancelled.map(|at| at.n),
            });
            let place = self.bar(request.life, request.span, (pid, tid), request.kind.as_str(), args)?;
            self.requests.insert(nth, place);
        }
        for (pid, lanes) in lanes {
            for tid in 1..=lanes.count() {
                self.thread(pid, tid, &format!("lane {tid}"))?;
            }
        }
        Ok(())
    }

    fn slots(&mut self) -> io::Result<()> {
        let mut named = BTreeMap::new();
        for SlotUse { life, slot, task, span } in &self.story.slots {
            let at = (Group::Slots.pid(*life), usize::from(slot.0) + 1);
            named.insert(at, slot.0);
            let name = words::task(&self.story[*task]);
            self.bar(*life, *span, at, &name, Value::Null)?;
        }
        for ((pid, tid), slot) in named {
            self.thread(pid, tid, &format!("slot {slot}"))?;
        }
        Ok(())
    }

    fn runtimes(&mut self) -> io::Result<()> {
        for (nth, runtime) in self.story.runtimes.iter().enumerate() {
            let (name, mut named) = (words::runtime(runtime), None);
            for online in &runtime.online {
                let pid = Group::Runtimes.pid(online.life);
                if named.replace(pid) != Some(pid) {
                    self.thread(pid, nth + 1, &name)?;
                }
                let gone = online.gone.map(|_| "the server has forgotten it");
                self.bar(online.life, online.span, (pid, nth + 1), "registered", json!({ "gone": gone }))?;
            }
        }
        Ok(())
    }

    /// A task has three threads: itself with its phases, its waits, which may overlap, and its agent.
    fn task(&mut self, nth: usize, task: &Task) -> io::Result<()> {
        let (pid, tid) = (Group::Tasks.pid(task.life), task_thread(nth));
        let name = words::task(task);
        self.thread(pid, tid, &name)?;
        let runtime = task.runtime.map(|ix| words::runtime_of(self.story, ix));
        let here = parts::here(task);
        let args = json!({
            "claim": task.claim.0,
            "runtime": runtime,
            "outcome": words::fate(task.fate),
            "begin": earlier(here, task.here),
        });
        self.bar(task.life, here, (pid, tid), &name, args)?;
        for (phase, span) in task.phases.iter().zip(parts::phases(task)) {
            let args = json!({ "begin": earlier(span, phase.span) });
            self.bar(task.life, span, (pid, tid), words::phase(phase.name), args)?;
        }
        if !task.launches.is_empty() {
            self.thread(pid, tid + 1, &format!("{name}: agent"))?;
        }
        for launch in &task.launches {
            let span = parts::launch(launch);
            let messages = launch.outcome.map(|outcome| outcome.have);
            let args = json!({ "messages": messages, "begin": earlier(span, launch.span) });
            self.bar(task.life, span, (pid, tid + 1), "agent", args)?;
        }
        let mut lanes = Lanes::default();
        for wait in &task.waits {
            let (from, to) = self.extent(task.life, wait.span);
            let lane = tid + 2 + lanes.place(from, to).min(MOST_WAITS - 1);
            let why = words::wait(wait.reason, self.story);
            self.bar(task.life, wait.span, (pid, lane), &format!("waits {why}"), Value::Null)?;
        }
        for lane in 0..lanes.count().min(MOST_WAITS) {
            self.thread(pid, tid + 2 + lane, &format!("{name}: waits"))?;
        }
        Ok(())
    }

    fn arrows(&mut self) -> io::Result<()> {
        for hint in &self.story.hints {
            let Hint { life, at, claim, .. } = hint;
            let span = Span { begin: Begin::Seen(*at), end: End::Seen(*at) };
            let place = (Group::Daemon.pid(*life), thread::HINTS);
            let args = json!({
                "task": hint.task.as_ref().map(|id| words::clean(id.as_str())),
                "runtime": hint.runtime.map(|ix| words::runtime_of(self.story, ix)),
                "waits": hint.waited.map(|reason| words::wait(reason, self.story)),
            });
            let from = self.bar(*life, span, place, "hint", args)?;
            if let Some(to) = claim.and_then(|claim| self.place_of(self.story[claim].request)) {
                self.arrow("hint", from, to)?;
            }
        }
        for claim in &self.story.claims {
            let Some(from) = self.place_of(claim.request) else { continue };
            for ix in &claim.tasks {
                let to = self.place_of_task(*ix);
                self.arrow("claim", from, to)?;
            }
        }
        Ok(())
    }

    fn place_of(&self, request: RequestIx) -> Option<Place> {
        self.requests.get(&request.get()).copied()
    }

    fn place_of_task(&self, ix: TaskIx) -> Place {
        let task = &self.story[ix];
        let (ts, _) = self.extent(task.life, task.here);
        Place { pid: Group::Tasks.pid(task.life), tid: task_thread(ix.get()), ts }
    }

    /// An arrow between two bars, from the beginning of one to that of the other.
    fn arrow(&mut self, name: &str, from: Place, to: Place) -> io::Result<()> {
        self.arrows += 1;
        let id = self.arrows;
        for (ph, Place { pid, tid, ts }) in [("s", from), ("f", to)] {
            let mut event =
                json!({ "ph": ph, "name": name, "cat": "flow", "id": id, "pid": pid, "tid": tid, "ts": ts });
            if ph == "f" {
                event["bp"] = json!("e");
            }
            self.event(&event)?;
        }
        Ok(())
    }

    fn moments(&mut self) -> io::Result<()> {
        for moment in &self.story.moments {
            let ts = micros(self.story[moment.life].since_story(moment.at.at));
            let (pid, tid) = match moment.task {
                Some(ix) => (Group::Tasks.pid(moment.life), task_thread(ix.get())),
                None => (Group::Daemon.pid(moment.life), thread::EVENTS),
            };
            let name = words::moment(moment);
            let args = json!({ "step": moment.at.n });
            self.event(
                &json!({ "ph": "i", "s": "t", "name": name, "pid": pid, "tid": tid, "ts": ts, "args": args }),
            )?;
        }
        for (nth, task) in self.story.tasks.iter().enumerate() {
            for (at, why) in &task.endings {
                let ts = micros(self.story[task.life].since_story(at.at));
                let (pid, tid) = (Group::Tasks.pid(task.life), task_thread(nth));
                let (name, args) = (format!("is to end: {}", words::ending(*why)), json!({ "step": at.n }));
                self.event(&json!({ "ph": "i", "s": "t", "name": name, "pid": pid, "tid": tid, "ts": ts, "args": args }))?;
            }
        }
        Ok(())
    }
}

/// How something began of which the life where it is `seen` has only a part.
fn earlier(part: Span, seen: Span) -> Option<&'static str> {
    (part != seen).then_some("in an earlier process")
}

/// Lanes for the waits of one task.
const MOST_WAITS: usize = 6;

/// The thread of a task; those of its agent and its waits come after it.
const fn task_thread(nth: usize) -> usize {
    1 + nth * (2 + MOST_WAITS)
}

fn micros(of: Duration) -> u64 {
    u64::try_from(of.as_micros()).unwrap_or(u64::MAX)
}
