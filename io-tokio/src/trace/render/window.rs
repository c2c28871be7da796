//! A part of a drawing, from one moment to another: of a long trace only a part can be looked at in one picture.

use super::axis::{duration, time};
use super::drawing::{Arrow, Bar, Drawing, Group, Lane, Mark, Point, Row, StepIndex, Unknown, Violation};
use super::text::Text;
use crate::config::duration::{Days, SignedNanos, parse};
use crate::trace::step_name::StepName;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// A moment of a trace, as a person names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// A step: `59`, or `2/59` in life 2. Without a life it is the first step of that number.
    Step {
        /// In which life, from 1.
        life: Option<u64>,
        /// Its number there.
        n: u64,
    },
    /// A time on the axis of the picture, in milliseconds: `90s`, `5m`, `1h30m`.
    Axis(u64),
    /// A time since the first life began, in milliseconds, as `trace show` has it: `0:01:30.000`.
    Clock(u64),
}

/// What a text is that names no moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "it is neither a step, such as 59 or 2/59 (step 59 of life 2; lives are counted from 1), nor a time, such as 90s, 5m (minutes), 1h30m or 0:01:30.000; neither is negative"
)]
pub struct NoMoment;

impl FromStr for Moment {
    type Err = NoMoment;

    fn from_str(text: &str) -> Result<Self, NoMoment> {
        if let Ok(StepName { life, n }) = text.parse() {
            return Ok(Self::Step { life, n });
        }
        if text.contains(':') {
            return clock(text).map(Self::Clock).ok_or(NoMoment);
        }
        let time = parse(text, Days::Allowed).ok().and_then(SignedNanos::non_negative);
        time.and_then(|time| u64::try_from(time.as_millis()).ok()).map(Self::Axis).ok_or(NoMoment)
    }
}

/// `2:04:19.377`: hours, minutes, seconds, and milliseconds or a part of them.
fn clock(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if !digits(part) || part.len() > 3 {
        return None;
    }
    let [hours, minutes, seconds] = whole.split(':').collect::<Vec<_>>().try_into().ok()?;
    let number = |text: &str, below: u64| text.parse::<u64>().ok().filter(|n| *n < below && digits(text));
    let seconds =
        number(hours, u64::MAX / 7_200_000)? * 3600 + number(minutes, 60)? * 60 + number(seconds, 60)?;
    let ms = format!("{part:0<3}").parse::<u64>().ok()?;
    Some(seconds * 1000 + ms)
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Step { life, n } => StepName { life: *life, n: *n }.fmt(f),
            Self::Axis(ms) | Self::Clock(ms) => f.write_str(&time(*ms, 1)),
        }
    }
}

/// Why there is nothing to be seen through a window.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoWindow {
    /// The step that is named is not there.
    #[error("the trace has no {step}; it has {there}")]
    NoStep {
        /// That one.
        step: Moment,
        /// Those that are there, in words.
        there: String,
    },
    /// It ends before it begins.
    #[error("the window is empty: it begins at {} ({from}) and ends at {} ({to}), which is before that", time(*.begin, 1), time(*.end, 1))]
    Empty {
        /// As it was asked for.
        from: Moment,
        /// As it was asked for.
        to: Moment,
        /// Where that is, in milliseconds.
        begin: u64,
        /// Where that is, in milliseconds.
        end: u64,
    },
    /// All of it lies behind the end of the trace.
    #[error("the window begins at {}, and the trace ends at {}", time(*.begin, 1), time(*.end, 1))]
    Behind {
        /// Where it begins, in milliseconds.
        begin: u64,
        /// Where the trace ends, in milliseconds.
        end: u64,
    },
    /// Nothing happens in it, and nothing lasts.
    #[error("nothing is recorded from {} to {}: there is nothing to be drawn", time(*.begin, 1), time(*.end, 1))]
    Nothing {
        /// Where it begins, in milliseconds.
        begin: u64,
        /// Where it ends, in milliseconds.
        end: u64,
    },
}

/// A part of a drawing, and what is not in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// What is in it. Lanes in which nothing happens meanwhile are left out.
    pub drawing: Drawing,
    /// Bars that reach out of it: they are drawn up to its edge.
    pub reach_out: usize,
    /// Lanes that are left out.
    pub lanes: usize,
    /// Steps that are left out.
    pub steps: usize,
    /// Violations that are left out.
    pub violations: usize,
}

/// The part of a drawing between two moments, both included. `base` is the time, in milliseconds, from the beginning of the first life to that
/// of the drawing.
///
/// # Errors
/// If there is nothing to be seen.
pub fn window(
    drawing: Drawing,
    base: u64,
    from: Option<Moment>,
    to: Option<Moment>,
) -> Result<Part, NoWindow> {
    let at = |moment: Moment| match moment {
        Moment::Axis(ms) => Ok(ms),
        Moment::Clock(ms) => Ok(ms.saturating_sub(base)),
        Moment::Step { life, n } => {
            let mut rows = drawing.steps.iter();
            let is_it = |row: &&Row| row.n == n && life.is_none_or(|life| u64::from(row.life) + 1 == life);
            rows.find(is_it)
                .map(|row| row.at)
                .ok_or_else(|| NoWindow::NoStep { step: moment, there: there(&drawing.steps) })
        }
    };
    let begin = from.map_or(Ok(0), at)?;
    let end = to.map_or(Ok(drawing.end), at)?;
    if let (Some(from), Some(to), true) = (from, to, begin > end) {
        return Err(NoWindow::Empty { from, to, begin, end });
    }
    if begin > drawing.end {
        return Err(NoWindow::Behind { begin, end: drawing.end });
    }
    // One instant has no width.
    let end = end.min(drawing.end).max(begin.saturating_add(1));
    let part = Window { begin, end, first: 0, last: 0 }.of(drawing);
    if part.drawing.steps.is_empty() && part.drawing.groups.iter().all(|group| group.lanes.is_empty()) {
        return Err(NoWindow::Nothing { begin, end });
    }
    Ok(part)
}

/// Runs of steps that are named at most.
const MOST_RUNS: usize = 6;

/// Which steps there are, without those that are not recorded.
fn there(rows: &[Row]) -> String {
    let follows = |one: &Row, next: &Row| one.life == next.life && one.n.checked_add(1) == Some(next.n);
    let is_one_life = rows.first().map(|row| row.life) == rows.last().map(|row| row.life);
    let run = |rows: &[Row]| {
        let (first, last) = (rows.first()?, rows.last()?);
        let of = if is_one_life { String::new() } else { format!(" of life {}", first.life + 1) };
        Some(if last.n == first.n {
            format!("step {}{of}", first.n)
        } else {
            format!("steps {} to {}{of}", first.n, last.n)
        })
    };
    let mut runs: Vec<String> = rows.chunk_by(follows).take(MOST_RUNS).filter_map(run).collect();
    if rows.chunk_by(follows).nth(MOST_RUNS).is_some() {
        runs.push("more after them".to_owned());
    }
    if runs.is_empty() { "none".to_owned() } else { runs.join(", ") }
}

/// Name of the detail of a bar that says where it begins and ends if it reaches out of the window.
pub(super) const REACHES_OUT: &str = "in all";

/// Whether a bar is the part of a longer one that is in the window.
pub(super) fn reaches_out(bar: &Bar) -> bool {
    bar.detail.iter().any(|(name, _)| name.as_str() == REACHES_OUT)
}

struct Window {
    begin: u64,
    end: u64,
    /// Rows of the table that are in it: from this one …
    first: usize,
    /// … up to that one, which is not.
    last: usize,
}

impl Window {
    fn of(mut self, drawing: Drawing) -> Part {
        let Drawing { title, mut facts, start, end: whole, groups, arrows, judged, .. } = drawing;
        self.first = drawing.steps.partition_point(|row| row.at < self.begin);
        self.last = drawing.steps.partition_point(|row| row.at <= self.end);
        let mut reach_out = 0;
        let (mut places, mut kept) = (Vec::new(), 0);
        let groups: Vec<Group> = groups
            .into_iter()
            .map(|group| {
                let lanes = group.lanes.into_iter().map(|lane| self.lane(lane, &mut reach_out));
                let lanes = lanes.filter(|lane| {
                    let is_used = !lane.bars.is_empty() || !lane.marks.is_empty();
                    places.push(is_used.then_some(kept));
                    kept += u32::from(is_used);
                    is_used
                });
                Group { name: group.name, lanes: lanes.collect() }
            })
            .collect();
        let point = |point: Point| {
            let lane = places.get(point.lane as usize).copied().flatten()?;
            Some(Point { lane, ..point }).filter(|point| self.holds(point.at))
        };
        let arrow = |arrow: Arrow| {
            let step = self.step(arrow.step);
            Some(Arrow { from: point(arrow.from)?, to: point(arrow.to)?, step, ..arrow })
        };
        let all_violations = drawing.violations.len();
        let violations: Vec<Violation> = drawing
            .violations
            .into_iter()
            .filter(|broken| self.holds(broken.at))
            .map(|broken| Violation { step: self.step(broken.step), ..broken })
            .collect();
        let unknown = drawing.unknown.into_iter().filter(|hole| self.meets(hole.begin, hole.end));
        let unknown = unknown.map(|hole| Unknown {
            begin: hole.begin.max(self.begin),
            end: hole.end.min(self.end),
            ..hole
        });
        let all_steps = drawing.steps.len();
        let steps: Vec<_> =
            drawing.steps.into_iter().skip(self.first).take(self.last.saturating_sub(self.first)).collect();
        let lanes = places.iter().filter(|place| place.is_none()).count();
        let outside = all_violations - violations.len();
        let mut fact = |name: &str, value: Text| facts.push((name.into(), value));
        let seen = format!("{} to {} of {}", time(self.begin, 1), time(self.end, 1), duration(whole));
        fact("window", seen.into());
        for (name, count) in [
            ("bars that reach out of it", reach_out),
            ("lanes with nothing in it", lanes),
            ("violations outside of it", outside),
        ] {
            if count > 0 {
                fact(name, count.to_string().into());
            }
        }
        let arrows = arrows.into_iter().filter_map(arrow).collect();
        let steps_left = all_steps - steps.len();
        let drawing = Drawing {
            title,
            facts,
            start,
            begin: self.begin,
            end: self.end,
            groups,
            arrows,
            judged,
            violations,
            unknown: unknown.collect(),
            steps,
        };
        Part { drawing, reach_out, lanes, steps: steps_left, violations: outside }
    }

    const fn holds(&self, at: u64) -> bool {
        self.begin <= at && at <= self.end
    }

    const fn meets(&self, begin: u64, end: u64) -> bool {
        begin <= self.end && end >= self.begin
    }

    fn step(&self, step: Option<StepIndex>) -> Option<StepIndex> {
        let step = step? as usize;
        (self.first..self.last).contains(&step).then(|| (step - self.first) as StepIndex)
    }

    fn lane(&self, lane: Lane, reach_out: &mut usize) -> Lane {
        let bars = lane.bars.into_iter().filter(|bar| self.meets(bar.begin, bar.end));
        let bars = bars.map(|bar| self.bar(bar, reach_out)).collect();
        let marks = lane.marks.into_iter().filter(|mark| self.holds(mark.at));
        let marks = marks.map(|mark| Mark { step: self.step(mark.step), ..mark }).collect();
        Lane { bars, marks, ..lane }
    }

    /// A bar up to the edges. Where it goes on its end is none, and its detail says where that is.
    fn bar(&self, mut bar: Bar, reach_out: &mut usize) -> Bar {
        let (begin, end) = (bar.begin, bar.end);
        let (earlier, later) = (begin < self.begin, end > self.end);
        (bar.begin, bar.end) = (begin.max(self.begin), end.min(self.end));
        (bar.first, bar.last) = (self.step(bar.first), self.step(bar.last));
        if earlier || later {
            *reach_out += 1;
            let known = |open: bool, at: u64| if open { "?".to_owned() } else { time(at, 1) };
            let whole = format!("{} to {}", known(bar.open.begin, begin), known(bar.open.end, end));
            bar.detail.push((REACHES_OUT.into(), whole.into()));
            bar.open.begin |= earlier;
            bar.open.end |= later;
            // How it ended stands where it ended.
            bar.failed &= !later;
        }
        bar
    }
}

#[cfg(test)]
mod tests;
