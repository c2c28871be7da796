//! The commands, carried out.

use crate::cli::{Command, DaemonStart, Exit, LogTarget, debug_wanted, explain};
use crate::config::{Env, Flags, Settings};
use crate::control::{self, Announcer, PidFile, Place};
use crate::driver::Record;
use crate::health::{DaemonState, HealthSnapshot};
use crate::identity::cli_version;
use crate::local::interrupts::Interrupts;
use crate::log::{self, LogFile, Redactor};
use crate::open_files;
use crate::owner::unit::warn_if_runs_end_with_it;
use crate::service::{Service, Start, flight_recorder};
use crate::signals::stop_on_signals;
use crate::trace;
use crate::{demo, local};
use longshore_core::effect::ExitCause;
use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::time::Duration;
use tokio::sync::watch;

/// For what is still at work on the disk when a command is done.
const LAST_WORK: Duration = Duration::from_secs(2);

/// Carries out a command that the command line understood.
pub fn perform(command: Command, env: &Env, cwd: &Path) -> Exit {
    // What is wrong is no verdict about a trace.
    let wrong = if matches!(command, Command::Trace(_)) { Exit::Code(2) } else { Exit::Failed };
    if let Err(error) = open_files::check(&command) {
        failed(&error, false);
        return wrong;
    }
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            failed(&error, debug_wanted(env));
            return wrong;
        }
    };
    let exit = match command {
        Command::DaemonStart(start) => {
            let debug = start.debug || debug_wanted(env);
            runtime.block_on(begin(&start, env, cwd)).unwrap_or_else(|error| failed(&*error, debug))
        }
        Command::DaemonRestart(start) => {
            let debug = start.debug || debug_wanted(env);
            let restart = async {
                control::make_way(&start, env, cwd).await?;
                begin(&start, env, cwd).await
            };
            runtime.block_on(restart).unwrap_or_else(|error| failed(&*error, debug))
        }
        Command::DaemonStop(asked) => {
            let debug = asked.debug || debug_wanted(env);
            runtime.block_on(control::stop(&asked, env)).unwrap_or_else(|error| failed(&error, debug))
        }
        Command::DaemonStatus(asked) => {
            let debug = asked.debug || debug_wanted(env);
            let mut out = std::io::stdout();
            let status = control::status(&asked, env, cwd, &mut out);
            runtime.block_on(status).unwrap_or_else(|error| failed(&error, debug))
        }
        Command::DaemonLogs(asked) => {
            let debug = asked.debug || debug_wanted(env);
            control::logs(&asked, env, &mut std::io::stdout()).unwrap_or_else(|error| failed(&error, debug))
        }
        Command::Demo(demo) => {
            let debug = demo.debug || debug_wanted(env);
            runtime.block_on(demo::run(&demo, env, cwd)).unwrap_or_else(|error| failed(&*error, debug))
        }
        Command::Local(local) => {
            let debug = local.debug || debug_wanted(env);
            runtime.block_on(local::run(&local, env, cwd)).unwrap_or_else(|error| failed(&*error, debug))
        }
        Command::Trace(command) => trace::perform(&command, &runtime, env, cwd),
        Command::Version(_) => Exit::Success,
    };
    // A disk that hangs is not waited for.
    runtime.shutdown_timeout(LAST_WORK);
    exit
}

/// One line for people.
fn failed(error: &dyn Error, debug: bool) -> Exit {
    // Standard error that nobody takes is no error.
    drop(writeln!(std::io::stderr(), "{}", explain(error, debug)));
    Exit::Failed
}

/// Settings as the places for them say, the log set up as they want it, warnings logged.
fn settle(
    target: LogTarget,
    flags: &Flags,
    env: &Env,
    cwd: &Path,
) -> Result<(Settings, Redactor), Box<dyn Error + Send + Sync>> {
    let settings = Settings::load(flags, env, cwd)?;
    let redactor = Redactor::default();
    let (format, level, secrets) = (settings.log_format, settings.log_level, redactor.clone());
    match target {
        LogTarget::Stderr => log::init(format, level, secrets)?,
        LogTarget::File => log::init_to(log_file(&settings)?, format, level, secrets)?,
        LogTarget::Both => {
            let both = log::Tee(std::io::stderr(), log_file(&settings)?);
            log::init_to(both, format, level, secrets)?;
        }
    }
    for warning in &settings.warnings {
        tracing::warn!("{warning}");
    }
    Ok((settings, redactor))
}

fn log_file(settings: &Settings) -> Result<LogFile, String> {
    let path = Place::of(settings).log_file();
    let open = || {
        std::fs::create_dir_all(&settings.dirs.profile)?;
        LogFile::open(&path, settings.log_rotation.clone())
    };
    open().map_err(|error: std::io::Error| {
        format!("the log {} cannot be written: {error}; choose --log-target stderr", path.display())
    })
}

/// Starts a daemon, in the foreground or in the background.
async fn begin(start: &DaemonStart, env: &Env, cwd: &Path) -> Result<Exit, Box<dyn Error + Send + Sync>> {
    if start.foreground {
        foreground(start, env, cwd).await
    } else {
        Ok(control::start(start, env, cwd).await?)
    }
}

/// A daemon in this process. One that was made by a start in the background tells it how it went.
async fn foreground(
    start: &DaemonStart,
    env: &Env,
    cwd: &Path,
) -> Result<Exit, Box<dyn Error + Send + Sync>> {
    let announcer = if start.detached { Announcer::detach()? } else { Announcer::default() };
    let ended = serve(start, env, cwd, &announcer).await;
    match &ended {
        Ok(_) => announcer.refused("it was asked to end before it was up"),
        Err(error) => {
            if start.log_target.is_some_and(|target| target != LogTarget::Stderr) {
                // Standard error says it as well, when the command fails.
                tracing::error!("{error}");
            }
            announcer.refused(error);
        }
    }
    ended
}

async fn serve(
    start: &DaemonStart,
    env: &Env,
    cwd: &Path,
    announcer: &Announcer,
) -> Result<Exit, Box<dyn Error + Send + Sync>> {
    let target = start.log_target.unwrap_or(LogTarget::Stderr);
    let (settings, redactor) = settle(target, &start.flags, env, cwd)?;
    let pid_file = Place::of(&settings).pid_file();
    let token = redactor.register(&settings.token);
    let whole = start.record.as_ref().map(|file| Record::whole(file, cwd));
    let records = whole.into_iter().chain(flight_recorder(&settings)).collect();
    let on_sigterm = settings.on_sigterm;
    // Once the daemon is put together it records, and whatever ends it says so there.
    let interrupts = Interrupts::catch()?;
    let service = Service::new(Start {
        settings,
        env: env.clone(),
        cwd: cwd.to_owned(),
        records,
        redactor,
        only: None,
    })?;
    // It has the port now, so no other daemon of this profile has the file.
    let pid_file = PidFile::write(&pid_file)
        .inspect_err(|error| tracing::warn!(%error, "{} cannot be written", pid_file.display()))
        .ok();
    let signals = tokio::spawn(stop_on_signals(interrupts, on_sigterm, service.events()));
    let unit = env.clone();
    tokio::spawn(async move { warn_if_runs_end_with_it(&unit).await });
    let up = tokio::spawn(tell_when_up(service.snapshots(), announcer.clone()));
    // It holds the whole core.
    let report = Box::pin(service.run()).await;
    signals.abort();
    up.abort();
    drop(pid_file);
    drop(token);
    Ok(match report?.cause {
        ExitCause::Unauthorized => {
            let why = "the server refuses this daemon's credential; log in again with `multica login`";
            tracing::error!("{why}");
            announcer.refused(why);
            Exit::Failed
        }
        _ => Exit::Success,
    })
}

/// Tells whoever waits for the start that it is over.
async fn tell_when_up(mut snapshots: watch::Receiver<HealthSnapshot>, announcer: Announcer) {
    if snapshots.wait_for(|now| now.state == DaemonState::Running).await.is_ok() {
        announcer.running(&cli_version());
    }
}
