//! `longshore trace dump`: what the flight recorder of a daemon has, as one file that can be given away.

use super::destination::{Destination, DestinationError};
use super::tally::Tally;
use crate::cli::{Exit, Which};
use crate::config::Env;
use crate::control::{self, ControlError, Place, Recorded};
use crate::trace_sink::{Drawn, Refusal, absent};
use jiff::Timestamp;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
#[command(
    after_help = "Example: longshore trace dump -o run.jsonl.gz\nExit code: 0; 1 if there is nothing recorded, or the trace cannot be written; 2 if what was typed is wrong."
)]
pub struct Dump {
    /// File to write, which must not be there yet; compressed if its name ends in .gz. Default: standard output
    #[arg(short, long, alias = "out", value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The daemon's port, if it was started with one of its own
    #[arg(long, value_name = "PORT")]
    pub health_port: Option<String>,
    /// The daemon's profile, which is said to every command in the same way.
    #[arg(skip)]
    pub profile: String,
}

/// Why there is no dump.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DumpError {
    /// The daemon's place cannot be found.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// The trace cannot be written.
    #[error(transparent)]
    Destination(#[from] DestinationError),
    /// Nobody has recorded anything.
    #[error(
        "{asked}, and there is nothing recorded in {}: a daemon of this profile records there while it runs, unless trace_budget is 0",
        dir.display()
    )]
    Nothing {
        /// Where it would be.
        dir: PathBuf,
        /// What came of asking the daemon.
        asked: String,
    },
    /// The daemon cannot record, and nothing is left of what it has recorded before.
    #[error(
        "there is nothing recorded in {}: the daemon cannot record there since {since:.0} ({why}){}. It tries again every 10 s while anything \
         happens, and what is recorded from then on can be dumped",
        dir.display(), remedy.as_ref().map_or_else(String::new, |remedy| format!("; {remedy}"))
    )]
    Refused {
        /// The flight recorder's directory.
        dir: PathBuf,
        /// Since when.
        since: Timestamp,
        /// What the system says.
        why: String,
        /// What to do, unless the reason says that.
        remedy: Option<String>,
    },
    /// The directory cannot be read.
    #[error("the flight recorder's directory {} cannot be read: {error}", dir.display())]
    Dir {
        /// The directory.
        dir: PathBuf,
        /// Why not.
        error: io::Error,
    },
}

impl DumpError {
    /// Whether what was typed is wrong: a port or a profile that there cannot be.
    pub const fn is_usage(&self) -> bool {
        matches!(self, Self::Control(ControlError::Config(_) | ControlError::UnknownProfile { .. }))
    }
}

/// Where the trace is from.
enum Source {
    /// The daemon with this process id, up to the moment of the question.
    Daemon(i32),
    /// What is on the disk.
    Disk {
        /// Why it is not from the daemon.
        why: String,
        /// What is on the disk is that, for people.
        it_is: &'static str,
    },
}

impl Source {
    fn disk(why: String) -> Self {
        Self::Disk { why, it_is: "this is what is on the disk" }
    }

    /// What came of asking the daemon.
    fn asked(&self) -> String {
        match self {
            Self::Daemon(pid) => format!("the daemon (pid {pid}) has recorded nothing"),
            Self::Disk { why, .. } => why.clone(),
        }
    }
}

/// Why the daemon was not asked. Nothing is to be done to what has the port, so it is said in other words than those of a stop.
fn unasked(error: ControlError) -> String {
    match error {
        ControlError::Mute { port, why } => {
            format!(
                "what listens on port {port} does not answer as a daemon does ({why}), so no daemon was asked"
            )
        }
        error => error.to_string(),
    }
}

/// Writes what the flight recorder has, and says to `err` what that is.
///
/// # Errors
/// See [`DumpError`].
pub async fn dump(asked: &Dump, env: &Env, cwd: &Path, err: &mut dyn Write) -> Result<Exit, DumpError> {
    let which = Which { profile: asked.profile.clone(), health_port: asked.health_port.clone() };
    let place = Place::find(&which, env)?;
    let mut output = Destination::create(asked.output.as_deref(), cwd)?;
    let mut tally = Tally::default();
    let mut pass = |bytes: &[u8]| {
        tally.pass(bytes);
        output.write(bytes)
    };
    // What the daemon says of itself is for people, who may have closed standard error.
    let mut say = |line: &str| drop(writeln!(err, "{line}"));
    let mut refusal = None;
    let source = match control::recorded(&place).await {
        Ok(Recorded::From(mut daemon)) => {
            refusal = daemon.refusal();
            while let Some(bytes) = daemon.next().await? {
                pass(&bytes)?;
            }
            Source::Daemon(daemon.pid())
        }
        Ok(Recorded::Nobody) => Source::Disk {
            why: "no daemon of this profile runs".to_owned(),
            it_is: "this is what the last one recorded",
        },
        Ok(Recorded::Unsaid(why)) => Source::disk(format!("the daemon does not give its recording ({why})")),
        Err(error) => Source::disk(unasked(error)),
    };
    let dir = place.trace_dir();
    if matches!(source, Source::Disk { .. }) {
        from_disk(&dir, pass)?;
    }
    // What begins anew may have no step yet, but a checkpoint.
    tally.finish();
    if tally.segments() == 0 {
        return Err(match refusal {
            Some(Refusal { since, why, remedy }) => DumpError::Refused { dir, since, why, remedy },
            None => DumpError::Nothing { dir, asked: source.asked() },
        });
    }
    let name = output.name();
    output.finish()?;
    if let Source::Disk { why, it_is } = &source {
        say(&format!("{why}: {it_is}"));
    }
    say(&summary(&name, &tally, &source));
    // Of a directory that cannot be read so much has come as could.
    for what in absent(&dir).unwrap_or_default() {
        say(&format!("warning: {}: {what}", dir.display()));
    }
    if tally.is_damaged() {
        say(&format!(
            "warning: {name} has places that cannot be read, or lacks steps: `longshore trace replay` names each"
        ));
    }
    if let Some(Refusal { since, why, .. }) = refusal {
        say(&format!(
            "warning: the daemon cannot record since {since:.0} ({why}): steps since then are missing; it tries again every 10 s while anything happens"
        ));
    }
    Ok(Exit::Success)
}

/// Without the directory there is nothing.
fn from_disk(
    dir: &Path,
    mut pass: impl FnMut(&[u8]) -> Result<(), DestinationError>,
) -> Result<(), DumpError> {
    let failed = |error: io::Error| DumpError::Dir { dir: dir.to_owned(), error };
    let drawn = match Drawn::of_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        drawn => drawn.map_err(failed)?,
    };
    for lines in drawn {
        pass(&lines.map_err(failed)?)?;
    }
    Ok(())
}

fn summary(name: &str, tally: &Tally, source: &Source) -> String {
    let count = |n: u64, one: &str, many: &str| format!("{n} {}", if n == 1 { one } else { many });
    let (steps, lives) = (count(tally.steps(), "step", "steps"), count(tally.all_lives(), "life", "lives"));
    let gaps = match tally.gaps() {
        0 => String::new(),
        gaps => format!(
            ", with {} of {}",
            count(gaps, "gap", "gaps"),
            count(tally.lost(), "missing step", "missing steps")
        ),
    };
    let last = tally.last().map_or_else(String::new, |last| {
        let time =
            Timestamp::from_millisecond(last.wall.0).map_or_else(|_| "?".to_owned(), |time| time.to_string());
        format!("; the last is step {} of {time}", last.n)
    });
    let until = match source {
        Source::Daemon(pid) => format!(", where the daemon (pid {pid}) was when it was asked"),
        Source::Disk { .. } => String::new(),
    };
    format!("{name}: {steps} of {lives}{gaps}{last}{until}")
}
