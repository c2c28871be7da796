//! `longshore demo`: a whole run to look at, with nothing but this program.
//!
//! The embedded control plane serves on loopback, a daemon works for it over real HTTP and WebSocket, and six tasks of different
//! fates (see [`crate::plane::scenario`]) are run by real child processes: this very program as an agent that speaks claude's
//! protocol. The user's settings, home and agent CLIs are not touched. All state is in a new directory of the system's temporary
//! one, whose path is printed and which stays.

mod called;
mod progress;
mod report;

use crate::cli::{self, Exit};
use crate::config::{Env, Settings};
use crate::driver::Record;
use crate::local::embedded::{Embedded, EmbeddedError, PROVIDER, Wanted};
use crate::local::interrupts::Interrupts;
use crate::local::place::Place;
use crate::local::refuse_server;
use crate::log::{self, Redactor};
use crate::plane::scenario::{Scenario, Staged, demo_tasks};
use crate::plane::{Refusal, Server};
use called::called;
use longshore_core::effect::ExitReport;
use progress::{Glance, Progress};
use report::{Row, Told};
use std::error::Error;
use std::io::{self, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;
use thiserror::Error;
use tokio::time::{Instant, sleep_until, timeout};

/// The six tasks have this long, the daemon's start included.
const LIMIT: Duration = Duration::from_secs(45);
/// The daemon may take this long to end before it is hurried.
const PATIENCE: Duration = Duration::from_secs(8);
/// Between two movements of the spinners.
const FRAME: Duration = Duration::from_millis(90);
/// The file in the demo's directory that its trace is written to.
const TRACE: &str = "trace.jsonl";
/// Variables of the user that the demo's daemon and agents see.
const KEPT: [&str; 6] = ["PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "USER"];

/// Why there is no demo.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DemoError {
    /// Nothing is ever written over.
    #[error("{} exists already: name a file that does not, or move it away", .0.display())]
    Exists(PathBuf),
    /// The double cannot be set up.
    #[error("the demo's agent cannot be set up at {}: {source}", path.display())]
    Double {
        /// Where it was to be.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// Shows the run. Returns 0 only if each task ended as it should.
///
/// # Errors
/// If the demo cannot be set up, or its daemon breaks.
pub async fn run(demo: &cli::Demo, env: &Env, cwd: &Path) -> Result<Exit, Box<dyn Error + Send + Sync>> {
    refuse_server(&demo.flags, "demo")?;
    let there = |file: &&PathBuf| cwd.join(file).symlink_metadata().is_ok();
    if let Some(file) = demo.record.as_ref().filter(there) {
        return Err(DemoError::Exists(file.clone()).into());
    }
    let mut interrupts = Interrupts::catch()?;
    let parent = env.path("TMPDIR").map_or_else(std::env::temp_dir, |dir| cwd.join(dir));
    let place = Place::make(&parent, "longshore-demo-")?;
    let begun = Instant::now();
    let traces: Vec<PathBuf> = std::iter::once(place.dir().join(TRACE)).chain(demo.record.clone()).collect();
    let records = traces.iter().map(|trace| Record::whole(trace, cwd)).collect();
    // If this fails, nothing has happened in the directory, and it goes.
    let embedded = begin(demo, env, &place, records).await?;
    place.keep();
    let recordings = embedded.recordings.clone();
    let program = called(std::env::args_os().next().as_deref(), cwd);
    let told = Told { place: &place, traces: &traces, program: &program };
    let shown = show(embedded, begun, &told, &mut interrupts).await;
    for incomplete in recordings.incomplete() {
        tell(&format!("warning: {incomplete}"));
    }
    if shown.is_err() {
        tell(&format!("what there is of the demo is in {}", place.dir().display()));
    }
    shown
}

/// Sets all up, and starts the control plane and the daemon.
async fn begin(
    demo: &cli::Demo,
    env: &Env,
    place: &Place,
    records: Vec<Record>,
) -> Result<Embedded, Box<dyn Error + Send + Sync>> {
    let env = environment(env, place)?;
    let mut settings = Settings::load(&demo.flags, &env, place.dir())?;
    place.settle(&mut settings);
    settings.agent_temp_base = Some(place.folder("tmp")?);
    // A small temporary file system is enough for six short tasks.
    settings.min_free_space = None;
    let redactor = Redactor::default();
    log::init_to(place.open_log()?, settings.log_format, settings.log_level, redactor.clone())?;
    let workspace = ("demo", "Demo");
    let wanted = Wanted { settings, place, env: &env, workspace, database: None, records, redactor };
    Ok(Embedded::start(wanted).await?)
}

async fn show(
    mut embedded: Embedded,
    begun: Instant,
    told: &Told<'_>,
    interrupts: &mut Interrupts,
) -> Result<Exit, Box<dyn Error + Send + Sync>> {
    let scenarios = demo_tasks();
    tell("Six tasks for a control plane, a daemon and an agent of longshore's own:");
    let mut played = Played::default();
    tokio::select! {
        biased;
        () = interrupts.next() => played.cut = Some("it was interrupted"),
        done = play(&mut embedded, &scenarios, begun + LIMIT, &mut played) => done?,
    }
    if let Some(why) = played.cut {
        tell(&format!("{why}; the daemon ends its runs and reports them (Ctrl-C hurries it)"));
    }
    let Embedded { server, daemon, recordings } = embedded;
    let ended = daemon.stop(PATIENCE, interrupts).await?;
    let rows = rows(&scenarios, &played, &server, &ended);
    server.stop().await;
    let text = report::text(&rows, told, &recordings.incomplete());
    // Nobody reads it: then the exit code says it all.
    let _ = io::stdout().write_all(text.as_bytes());
    match report::complaint(&rows, played.cut) {
        None => Ok(Exit::Success),
        Some(complaint) => {
            tell(&format!("error: {complaint}"));
            Ok(Exit::Failed)
        }
    }
}

/// An environment of its own: an empty home, and the double as the only agent CLI.
fn environment(env: &Env, place: &Place) -> Result<Env, Box<dyn Error + Send + Sync>> {
    // Under this name the program is the double. The path's separators keep the link from being followed.
    let path = place.folder("bin")?.join("agent-double");
    let linked = std::env::current_exe().and_then(|exe| symlink(exe, &path));
    linked.map_err(|source| DemoError::Double { path: path.clone(), source })?;
    let kept = KEPT.iter().filter_map(|name| Some(((*name).into(), env.raw(name)?.to_owned())));
    let mut own = Env::from_pairs::<std::ffi::OsString, _>(kept);
    own.set("HOME", place.folder("home")?);
    own.set("MULTICA_CLAUDE_PATH", path);
    Ok(own)
}

/// What was done so far.
#[derive(Default)]
struct Played {
    staged: Vec<Staged>,
    /// Why it was ended before its end.
    cut: Option<&'static str>,
}

/// Puts the tasks in the queue, plays the operator, and shows how they get on, until all have ended or `deadline`.
async fn play(
    embedded: &mut Embedded,
    scenarios: &[Scenario],
    deadline: Instant,
    played: &mut Played,
) -> Result<(), EmbeddedError> {
    embedded.ready().await?;
    let Embedded { server, daemon, .. } = embedded;
    let staged = scenarios.iter().map(|scenario| scenario.stage(server, PROVIDER));
    played.staged = staged.collect::<Result<_, Refusal>>()?;
    let staged = &played.staged;
    let ends = staged.iter().zip(scenarios).map(|(staged, scenario)| see_through(server, staged, scenario));
    let ends = futures_util::future::join_all(ends);
    let mut progress = Progress::new(scenarios);
    let look = |plane: &crate::plane::Plane| -> Vec<Glance> {
        staged.iter().map(|staged| Glance::of(plane, &staged.task)).collect()
    };
    tokio::pin!(ends);
    loop {
        let shown = progress.shown().to_vec();
        let news = server.wait_until(FRAME, |plane| Some(look(plane)).filter(|now| *now != shown));
        tokio::select! {
            biased;
            why = daemon.died() => return Err(why),
            () = sleep_until(deadline) => {
                played.cut = Some("its time was over");
                break;
            }
            news = news => match news {
                Ok(now) => progress.show(now),
                // Nothing new for a while.
                Err(_) => progress.tick(),
            },
            _ = &mut ends => break,
        }
    }
    progress.show(server.with_plane(|plane, _| look(plane)));
    Ok(())
}

/// Waits until the task has ended, whichever way, and its daemon has done with it.
async fn see_through(server: &Server, staged: &Staged, scenario: &Scenario) {
    // Another end than the promised one is seen in the task's row.
    let ended = staged.see_through(server, LIMIT).await;
    if ended.is_ok() && scenario.cancelled {
        let acked = |plane: &crate::plane::Plane| {
            plane.task(&staged.task).is_none_or(|row| row.cancel_acked).then_some(())
        };
        // A cancellation that nobody acknowledges is the daemon's to end when it stops.
        drop(timeout(PATIENCE, server.wait_until(LIMIT, acked)).await);
    }
}

fn rows(scenarios: &[Scenario], played: &Played, server: &Server, ended: &ExitReport) -> Vec<Row> {
    let row = |(scenario, staged): (&Scenario, Option<&Staged>)| {
        let Some(staged) = staged else { return Row::without_task(scenario) };
        let reports = format!("/api/daemon/tasks/{}/", staged.task);
        let tries = server.requests_where(|request| {
            let call = request.path.strip_prefix(&reports);
            request.method == "POST"
                && call.is_some_and(|call| matches!(call, "complete" | "fail" | "cancel-ack"))
        });
        let abandoned = ended.abandoned.contains(&staged.task);
        let messages = server.transcript(&staged.task).len();
        Row::new(scenario, server.task(&staged.task).as_ref(), tries.len(), messages, abandoned)
    };
    let staged = played.staged.iter().map(Some).chain(std::iter::repeat(None));
    scenarios.iter().zip(staged).map(row).collect()
}

/// A line on standard error. If nobody takes it, there is nobody to tell.
fn tell(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}
