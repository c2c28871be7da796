//! The end of the daemon, and what it does beside tasks.

use super::Check::{By, Later, Rule, Test};
use super::{Entry, inv};

pub(super) const ENTRIES: &[Entry] = &[
    inv("INV-133", "tasks are waited for only once every claim has ended", "seed S004", &[Rule, Test("core/tests/scenarios/stop.rs", "seed_shutdown_waits_for_pollers"), Test("tests/tests/black_box/seeds.rs", "seed_shutdown_waits_for_pollers"), Test("core/tests/scenarios/stop_kinds.rs", "inv_133_a_claim_that_never_ends_does_not_end_what_runs"), Test("core/tests/scenarios/stop_kinds.rs", "inv_133_a_restart_waits_no_longer_than_two_seconds_for_a_claim")]).but("an open claim is waited for 2 s at most; what it brings later is handed back, or left to the server"),
    inv("INV-134", "no claim is sent after a stop was asked for", "seed S004", &[Rule, Test("core/tests/scenarios/stop.rs", "inv_134_no_claim_after_a_stop")]),
    inv("INV-135", "what a claim brings after that is handed back as to be tried again, and nothing is run", "seed S004", &[Rule, Test("core/tests/scenarios/stop_kinds.rs", "inv_135_what_a_claim_brings_to_a_drain_is_handed_back"), Test("core/tests/scenarios/stop.rs", "inv_135_nothing_is_launched_while_the_daemon_stops")]).but("nothing of a claim that a stop met; a drain still prepares and launches the tasks that were here before it"),
    inv("INV-136", "a stop ends within the sum of what it waits for, and at once with nothing to do", "seed S004", &[Rule, Test("core/tests/scenarios/stop.rs", "inv_136_a_stop_with_nothing_to_do_is_short"), Test("core/tests/scenarios/stop_kinds.rs", "inv_136_a_drain_that_takes_too_long_goes_on_as_a_plain_stop"), Test("core/tests/scenarios/stop_kinds.rs", "inv_136_a_restart_is_bounded"), Test("core/tests/scenarios/stop_kinds.rs", "inv_136_a_second_request_makes_no_stop_longer")]).but("a drain without a limit waits for its runs as long as they take"),
    inv("INV-137", "a stop takes all runtimes off line", "observed", &[Rule, Test("core/tests/scenarios/stop_kinds.rs", "inv_137_a_drain_lets_runs_end_and_takes_the_runtimes_off_line_last")]).but("at its beginning rather than its end, so that the server gives them nothing more; a drain does it last, and a restart not at all: the next process goes on with them"),
    inv("INV-138", "only what was registered is taken off line", "observed", &[Rule]),
    inv("INV-139", "reports that are sent during a stop have their full time", "public report MUL-4937", &[Rule, By("INV-109"), Test("core/tests/scenarios/stop_kinds.rs", "inv_139_a_late_report_gets_a_last_try_at_a_stop")]),
    inv("INV-140", "a registration on its way ends promptly at a stop", "observed", &[Rule, Test("core/tests/scenarios/stop.rs", "inv_141_a_registration_on_its_way_is_taken_back")]),
    inv("INV-141", "nothing that changes the runtimes is sent during a stop", "ours", &[Rule, Test("core/tests/scenarios/stop_kinds.rs", "inv_141_a_registration_in_a_drain_is_taken_back_at_its_end")]),
    inv("INV-142", "a second request to stop ends the daemon within a second", "ours", &[Rule, Test("core/tests/scenarios/stop.rs", "inv_142_a_second_request_hurries"), Test("tests/tests/black_box/service.rs", "a_second_signal_hurries")]),
    inv("INV-143", "the collector's first round comes after min(30 s, its interval)", "observed", &[Rule, Test("core/tests/scenarios/gc.rs", "inv_143_nothing_is_looked_for_in_the_first_half_minute")]),
    inv("INV-144", "the collector begins nothing once a stop was asked for", "observed", &[Rule, Test("core/tests/scenarios/gc.rs", "inv_144_a_stop_ends_the_round")]),
    inv("INV-145", "the daemon restarts to update only with nothing about", "observed", &[Later("updating itself does not exist yet; the gate that it needs is I10")]),
    inv("INV-146", "a version that cannot be read leads to nothing", "public report MUL-3269", &[Later("agents are looked for once, at the start, and the daemon does not replace itself")]),
    inv("INV-147", "tidying up of repositories gives way before an agent is launched", "observed", &[Rule, Test("core/tests/scenarios/gc.rs", "inv_147_caches_are_left_alone_when_a_task_comes")]),
];
