//! The times of a log as the clocks of a trace.
//!
//! A text line has the local time of day and nothing else: neither a date nor a zone. The date of the last line is known (from the name of a
//! log that was put aside, or from when the file was changed last, unless a person says it), and each time that the clock jumps back by hours a day
//! has passed. A smaller jump back is a clock that somebody set, or the end of summer time: then no time passes.

use super::line::Stamp;
use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use longshore_core::time::{Instant, Now, UnixMillis};

/// A clock that goes back by more than this has passed midnight.
const MIDNIGHT: i64 = 12 * 3600 * 1000;

/// Which days the lines are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Day {
    /// The first line is of this day.
    First(Date),
    /// The last line is of this day.
    Last(Date),
}

/// Turns stamps, in the order of the log, into readings of both clocks.
#[derive(Debug)]
pub(super) struct Clocks {
    zone: TimeZone,
    day: Date,
    last_clock: Option<Time>,
    /// The last wall time, and the monotonic time that was given for it.
    last: Option<(i64, u64)>,
}

impl Clocks {
    /// Clocks for these lines.
    pub(super) fn new(stamps: impl Iterator<Item = Stamp>, day: Day, zone: TimeZone) -> Self {
        let day = match day {
            Day::First(date) => date,
            Day::Last(date) => {
                let clocks = stamps.filter_map(|stamp| match stamp {
                    Stamp::Clock(time) => Some(time),
                    Stamp::Instant(_) => None,
                });
                let (mut passed, mut before) = (0_i64, None);
                for time in clocks {
                    passed += i64::from(before.is_some_and(|before| is_next_day(before, time)));
                    before = Some(time);
                }
                // A log of more days than the calendar has is none.
                date.checked_sub(Span::new().days(passed.min(1_000_000))).unwrap_or(date)
            }
        };
        Self { zone, day, last_clock: None, last: None }
    }

    /// Reads both clocks: the monotonic one counts from the first reading, and never goes back.
    pub(super) fn read(&mut self, stamp: Stamp) -> Now {
        let wall = match stamp {
            Stamp::Instant(instant) => instant.as_millisecond(),
            Stamp::Clock(time) => self.on_its_day(time),
        };
        let mono = match self.last {
            None => 0,
            Some((before, mono)) => {
                mono.saturating_add(u64::try_from(wall.saturating_sub(before)).unwrap_or(0))
            }
        };
        self.last = Some((wall, mono));
        Now::new(Instant::from_millis(mono), UnixMillis(wall))
    }

    /// Counts from zero again: another process began.
    pub(super) fn begin_anew(&mut self) {
        if let Some((_, mono)) = &mut self.last {
            *mono = 0;
        }
    }

    fn on_its_day(&mut self, time: Time) -> i64 {
        if self.last_clock.is_some_and(|before| is_next_day(before, time)) {
            self.day = self.day.tomorrow().unwrap_or(self.day);
        }
        self.last_clock = Some(time);
        // At the very ends of the calendar there are times that are none: there it stands still.
        let edge = if self.day.year() < 0 { Timestamp::MIN } else { Timestamp::MAX };
        let at = self.zone.to_timestamp(self.day.to_datetime(time));
        // Milliseconds of the very last second are refused where they are read.
        at.map_or(edge.as_second() * 1000, Timestamp::as_millisecond)
    }
}

fn is_next_day(before: Time, now: Time) -> bool {
    millis(before) - millis(now) > MIDNIGHT
}

fn millis(time: Time) -> i64 {
    let seconds = i64::from(time.hour()) * 3600 + i64::from(time.minute()) * 60 + i64::from(time.second());
    seconds * 1000 + i64::from(time.millisecond())
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::{date, time};

    fn readings(day: Day, zone: &str, times: &[(i8, i8, i8)]) -> Vec<(u64, String)> {
        let stamps: Vec<Stamp> = times.iter().map(|(h, m, s)| Stamp::Clock(time(*h, *m, *s, 0))).collect();
        let zone = TimeZone::posix(zone).expect("a zone");
        let mut clocks = Clocks::new(stamps.iter().copied(), day, zone);
        let read = |stamp: &Stamp| {
            let now = clocks.read(*stamp);
            let wall = Timestamp::from_millisecond(now.wall.0).expect("in the calendar");
            (now.mono.as_millis() / 1000, wall.to_string())
        };
        stamps.iter().map(read).collect()
    }

    #[test]
    fn the_day_is_counted_from_either_end() {
        let want = vec![
            (0, "2026-03-01T23:59:00Z".to_owned()),
            (120, "2026-03-02T00:01:00Z".to_owned()),
            (120 + 86_400 - 60, "2026-03-03T00:00:00Z".to_owned()),
        ];
        let times = [(23, 59, 0), (0, 1, 0), (0, 0, 0)];
        // From 00:01 to 00:00 nobody can tell a day from a clock that was set: it takes a line in between.
        let with_noon = [times[0], times[1], (12, 30, 0), times[2]];
        let mut got = readings(Day::First(date(2026, 3, 1)), "UTC0", &with_noon);
        got.remove(2);
        assert_eq!(got, want);
        let mut got = readings(Day::Last(date(2026, 3, 3)), "UTC0", &with_noon);
        got.remove(2);
        assert_eq!(got, want);
    }

    #[test]
    fn behind_the_end_of_the_calendar_time_stands_still() {
        let day = Day::First(date(9999, 12, 29));
        let got = readings(day, "XXX12", &[(23, 0, 0), (10, 0, 0), (23, 30, 0), (10, 0, 0)]);
        let wall: Vec<&str> = got.iter().map(|(_, wall)| &wall[..10]).collect();
        assert_eq!(wall, ["9999-12-30"; 4], "and not 1970: {got:?}");
        assert!(got.is_sorted(), "{got:?}");
    }

    #[test]
    fn time_never_goes_back_when_the_clock_does() {
        let got = readings(Day::First(date(2026, 3, 1)), "UTC0", &[(10, 0, 0), (9, 0, 0), (9, 0, 5)]);
        let mono: Vec<u64> = got.iter().map(|(mono, _)| *mono).collect();
        assert_eq!(mono, [0, 0, 5]);
        assert_eq!(got[1].1, "2026-03-01T09:00:00Z", "the wall clock says what it said");
    }

    #[test]
    fn a_zone_is_heeded_also_on_the_day_on_which_its_clock_is_changed() {
        // 02:30 does not exist on that day in Berlin, and the clock goes on at 03:00.
        let got =
            readings(Day::First(date(2026, 3, 29)), "CET-1CEST,M3.5.0,M10.5.0/3", &[(1, 59, 59), (3, 0, 0)]);
        assert_eq!(got, [(0, "2026-03-29T00:59:59Z".to_owned()), (1, "2026-03-29T01:00:00Z".to_owned())]);
    }

    #[test]
    fn an_instant_needs_neither_day_nor_zone() {
        let at: Timestamp = "2026-05-06T07:08:09Z".parse().expect("an instant");
        let mut clocks = Clocks::new([].into_iter(), Day::First(date(2000, 1, 1)), TimeZone::UTC);
        assert_eq!(clocks.read(Stamp::Instant(at)).wall.0, at.as_millisecond());
        clocks.begin_anew();
        assert_eq!(clocks.read(Stamp::Instant(at)).mono.as_millis(), 0);
    }
}
