//! What is around a task: its files, the collector, updates, and what is seen of the daemon.

use super::Incident;
use crate::observe::catalog::Check::{By, Test, Type};

pub(super) const INCIDENTS: &[Incident] = &[
    Incident {
        id: "R-48",
        report: "MUL-3650, #4505",
        what: "all bundles of skills came in one request that never ended",
        checks: &[
            By("SKC-2"),
            Test(
                "io-tokio/src/skills/library_tests.rs",
                "skills_come_one_request_each_in_the_claims_order_and_then_from_the_disk",
            ),
        ],
    },
    Incident {
        id: "R-49",
        report: "MUL-5370",
        what: "a bundle that stalled was reported as the provider's network",
        checks: &[Test(
            "tests/tests/black_box/skills.rs",
            "incident_r49_a_download_that_breaks_off_is_reported_as_a_missing_skill",
        )],
    },
    Incident {
        id: "R-50",
        report: "#7112",
        what: "a local command that stalled was reported as the provider's network",
        checks: &[Test(
            "io-tokio/src/prepare/error.rs",
            "bug_46_no_space_is_named_as_such_and_kinds_survive_the_pipe",
        )],
    },
    Incident {
        id: "R-51",
        report: "MUL-6504, #7344",
        what: "chats waited behind builds for a directory",
        checks: &[
            By("INV-91"),
            Test("core/tests/scenarios/paths.rs", "inv_91_a_task_that_is_exempt_never_looks_at_a_directory"),
        ],
    },
    Incident {
        id: "R-52",
        report: "MUL-6518, #7364",
        what: "temp dirs were left behind, 174 on one machine",
        checks: &[
            Test("io-tokio/src/tempdir_tests.rs", "bug_39_the_dead_go_at_once_and_nothing_else_does"),
            Test("io-tokio/src/tempdir_tests.rs", "inv_78_the_lock_is_visible_only_while_it_is_held"),
        ],
    },
    Incident {
        id: "R-53",
        report: "#6123",
        what: "claims with nothing kept putting off an update",
        checks: &[
            By("INV-49"),
            Test(
                "core/tests/scenarios/gate.rs",
                "inv_49_incident_r53_an_update_waits_for_the_claims_on_their_way_and_no_new_one_is_sent",
            ),
        ],
    },
    Incident {
        id: "R-54",
        report: "MUL-5444",
        what: "a list of models waited for the next beat",
        checks: &[
            By("INV-58"),
            Test("core/tests/scenarios/fleet.rs", "inv_58_hints_bring_one_beat_a_second"),
            Test("tests/tests/black_box/actions.rs", "a_hint_brings_it_at_once"),
        ],
    },
    Incident {
        id: "R-55",
        report: "MUL-4424",
        what: "the collector removed a session between a look and its use",
        checks: &[
            By("INV-128"),
            By("INV-129"),
            Test("core/src/roots.rs", "inv_128_no_removal_of_a_marked_root"),
            Test("core/tests/scenarios/gc.rs", "incident_r55_a_task_waits_until_its_directory_is_gone"),
            Test(
                "core/tests/scenarios/gc.rs",
                "incident_r55_a_task_waits_for_the_directory_that_it_may_use_again",
            ),
        ],
    },
    Incident {
        id: "R-56",
        report: "MUL-5620",
        what: "the collector decided by an old look, and took a cache for a workspace",
        checks: &[
            By("I23"),
            By("COLLECT"),
            By("I11"),
            Test(
                "core/tests/scenarios/incidents.rs",
                "incident_r56_what_an_earlier_round_found_is_not_freed_in_a_later_one",
            ),
            Test(
                "core/tests/scenarios/gc.rs",
                "inv_128_a_directory_that_was_taken_while_the_server_was_asked_is_left_alone",
            ),
        ],
    },
    Incident {
        id: "R-57",
        report: "MUL-2246",
        what: "starts and failures are told apart by the task's state only, so that a second claim can end the first",
        checks: &[
            By("INV-73"),
            By("INV-116"),
            Test(
                "core/tests/scenarios/runs.rs",
                "an_id_that_is_claimed_again_after_its_report_is_a_new_life",
            ),
            Test("core/tests/scenarios/runs.rs", "inv_116_a_task_that_is_offered_again_is_not_run_twice"),
        ],
    },
    Incident {
        id: "R-58",
        report: "#2211",
        what: "health waited behind a repository",
        checks: &[
            Test("io-tokio/src/health/server_tests.rs", "health_shows_the_newest_snapshot"),
            Type("health answers come from a snapshot that nobody locks"),
        ],
    },
    Incident {
        id: "R-59",
        report: "#7098",
        what: "a NUL in the output made the report fail for ever",
        checks: &[
            Test(
                "tests/tests/black_box/streams.rs",
                "bug_13_no_nul_character_is_sent_and_the_text_around_it_is",
            ),
            Test("io-tokio/src/http/calls.rs", "bug_13_no_nul_leaves_this_machine"),
            Test(
                "core/src/codec/tests/messages.rs",
                "r_59_nul_never_reaches_a_text_and_never_costs_the_event",
            ),
        ],
    },
];
