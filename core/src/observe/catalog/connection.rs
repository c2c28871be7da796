//! Heartbeats, and the connection that brings hints.

use super::Check::{By, Rule, Test};
use super::{Entry, inv};

pub(super) const ENTRIES: &[Entry] = &[
    inv(
        "INV-52",
        "a beat that hangs delays no other",
        "seed S004, public report MUL-1744",
        &[
            By("I15"),
            Test("core/tests/scenarios/fleet.rs", "seed_heartbeat_isolation"),
            Test("tests/tests/black_box/seeds.rs", "seed_heartbeat_isolation"),
        ],
    ),
    inv(
        "INV-53",
        "a runtime beats for the first time within one interval",
        "public report MUL-1744",
        &[By("I15")],
    ),
    inv(
        "INV-54",
        "no beat goes over HTTP while the connection answers for its runtime, unless a hint asks for one",
        "observed",
        &[
            Rule,
            Test(
                "core/tests/scenarios/fleet.rs",
                "inv_54_answers_over_the_connection_silence_the_beats_over_http",
            ),
        ],
    ),
    inv("INV-55", "without a connection each runtime beats over HTTP in each interval", "observed", &[Rule]),
    inv(
        "INV-56",
        "idle connections are dropped at the second failure in a row, and only then",
        "public report MUL-3834",
        &[
            Rule,
            Test(
                "core/tests/scenarios/fleet.rs",
                "inv_56_idle_connections_are_dropped_at_the_second_failure_in_a_row",
            ),
        ],
    ),
    inv(
        "INV-57",
        "what a beat's answer asks for delays no beat",
        "observed",
        &[
            Rule,
            Test("core/tests/scenarios/actions.rs", "inv_57_what_a_beat_asks_for_delays_no_beat"),
            Test(
                "tests/tests/black_box/actions.rs",
                "bug_08_beats_go_on_while_an_agent_program_does_not_answer",
            ),
        ],
    ),
    inv(
        "INV-58",
        "hints bring at most one beat a second for a runtime, and one at a time",
        "public report MUL-5444",
        &[Rule, Test("core/tests/scenarios/fleet.rs", "inv_58_hints_bring_one_beat_a_second")],
    ),
    inv(
        "INV-59",
        "the result of an action is reported at most 4 times, and not again after a refusal",
        "public report #1561, #2018",
        &[
            Rule,
            Test("core/tests/scenarios/actions.rs", "inv_59_a_result_is_reported_four_times"),
            Test("core/tests/scenarios/actions.rs", "inv_59_a_refusal_ends_the_reports"),
            Test(
                "tests/tests/black_box/actions.rs",
                "inv_59_a_result_is_sent_again_until_it_is_taken_or_refused",
            ),
        ],
    ),
    inv(
        "INV-60",
        "a connection that comes up leads to a list, a look at each task, and one beat",
        "public report #1772, #4665",
        &[Rule, Test("core/tests/scenarios/fleet.rs", "inv_60_a_new_connection_asks_for_everything")],
    ),
    inv(
        "INV-61",
        "that happens at most once a second, and after a second if it came too soon",
        "public report #4718",
        &[
            Rule,
            Test(
                "core/tests/scenarios/fleet.rs",
                "inv_61_a_connection_that_comes_up_too_soon_is_looked_at_after_the_gap",
            ),
        ],
    ),
    inv(
        "INV-62",
        "a lost connection is dialled again only after a wait",
        "public report MUL-3834",
        &[Rule, Test("core/tests/scenarios/fleet.rs", "inv_62_the_connection_backs_off")],
    ),
    inv(
        "INV-63",
        "the wait doubles to 30 s until a connection lived for 10 s or the set has changed",
        "public report MUL-3834",
        &[Rule],
    ),
    inv(
        "INV-64",
        "another set leads to a connection that names it, but for those that the server refuses, as long as it does",
        "observed",
        &[
            Rule,
            Test("core/tests/scenarios/fleet.rs", "inv_64_another_set_reconnects"),
            Test(
                "core/tests/scenarios/refused_dials.rs",
                "w_14_a_runtime_that_this_credential_may_not_see_costs_the_others_no_connection",
            ),
        ],
    ),
    inv(
        "INV-65",
        "nothing that waited for an old connection is written after it",
        "public report MUL-4257",
        &[Test("io-tokio/src/ws/links.rs", "inv_65_nothing_that_waits_is_written_after_the_link_is_dropped")],
    ),
    inv(
        "INV-66",
        "a round of heartbeats of all runtimes fits the queue",
        "public report MUL-1744",
        &[Test("io-tokio/src/ws/links.rs", "inv_66_the_queue_is_bounded_and_takes_a_round_of_heartbeats")],
    ),
    inv(
        "INV-67",
        "an answer of several MiB arrives and the connection stays",
        "public report #5432",
        &[Test("io-tokio/src/ws/links.rs", "inv_67_a_large_answer_arrives")],
    ),
    inv(
        "INV-68",
        "60 s of silence end a connection",
        "public report MUL-3834",
        &[Test("io-tokio/src/ws/links.rs", "inv_68_silence_ends_a_link")],
    ),
    inv(
        "INV-69",
        "without any connection everything works, by polling",
        "public report #1772",
        &[Test("core/tests/scenarios/fleet.rs", "inv_69_without_the_connection_everything_works_by_polling")],
    ),
    inv(
        "INV-70",
        "the connection uses the proxy that requests use",
        "public report #6279",
        &[Test("io-tokio/src/http/proxied.rs", "inv_70_bug_29_requests_and_the_link_use_the_same_proxy")],
    ),
];
