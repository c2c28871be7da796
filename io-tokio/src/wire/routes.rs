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
}

/// An id that cannot be part of a path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "an id of {0} bytes cannot be part of a URL: it is empty, only dots, or longer than {MAX_SEGMENT} bytes"
)]
pub struct UnusableId(pub usize);

macro_rules! routes {
    ($($(#[$doc:meta])* $name:ident = $method:ident $path:literal;)*) => {
        $($(#[$doc])* pub const $name: Route = Route { method: Method::$method, template: $path };)*

        /// Every route.
        pub const ALL: &[Route] = &[$($name,)*];
    };
}

routes! {
    /// Whose token it is; asked by commands, not by the daemon.
    ME = Get "/api/me";
    /// Extends the daemon's own token.
    RENEW = Post "/api/tokens/current/renew";
    /// Workspaces of this machine.
    WORKSPACES = Get "/api/daemon/workspaces";
    /// The same on older servers.
    WORKSPACES_LEGACY = Get "/api/workspaces";
    /// Repositories of a workspace.
    REPOS = Get "/api/daemon/workspaces/{}/repos";
    /// Custom runtimes of a workspace.
    RUNTIME_PROFILES = Get "/api/daemon/workspaces/{}/runtime-profiles";
    /// Registers runtimes.
    REGISTER = Post "/api/daemon/register";
    /// Takes runtimes offline.
    DEREGISTER = Post "/api/daemon/deregister";
    /// What came of an update: runtime, request.
    UPDATE_RESULT = Post "/api/daemon/runtimes/{}/update/{}/result";
    /// The models of a runtime: runtime, request.
    MODELS_RESULT = Post "/api/daemon/runtimes/{}/models/{}/result";
    /// The skills of a runtime's machine: runtime, request.
    LOCAL_SKILLS_RESULT = Post "/api/daemon/runtimes/{}/local-skills/{}/result";
    /// One of them: runtime, request.
    IMPORT_RESULT = Post "/api/daemon/runtimes/{}/local-skills/import/{}/result";
    /// Says that a runtime is alive.
    HEARTBEAT = Post "/api/daemon/heartbeat";
    /// Claims for several runtimes.
    CLAIM_BATCH = Post "/api/daemon/tasks/claim";
    /// Claims for one runtime.
    CLAIM_ONE = Post "/api/daemon/runtimes/{}/tasks/claim";
    /// Keeps a claimed task ours while it is prepared: runtime, task.
    PREPARE_LEASE = Post "/api/daemon/runtimes/{}/tasks/{}/prepare-lease";
    /// Fetches a skill of a claimed task: runtime, task.
    SKILL_BUNDLES = Post "/api/daemon/runtimes/{}/tasks/{}/skill-bundles/resolve";
    /// Ends what an earlier process left behind.
    RECOVER_ORPHANS = Post "/api/daemon/runtimes/{}/recover-orphans";
    /// The task waits for the user's directory.
    WAIT_LOCAL_DIRECTORY = Post "/api/daemon/tasks/{}/wait-local-directory";
    /// The run starts.
    START = Post "/api/daemon/tasks/{}/start";
    /// A line for whoever watches.
    PROGRESS = Post "/api/daemon/tasks/{}/progress";
    /// Adds to the transcript.
    MESSAGES = Post "/api/daemon/tasks/{}/messages";
    /// What the transcript holds.
    MESSAGES_READ = Get "/api/daemon/tasks/{}/messages";
    /// Names the session to resume.
    SESSION = Post "/api/daemon/tasks/{}/session";
    /// What the run used.
    USAGE = Post "/api/daemon/tasks/{}/usage";
    /// Where the task is.
    STATUS = Get "/api/daemon/tasks/{}/status";
    /// The run ended well.
    COMPLETE = Post "/api/daemon/tasks/{}/complete";
    /// The run did not end well.
    FAIL = Post "/api/daemon/tasks/{}/fail";
    /// The cancelled run is over.
    CANCEL_ACK = Post "/api/daemon/tasks/{}/cancel-ack";
    /// Which of many issues' directories are of no use any more: workspace.
    GC_ISSUES = Post "/api/daemon/workspaces/{}/issues/gc-check";
    /// The same of one issue, on older servers.
    GC_ISSUE = Get "/api/daemon/issues/{}/gc-check";
    /// The same of a chat.
    GC_CHAT = Get "/api/daemon/chat-sessions/{}/gc-check";
    /// The same of an autopilot's run.
    GC_AUTOPILOT_RUN = Get "/api/daemon/autopilot-runs/{}/gc-check";
    /// The same of a task that was to make an issue.
    GC_TASK = Get "/api/daemon/tasks/{}/gc-check";
    /// The control link.
    LINK = Get "/api/daemon/ws";
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
    fn the_links_query_is_sorted_and_joined_by_an_encoded_comma() {
        assert_eq!(link_query(&["b", "a", "b", "c,d"]), "?runtime_ids=a%2Cb%2Cc%2Cd");
        assert_eq!(link_query(&[]), "");
    }
}
