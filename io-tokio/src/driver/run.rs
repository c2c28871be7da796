//! One run: the agent is launched, what it writes goes through its codec into the outbox, and what it came to goes to the core.

use super::host::Host;
use crate::book::Entry;
use crate::brief::{self, Turn};
use crate::prepare::environment::{self, Environment, Sources};
use crate::prepare::reuse::{self, Resume};
use crate::supervise::record::ExitRecord;
use crate::supervise::{LaunchError, LaunchSpec, Run, RunEvent as ProcessEvent};
use longshore_core::codec::message::Output;
use longshore_core::codec::options::Options;
use longshore_core::codec::outcome::{EndedBy, Exit, Outcome, Status};
use longshore_core::codec::{self, AgentCodec, Codec, Family, claude, retry};
use longshore_core::effect::{KillStep, LaunchCall};
use longshore_core::event::{Event, RunEnd, RunEvent, RunOutcome};
use longshore_core::id::OpId;
use longshore_core::reason::FailReason;
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// Runs an agent to its end. `steps` brings what the core wants of it meanwhile.
pub(super) async fn perform(
    host: Arc<Host>,
    op: OpId,
    call: LaunchCall,
    mut steps: mpsc::UnboundedReceiver<KillStep>,
) {
    // A run of an earlier process cannot be followed yet. It must not be launched a second time: the server gives the task out again.
    let lost = call.attached().map(|_| FailReason::RuntimeOffline);
    let entry = host.book.get(call.claim()).filter(|_| lost.is_none());
    let Some(entry) = entry else {
        let outcome = RunOutcome {
            end: RunEnd::Failed { reason: lost.unwrap_or(FailReason::Unknown) },
            have: 0,
            usage: false,
            resume_rejected: false,
        };
        host.tell(Event::Run { op, run: RunEvent::Ended { outcome } }).await;
        return;
    };
    let (outcome, wants_fresh) = match launch(&host, &entry, &call).await {
        Ok(launched) => {
            host.tell(Event::Run { op, run: RunEvent::Launched }).await;
            let signs = launched.family.rejection_signs();
            let resumed = launched.resumed;
            let outcome = follow(&host, &entry, op, launched, &mut steps).await;
            let wants_fresh = resumed && retry::wants_fresh_session(&outcome, signs);
            (outcome, wants_fresh)
        }
        Err(refused) => (refused, false),
    };
    let outcome = settle(&entry, outcome, &call, wants_fresh);
    host.tell(Event::Run { op, run: RunEvent::Ended { outcome } }).await;
}

/// Keeps what the run came to, together with an earlier attempt, and says it as the core may know it.
fn settle(entry: &Entry, outcome: Outcome, call: &LaunchCall, wants_fresh: bool) -> RunOutcome {
    for warning in &outcome.warnings {
        tracing::warn!(task = %entry.id, "{warning}");
    }
    let mut ending = entry.ending();
    if wants_fresh {
        ending.retired_session = Some(entry.task.prior_session_id.clone());
        ending.session = None;
    }
    let outcome = match ending.outcome.take() {
        Some(first) if call.fresh() => retry::reconcile(first, outcome),
        _ => outcome,
    };
    let end = match (outcome.status, outcome.reason) {
        (Status::Completed, _) => RunEnd::Completed,
        (_, reason) => RunEnd::Failed { reason: reason.unwrap_or(FailReason::Unknown) },
    };
    let usage = !outcome.usage.is_empty();
    ending.outcome = Some(outcome);
    drop(ending);
    RunOutcome { end, have: entry.outbox.last(), usage, resume_rejected: wants_fresh }
}

struct Launched {
    run: Run,
    family: Family,
    codec: AgentCodec,
    resumed: bool,
}

/// Starts the agent, or says why it cannot be.
async fn launch(host: &Arc<Host>, entry: &Arc<Entry>, call: &LaunchCall) -> Result<Launched, Outcome> {
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
    let Some(agent) = host.agent(&entry.provider) else {
        let text = format!("the {} program is not on this machine any more", entry.provider);
        return Err(refuse(FailReason::MissingExecutable, text));
    };
    let plan = plan(host, entry, call, family).map_err(|text| refuse(FailReason::Unknown, text))?;
    let prepared = entry.disk().ready.take();
    let ready = match prepared {
        Some(ready) => ready,
        // The first launch used them up.
        None => match host.launcher.take().await {
            Ok(pair) => pair.skip_preparation(),
            Err(error) => return Err(refuse(FailReason::ProcessFailure, error.to_string())),
        },
    };
    // A task id that was claimed before may have left a run directory: the claim's number tells them apart.
    let attempt = u32::try_from(call.claim().0 * 2 + u64::from(call.fresh())).unwrap_or(u32::MAX);
    let mut spec = LaunchSpec::new(entry.id.as_str(), attempt, agent.path.clone(), plan.cwd);
    spec.args = plan.args.iter().map(OsString::from).collect();
    spec.env = plan.env.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    spec.prompt = family.first_input(&plan.prompt).into_bytes();
    spec.keep_stdin_open = true;
    let run = ready.launch(spec).await.map_err(|error| {
        let reason = match &error {
            LaunchError::ProgramMissing { .. } => FailReason::MissingExecutable,
            _ => FailReason::ProcessFailure,
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
    let codec = family.start(&plan.options);
    Ok(Launched { run, family, codec, resumed: plan.resumed })
}

fn nothing_to_do() -> Outcome {
    let mut outcome = Outcome::failed(Status::Failed, FailReason::Unknown, String::new());
    (outcome.status, outcome.reason) = (Status::Completed, None);
    outcome
}

struct Plan {
    cwd: std::path::PathBuf,
    args: Vec<String>,
    env: Environment,
    prompt: String,
    options: Options,
    resumed: bool,
}

/// All that the launch needs, or why there can be none.
fn plan(host: &Host, entry: &Entry, call: &LaunchCall, family: Family) -> Result<Plan, String> {
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
    let path = |path: &Option<std::path::PathBuf>| {
        path.as_ref().map(|path| path.display().to_string()).unwrap_or_default()
    };
    let options = Options {
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
    let turn =
        Turn { resumed: resume.session_id.is_some(), resume_lost: resume.is_lost, shared_directory: false };
    let mut prompt = brief::prompt(task, turn);
    if brief::is_inline(&entry.provider) {
        prompt = format!("{}\n\n{prompt}", prepared.brief);
    }
    let resumed = resume.session_id.is_some();
    Ok(Plan { cwd: prepared.workdir.clone(), args: args.args, env, prompt, options, resumed })
}

/// Reads the run to its end.
async fn follow(
    host: &Arc<Host>,
    entry: &Arc<Entry>,
    op: OpId,
    launched: Launched,
    steps: &mut mpsc::UnboundedReceiver<KillStep>,
) -> Outcome {
    let Launched { mut run, family, mut codec, .. } = launched;
    let mut ended_by = EndedBy::Itself;
    let mut outputs = Vec::new();
    let joint = if family.speaks_in_blocks() { "\n\n" } else { "" };
    let mut said = Said { session: None, result: false, joint };
    let record = loop {
        // The agent waits while the server has too much of it to take yet: nothing is dropped.
        let room = entry.outbox.has_room();
        tokio::select! {
            biased;
            Some(step) = steps.recv() => match step {
                KillStep::CloseInput => run.close_stdin(),
                KillStep::End { grace_ms } => {
                    ended_by = if said.result { EndedBy::AfterResult } else { EndedBy::Shutdown };
                    run.end(Duration::from_millis(u64::from(grace_ms)));
                }
                _ => {
                    ended_by = if said.result { EndedBy::AfterResult } else { EndedBy::Shutdown };
                    run.kill();
                }
            },
            event = run.next(), if room => match event {
                ProcessEvent::Stdout(bytes) => {
                    codec.stdout(&bytes, &mut outputs);
                    said.take(host, entry, op, &mut run, &mut outputs).await;
                }
                ProcessEvent::Stderr(bytes) => codec.stderr(&bytes),
                ProcessEvent::Ended(record) => break record,
            },
            () = entry.outbox.room(), if !room => {}
        }
    };
    codec.stdout_end(&mut outputs);
    said.take(host, entry, op, &mut run, &mut outputs).await;
    log_end(entry, &record);
    let exit = Exit { code: record.code, signal: record.signal };
    let outcome = codec.finish(exit, ended_by);
    let dir = run.dir().clone();
    let removed = tokio::task::spawn_blocking(move || dir.remove()).await;
    if let Ok(Err(error)) = removed {
        tracing::warn!(task = %entry.id, "the run directory is left behind: {error}");
    }
    outcome
}

fn log_end(entry: &Entry, record: &ExitRecord) {
    tracing::info!(task = %entry.id, code = record.code, signal = record.signal, "agent ended");
    if !record.leftovers.is_empty() {
        tracing::warn!(task = %entry.id, leftovers = ?record.leftovers, "processes that the agent left behind were ended");
    }
    if !record.unkilled.is_empty() {
        tracing::error!(task = %entry.id, processes = ?record.unkilled, "processes of the agent cannot be killed");
    }
    if record.lost_output > 0 {
        tracing::error!(task = %entry.id, bytes = record.lost_output, "output of the agent was lost: is the disk full?");
    }
}

/// What was said so far, as far as it changes what is told to the core.
struct Said {
    session: Option<String>,
    result: bool,
    /// What stands between two texts in one message.
    joint: &'static str,
}

impl Said {
    async fn take(
        &mut self,
        host: &Arc<Host>,
        entry: &Arc<Entry>,
        op: OpId,
        run: &mut Run,
        outputs: &mut Vec<Output>,
    ) {
        let before = entry.outbox.last();
        let (mut named, mut result) = (false, false);
        for output in outputs.drain(..) {
            match output {
                Output::Message(message) => entry.outbox.push(message, self.joint),
                Output::Session(session) => {
                    named |= self.session.as_ref() != Some(&session);
                    entry.ending().session = Some(session.clone());
                    self.session = Some(session);
                }
                Output::Write(line) => {
                    if let Err(error) = run.write_stdin(line.as_bytes()) {
                        tracing::debug!(task = %entry.id, "an answer did not reach the agent: {error}");
                    }
                }
                Output::Result => result |= !std::mem::replace(&mut self.result, true),
                Output::Log { level, text } => tracing::debug!(task = %entry.id, ?level, "{text}"),
            }
        }
        let have = entry.outbox.last();
        if have != before || named {
            host.tell(Event::Run { op, run: RunEvent::Progress { have, session: named, tools: 0 } }).await;
        }
        if result {
            host.tell(Event::Run { op, run: RunEvent::Result }).await;
        }
    }
}
