//! Runs that were silent, or took too long, in words: what happened, and which setting allows more.

use longshore_core::codec::duration::Spelled;
use longshore_core::codec::outcome::EndedBy;
use longshore_core::config::Timing;
use longshore_core::id::Provider;
use std::time::Duration;

/// The run was ended by the idle watchdog.
pub(super) fn idle(timing: &Timing, provider: &str, in_tool: bool) -> (EndedBy, String) {
    let provider = Provider::new(provider);
    let silent = timing.silence(Some(&provider), in_tool).unwrap_or_default();
    let (what, setting) = match provider.as_str() {
        _ if in_tool => ("a tool", "MULTICA_AGENT_TOOL_WATCHDOG"),
        "opencode" if silent < timing.idle => ("opencode", "MULTICA_OPENCODE_IDLE_WATCHDOG"),
        _ => ("an agent", "MULTICA_AGENT_IDLE_WATCHDOG"),
    };
    let hint =
        format!("to let {what} be silent for longer than {}, set {setting} (0 is no limit)", Spelled(silent));
    (EndedBy::IdleWatchdog { silent, in_tool }, hint)
}

/// The run was ended at its limit.
pub(super) fn too_long(timing: &Timing) -> (EndedBy, String) {
    let after = timing.run_limit;
    let hint = format!(
        "to let a run take longer than {}, set --agent-timeout or MULTICA_AGENT_TIMEOUT (0 is no limit)",
        Spelled(after)
    );
    (EndedBy::Timeout { after }, hint)
}

/// Waits for less than any silence that counts: an agent that is made to wait gives a sign of life so often. For ever, if none counts.
pub(super) async fn before_it_counts(timing: &Timing) {
    match pace(timing) {
        Some(pace) => tokio::time::sleep(pace).await,
        None => std::future::pending().await,
    }
}

fn pace(timing: &Timing) -> Option<Duration> {
    let own = timing.idle_of.keys().filter_map(|provider| timing.silence(Some(provider), false));
    let all = [false, true].into_iter().filter_map(|in_tool| timing.silence(None, in_tool)).chain(own);
    all.min().map(|shortest| (shortest / 3).max(Duration::from_millis(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_names_the_setting_that_counted() {
        let timing = Timing::default();
        let of = |provider, in_tool| idle(&timing, provider, in_tool).1;
        assert!(of("claude", false).contains("longer than 30m0s, set MULTICA_AGENT_IDLE_WATCHDOG"));
        assert!(of("opencode", false).contains("longer than 10m0s, set MULTICA_OPENCODE_IDLE_WATCHDOG"));
        assert!(of("opencode", true).contains("longer than 2h0m0s, set MULTICA_AGENT_TOOL_WATCHDOG"));
        let short = Timing { idle: Duration::from_mins(1), ..Timing::default() };
        assert!(
            idle(&short, "opencode", false).1.contains("longer than 1m0s, set MULTICA_AGENT_IDLE_WATCHDOG")
        );
    }

    #[test]
    fn an_agent_that_is_made_to_wait_gives_signs_of_life_within_every_window() {
        let timing = Timing::default();
        assert_eq!(pace(&timing), Some(Duration::from_secs(200)), "opencode has 10 minutes");
        let tools = Timing { tool_idle: Duration::from_secs(6), ..Timing::default() };
        assert_eq!(pace(&tools), Some(Duration::from_secs(2)));
        assert_eq!(pace(&Timing { idle: Duration::ZERO, ..Timing::default() }), None, "nothing counts");
    }
}
