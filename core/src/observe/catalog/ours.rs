//! What we decided ourselves, by name.

use super::Check::{Rule, Test};
use super::{Entry, inv};

pub(super) const ENTRIES: &[Entry] = &[
    inv("DEADLINE", "what is on its way is ended at its deadline, once", "ours", &[Rule]),
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
    inv("ORPHANS-BUSY", "leftovers of a runtime with a task here are left alone", "ours", &[Rule]),
    inv(
        "ORPHANS-FIRST",
        "a runtime is asked for after its leftovers were dealt with, and these are dealt with once",
        "ours",
        &[Rule],
    ),
    inv(
        "PROVIDER-CAP",
        "no more tasks of a provider are here or asked for than it may have",
        "ours",
        &[Rule],
    ),
    inv("RUNTIME-SET", "each change of the set fits the one before it", "ours", &[Rule]),
    inv("CLAIM-FALLBACK", "a claim that the connection did not deliver is sent over HTTP", "ours", &[Rule]),
    inv("CLAIM-RATE", "tasks are not asked for again and again while nothing is new", "ours", &[Rule]),
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
];
