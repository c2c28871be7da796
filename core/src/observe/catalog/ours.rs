//! What we decided ourselves, by name.

use super::Check::{Rule, Test};
use super::{Entry, inv};

pub(super) const ENTRIES: &[Entry] = &[
    inv("DEADLINE", "what is on its way is ended at its deadline, once", "ours", &[Rule]),
    inv(
        "TRUE-REASON",
        "a failed run is reported with the reason that it failed for, unless it was ended before its time",
        "ours",
        &[Rule],
    ),
    inv(
        "LATE-HURRY",
        "what could not be delivered while the server was out of reach is sent when that answers anything",
        "ours",
        &[
            Rule,
            Test("core/tests/scenarios/late.rs", "a_late_report_hurries_whatever_the_server_answers"),
            Test("core/tests/scenarios/late.rs", "a_way_that_loses_only_reports_is_not_filled_with_them"),
        ],
    ),
    inv("LOST", "a task that the server took back is not reported", "ours", &[Rule]),
    inv(
        "MESSAGES-ASK",
        "after a post of unknown fate the server is asked what it has before anything is sent",
        "ours",
        &[
            Rule,
            Test(
                "core/tests/scenarios/messages.rs",
                "messages_of_unknown_fate_are_asked_for_and_the_rest_is_sent",
            ),
        ],
    ),
    inv(
        "ORPHANS-FIRST",
        "a runtime is asked for after its leftovers were dealt with, and these are dealt with once",
        "ours",
        &[
            Rule,
            Test(
                "core/tests/scenarios/fleet.rs",
                "inv_09_leftovers_are_failed_before_the_first_claim_however_long_the_server_is_away",
            ),
            Test(
                "core/tests/scenarios/fleet.rs",
                "inv_09_a_server_that_answers_everything_but_this_is_asked_three_times",
            ),
        ],
    ),
    inv(
        "PROVIDER-CAP",
        "no more tasks of a provider are here or asked for than it may have",
        "ours",
        &[Rule],
    ),
    inv("RUNTIME-SET", "each change of the set fits the one before it", "ours", &[Rule]),
    inv("CLAIM-FALLBACK", "a claim that the connection did not deliver is sent over HTTP", "ours", &[Rule]),
    inv(
        "CLAIM-PACE",
        "claims that bring nothing are ten at once and then ten a second at most, however many hints come, and none waits before that",
        "ours",
        &[
            Rule,
            Test(
                "core/tests/scenarios/storms.rs",
                "a_storm_over_an_empty_queue_makes_ten_claims_a_second_and_its_first_hints_and_its_last_are_not_lost",
            ),
        ],
    ),
    inv("CLAIM-RATE", "tasks are not asked for again and again while nothing is new", "ours", &[Rule]),
    inv(
        "HELD-CONFIRMED",
        "an agent goes off line as unfit only if two looks found it so, some time apart, with none between that found it fit or gone",
        "ours",
        &[
            Rule,
            Test(
                "core/tests/scenarios/agent_clis.rs",
                "an_agent_that_was_well_in_between_is_not_taken_off_line",
            ),
        ],
    ),
    inv(
        "ACCESS-TOLD",
        "that the server refuses the credential is told when it does, and that it takes it when an answer or another credential says so; what was sent before says nothing",
        "ours, public report of a daemon that tried on with a dead token",
        &[
            Rule,
            Test(
                "core/tests/scenarios/access.rs",
                "what_was_sent_with_the_old_credential_says_nothing_of_the_new_one",
            ),
            Test("core/tests/scenarios/access.rs", "whatever_the_server_takes_brings_access_back"),
        ],
    ),
    inv(
        "ACCESS-QUIET",
        "while the credential is refused nothing new is asked, and twice a minute at most whether it still is",
        "ours, public report of a daemon that tried on with a dead token",
        &[
            Rule,
            Test(
                "core/tests/scenarios/access.rs",
                "bug_27_a_while_the_credential_is_refused_the_list_is_asked_for_twice_a_minute_and_nothing_else",
            ),
        ],
    ),
    inv(
        "ACCESS-SLOW",
        "what a task has to tell is not tried more often than that while the credential is refused",
        "ours",
        &[Rule, Test("core/tests/scenarios/access.rs", "work_in_hand_goes_on_and_tries_again_less_often")],
    ),
    inv(
        "ALL-BEAT",
        "once the credential is taken again, or the machine has slept, each runtime beats within a second",
        "ours",
        &[
            Rule,
            Test(
                "core/tests/scenarios/refused_dials.rs",
                "many_runtimes_beat_within_a_second_and_not_all_at_once",
            ),
        ],
    ),
    inv(
        "WAKE",
        "a sleep of the machine is noticed, and a connection of before it is made anew",
        "ours",
        &[
            Rule,
            Test(
                "core/tests/scenarios/sleep.rs",
                "after_a_sleep_everything_that_the_server_waits_for_is_done_at_once",
            ),
            Test(
                "tests/tests/black_box/access.rs",
                "after_a_sleep_of_eight_hours_the_link_is_dialled_again_and_the_run_goes_on",
            ),
        ],
    ),
    inv(
        "LOOK-RATE",
        "a storm of hints is no storm of looks: few a second for a task, 64 at once for all",
        "ours",
        &[
            Rule,
            Test(
                "core/tests/scenarios/storms.rs",
                "a_storm_of_hints_brings_two_looks_a_second_and_the_last_hint_is_not_lost",
            ),
            Test(
                "core/tests/scenarios/storms.rs",
                "sixty_four_looks_are_on_their_way_at_once_and_the_others_follow",
            ),
        ],
    ),
    inv("GATE-ANSWER", "who asks for the gate is answered", "ours", &[Rule]),
    inv(
        "LEDGER-PATH",
        "what is written down of a launched task names the user's directory that it has, until it has left that",
        "ours",
        &[Rule],
    ),
    inv(
        "PARK-BOUND",
        "no more tasks are parked than there are slots, and only then does one wait with its slot",
        "ours",
        &[Rule],
    ),
    inv(
        "PATH-FIFO",
        "a user's directory is given out in the order in which it was asked for",
        "ours",
        &[Rule],
    ),
    inv("PATH-GRANT", "nobody waits for a directory that nobody has", "ours", &[Rule]),
    inv("PATH-LEFT", "no directory stays locked without a task", "ours", &[Rule]),
    inv(
        "UNPARK-FIRST",
        "a parked task that has its directory gets a slot before any new claim, and before one that only waits",
        "ours",
        &[Rule],
    ),
    inv("UNPARK-ORDER", "parked tasks get slots in order", "ours", &[Rule]),
    inv("DRAIN", "a drain ends no run by itself", "ours", &[Rule]),
    inv(
        "RESTART",
        "a restart leaves runs to the next process: it ends, cancels and takes off line nothing",
        "ours",
        &[Rule],
    ),
    inv("FORCED", "a run that a watchdog ended is reported with its reason", "ours", &[Rule]),
    inv(
        "GC-OFF",
        "nothing is looked for or freed where the operator wants no collector",
        "ours",
        &[Rule, Test("core/tests/scenarios/gc.rs", "without_the_setting_nothing_is_removed")],
    ),
    inv("GC-PAUSE", "the collector rests for its interval between two rounds", "ours", &[Rule]),
    inv(
        "LDR-2",
        "the server is told once that a task waits for a directory, and of each that does",
        "ours",
        &[Rule],
    ),
    inv(
        "RUN-LIMIT",
        "a run at its limit is ended, however much it says",
        "ours",
        &[
            Rule,
            Test(
                "core/tests/scenarios/watchdog.rs",
                "a_run_at_its_limit_fails_with_timeout_however_much_it_says",
            ),
        ],
    ),
    inv(
        "LEDGER-BEFORE-STEP",
        "what a task came to is written down before anything is done about it",
        "ours",
        &[
            Rule,
            Test(
                "core/tests/scenarios/recovery.rs",
                "an_outcome_is_kept_in_the_step_that_takes_it_and_reported_after_a_kill",
            ),
        ],
    ),
    inv("LEDGER-AT-REST", "at rest nothing is written down any more", "ours", &[Rule]),
    inv(
        "NOTHING-LOST",
        "what a killed process had is taken over, or was reported",
        "ours",
        &[
            Rule,
            Test("core/tests/scenarios/recovery.rs", "a_loop_of_kills_loses_nothing_and_doubles_nothing"),
        ],
    ),
    inv(
        "RECOVERED-ONCE",
        "what an earlier process had is taken over once, and reported as it ended there, once",
        "ours",
        &[Rule, Test("core/tests/scenarios/recovery.rs", "a_report_that_was_acknowledged_is_not_sent_again")],
    ),
    inv(
        "RECOVERED-FIRST",
        "a runtime is asked for after each report that an earlier process left for it was tried once",
        "ours",
        &[
            Rule,
            Test(
                "core/tests/scenarios/recovery.rs",
                "inv_09_claims_wait_for_the_first_try_of_a_recovered_report",
            ),
        ],
    ),
    inv(
        "RECOVERED-SLOT",
        "a run that is taken over keeps its slot if that is free; what is only to be reported gets none",
        "ours",
        &[
            Rule,
            Test("core/tests/scenarios/recovery.rs", "a_run_keeps_its_slot"),
            Test("core/tests/scenarios/recovery.rs", "more_records_than_slots_are_all_taken_over"),
        ],
    ),
    inv(
        "ATTACH-NOT-LAUNCH",
        "a run of an earlier process is followed from where its messages were, once, and never launched again",
        "ours",
        &[Rule, Test("core/tests/scenarios/recovery.rs", "a_run_is_followed_and_not_launched_again")],
    ),
    inv(
        "ACTION-ONCE",
        "what the server asks a runtime for is begun once if the runtime is here, and is over once",
        "ours",
        &[
            Rule,
            Test("core/tests/scenarios/actions.rs", "an_action_is_done_once_and_its_result_is_reported"),
            Test("core/tests/scenarios/actions.rs", "what_is_asked_of_a_runtime_that_is_not_here_is_dropped"),
        ],
    ),
    inv(
        "ACTION-BOUND",
        "at most 8 of these are at work, and at most 72 are here; what is beyond that is dropped and said to be",
        "ours",
        &[
            Rule,
            Test(
                "core/tests/scenarios/actions.rs",
                "w_27_eight_are_at_work_and_what_is_beyond_the_bound_is_dropped",
            ),
        ],
    ),
    inv("ACTION-WAITS", "none of these waits while fewer are at work", "ours", &[Rule]),
    inv(
        "ACTION-LIMIT",
        "each of these is told to end at its deadline, and before only by a stop",
        "ours",
        &[
            Rule,
            Test("core/tests/scenarios/actions.rs", "an_action_that_does_not_end_is_told_to_and_reported"),
        ],
    ),
    inv(
        "ACTION-ENDS",
        "what came of it is reported at once, and again in its time",
        "ours",
        &[
            Rule,
            Test("core/tests/scenarios/actions.rs", "a_runtime_that_leaves_the_set_does_not_stop_the_report"),
        ],
    ),
    inv("ACTION-TOLD", "it is said to be taken if the server took it, and only then", "ours", &[Rule]),
    inv(
        "ACTION-STOP",
        "a stop begins none of these, and ends those that go on; a drain lets them go on",
        "ours",
        &[
            Rule,
            Test("core/tests/scenarios/actions.rs", "a_stop_ends_what_goes_on_and_begins_nothing"),
            Test("core/tests/scenarios/actions.rs", "a_drain_lets_them_go_on"),
        ],
    ),
];
