//! Durations as error texts spell them.

use std::fmt;
use std::time::Duration;

/// Shows a duration as `500ms`, `1.5s`, `2m0s` or `1h0m0s`, to the millisecond.
#[derive(Clone, Copy, Debug)]
pub struct Spelled(pub Duration);

impl fmt::Display for Spelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = self.0.as_millis();
        if ms == 0 {
            return f.write_str("0s");
        }
        if ms < 1000 {
            return write!(f, "{ms}ms");
        }
        let (hours, minutes, seconds, rest) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60, ms % 1000);
        if hours > 0 {
            write!(f, "{hours}h")?;
        }
        if ms >= 60_000 {
            write!(f, "{minutes}m")?;
        }
        let fraction = format!("{rest:03}");
        match fraction.trim_end_matches('0') {
            "" => write!(f, "{seconds}s"),
            digits => write!(f, "{seconds}.{digits}s"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_0_1_durations_are_spelled_as_on_the_wire() {
        let cases = [
            (0, "0s"),
            (500, "500ms"),
            (1500, "1.5s"),
            (2000, "2s"),
            (60_000, "1m0s"),
            (600_000, "10m0s"),
            (3_600_000, "1h0m0s"),
            (86_400_000, "24h0m0s"),
            (61_050, "1m1.05s"),
        ];
        for (ms, text) in cases {
            assert_eq!(Spelled(Duration::from_millis(ms)).to_string(), text);
        }
    }
}
