//! Which tool a call was of: results of some agents name the call only.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Open calls that are remembered; of more, the oldest are forgotten and their results have no name.
pub const MAX_OPEN_CALLS: usize = 256;

/// The tool calls that have no result yet.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OpenCalls(VecDeque<(String, String)>);

impl OpenCalls {
    /// A call has started.
    pub fn started(&mut self, call_id: &str, name: &str) {
        if self.0.len() >= MAX_OPEN_CALLS {
            self.0.pop_front();
        }
        self.0.push_back((call_id.to_owned(), name.to_owned()));
    }

    /// A call has ended; gives the name of its tool, empty if the call is not known.
    pub fn ended(&mut self, call_id: &str) -> String {
        let at = self.0.iter().rposition(|(id, _)| id == call_id);
        at.and_then(|at| self.0.remove(at)).map(|(_, name)| name).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_comes_back_once_and_memory_is_bounded() {
        let mut calls = OpenCalls::default();
        calls.started("a", "Read");
        calls.started("b", "Write");
        assert_eq!(
            (calls.ended("a"), calls.ended("a"), calls.ended("b")),
            ("Read".into(), String::new(), "Write".into())
        );
        for i in 0..=MAX_OPEN_CALLS {
            calls.started(&i.to_string(), "T");
        }
        assert_eq!(calls.0.len(), MAX_OPEN_CALLS);
        assert_eq!((calls.ended("0"), calls.ended("1")), (String::new(), "T".into()));
    }
}
