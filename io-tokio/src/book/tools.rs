//! Which tools of an agent are at work: while one is, silence means less.

use longshore_core::codec::message::AgentMessage;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Open calls that are told apart; more are only counted.
const MOST_NAMED: usize = 256;

/// The calls of one run that have no result yet. Plain data, so that it can be kept beside the codec.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Tools {
    named: BTreeSet<String>,
    /// Calls without an id, and those beyond the bound.
    others: u32,
}

impl Tools {
    /// Takes note of a call, or of a result: of a call that is not open, it changes nothing.
    pub fn note(&mut self, message: &AgentMessage) {
        match message {
            AgentMessage::ToolUse { call_id, .. } => {
                if call_id.is_empty() || self.named.len() >= MOST_NAMED {
                    self.others = self.others.saturating_add(1);
                } else {
                    self.named.insert(call_id.clone());
                }
            }
            AgentMessage::ToolResult { call_id, .. } if !self.named.remove(call_id) => {
                self.others = self.others.saturating_sub(1);
            }
            _ => {}
        }
    }

    /// How many there are.
    pub fn at_work(&self) -> u32 {
        u32::try_from(self.named.len()).unwrap_or(u32::MAX).saturating_add(self.others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(calls: &[(&str, bool)]) -> u32 {
        let mut tools = Tools::default();
        for (id, begins) in calls {
            let (call_id, name) = ((*id).to_owned(), "Bash".to_owned());
            tools.note(&match begins {
                true => AgentMessage::ToolUse { call_id, name, input: "{}".into() },
                false => AgentMessage::ToolResult { call_id, name, output: String::new() },
            });
        }
        tools.at_work()
    }

    #[test]
    fn a_result_ends_its_own_call_and_no_other() {
        assert_eq!(after(&[("a", true), ("b", true)]), 2);
        assert_eq!(after(&[("a", true), ("b", true), ("a", false)]), 1);
        assert_eq!(after(&[("a", true), ("a", true), ("a", false)]), 0, "a call that is shown twice is one");
        assert_eq!(after(&[("a", true), ("x", false)]), 1, "the result of a call that was never seen");
        assert_eq!(after(&[("a", false)]), 0);
    }

    #[test]
    fn calls_without_an_id_are_counted() {
        assert_eq!(after(&[("", true), ("", true), ("", false)]), 1);
        assert_eq!(after(&[("", true), ("", false), ("", false)]), 0);
        assert_eq!(after(&[("", true), ("a", false)]), 0, "only the result has an id");
    }

    #[test]
    fn more_calls_than_are_told_apart_are_counted_all_the_same() {
        let ids: Vec<String> = (0..MOST_NAMED + 5).map(|n| n.to_string()).collect();
        let mut calls: Vec<(&str, bool)> = ids.iter().map(|id| (id.as_str(), true)).collect();
        assert_eq!(after(&calls), u32::try_from(ids.len()).expect("few"));
        calls.extend(ids.iter().map(|id| (id.as_str(), false)));
        assert_eq!(after(&calls), 0);
    }
}
