//! What the simulator knows better than the daemon: the truth. It has the server's rows, the agents and the disk, and compares.

use super::Check::Test;
use super::{Check, Entry, inv};

const SWEEP: Check = Test("core/tests/simulate.rs", "a_swarm_of_faults_breaks_no_rule_and_loses_nothing");
const ALONE: Check = Test("core/tests/simulate.rs", "each_fault_alone_breaks_nothing");

const ONE: Check = Test("core/tests/properties.rs", "inv_exactly_one_terminal");
const NO_SECOND: Check = Test("core/tests/properties.rs", "inv_no_second_run");
const NO_ORPHAN: Check = Test("core/tests/properties.rs", "inv_no_orphan");
const OUTCOMES: Check = Test("core/tests/properties.rs", "inv_no_outcome_lost");
const MESSAGES: Check = Test("core/tests/properties.rs", "inv_no_message_lost_or_doubled");

pub(super) const ENTRIES: &[Entry] = &[
    inv(
        "ONE-END",
        "the server takes one end of each task, and hears of each that it cancelled while it ran",
        "ours",
        &[SWEEP, ALONE, ONE],
    ),
    inv("TRUE-END", "a task is reported as what its run truly came to", "ours", &[SWEEP, ALONE, OUTCOMES]),
    inv(
        "STRANDED",
        "no task is left to the server to be failed once everything works",
        "ours",
        &[SWEEP, ALONE, NO_ORPHAN],
    ),
    inv(
        "TRANSCRIPT",
        "each message is there once and in order, and all of them once nothing is owed",
        "ours",
        &[SWEEP, ALONE, MESSAGES],
    ),
    inv("ONE-AGENT", "two agents never work on one task", "ours", &[SWEEP, ALONE, NO_SECOND]),
    inv("ONE-DIRECTORY", "two agents never work in one directory of a user", "ours", &[SWEEP, ALONE]),
    inv(
        "ORPHANS",
        "what the next process is told of is not failed as orphaned",
        "ours",
        &[SWEEP, ALONE, NO_ORPHAN],
    ),
    inv("COLLECT", "no directory is freed that an agent works in", "ours", &[SWEEP, ALONE]),
    inv("SETTINGS", "a daemon starts with every settings that a world draws", "ours", &[SWEEP, ALONE]),
    inv(
        "LIVENESS",
        "once everything works, all comes to rest: the server, the daemon, the agents and what is written down",
        "ours",
        &[SWEEP, ALONE],
    ),
];
