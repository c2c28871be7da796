//! What the lines of the log mean: the messages of the daemon that are known, one by one.

use super::line::Line;

/// What a line says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// A process began.
    Begun,
    /// Its settings, which it says when it begins.
    Settings,
    /// It listens at its local port, which it says when it begins.
    Listening,
    /// It is up.
    Ready,
    /// A runtime is registered.
    Runtime,
    /// The control connection is up.
    LinkUp,
    /// The server said that work may be there.
    Hint,
    /// A claim brought a task.
    Received,
    /// The task's turn has come.
    Picked,
    /// More about the task.
    Context,
    /// Its directory is prepared.
    Prepared,
    /// Its agent's process is there.
    Launched,
    /// Its agent's output is read.
    Reading,
    /// Its agent said something, or used a tool.
    Spoke,
    /// The server took messages.
    Sent,
    /// Its agent has ended.
    Finished,
    /// More about how it ended.
    Detail,
    /// The server took the report of success.
    Completed,
    /// The report of failure is sent.
    Failing,
    /// The server has ended the task.
    EndedByServer,
    /// The task is over, without a report.
    Discarded,
    /// No more claims.
    Stopping,
    /// All runtimes are off line.
    Deregistered,
    /// Something that a trace has no place for.
    Background,
}

/// Messages that are the same each time.
const KNOWN: &[(&str, Said)] = &[
    ("starting daemon", Said::Begun),
    ("daemon config resolved", Said::Settings),
    ("health server listening", Said::Listening),
    ("registered runtime", Said::Runtime),
    ("task wakeup websocket connected", Said::LinkUp),
    ("task wakeup received", Said::Hint),
    ("task received", Said::Received),
    ("picked task", Said::Picked),
    ("task context", Said::Context),
    ("starting agent", Said::Prepared),
    ("backend started, draining messages", Said::Reading),
    ("agent", Said::Spoke),
    ("reported task messages", Said::Sent),
    ("agent finished", Said::Finished),
    ("agent result detail", Said::Detail),
    ("task completed", Said::Completed),
    ("task did not complete, reporting failure", Said::Failing),
    ("task reached terminal state server-side, interrupting agent", Said::EndedByServer),
    ("task cancelled during execution, discarding result", Said::Discarded),
    ("poll loop stopping, waiting for in-flight tasks", Said::Stopping),
    ("deregistered runtimes", Said::Deregistered),
    ("agent command", Said::Background),
    ("agent stream protocol summary", Said::Background),
    ("agent version detected", Said::Background),
    ("auth token loaded", Said::Background),
    ("auth token not yet eligible for renewal", Said::Background),
    ("authenticated", Said::Background),
    ("auto-reload: disabled", Said::Background),
    ("auto-update: disabled", Said::Background),
    ("daemon main loop returning", Said::Background),
    ("deregistering runtimes on shutdown", Said::Background),
    ("gc: started", Said::Background),
    ("heartbeat: skipping HTTP tick, WS recently acked", Said::Background),
    ("invoking backend", Said::Background),
    ("register response", Said::Background),
    ("registering runtimes for workspace", Said::Background),
    ("watching workspace", Said::Background),
    ("workspace sync done", Said::Background),
    ("workspace sync: fetched workspaces", Said::Background),
];

impl Said {
    /// The fields that are read of a line that says this. What has no place in a trace may still be a warning about a task.
    pub(super) const fn reads(said: Option<Self>) -> &'static [&'static str] {
        match said {
            Some(Self::Begun) => &["version"],
            Some(Self::Settings) => &[
                "poll_interval",
                "heartbeat_interval",
                "agent_timeout",
                "idle_watchdog",
                "opencode_idle_watchdog",
                "max_concurrent_tasks",
                "gc_enabled",
            ],
            Some(Self::Runtime) => &["workspace_id", "runtime_id", "provider"],
            Some(Self::Hint) => &["runtime_id", "task_id"],
            Some(Self::Picked) => &["task", "provider"],
            Some(Self::Context) => &["task", "runtime_id"],
            Some(Self::Prepared) => &["task", "provider", "workdir"],
            Some(Self::Launched) => &["cwd"],
            Some(Self::Sent) => &["task", "last_seq"],
            Some(Self::Finished | Self::EndedByServer) => &["task", "status"],
            Some(Self::Detail) => &["task", "models_with_usage"],
            Some(Self::Failing) => &["task", "failure_reason"],
            Some(
                Self::Received
                | Self::Reading
                | Self::Spoke
                | Self::Completed
                | Self::Discarded
                | Self::Background,
            )
            | None => &["task"],
            Some(Self::Listening | Self::Ready | Self::LinkUp | Self::Stopping | Self::Deregistered) => &[],
        }
    }

    /// What a line says; `None` if its message is not known.
    pub(super) fn by(line: &Line) -> Option<Self> {
        let message = line.message.as_str();
        if let Some((_, said)) = KNOWN.iter().find(|(known, _)| *known == message) {
            return Some(*said);
        }
        if message.starts_with("background loops launched") {
            return Some(Self::Ready);
        }
        // What an agent writes to its standard error, whatever that is.
        if message
            .strip_prefix('[')
            .and_then(|rest| rest.split_once(":stderr]"))
            .is_some_and(|(p, _)| is_word(p))
        {
            return Some(Self::Background);
        }
        if message.strip_prefix("tool #").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) {
            return Some(Self::Spoke);
        }
        // `claude started`, `codex finished`, …
        match message.split_once(' ') {
            Some((provider, "started")) if is_word(provider) && line.get("pid").is_some() => {
                Some(Self::Launched)
            }
            Some((provider, "finished")) if is_word(provider) && line.get("pid").is_some() => {
                Some(Self::Background)
            }
            _ => None,
        }
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
}
