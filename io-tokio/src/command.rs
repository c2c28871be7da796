//! The commands, carried out.

use crate::cli::{Command, DaemonStart, Exit, debug_wanted, explain};
use crate::config::{Env, Flags, Settings};
use crate::driver::Record;
use crate::local::interrupts::Interrupts;
use crate::log::{self, Redactor};
use crate::owner::unit::warn_if_runs_end_with_it;
use crate::service::{Service, Start, flight_recorder};
use crate::signals::stop_on_signals;
use crate::simulate::{Simulate, simulate};
use crate::trace_cmd;
use crate::{demo, local};
use longshore_core::effect::ExitCause;
use longshore_core::trace::Mode;
use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Carries out a command that the command line understood.
pub fn perform(command: Command, env: &Env, cwd: &Path) -> Exit {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&error, debug_wanted(env)),
    };
    match command {
        Command::DaemonStart(start) => {
            let debug = start.debug || debug_wanted(env);
            match runtime.block_on(foreground(&start, env, cwd)) {
                Ok(exit) => exit,
                Err(error) => failed(&*error, debug),
            }
        }
        Command::Demo(demo) => {
            let debug = demo.debug || debug_wanted(env);
            runtime.block_on(demo::run(&demo, env, cwd)).unwrap_or_else(|error| failed(&*error, debug))
        }
        Command::Local(local) => {
            let debug = local.debug || debug_wanted(env);
            runtime.block_on(local::run(&local, env, cwd)).unwrap_or_else(|error| failed(&*error, debug))
        }
        Command::TraceReplay(trace) => trace_replay(&cwd.join(trace.file)),
        Command::TraceSimulate(asked) => trace_simulate(&asked, cwd, debug_wanted(env)),
        Command::Version(_) => Exit::Success,
    }
}

fn trace_replay(file: &Path) -> Exit {
    let (mut out, mut err) = (std::io::stdout().lock(), std::io::stderr().lock());
    match trace_cmd::replay(file, Mode::Strict, &mut out, &mut err) {
        Ok(verdict) => Exit::Code(verdict.code()),
        // Nobody reads the answer.
        Err(_) => Exit::Failed,
    }
}

fn trace_simulate(asked: &Simulate, cwd: &Path, debug: bool) -> Exit {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        // The second one ends the process at once.
        let caught = signal_hook::flag::register_conditional_default(signal, Arc::clone(&stop))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&stop)));
        if let Err(error) = caught {
            return failed(&error, debug);
        }
    }
    // A core that panics is a failure like any other, and is told as one.
    std::panic::set_hook(Box::new(|_| {}));
    let (mut out, mut err) = (std::io::stdout().lock(), std::io::stderr());
    // Nobody reads the answer.
    simulate(asked, cwd, &stop, &mut out, &mut err).unwrap_or(Exit::Failed)
}

/// One line for people.
fn failed(error: &dyn Error, debug: bool) -> Exit {
    // Standard error that nobody takes is no error.
    drop(writeln!(std::io::stderr(), "{}", explain(error, debug)));
    Exit::Failed
}

/// Settings as the places for them say, the log set up as they want it, warnings logged.
pub(crate) fn settle(
    flags: &Flags,
    env: &Env,
    cwd: &Path,
) -> Result<(Settings, Redactor), Box<dyn Error + Send + Sync>> {
    let settings = Settings::load(flags, env, cwd)?;
    let redactor = Redactor::default();
    log::init(settings.log_format, settings.log_level, redactor.clone())?;
    for warning in &settings.warnings {
        tracing::warn!("{warning}");
    }
    Ok((settings, redactor))
}

async fn foreground(
    start: &DaemonStart,
    env: &Env,
    cwd: &Path,
) -> Result<Exit, Box<dyn Error + Send + Sync>> {
    let (settings, redactor) = settle(&start.flags, env, cwd)?;
    let token = redactor.register(&settings.token);
    let whole = start.record.as_ref().map(|file| Record::Whole(cwd.join(file)));
    let records = whole.into_iter().chain([flight_recorder(&settings)]).collect();
    let on_sigterm = settings.on_sigterm;
    let service = Service::new(Start {
        settings,
        env: env.clone(),
        cwd: cwd.to_owned(),
        records,
        redactor,
        only: None,
    })?;
    let signals = tokio::spawn(stop_on_signals(Interrupts::catch()?, on_sigterm, service.events()));
    let unit = env.clone();
    tokio::spawn(async move { warn_if_runs_end_with_it(&unit).await });
    // It holds the whole core.
    let report = Box::pin(service.run()).await;
    signals.abort();
    drop(token);
    Ok(match report?.cause {
        ExitCause::Unauthorized => {
            tracing::error!("the server refuses this daemon's credential; log in again with `multica login`");
            Exit::Failed
        }
        _ => Exit::Success,
    })
}
