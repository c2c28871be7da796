//! The header of each life, from what a process says of itself.

use super::heard::Heard;
use super::said::Said;
use crate::config::duration::{self, Days, SignedNanos};
use longshore_core::config::Config;
use longshore_core::daemon::Daemon;
use longshore_core::effect::Effects;
use longshore_core::id::{Provider, is_safe_component};
use longshore_core::rng::Seed;
use longshore_core::time::Now;
use longshore_core::trace::{Header, IMPORTED, Origin};
use std::time::Duration;

/// The header of a life that begins now, or that had begun before the log does. Its number tells it apart from one that begins at the same time.
pub(super) fn header(nth: u64, line: &Heard, now: Now) -> Header {
    let is_whole = line.said == Some(Said::Begun);
    let version = line.get("version").filter(|version| is_whole && is_safe_component(version));
    let core = version.map_or_else(|| "multica".to_owned(), |version| format!("multica {version}"));
    // How many slots there are is not known until the log says so.
    let config = Config { slots: Config::MAX_SLOTS, ..Config::default() };
    let mut header = Header::new(IMPORTED, config, Seed(nth), now);
    header.core = core;
    // There is no state to go on from; a trace that does not begin with the process begins after some step, which is called 0.
    header.from = (!is_whole).then(|| Origin::new(0, 0));
    header
}

/// Takes the settings that the log names. One that this version could not have is left out.
pub(super) fn settings(header: &mut Header, line: &Heard) {
    let time = |key: &str| {
        let nanos = duration::parse(line.get(key)?, Days::Refused).ok().and_then(SignedNanos::non_negative);
        nanos.filter(|time| *time < Duration::from_hours(24 * 365))
    };
    let mut config = header.config.clone();
    config.slots = line.number("max_concurrent_tasks").unwrap_or(config.slots);
    config.gc = line.get("gc_enabled") == Some("true");
    let timers = &mut config.timers;
    for (to, key) in [
        (&mut timers.poll, "poll_interval"),
        (&mut timers.beat, "heartbeat_interval"),
        (&mut timers.run_limit, "agent_timeout"),
        (&mut timers.idle, "idle_watchdog"),
    ] {
        *to = time(key).unwrap_or(*to);
    }
    if let Some(own) = time("opencode_idle_watchdog") {
        timers.idle_of.insert(Provider::new("opencode"), own);
    }
    if Daemon::new(config.clone(), Seed(0), header.start, &mut Effects::new()).is_ok() {
        header.config = config;
    }
}
