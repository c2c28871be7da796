//! The prepare lease, who works in which directory, and what is collected.

use super::Check::{By, Rule, Test, Type};
use super::{Entry, inv};

pub(super) const ENTRIES: &[Entry] = &[
    inv(
        "INV-117",
        "until launch the lease is refreshed every 15 s, for the first time after 15 s",
        "public report MUL-3281",
        &[Rule, Test("core/tests/scenarios/start.rs", "inv_117_the_lease_is_refreshed_every_15_seconds")],
    ),
    inv(
        "INV-118",
        "it is refreshed while `/start` is on its way too",
        "seed S001",
        &[
            By("INV-117"),
            Test("core/tests/scenarios/start.rs", "seed_lease_during_start"),
            Test("tests/tests/black_box/seeds.rs", "seed_lease_during_start"),
        ],
    ),
    inv(
        "INV-119",
        "it is not refreshed after `/start` was accepted, or after the task is to end",
        "seed S001, public report MUL-4923",
        &[Rule],
    ),
    inv(
        "INV-120",
        "one refresh of a task is on its way",
        "observed",
        &[Rule, Test("core/tests/scenarios/start.rs", "inv_120_a_slow_refresh_is_not_overtaken")],
    ),
    inv(
        "INV-121",
        "nothing that becomes of a refresh alone ends the task",
        "observed",
        &[Rule, Test("core/tests/scenarios/start.rs", "lease_4xx_asks_for_the_status")],
    )
    .but("a refusal makes the daemon ask for the task's state, and that may end it"),
    inv(
        "INV-122",
        "a task that waits for a directory keeps its lease",
        "public report MUL-3281, MUL-2663",
        &[
            Rule,
            Test(
                "core/tests/scenarios/paths.rs",
                "inv_122_a_parked_task_keeps_its_lease_from_the_last_grant_on",
            ),
        ],
    ),
    inv(
        "INV-123",
        "with a healthy server the grants are at most 30 s apart",
        "ours",
        &[
            Rule,
            By("INV-117"),
            By("DEADLINE"),
            Test(
                "core/tests/scenarios/paths.rs",
                "inv_123_the_lease_goes_on_from_the_wait_into_the_preparation",
            ),
        ],
    ),
    inv(
        "INV-124",
        "a task's directories are marked as long as it holds a slot",
        "seed S001, public report #3999",
        &[Rule, Test("tests/tests/black_box/seeds.rs", "seed_env_root_active_across_complete")],
    ),
    inv("INV-125", "they are free once nobody holds them", "seed S001", &[Rule]),
    inv(
        "INV-126",
        "a directory of two tasks stays marked until both are gone",
        "seed S001",
        &[
            By("INV-124"),
            Test("core/tests/scenarios/runs.rs", "inv_126_a_root_shared_by_two_tasks_stays_marked"),
        ],
    ),
    inv(
        "INV-127",
        "two marks need two releases",
        "observed",
        &[
            Test("core/src/roots.rs", "inv_127_two_marks_need_two_unmarks"),
            Type("a mark is a value that cannot be copied and is given up to be released"),
        ],
    ),
    inv(
        "INV-128",
        "nothing is freed of a directory that is marked",
        "public report #5534",
        &[
            Rule,
            Test("core/src/roots.rs", "inv_128_no_removal_of_a_marked_root"),
            Test(
                "core/tests/scenarios/gc.rs",
                "inv_128_a_directory_that_was_taken_while_the_server_was_asked_is_left_alone",
            ),
        ],
    ),
    inv(
        "INV-129",
        "a directory is reserved once at a time",
        "observed",
        &[Rule, Test("core/src/roots.rs", "inv_128_no_removal_of_a_marked_root")],
    ),
    inv(
        "INV-130",
        "nothing is prepared in what is being freed",
        "public report MUL-4424",
        &[Rule, Test("core/tests/scenarios/gc.rs", "incident_r55_a_task_waits_until_its_directory_is_gone")],
    ),
    inv(
        "INV-131",
        "a claim is prepared once, in the directory that is marked for it, before anything else touches it",
        "public report #3999",
        &[Rule],
    ),
    inv(
        "INV-132",
        "a task that waits for a directory to be freed ends at a cancel or a stop",
        "ours",
        &[
            Rule,
            Test("core/tests/scenarios/gc.rs", "inv_132_a_task_that_waits_is_ended_by_the_server_at_once"),
            Test("core/tests/scenarios/gc.rs", "inv_132_a_task_that_waits_is_ended_by_a_stop_at_once"),
        ],
    ),
];
