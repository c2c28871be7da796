//! What is recorded of the core's history, and where.

use crate::trace_sink::{Sink, SinkError, Tap};
use longshore_core::config::Config;
use longshore_core::daemon::Daemon;
use longshore_core::effect::{Effect, ExitCause};
use longshore_core::event::Event;
use longshore_core::rng::Seed;
use longshore_core::time::Now;
use longshore_core::trace::Header;
use std::path::PathBuf;

/// Somewhere to record to.
#[derive(Clone, Debug)]
pub enum Record {
    /// The flight recorder: the latest history within a budget of bytes. If it cannot be kept, the daemon runs without.
    Flight {
        /// Its directory.
        dir: PathBuf,
        /// Bytes that it may take.
        budget: u64,
    },
    /// The whole history in a new file. If it cannot be made, the daemon does not start.
    Whole(PathBuf),
}

/// What the last line of a recording says of an end that the core wanted.
pub(super) const fn last_words(cause: ExitCause) -> &'static str {
    match cause {
        // Which of the two it was is in the last step.
        ExitCause::Stopped | ExitCause::Restarting => "clean",
        ExitCause::Unauthorized => "the server refused the credential",
        _ => "ended",
    }
}

/// All recordings of one life.
pub(super) struct Tapes(Vec<Sink>);

impl Tapes {
    pub(super) fn start(
        records: &[Record],
        (config, seed, now): (&Config, Seed, Now),
        first: &[Effect],
    ) -> Result<Self, SinkError> {
        let mut sinks = Vec::new();
        for record in records {
            let header = Header::new("daemon", config.clone(), seed, now);
            match record {
                Record::Whole(path) => sinks.push(Sink::file(path, header, first)?),
                Record::Flight { dir, budget } => match Sink::flight(dir, *budget, header, first) {
                    Ok(sink) => sinks.push(sink),
                    Err(error) => tracing::warn!("the flight recorder is off: {error}"),
                },
            }
        }
        Ok(Self(sinks))
    }

    /// A way to what the flight recorder has, if there is one.
    pub(super) fn tap(&self) -> Option<Tap> {
        self.0.iter().find_map(Sink::tap)
    }

    pub(super) fn step(&mut self, now: Now, event: &Event, effects: &[Effect], daemon: &Daemon) {
        for sink in &mut self.0 {
            sink.step(now, event, effects, daemon);
        }
    }

    pub(super) fn close(&mut self, why: &str, daemon: &Daemon) {
        for sink in self.0.drain(..) {
            let closed = sink.close(why, daemon);
            if closed.lost > 0 || closed.error.is_some() {
                tracing::warn!(lost = closed.lost, error = closed.error, "the trace is not complete");
            }
        }
    }
}
