//! Skills that are fetched, and what the collector frees: rules of the adapter, which its tests hold it to.

use super::Check::{By, Test};
use super::{Entry, inv};

const CACHE: &str = "io-tokio/src/skills/cache.rs";
const CHECK: &str = "io-tokio/src/skills/check.rs";
const LIBRARY: &str = "io-tokio/src/skills/library_tests.rs";
const SHARE: &str = "io-tokio/src/prepare/share.rs";
const POLICY: &str = "io-tokio/src/collector/policy.rs";
const ASKED: &str = "io-tokio/src/collector/asked.rs";
const FREE: &str = "io-tokio/src/collector/free_tests.rs";

pub(super) const ENTRIES: &[Entry] = &[
    inv(
        "SKC-1",
        "a kept skill that was changed is not used, and is removed",
        "observed",
        &[
            Test(CACHE, "skc_1_a_tampered_skill_is_a_miss_and_removed"),
            Test(SHARE, "skc_1_a_shared_file_that_was_changed_or_opened_up_is_given_up"),
        ],
    ),
    inv(
        "SKC-2",
        "a skill that cannot be had does not lose those that came before it",
        "public report #4505",
        &[
            Test(LIBRARY, "skc_2_a_skill_that_fails_keeps_those_that_came_before"),
            Test(
                "tests/tests/black_box/skills.rs",
                "skc_2_a_refused_skill_fails_the_task_with_its_reason_and_name_and_keeps_the_others",
            ),
        ],
    ),
    inv(
        "SKC-3",
        "a skill that several tasks want is fetched once",
        "observed",
        &[Test(LIBRARY, "skc_3_two_tasks_that_want_one_skill_fetch_it_once")],
    ),
    inv(
        "SKC-4",
        "no file of a skill has a path that is not clean",
        "observed",
        &[Test(CHECK, "skc_4_paths_that_are_not_clean_are_refused")],
    ),
    inv(
        "SKC-5",
        "no task changes another one's skills, and no cleanup the kept ones",
        "ours",
        &[
            Test(SHARE, "an_agent_that_rewrites_its_copy_changes_nobody_elses"),
            Test(
                "io-tokio/src/prepare/helper_tests.rs",
                "shared_files_of_skills_outlive_every_task_and_its_cleanup",
            ),
        ],
    ),
    inv(
        "GC-1",
        "a directory is freed by what it was for, and only after its age",
        "observed",
        &[Test(POLICY, "gc_1_each_rule_holds_from_the_first_second_after_its_limit")],
    ),
    inv(
        "GC-2",
        "a directory that somebody works in is not freed, whichever daemon that is",
        "observed",
        &[
            By("INV-128"),
            Test(FREE, "gc_2_a_directory_that_somebody_works_in_is_left_alone"),
            Test(
                "tests/tests/black_box/collected.rs",
                "gc_2_a_done_issues_directory_goes_and_that_of_an_open_one_and_of_a_task_at_work_stays",
            ),
        ],
    ),
    inv(
        "GC-6",
        "a server that does not answer frees nothing of worth",
        "observed",
        &[
            Test(POLICY, "gc_6_without_an_answer_nothing_of_worth_goes"),
            Test("tests/tests/black_box/collected.rs", "gc_6_a_server_that_fails_loses_nobodys_directory"),
        ],
    ),
    inv(
        "GC-7",
        "an access that is denied keeps everything, and is not asked for again in pieces",
        "observed",
        &[Test(ASKED, "t11_gc_7_a_denied_access_keeps_everything_and_asks_nothing_more")],
    ),
    inv(
        "GC-9",
        "nothing is freed by way of a link, in the files of git, or without a daemon's mark",
        "observed",
        &[
            Test(FREE, "gc_9_gc_10_and_gc_11_only_what_can_be_made_again_goes_and_never_by_way_of_a_link"),
            Test(FREE, "bug_42_what_no_daemon_made_or_is_a_link_is_not_touched"),
        ],
    ),
    inv(
        "GC-14",
        "caches are no workspaces",
        "public report MUL-5620",
        &[Test(FREE, "gc_14_a_look_finds_what_daemons_made_and_no_caches")],
    ),
];
