//! The times of a log as the clocks of a trace.
//!
//! The monotonic clock never goes back: where the wall clock does, no time passes. The hour that comes twice at the end of summer time is told apart
//! by the order of its lines: what would be before the line before it is of the second time.

use super::line::Stamp;
use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::{AmbiguousOffset, TimeZone};
use longshore_core::time::{Instant, Now, UnixMillis};

/// By so much lines may be in another order than their times, in milliseconds.
const JITTER: i64 = 1_000;

/// Turns stamps, in the order of the log, into readings of both clocks.
#[derive(Clone, Debug)]
pub(super) struct Clocks {
    zone: TimeZone,
    /// From which line on it is which day, in order.
    days: Vec<(usize, Date)>,
    /// How many of them have come.
    passed: usize,
    /// How many lines were read.
    lines: usize,
    /// The last wall time, and the monotonic time that was given for it.
    last: Option<(i64, u64)>,
    /// Whether the next line is the first of a process.
    begins: bool,
    /// How many lines are of an hour that comes twice, by what they say.
    twice: u64,
}

impl Clocks {
    /// Clocks for lines of which those without a date are of these days.
    pub(super) const fn new(days: Vec<(usize, Date)>, zone: TimeZone) -> Self {
        Self { zone, days, passed: 0, lines: 0, last: None, begins: false, twice: 0 }
    }

    /// Reads both clocks at the next line: the monotonic one counts from the first reading, and never goes back.
    pub(super) fn read(&mut self, stamp: Stamp) -> Now {
        while self.days.get(self.passed).is_some_and(|(from, _)| *from <= self.lines) {
            self.passed += 1;
        }
        self.lines += 1;
        let wall = match stamp {
            Stamp::Instant(instant) => instant.as_millisecond(),
            Stamp::Local(local) => self.instant(local),
            Stamp::Clock(time) => {
                let day = self.passed.checked_sub(1).and_then(|at| self.days.get(at));
                self.instant(day.map_or(Date::ZERO, |(_, day)| *day).to_datetime(time))
            }
        };
        let begins = std::mem::take(&mut self.begins);
        let mono = match self.last.filter(|_| !begins) {
            None => 0,
            Some((before, mono)) => {
                mono.saturating_add(u64::try_from(wall.saturating_sub(before)).unwrap_or(0))
            }
        };
        self.last = Some((wall, mono));
        Now::new(Instant::from_millis(mono), UnixMillis(wall))
    }

    /// Counts from zero again: another process began.
    pub(super) const fn begin_anew(&mut self) {
        self.begins = true;
    }

    /// How many lines are of an hour that comes twice, and do not say which one.
    pub(super) const fn twice(&self) -> u64 {
        self.twice
    }

    fn instant(&mut self, local: DateTime) -> i64 {
        let found = self.zone.to_ambiguous_timestamp(local);
        let twice = matches!(found.offset(), AmbiguousOffset::Fold { .. });
        self.twice += u64::from(twice);
        // At the very ends of the calendar there are times that are none: there it stands still.
        let edge = if local.year() < 0 { Timestamp::MIN } else { Timestamp::MAX };
        let millis = |at: Result<Timestamp, jiff::Error>| {
            // Milliseconds of the very last second are refused where they are read.
            at.map_or(edge.as_second() * 1000, Timestamp::as_millisecond)
        };
        if !twice {
            return millis(found.compatible());
        }
        let (first, second) = (millis(found.earlier()), millis(found.later()));
        if self.last.is_some_and(|(before, _)| before - first > JITTER) { second } else { first }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::{date, time};

    /// The instants of these times of one day, in Berlin.
    fn berlin(day: Date, times: &[(i8, i8, i8)]) -> (Vec<String>, Vec<u64>, u64) {
        let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").expect("a zone");
        let mut clocks = Clocks::new(vec![(0, day)], zone);
        let read = |(h, m, s): &(i8, i8, i8)| clocks.read(Stamp::Clock(time(*h, *m, *s, 0)));
        let now: Vec<Now> = times.iter().map(read).collect();
        let wall = |now: &Now| Timestamp::from_millisecond(now.wall.0).expect("in the calendar").to_string();
        let mono = |now: &Now| now.mono.as_millis() / 1000;
        (now.iter().map(wall).collect(), now.iter().map(mono).collect(), clocks.twice())
    }

    #[test]
    fn time_never_goes_back_when_the_clock_does() {
        let (wall, mono, _) = berlin(date(2026, 3, 1), &[(10, 0, 0), (9, 0, 0), (9, 0, 5)]);
        assert_eq!(mono, [0, 0, 5]);
        assert_eq!(wall[1], "2026-03-01T08:00:00Z", "the wall clock says what it said");
    }

    #[test]
    fn a_time_that_does_not_exist_is_an_hour_later() {
        let (wall, mono, twice) = berlin(date(2026, 3, 29), &[(1, 59, 59), (3, 0, 0)]);
        assert_eq!(wall, ["2026-03-29T00:59:59Z", "2026-03-29T01:00:00Z"]);
        assert_eq!((mono, twice), (vec![0, 1], 0));
    }

    #[test]
    fn the_hour_that_comes_twice_is_told_apart_by_the_order_of_its_lines() {
        let times = [(1, 59, 0), (2, 30, 0), (2, 59, 59), (2, 0, 1), (2, 30, 0), (2, 59, 59), (3, 0, 0)];
        let (wall, mono, twice) = berlin(date(2026, 10, 25), &times);
        assert_eq!(
            wall,
            [
                "2026-10-24T23:59:00Z",
                "2026-10-25T00:30:00Z",
                "2026-10-25T00:59:59Z",
                "2026-10-25T01:00:01Z",
                "2026-10-25T01:30:00Z",
                "2026-10-25T01:59:59Z",
                "2026-10-25T02:00:00Z",
            ]
        );
        assert_eq!(mono, [0, 1860, 3659, 3661, 5460, 7259, 7260]);
        assert_eq!(twice, 5);
        // Lines of tasks that run side by side do not make it the second time.
        let (wall, ..) = berlin(date(2026, 10, 25), &[(2, 30, 1), (2, 30, 0)]);
        assert_eq!(wall[1], "2026-10-25T00:30:00Z");
        // A line with a date and without a zone is of one of the two, too.
        let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").expect("a zone");
        let mut clocks = Clocks::new(Vec::new(), zone);
        let mut read = |minute| clocks.read(Stamp::Local(date(2026, 10, 25).at(2, minute, 0, 0))).wall.0;
        assert_eq!(read(10) - read(50), -40 * 60_000);
        assert_eq!(read(10), 1_792_890_600_000, "2026-10-25T01:10:00Z");
    }

    #[test]
    fn an_instant_needs_neither_day_nor_zone() {
        let at: Timestamp = "2026-05-06T07:08:09Z".parse().expect("an instant");
        let mut clocks = Clocks::new(Vec::new(), TimeZone::UTC);
        assert_eq!(clocks.read(Stamp::Instant(at)).wall.0, at.as_millisecond());
        clocks.begin_anew();
        assert_eq!(clocks.read(Stamp::Instant(at)).mono.as_millis(), 0);
    }
}
