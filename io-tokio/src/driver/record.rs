//! What is recorded of the core's history, and where.

use crate::identity::source;
use crate::trace_sink::{Closed, Sink, SinkError, Tap};
use longshore_core::config::Config;
use longshore_core::daemon::Daemon;
use longshore_core::effect::{Effect, ExitCause};
use longshore_core::event::Event;
use longshore_core::rng::Seed;
use longshore_core::time::Now;
use longshore_core::trace::Header;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

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
    Whole {
        /// Where it is made.
        path: PathBuf,
        /// What it is called in what is said to people.
        name: PathBuf,
    },
}

impl Record {
    /// A whole history in the file that is called so by who asked for it; a relative name is below `cwd`.
    pub fn whole(name: &Path, cwd: &Path) -> Self {
        Self::Whole { path: cwd.join(name), name: name.to_owned() }
    }
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

/// A recording of a whole run in which something is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incomplete {
    /// Its file, as it is called.
    pub path: PathBuf,
    /// Steps of the run, its beginning included.
    pub steps: u64,
    /// Those of them that are not in it.
    pub lost: u64,
    /// What went wrong, if that is known.
    pub why: Option<String>,
}

impl Incomplete {
    fn of(path: PathBuf, closed: &Closed) -> Self {
        Self {
            path,
            steps: closed.steps + 1,
            lost: closed.lost,
            why: closed.error.as_ref().map(ToString::to_string),
        }
    }
}

impl fmt::Display for Incomplete {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the recording {} is incomplete: ", self.path.display())?;
        match self.lost {
            0 => write!(f, "its end may be missing")?,
            lost => write!(f, "{lost} of {} steps are missing", self.steps)?,
        }
        self.why.as_ref().map_or(Ok(()), |why| write!(f, " ({why})"))
    }
}

/// What became of the recordings of whole runs, for who wants to tell of it: known when the driver has ended.
#[derive(Clone, Debug, Default)]
pub struct Recordings(Arc<Mutex<Vec<Incomplete>>>);

impl Recordings {
    /// Those in which something is missing.
    pub fn incomplete(&self) -> Vec<Incomplete> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn add(&self, one: Incomplete) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(one);
    }
}

/// One recording, and what its file is called if it is of the whole run.
struct Tape {
    sink: Sink,
    file: Option<PathBuf>,
}

/// All recordings of one life.
pub(super) struct Tapes {
    all: Vec<Tape>,
    recordings: Recordings,
}

impl Tapes {
    pub(super) fn start(
        records: &[Record],
        (config, seed, now): (&Config, Seed, Now),
        first: &[Effect],
    ) -> Result<Self, SinkError> {
        let mut all = Vec::new();
        for record in records {
            let header = Header::new("daemon", config.clone(), seed, now).built_from(source().as_deref());
            match record {
                Record::Whole { path, name } => {
                    let sink = Sink::file(path, header, first).map_err(|error| error.called(name))?;
                    all.push(Tape { sink, file: Some(name.clone()) });
                }
                Record::Flight { dir, budget } => match Sink::flight(dir, *budget, header, first) {
                    Ok(sink) => all.push(Tape { sink, file: None }),
                    Err(error) => tracing::warn!("the flight recorder is off: {error}"),
                },
            }
        }
        Ok(Self { all, recordings: Recordings::default() })
    }

    /// A way to what the flight recorder has, if there is one.
    pub(super) fn tap(&self) -> Option<Tap> {
        self.all.iter().find_map(|tape| tape.sink.tap())
    }

    pub(super) fn recordings(&self) -> Recordings {
        self.recordings.clone()
    }

    pub(super) fn step(&mut self, now: Now, event: &Event, effects: &[Effect], daemon: &Daemon) {
        for Tape { sink, .. } in &mut self.all {
            sink.step(now, event, effects, daemon);
        }
    }

    pub(super) fn close(&mut self, why: &str, daemon: &Daemon) {
        for Tape { sink, file } in self.all.drain(..) {
            let place = sink.place().clone();
            let closed = sink.close(why, daemon);
            if closed.lost > 0 || closed.error.is_some() {
                let causes = closed.error.as_ref();
                tracing::warn!(
                    lost = closed.lost,
                    first_error = causes.map(|causes| causes.first.as_str()),
                    last_error = causes.map(|causes| causes.last.as_str()),
                    dir = place.dir(),
                    file = place.file(),
                    "the trace is not complete"
                );
                if let Some(file) = file {
                    self.recordings.add(Incomplete::of(file, &closed));
                }
            }
        }
    }
}
