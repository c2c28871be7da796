//! The day of each line that has none.
//!
//! A line of text has the local time of day and nothing else. What is known beside it: a day that a person says, the time in the name of a log that
//! was put aside, when a file was written last, and lines that have a date. From there the days are counted, line by line. Where the time of
//! day goes back, a midnight has passed or somebody has set the clock, and [`Turn`] says how these are told apart.

use super::heard::Heard;
use super::line::Stamp;
use super::turn::{DAY, MINUTE, Reading, Turn, goes_back, millis, revoke};
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, Span, Timestamp};
use std::ops::Range;

/// By so much a file may be older than its last line: clocks of file systems are not those of daemons.
const SLACK: SignedDuration = SignedDuration::from_mins(5);

/// The lines of one log, and what is known of their end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// Which of all lines.
    pub(super) lines: Range<usize>,
    /// Nothing in it is later than this.
    pub(super) until: Until,
}

/// When a log ended, at the latest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Until {
    /// It was put aside then, as its name says.
    Named(Timestamp),
    /// Its file was written last then.
    Written(Timestamp),
    /// It is read from a pipe now.
    Now(Timestamp),
}

impl Until {
    const fn at(self) -> Timestamp {
        match self {
            Self::Named(at) | Self::Written(at) | Self::Now(at) => at,
        }
    }
}

/// What the days were taken from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Whence {
    pub(super) hand: bool,
    pub(super) names: bool,
    pub(super) files: bool,
    pub(super) now: bool,
    pub(super) lines: bool,
}

/// Readings that may be another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Guesses {
    /// How many there are.
    pub(super) count: u64,
    /// The number of the first line, and by how many milliseconds the time of day goes back there.
    pub(super) first: Option<(u64, i64)>,
}

impl Guesses {
    fn add(&mut self, line: u64, back: i64) {
        self.count += 1;
        if self.first.is_none_or(|(first, _)| line < first) {
            self.first = Some((line, back));
        }
    }
}

/// The day of each line that has none, and how sure that is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Days {
    /// From which line on it is which day, in order.
    pub(super) from: Vec<(usize, Date)>,
    pub(super) whence: Whence,
    /// Midnights that may be a clock that was set.
    pub(super) nights: Guesses,
    /// Clocks that were set, where it may have been a midnight.
    pub(super) set: Guesses,
}

/// Lines without a date, one behind the other in one log.
#[derive(Clone, Debug)]
struct Leg {
    lines: Range<usize>,
    /// The line before them in this log, which has a date.
    after: Option<DateTime>,
    /// The line behind them in this log, which has one.
    before: Option<DateTime>,
    part: usize,
}

/// Finds the days of lines. `first` is the day of the first one, if a person says it.
pub(super) fn days(lines: &[Heard], parts: &[Part], first: Option<Date>, zone: &TimeZone) -> Days {
    let legs = legs(lines, parts, zone);
    let mut finder = Finder { lines, parts, zone, days: Days::default() };
    match first {
        Some(first) => finder.onward(&legs, first),
        None => finder.each_from_its_end(&legs, zone),
    }
    finder.days.from.sort_unstable_by_key(|(at, _)| *at);
    finder.days
}

fn legs(lines: &[Heard], parts: &[Part], zone: &TimeZone) -> Vec<Leg> {
    let mut legs: Vec<Leg> = Vec::new();
    for (part, Part { lines: range, .. }) in parts.iter().enumerate() {
        let (mut after, mut on) = (None, None);
        for at in range.clone() {
            let dated = match lines[at].stamp {
                Stamp::Clock(_) => {
                    on.get_or_insert(at);
                    continue;
                }
                Stamp::Local(local) => local,
                Stamp::Instant(instant) => zone.to_datetime(instant),
            };
            if let Some(from) = on.take() {
                legs.push(Leg { lines: from..at, after, before: Some(dated), part });
            }
            after = Some(dated);
        }
        if let Some(from) = on {
            legs.push(Leg { lines: from..range.end, after, before: None, part });
        }
    }
    legs
}

struct Finder<'a> {
    lines: &'a [Heard],
    parts: &'a [Part],
    zone: &'a TimeZone,
    days: Days,
}

impl Finder<'_> {
    /// From the day of the first line on.
    fn onward(&mut self, legs: &[Leg], first: Date) {
        let mut last: Option<DateTime> = None;
        for leg in legs {
            let from_end = if leg.after.is_some() {
                None
            } else if let Some(before) = leg.before {
                Some((self.end_before(leg, before), None))
            } else if let (Some(last), Until::Named(until)) = (last, self.parts[leg.part].until) {
                // A log that says that it was put aside before the first line of all is not believed.
                let day = self.last_day(leg, later(until, SLACK));
                (day.to_datetime(self.time(leg.lines.end - 1)) >= last).then_some((day, Some(until)))
            } else {
                None
            };
            last = Some(if let Some((end, until)) = from_end {
                self.days.whence.names |= until.is_some();
                self.days.whence.lines |= until.is_none();
                self.backward(leg, end, until, last);
                end.to_datetime(self.time(leg.lines.end - 1))
            } else {
                self.days.whence.lines |= leg.after.is_some();
                self.days.whence.hand |= leg.after.is_none();
                let until = leg.before.is_none().then(|| self.parts[leg.part].until.at());
                self.forward(leg, leg.after.or(last), first, until)
            });
        }
    }

    /// From the end of each log back.
    fn each_from_its_end(&mut self, legs: &[Leg], zone: &TimeZone) {
        // The first line of the leg that was looked at last, and its time.
        let mut found: Option<(usize, Timestamp)> = None;
        for leg in legs.iter().rev() {
            let next = match self.lines.get(leg.lines.end).map(|line| line.stamp) {
                Some(Stamp::Instant(at)) => Some(at),
                Some(Stamp::Local(local)) => Some(self.instant(local)),
                _ => found.filter(|(at, _)| *at == leg.lines.end).map(|(_, time)| time),
            };
            let until = self.parts[leg.part].until;
            // What was put aside before this log, in which this one goes on.
            let aside = leg.part.checked_sub(1).and_then(|before| match self.parts[before].until {
                Until::Named(at) if leg.lines.start == self.parts[leg.part].lines.start => Some(at),
                _ => None,
            });
            let aside = aside.map(|at| zone.to_datetime(at));
            if leg.after.is_some() {
                self.days.whence.lines = true;
                self.forward(leg, leg.after, Date::ZERO, leg.before.is_none().then(|| until.at()));
            } else if let Some(before) = leg.before {
                self.days.whence.lines = true;
                let end = self.end_before(leg, before);
                self.backward(leg, end, None, aside);
            } else if let (Some(goes_on), false) =
                (aside.and_then(|aside| self.goes_on(leg, aside)), matches!(until, Until::Named(_)))
            {
                self.days.whence.names = true;
                self.forward(leg, None, goes_on, Some(until.at()));
            } else {
                let whence = &mut self.days.whence;
                match until {
                    Until::Named(_) => whence.names = true,
                    Until::Written(_) => whence.files = true,
                    Until::Now(_) => whence.now = true,
                }
                let mut limit = later(until.at(), SLACK);
                if let (Some(next), false) = (next, matches!(until, Until::Named(_))) {
                    // Where both were copied, its time is that of the copy.
                    limit = limit.min(later(next, SignedDuration::from_hours(1)));
                }
                let end = self.last_day(leg, limit);
                self.backward(leg, end, Some(until.at()), aside);
            }
            let first = self.days.from.iter().rev().find(|(at, _)| *at == leg.lines.start);
            found = first.map(|(at, day)| (*at, self.instant(day.to_datetime(self.time(*at)))));
        }
    }

    /// The latest day on which the last line is not behind that.
    fn last_day(&self, leg: &Leg, limit: Timestamp) -> Date {
        let day = self.zone.to_datetime(limit).date();
        let last = day.to_datetime(self.time(leg.lines.end - 1));
        if self.instant(last) > limit { back(day, 1) } else { day }
    }

    /// The day of the last line, if the line behind it has this date.
    fn end_before(&self, leg: &Leg, dated: DateTime) -> Date {
        let last = self.time(leg.lines.end - 1);
        let turn = self.turn(leg.lines.end, last, dated.time(), dated.date());
        if turn.is_some_and(|turn| turn.reading.passes()) { back(dated.date(), 1) } else { dated.date() }
    }

    /// The day of the first line, if a log begins as the one before it was put aside: what is written then is its first line.
    fn goes_on(&self, leg: &Leg, aside: DateTime) -> Option<Date> {
        let after = millis(self.time(leg.lines.start)) - millis(aside.time());
        let after = (after + DAY / 2).rem_euclid(DAY) - DAY / 2;
        let near = (-MINUTE..=SLACK.as_secs() * 1000).contains(&after);
        near.then(|| aside.saturating_add(Span::new().milliseconds(after)).date())
    }

    /// Counts on from a line before, or from a day, and says when the last one was.
    fn forward(
        &mut self,
        leg: &Leg,
        from: Option<DateTime>,
        first: Date,
        until: Option<Timestamp>,
    ) -> DateTime {
        let first = from.map_or(first, DateTime::date);
        let mut turns = self.turns(leg, from.map(DateTime::time), |passed| on(first, passed));
        let end = |turns: &[Turn]| on(first, passed(turns)).to_datetime(self.time(leg.lines.end - 1));
        let mut sure = false;
        if let Some(until) = until {
            let over = self.instant(end(&turns)).duration_since(later(until, SLACK));
            revoke(&mut turns, over);
            sure = self.instant(end(&turns)).duration_since(until).abs() <= SLACK;
        }
        let last = end(&turns);
        self.count(leg, &turns, first, sure);
        last
    }

    /// Counts back from the day of the last line. Nothing is later than `until`, and the first line not earlier than `after`.
    fn backward(&mut self, leg: &Leg, end: Date, until: Option<Timestamp>, after: Option<DateTime>) {
        let mut turns = self.turns(leg, None, |passed| on(end, passed));
        // The days are those from the end back, and the readings depend on them.
        let mut day = end;
        for nth in (0..turns.len()).rev() {
            let Turn { at, back: by, before, .. } = turns[nth];
            let impossible =
                until.is_some_and(|until| self.instant(day.to_datetime(before)) > later(until, SLACK));
            let again = self.turn(at, before, self.time(at), day).map_or(Reading::Set, |turn| turn.reading);
            turns[nth].reading = if impossible { again.if_it_was_not_set(by) } else { again };
            if turns[nth].reading.passes() {
                day = back(day, 1);
            }
        }
        let first = |turns: &[Turn]| back(end, passed(turns)).to_datetime(self.time(leg.lines.start));
        let mut sure = false;
        if let Some(after) = after.map(|after| self.instant(after)) {
            let short = later(after, -SLACK).duration_since(self.instant(first(&turns)));
            revoke(&mut turns, short);
            sure = self.instant(first(&turns)).duration_since(after).abs() <= SLACK;
        }
        let first = first(&turns).date();
        self.count(leg, &turns, first, sure);
    }

    /// The places of a leg at which the time goes back, also against the line before it. A number of midnights gives the day.
    fn turns(&self, leg: &Leg, before: Option<Time>, day: impl Fn(i64) -> Date) -> Vec<Turn> {
        let mut turns = Vec::new();
        let (mut before, mut passed) = (before, 0);
        for at in leg.lines.clone() {
            let time = self.time(at);
            let before_it = before.filter(|before| goes_back(*before, time));
            if let Some(turn) = before_it.and_then(|before| self.turn(at, before, time, day(passed))) {
                passed += i64::from(turn.reading.passes());
                turns.push(turn);
            }
            before = Some(time);
        }
        turns
    }

    /// Whether the time goes back at this line, and what that is taken to be if it is on this day.
    fn turn(&self, at: usize, before: Time, now: Time, day: Date) -> Option<Turn> {
        let said = || self.lines.get(at).and_then(|line| line.said);
        let twice = || {
            let ambiguous = self.zone.to_ambiguous_timestamp(day.to_datetime(now));
            matches!(ambiguous.offset(), AmbiguousOffset::Fold { .. })
        };
        Turn::new(at, before, now, said, twice)
    }

    /// Writes down the days of a leg.
    fn count(&mut self, leg: &Leg, turns: &[Turn], first: Date, sure: bool) {
        let mut day = first;
        self.days.from.push((leg.lines.start, day));
        for turn in turns {
            let line = self.lines[turn.at].nth;
            match turn.reading {
                Reading::Night if !sure => self.days.nights.add(line, turn.back),
                Reading::Set => self.days.set.add(line, turn.back),
                Reading::Midnight | Reading::Night | Reading::Twice => {}
            }
            if turn.reading.passes() {
                day = on(day, 1);
                self.days.from.push((turn.at, day));
            }
        }
    }

    fn time(&self, at: usize) -> Time {
        match self.lines[at].stamp {
            Stamp::Clock(time) => time,
            Stamp::Local(local) => local.time(),
            Stamp::Instant(instant) => self.zone.to_datetime(instant).time(),
        }
    }

    fn instant(&self, local: DateTime) -> Timestamp {
        self.zone.to_timestamp(local).unwrap_or(if local.year() < 0 {
            Timestamp::MIN
        } else {
            Timestamp::MAX
        })
    }
}

fn passed(turns: &[Turn]) -> i64 {
    turns.iter().map(|turn| i64::from(turn.reading.passes())).sum()
}

/// So many days later. A log of more days than the calendar has is none: there it stands still.
fn on(day: Date, days: i64) -> Date {
    day.checked_add(Span::new().days(days.min(1_000_000))).unwrap_or(day)
}

fn later(at: Timestamp, by: SignedDuration) -> Timestamp {
    at.saturating_add(by).unwrap_or(at)
}

fn back(day: Date, days: i64) -> Date {
    day.checked_sub(Span::new().days(days.min(1_000_000))).unwrap_or(day)
}
