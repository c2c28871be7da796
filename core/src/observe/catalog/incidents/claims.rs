//! Claims, beats, directories of tasks and the control connection.

use super::Incident;
use crate::observe::catalog::Check::{By, Test, Type};

pub(super) const INCIDENTS: &[Incident] = &[
    Incident {
        id: "R-01",
        report: "MUL-1744",
        what: "one loop over all runtimes: a stall of one froze the claims and beats of all",
        checks: &[
            By("I15"),
            Test("core/tests/scenarios/claims.rs", "seed_poller_isolates_slow_runtime"),
            Test("core/tests/scenarios/fleet.rs", "seed_heartbeat_isolation"),
        ],
    },
    Incident {
        id: "R-02",
        report: "MUL-1744",
        what: "the slot was taken after the claim, so tasks waited where nobody works and were swept",
        checks: &[
            By("INV-40"),
            By("I1"),
            Test("core/tests/scenarios/claims.rs", "seed_no_claim_at_capacity"),
        ],
    },
    Incident {
        id: "R-03",
        report: "MUL-1744",
        what: "a task was counted after the wait at a stop had begun",
        checks: &[By("INV-135"), Test("core/tests/scenarios/stop.rs", "seed_shutdown_waits_for_pollers")],
    },
    Incident {
        id: "R-04",
        report: "MUL-1744",
        what: "a queue of 8 frames dropped heartbeats of the ninth runtime",
        checks: &[Test(
            "io-tokio/src/ws/links.rs",
            "inv_66_the_queue_is_bounded_and_takes_a_round_of_heartbeats",
        )],
    },
    Incident {
        id: "R-05",
        report: "#3859",
        what: "a wakeup for one runtime woke all, and all polled in step",
        checks: &[
            By("INV-36"),
            Test("core/tests/scenarios/claims.rs", "seed_targeted_wakeup"),
            Test("core/tests/scenarios/claims.rs", "inv_39_the_first_poll_of_a_runtime_has_its_own_offset"),
        ],
    },
    Incident {
        id: "R-06",
        report: "#3999, MUL-3242",
        what: "the server said running before the work directory was there",
        checks: &[By("I5"), Test("tests/tests/black_box/seeds.rs", "seed_start_after_workdir")],
    },
    Incident {
        id: "R-07",
        report: "#3999",
        what: "between the end of a run and its record the directory was unprotected",
        checks: &[
            By("INV-124"),
            By("INV-114"),
            Test("core/tests/scenarios/runs.rs", "seed_env_root_active_across_complete"),
            Test(
                "core/tests/scenarios/gc.rs",
                "incident_r07_a_directory_is_not_freed_between_the_end_of_its_run_and_its_report",
            ),
        ],
    },
    Incident {
        id: "R-08",
        report: "MUL-4923",
        what: "a preparation hung for ever, and its retry wrote beside it",
        checks: &[
            By("INV-79"),
            Test("tests/tests/black_box/seeds.rs", "seed_prepare_isolated_fifo"),
            Test(
                "tests/tests/supervise/prepare.rs",
                "inv_iso_7_after_a_deadline_nothing_of_the_preparation_is_left_and_a_retry_works",
            ),
            Test("core/tests/scenarios/start.rs", "prepare_deadline_while_preparing"),
        ],
    },
    Incident {
        id: "R-09",
        report: "#7326",
        what: "directories were named by the part of the id that tells the time: tasks of one minute wiped each other's",
        checks: &[Test(
            "io-tokio/src/prepare/helper_tests.rs",
            "bug_37_two_tasks_of_one_second_have_two_roots_and_neither_touches_the_other",
        )],
    },
    Incident {
        id: "R-10",
        report: "MUL-6491",
        what: "a task that was delivered again wiped the directory of its own live run",
        checks: &[
            By("INV-116"),
            Test(
                "io-tokio/src/prepare/lock.rs",
                "inv_83_a_live_claim_excludes_every_other_until_it_is_dropped",
            ),
            Test(
                "tests/tests/black_box/hostile.rs",
                "a_task_that_is_offered_again_while_it_runs_is_not_run_twice",
            ),
            Test(
                "core/tests/scenarios/incidents.rs",
                "incident_r10_a_task_that_is_offered_again_leaves_its_run_and_its_directory_alone",
            ),
        ],
    },
    Incident {
        id: "R-11",
        report: "MUL-4886",
        what: "a following task was claimed before the record of the one before was written, and lost its session",
        checks: &[Test(
            "io-tokio/src/prepare/reuse_tests.rs",
            "reu_1_the_next_turn_of_the_same_work_finds_its_files_and_its_session",
        )],
    },
    Incident {
        id: "R-12",
        report: "MUL-6368",
        what: "a directory of another agent was used because the server named it",
        checks: &[
            Test(
                "io-tokio/src/prepare/reuse_tests.rs",
                "inv_85_without_proof_nothing_is_written_in_the_prior_root",
            ),
            Test(
                "tests/tests/black_box/hostile.rs",
                "a_task_with_two_different_agents_is_refused_with_a_reason_of_its_own",
            ),
        ],
    },
    Incident {
        id: "R-13",
        report: "MUL-4257",
        what: "a claim over the connection timed out here and was committed there; the next one claimed once more",
        checks: &[
            By("INV-42"),
            By("I14"),
            Test("io-tokio/src/ws/links.rs", "inv_46_a_recalled_frame_is_never_written"),
            By("CLAIM-FALLBACK"),
            Test(
                "core/tests/scenarios/claims_over.rs",
                "incident_r13_a_claim_that_was_not_sent_or_was_refused_goes_over_http_at_once",
            ),
        ],
    },
    Incident {
        id: "R-14",
        report: "MUL-4257",
        what: "a new connection flushed a claim to the old one",
        checks: &[Test(
            "io-tokio/src/ws/links.rs",
            "inv_65_nothing_that_waits_is_written_after_the_link_is_dropped",
        )],
    },
    Incident {
        id: "R-15",
        report: "MUL-4257",
        what: "an answer and the end of its channel met, and the process panicked",
        checks: &[
            By("I4"),
            By("I17"),
            Type("the core has no channels: an answer that comes too late is counted"),
            Test(
                "core/tests/scenarios/incidents.rs",
                "incident_r15_an_answer_after_its_request_was_given_up_is_counted_and_no_more",
            ),
        ],
    },
    Incident {
        id: "R-16",
        report: "#5404",
        what: "a flaky connection made every claim one of unknown fate, and the queue starved",
        checks: &[
            By("INV-43"),
            Test(
                "core/tests/scenarios/claims_over.rs",
                "i14_inv_42_inv_43_incident_r16_after_a_claim_of_unknown_fate_one_goes_over_http_when_it_has_had_its_time",
            ),
        ],
    },
    Incident {
        id: "R-17",
        report: "MUL-4775",
        what: "what one connection could do was believed of the next",
        checks: &[
            By("INV-44"),
            By("I17"),
            Test(
                "core/tests/scenarios/claims_over.rs",
                "inv_44_incident_r17_a_connection_takes_claims_once_it_said_so_itself",
            ),
        ],
    },
    Incident {
        id: "R-18",
        report: "#5432",
        what: "a limit of 64 KiB refused an answer that the server had committed",
        checks: &[Test("io-tokio/src/ws/links.rs", "inv_67_a_large_answer_arrives")],
    },
    Incident {
        id: "R-19",
        report: "#5379",
        what: "the task after another one waited for a whole interval",
        checks: &[
            By("INV-34"),
            Test("core/tests/scenarios/claims.rs", "a_claim_that_brought_a_task_is_followed_by_another"),
        ],
    },
    Incident {
        id: "R-20",
        report: "#4665, #4718",
        what: "after a gap of the connection cancels took 5 s, new workspaces 30 s",
        checks: &[
            By("INV-60"),
            By("INV-95"),
            Test("core/tests/scenarios/fleet.rs", "inv_60_a_new_connection_asks_for_everything"),
            Test("core/tests/scenarios/runs.rs", "inv_95_a_hint_that_a_task_ended_is_looked_into_at_once"),
        ],
    },
    Incident {
        id: "R-21",
        report: "MUL-3834, #4699",
        what: "half-open sockets, and a backoff that was reset each time",
        checks: &[
            By("INV-63"),
            Test("io-tokio/src/ws/links.rs", "inv_68_silence_ends_a_link"),
            Test("core/tests/scenarios/fleet.rs", "inv_62_the_connection_backs_off"),
        ],
    },
    Incident {
        id: "R-22",
        report: "#6279",
        what: "the connection ignored the proxy, and nobody noticed",
        checks: &[Test(
            "io-tokio/src/http/proxied.rs",
            "inv_70_bug_29_requests_and_the_link_use_the_same_proxy",
        )],
    },
];
