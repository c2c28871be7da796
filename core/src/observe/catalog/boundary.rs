//! What holds between the core and its adapter, whatever the daemon is about.

use super::Check::{By, Rule, Test, Type};
use super::{Entry, inv};

pub(super) const ENTRIES: &[Entry] = &[
    inv("I1", "each slot is free, held by a claim or held by a task, exactly once", "ours", &[Rule]),
    inv(
        "I2",
        "a claim asks for no more tasks than it holds slots, and for at least one",
        "ours",
        &[By("INV-40"), Type("a claim is made only from the slots that it holds")],
    ),
    inv("I3", "two claims of one kind are never on their way for the same runtimes at once", "ours", &[Rule]),
    inv(
        "I4",
        "each request has its own number and one end; only what is open is cancelled, and once",
        "ours",
        &[Rule],
    ),
    inv(
        "I5",
        "`/start` follows a prepared directory, and a launch follows an accepted `/start`",
        "ours",
        &[Rule, Type("`/start` and launch are made only from the proof of what comes before")],
    ),
    inv(
        "I6",
        "no agent is launched while a refresh of its lease is on its way, and none is sent after it",
        "ours",
        &[Rule, Type("a launch needs the proof that the lease has ended")],
    ),
    inv(
        "I7",
        "between claim and launch the server hears of a task within one period and one deadline of a refresh, unless a refresh failed",
        "ours",
        &[By("INV-117"), By("DEADLINE")],
    ),
    inv(
        "I8",
        "each claim ends with exactly one report that was taken, or with the server's own word, or is named at the exit",
        "ours",
        &[Rule],
    ),
    inv(
        "I9",
        "an open claim is not cut short by a stop before its time, and what it brings is handed back",
        "ours",
        &[Rule, By("INV-135")],
    ),
    inv(
        "I10",
        "no claim is sent while the gate is held or closed, and it is granted only to an idle daemon",
        "ours",
        &[Rule, Test("core/tests/scenarios/gate.rs", "i10_an_idle_daemon_gives_its_gate_away_and_claims_at_its_release")],
    ),
    inv(
        "I11",
        "no directory is removed while it is marked, and none is marked while it is removed",
        "ours",
        &[Rule, Type("one enum has either marks or a removal"), Test("core/tests/scenarios/gc.rs", "i11_a_directory_that_is_chosen_while_it_is_deleted_is_not_worked_in")],
    ),
    inv(
        "I12",
        "directories are marked from before their preparation until after they are sealed",
        "ours",
        &[By("INV-124")],
    ),
    inv(
        "I13",
        "a slot is free only after its task is reported and sealed, and then serves in the same step",
        "ours",
        &[Rule],
    ),
    inv("I14", "after a claim of unknown fate none is sent before its hold-off has passed", "ours", &[Rule, Test("core/tests/scenarios/claims_over.rs", "i14_inv_42_inv_43_incident_r16_after_a_claim_of_unknown_fate_one_goes_over_http_when_it_has_had_its_time")]).but("for claims over the connection; one over HTTP is followed after a backoff (see INV-42)"),
    inv(
        "I15",
        "each runtime beats within two intervals, its first time within one, and none beats that is not in the set",
        "ours",
        &[Rule],
    ),
    inv(
        "I16",
        "a workspace has one registration on its way, and one for a wave of lost runtimes",
        "ours",
        &[Rule],
    ),
    inv("I17", "what fits no request and no living connection changes nothing", "ours", &[Rule]),
    inv("I18", "a stop only moves forward, and nothing comes after the exit", "ours", &[Rule, Test("core/tests/scenarios/stop.rs", "i18_nothing_comes_after_the_exit")]),
    inv(
        "I19",
        "the first request to stop ends tasks, the second hurries, whatever the two ask for",
        "ours",
        &[Rule, Test("core/tests/scenarios/stop_kinds.rs", "i19_a_third_request_ends_the_process")],
    ),
    inv(
        "I20",
        "an agent is asked to end before it is killed, and never told anything once it is gone",
        "ours",
        &[Rule, Test("core/tests/scenarios/runs.rs", "i20_after_its_result_an_agent_is_first_asked_then_told_then_killed")],
    ),
    inv("I21", "tokens are reported before any end is, a cancelled one too", "ours", &[By("INV-98")]),
    inv(
        "I22",
        "a task that the server has ended is acknowledged, and never reported as done or failed",
        "ours",
        &[Rule],
    ),
    inv(
        "I23",
        "the collector frees only what this round found, and nothing once a stop began",
        "ours",
        &[Rule],
    ),
    inv("I24", "a step has a bounded number of effects, and time passes between ticks", "ours", &[Rule]),
    inv(
        "I25",
        "no secret is in anything that prints, is logged, or is traced",
        "ours",
        &[
            Test(
                "tests/tests/black_box/secrets.rs",
                "bug_48_no_secret_is_in_the_log_in_an_argument_or_left_on_the_disk",
            ),
            Test("io-tokio/src/log/redact.rs", "inv_i25_tokens_are_replaced_without_being_known"),
            Test("io-tokio/src/http/calls.rs", "inv_i25_nothing_that_prints_holds_the_token"),
        ],
    ),
    inv(
        "I26",
        "once everything works, the daemon comes to rest, or ends if it was asked to",
        "ours",
        &[Rule],
    ),
];
