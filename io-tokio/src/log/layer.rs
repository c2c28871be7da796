//! Takes events from `tracing` and writes their lines.

use super::LogLevel;
use super::format::{FieldValue, Fields, LogFormat, Record, line};
use super::redact::Redactor;
use jiff::ZonedDateTime;
use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record as SpanRecord};
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::{LookupSpan, Scope};
use tracing_subscriber::util::SubscriberInitExt;

/// Targets that begin with this are the daemon's own; libraries are logged from WARN on.
const OWN: &str = "longshore";

/// Turns events into lines on a writer. Fields of spans come before those of the event.
pub struct LogLayer<W> {
    format: LogFormat,
    level: LevelFilter,
    colour: bool,
    redactor: Redactor,
    out: Mutex<W>,
}

impl<W: Write + Send + 'static> LogLayer<W> {
    /// A layer that writes each line with one call. `colour` has no effect on JSON.
    pub fn new(format: LogFormat, level: LogLevel, colour: bool, redactor: Redactor, out: W) -> Self {
        Self { format, level: level.filter(), colour, redactor, out: Mutex::new(out) }
    }

    fn wants(&self, metadata: &Metadata<'_>) -> bool {
        let own = metadata.target().starts_with(OWN);
        let level = if own { self.level } else { self.level.min(LevelFilter::WARN) };
        *metadata.level() <= level
    }
}

/// Logs to standard error from now on, in colour if that is a terminal. Values registered with `redactor`, before
/// or after, do not appear.
///
/// # Errors
/// Something in this process logs already.
pub fn init(format: LogFormat, level: LogLevel, redactor: Redactor) -> Result<(), LogInitError> {
    let err = io::stderr();
    let colour = err.is_terminal();
    install(LogLayer::new(format, level, colour, redactor, err))
}

/// As [`init`], to `out` (such as a file) and without colours. Each line is written with one call.
///
/// # Errors
/// Something in this process logs already.
pub fn init_to(
    out: impl Write + Send + 'static,
    format: LogFormat,
    level: LogLevel,
    redactor: Redactor,
) -> Result<(), LogInitError> {
    install(LogLayer::new(format, level, false, redactor, out))
}

fn install<W: Write + Send + 'static>(layer: LogLayer<W>) -> Result<(), LogInitError> {
    tracing_subscriber::registry().with(layer).try_init().map_err(|_| LogInitError)
}

/// The log was set up twice in one process.
#[derive(Debug, thiserror::Error)]
#[error("logging is set up already; set it up once, at the start of the program")]
pub struct LogInitError;

impl<S, W> Layer<S> for LogLayer<W>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: Write + Send + 'static,
{
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        self.wants(metadata)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.level)
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut collected = Collected::default();
        attributes.record(&mut collected);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(collected);
        }
    }

    fn on_record(&self, id: &Id, values: &SpanRecord<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(collected) = span.extensions_mut().get_mut::<Collected>()
        {
            values.record(collected);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut all = Collected::default();
        for span in context.event_scope(event).into_iter().flat_map(Scope::from_root) {
            if let Some(collected) = span.extensions().get::<Collected>() {
                collected.fields.iter().for_each(|(name, value)| all.put(name, value.clone()));
            }
        }
        event.record(&mut all);
        let record = Record {
            time: &ZonedDateTime::now(),
            level: *event.metadata().level(),
            target: event.metadata().target(),
            message: &all.message,
            fields: &all.fields,
        };
        let text = line(self.format, &record, &self.redactor, self.colour);
        // There is nowhere left to complain to if standard error is gone.
        let _ = self.out.lock().unwrap_or_else(PoisonError::into_inner).write_all(text.as_bytes());
    }
}

#[derive(Default)]
struct Collected {
    message: String,
    fields: Fields,
}

impl Collected {
    fn put(&mut self, name: &'static str, value: FieldValue) {
        match self.fields.iter_mut().find(|(known, _)| *known == name) {
            Some((_, old)) => *old = value,
            None => self.fields.push((name, value)),
        }
    }

    fn text(&mut self, name: &'static str, text: String) {
        if name == "message" { self.message = text } else { self.put(name, FieldValue::Text(text)) }
    }
}

impl Visit for Collected {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.text(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.text(field.name(), value.to_owned());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field.name(), FieldValue::Signed(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field.name(), FieldValue::Unsigned(value));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field.name(), FieldValue::Float(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field.name(), FieldValue::Bool(value));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        let mut text = value.to_string();
        let mut cause = value.source();
        while let Some(inner) = cause {
            text = format!("{text}: {inner}");
            cause = inner.source();
        }
        self.text(field.name(), text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Secret;
    use std::sync::Arc;

    #[derive(Clone, Default)]
    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("the sink").write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(level: LogLevel, redactor: &Redactor, log: impl FnOnce()) -> Vec<String> {
        let sink = Sink::default();
        let layer = LogLayer::new(LogFormat::Text, level, false, redactor.clone(), sink.clone());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), log);
        let text = String::from_utf8(sink.0.lock().expect("the sink").clone()).expect("UTF-8");
        // Without the time.
        text.lines().map(|l| l[13..].to_owned()).collect()
    }

    #[test]
    fn fields_of_spans_come_first_and_the_event_wins() {
        let lines = logged(LogLevel::Debug, &Redactor::default(), || {
            let outer = tracing::info_span!("daemon", component = "daemon", late = tracing::field::Empty);
            outer.record("late", 7);
            let _outer = outer.entered();
            let _inner = tracing::info_span!("task", task = "t-1", n = 1).entered();
            tracing::info!(n = 2, path = %"a b", "task claimed");
        });
        assert_eq!(lines, ["INF task claimed component=daemon late=7 task=t-1 n=2 path=\"a b\""]);
    }

    #[test]
    fn levels_are_kept_and_libraries_are_quiet() {
        let lines = logged(LogLevel::Info, &Redactor::default(), || {
            tracing::debug!("own debug");
            tracing::warn!("own warning");
            tracing::info!(target: "hyper::proto", "library info");
            tracing::error!(target: "hyper::proto", "library error");
        });
        assert_eq!(lines, ["WRN own warning", "ERR library error"]);
    }

    #[test]
    fn inv_i25_registered_values_do_not_appear() {
        let redactor = Redactor::default();
        let _kept = redactor.register(&Secret::new("value-of-custom-env"));
        let lines = logged(LogLevel::Debug, &redactor, || {
            tracing::warn!(env = ?vec!["value-of-custom-env"], "bad value-of-custom-env");
        });
        assert_eq!(lines.len(), 1);
        assert!(!lines[0].contains("value-of-custom-env"), "{lines:?}");
    }
}
