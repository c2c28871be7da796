//! `longshore local`: one prompt for the claude of this machine, with a control plane and a daemon that live as long as it.
//!
//! Everything of a run is in a directory of its own, `local-` and random characters: the work directory (below
//! `workspaces`), the daemon's state and its log. That directory is made below `--dir PATH` (in `PATH/.longshore`), and
//! without `--dir` below `~/.multica/longshore/local`; it stays. The agent does not work in PATH itself: it is told that its work
//! directory lies below it, and reaches the files there like any others of the user.
//!
//! The task and all that is known of it is in that directory too (`queue.redb`): a run that was killed goes on with `--resume`, whose
//! daemon finds the agent where it is by then.
//!
//! What the agent says goes to standard output as it comes, and its answer last; tools, errors and paths go to standard error.

pub(crate) mod embedded;
pub(crate) mod interrupts;
mod origin;
pub(crate) mod place;
pub(crate) mod speech;

pub use embedded::EmbeddedError;

use crate::cli::{Exit, Local};
use crate::config::{Env, Flags, Settings};
use crate::driver::{Record, Recordings};
use crate::log::{self, Redactor};
use crate::plane::{State, Subject, Task, TaskSpec};
use crate::service::{self, ServeError};
use embedded::{Embedded, PROVIDER, Wanted};
use interrupts::Interrupts;
use longshore_core::id::TaskId;
use longshore_core::reason::FailReason;
use origin::Origin;
use place::{IGNORE, LOG, Place};
use speech::{Speech, one_line, plain};
use std::error::Error;
use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use thiserror::Error;
use uuid::Uuid;

/// The folder below `--dir` that holds the directories of runs.
const FOLDER: &str = ".longshore";
/// Characters of the prompt that make the task's title.
const TITLE: usize = 60;
/// A run that says nothing for so long is looked at all the same.
const LOOK: Duration = Duration::from_mins(10);
/// How long the daemon may take to end its runs and to report them, before it is hurried.
const PATIENCE: Duration = Duration::from_secs(40);

/// Why a prompt was not run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LocalError {
    /// There is no claude.
    #[error(
        "claude was not found on this machine{0}; install Claude Code, or set MULTICA_CLAUDE_PATH to its program"
    )]
    NoClaude(String),
    /// There is no such directory.
    #[error("--dir {}: it is no directory; make it first, or name another one", .0.display())]
    NoDirectory(PathBuf),
    /// There is no run to go on with.
    #[error("--resume {}: this is no directory of a run (those are named local-… and hold a queue.redb)", .0.display())]
    NoRun(PathBuf),
    /// The run was cut off before it had a task.
    #[error(
        "--resume {place}: nothing is known of a task there: the run was cut off before it had one, or its queue.redb was damaged and has been put aside \
         ({log} says so); an agent that was still at work has been ended; start it anew with its prompt", place = .0.display(), log = .0.join(LOG).display()
    )]
    NothingLeft(PathBuf),
    /// The directory is a copy.
    #[error(
        "--resume {copy}: this is a copy of {original}, to which an agent may belong that is still at work; go on with that one: --resume {original}. To \
         go on with the copy all the same, see that no agent of the run is at work, remove {origin} and try again", copy = copy.display(),
        original = original.display(), origin = copy.join("origin").display()
    )]
    Copy {
        /// The copy.
        copy: PathBuf,
        /// The directory that was made for the run.
        original: PathBuf,
    },
    /// The directory is a copy, and what it is a copy of is gone.
    #[error(
        "--resume {copy}: this is a copy of a run's directory, such as one that was restored from a backup: the run was at work as {made_as}, and that \
         directory is not there any more. An agent of the run may still be at work; when you have seen that none is, remove {origin} and try again",
        copy = copy.display(), made_as = made_as.display(), origin = copy.join("origin").display()
    )]
    Restored {
        /// The copy.
        copy: PathBuf,
        /// Where the directory was that was made for the run.
        made_as: PathBuf,
    },
    /// It cannot be told whether the directory is a copy.
    #[error(
        "--resume {place}: it cannot be told whether this is a copy of the run's directory: {source}; if it is none, remove {origin} and try again",
        place = place.display(), origin = place.join("origin").display()
    )]
    Origin {
        /// The directory.
        place: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A server was named.
    #[error(
        "{0} brings a control plane of its own and uses no other server: leave out --server-url, or use `longshore daemon start`"
    )]
    NamesServer(&'static str),
    /// The daemon or its control plane failed.
    #[error(transparent)]
    Embedded(#[from] EmbeddedError),
}

/// Refuses a copy of a run's directory, which is called so.
fn original(place: Place, name: &Path) -> Result<Place, LocalError> {
    let copy = || name.to_owned();
    match place.origin() {
        Ok(Origin::Own) => Ok(place),
        Ok(Origin::CopyOf(original)) => Err(LocalError::Copy { copy: copy(), original }),
        Ok(Origin::Restored(made_as)) => Err(LocalError::Restored { copy: copy(), made_as }),
        Err(source) => Err(LocalError::Origin { place: copy(), source }),
    }
}

/// Runs the prompt. Returns 0 if the task completed, 1 if it failed or was cancelled by a signal.
///
/// # Errors
/// If there is no claude on this machine, a setting or `--dir` cannot be used, or the daemon breaks.
pub async fn run(local: &Local, env: &Env, cwd: &Path) -> Result<Exit, Box<dyn Error + Send + Sync>> {
    refuse_server(&local.flags, "local")?;
    let mut interrupts = Interrupts::catch()?;
    let mut settings = Settings::load(&local.flags, env, cwd)?;
    let place = match (&local.resume, &local.dir) {
        (Some(dir), _) => {
            let place = Place::of_earlier(&cwd.join(dir)).ok_or_else(|| LocalError::NoRun(dir.clone()))?;
            original(place, dir)?
        }
        (None, Some(dir)) => below(dir, cwd)?,
        (None, None) => Place::make(&service::state_dir(&settings).join("local"), "local-")?,
    };
    place.settle(&mut settings);
    let redactor = Redactor::default();
    log::init_to(place.open_log()?, settings.log_format, settings.log_level, redactor.clone())?;
    for warning in &settings.warnings {
        tracing::warn!("{warning}");
    }
    let whole = local.record.as_ref().map(|file| Record::whole(file, cwd));
    let records = whole.into_iter().chain(service::flight_recorder(&settings)).collect();
    let wanted = Wanted {
        settings,
        place: &place,
        env,
        workspace: ("local", "Local"),
        database: Some(place.queue()),
        records,
        redactor,
    };
    // Until the daemon is ready, a new directory goes again with whatever ends this.
    let mut embedded = Embedded::start(wanted).await?;
    let _incomplete = TellsIncomplete(embedded.recordings.clone());
    let earlier = match &local.resume {
        None => None,
        Some(_) => Some(embedded.server.tasks().into_iter().max_by_key(|row| row.order)),
    };
    if let Some(None) = earlier {
        // By then it has looked at what is left of the run; a stop ends that.
        let _ = embedded.ready().await;
        let _ = embedded.daemon.stop(PATIENCE, &mut interrupts).await;
        let name = local.resume.as_deref().unwrap_or_else(|| place.dir());
        return Err(LocalError::NothingLeft(name.to_owned()).into());
    }
    let with_log = |error: EmbeddedError| {
        tell(&format!("log: {}", place.log().display()));
        error
    };
    let mut speech = Speech::new(io::stdout(), io::stderr());
    if let Some(Some(row)) =
        earlier.as_ref().filter(|row| row.as_ref().is_some_and(|row| row.state.is_terminal()))
    {
        // What is over needs no agent.
        let Embedded { server, daemon, .. } = embedded;
        let _ = daemon.stop(PATIENCE, &mut interrupts).await;
        let _ = speech.hear(&server.transcript(&row.id));
        server.stop().await;
        return Ok(conclude(Some(row), &place, &mut speech));
    }
    tokio::select! {
        biased;
        () = interrupts.next() => {
            embedded.daemon.stop(Duration::ZERO, &mut interrupts).await?;
            tell("error: interrupted before the agent was started");
            return Ok(Exit::Failed);
        }
        ready = embedded.ready() => match ready {
            Err(EmbeddedError::Daemon(ServeError::NoAgents(why))) => {
                // Nothing was run, and the same command is to do once there is a claude. What is recorded of an earlier run stays.
                if let Some(file) = local.record.as_ref().filter(|_| local.resume.is_none()) {
                    let _ = fs::remove_file(cwd.join(file));
                }
                return Err(LocalError::NoClaude(why).into());
            }
            other => {
                // Its log is worth a look.
                place.keep();
                other.map_err(with_log)?;
            }
        }
    }
    let task = if let Some(row) = earlier.flatten() {
        row.id
    } else {
        let dir = local.dir.as_ref().map(|dir| cwd.join(dir));
        let task = embedded.server.enqueue(spec(&local.prompt, dir.as_deref()));
        let task = task.map_err(|refusal| with_log(refusal.into()))?;
        let kept = embedded.server.stored().await;
        kept.map_err(|why| with_log(EmbeddedError::NotKept(why)))?;
        task
    };
    let cut = follow(&mut embedded, &task, &mut speech, &mut interrupts).await.map_err(with_log)?;
    if let Some(why) = cut {
        tell(why);
        // A task that has ended meanwhile stays as it is.
        let _ = embedded.server.cancel(&task);
    }
    let Embedded { server, daemon, .. } = embedded;
    daemon.stop(PATIENCE, &mut interrupts).await.map_err(with_log)?;
    let row = server.task(&task);
    // Messages may come after the report; a reader that is gone has been dealt with.
    let _ = speech.hear(&server.transcript(&task));
    server.stop().await;
    Ok(conclude(row.as_ref(), &place, &mut speech))
}

/// Says of recordings that are incomplete, however the command ends.
struct TellsIncomplete(Recordings);

impl Drop for TellsIncomplete {
    fn drop(&mut self) {
        for incomplete in self.0.incomplete() {
            tell(&format!("warning: {incomplete}"));
        }
    }
}

/// Neither this nor the demo has a use for a server.
pub(crate) fn refuse_server(flags: &Flags, command: &'static str) -> Result<(), LocalError> {
    if flags.server_url.is_some() { Err(LocalError::NamesServer(command)) } else { Ok(()) }
}

/// A place in the folder of ours below `dir`, which version control does not see.
fn below(dir: &Path, cwd: &Path) -> Result<Place, LocalError> {
    let name = dir;
    let dir = cwd.join(name);
    if !dir.is_dir() {
        return Err(LocalError::NoDirectory(name.to_owned()));
    }
    let folder = dir.join(FOLDER);
    let is_new = folder.symlink_metadata().is_err();
    let place = Place::make(&folder, "local-")?;
    // The user's own words in such a file stay; a directory without it is only untidy.
    if let Ok(mut file) = OpenOptions::new().write(true).create_new(true).open(folder.join(IGNORE)) {
        let _ = file.write_all(b"*\n");
    }
    Ok(if is_new { place.with_folder(folder) } else { place })
}

/// The task: a message of a person, which the agent's last message answers.
fn spec(prompt: &str, dir: Option<&Path>) -> TaskSpec {
    let mut instructions = String::from(
        "You were started by `longshore local` for one request, and the person who made it sits at this very machine. No workspace \
         is behind it: the `multica` command with its issues, chats, repositories and attachments is not there, whatever is said of it \
         below. Files that you make stay in the working directory after the run; name their paths in your answer.",
    );
    if let Some(dir) = dir {
        let _ = write!(
            instructions,
            "\n\nThe working directory lies below {}, which the person named together with the request: if the request is about \
             files, they are in there.",
            dir.display()
        );
    }
    let mut spec = TaskSpec {
        subject: Some(Subject::Chat(Uuid::new_v4().to_string().into())),
        // Whoever typed the prompt sees what went wrong, and decides.
        max_attempts: 1,
        ..TaskSpec::new(PROVIDER)
    }
    .titled(&one_line(prompt, TITLE))
    .field("chat_message", prompt.into());
    spec.content.instructions = instructions;
    spec
}

/// Prints what the agent says until the task has ended, or says why it is to be cancelled.
async fn follow<O: Write, E: Write>(
    embedded: &mut Embedded,
    task: &TaskId,
    speech: &mut Speech<O, E>,
    interrupts: &mut Interrupts,
) -> Result<Option<&'static str>, EmbeddedError> {
    let Embedded { server, daemon, .. } = embedded;
    loop {
        let seen = speech.seen();
        let news = server.wait_until(LOOK, |plane| {
            let said: Vec<_> = plane.transcript(task).iter().filter(|it| it.seq > seen).cloned().collect();
            let ended = plane.task(task).is_none_or(|row| row.state.is_terminal());
            (ended || !said.is_empty()).then_some((said, ended))
        });
        tokio::select! {
            biased;
            why = daemon.died() => return Err(why),
            () = interrupts.next() => return Ok(Some("cancelling; the agent is being ended")),
            news = news => {
                let Ok((said, ended)) = news else { continue };
                if speech.hear(&said).is_err() {
                    return Ok(Some("nobody reads the output any more; the agent is being ended"));
                }
                if ended {
                    return Ok(None);
                }
            }
        }
    }
}

/// Says how it ended.
fn conclude<O: Write, E: Write>(row: Option<&Task>, place: &Place, speech: &mut Speech<O, E>) -> Exit {
    let text = |text: &Option<_>| plain(text.as_deref().unwrap_or_default());
    let exit = match row {
        Some(row) if row.state == State::Completed => {
            let answer = row.result.as_ref().map(|result| &*result.output).unwrap_or_default();
            if speech.answer(answer).is_ok() { Exit::Success } else { Exit::Failed }
        }
        Some(row) if row.state == State::Cancelled => {
            tell("error: the task was cancelled");
            Exit::Failed
        }
        Some(row) => {
            let (error, reason) = (text(&row.error), text(&row.failure_reason));
            tell(&format!("error: the task {}: {error} ({reason})", row.state.as_str()));
            if [FailReason::RuntimeOffline, FailReason::RuntimeRecovery]
                .map(FailReason::as_str)
                .contains(&reason.as_str())
            {
                tell(
                    "the run was cut off, and nothing of it goes on; look at what it has done, and start it anew with its prompt",
                );
            }
            Exit::Failed
        }
        None => {
            tell("error: the control plane lost the task; this is a bug");
            Exit::Failed
        }
    };
    if let Some(dir) = row.and_then(|row| row.work_dir.as_deref()) {
        tell(&format!("work directory: {}", place.by_now(Path::new(dir)).display()));
    }
    tell(&format!("log: {}", place.now().join(LOG).display()));
    exit
}

/// A line on standard error. If nobody takes it, there is nobody to tell.
fn tell(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}
