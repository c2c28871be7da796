//! Which rules can be held to a life of which the beginning is not known.
//!
//! The books of the rules begin empty. A rule that blames what is not in a book then blames what was there before, so it is not held; one that
//! blames what follows from what it has seen itself is. Which ones are which is found by looking at many lives from their middle on, and a test
//! holds this list to that.

const HOLD: &[&str] = &[
    "I3",
    "I5",
    "I6",
    "I9",
    "I10",
    "I11",
    "I13",
    "I14",
    "I19",
    "I22",
    "INV-04",
    "INV-07",
    "INV-10",
    "INV-11",
    "INV-13",
    "INV-14",
    "INV-15",
    "INV-21",
    "INV-23",
    "INV-34",
    "INV-38",
    "INV-43",
    "INV-50",
    "INV-54",
    "INV-58",
    "INV-61",
    "INV-62",
    "INV-63",
    "INV-73",
    "INV-77",
    "INV-79",
    "INV-80",
    "INV-89",
    "INV-92",
    "INV-93",
    "INV-94",
    "INV-96",
    "INV-98",
    "INV-99",
    "INV-100",
    "INV-102",
    "INV-103",
    "INV-106",
    "INV-107",
    "INV-109",
    "INV-114",
    "INV-119",
    "INV-120",
    "INV-121",
    "INV-122",
    "INV-124",
    "INV-128",
    "INV-129",
    "INV-130",
    "INV-131",
    "INV-132",
    "INV-133",
    "INV-134",
    "INV-137",
    "INV-139",
    "INV-140",
    "INV-141",
    "INV-142",
    "INV-144",
    "INV-147",
    "DEADLINE",
    "TRUE-REASON",
    "LATE-HURRY",
    "LOST",
    "MESSAGES-ASK",
    "PROVIDER-CAP",
    "CLAIM-FALLBACK",
    "CLAIM-RATE",
    "ACCESS-QUIET",
    "ACCESS-SLOW",
    "LOOK-RATE",
    "FORCED",
    "GC-OFF",
    "GC-PAUSE",
    "NOTHING-LOST",
    "RECOVERED-FIRST",
    "ATTACH-NOT-LAUNCH",
    "ACTION-BOUND",
    "ACTION-STOP",
];

/// Whether this rule says nothing untrue of a life that it sees from its middle on. It then sees less than it would of the whole of it.
pub fn holds_from_the_middle(rule: &str) -> bool {
    HOLD.contains(&rule)
}

/// Rules that speak of a daemon at rest in a world in which everything works, which no trace shows.
const AT_REST: &[&str] = &["I26", "LEDGER-AT-REST"];

/// Whether this rule needs more than a history: that the world is healed at its end.
pub fn needs_rest(rule: &str) -> bool {
    AT_REST.contains(&rule)
}

#[cfg(test)]
mod tests {
    use super::{AT_REST, HOLD};
    use crate::observe::catalog::rules;
    use std::collections::BTreeSet;

    #[test]
    fn each_of_them_is_a_rule_and_there_once() {
        let all: BTreeSet<&str> = rules().map(|entry| entry.id).collect();
        let known: BTreeSet<&str> = HOLD.iter().chain(AT_REST).copied().collect();
        assert_eq!(known.len(), HOLD.len() + AT_REST.len());
        assert!(known.is_subset(&all), "{:?}", known.difference(&all));
    }
}
