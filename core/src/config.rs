//! Everything that can be set, with the Go daemon's values as defaults. Durations that the core rounds are in milliseconds.

use crate::backoff::Backoff;
use crate::id::Provider;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;
use thiserror::Error;

/// How tasks are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimMode {
    /// One request for all runtimes while the server has that route, one poller per runtime where it has not.
    #[default]
    Auto,
    /// Always one request for all runtimes.
    Batch,
    /// Always one poller per runtime.
    PerRuntime,
}

/// What the core is created with. A setting that a recorded history does not have is at its default.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// Tasks that may run at once, 1 to 1 000.
    pub slots: u16,
    /// Smaller bounds for single providers.
    pub provider_caps: BTreeMap<Provider, u16>,
    /// How tasks are asked for.
    pub claim_mode: ClaimMode,
    /// Whether directories that nobody needs any more are removed.
    pub gc: bool,
    /// Every delay, period and deadline.
    pub timers: Timing,
}

/// Every delay, period and deadline of the core.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Timing {
    /// Between two claims that brought nothing. 30 s.
    pub poll: Duration,
    /// After a claim that failed. From 1 s to 30 s; the base is never longer than `poll`.
    pub claim_backoff: Backoff,
    /// Longest wait that a server may ask for after a claim. 5 min.
    pub retry_after_cap: Duration,
    /// Deadline of a claim for all runtimes. 5 s.
    pub claim_batch: Duration,
    /// Deadline of a claim over the control connection: the server's budget of 5 s and 2 s for the way. 7 s.
    pub claim_over: Duration,
    /// After a claim of unknown fate none is sent for this long. 7 s.
    pub claim_hold_off: Duration,
    /// Between two heartbeats of a runtime. 15 s.
    pub beat: Duration,
    /// Deadline of a request that has none of its own. 30 s.
    pub request: Duration,
    /// Deadline of the workspace list and the token's renewal. 15 s.
    pub list: Duration,
    /// Between workspace lists while no runtime is registered. 30 s.
    pub sync_bootstrap: Duration,
    /// Between workspace lists. 30 min.
    pub sync: Duration,
    /// Between workspace lists from a server that only has the old route. 5 min.
    pub sync_legacy: Duration,
    /// Longest wait between workspace lists while they fail before there is a runtime. 5 min.
    pub sync_bootstrap_cap: Duration,
    /// Between two renewals of the token. 3 days.
    pub renew: Duration,
    /// Registrations of one workspace because of lost runtimes are at least this far apart. 30 s.
    pub register_coalesce: Duration,
    /// Wait before a failed registration is tried again. 60 s.
    pub register_retry: Duration,
    /// A registration waits this long for the custom runtimes of its workspace. 2 s.
    pub profiles_patience: Duration,
    /// Between looks for agent CLIs that were not there before. 2 min.
    pub discover: Duration,
    /// Longest wait between such looks while some agent CLI cannot be registered. 30 min.
    pub discover_cap: Duration,
    /// Between looks at the versions of all agent CLIs. 10 min.
    pub versions: Duration,
    /// Deadline of one look at the agent CLIs. 60 s.
    pub probe: Duration,
    /// First wait before an agent CLI that was slow is looked at again; it doubles to `discover`. 2 s.
    pub probe_again: Duration,
    /// An agent CLI that cannot be used any more must be found so twice, this far apart, to be taken off line. 60 s.
    pub demote_confirm: Duration,
    /// Deadline of what the server asks for in an answer to a heartbeat. 45 s.
    pub action: Duration,
    /// Between looks whether the server still refuses the credential. 30 s.
    pub access: Duration,
    /// A sleep of the machine that is this long makes everything due. 5 s.
    pub sleep: Duration,
    /// Between dials of the control connection. 1 s to 30 s.
    pub link_backoff: Backoff,
    /// A control connection that lived this long resets its backoff. 10 s.
    pub link_settled: Duration,
    /// Two reconciliations are at least this far apart. 1 s.
    pub reconcile_gap: Duration,
    /// From the start of preparation until `/start` has returned. 5 min.
    pub prepare: Duration,
    /// Between refreshes of the prepare lease. 15 s.
    pub lease: Duration,
    /// Deadline of one refresh. 10 s.
    pub lease_request: Duration,
    /// Between tries of `/start`. From 0.5 s.
    pub start_backoff: Backoff,
    /// Between looks at a task's status. 5 s.
    pub watch: Duration,
    /// A task that the server does not know must be missing for this long, and at three looks, to be given up. 5 s.
    pub gone_confirm: Duration,
    /// Messages are collected for this long. 500 ms.
    pub flush: Duration,
    /// Deadline of one post of messages. 30 s.
    pub messages: Duration,
    /// Between tries of messages, usage and the session's pin. 0.5 s to 30 s.
    pub post_backoff: Backoff,
    /// After the end of a run the report waits this long for the last messages. 22 s.
    pub drain: Duration,
    /// Deadline of the session's pin. 5 s.
    pub pin: Duration,
    /// Longest time of a run without the machine's sleep, from its launch; zero for no limit. Zero.
    pub run_limit: Duration,
    /// A run that says nothing for this long, while no tool of it is at work and without the machine's sleep, is ended; zero turns both
    /// watchdogs off. 30 min.
    pub idle: Duration,
    /// Shorter silences for single providers; a longer one than `idle`, or zero, has no effect. opencode: 10 min.
    pub idle_of: BTreeMap<Provider, Duration>,
    /// The same while a tool is at work; zero for no limit. 2 h.
    pub tool_idle: Duration,
    /// After its result an agent has this long to end by itself. 3 s.
    pub result_grace: Duration,
    /// Between the polite signal and the kill. 5 s.
    pub kill_grace: Duration,
    /// Between tries of a terminal report. 4 s to 64 s.
    pub report_backoff: Backoff,
    /// A terminal report that is not taken within this time goes to the late outbox. 6 min.
    pub report: Duration,
    /// Between tries of late reports. 1 s to 5 min.
    pub late_backoff: Backoff,
    /// At a stop, an open claim is waited for this long. 2 s.
    pub stop_claims: Duration,
    /// At a stop, runs and their reports are waited for this long. 30 s.
    pub stop_tasks: Duration,
    /// At a stop, deadline of the deregistration. 5 s.
    pub stop_deregister: Duration,
    /// The collector's first round, from the moment the daemon is ready; never later than `gc`. 30 s.
    pub gc_first: Duration,
    /// Between the end of a round of the collector and the next. 2 h.
    pub gc: Duration,
    /// Deadline of one look for directories, of the freeing of one, and of the tidying up of caches. 10 min.
    pub gc_work: Duration,
    /// After a second signal, everything that is left gets this long. 1 s.
    pub stop_forced: Duration,
}

impl Timing {
    /// How long a run of this provider may say nothing; `None` for as long as it likes.
    pub fn silence(&self, provider: Option<&Provider>, in_tool: bool) -> Option<Duration> {
        let window = if in_tool && !self.idle.is_zero() {
            self.tool_idle
        } else {
            let own = provider.and_then(|provider| self.idle_of.get(provider)).filter(|own| !own.is_zero());
            own.map_or(self.idle, |own| self.idle.min(*own))
        };
        (!window.is_zero()).then_some(window)
    }
}

impl Default for Timing {
    fn default() -> Self {
        let s = Duration::from_secs;
        let ms = Duration::from_millis;
        Self {
            poll: s(30),
            claim_backoff: Backoff { base: s(1), cap: s(30) },
            retry_after_cap: s(300),
            claim_batch: s(5),
            claim_over: s(7),
            claim_hold_off: s(7),
            beat: s(15),
            request: s(30),
            list: s(15),
            sync_bootstrap: s(30),
            sync: s(30 * 60),
            sync_legacy: s(5 * 60),
            sync_bootstrap_cap: s(5 * 60),
            renew: s(3 * 24 * 3600),
            register_coalesce: s(30),
            register_retry: s(60),
            profiles_patience: s(2),
            discover: s(120),
            discover_cap: s(30 * 60),
            versions: s(10 * 60),
            probe: s(60),
            probe_again: s(2),
            demote_confirm: s(60),
            action: s(45),
            access: s(30),
            sleep: s(5),
            link_backoff: Backoff { base: s(1), cap: s(30) },
            link_settled: s(10),
            reconcile_gap: s(1),
            prepare: s(5 * 60),
            lease: s(15),
            lease_request: s(10),
            start_backoff: Backoff { base: ms(500), cap: s(8) },
            watch: s(5),
            gone_confirm: s(5),
            flush: ms(500),
            messages: s(30),
            post_backoff: Backoff { base: ms(500), cap: s(30) },
            drain: s(22),
            pin: s(5),
            run_limit: Duration::ZERO,
            idle: s(30 * 60),
            idle_of: BTreeMap::from([(Provider::new("opencode"), s(10 * 60))]),
            tool_idle: s(2 * 3600),
            result_grace: s(3),
            kill_grace: s(5),
            report_backoff: Backoff { base: s(4), cap: s(64) },
            report: s(6 * 60),
            late_backoff: Backoff { base: s(1), cap: s(300) },
            stop_claims: s(2),
            stop_tasks: s(30),
            stop_deregister: s(5),
            stop_forced: s(1),
            gc_first: s(30),
            gc: s(2 * 3600),
            gc_work: s(10 * 60),
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            slots: 20,
            provider_caps: BTreeMap::new(),
            claim_mode: ClaimMode::Auto,
            gc: false,
            timers: Timing::default(),
        }
    }
}

/// A value that the core cannot work with.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// `slots` is out of bounds.
    #[error("the number of concurrent tasks must be 1 to {max}, not {got}", max = Config::MAX_SLOTS)]
    Slots {
        /// What was asked for.
        got: u16,
    },
    /// A period is zero, which would be a busy loop.
    #[error("the {name} interval must be longer than zero")]
    Zero {
        /// Which one.
        name: &'static str,
    },
    /// A provider may run nothing at all.
    #[error(
        "{provider}: max_concurrent_tasks must be at least 1; to take no tasks for it, remove its executable path instead"
    )]
    ProviderCap {
        /// Which one.
        provider: Provider,
    },
    /// Longer than [`Config::MAX_SECS`].
    #[error("the time {name} is longer than a hundred years")]
    TooLong {
        /// What takes so long.
        name: String,
    },
}

impl Config {
    /// Most slots that a daemon can have.
    pub const MAX_SLOTS: u16 = 1_000;
    /// Most seconds of any time: a hundred years.
    pub const MAX_SECS: u64 = 100 * 365 * 24 * 3_600;

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        if self.slots == 0 || self.slots > Self::MAX_SLOTS {
            return Err(ConfigError::Slots { got: self.slots });
        }
        if let Some((provider, _)) = self.provider_caps.iter().find(|(_, cap)| **cap == 0) {
            return Err(ConfigError::ProviderCap { provider: provider.clone() });
        }
        let t = &self.timers;
        let periods = [
            ("poll", t.poll),
            ("heartbeat", t.beat),
            ("workspace sync", t.sync),
            ("first workspace sync", t.sync_bootstrap),
            ("legacy workspace sync", t.sync_legacy),
            ("token renewal", t.renew),
            ("prepare lease", t.lease),
            ("status", t.watch),
            ("claim backoff", t.claim_backoff.base),
            ("connection backoff", t.link_backoff.base),
            ("start backoff", t.start_backoff.base),
            ("message backoff", t.post_backoff.base),
            ("report backoff", t.report_backoff.base),
            ("late report backoff", t.late_backoff.base),
            ("register retry", t.register_retry),
            ("agent discovery", t.discover),
            ("agent version", t.versions),
            ("agent probe", t.probe_again),
            ("access", t.access),
            ("prepare deadline", t.prepare),
            ("collector", t.gc),
            ("collector's work", t.gc_work),
        ];
        if let Some((name, _)) = periods.into_iter().find(|(_, d)| d.is_zero()) {
            return Err(ConfigError::Zero { name });
        }
        // Of every time that there is, as it is written.
        match serde_json::to_value(t).ok().as_ref().and_then(too_long) {
            Some(name) => Err(ConfigError::TooLong { name: name.to_owned() }),
            None => Ok(()),
        }
    }
}

/// The name of a duration that is longer than all that is calculated with.
fn too_long(value: &serde_json::Value) -> Option<&str> {
    value.as_object()?.iter().find_map(|(name, inner)| {
        let secs = inner.get("secs").and_then(serde_json::Value::as_u64);
        if secs.is_some_and(|secs| secs > Config::MAX_SECS) { Some(name.as_str()) } else { too_long(inner) }
    })
}
