//! How a daemon starts, and which workspaces and runtimes it serves.

use super::Check::{By, Rule, Test, Type};
use super::{Entry, inv};

pub(super) const ENTRIES: &[Entry] = &[
    inv("INV-01", "nothing is asked of the server before the health port is bound", "observed", &[Test("tests/tests/black_box/service.rs", "a_port_in_use_is_named_before_the_server_is_contacted")]),
    inv("INV-02", "health is answered only by a daemon that has a token", "observed", &[Test("io-tokio/src/health/server_tests.rs", "inv_02_nothing_is_answered_before_the_daemon_serves"), Test("tests/tests/black_box/service.rs", "a_missing_token_is_named_with_its_file_and_what_to_do")]),
    inv("INV-03", "the credential is renewed before the first list of workspaces", "public report MUL-2744", &[Rule]).but("sent before it, but not waited for: a refused credential is told with the same hint whichever of the two meets it, and a renewal that hangs costs no start"),
    inv("INV-04", "nothing that becomes of a renewal ends the start", "public report MUL-2744", &[Rule, Test("core/tests/scenarios/fleet.rs", "inv_04_whatever_comes_of_the_renewal_the_daemon_starts")]),
    inv("INV-05", "the daemon is called ready once, after the first list and a try of each workspace in it", "observed", &[Rule]),
    inv("INV-06", "an empty list of workspaces is a good start", "public report #1175", &[Rule, Test("core/tests/scenarios/fleet.rs", "inv_06_an_empty_list_is_a_good_start")]),
    inv("INV-07", "a workspace is registered again only after the last answer was taken and what it took off line is off line", "public report MUL-3269", &[Rule, By("I16"), Test("core/tests/scenarios/fleet.rs", "inv_07_a_workspace_is_registered_again_only_once_its_runtimes_are_off_line")]),
    inv("INV-08", "an earlier process's tasks are failed only for a runtime that is new in the set", "public report MUL-1128, MUL-3332", &[By("ORPHANS-FIRST"), Test("core/tests/scenarios/fleet.rs", "leftovers_are_failed_only_for_runtimes_that_are_new")]),
    inv("INV-09", "a runtime is asked for only after its leftovers were dealt with", "ours", &[Rule, By("ORPHANS-FIRST"), By("RECOVERED-FIRST"), Test("core/tests/scenarios/recovery.rs", "inv_09_claims_wait_for_the_first_try_of_a_recovered_report")]),
    inv("INV-10", "leftovers of a runtime with a task here, or an end still to be told, are left alone", "ours", &[Rule, Test("core/tests/scenarios/recovery.rs", "inv_10_leftovers_are_not_failed_while_a_report_is_owed"), Test("core/tests/scenarios/fleet.rs", "leftovers_of_a_runtime_with_a_task_are_not_failed")]),
    inv("INV-11", "a version that cannot be read, or an agent that is slow or not there at the moment, takes no runtime off line", "public report MUL-3269", &[Rule, Test("core/tests/scenarios/agent_clis.rs", "inv_11_an_agent_that_is_slow_unreadable_unfit_or_not_there_keeps_its_runtime")]),
    inv("INV-12", "a provider that is held back joins the set by no answer, and comes back only by a later look that finds it working", "public report MUL-3269, MUL-6164", &[Rule, Test("core/tests/scenarios/agent_clis.rs", "inv_12_what_is_held_back_joins_by_no_answer_and_comes_back_as_it_works")]),
    inv("INV-13", "what is taken off line while the daemon serves is in the set no more", "public report MUL-3269", &[Rule]),
    inv("INV-14", "a provider is taken off line only while no claim and no task is about", "public report MUL-6164", &[Rule, Type("it is done inside the gate, which is held for as long as that takes"), Test("core/tests/scenarios/agent_clis.rs", "inv_14_who_has_the_gate_keeps_an_unfit_agent_on_line")]),
    inv("INV-15", "one look at the agents is on its way at most, no list leads to one, and they are asked side by side", "public report MUL-5225, #5837", &[Rule, Test("core/tests/scenarios/agent_clis.rs", "inv_15_a_list_looks_at_no_agent_and_one_look_is_on_its_way_at_most"), Test("io-tokio/src/discover/tests.rs", "programs_are_asked_side_by_side")]),
    inv("INV-16", "runtimes of a workspace that are lost together lead to one registration", "public report MUL-2215, #2391", &[By("I16"), Test("core/tests/scenarios/fleet.rs", "i16_runtimes_that_are_gone_are_registered_again_once")]),
    inv("INV-17", "a runtime that is lost after the last registration leads to another one", "public report MUL-2215", &[Rule]).but("at the end of the 30 s of the wave rather than inside them: the bound on registrations (I16) is worth more than seconds of a rare case"),
    inv("INV-18", "after a registration failed the next one waits", "public report #2404", &[By("I16")]).but("not 60 s at once but from 2 s, doubling to 60 s: most failures pass in seconds"),
    inv("INV-19", "a registration that failed makes up for no runtime that is lost meanwhile", "public report MUL-2215", &[By("INV-17")]),
    inv("INV-20", "a registration goes on although the runtime that it is for has left the set; only a workspace that is not ours any more or a stop cuts it short", "observed", &[Rule]),
    inv("INV-21", "a runtime that the server has forgotten leaves the set at once, and its last answer makes nothing fresh", "public report #2404", &[Rule]),
    inv("INV-22", "custom runtimes of known workspaces are fetched again only when something says that they changed, or before what was lost is registered again", "public report MUL-4480", &[Rule, Test("core/tests/scenarios/agent_clis.rs", "inv_22_custom_runtimes_are_asked_for_when_something_says_that_they_changed")]),
    inv("INV-23", "one list is on its way, and a change that is told meanwhile leads to exactly one more", "public report MUL-4480", &[Rule, Test("core/tests/scenarios/fleet.rs", "inv_23_a_change_during_a_list_leads_to_one_more")]),
    inv("INV-24", "a connection that comes up before anybody looks is looked at all the same", "public report #4665, #4718", &[By("INV-60"), Type("nobody subscribes: what reacts to a connection does so in the same step")]),
    inv("INV-25", "custom runtimes that cannot be fetched are not taken for none", "public report MUL-3332", &[Rule, Test("core/tests/scenarios/agent_clis.rs", "inv_25_custom_runtimes_that_cannot_be_fetched_stay_as_they_are")]),
];
