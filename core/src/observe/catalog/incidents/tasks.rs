//! Reports, runs, watchdogs and sessions.

use super::Incident;
use crate::observe::catalog::Check::{By, Test};

pub(super) const INCIDENTS: &[Incident] = &[
    Incident {
        id: "R-32",
        report: "MUL-2780",
        what: "one second of 502 lost a completion, and then its failure too",
        checks: &[
            By("INV-107"),
            By("I8"),
            Test("tests/tests/black_box/reports.rs", "a_report_is_repeated_until_a_busy_server_takes_it"),
            By("ONE-END"),
            Test("core/tests/scenarios/incidents.rs", "incident_r32_a_second_of_502_costs_no_report"),
            Test(
                "core/tests/scenarios/late.rs",
                "inv_107_a_report_that_fails_moves_to_the_late_outbox_and_is_taken",
            ),
        ],
    },
    Incident {
        id: "R-33",
        report: "MUL-4937",
        what: "a stop cut off the reports",
        checks: &[
            By("INV-109"),
            Test("core/tests/scenarios/stop.rs", "a_report_that_waits_is_sent_once_more_at_a_stop"),
            Test("core/tests/scenarios/stop_kinds.rs", "inv_139_a_late_report_gets_a_last_try_at_a_stop"),
        ],
    },
    Incident {
        id: "R-34",
        report: "MUL-2258, #1180",
        what: "cancelled tasks reported no tokens",
        checks: &[
            By("INV-98"),
            Test("core/tests/scenarios/runs.rs", "usage_goes_out_before_the_report_also_of_a_cancelled_run"),
        ],
    },
    Incident {
        id: "R-35",
        report: "#2107, #2127",
        what: "a deleted task kept its agent at work; then a hiccup looked like a deletion",
        checks: &[
            By("INV-94"),
            Test("core/tests/scenarios/runs.rs", "a_task_is_gone_only_after_three_looks_and_five_seconds"),
        ],
    },
    Incident {
        id: "R-36",
        report: "#3877, #3878",
        what: "the server had failed a task, and its agent went on",
        checks: &[
            By("INV-94"),
            By("INV-95"),
            By("I22"),
            Test("core/tests/scenarios/runs.rs", "cancel_while_the_agent_runs"),
        ],
    },
    Incident {
        id: "R-37",
        report: "#1686",
        what: "cancels were logged as timeouts",
        checks: &[By("I22"), Test("core/tests/scenarios/runs.rs", "cancel_while_it_is_started")],
    },
    Incident {
        id: "R-38",
        report: "MUL-4369, #5209",
        what: "the end was seen before the last messages, and a retry began at 1 again",
        checks: &[
            By("INV-99"),
            By("INV-100"),
            By("TRANSCRIPT"),
            Test(
                "core/tests/scenarios/incidents.rs",
                "incident_r38_the_messages_of_a_second_launch_are_numbered_on_and_come_before_the_end",
            ),
        ],
    },
    Incident {
        id: "R-39",
        report: "#5219",
        what: "a quick stop met a late answer in a chat",
        checks: &[
            By("INV-96"),
            By("INV-97"),
            Test("core/tests/scenarios/runs.rs", "cancel_after_the_run"),
            Test("core/tests/scenarios/incidents.rs", "incident_r39_nothing_follows_an_acknowledged_cancel"),
        ],
    },
    Incident {
        id: "R-40",
        report: "MUL-2225, MUL-2281",
        what: "an agent waited for a dead child, for hours",
        checks: &[
            By("INV-111"),
            Test(
                "core/tests/scenarios/watchdog.rs",
                "inv_111_a_silent_run_is_ended_after_its_window_and_fails_with_its_reason",
            ),
        ],
    },
    Incident {
        id: "R-41",
        report: "MUL-2300, MUL-3064",
        what: "watchdogs ended long work that was fine",
        checks: &[
            By("INV-111"),
            By("INV-112"),
            Test(
                "core/tests/scenarios/watchdog.rs",
                "inv_111_with_a_tool_at_work_only_the_tool_window_counts",
            ),
            Test(
                "core/tests/scenarios/watchdog.rs",
                "inv_112_a_run_that_goes_on_speaking_is_never_ended_by_time",
            ),
        ],
    },
    Incident {
        id: "R-42",
        report: "#925, #947",
        what: "a pipe that somebody held kept the result",
        checks: &[
            Test("tests/tests/black_box/streams.rs", "bug_19_a_pipe_that_somebody_holds_keeps_no_task"),
            Test(
                "tests/tests/supervise/end.rs",
                "bug_19_a_child_that_holds_the_output_does_not_delay_the_end_and_the_last_line_is_whole",
            ),
        ],
    },
    Incident {
        id: "R-43",
        report: "MUL-1128",
        what: "tasks of a daemon that had died stayed for hours",
        checks: &[
            By("ORPHANS-FIRST"),
            By("INV-102"),
            Test(
                "tests/tests/black_box/leftovers.rs",
                "w_1_a_run_goes_on_without_its_daemon_and_is_followed_by_the_next_one",
            ),
            By("NOTHING-LOST"),
            By("ORPHANS"),
            Test(
                "core/tests/scenarios/incidents.rs",
                "incident_r43_tasks_of_a_daemon_that_died_are_failed_before_new_ones_are_asked_for",
            ),
            Test("core/tests/scenarios/recovery.rs", "a_dead_run_is_reported_with_its_reason"),
        ],
    },
    Incident {
        id: "R-44",
        report: "#3854",
        what: "a session was resumed in a new directory and died at once, for ever",
        checks: &[Test(
            "io-tokio/src/prepare/reuse_tests.rs",
            "inv_87_a_session_goes_on_only_in_its_own_directory_and_with_its_record",
        )],
    },
    Incident {
        id: "R-45",
        report: "MUL-5305, #5934",
        what: "a session was stored that never reached the disk",
        checks: &[
            By("INV-102"),
            Test("core/src/codec/tests/resume.rs", "bug_49_an_id_is_announced_once_and_only_with_proof"),
            Test("core/tests/scenarios/messages.rs", "inv_102_the_session_is_pinned_once"),
        ],
    },
    Incident {
        id: "R-46",
        report: "#6066, #5760, #5975, #6402, MUL-5722",
        what: "poisoned and full sessions were resumed again and again",
        checks: &[
            By("INV-103"),
            Test(
                "core/src/codec/tests/resume.rs",
                "bug_49_which_id_is_stored_and_when_a_fresh_run_is_started",
            ),
            Test(
                "core/src/codec/tests/endings.rs",
                "inv_agents_26_28_a_prompt_that_is_too_long_is_a_failure_even_in_a_success",
            ),
            Test("core/tests/scenarios/runs.rs", "inv_103_a_dead_session_is_left_behind_once"),
        ],
    },
    Incident {
        id: "R-47",
        report: "#6777, MUL-5029",
        what: "a resumed session had lost its credentials",
        checks: &[
            Test(
                "core/src/codec/tests/resume.rs",
                "inv_agents_26_34_the_words_of_a_lost_session_count_only_in_a_resume",
            ),
            By("INV-103"),
        ],
    },
];
