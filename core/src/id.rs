//! Identifiers. Those of the wire are opaque strings, cheap to clone and told apart by type; those of the core are numbers.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

macro_rules! wire_id {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Takes the text as it is: ids are opaque.
            pub fn new(text: impl Into<Arc<str>>) -> Self {
                Self(text.into())
            }

            /// The text, exactly as it was received.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), &self.0)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self::new(text)
            }
        }
    )*};
}

wire_id! {
    /// A task, as the server names it.
    TaskId;
    /// A runtime: one agent CLI of this machine in one workspace, as the server names it.
    RuntimeId;
    /// A workspace, as the server names it.
    WorkspaceId;
    /// An agent CLI family in lower case, such as `claude` or `codex`.
    Provider;
    /// A task's directory: the path below the workspaces root, `<workspace>/<key>`.
    EnvRoot;
    /// A custom runtime of a workspace, as the server names it.
    ProfileId;
    /// Something that the server asks for in its answer to a heartbeat, as the server names it.
    ActionId;
    /// A user's own directory that a task works in: its real path, links resolved, or any text that stands for it.
    PathKey;
}

/// Whether `text` can be one component of a path and one segment of a URL: 1 to 128 bytes of ASCII letters,
/// digits, `-`, `_`, `.` and `:`, and neither `.` nor `..`. An id that is not never reaches the disk or a URL.
pub fn is_safe_component(text: &str) -> bool {
    let safe = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b':');
    (1..=128).contains(&text.len()) && text.bytes().all(safe) && text != "." && text != ".."
}

/// One request to the outside; never reused in a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OpId(pub u64);

/// One life of a control connection: events of an older one change nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ConnGen(pub u32);

/// Which state of the runtime set a request is about; grows with each change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Generation(pub u32);

/// An execution slot, from 0; agents see it as `MULTICA_TASK_SLOT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SlotIndex(pub u16);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_names_are_path_components() {
        for good in ["ws-1", "0198c2d0-7f3a-7000-8000-0123456789ab", "builtin:x", "..."] {
            assert!(is_safe_component(good), "{good}");
        }
        let long = "x".repeat(129);
        for bad in ["", ".", "..", "a/b", "a\\b", "a b", "a%2fb", "a\0b", "ä", long.as_str()] {
            assert!(!is_safe_component(bad), "{bad}");
        }
    }
}
