//! Which rules can be held to what another daemon wrote into its log.
//!
//! A log tells what became of tasks and in which order, but neither what was asked of the server nor the state. A rule is here if
//! [`LogRules`](crate::observe::LogRules) judges it. A rule that would blame what is only not told is none of them: of a claim that is run after
//! its end (INV-72) it may be that the line is missing in which it came again.

const HOLD: &[&str] = &["I1", "I8", "I13", "INV-96", "INV-106", "INV-107", "INV-116", "INV-135"];

/// Whether this rule is held to what a log tells. It then sees less than it would of a life that was recorded.
pub fn needs_no_more_than_a_log(rule: &str) -> bool {
    HOLD.contains(&rule)
}

#[cfg(test)]
mod tests {
    use super::HOLD;
    use crate::observe::catalog::rules;
    use std::collections::BTreeSet;

    #[test]
    fn each_of_them_is_a_rule_and_there_once() {
        let all: BTreeSet<&str> = rules().map(|entry| entry.id).collect();
        let known: BTreeSet<&str> = HOLD.iter().copied().collect();
        assert_eq!(known.len(), HOLD.len());
        assert!(known.is_subset(&all), "{:?}", known.difference(&all));
    }
}
