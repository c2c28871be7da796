//! One run: the agent is launched, or one that an earlier process launched is taken over, and what it came to goes to the core.

use super::follow::Follower;
use super::host::Host;
use super::program;
use crate::book::{Entry, Stream};
use crate::brief::{self, Turn};
use crate::ledger::KeptOutcome;
use crate::prepare::environment::{self, Environment, Sources};
use crate::prepare::reuse::{self, Resume};
use crate::supervise::record::RunDir;
use crate::supervise::{AttachError, Credit, LaunchError, LaunchSpec, Run};
use longshore_core::codec::options::Options;
use longshore_core::codec::outcome::{Outcome, Status};
use longshore_core::codec::{self, Family, claude, retry};
use longshore_core::effect::{KillStep, LaunchCall};
use longshore_core::event::{ClaimKey, Event, RunEnd, RunEvent, RunOutcome};
use longshore_core::id::OpId;
use longshore_core::reason::FailReason;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// What a run came to, and the disk did not take, is tried again so much later.
const KEEP_AGAIN: Duration = Duration::from_secs(1);

/// Runs an agent to its end, or follows one that an earlier process launched. `steps` brings what the core wants of it meanwhile.
pub(super) async fn perform(
    host: Arc<Host>,
    op: OpId,
    call: LaunchCall,
    mut steps: mpsc::UnboundedReceiver<KillStep>,
) {
    let told = match host.book.get(call.claim()) {
        None => untold(FailReason::Unknown),
        Some(entry) if call.attached().is_some() => taken_over(&host, &entry, op, &mut steps).await,
        Some(entry) => launched(&host, &entry, op, &call, &mut steps).await,
    };
    host.tell(Event::Run { op, run: RunEvent::Ended { outcome: told } }).await;
}

/// The end of a run of which nothing is known.
const fn untold(reason: FailReason) -> RunOutcome {
    RunOutcome { end: RunEnd::Failed { reason }, have: 0, usage: false, resume_rejected: false }
}

/// A run that is left to the next process. Its outcome is not written down, as it is not known yet; the core is over, and does not act upon
/// this.
fn left(entry: &Entry) -> RunOutcome {
    RunOutcome { have: entry.outbox.last(), ..untold(FailReason::RuntimeRecovery) }
}

/// Which attempt of a claim it is: the number that names its run directory. Claims have numbers of their own, as a task's id may be
/// claimed again.
fn attempt(claim: ClaimKey, fresh: bool) -> u32 {
    u32::try_from(claim.0 * 2 + u64::from(fresh)).unwrap_or(u32::MAX)
}

/// The run directories that a claim has or had.
pub(super) fn dirs(host: &Host, entry: &Entry) -> [PathBuf; 2] {
    [false, true].map(|fresh| host.launcher.run_dir(entry.id.as_str(), attempt(entry.claim, fresh)))
}

/// Removes the run directories of a claim, in the background.
pub(super) fn remove_dirs(host: &Host, entry: &Entry) {
    let dirs = dirs(host, entry).map(RunDir::new);
    let id = entry.id.clone();
    tokio::task::spawn_blocking(move || {
        for dir in dirs {
            if let Err(error) = dir.remove() {
                tracing::warn!(task = %id, "the run directory is left behind: {error}");
            }
        }
    });
}

/// Launches the agent and follows it.
async fn launched(
    host: &Arc<Host>,
    entry: &Arc<Entry>,
    op: OpId,
    call: &LaunchCall,
    steps: &mut mpsc::UnboundedReceiver<KillStep>,
) -> RunOutcome {
    let number = attempt(entry.claim, call.fresh());
    let outcome = match launch(host, entry, call, number).await {
        Ok((run, family)) => {
            host.tell(Event::Run { op, run: RunEvent::Launched }).await;
            match Follower::new(host, entry, op, family, false).follow(run, steps).await {
                Some(outcome) => outcome,
                None => return left(entry),
            }
        }
        Err(refused) => (refused, false),
    };
    settle(host, entry, outcome, number, call.fresh()).await
}

/// Follows a run of an earlier process to its end.
async fn taken_over(
    host: &Arc<Host>,
    entry: &Arc<Entry>,
    op: OpId,
    steps: &mut mpsc::UnboundedReceiver<KillStep>,
) -> RunOutcome {
    // The second attempt, where there is one, is what counts.
    let mut unreadable = false;
    for fresh in [true, false] {
        let number = attempt(entry.claim, fresh);
        if let Some(seen) = entry.ending().seen.as_ref().filter(|seen| seen.attempt == number) {
            // Its end was seen, and the core did not come to hear of it.
            return RunOutcome { have: entry.outbox.last(), ..seen.told };
        }
        let Some(family) = codec::for_provider(&entry.provider) else { break };
        let known = entry.stream().as_ref().filter(|stream| stream.attempt == number).cloned();
        let stream = known.unwrap_or_else(|| {
            let resumed = !fresh && !entry.task.prior_session_id.is_empty();
            Stream::new(number, family.start(&Options::default()), resumed)
        });
        let from = stream.position();
        let dir = host.launcher.run_dir(entry.id.as_str(), number);
        match host.launcher.attach(dir.as_path(), from, Credit::Explicit).await {
            Ok(run) => {
                tracing::info!(task = %entry.id, pid = run.pid(), "a run of an earlier daemon is followed");
                *entry.stream() = Some(stream);
                let follower = Follower::new(host, entry, op, family, true);
                follower.tell_all().await;
                return match follower.follow(run, steps).await {
                    Some(outcome) => settle(host, entry, outcome, number, fresh).await,
                    None => left(entry),
                };
            }
            Err(AttachError::NeverLaunched { .. }) => {}
            Err(error) => {
                tracing::error!(task = %entry.id, "{error}; what is at work there is ended");
                // It cannot be followed, and the task is given out again: it must not go on beside its successor.
                host.launcher.end_unreadable(dir).await;
                unreadable = true;
            }
        }
    }
    if unreadable {
        entry.trouble(
            "what the run left on the disk cannot be read, so it was ended; the task can be tried again",
        );
        return RunOutcome { have: entry.outbox.last(), ..untold(FailReason::RuntimeRecovery) };
    }
    entry.trouble("the daemon was ended before the agent was started; nothing was done, and the task can be tried again");
    RunOutcome { have: entry.outbox.last(), ..untold(FailReason::RuntimeOffline) }
}

/// Keeps what the run came to, together with an earlier attempt, and says it as the core may know it.
async fn settle(
    host: &Arc<Host>,
    entry: &Arc<Entry>,
    (outcome, wants_fresh): (Outcome, bool),
    number: u32,
    fresh: bool,
) -> RunOutcome {
    for warning in &outcome.warnings {
        tracing::warn!(task = %entry.id, "{warning}");
    }
    let (told, kept) = {
        let mut ending = entry.ending();
        if wants_fresh {
            ending.retired_session = Some(entry.task.prior_session_id.clone());
            ending.session = None;
        }
        let outcome = match ending.outcome.take() {
            Some(first) if fresh => retry::reconcile(first, outcome),
            _ => outcome,
        };
        let end = match (outcome.status, outcome.reason) {
            (Status::Completed, _) => RunEnd::Completed,
            (_, reason) => RunEnd::Failed { reason: reason.unwrap_or(FailReason::Unknown) },
        };
        let usage = !outcome.usage.is_empty();
        let told = RunOutcome { end, have: entry.outbox.last(), usage, resume_rejected: wants_fresh };
        let mut kept = KeptOutcome::new(number, outcome.clone(), told);
        kept.session.clone_from(&ending.session);
        kept.retired_session.clone_from(&ending.retired_session);
        ending.outcome = Some(outcome);
        (told, kept)
    };
    keep(host, entry, kept).await;
    told
}

/// Writes all of it down before the core hears of it: after a kill it is reported as it was, and not read from the spool again.
async fn keep(host: &Arc<Host>, entry: &Arc<Entry>, kept: KeptOutcome) {
    let Err(error) = try_to_keep(host, entry, &kept).await else { return };
    tracing::error!(task = %entry.id, %error, "what the run came to could not be written down; it is only in memory and in the run directory, and tried again");
    // A record that says that the run is over would have the next process look for it in the ledger alone.
    host.ledger.withhold(entry.claim, kept.attempt);
    let (host, entry) = (host.clone(), entry.clone());
    tokio::spawn(async move {
        let is_newest = || {
            let known = host.book.get(entry.claim).is_some();
            known && entry.ending().outcome.as_ref() == Some(&kept.outcome)
        };
        loop {
            tokio::time::sleep(KEEP_AGAIN).await;
            if !is_newest() || try_to_keep(&host, &entry, &kept).await.is_ok() {
                return;
            }
        }
    });
}

/// What the agent said first: an outcome without it would hide that some of it is missing.
async fn try_to_keep(host: &Arc<Host>, entry: &Arc<Entry>, kept: &KeptOutcome) -> std::io::Result<()> {
    entry.write_down().await?;
    let (ledger, claim, kept) = (host.ledger.clone(), entry.claim, kept.clone());
    let written = tokio::task::spawn_blocking(move || {
        ledger.sync(&ledger.outbox(claim));
        ledger.keep_outcome(claim, &kept)
    });
    written.await.map_err(std::io::Error::other)?
}

/// Starts the agent, or says why it cannot be.
async fn launch(
    host: &Arc<Host>,
    entry: &Arc<Entry>,
    call: &LaunchCall,
    number: u32,
) -> Result<(Run, Family), Outcome> {
    let refuse = |reason: FailReason, text: String| {
        tracing::warn!(task = %entry.id, "{text}");
        Outcome::failed(Status::Failed, reason, text)
    };
    if !entry.task.regenerate_quick_actions_for.is_empty() {
        // An old server's wish for something that is no longer there: done, with nothing.
        return Err(nothing_to_do());
    }
    let Some(family) = codec::for_provider(&entry.provider) else {
        let text = format!(
            "{} is registered, but running it is not supported yet by this version of longshore",
            entry.provider
        );
        return Err(refuse(FailReason::Unknown, text));
    };
    let program = program::of(host, entry).await.map_err(|(reason, text)| refuse(reason, text))?;
    let plan = plan(host, entry, call, family, program.prefix)
        .map_err(|text| refuse(FailReason::PrepareFailed, text))?;
    let prepared = entry.disk().ready.take();
    let ready = match prepared {
        Some(ready) => ready,
        // The first launch used them up.
        None => match host.launcher.take().await {
            Ok(pair) => pair.skip_preparation(),
            Err(error) => return Err(refuse(FailReason::PrepareFailed, error.to_string())),
        },
    };
    let mut spec = LaunchSpec::new(entry.id.as_str(), number, program.path, plan.cwd);
    spec.args = plan.args.iter().map(OsString::from).collect();
    spec.env = plan.env.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    spec.prompt = family.first_input(&plan.prompt).into_bytes();
    spec.keep_stdin_open = true;
    spec.credit = Credit::Explicit;
    *entry.stream() = Some(Stream::new(number, family.start(&plan.options), plan.resumed));
    // In which state its codec begins is for a later process, which has no options to start it with.
    let (run, begun) = tokio::join!(ready.launch(spec), entry.write_down());
    if let Err(error) = begun {
        tracing::warn!(task = %entry.id, %error, "the beginning of the run could not be written down");
    }
    let run = run.map_err(|error| {
        let reason = match &error {
            LaunchError::ProgramMissing { .. } => FailReason::MissingExecutable,
            LaunchError::NotExecutable { .. }
            | LaunchError::InterpreterMissing { .. }
            | LaunchError::BadFormat { .. } => FailReason::ProcessFailure,
            // No fault of the agent's.
            _ => FailReason::PrepareFailed,
        };
        refuse(reason, error.to_string())
    })?;
    tracing::info!(
        task = %entry.id,
        provider = entry.provider,
        pid = run.pid(),
        resumed = plan.resumed,
        "agent started"
    );
    Ok((run, family))
}

fn nothing_to_do() -> Outcome {
    let mut outcome = Outcome::failed(Status::Failed, FailReason::Unknown, String::new());
    (outcome.status, outcome.reason) = (Status::Completed, None);
    outcome
}

struct Plan {
    cwd: PathBuf,
    args: Vec<String>,
    env: Environment,
    prompt: String,
    options: Options,
    resumed: bool,
}

/// All that the launch needs, or why there can be none.
fn plan(
    host: &Host,
    entry: &Entry,
    call: &LaunchCall,
    family: Family,
    launch_prefix: Vec<String>,
) -> Result<Plan, String> {
    let disk = entry.disk();
    let (Some(prepared), Some(temp)) = (&disk.prepared, &disk.temp) else {
        return Err("the task has no prepared directory; this is a bug".to_owned());
    };
    let task = &entry.task;
    let resume = if call.fresh() {
        Resume { session_id: None, is_lost: true }
    } else {
        reuse::resume(task, &entry.provider, prepared)
    };
    let sources = Sources {
        task,
        provider: &entry.provider,
        prepared,
        temp_dir: temp.path(),
        workspaces_root: &host.settings.workspaces_root,
        server_url: host.client.base_url().as_str(),
        daemon_port: host.health_port,
        slot: call.slot(),
        cli_dir: host.cli_dir.as_deref(),
        allow_dangerous: host.settings.allow_dangerous_env,
    };
    let env = environment::build(host.env.iter().cloned(), &sources).map_err(|error| error.to_string())?;
    for warning in env.warning().iter().chain(&env.warnings) {
        tracing::warn!(task = %entry.id, "{warning}");
    }
    let own = host.settings.agents.get(entry.provider.as_str()).cloned().unwrap_or_default();
    let agent = task.agent.as_ref();
    let path =
        |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
    let options = Options {
        launch_prefix,
        model: agent
            .map(|agent| agent.model.clone())
            .filter(|model| !model.is_empty())
            .or(own.model)
            .unwrap_or_default(),
        thinking_level: agent.map(|agent| agent.thinking_level.clone()).unwrap_or_default(),
        max_turns: 0,
        resume_session: resume.session_id.clone().unwrap_or_default(),
        mcp_config_path: path(&prepared.mcp_config),
        settings_path: path(&prepared.claude_settings),
        extra_args: own.args,
        custom_args: agent.map(|agent| agent.custom_args.clone()).unwrap_or_default(),
    };
    let args = family.argv(&options);
    for warning in &args.warnings {
        tracing::warn!(task = %entry.id, "{warning}");
    }
    let is_sandbox = env.get("IS_SANDBOX").map(|value| value.to_string_lossy().into_owned());
    claude::check_bypass(&args.args, rustix::process::geteuid().is_root(), is_sandbox.as_deref())
        .map_err(|error| error.to_string())?;
    let turn = Turn {
        resumed: resume.session_id.is_some(),
        resume_lost: resume.is_lost,
        shared_directory: prepared.shared_directory,
    };
    let mut prompt = brief::prompt(task, turn);
    if brief::is_inline(&entry.provider) || prepared.shared_directory {
        prompt = format!("{}\n\n{prompt}", prepared.brief);
    }
    let resumed = resume.session_id.is_some();
    Ok(Plan { cwd: prepared.workdir.clone(), args: args.args, env, prompt, options, resumed })
}
