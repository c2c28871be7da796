//! Durations as the daemon's users write them: Go's spelling, in the environment also with days.

use std::fmt;
use std::time::Duration;

const NANOSECOND: u64 = 1;
const SECOND: u64 = 1_000_000_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Whether `d` (24 hours) is a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Days {
    /// `1d`, `1.5d` and `1d12h` are durations: the environment.
    Allowed,
    /// A `d` is no unit: flags and the config file.
    Refused,
}

/// A duration with a sign, in nanoseconds; at most about 292 years either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SignedNanos(pub i64);

impl SignedNanos {
    /// The duration, unless it is negative.
    pub fn non_negative(self) -> Option<Duration> {
        u64::try_from(self.0).ok().map(Duration::from_nanos)
    }
}

/// Reads `200ms`, `1h30m`, `-1.5h`, `.5s`, `0`; a number without a unit is none (but `0` is).
///
/// # Errors
/// Says in words what is wrong with the text; the caller knows where the text came from.
pub fn parse(text: &str, days: Days) -> Result<SignedNanos, &'static str> {
    let (negative, mut rest) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Ok(SignedNanos(0));
    }
    if rest.is_empty() {
        return Err("there is no number");
    }
    let mut total: u128 = 0;
    while !rest.is_empty() {
        let (nanos, after) = term(rest, days)?;
        total = total.checked_add(nanos).ok_or(TOO_LONG)?;
        rest = after;
    }
    let magnitude = i64::try_from(total).map_err(|_| TOO_LONG)?;
    Ok(SignedNanos(if negative { -magnitude } else { magnitude }))
}

const TOO_LONG: &str = "it is more than 292 years";

/// One number with its unit, and what follows it.
fn term(text: &str, days: Days) -> Result<(u128, &str), &'static str> {
    let digits = |s: &str| s.bytes().take_while(u8::is_ascii_digit).count();
    let whole_len = digits(text);
    let (whole, mut rest) = text.split_at(whole_len);
    let mut fraction = "";
    if let Some(after_point) = rest.strip_prefix('.') {
        (fraction, rest) = after_point.split_at(digits(after_point));
    }
    if whole.is_empty() && fraction.is_empty() {
        return Err("a number is missing");
    }
    let unit_len = rest.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(unit_len);
    let scale = u128::from(unit_nanos(unit, days)?);
    let whole = if whole.is_empty() { 0 } else { whole.parse::<u64>().map_err(|_| TOO_LONG)? };
    // 18 digits are finer than a nanosecond of a day: what follows them changes nothing.
    let fraction = &fraction[..fraction.len().min(18)];
    let part = match fraction.parse::<u128>() {
        Ok(n) => n * scale / 10u128.pow(u32::try_from(fraction.len()).unwrap_or(18)),
        Err(_) => 0,
    };
    Ok((u128::from(whole) * scale + part, rest))
}

fn unit_nanos(unit: &str, days: Days) -> Result<u64, &'static str> {
    Ok(match unit {
        "ns" => NANOSECOND,
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => SECOND,
        "m" => MINUTE,
        "h" => HOUR,
        "d" if days == Days::Allowed => DAY,
        "d" => return Err("days are no unit here, write hours"),
        "" => return Err("a unit is missing"),
        _ => return Err("the unit is none of ns, us, ms, s, m, h"),
    })
}

/// Prints a duration as Go does: `0s`, `500ms`, `1.5s`, `1m0s`, `2h0m0s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GoDuration(pub Duration);

impl fmt::Display for GoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        if nanos == 0 {
            return f.write_str("0s");
        }
        if nanos < u128::from(SECOND) {
            let (unit, size) = match nanos {
                0..1_000 => ("ns", 1),
                1_000..1_000_000 => ("\u{b5}s", 1_000),
                _ => ("ms", 1_000_000),
            };
            return write!(f, "{}{}{unit}", nanos / size, Fraction(nanos % size, size));
        }
        let seconds = self.0.as_secs();
        let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
        if hours > 0 {
            write!(f, "{hours}h{minutes}m")?;
        } else if minutes > 0 {
            write!(f, "{minutes}m")?;
        }
        write!(f, "{}{}s", seconds % 60, Fraction(u128::from(self.0.subsec_nanos()), u128::from(SECOND)))
    }
}

/// `.5` for 500 of 1000, nothing for 0; the second number is a power of ten.
struct Fraction(u128, u128);

impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return Ok(());
        }
        let width = self.1.ilog10() as usize;
        let digits = format!("{:0width$}", self.0);
        write!(f, ".{}", digits.trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nanos(text: &str, days: Days) -> i64 {
        parse(text, days).unwrap_or_else(|e| panic!("{text}: {e}")).0
    }

    #[test]
    fn go_spellings_are_read() {
        let ms = 1_000_000;
        for (text, want) in [
            ("200ms", 200 * ms),
            ("1h30m", 5_400_000 * ms),
            ("1.5h", 5_400_000 * ms),
            (".5s", 500 * ms),
            ("5.s", 5_000 * ms),
            ("+3s", 3_000 * ms),
            ("-1m", -60_000 * ms),
            ("0", 0),
            ("-0", 0),
            ("0s", 0),
            ("1us", 1_000),
            ("1\u{b5}s", 1_000),
            ("1\u{3bc}s2ns", 1_002),
            ("0.100000000000000000000h", 360_000 * ms),
        ] {
            assert_eq!(nanos(text, Days::Refused), want, "{text}");
        }
    }

    #[test]
    fn the_environment_knows_days_and_nothing_else_does() {
        assert_eq!(nanos("1.5d", Days::Allowed), nanos("36h", Days::Refused));
        assert_eq!(nanos("1d12h", Days::Allowed), nanos("36h", Days::Refused));
        assert!(parse("1d", Days::Refused).is_err());
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for bad in [
            "",
            "5",
            "abc",
            "1x",
            "s",
            ".s",
            "-",
            "1h 2m",
            " 1s",
            "1d2",
            "9999999h",
            "1e3s",
            "99999999999999999999s",
        ] {
            assert!(parse(bad, Days::Allowed).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn durations_print_as_go_prints_them() {
        for (ms, want) in [
            (0, "0s"),
            (500, "500ms"),
            (1_500, "1.5s"),
            (2_000, "2s"),
            (60_000, "1m0s"),
            (600_000, "10m0s"),
            (3_605_000, "1h0m5s"),
            (90_000_000, "25h0m0s"),
        ] {
            assert_eq!(GoDuration(Duration::from_millis(ms)).to_string(), want);
        }
        assert_eq!(GoDuration(Duration::from_nanos(1_500)).to_string(), "1.5\u{b5}s");
        assert_eq!(GoDuration(Duration::from_nanos(7)).to_string(), "7ns");
    }
}
