//! The routes of the server that a daemon uses.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Longest id that is put into a path, in bytes.
pub const MAX_SEGMENT: usize = 512;

/// What stays as it is in a path: the server compares ids with the raw path.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b':');

/// How a route is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Reads; has no body.
    Get,
    /// Changes something; always has a body.
    Post,
}

impl Method {
    /// The word of HTTP.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
        }
    }
}

/// A route: `{}` in its path stands for an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// How it is called.
    pub method: Method,
    /// Its path, without the server's prefix.
    pub template: &'static str,
    /// Most bytes of a good answer; more is none that can be read.
    pub most: usize,
}

/// Answers that say little: what is read of them is a few words.
const WORDS: usize = 1 << 20;
/// Answers that are lists which people make: workspaces, runtimes, repositories.
const LIST: usize = 16 << 20;
/// Answers that hold tasks, with all that their agents said or are to be told: a claim of 32 tasks is several megabytes.
const TASKS: usize = 64 << 20;

/// An id that cannot be part of a path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "an id of {0} bytes cannot be part of a URL: it is empty, only dots, or longer than {MAX_SEGMENT} bytes"
)]
pub struct UnusableId(pub usize);

macro_rules! routes {
    ($($(#[$doc:meta])* $name:ident = $method:ident $path:literal $most:ident;)*) => {
        $($(#[$doc])* pub const $name: Route = Route { method: Method::$method, template: $path, most: $most };)*

        /// Every route.
        pub const ALL: &[Route] = &[$($name,)*];
    };
}

routes! {
    /// Whose token it is; asked by commands, not by the daemon.
    ME = Get "/api/me" WORDS;
    /// Extends the daemon's own token.
    RENEW = Post "/api/tokens/current/renew" WORDS;
    /// Workspaces of this machine.
    WORKSPACES = Get "/api/daemon/workspaces" LIST;
    /// The same on older servers.
    WORKSPACES_LEGACY = Get "/api/workspaces" LIST;
    /// Repositories of a workspace.
    REPOS = Get "/api/daemon/workspaces/{}/repos" LIST;
    /// Custom runtimes of a workspace.
    RUNTIME_PROFILES = Get "/api/daemon/workspaces/{}/runtime-profiles" LIST;
    /// Registers runtimes.
    REGISTER = Post "/api/daemon/register" LIST;
    /// Takes runtimes offline.
    DEREGISTER = Post "/api/daemon/deregister" WORDS;
    /// What came of an update: runtime, request.
    UPDATE_RESULT = Post "/api/daemon/runtimes/{}/update/{}/result" WORDS;
    /// The models of a runtime: runtime, request.
    MODELS_RESULT = Post "/api/daemon/runtimes/{}/models/{}/result" WORDS;
    /// The skills of a runtime's machine: runtime, request.
    LOCAL_SKILLS_RESULT = Post "/api/daemon/runtimes/{}/local-skills/{}/result" WORDS;
    /// One of them: runtime, request.
    IMPORT_RESULT = Post "/api/daemon/runtimes/{}/local-skills/import/{}/result" WORDS;
    /// Says that a runtime is alive.
    HEARTBEAT = Post "/api/daemon/heartbeat" WORDS;
    /// Claims for several runtimes.
    CLAIM_BATCH = Post "/api/daemon/tasks/claim" TASKS;
    /// Claims for one runtime.
    CLAIM_ONE = Post "/api/daemon/runtimes/{}/tasks/claim" TASKS;
    /// Keeps a claimed task ours while it is prepared: runtime, task.
    PREPARE_LEASE = Post "/api/daemon/runtimes/{}/tasks/{}/prepare-lease" TASKS;
    /// Fetches a skill of a claimed task: runtime, task.
    SKILL_BUNDLES = Post "/api/daemon/runtimes/{}/tasks/{}/skill-bundles/resolve" TASKS;
    /// Ends what an earlier process left behind.
    RECOVER_ORPHANS = Post "/api/daemon/runtimes/{}/recover-orphans" WORDS;
    /// The task waits for the user's directory.
    WAIT_LOCAL_DIRECTORY = Post "/api/daemon/tasks/{}/wait-local-directory" TASKS;
    /// The run starts.
    START = Post "/api/daemon/tasks/{}/start" TASKS;
    /// A line for whoever watches.
    PROGRESS = Post "/api/daemon/tasks/{}/progress" WORDS;
    /// Adds to the transcript.
    MESSAGES = Post "/api/daemon/tasks/{}/messages" WORDS;
    /// What the transcript holds.
    MESSAGES_READ = Get "/api/daemon/tasks/{}/messages" TASKS;
    /// Names the session to resume.
    SESSION = Post "/api/daemon/tasks/{}/session" WORDS;
    /// What the run used.
    USAGE = Post "/api/daemon/tasks/{}/usage" WORDS;
    /// Where the task is.
    STATUS = Get "/api/daemon/tasks/{}/status" WORDS;
    /// The run ended well.
    COMPLETE = Post "/api/daemon/tasks/{}/complete" TASKS;
    /// The run did not end well.
    FAIL = Post "/api/daemon/tasks/{}/fail" TASKS;
    /// The cancelled run is over.
    CANCEL_ACK = Post "/api/daemon/tasks/{}/cancel-ack" TASKS;
    /// Which of many issues' directories are of no use any more: workspace.
    GC_ISSUES = Post "/api/daemon/workspaces/{}/issues/gc-check" WORDS;
    /// The same of one issue, on older servers.
    GC_ISSUE = Get "/api/daemon/issues/{}/gc-check" WORDS;
    /// The same of a chat.
    GC_CHAT = Get "/api/daemon/chat-sessions/{}/gc-check" WORDS;
    /// The same of an autopilot's run.
    GC_AUTOPILOT_RUN = Get "/api/daemon/autopilot-runs/{}/gc-check" WORDS;
    /// The same of a task that was to make an issue.
    GC_TASK = Get "/api/daemon/tasks/{}/gc-check" WORDS;
    /// The control link.
    LINK = Get "/api/daemon/ws" WORDS;
}

impl Route {
    /// The path with `ids` in their places, percent-encoded and otherwise exactly as they are.
    ///
    /// # Errors
    /// If an id cannot be encoded so that it stays one segment: an empty one, `.`, `..`, or one that is too long.
    pub fn path(&self, ids: &[&str]) -> Result<String, UnusableId> {
        debug_assert_eq!(self.template.matches("{}").count(), ids.len(), "{}", self.template);
        let mut path = String::with_capacity(self.template.len() + 40 * ids.len());
        let mut pieces = self.template.split("{}");
        path.push_str(pieces.next().unwrap_or_default());
        for (id, piece) in ids.iter().zip(pieces) {
            if matches!(*id, "" | "." | "..") || id.len() > MAX_SEGMENT {
                return Err(UnusableId(id.len()));
            }
            path.extend(utf8_percent_encode(id, PLAIN));
            path.push_str(piece);
        }
        Ok(path)
    }
}

/// The query of the control link: ids sorted and joined by `%2C`, empty without ids.
pub fn link_query(runtime_ids: &[&str]) -> String {
    let mut ids = runtime_ids.to_vec();
    ids.sort_unstable();
    ids.dedup();
    let mut query = String::new();
    for id in ids {
        query.push_str(if query.is_empty() { "?runtime_ids=" } else { "%2C" });
        query.extend(utf8_percent_encode(id, PLAIN));
    }
    query
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_encoded_and_otherwise_untouched() {
        assert_eq!(
            PREPARE_LEASE.path(&["R-1", "T:2"]).expect("ids"),
            "/api/daemon/runtimes/R-1/tasks/T:2/prepare-lease"
        );
        assert_eq!(
            START.path(&["../x y?#%ä"]).expect("an id"),
            "/api/daemon/tasks/..%2Fx%20y%3F%23%25%C3%A4/start"
        );
        let long = "x".repeat(MAX_SEGMENT + 1);
        for bad in ["", ".", "..", long.as_str()] {
            assert_eq!(START.path(&[bad]), Err(UnusableId(bad.len())));
        }
    }

    #[test]
    fn every_route_is_plain_and_there_once() {
        for (n, route) in ALL.iter().enumerate() {
            assert!(route.template.starts_with("/api/"), "{}", route.template);
            assert!(!ALL[..n].contains(route), "{}", route.template);
        }
    }

    #[test]
    fn an_answer_may_be_as_large_as_what_its_route_can_have_to_say() {
        for route in [HEARTBEAT, STATUS, DEREGISTER, MESSAGES, USAGE, RECOVER_ORPHANS] {
            assert_eq!(route.most, 1 << 20, "{}", route.template);
        }
        // One that cannot be read is asked for again and again, and a task's row has its output in it.
        for route in [CLAIM_BATCH, CLAIM_ONE, SKILL_BUNDLES, START, COMPLETE, FAIL, MESSAGES_READ] {
            assert_eq!(route.most, 64 << 20, "{}", route.template);
        }
    }

    #[test]
    fn the_links_query_is_sorted_and_joined_by_an_encoded_comma() {
        assert_eq!(link_query(&["b", "a", "b", "c,d"]), "?runtime_ids=a%2Cb%2Cc%2Cd");
        assert_eq!(link_query(&[]), "");
    }
}
