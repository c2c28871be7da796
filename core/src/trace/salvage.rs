//! Reads what can be read of a damaged trace, line by line, without I/O.
//!
//! What comes out is in order: numbers of steps grow by one, and where they do not, a [`Gap`] says so. A line that cannot be read is
//! left out; if a step was lost with it, that is a gap. So whoever reads the records need not know that anything was wrong, and a replay goes on at
//! the next checkpoint. A record that does not follow the one before is held back until the next one shows which of the two is wrong.

use super::format::{FORMAT, Gap, Header, Record, Step, StepNumber};
use super::reader::{Known, TraceError, parse};
use super::trouble::{Damage, Place, Troubles};
use serde_json::{Map, Value};
use std::collections::VecDeque;

/// Reads a trace as far as it goes.
#[derive(Clone, Debug, Default)]
pub struct Salvage {
    /// The life that is being read.
    header: Option<Header>,
    /// Which one it is, from 1.
    life: u64,
    /// Whether the source has had its header.
    headed: bool,
    /// The last step that came out, or is in a gap that did.
    last: Option<StepNumber>,
    held: Option<Held>,
    out: VecDeque<(Place, Record)>,
    troubles: Troubles,
}

/// A record that leaves out numbers.
#[derive(Clone, Debug)]
struct Held {
    at: Place,
    record: Record,
    /// What is missing before it.
    gap: Option<Gap>,
    /// The last step after it.
    last: StepNumber,
}

/// How a record follows what was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fit {
    /// It does, and then this is the last step.
    Next(StepNumber),
    /// Something is missing before it.
    Ahead(Option<Gap>, StepNumber),
    /// Its number was there already.
    Behind,
}

impl Salvage {
    /// A new source begins: its first line has to be a header.
    pub fn begin(&mut self) {
        self.release();
        self.headed = false;
    }

    /// One whole line, without its end.
    pub fn line(&mut self, at: Place, text: &[u8]) {
        if text.trim_ascii().is_empty() {
            return;
        }
        match parse(text, at.line, Known::AndNewer) {
            Ok(Record::Header(header)) => self.header(at, *header),
            Ok(record) if self.headed => self.take(at, record),
            Ok(_) => self.unheaded(at, "it is another record"),
            Err(TraceError::Version { found, .. }) => {
                self.begin();
                self.headed = false;
                self.header = None;
                self.trouble(at, Damage::Major { found });
            }
            Err(error) if !self.headed => self.unheaded(at, &why(error)),
            Err(TraceError::Kind { kind, .. }) => self.trouble(at, Damage::Kind { kind }),
            Err(error) => self.unreadable(at, text, error),
        }
    }

    /// A last line without its end, which may be whole nevertheless.
    pub fn torn(&mut self, at: Place, text: &[u8]) {
        if text.trim_ascii().is_empty() {
            return;
        }
        match parse(text, at.line, Known::AndNewer) {
            Ok(_) | Err(TraceError::Version { .. } | TraceError::Kind { .. }) => self.line(at, text),
            Err(_) => self.trouble(at, Damage::Torn { bytes: text.len() }),
        }
    }

    /// Something is wrong that the caller knows better: a line that is too long, or a source that fails.
    pub fn trouble(&mut self, at: Place, what: Damage) {
        self.troubles.add(at, self.life, what);
    }

    /// Nothing comes any more.
    pub fn finish(&mut self) {
        self.release();
    }

    /// Whether a record is there to be taken.
    pub fn has_more(&self) -> bool {
        !self.out.is_empty()
    }

    /// How many lives there are so far.
    pub const fn lives(&self) -> u64 {
        self.life
    }

    /// What is wrong so far.
    pub const fn troubles(&self) -> &Troubles {
        &self.troubles
    }

    fn unheaded(&mut self, at: Place, why: &str) {
        // Once for each source: all of it up to the next header is left out.
        let said = |trouble: &super::Trouble| {
            trouble.at.source == at.source
                && matches!(trouble.what, Damage::NoHeader { .. } | Damage::Major { .. })
        };
        if !self.troubles.first().iter().any(said) {
            self.trouble(at, Damage::NoHeader { why: why.to_owned() });
        }
    }

    fn unreadable(&mut self, at: Place, text: &[u8], error: TraceError) {
        let why = why(error);
        // The event is enough to go on with.
        match step_without_effects(text) {
            Some(step) => {
                self.trouble(at, Damage::Effects { n: step.n, why });
                self.take(at, Record::Step(step));
            }
            None => self.trouble(at, Damage::Line { why }),
        }
    }

    fn header(&mut self, at: Place, header: Header) {
        self.release();
        self.headed = true;
        let same_life = self.header.as_ref().is_some_and(|old| old.same_life(&header));
        self.life += u64::from(!same_life);
        if header.format.minor > FORMAT.minor {
            self.trouble(at, Damage::Newer { found: header.format });
        }
        if let Some(last) = self.last.filter(|_| same_life) {
            match header.from {
                Some(from) if from.n >= last => {
                    // What the recorder says itself is no damage.
                    let lost = (from.n - last).saturating_sub(from.lost);
                    if lost > 0 {
                        self.trouble(at, Damage::Missing { from: last.saturating_add(1), lost });
                    }
                }
                // Its steps are, too.
                _ => return self.trouble(at, Damage::Again),
            }
        }
        self.last = header.from.map(|from| from.n);
        self.header = Some(header.clone());
        self.out.push_back((at, Record::Header(Box::new(header))));
    }

    fn take(&mut self, at: Place, record: Record) {
        match &record {
            Record::Step(step) if (step.n == 0) == step.event.is_some() => {
                return self.trouble(at, Damage::Event { n: step.n });
            }
            Record::Note(_) | Record::Header(_) => return self.out.push_back((at, record)),
            _ => {}
        }
        let mut early = None;
        if let Some(held) = self.held.take() {
            match (fit(&record, self.last), fit(&record, Some(held.last))) {
                (_, Fit::Next(_)) => self.put(held),
                (Fit::Next(_), _) => early = Some(held),
                (Fit::Ahead(..), Fit::Behind) => self.stray(held),
                _ => self.put(held),
            }
        }
        match fit(&record, self.last) {
            Fit::Next(last) => {
                self.last = Some(last);
                self.out.push_back((at, record));
            }
            Fit::Ahead(gap, last) => self.held = Some(Held { at, record, gap, last }),
            Fit::Behind => {
                let (what, n) = number(&record);
                self.trouble(at, Damage::Behind { what, n, last: self.last.unwrap_or(0) });
            }
        }
        if let Some(held) = early {
            match fit(&held.record, self.last) {
                Fit::Next(last) if !matches!(held.record, Record::Gap(_)) => {
                    let (what, n) = number(&held.record);
                    self.trouble(held.at, Damage::Swapped { what, n });
                    self.last = Some(last);
                    self.out.push_back((held.at, held.record));
                }
                _ => self.stray(held),
            }
        }
    }

    fn stray(&mut self, held: Held) {
        let (what, n) = number(&held.record);
        self.trouble(held.at, Damage::Stray { what, n });
    }

    /// What was held back is right: something is missing before it.
    fn release(&mut self) {
        if let Some(held) = self.held.take() {
            self.put(held);
        }
    }

    fn put(&mut self, held: Held) {
        if let Some(gap) = held.gap {
            self.trouble(held.at, Damage::Missing { from: gap.n, lost: gap.lost });
            self.out.push_back((held.at, Record::Gap(gap)));
        }
        self.last = Some(held.last);
        self.out.push_back((held.at, held.record));
    }
}

impl Iterator for Salvage {
    type Item = (Place, Record);

    /// A record that is known to be in its place; `None` as long as another line is needed.
    fn next(&mut self) -> Option<Self::Item> {
        self.out.pop_front()
    }
}

fn step_without_effects(text: &[u8]) -> Option<Step> {
    let mut all: Map<String, Value> = serde_json::from_slice(text).ok()?;
    let step = all.get("rec").is_some_and(|rec| rec == "step") && all.remove("fx").is_some();
    serde_json::from_value(all.into()).ok().filter(|_| step)
}

/// Without the line, which the place says.
fn why(error: TraceError) -> String {
    match error {
        TraceError::Syntax { error, .. } | TraceError::NoHeader { error } => {
            error.to_string().replace(" at line 1 column ", " at column ")
        }
        other => other.to_string(),
    }
}

fn number(record: &Record) -> (&'static str, StepNumber) {
    match record {
        Record::Step(step) => ("step", step.n),
        Record::Digest(at) => ("the digest after step", at.n),
        Record::Checkpoint(point) => ("the checkpoint after step", point.n),
        Record::Gap(gap) => ("the gap from step", gap.n),
        Record::End(end) => ("the end after step", end.n),
        Record::Note(note) => ("a note after step", note.n),
        Record::Header(header) => ("the header after step", header.from.map_or(0, |from| from.n)),
    }
}

fn fit(record: &Record, last: Option<StepNumber>) -> Fit {
    let next = last.map_or(0, |last| last.saturating_add(1));
    let gap =
        |upto: StepNumber| Some(Gap { n: next, lost: upto.saturating_sub(next) }).filter(|gap| gap.lost > 0);
    match record {
        // A trace that was written by hand may leave the creation out.
        Record::Step(step) if step.n == next || (last.is_none() && step.n == 1) => Fit::Next(step.n),
        Record::Step(step) if step.n > next => Fit::Ahead(gap(step.n), step.n),
        Record::Digest(super::DigestAt { n, .. }) | Record::Checkpoint(super::Checkpoint { n, .. }) => {
            match last.unwrap_or(0) {
                last if last == *n => Fit::Next(last),
                last if last < *n => Fit::Ahead(gap(n.saturating_add(1)), *n),
                _ => Fit::Behind,
            }
        }
        // One that is too long takes along what follows: so it is looked at what does.
        Record::Gap(said) if said.n >= next && said.lost > 0 => {
            Fit::Ahead(gap(said.n), said.n.saturating_add(said.lost - 1))
        }
        Record::End(end) => match last {
            Some(last) if end.n > last => Fit::Ahead(gap(end.n.saturating_add(1)), end.n),
            Some(last) => Fit::Next(last),
            None => Fit::Next(0),
        },
        _ => Fit::Behind,
    }
}
