//! A time axis with units that people use.

/// Distances between lines of a time axis, in milliseconds.
const STEPS: [u64; 30] = [
    1,
    2,
    5,
    10,
    20,
    50,
    100,
    200,
    500,
    SECOND,
    2 * SECOND,
    5 * SECOND,
    10 * SECOND,
    15 * SECOND,
    30 * SECOND,
    MINUTE,
    2 * MINUTE,
    5 * MINUTE,
    10 * MINUTE,
    15 * MINUTE,
    30 * MINUTE,
    HOUR,
    2 * HOUR,
    3 * HOUR,
    6 * HOUR,
    12 * HOUR,
    DAY,
    2 * DAY,
    5 * DAY,
    10 * DAY,
];
const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// The lines of an axis from `begin` to `end` milliseconds: at most `most` of them, and the distance between two.
pub(super) fn lines(begin: u64, end: u64, most: u64) -> (u64, impl Iterator<Item = u64>) {
    let (most, long) = (most.max(1), end.saturating_sub(begin));
    let fits = |step: &u64| long / step < most;
    let step = STEPS.into_iter().find(fits).unwrap_or_else(|| (long / most / DAY + 1) * DAY);
    (step, (begin.div_ceil(step)..=end / step).map(move |i| i * step))
}

/// A time for people, as exact as a distance of `step` milliseconds asks for: `250 ms`, `1.5 s`, `2 min 05 s`, `3 h 20 min`, `4 d 06 h`.
pub(super) fn time(at: u64, step: u64) -> String {
    let (d, h, m, s, ms) = (at / DAY, at / HOUR % 24, at / MINUTE % 60, at / SECOND % 60, at % SECOND);
    if at == 0 {
        return "0".into();
    }
    if step < SECOND {
        let places = if step.is_multiple_of(100) {
            1
        } else if step.is_multiple_of(10) {
            2
        } else {
            3
        };
        let part = ms / 10_u64.pow(3 - places as u32);
        return match at {
            0..SECOND => format!("{at} ms"),
            SECOND..MINUTE => format!("{s}.{part:0places$} s"),
            MINUTE..HOUR => format!("{m} min {s:02}.{part:0places$} s"),
            _ => format!("{} h {m:02} min {s:02}.{part:0places$} s", at / HOUR),
        };
    }
    match at {
        0..MINUTE => format!("{s} s"),
        MINUTE..HOUR if s == 0 => format!("{m} min"),
        MINUTE..HOUR => format!("{m} min {s:02} s"),
        HOUR..DAY if step < MINUTE => format!("{h} h {m:02} min {s:02} s"),
        HOUR..DAY if m == 0 => format!("{h} h"),
        HOUR..DAY => format!("{h} h {m:02} min"),
        _ if step < MINUTE => format!("{d} d {h:02} h {m:02} min {s:02} s"),
        _ if step < HOUR => format!("{d} d {h:02} h {m:02} min"),
        _ if h == 0 => format!("{d} d"),
        _ => format!("{d} d {h:02} h"),
    }
}

/// How long something took, to three digits or so.
pub(super) fn duration(ms: u64) -> String {
    let step = match ms {
        0 => return "0 ms".into(),
        1..10_000 => 10,
        10_000..MINUTE => 100,
        MINUTE..HOUR => SECOND,
        HOUR..DAY => MINUTE,
        DAY.. => HOUR,
    };
    time(ms, step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_axis_has_few_lines_that_can_be_told_apart(
            begin in 0..1_u64 << 40, early in 0..41_u32, long in 0..u64::MAX / 4, shift in 0..62_u32, most in 1..20_u64,
        ) {
            let begin = begin >> early;
            let end = begin + (long >> shift);
            let (step, lines) = lines(begin, end, most);
            let lines: Vec<_> = lines.collect();
            // A part of an axis may lie between two lines, where there is to be no more than one or two.
            prop_assert!((usize::from(begin == 0 || most > 2)..=most as usize).contains(&lines.len()));
            prop_assert!(lines.iter().all(|at| begin <= *at && *at <= end));
            let words: Vec<_> = lines.iter().map(|at| time(*at, step)).collect();
            prop_assert!(words.windows(2).all(|two| two[0] != two[1]), "{:?}", words);
        }
    }

    #[test]
    fn times_are_written_as_people_write_them() {
        let cases = [
            (0, 1, "0"),
            (250, 50, "250 ms"),
            (1_500, 500, "1.5 s"),
            (1_250, 50, "1.25 s"),
            (61_005, 5, "1 min 01.005 s"),
            (12_000, 1_000, "12 s"),
            (125_000, 5_000, "2 min 05 s"),
            (12_000_000, 600_000, "3 h 20 min"),
            (4 * DAY + 6 * HOUR, HOUR, "4 d 06 h"),
            (2 * DAY, DAY, "2 d"),
            (2 * DAY + 5 * SECOND, SECOND, "2 d 00 h 00 min 05 s"),
        ];
        for (at, step, text) in cases {
            assert_eq!(time(at, step), text);
        }
        assert_eq!(duration(1_234), "1.23 s");
        assert_eq!(duration(45), "45 ms");
        assert_eq!(duration(3_725_000), "1 h 02 min");
    }
}
