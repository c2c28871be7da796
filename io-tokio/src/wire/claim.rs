//! Claims: what is asked for, and what comes back.

use super::json::{self, DecodeError};
use super::task::Task;
use longshore_core::id::RuntimeId;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The shape of a batch reply, in words.
const BATCH: &str = "an object with a list `tasks`";
/// The shape of a single reply, in words.
const SINGLE: &str = "an object with a `task`";

/// Asks for tasks of several runtimes at once.
#[derive(Clone, Debug, Serialize)]
pub struct ClaimRequest<'a> {
    /// The daemon that hosts the runtimes.
    pub daemon_id: &'a str,
    /// All of them, or those that a wakeup named.
    pub runtime_ids: &'a [RuntimeId],
    /// Free slots. The server takes more than 32 for 32.
    pub max_tasks: u32,
}

/// What a claim brought. The server counts each element as handed over, usable or not.
#[derive(Debug, Default)]
pub struct ClaimReply {
    /// Tasks in the server's order.
    pub tasks: Vec<Task>,
    /// Elements that are no task.
    pub unusable: Vec<Unusable>,
}

/// An element of a claim reply that is no task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unusable {
    /// Its place in the reply, from 0.
    pub index: usize,
    /// Why it cannot be used; quotes nothing of it.
    pub reason: &'static str,
}

impl ClaimReply {
    /// Reads a batch reply. Each element is read on its own, so that one that cannot be used loses no other: a `null`
    /// entry is one of those, and no end of the list.
    ///
    /// # Errors
    /// If the reply is no object with a list `tasks` (which may be `null`). What the server handed over is then not
    /// known.
    pub fn batch(text: &str) -> Result<Self, DecodeError> {
        #[derive(Deserialize)]
        struct Batch<'a> {
            #[serde(borrow, deserialize_with = "json::nullable")]
            tasks: Vec<&'a RawValue>,
        }
        let batch: Batch<'_> = json::decode(text, BATCH)?;
        Ok(Self::read(batch.tasks.into_iter()))
    }

    /// Reads the reply for one runtime, whose `task` is `null` if there is none.
    ///
    /// # Errors
    /// If the reply is no object with a `task`.
    pub fn single(text: &str) -> Result<Self, DecodeError> {
        #[derive(Deserialize)]
        struct Single<'a> {
            #[serde(borrow, deserialize_with = "json::nullable")]
            task: Option<&'a RawValue>,
        }
        let single: Single<'_> = json::decode(text, SINGLE)?;
        Ok(Self::read(single.task.into_iter()))
    }

    fn read<'a>(elements: impl Iterator<Item = &'a RawValue>) -> Self {
        let mut reply = Self::default();
        for (index, element) in elements.enumerate() {
            match task(element.get()) {
                Ok(task) => reply.tasks.push(task),
                Err(reason) => reply.unusable.push(Unusable { index, reason }),
            }
        }
        reply
    }
}

fn task(text: &str) -> Result<Task, &'static str> {
    match text.as_bytes().first() {
        Some(b'{') => {}
        Some(b'n') => return Err("it is null"),
        _ => return Err("it is no object"),
    }
    serde_json::from_str(text).or_else(|_| {
        // A field that is there twice: the last one counts, as it does for the server.
        let value: serde_json::Value = serde_json::from_str(text).map_err(|_| "it is nested too deeply")?;
        serde_json::from_str(&value.to_string()).map_err(|_| "it cannot be read")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_bad_element_loses_no_other() {
        let reply = ClaimReply::batch(
            r#"{"tasks":[{"id":"a"},null,7,"x",{"id":"b","id":"c","agent":{"id":"g"}},{"id":[1]},{"id":"d"}],"more":1}"#,
        )
        .expect("a batch");
        let ids: Vec<_> = reply.tasks.iter().map(|task| task.id.as_str()).collect();
        assert_eq!(ids, ["a", "c", "", "d"]);
        assert_eq!(reply.tasks[1].agent.as_ref().map(|agent| agent.id.as_str()), Some("g"));
        let places: Vec<_> = reply.unusable.iter().map(|bad| (bad.index, bad.reason)).collect();
        assert_eq!(places, [(1, "it is null"), (2, "it is no object"), (3, "it is no object")]);
    }

    #[test]
    fn a_reply_of_another_shape_is_an_error() {
        for text in
            ["", "[]", "null", "{}", r#"{"tasks":{}}"#, r#"{"tasks":"no"}"#, r#"{"tasks":[{"id""#, "<html>"]
        {
            assert!(ClaimReply::batch(text).is_err(), "{text}");
        }
        for text in ["", "[]", "{}", "<html>"] {
            assert!(ClaimReply::single(text).is_err(), "{text}");
        }
    }

    #[test]
    fn no_task_is_no_error() {
        for text in [r#"{"tasks":[]}"#, r#"{"tasks":null}"#] {
            let reply = ClaimReply::batch(text).expect("a batch");
            assert!(reply.tasks.is_empty() && reply.unusable.is_empty(), "{text}");
        }
        assert!(ClaimReply::single(r#"{"task":null}"#).expect("single").tasks.is_empty());
        assert_eq!(ClaimReply::single(r#"{"task":{"id":"t"}}"#).expect("single").tasks[0].id, "t");
    }

    #[test]
    fn a_deeply_nested_field_that_nobody_reads_does_no_harm() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let text = format!(r#"{{"tasks":[{{"id":"a","x":{deep}}},{{"id":"b"}}]}}"#);
        assert_eq!(ClaimReply::batch(&text).expect("a batch").tasks.len(), 2);
    }
}
