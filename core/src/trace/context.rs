//! What a person sees of a divergence: the difference, and the steps that led to it.

use super::diff;
use super::format::StepNumber;
use crate::daemon::Daemon;
use crate::effect::{Effect, StopPhase};
use crate::event::Event;
use crate::said::name;
use crate::time::Instant;
use std::collections::VecDeque;
use std::fmt;

/// Most effects that are listed of each side.
const MOST: usize = 8;
/// Longest text of one event or effect, in characters.
const WIDE: usize = 200;

#[derive(Clone, Debug)]
struct Line {
    n: StepNumber,
    at: Instant,
    event: Option<Event>,
    effects: usize,
    free: u16,
    total: u16,
    ops: usize,
    phase: StopPhase,
}

/// The last steps of a replay, one line each: number, seconds, free slots, open requests, phase, effects, event.
#[derive(Clone, Debug, Default)]
pub struct Context {
    lines: VecDeque<Line>,
}

impl Context {
    /// How many steps are kept.
    pub const STEPS: usize = 20;

    pub(super) fn push(
        &mut self,
        n: StepNumber,
        at: Instant,
        event: Option<Event>,
        effects: usize,
        after: &Daemon,
    ) {
        if self.lines.len() == Self::STEPS {
            self.lines.pop_front();
        }
        let view = after.view();
        let (free, total, ops, phase) =
            (view.free_slots(), view.total_slots(), view.open_ops(), view.stop_phase());
        self.lines.push_back(Line { n, at, event, effects, free, total, ops, phase });
    }

    pub(super) fn clear(&mut self) {
        self.lines.clear();
    }
}

impl fmt::Display for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:>9} {:>12} {:>9} {:>5} {:>13} {:>3}  event",
            "step", "seconds", "slots", "ops", "phase", "fx"
        )?;
        for line in &self.lines {
            let ms = line.at.as_millis();
            let seconds = format!("{}.{:03}", ms / 1000, ms % 1000);
            let slots = format!("{}/{}", line.free, line.total);
            let event = line.event.as_ref().map_or_else(|| "(created)".to_owned(), json);
            let phase = name(&line.phase);
            write!(
                f,
                "\n{:>9} {seconds:>12} {slots:>9} {:>5} {phase:>13} {:>3}  {event}",
                line.n, line.ops, line.effects
            )?;
        }
        Ok(())
    }
}

/// The first difference between a recording and its replay.
#[derive(Clone, Debug)]
pub struct Divergence {
    /// In which life, from 1, as they are in the trace.
    pub life: u64,
    /// At this step.
    pub n: StepNumber,
    /// The line of the record, from 1.
    pub line: u64,
    /// What differs.
    pub what: Difference,
    /// The last steps, this one included.
    pub context: Context,
    /// Version of the core that recorded, if it is not this one.
    pub recorded_by: Option<String>,
}

/// What can differ.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Difference {
    /// The effects of the step.
    Effects {
        /// As the trace has them.
        recorded: Vec<Effect>,
        /// As the replay made them.
        produced: Vec<Effect>,
    },
    /// The state after the step, although no effect did.
    Digest {
        /// As the trace has it.
        recorded: u64,
        /// As the replay has it.
        produced: u64,
        /// The last step whose digest was the same.
        since: Option<StepNumber>,
        /// Where the states differ, if the whole of it was recorded.
        fields: Vec<String>,
    },
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let life = if self.life > 1 { format!(" of life {}", self.life) } else { String::new() };
        write!(f, "step {}{life} (line {}): ", self.n, self.line)?;
        match &self.what {
            Difference::Effects { recorded, produced } => effects(f, recorded, produced)?,
            Difference::Digest { recorded, produced, since, fields } => {
                write!(
                    f,
                    "the state has digest {produced:016x}, recorded was {recorded:016x}; all effects "
                )?;
                match since {
                    Some(since) => write!(f, "are the same, and so was the state after step {since}")?,
                    None => write!(f, "are the same")?,
                }
                fields.iter().try_for_each(|field| write!(f, "\n  {field}"))?;
            }
        }
        if let Some(core) = &self.recorded_by {
            let here = env!("CARGO_PKG_VERSION");
            write!(
                f,
                "\nit was recorded by core {core}, and this is core {here}: a change between them may be the cause"
            )?;
        }
        write!(f, "\nthe last steps of the replay:\n{}", self.context)
    }
}

fn effects(f: &mut fmt::Formatter<'_>, recorded: &[Effect], produced: &[Effect]) -> fmt::Result {
    let at = recorded.iter().zip(produced).take_while(|(a, b)| a == b).count();
    write!(
        f,
        "{} effects were recorded and {} produced; they differ from number {} on",
        recorded.len(),
        produced.len(),
        at + 1
    )?;
    let (was, is) = (recorded.get(at), produced.get(at));
    write!(f, "\n  recorded: {}", was.map_or_else(|| "nothing more".to_owned(), json))?;
    write!(f, "\n  produced: {}", is.map_or_else(|| "nothing more".to_owned(), json))?;
    if let (Some(was), Some(is)) = (was, is) {
        for field in diff::fields(was, is) {
            write!(f, "\n  {field}")?;
        }
    }
    let (lost, new) = (without(recorded, produced), without(produced, recorded));
    if lost.is_empty() && new.is_empty() {
        return write!(f, "\n  they are the same ones in another order");
    }
    // What differs in the first place has been shown.
    if lost.len().max(new.len()) > 1 {
        for (which, effects) in [("recorded", lost), ("produced", new)] {
            for effect in effects.iter().take(MOST) {
                write!(f, "\n  only {which}: {}", json(effect))?;
            }
            if let Some(more) = effects.len().checked_sub(MOST).filter(|more| *more > 0) {
                write!(f, "\n  only {which}: {more} more")?;
            }
        }
    }
    Ok(())
}

/// Those of `all` that are not in `others`, each as often as it is more.
fn without<'a>(all: &'a [Effect], others: &[Effect]) -> Vec<&'a Effect> {
    let mut others: Vec<&Effect> = others.iter().collect();
    let mut gone = |effect: &&Effect| match others.iter().position(|other| other == effect) {
        Some(at) => {
            others.swap_remove(at);
            false
        }
        None => true,
    };
    all.iter().filter(|effect| gone(effect)).collect()
}

fn json(of: &impl serde::Serialize) -> String {
    let text = serde_json::to_string(of).unwrap_or_else(|error| error.to_string());
    match text.char_indices().nth(WIDE) {
        Some((cut, _)) => format!("{} …", &text[..cut]),
        None => text,
    }
}
