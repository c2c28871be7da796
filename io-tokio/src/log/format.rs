//! How one event becomes one line.

use super::redact::Redactor;
use jiff::ZonedDateTime;
use std::fmt::Write as _;
use std::str::FromStr;
use tracing::Level;

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// `HH:MM:SS.mmm INF message key=value`, in local time.
    #[default]
    Text,
    /// One JSON object a line, with a full timestamp.
    Json,
}

impl FromStr for LogFormat {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err("text or json"),
        }
    }
}

/// The value of a field, kept apart so that JSON keeps numbers and booleans.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum FieldValue {
    Text(String),
    Signed(i64),
    Unsigned(u64),
    Float(f64),
    Bool(bool),
}

/// Names and values in the order in which they are printed.
pub(super) type Fields = Vec<(&'static str, FieldValue)>;

/// One event with the fields of its spans.
pub(super) struct Record<'a> {
    pub time: &'a ZonedDateTime,
    pub level: Level,
    pub target: &'a str,
    pub message: &'a str,
    /// Those of the outermost span first, those of the event last; a later one of the same name has replaced an
    /// earlier one.
    pub fields: &'a Fields,
}

/// The line with its line end. `colour` is for text on a terminal.
pub(super) fn line(format: LogFormat, record: &Record<'_>, redactor: &Redactor, colour: bool) -> String {
    match format {
        LogFormat::Text => text_line(record, redactor, colour),
        LogFormat::Json => json_line(record, redactor),
    }
}

fn text_line(record: &Record<'_>, redactor: &Redactor, colour: bool) -> String {
    let (name, paint) = match record.level {
        Level::ERROR => ("ERR", "\x1b[31m"),
        Level::WARN => ("WRN", "\x1b[33m"),
        Level::INFO => ("INF", "\x1b[32m"),
        _ => ("DBG", "\x1b[2m"),
    };
    let (paint, dim, plain) = if colour { (paint, "\x1b[2m", "\x1b[0m") } else { ("", "", "") };
    let time = record.time.strftime("%H:%M:%S.%3f");
    let mut line = format!("{dim}{time}{plain} {paint}{name}{plain} ");
    for c in redactor.redact(record.message).chars() {
        push_message_char(&mut line, c);
    }
    for (key, value) in record.fields {
        let _ = write!(line, " {dim}{key}={plain}");
        match value {
            FieldValue::Text(text) => push_value(&mut line, &redactor.redact(text)),
            FieldValue::Signed(n) => line.extend([n.to_string()]),
            FieldValue::Unsigned(n) => line.extend([n.to_string()]),
            FieldValue::Float(n) => line.extend([n.to_string()]),
            FieldValue::Bool(b) => line.extend([b.to_string()]),
        }
    }
    line.push('\n');
    line
}

/// An event is one line whatever its message says, and no message paints the terminal.
fn push_message_char(line: &mut String, c: char) {
    if c.is_control() { push_escaped(line, c) } else { line.push(c) }
}

fn push_value(line: &mut String, text: &str) {
    let quoted = text.is_empty()
        || text
            .contains(|c: char| c.is_whitespace() || c.is_control() || matches!(c, '=' | '"' | '\u{fffd}'));
    if !quoted {
        line.push_str(text);
        return;
    }
    line.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => line.extend(['\\', c]),
            c if c.is_control() => push_escaped(line, c),
            c => line.push(c),
        }
    }
    line.push('"');
}

fn push_escaped(line: &mut String, c: char) {
    match c {
        '\n' => line.push_str("\\n"),
        '\r' => line.push_str("\\r"),
        '\t' => line.push_str("\\t"),
        c if u32::from(c) < 0x80 => {
            let _ = write!(line, "\\x{:02x}", u32::from(c));
        }
        c => {
            let _ = write!(line, "\\u{:04x}", u32::from(c));
        }
    }
}

fn json_line(record: &Record<'_>, redactor: &Redactor) -> String {
    let level = match record.level {
        Level::ERROR => "error",
        Level::WARN => "warn",
        Level::INFO => "info",
        _ => "debug",
    };
    let time = record.time.strftime("%Y-%m-%dT%H:%M:%S.%3f%:z");
    let mut line = format!("{{\"ts\":\"{time}\",\"level\":\"{level}\",\"msg\":");
    push_json(&mut line, &redactor.redact(record.message));
    line.push_str(",\"target\":");
    push_json(&mut line, record.target);
    for (key, value) in record.fields {
        // The names of the line itself are taken.
        let taken = matches!(*key, "ts" | "level" | "msg" | "target");
        let _ = write!(line, ",\"{key}{}\":", if taken { "_" } else { "" });
        match value {
            FieldValue::Text(text) => push_json(&mut line, &redactor.redact(text)),
            FieldValue::Signed(n) => line.extend([n.to_string()]),
            FieldValue::Unsigned(n) => line.extend([n.to_string()]),
            FieldValue::Float(n) if n.is_finite() => line.extend([n.to_string()]),
            FieldValue::Float(n) => push_json(&mut line, &n.to_string()),
            FieldValue::Bool(b) => line.extend([b.to_string()]),
        }
    }
    line.push_str("}\n");
    line
}

fn push_json(line: &mut String, text: &str) {
    line.push_str(&serde_json::Value::from(text).to_string());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zoned() -> ZonedDateTime {
        "2026-08-22T09:05:07.042+02:00[+02:00]".parse().expect("a time")
    }

    fn render(format: LogFormat, colour: bool, message: &str, fields: &Fields) -> String {
        let time = zoned();
        let record = Record { time: &time, level: Level::INFO, target: "longshore", message, fields };
        line(format, &record, &Redactor::default(), colour)
    }

    #[test]
    fn text_lines_have_the_documented_form() {
        let fields = vec![
            ("component", FieldValue::Text("daemon".into())),
            ("task", FieldValue::Text("0198c2d0-7f3a-7000-8000-0123456789ab".into())),
            ("n", FieldValue::Unsigned(3)),
            ("path", FieldValue::Text("a b".into())),
            ("empty", FieldValue::Text(String::new())),
            ("odd", FieldValue::Text("x=\"1\"\n\u{1b}".into())),
            ("ok", FieldValue::Bool(true)),
        ];
        assert_eq!(
            render(LogFormat::Text, false, "task claimed", &fields),
            "09:05:07.042 INF task claimed component=daemon task=0198c2d0-7f3a-7000-8000-0123456789ab n=3 \
             path=\"a b\" empty=\"\" odd=\"x=\\\"1\\\"\\n\\x1b\" ok=true\n"
        );
    }

    #[test]
    fn an_event_stays_on_one_line_and_paints_only_when_asked() {
        assert_eq!(
            render(LogFormat::Text, false, "a\nb\u{1b}[31m", &vec![]),
            "09:05:07.042 INF a\\nb\\x1b[31m\n"
        );
        let painted = render(LogFormat::Text, true, "hello", &vec![]);
        assert!(painted.contains("\u{1b}[32mINF\u{1b}[0m hello"), "{painted:?}");
    }

    #[test]
    fn json_lines_parse_and_keep_types() {
        let fields = vec![
            ("n", FieldValue::Signed(-3)),
            ("text", FieldValue::Text("a \"b\"\n".into())),
            ("level", FieldValue::Text("mine".into())),
            ("nan", FieldValue::Float(f64::NAN)),
        ];
        let line = render(LogFormat::Json, true, "hi", &fields);
        let value: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!(value["ts"], "2026-08-22T09:05:07.042+02:00");
        assert_eq!((value["level"].as_str(), value["msg"].as_str()), (Some("info"), Some("hi")));
        assert_eq!((value["n"].as_i64(), value["text"].as_str()), (Some(-3), Some("a \"b\"\n")));
        assert_eq!((value["level_"].as_str(), value["nan"].as_str()), (Some("mine"), Some("NaN")));
    }

    #[test]
    fn inv_i25_no_token_reaches_a_line() {
        let secret = FieldValue::Text("mul_0123456789abcdef".into());
        for format in [LogFormat::Text, LogFormat::Json] {
            let line = render(format, false, "got mat_0123456789abcdef", &vec![("auth", secret.clone())]);
            assert!(!line.contains("0123456789abcdef"), "{line}");
        }
    }
}
