//! How tasks are asked for.

use super::Check::{By, Rule, Test, Type};
use super::{Entry, inv};

pub(super) const ENTRIES: &[Entry] = &[
    inv("INV-26", "a nudge reaches every subscriber", "seed S004", &[Test("core/src/watcher.rs", "seed_watcher_fan_out")]),
    inv("INV-27", "nudges before a look are one nudge", "seed S004", &[Test("core/src/watcher.rs", "seed_watcher_fan_out")]),
    inv("INV-28", "who has left gets no nudge", "seed S004", &[Test("core/src/watcher.rs", "seed_watcher_fan_out")]),
    inv("INV-29", "a nudge waits for nobody", "seed S004", &[Type("to nudge is to set bits: there is nothing that it could wait for")]),
    inv("INV-30", "after the last change all parts act on the newest set", "public report MUL-1744", &[By("RUNTIME-SET"), By("INV-64"), Type("inside the core there is no channel: all parts see a change in its own step")]),
    inv("INV-31", "free, claiming and working slots are all slots, with distinct numbers", "observed", &[By("I1"), Test("core/src/claim/slots.rs", "inv_31_slots_are_conserved_and_given_out_oldest_first")]),
    inv("INV-32", "a claim holds a slot from before it is sent until its answer", "seed S004, public report MUL-1744", &[By("I1"), By("INV-40"), Test("tests/tests/black_box/seeds.rs", "seed_no_claim_at_capacity")]),
    inv("INV-33", "what a claim brings is taken, refused or known already in the same step, and each slot it did not use comes back", "seed S004", &[Rule, By("I1")]),
    inv("INV-34", "whoever found no slot asks once one is free", "seed S004", &[Rule, Test("core/tests/scenarios/claims.rs", "seed_claim_when_slot_frees"), Test("tests/tests/black_box/seeds.rs", "seed_claim_when_slot_frees")]),
    inv("INV-35", "a claim of one runtime that hangs delays no claim of another while a slot is free", "seed S004", &[Test("core/tests/scenarios/claims.rs", "seed_poller_isolates_slow_runtime"), Test("tests/tests/black_box/seeds.rs", "seed_poller_isolates_slow_runtime")]).but("in the mode with one claim for all, a claim that hangs ends at its deadline of 5 s: it is one request for all runtimes"),
    inv("INV-36", "a wakeup for a runtime leads to a claim for it and for no other", "seed S004", &[Rule, Test("core/tests/scenarios/claims.rs", "seed_targeted_wakeup")]),
    inv("INV-37", "a wakeup for nobody in particular leads to a claim for all", "seed S004", &[Rule]),
    inv("INV-38", "a wakeup during a claim leads to one more right after it", "public report #3859", &[Rule, Test("core/tests/scenarios/claims.rs", "inv_38_a_wakeup_during_a_claim_is_kept")]),
    inv("INV-39", "the first claim of a poller comes after a part of the interval that its runtime's id decides", "public report #3859", &[Rule, Test("core/tests/scenarios/claims.rs", "inv_39_the_first_poll_of_a_runtime_has_its_own_offset")]),
    inv("INV-40", "a claim is for at least one runtime and for as many tasks as slots are held, at least one", "public report MUL-4257", &[Rule]),
    inv("INV-41", "a task that was brought is never between claim and work: it is counted by one of them at each step", "public report MUL-4257", &[Rule, By("INV-33"), Test("core/tests/scenarios/gate.rs", "inv_41_inv_49_an_update_is_refused_if_a_claim_brings_a_task")]),
    inv("INV-42", "after a claim that failed the next one waits, after one of unknown fate for the whole hold-off", "public report MUL-4257", &[Rule, Test("core/tests/scenarios/claims_over.rs", "inv_42_during_the_hold_off_no_runtime_is_asked_for_on_its_own_either")]).but("the hold-off is for claims over the connection; one over HTTP of which nobody knows what became of it is followed after a backoff"),
    inv("INV-43", "after a claim of unknown fate one is sent over HTTP once the hold-off has passed, also with a connection", "public report #5404", &[Rule, Test("core/tests/scenarios/claims_over.rs", "i14_inv_42_inv_43_incident_r16_after_a_claim_of_unknown_fate_one_goes_over_http_when_it_has_had_its_time")]),
    inv("INV-44", "claims go over a connection only after its own answer said that it takes them", "public report MUL-4775", &[Rule, Test("core/tests/scenarios/claims_over.rs", "inv_44_an_answer_before_the_connection_is_up_does_not_count")]),
    inv("INV-45", "without its route the claim for all is not tried again before the next connection", "public report MUL-4257", &[Rule, Test("core/tests/scenarios/claims.rs", "inv_45_without_the_batch_route_each_runtime_asks_for_itself_until_the_next_connection")]),
    inv("INV-46", "a frame that is said not to be sent never is", "public report MUL-4257", &[Test("io-tokio/src/ws/links.rs", "inv_46_a_recalled_frame_is_never_written")]),
    inv("INV-47", "the gate has at most one holder", "observed", &[Rule, Test("core/tests/scenarios/gate.rs", "inv_47_the_gate_has_one_holder")]),
    inv("INV-48", "who holds the gate was told so, and lets it go or restarts the process; what the daemon does inside it is over in the same step", "observed", &[Rule, Type("the gate is held for as long as a call takes"), Test("core/tests/scenarios/agent_clis.rs", "inv_14_inv_48_incident_r27_an_agent_that_cannot_be_run_goes_off_line_while_nothing_is_about")]),
    inv("INV-49", "who waits for the gate gets it once the claims on their way have ended with nothing", "public report #6123", &[Rule, Test("core/tests/scenarios/gate.rs", "inv_49_incident_r53_an_update_waits_for_the_claims_on_their_way_and_no_new_one_is_sent")]),
    inv("INV-50", "a runtime that leaves takes its poller and its beats along, never its tasks", "public report MUL-3332", &[Rule, Test("core/tests/scenarios/runs.rs", "inv_50_a_runtime_that_is_gone_keeps_its_task")]),
    inv("INV-51", "a claim or a task that fails gives back all it holds, and the others go on", "ours", &[By("I1"), By("I26"), Type("tokens come back with the end of each request, and nothing in a step can fail")]),
];
