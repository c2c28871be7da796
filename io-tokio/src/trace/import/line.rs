//! One line of the log: a time, a level, a message, and fields.
//!
//! `15:04:05.000 INF a message key=value other="a \"quoted\" value"`, or a JSON object with the same in it. Anything is read without
//! failing: what is no line of the log is told apart from a line of which only a part is there.

use jiff::Timestamp;
use jiff::civil::{DateTime, Time};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::iter::Peekable;
use std::str::Chars;

/// When a line says that it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stamp {
    /// On some day, in some zone.
    Clock(Time),
    /// On this day, in some zone.
    Local(DateTime),
    /// At this instant.
    Instant(Timestamp),
}

/// Where the text of a line ends, as far as it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tail {
    /// Behind a JSON object or a carriage return: all of it is there.
    Whole,
    /// Behind a quote that is closed: its last field is whole.
    Closed,
    /// In a value without quotes. Without a line end it may be half.
    Open,
    /// In a quote that is not closed: its last field is half.
    Quoted,
    /// In front of a value: its last field is whole, and there were more.
    Between,
}

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) stamp: Stamp,
    pub(super) message: String,
    pub(super) fields: Vec<(String, String)>,
    /// Whether it is a warning or an error.
    pub(super) warns: bool,
    /// Whether it is known where its message ends, wherever the line is cut.
    pub(super) named: bool,
    pub(super) tail: Tail,
    /// A number that is the same for the same line.
    pub(super) print: u64,
}

impl Line {
    /// Reads one, without its line end. `None`: it is none.
    pub(super) fn read(text: &str) -> Option<Self> {
        let print = print(text);
        let all = without_escapes(text);
        let text = all.trim_end_matches(['\r', ' ']);
        let trimmed = &all[text.len()..];
        let text = text.trim_start_matches('\u{feff}');
        let line = if text.starts_with('{') { Self::of_json(text) } else { Self::of_text(text) }?;
        let tail = match line.tail {
            Tail::Whole | Tail::Quoted => line.tail,
            tail if trimmed.is_empty() => tail,
            _ if trimmed.contains('\r') => Tail::Whole,
            _ => Tail::Between,
        };
        Some(Self { tail, print, ..line })
    }

    /// Whether it tells all of these fields, each of them whole, or has no more of them, wherever it is cut.
    pub(super) fn tells(&self, fields: &[&str]) -> bool {
        let whole = match self.tail {
            Tail::Whole => return true,
            Tail::Closed | Tail::Between => self.fields.as_slice(),
            Tail::Open | Tail::Quoted => self.fields.split_last().map_or([].as_slice(), |(_, before)| before),
        };
        self.named && fields.iter().all(|key| whole.iter().any(|(name, _)| name == key))
    }

    /// A field that says something.
    pub(super) fn get(&self, key: &str) -> Option<&str> {
        let found = self.fields.iter().find(|(name, _)| name == key)?;
        Some(found.1.as_str()).filter(|value| !value.is_empty())
    }

    fn of_text(text: &str) -> Option<Self> {
        let (time, rest) = text.split_once(' ')?;
        let stamp = Stamp::Clock(clock(time)?);
        let (level, rest) = rest.trim_start().split_once(' ').unwrap_or((rest.trim_start(), ""));
        let warns = level_warns(level)?;
        let (at, named) = fields_begin(rest);
        let message = rest[..at].trim().to_owned();
        let tail = Tail::Between;
        let mut line = Self { stamp, message, fields: Vec::new(), warns, named, tail, print: 0 };
        line.read_fields(&rest[at..]);
        Some(line)
    }

    fn read_fields(&mut self, text: &str) {
        let mut chars = text.chars().peekable();
        loop {
            while chars.next_if_eq(&' ').is_some() {}
            if chars.peek().is_none() {
                return;
            }
            let mut key = String::new();
            while let Some(c) = chars.next_if(|c| !matches!(c, ' ' | '=')) {
                key.push(c);
            }
            if chars.next_if_eq(&'=').is_none() {
                // A word that is no field.
                self.tail = Tail::Between;
                continue;
            }
            let value = if chars.next_if_eq(&'"').is_some() {
                let (value, closed) = quoted(&mut chars);
                self.tail = if closed { Tail::Closed } else { Tail::Quoted };
                value
            } else {
                let mut value = String::new();
                while let Some(c) = chars.next_if(|c| *c != ' ') {
                    value.push(c);
                }
                self.tail = Tail::Open;
                value
            };
            self.fields.push((key, value));
        }
    }

    fn of_json(text: &str) -> Option<Self> {
        let all: Map<String, Value> = serde_json::from_str(text).ok()?;
        let first = |names: [&str; 3]| names.iter().find_map(|name| all.get(*name)?.as_str());
        let time = first(["ts", "time", "timestamp"])?;
        let stamp = time.parse().map(Stamp::Instant).ok();
        let stamp =
            stamp.or_else(|| clock(time).map(Stamp::Clock)).or_else(|| local(time).map(Stamp::Local))?;
        let warns = level_warns(first(["level", "lvl", "severity"])?)?;
        let message = first(["msg", "message", "event"])?.trim().to_owned();
        let fields = all.iter().map(|(key, value)| {
            let value = match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            (key.clone(), value)
        });
        let (fields, tail) = (fields.collect(), Tail::Whole);
        Some(Self { stamp, message, fields, warns, named: true, tail, print: 0 })
    }
}

/// `15:04:05`, with or without a fraction.
fn clock(text: &str) -> Option<Time> {
    // A time of a day has two colons, the first one behind two digits; jiff would take other forms too, and of a date and a time the time.
    let is_one = text.as_bytes().get(2) == Some(&b':') && text.bytes().filter(|b| *b == b':').count() == 2;
    (is_one && text.len() >= 8).then(|| text.parse().ok()).flatten()
}

/// A date and a time, without a zone.
fn local(text: &str) -> Option<DateTime> {
    // A date alone is no time of a line.
    text.contains(':').then(|| text.parse().ok()).flatten()
}

fn print(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.trim_end().trim_start_matches('\u{feff}').hash(&mut hasher);
    hasher.finish()
}

/// Whether a level is that of a warning or an error: `INF`, `INFO`, `info`, `INF+2` are not, `WRN` is. `None`: it is no level.
fn level_warns(text: &str) -> Option<bool> {
    let word = text.split(['+', '-']).next().unwrap_or_default();
    let is_one_of = |levels: [&str; 4]| levels.iter().any(|level| word.eq_ignore_ascii_case(level));
    if is_one_of(["WRN", "WARN", "ERR", "ERROR"]) {
        return Some(true);
    }
    is_one_of(["DBG", "DEBUG", "INF", "INFO"]).then_some(false)
}

/// Where the message ends, and whether that is certain. Every line of the daemon names its component first; where none does, the first word that
/// looks like a field, which may be a word of a message that goes on.
fn fields_begin(text: &str) -> (usize, bool) {
    if let Some(at) = text.find(" component=") {
        return (at, true);
    }
    let mut at = 0;
    for word in text.split_inclusive(' ') {
        if word.split_once('=').is_some_and(|(key, _)| is_key(key)) {
            return (at, false);
        }
        at += word.len();
    }
    (text.len(), false)
}

fn is_key(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'))
}

/// What is between quotes, as Go writes it, and whether the closing one is there.
fn quoted(chars: &mut Peekable<Chars<'_>>) -> (String, bool) {
    let mut value = String::new();
    while let Some(c) = chars.next() {
        match c {
            '"' => return (value, true),
            '\\' => match chars.next() {
                Some('n') => value.push('\n'),
                Some('r') => value.push('\r'),
                Some('t') => value.push('\t'),
                Some('x') => value.push(by_number(chars, 2)),
                Some('u') => value.push(by_number(chars, 4)),
                Some('U') => value.push(by_number(chars, 8)),
                Some(other) => value.push(other),
                None => {}
            },
            other => value.push(other),
        }
    }
    (value, false)
}

fn by_number(chars: &mut Peekable<Chars<'_>>, digits: usize) -> char {
    let mut number = 0;
    for _ in 0..digits {
        let Some(digit) = chars.peek().and_then(|c| c.to_digit(16)) else { break };
        number = number * 16 + digit;
        chars.next();
    }
    char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// Without the colours of a terminal.
fn without_escapes(text: &str) -> Cow<'_, str> {
    if !text.contains('\u{1b}') {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\u{1b}' {
            plain.push(c);
        } else if chars.next_if_eq(&'[').is_some() {
            // Up to the letter that says what is done.
            while chars.next_if(|c| !('@'..='~').contains(c)).is_some() {}
            chars.next();
        }
    }
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::{date, time};

    fn read(text: &str) -> Line {
        Line::read(text).unwrap_or_else(|| panic!("{text:?} is a line"))
    }

    #[test]
    fn message_and_fields_are_told_apart() {
        let line =
            read("07:08:09.010 WRN loops (a, b); x=y component=daemon task=ab12 empty=\"\" n=3 list=[a b]");
        assert_eq!(line.stamp, Stamp::Clock(time(7, 8, 9, 10_000_000)));
        assert_eq!(line.message, "loops (a, b); x=y");
        assert_eq!((line.get("task"), line.get("empty"), line.get("n")), (Some("ab12"), None, Some("3")));
        assert_eq!(line.tail, Tail::Between, "a word behind the last field");
        let bare = read("07:08:09 INF no component here k=v");
        assert_eq!((bare.message.as_str(), bare.get("k")), ("no component here", Some("v")));
        assert_eq!(read("07:08:09.010 ERROR+2 only words").message, "only words");
    }

    #[test]
    fn quotes_are_read_as_go_writes_them() {
        let line = read(r#"07:08:09.010 DBG m component=daemon e="a \"b\"\n\x41\u00e4\\ =" f=g"#);
        assert_eq!((line.get("e"), line.get("f")), (Some("a \"b\"\nAä\\ ="), Some("g")));
        let cut = read(r#"07:08:09.010 DBG m component=daemon task=t e="it was cut he"#);
        assert!(
            cut.tail == Tail::Quoted && cut.get("task") == Some("t") && cut.get("e") == Some("it was cut he")
        );
    }

    #[test]
    fn of_a_line_that_may_be_cut_is_known_what_is_whole() {
        for (rest, tail, told) in [
            ("task=ab12", Tail::Open, false),
            ("task=ab12\u{1b}[0m", Tail::Open, false),
            ("task=ab12\r", Tail::Whole, true),
            ("n=1\r", Tail::Whole, true),
            ("task=ab12 ", Tail::Between, true),
            ("task=ab12 sta", Tail::Between, true),
            ("task=ab12 status=", Tail::Open, true),
            ("task=ab12 e=\"a", Tail::Quoted, true),
            ("task=ab12 e=\"a\"", Tail::Closed, true),
            ("task=\"ab", Tail::Quoted, false),
            ("task=\"ab\\\"", Tail::Quoted, false),
            ("task=\"ab\"", Tail::Closed, true),
            ("task", Tail::Between, false),
        ] {
            let line = read(&format!("07:08:09.010 INF m component=daemon {rest}"));
            assert_eq!((line.tail, line.tells(&["task"])), (tail, told), "{rest:?}");
            assert!(line.tells(&[]), "{rest:?}");
        }
        assert!(!read("07:08:09.010 INF m task=ab12 n=1").tells(&[]), "the message may go on");
    }

    #[test]
    fn colours_carriage_returns_and_marks_of_editors_do_no_harm() {
        let colours = "\u{1b}[2m07:08:09.010\u{1b}[0m \u{1b}[92mINF\u{1b}[0m task completed \u{1b}[2mcomponent=\u{1b}[0mdaemon task=t\r";
        let line = read(colours);
        assert_eq!((line.message.as_str(), line.get("task")), ("task completed", Some("t")));
        assert_eq!(read("\u{feff}07:08:09.010 INF m").message, "m");
    }

    #[test]
    fn json_is_read_with_either_set_of_names() {
        let instant = "2026-03-04T07:08:09.01Z".parse().expect("an instant");
        for text in [
            r#"{"time":"2026-03-04T08:08:09.01+01:00","level":"INFO","msg":"task completed","task":"t","n":3}"#,
            r#"{"ts":"2026-03-04T07:08:09.010Z","level":"info","msg":"task completed","task":"t","n":3}"#,
        ] {
            let line = read(text);
            assert_eq!(line.stamp, Stamp::Instant(instant));
            assert_eq!(
                (line.message.as_str(), line.get("task"), line.get("n")),
                ("task completed", Some("t"), Some("3"))
            );
        }
    }

    #[test]
    fn a_date_without_a_zone_is_kept() {
        for (text, is) in [
            ("2026-03-04T07:08:09.5", Stamp::Local(date(2026, 3, 4).at(7, 8, 9, 500_000_000))),
            ("2026-03-04 07:08:09", Stamp::Local(date(2026, 3, 4).at(7, 8, 9, 0))),
            ("07:08:09.010", Stamp::Clock(time(7, 8, 9, 10_000_000))),
        ] {
            assert_eq!(read(&format!(r#"{{"time":"{text}","level":"INFO","msg":"m"}}"#)).stamp, is, "{text}");
        }
        assert_eq!(Line::read(r#"{"time":"2026-03-04","level":"INFO","msg":"m"}"#), None);
    }

    #[test]
    fn what_is_no_line_of_the_log_is_none() {
        for text in [
            "",
            "goroutine 1 [running]:",
            "25:00:00.000 INF m",
            "07:08:09.010",
            "07:08:09.010 LOUD m",
            "{}",
            "{\"time\":1}",
            "\u{1b}[",
            "panic: x=y",
        ] {
            assert_eq!(Line::read(text), None, "{text:?}");
        }
    }
}
