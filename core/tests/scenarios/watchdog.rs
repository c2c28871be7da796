//! Runs that say nothing, and runs that take long: what ends them, what does not, and a machine that sleeps.

use crate::rig::{Rig, ended, failed, ms, offer, secs, with};
use longshore_core::config::ClaimMode::Batch;
use longshore_core::config::{Config, Timing};
use longshore_core::event::{Event, RunEnd, RunEvent, TaskStatus};
use longshore_core::id::Provider;
use longshore_core::reason::FailReason;
use std::time::Duration;

const fn mins(n: u64) -> Duration {
    Duration::from_secs(60 * n)
}

const fn hours(n: u64) -> Duration {
    mins(60 * n)
}

/// A millisecond less.
const fn almost(time: Duration) -> Duration {
    time.saturating_sub(ms(1))
}

fn config(tune: impl FnOnce(&mut Timing)) -> Config {
    let mut config = with(4, Batch);
    tune(&mut config.timers);
    config
}

fn running_with(tune: impl FnOnce(&mut Timing), provider: &str) -> Rig {
    let mut d = Rig::serving(config(tune), &[&format!("r-1:{provider}")]);
    d.running(&offer(1, "t-1", "r-1"));
    d.clear();
    d
}

/// A run with the settings as they are by default.
fn running() -> Rig {
    running_with(|_| {}, "claude")
}

impl Rig {
    fn in_tools(&mut self, tools: u32) {
        self.run("run 1", RunEvent::Progress { have: 0, session: false, tools });
    }

    fn goes_on(&self) {
        self.assert_not("is ending");
        self.assert_not("end #");
    }
}

#[test]
fn inv_111_a_silent_run_is_ended_after_its_window_and_fails_with_its_reason() {
    let mut d = running();
    let op = d.op("run 1").0;
    d.says("run 1", 0);
    let from = d.now();
    d.live(almost(mins(30)));
    d.goes_on();
    d.live(ms(1));
    assert_eq!(d.when("is ending 1 idle").since(from), mins(30), "to the millisecond");
    d.assert_order(&["is ending 1 idle", &format!("end #{op}")]);
    d.live(secs(7));
    d.assert_saw(&format!("kill #{op}"));
    d.run("run 1", ended(failed(FailReason::Cancelled), 0));
    d.before_report(1);
    assert!(d.is_open("fail 1 idle_watchdog"));
}

#[test]
fn a_run_whose_launch_hangs_is_silent_too() {
    let mut d = Rig::serving(with(4, Batch), &["r-1:claude"]);
    d.offer(&offer(1, "t-1", "r-1"));
    d.ok("prepare 1");
    d.ok("start 1");
    d.live(mins(30));
    d.assert_saw("is ending 1 idle");
}

#[test]
fn inv_112_a_run_that_goes_on_speaking_is_never_ended_by_time() {
    let mut d = running();
    for _ in 0..100 {
        d.live(mins(29));
        d.says("run 1", 0);
    }
    d.goes_on();
}

#[test]
fn inv_111_with_a_tool_at_work_only_the_tool_window_counts() {
    // an hour in one tool is legitimate work.
    let mut d = running();
    d.live(mins(20));
    d.in_tools(1);
    let from = d.now();
    d.live(almost(hours(2)));
    d.goes_on();
    d.live(ms(1));
    assert_eq!(d.when("is ending 1 idle").since(from), hours(2));
}

#[test]
fn bug_24_of_two_tools_the_one_that_is_open_counts() {
    let mut d = running();
    d.in_tools(2);
    d.live(secs(10));
    d.in_tools(1);
    let from = d.now();
    d.live(mins(119));
    d.goes_on();
    d.live(mins(1));
    assert_eq!(d.when("is ending 1 idle").since(from), hours(2));
}

#[test]
fn after_its_last_tool_the_shorter_window_counts_again() {
    let mut d = running();
    d.in_tools(1);
    d.live(mins(90));
    d.in_tools(0);
    let from = d.now();
    d.live(mins(30));
    assert_eq!(d.when("is ending 1 idle").since(from), mins(30));
}

#[test]
fn inv_111_a_window_of_a_provider_can_only_be_shorter() {
    let opencode = |own| {
        move |t: &mut Timing| {
            t.idle_of.insert(Provider::new("opencode"), own);
        }
    };
    for (own, window) in [(mins(10), mins(10)), (mins(60), mins(30)), (Duration::ZERO, mins(30))] {
        let mut d = running_with(opencode(own), "opencode");
        d.live(almost(window));
        d.goes_on();
        d.live(ms(1));
        d.assert_saw("is ending 1 idle");
        let mut other = running_with(opencode(own), "claude");
        other.live(mins(29));
        other.goes_on();
    }
    let mut d = running();
    d.in_tools(1);
    d.live(mins(119));
    d.goes_on();
}

#[test]
fn no_watchdog_where_none_is_wanted() {
    for tools in [0, 1] {
        let mut d = running_with(|t| t.idle = Duration::ZERO, "opencode");
        d.in_tools(tools);
        d.live(hours(50));
        d.goes_on();
    }
    let mut d = running_with(|t| t.tool_idle = Duration::ZERO, "claude");
    d.in_tools(1);
    d.live(hours(50));
    d.goes_on();
    d.in_tools(0);
    d.live(mins(30));
    d.assert_saw("is ending 1 idle");
}

#[test]
fn incident_w13_a_machine_that_slept_loses_no_run() {
    let mut d = running();
    d.says("run 1", 0);
    d.live(mins(20));
    d.sleep(hours(8));
    d.live(almost(mins(10)));
    d.goes_on();
    d.live(ms(1));
    d.assert_saw("is ending 1 idle");
}

#[test]
fn sleep_counts_for_no_limit() {
    let mut d = running_with(|t| t.run_limit = hours(1), "claude");
    for _ in 0..5 {
        d.live(mins(10));
        d.says("run 1", 0);
        d.sleep(hours(8));
    }
    d.live(almost(mins(10)));
    d.goes_on();
    d.live(ms(1));
    d.assert_saw("is ending 1 too long");
}

#[test]
fn a_run_at_its_limit_fails_with_timeout_however_much_it_says() {
    let mut d = running_with(|t| t.run_limit = mins(5), "claude");
    for _ in 0..5 {
        d.goes_on();
        d.says("run 1", 0);
        d.live(mins(1));
    }
    d.assert_saw("is ending 1 too long");
    d.run("run 1", ended(failed(FailReason::Cancelled), 0));
    d.before_report(1);
    assert!(d.is_open("fail 1 timeout"));
}

#[test]
fn a_message_that_comes_with_the_deadline_wins() {
    let mut d = running();
    d.live(almost(mins(30)));
    d.skip(ms(1));
    d.says("run 1", 0);
    d.goes_on();
    d.live(almost(mins(30)));
    d.goes_on();
}

#[test]
fn an_agent_is_heard_out_after_the_daemon_itself_stood_still() {
    // Stopped with a signal, or a machine that slept and whose clocks do not tell.
    let stood_still = || {
        let mut d = running();
        d.skip(hours(8));
        d.feed(Event::Tick);
        d.goes_on();
        d
    };
    let mut d = stood_still();
    d.live(almost(secs(5)));
    d.goes_on();
    d.live(ms(1));
    d.assert_saw("is ending 1 idle");
    let mut d = stood_still();
    d.live(secs(4));
    d.says("run 1", 0);
    d.live(almost(mins(30)));
    d.goes_on();
}

#[test]
fn a_success_that_comes_after_the_watchdog_is_none() {
    let mut d = running();
    d.live(mins(30));
    d.run("run 1", RunEvent::Result);
    d.run("run 1", ended(RunEnd::Completed, 0));
    d.before_report(1);
    assert!(d.is_open("fail 1 idle_watchdog"), "the spec forces it");
}

#[test]
fn a_stop_after_the_watchdog_leaves_its_reason_and_the_server_has_the_last_word() {
    let mut d = running();
    d.live(mins(30));
    d.stop();
    d.run("run 1", ended(failed(FailReason::Cancelled), 0));
    d.before_report(1);
    assert!(d.is_open("fail 1 idle_watchdog"));

    let mut d = running();
    d.live(mins(30));
    d.pass(secs(5));
    d.status("status 1", TaskStatus::Cancelled);
    d.run("run 1", ended(failed(FailReason::Cancelled), 0));
    d.ok("unwind 1");
    assert!(d.is_open("cancel-ack 1"));
}

#[test]
fn an_agent_that_has_answered_is_no_longer_watched() {
    let mut d = running_with(|t| (t.idle, t.run_limit) = (secs(2), secs(2)), "claude");
    d.run("run 1", RunEvent::Result);
    d.live(secs(20));
    d.assert_not("is ending");
    d.run("run 1", ended(RunEnd::Completed, 0));
    d.before_report(1);
    assert!(d.is_open("complete 1"));
}

#[test]
fn a_second_launch_has_its_own_time() {
    let mut d = running_with(|t| t.run_limit = hours(1), "claude");
    d.live(mins(29));
    d.run("run 1", rejected());
    d.live(mins(29));
    d.goes_on();
    d.says("run 1 fresh", 1);
    d.live(mins(30));
    d.assert_saw("is ending 1 idle");
}

fn rejected() -> RunEvent {
    use longshore_core::event::RunOutcome;
    let end = failed(FailReason::ProcessFailure);
    RunEvent::Ended { outcome: RunOutcome { end, have: 0, usage: false, resume_rejected: true } }
}
