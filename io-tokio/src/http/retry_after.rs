//! How long the server asks us to wait.

use jiff::Timestamp;
use std::time::Duration;

/// The least that is waited when the server asks for a wait.
pub const MIN_RETRY_AFTER: Duration = Duration::from_secs(1);
/// The most that is waited, whatever the server asks for.
pub const MAX_RETRY_AFTER: Duration = Duration::from_mins(5);

/// Reads a date of HTTP.
pub(super) fn http_date(text: &str) -> Option<Timestamp> {
    jiff::fmt::rfc2822::DateTimeParser::new().relaxed_weekday(true).parse_timestamp(text.trim()).ok()
}

/// Reads `Retry-After`: seconds, or a date that is compared with `now`, which should be the server's own clock. The
/// result is between [`MIN_RETRY_AFTER`] and [`MAX_RETRY_AFTER`]; `None` if the text says nothing that can be used.
pub(super) fn retry_after(text: &str, now: Timestamp) -> Option<Duration> {
    let text = text.trim();
    let asked = if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        text.parse().map_or(MAX_RETRY_AFTER, Duration::from_secs)
    } else {
        let wait = http_date(text)?.duration_since(now);
        Duration::try_from(wait).unwrap_or(Duration::ZERO)
    };
    Some(asked.clamp(MIN_RETRY_AFTER, MAX_RETRY_AFTER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bug_28_retry_after_is_obeyed_within_bounds() {
        let now = http_date("Sun, 06 Nov 1994 08:49:37 GMT").expect("a date");
        let wait = |text| retry_after(text, now);
        assert_eq!(wait("7"), Some(Duration::from_secs(7)));
        assert_eq!(wait("0"), Some(MIN_RETRY_AFTER));
        assert_eq!(wait("Sun, 06 Nov 1994 08:49:57 GMT"), Some(Duration::from_secs(20)));
        assert_eq!(wait("Sun, 06 Nov 1994 08:00:00 GMT"), Some(MIN_RETRY_AFTER));
        for ignored in ["-5", "abc", "", "1.5", "7 s"] {
            assert_eq!(wait(ignored), None, "{ignored}");
        }
        for capped in ["999999", "99999999999999999999999", "Sun, 06 Nov 2094 08:49:37 GMT"] {
            assert_eq!(wait(capped), Some(MAX_RETRY_AFTER), "{capped}");
        }
    }
}
