//! The days of lines, by all that may be known of them.

use super::clock::Clocks;
use super::days::{Days, Part, Until, Whence, days};
use super::heard::Heard;
use super::line::Line;
use super::said::Said;
use jiff::civil::{Date, date};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use proptest::collection::vec;
use proptest::prelude::*;

/// Time in Berlin, also where no zones are installed.
const BERLIN: &str = "CET-1CEST,M3.5.0,M10.5.0/3";

fn at(text: &str) -> Timestamp {
    text.parse().expect("an instant")
}

fn written(text: &str) -> Until {
    Until::Written(at(text))
}

fn named(text: &str) -> Until {
    Until::Named(at(text))
}

/// Lines that are words apart: `15:04:05`, with a `!` behind it where a process begins, or a date and a time as JSON has it.
fn read(logs: &[(&str, Until)]) -> (Vec<Heard>, Vec<Part>) {
    let (mut lines, mut parts) = (Vec::new(), Vec::new());
    for (text, until) in logs {
        let start = lines.len();
        for word in text.split_whitespace() {
            let (time, message) =
                word.strip_suffix('!').map_or((word, "m"), |time| (time, "starting daemon"));
            let line = if time.contains('T') {
                format!(r#"{{"time":"{time}","level":"INFO","msg":"{message}"}}"#)
            } else {
                format!("{time}.000 INF {message}")
            };
            let line = Line::read(&line).expect("a line");
            lines.push(Heard::of(&line, Said::by(&line), lines.len() as u64 + 1));
        }
        parts.push(Part { lines: start..lines.len(), until: *until });
    }
    (lines, parts)
}

/// What the wall clock showed at each line, and what else was found.
fn found(zone: &str, first: Option<Date>, logs: &[(&str, Until)]) -> (Vec<String>, Days) {
    let zone = TimeZone::posix(zone).expect("a zone");
    let (lines, parts) = read(logs);
    let days = days(&lines, &parts, first, &zone);
    let mut clocks = Clocks::new(days.from.clone(), zone);
    let wall = |line: &Heard| {
        let wall = Timestamp::from_millisecond(clocks.read(line.stamp).wall.0).expect("in the calendar");
        format!("{wall:.0}").replace(":00Z", "")
    };
    (lines.iter().map(wall).collect(), days)
}

/// The days of the month of each line, in UTC.
fn days_of(first: Option<Date>, logs: &[(&str, Until)]) -> (Vec<u8>, Days) {
    let (wall, days) = found("UTC0", first, logs);
    (wall.iter().map(|wall| wall[8..10].parse().expect("a day")).collect(), days)
}

const FIRST: Date = date(2026, 3, 1);

#[test]
fn the_day_is_counted_from_either_end() {
    let times = "23:59:00 00:01:00 12:30:00 00:00:00";
    // From 00:01 to 00:00 nobody can tell a day from a clock that was set: it takes a line in between.
    for (first, until) in [(Some(FIRST), "2030-01-01T00:00:00Z"), (None, "2026-03-03T00:00:00Z")] {
        let (got, days) = days_of(first, &[(times, written(until))]);
        assert_eq!(got, [1, 2, 2, 3]);
        assert_eq!((days.nights.count, days.set.count), (0, 0));
    }
}

#[test]
fn behind_the_end_of_the_calendar_time_stands_still() {
    let times = "23:00:00 10:00:00 23:30:00 10:00:00";
    let (got, _) = found("XXX12", Some(date(9999, 12, 29)), &[(times, written("2026-03-03T00:00:00Z"))]);
    assert!(
        got.iter().all(|wall| wall.starts_with("9999-12-30")) && got.is_sorted(),
        "and not 1970: {got:?}"
    );
}

#[test]
fn a_quiet_night_is_no_clock_that_was_set_back() {
    for (evening, morning) in [("17:30", "08:00"), ("19:00", "08:00"), ("20:00", "08:00"), ("11:30", "08:00")]
    {
        let log = format!("{evening}:00 {morning}:00");
        // The evening would be later than the file.
        let (got, days) = days_of(None, &[(&log, written("2026-03-02T08:00:01Z"))]);
        assert_eq!((got, days.nights.count), (vec![1, 2], 0), "{log}");
        // Nothing says so but that clocks are seldom set back by hours.
        let more = format!("{log} 23:00:00");
        let (got, days) = days_of(None, &[(&more, written("2026-03-02T23:00:01Z"))]);
        assert_eq!((got, days.nights.count), (vec![1, 2, 2], 1), "{more}");
        assert_eq!(days.nights.first.map(|(line, _)| line), Some(2));
        let (got, days) = days_of(Some(FIRST), &[(&more, Until::Now(at("2030-01-01T00:00:00Z")))]);
        assert_eq!((got, days.nights.count), (vec![1, 2, 2], 1), "{more}");
        // Both ends are known.
        let (got, days) = days_of(Some(FIRST), &[(&more, written("2026-03-02T23:00:01Z"))]);
        assert_eq!((got, days.nights.count), (vec![1, 2, 2], 0), "{more}");
        // So are these, and there is no room for a night.
        let (got, days) = days_of(Some(FIRST), &[(&more, written("2026-03-01T23:00:01Z"))]);
        assert_eq!((got, days.nights.count, days.set.count), (vec![1, 1, 1], 0, 1), "{more}");
    }
}

#[test]
fn of_two_nights_of_which_one_was_none_it_is_that_in_which_time_goes_back_less() {
    let log = "22:00:00 12:00:00 20:00:00 09:00:00 10:00:00";
    let (got, days) = days_of(Some(FIRST), &[(log, written("2026-03-02T10:00:00Z"))]);
    assert_eq!(got, [1, 1, 1, 2, 2], "by ten hours, and by eleven");
    assert_eq!((days.nights.count, days.set.first), (0, Some((2, 10 * 3_600_000))));
    // If the end fits to nothing it is not believed.
    let (got, _) = days_of(Some(FIRST), &[(log, written("2020-01-01T10:00:00Z"))]);
    assert_eq!(got, [1, 2, 2, 3, 3]);
}

#[test]
fn a_clock_that_was_set_back_a_little_is_that() {
    let (got, days) = days_of(None, &[("12:00:00 10:00:00 13:00:00", written("2026-03-02T13:00:00Z"))]);
    assert_eq!((got, days.set.first), (vec![2, 2, 2], Some((2, 7_200_000))));
    // Now the line before would be later than the file.
    let (got, days) = days_of(None, &[("12:00:00 10:00:00 10:30:00", written("2026-03-02T10:30:00Z"))]);
    assert_eq!((got, days.set.count, days.nights.count), (vec![1, 2, 2], 0, 0));
    // By some minutes it is set back also then.
    let (got, days) = days_of(None, &[("12:00:00 11:45:00 11:46:00", written("2026-03-02T11:46:00Z"))]);
    assert_eq!((got, days.set.count), (vec![2, 2, 2], 1));
    // Lines that are written side by side.
    let (_, days) = days_of(None, &[("12:00:01 12:00:00 12:00:02", written("2026-03-02T12:00:02Z"))]);
    assert_eq!((days.set.count, days.from.len()), (0, 1));
}

#[test]
fn between_two_processes_a_day_may_pass() {
    let until = written("2026-03-02T20:00:00Z");
    let (got, days) = days_of(None, &[("09:00:00! 10:00:00 09:00:00! 20:00:00", until)]);
    assert_eq!((got, days.nights.first), (vec![1, 1, 2, 2], Some((3, 3_600_000))));
    let (got, days) = days_of(None, &[("09:00:00! 10:00:00 09:55:00! 20:00:00", until)]);
    assert_eq!((got, days.set.count), (vec![2, 2, 2, 2], 1));
}

#[test]
fn no_line_is_later_than_its_file() {
    let (got, _) = days_of(None, &[("22:00:00 23:50:00", written("2026-03-02T08:00:00Z"))]);
    assert_eq!(got, [1, 1], "it is of the evening before");
    let (got, _) = days_of(None, &[("22:00:00 23:50:00", written("2026-03-02T23:49:58Z"))]);
    assert_eq!(got, [2, 2], "clocks of file systems are not exact");
}

#[test]
fn each_log_that_was_put_aside_says_its_date() {
    let now = written("2026-12-24T12:00:00Z");
    let (got, days) = days_of(
        None,
        &[
            ("20:00:00 03:00:00", named("2026-11-05T03:00:00Z")),
            ("01:00:00 02:59:00", named("2026-11-20T03:00:00Z")),
            ("22:00:00 02:59:59", named("2026-11-29T03:00:00Z")),
            // It goes on where that was put aside, whenever it was copied.
            ("03:00:00 23:00:00 01:00:00", now),
        ],
    );
    assert_eq!(got, [4, 5, 20, 20, 28, 29, 29, 29, 30]);
    assert_eq!(days.whence, Whence { names: true, ..Whence::default() });
    // One that does not go on there is dated by its own time.
    let (got, days) =
        days_of(None, &[("02:00:00", named("2026-11-05T03:00:00Z")), ("11:00:00 12:00:00", now)]);
    assert_eq!(got, [5, 24, 24]);
    assert_eq!(days.whence, Whence { names: true, files: true, ..Whence::default() });
    // The name is in UTC, the line is not.
    let (got, _) = found("XXX-5", None, &[("04:59:59 05:00:00", named("2026-11-05T00:00:01Z"))]);
    assert_eq!(got, ["2026-11-04T23:59:59Z", "2026-11-05T00:00"]);
    // A day that is said by hand is that of the first log only, if the names can be.
    let logs = [("02:00:00", named("2026-03-02T03:00:00Z")), ("02:00:00", named("2026-03-08T03:00:00Z"))];
    assert_eq!(days_of(Some(FIRST), &logs).0, [1, 8]);
    assert_eq!(days_of(Some(date(2026, 3, 20)), &logs).0, [20, 20], "they cannot: it goes on");
}

#[test]
fn a_night_that_the_names_of_two_logs_leave_no_room_for_is_none() {
    let (got, days) = days_of(
        None,
        &[
            ("01:00:00", named("2026-03-02T03:00:00Z")),
            ("03:00:00 20:00:00 15:00:00 22:00:00", named("2026-03-02T22:00:00Z")),
        ],
    );
    assert_eq!((got, days.set.count, days.nights.count), (vec![2, 2, 2, 2, 2], 1, 0));
}

#[test]
fn logs_without_a_date_are_dated_by_their_files_unless_those_are_copies() {
    let logs = |a, b| [("20:00:00 21:00:00", written(a)), ("09:00:00 10:00:00", written(b))];
    let (own, _) = days_of(None, &logs("2026-03-04T21:00:00Z", "2026-03-20T10:00:00Z"));
    assert_eq!(own, [4, 4, 20, 20]);
    let (copied, _) = days_of(None, &logs("2026-03-20T10:05:00Z", "2026-03-20T10:05:00Z"));
    assert_eq!(copied, [19, 19, 20, 20]);
}

#[test]
fn lines_that_have_a_date_tell_that_of_those_around_them() {
    let until = written("2026-06-01T00:00:00Z");
    let log = "23:00:00 01:00:00 2026-03-05T02:00:00Z 23:00:00 01:00:00";
    let whence = Whence { lines: true, ..Whence::default() };
    let (got, days) = days_of(None, &[(log, until)]);
    assert_eq!((got, days.whence), (vec![4, 5, 5, 5, 6], whence));
    let (got, _) = days_of(Some(FIRST), &[(log, until)]);
    assert_eq!(got, [4, 5, 5, 5, 6], "what a line says is better than what anybody says");
    let (got, days) = days_of(None, &[("2026-03-05T02:00:00Z 2026-03-06T02:00:00", until)]);
    assert_eq!((got, days), (vec![5, 6], Days::default()), "no line is without one");
    let (got, _) = found("XXX-5", None, &[("2026-03-06T02:00:00", until)]);
    assert_eq!(got, ["2026-03-05T21:00"], "in the zone that is given");
}

#[test]
fn the_hour_that_comes_twice_is_no_clock_that_was_set() {
    let log = "01:30:00 02:50:00 02:10:00 02:50:00 03:10:00";
    let (got, days) = found(BERLIN, None, &[(log, written("2026-10-25T02:10:00Z"))]);
    let want = ["24T23:30", "25T00:50", "25T01:10", "25T01:50", "25T02:10"];
    assert_eq!(got, want.map(|wall| format!("2026-10-{wall}")));
    assert_eq!((days.set.count, days.nights.count), (0, 0));
    // Also where another process begins in it, and if the file is of its second time.
    let (got, days) = found(BERLIN, None, &[("02:50:00 02:10:00!", written("2026-10-25T01:10:00Z"))]);
    assert_eq!(got, ["2026-10-25T00:50", "2026-10-25T01:10"]);
    assert_eq!(days.nights.count, 0);
    // On any other day it is.
    let (_, days) = found(BERLIN, None, &[("02:50:00 02:10:00 04:00:00", written("2026-10-26T03:00:00Z"))]);
    assert_eq!(days.set.count, 1);
}

/// Seconds between the lines of a log that is never silent for as long as a day, in three files.
fn gaps() -> impl Strategy<Value = (i64, Vec<i64>, [usize; 2])> {
    (0..200_000_000_i64, vec(prop_oneof![0..100_i64, 0..75_000_i64], 3..60)).prop_flat_map(|(from, gaps)| {
        let all = gaps.len();
        (Just(from), Just(gaps), [1..all, 1..all])
    })
}

proptest! {
    /// What the lines do not say is found again, from either end, whatever the silence was.
    #[test]
    fn silence_of_up_to_twenty_hours_costs_no_day((from, gaps, mut cuts) in gaps(), by_hand in any::<bool>(), names in any::<bool>()) {
        let begin = at("2020-01-01T00:00:00Z") + SignedDuration::from_secs(from);
        let mut times = vec![begin];
        for gap in gaps {
            times.push(*times.last().expect("one") + SignedDuration::from_secs(gap));
        }
        cuts.sort_unstable();
        let bounds = [0, cuts[0], cuts[1], times.len()];
        let texts: Vec<(String, Until)> = bounds.windows(2).filter(|two| two[0] < two[1]).map(|two| {
            let of = &times[two[0]..two[1]];
            let last = *of.last().expect("a line");
            let until = if names && two[1] < times.len() { Until::Named(last) } else { Until::Written(last) };
            (of.iter().map(|at| at.strftime("%H:%M:%S ").to_string()).collect(), until)
        }).collect();
        let logs: Vec<(&str, Until)> = texts.iter().map(|(text, until)| (text.as_str(), *until)).collect();
        let first = by_hand.then(|| TimeZone::UTC.to_datetime(begin).date());
        let (lines, parts) = read(&logs);
        let mut clocks = Clocks::new(days(&lines, &parts, first, &TimeZone::UTC).from, TimeZone::UTC);
        let got: Vec<i64> = lines.iter().map(|line| clocks.read(line.stamp).wall.0).collect();
        let want: Vec<i64> = times.iter().map(|at| at.as_millisecond()).collect();
        prop_assert_eq!(got, want);
    }

    /// Whatever the times and the files are, each line has a day, and no day comes before an earlier one of its log.
    #[test]
    fn any_times_have_days(hours in vec((0..24_u8, 0..60_u8, 0..12_u8), 1..40), cut in any::<prop::sample::Index>(), until in -10_000_000_000..200_000_000_000_i64, how in 0..3_u8, by_hand in any::<bool>()) {
        let word = |(hour, minute, odd): &(u8, u8, u8)| match odd {
            0 => format!("{hour:02}:{minute:02}:00!"),
            1 => format!("2026-10-25T{hour:02}:{minute:02}:00Z"),
            2 => format!("2026-10-25T{hour:02}:{minute:02}:00"),
            _ => format!("{hour:02}:{minute:02}:00"),
        };
        let words: Vec<String> = hours.iter().map(word).collect();
        let (one, other) = words.split_at(cut.index(words.len()));
        let until = Timestamp::from_second(until).expect("in the calendar");
        let until = [Until::Named(until), Until::Written(until), Until::Now(until)][usize::from(how)];
        let (one, other) = (one.join(" "), other.join(" "));
        let (lines, parts) = read(&[(&one, until), (&other, until)]);
        let zone = TimeZone::posix(BERLIN).expect("a zone");
        let days = days(&lines, &parts, by_hand.then_some(FIRST), &zone);
        prop_assert!(days.from.is_sorted_by_key(|(at, _)| *at));
        for part in &parts {
            let mut dated = lines[part.lines.clone()].iter().filter(|line| !matches!(line.stamp, super::line::Stamp::Clock(_)));
            let of: Vec<Date> = days.from.iter().filter(|(at, _)| part.lines.contains(at)).map(|(_, day)| *day).collect();
            prop_assert!(dated.next().is_some() || of.is_sorted(), "{:?}", of);
        }
        let first = lines.iter().position(|line| matches!(line.stamp, super::line::Stamp::Clock(_)));
        prop_assert!(first.is_none_or(|first| days.from.first().is_some_and(|(at, _)| *at == first)));
    }
}
