//! The end of the daemon, and what it does beside tasks.

use super::Check::{By, Later, Rule, Test};
use super::{Entry, inv};

pub(super) const ENTRIES: &[Entry] = &[
    inv("INV-133", "tasks are waited for only once every claim has ended", "seed S004", &[Rule, Test("core/tests/scenarios/stop.rs", "seed_shutdown_waits_for_pollers"), Test("tests/tests/black_box/seeds.rs", "seed_shutdown_waits_for_pollers")]),
    inv("INV-134", "no claim is sent after a stop was asked for", "seed S004", &[Rule, Test("core/tests/scenarios/stop.rs", "inv_134_no_claim_after_a_stop")]),
    inv("INV-135", "what a claim brings after that is handed back as to be tried again, and nothing is run", "seed S004", &[Rule]),
    inv("INV-136", "a stop ends within the sum of what it waits for, and at once with nothing to do", "seed S004", &[Rule, Test("core/tests/scenarios/stop.rs", "inv_136_a_stop_with_nothing_to_do_is_short")]),
    inv("INV-137", "a stop takes all runtimes off line", "observed", &[Rule]).but("at its beginning rather than its end, so that the server gives them nothing more; a drain does it last"),
    inv("INV-138", "only what was registered is taken off line", "observed", &[Rule]),
    inv("INV-139", "reports that are sent during a stop have their full time", "public report MUL-4937", &[Rule, By("INV-109")]),
    inv("INV-140", "a registration on its way ends promptly at a stop", "observed", &[Rule, Test("core/tests/scenarios/stop.rs", "inv_141_a_registration_on_its_way_is_taken_back")]),
    inv("INV-141", "nothing that changes the runtimes is sent during a stop", "ours", &[Rule]),
    inv("INV-142", "a second request to stop ends the daemon within a second", "ours", &[Rule, Test("core/tests/scenarios/stop.rs", "inv_142_a_second_request_hurries"), Test("tests/tests/black_box/service.rs", "a_second_signal_hurries")]),
    inv("INV-143", "the collector's first round comes after min(30 s, its interval)", "observed", &[Rule]),
    inv("INV-144", "the collector begins nothing once a stop was asked for", "observed", &[Rule]),
    inv("INV-145", "the daemon restarts to update only with nothing about", "observed", &[Later("updating itself does not exist yet; the gate that it needs is I10")]),
    inv("INV-146", "a version that cannot be read leads to nothing", "public report MUL-3269", &[Later("agents are looked for once, at the start, and the daemon does not replace itself")]),
    inv("INV-147", "tidying up of repositories gives way before an agent is launched", "observed", &[Rule]),
];
