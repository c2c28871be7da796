//! What went wrong in daemons of this kind.

use super::Check::{By, Later, Test, Type};
use super::Incident;

/// Incidents of daemons of this kind, and what keeps them from happening here.
pub const INCIDENTS: &[Incident] = &[
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
    Incident {
        id: "R-23",
        report: "#2391, #2404",
        what: "a runtime that was deleted beat for ever",
        checks: &[
            By("INV-21"),
            By("INV-17"),
            Test("core/tests/scenarios/fleet.rs", "i16_runtimes_that_are_gone_are_registered_again_once"),
        ],
    },
    Incident {
        id: "R-24",
        report: "MUL-2215",
        what: "a late loss of the same wave registered twice; the first repair hid failures",
        checks: &[
            By("I16"),
            By("INV-17"),
            Test(
                "core/tests/scenarios/incidents.rs",
                "incident_r24_a_late_loss_of_the_same_wave_registers_nothing",
            ),
        ],
    },
    Incident {
        id: "R-25",
        report: "MUL-3332",
        what: "a new profile failed the tasks that ran",
        checks: &[
            By("INV-10"),
            By("ORPHANS-FIRST"),
            Test("core/tests/scenarios/fleet.rs", "leftovers_of_a_runtime_with_a_task_are_not_failed"),
            Test("core/tests/scenarios/runs.rs", "inv_50_a_runtime_that_is_gone_keeps_its_task"),
        ],
    },
    Incident {
        id: "R-26",
        report: "MUL-3269",
        what: "an older answer took off line what a newer one had brought",
        checks: &[
            By("INV-07"),
            By("INV-13"),
            Test(
                "core/tests/scenarios/fleet.rs",
                "inv_07_a_workspace_is_registered_again_only_once_its_runtimes_are_off_line",
            ),
        ],
    },
    Incident {
        id: "R-27",
        report: "MUL-6164",
        what: "an agent that cannot be run stayed on line, and every task died at its launch",
        checks: &[
            Test(
                "io-tokio/src/discover/tests.rs",
                "old_silent_and_broken_programs_are_skipped_with_a_reason",
            ),
            Later("at the start only: one that breaks later is not taken off line yet"),
        ],
    },
    Incident {
        id: "R-28",
        report: "MUL-5225, #5837",
        what: "versions were asked for once for each workspace and agent",
        checks: &[Test("io-tokio/src/discover/tests.rs", "programs_are_asked_side_by_side")],
    },
    Incident {
        id: "R-29",
        report: "MUL-5119",
        what: "agents were asked one after the other, and the first use showed none",
        checks: &[Test("io-tokio/src/discover/tests.rs", "programs_are_asked_side_by_side")],
    },
    Incident {
        id: "R-30",
        report: "MUL-5439, #6077",
        what: "an agent that was installed later stayed invisible",
        checks: &[Later("agents are looked for at the start only")],
    },
    Incident {
        id: "R-31",
        report: "MUL-2744",
        what: "an expired credential ended the start before anything helpful was said",
        checks: &[
            By("INV-03"),
            By("INV-04"),
            Test(
                "tests/tests/black_box/service.rs",
                "a_refused_credential_at_the_start_ends_the_daemon_with_a_hint",
            ),
        ],
    },
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
                "agents_of_a_daemon_that_was_killed_are_ended_by_the_next_one",
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
    Incident {
        id: "R-48",
        report: "MUL-3650, #4505",
        what: "all bundles of skills came in one request that never ended",
        checks: &[Later("bundles of skills are not fetched yet")],
    },
    Incident {
        id: "R-49",
        report: "MUL-5370",
        what: "a bundle that stalled was reported as the provider's network",
        checks: &[Later("bundles of skills are not fetched yet")],
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
