//! How far the server's clock is from ours. A token that is refused meanwhile may be a good one: whoever checks when it was made and how long it
//! lasts needs a clock that is right.

use super::retry_after::http_date;
use jiff::Timestamp;
use longshore_core::time::UnixMillis;
use reqwest::header::{DATE, HeaderMap};
use std::fmt;

/// Clocks that are further apart than this make a refused token doubtful: 5 min, in seconds.
const DOUBTFUL: i64 = 300;
/// From here on it is worth a word, in seconds.
const WORTH_A_WORD: i64 = 60;

/// Seconds by which the server's clock is ahead of ours; negative if ours is ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Skew(i64);

impl Skew {
    /// From what the server's clock says now.
    pub(super) fn of(server: UnixMillis) -> Self {
        Self(server.0.saturating_sub(Timestamp::now().as_millisecond()) / 1000)
    }

    /// From the headers of an answer that has just come.
    pub(super) fn told(headers: &HeaderMap) -> Option<Self> {
        let date = headers.get(DATE).and_then(|value| value.to_str().ok()).and_then(http_date)?;
        Some(Self::of(UnixMillis(date.as_millisecond())))
    }

    /// Whether a token may be refused because of it.
    pub(crate) const fn is_doubtful(self) -> bool {
        self.0.unsigned_abs() > DOUBTFUL.unsigned_abs()
    }

    pub(super) const fn is_worth_a_word(self) -> bool {
        self.0.unsigned_abs() >= WORTH_A_WORD.unsigned_abs()
    }
}

/// "about 2 h ahead", as seen from here.
impl fmt::Display for Skew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.unsigned_abs();
        let (unit, name) = match seconds {
            0..100 => (1, "s"),
            100..5_400 => (60, "min"),
            5_400..172_800 => (3_600, "h"),
            _ => (86_400, "days"),
        };
        let direction = if self.0 < 0 { "behind" } else { "ahead" };
        write!(f, "about {} {name} {direction}", (seconds + unit / 2) / unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bug_26_the_words_are_for_people_and_five_minutes_are_the_border() {
        for (seconds, words) in [
            (7_200, "about 2 h ahead"),
            (7_170, "about 2 h ahead"),
            (-310, "about 5 min behind"),
            (59, "about 59 s ahead"),
            (400_000, "about 5 days ahead"),
            (i64::MIN, "about 106751991167301 days behind"),
        ] {
            assert_eq!(Skew(seconds).to_string(), words);
        }
        assert!(!Skew(300).is_doubtful() && Skew(301).is_doubtful() && Skew(-301).is_doubtful());
    }
}
