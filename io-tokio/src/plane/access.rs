//! Whose token it is, until when, and what it may see.

use super::shape::hex_digest;
use super::shared::Inner;
use crate::secret::Secret;
use longshore_core::id::{RuntimeId, TaskId, WorkspaceId};
use longshore_core::time::UnixMillis;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A token with less than this left is renewed when it is asked for.
const RENEWED_WITHIN: Duration = Duration::from_hours(7 * 24);
/// How long a renewed token lives.
const RENEWED_FOR: Duration = Duration::from_hours(90 * 24);
/// Tokens that are kept; more are not taken.
const MAX_TOKENS: usize = 4096;

/// Whose a token is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Holder {
    /// The person whose plane it is: sees all workspaces that it is a member of.
    User,
    /// One daemon in one workspace.
    Daemon {
        /// The workspace.
        workspace: WorkspaceId,
        /// The daemon.
        daemon_id: String,
    },
}

/// What a token is good for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// Whose it is.
    pub holder: Holder,
    /// When it ends; `None` for never.
    pub expires_at: Option<UnixMillis>,
}

impl Grant {
    /// The user's, for ever.
    pub const fn user() -> Self {
        Self { holder: Holder::User, expires_at: None }
    }

    fn is_good(&self, now: UnixMillis) -> bool {
        self.expires_at.is_none_or(|end| now < end)
    }
}

/// Who makes a request, by the token that it showed. Handlers take it from the request.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    pub(super) holder: Holder,
    digest: String,
}

impl Caller {
    pub(super) fn is_user(&self) -> bool {
        self.holder == Holder::User
    }
}

/// The tokens that are accepted, by their digests: no token is kept.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Tokens {
    grants: BTreeMap<String, Grant>,
    /// Workspaces that the user is no member of any more.
    left: BTreeSet<WorkspaceId>,
    /// Good for as long as this process runs: each one begins with a token of its own, which must not pile up in a database.
    #[serde(skip)]
    passing: BTreeMap<String, Grant>,
    /// Whether it differs from what was stored.
    #[serde(skip)]
    touched: bool,
}

impl Tokens {
    /// Accepts this one too. Whether there was room.
    pub(super) fn grant(&mut self, token: &Secret, grant: Grant) -> bool {
        let room = self.grants.len() < MAX_TOKENS;
        if room {
            self.touched = true;
            self.grants.insert(digest(token.expose()), grant);
        }
        room
    }

    /// Accepts this one as the user's until this process ends.
    pub(super) fn grant_passing(&mut self, token: &Secret) {
        self.passing.insert(digest(token.expose()), Grant::user());
    }

    /// Accepts no token any more.
    pub(super) fn revoke_all(&mut self) {
        self.touched = true;
        self.grants.clear();
        self.passing.clear();
    }

    /// Who shows this token; nobody if it is not accepted or has ended.
    pub(super) fn caller(&self, token: &str, now: UnixMillis) -> Option<Caller> {
        let digest = digest(token);
        let found = self.grants.get(&digest).or_else(|| self.passing.get(&digest));
        let grant = found.filter(|grant| grant.is_good(now))?;
        Some(Caller { holder: grant.holder.clone(), digest })
    }

    /// Renews the caller's token if it ends soon: when it ends, and whether that has moved.
    pub(super) fn renew(&mut self, caller: &Caller, now: UnixMillis) -> (Option<UnixMillis>, bool) {
        let Some(grant) = self.grants.get_mut(&caller.digest) else { return (None, false) };
        let Some(end) = grant.expires_at else { return (None, false) };
        if end.0.saturating_sub(now.0) > millis(RENEWED_WITHIN) {
            return (Some(end), false);
        }
        self.touched = true;
        grant.expires_at = Some(UnixMillis(now.0.saturating_add(millis(RENEWED_FOR))));
        (grant.expires_at, true)
    }

    /// Whether it has changed since the last call.
    pub(super) fn take_touched(&mut self) -> bool {
        std::mem::take(&mut self.touched)
    }

    /// Whether the user is a member of the workspace.
    pub(super) fn set_member(&mut self, workspace: WorkspaceId, member: bool) {
        self.touched = true;
        if member {
            self.left.remove(&workspace);
        } else {
            self.left.insert(workspace);
        }
    }
}

impl Inner {
    /// Whether the caller may see the workspace, if it is there.
    pub(super) fn sees(&self, caller: &Caller, workspace: &WorkspaceId) -> bool {
        match &caller.holder {
            Holder::User => !self.tokens.left.contains(workspace),
            Holder::Daemon { workspace: own, .. } => own == workspace,
        }
    }

    /// Whether the caller may see the runtime; one that is not there is seen by everybody, so that each handler can say so.
    pub(super) fn sees_runtime(&self, caller: &Caller, id: &RuntimeId) -> bool {
        self.plane.runtime(id).is_none_or(|row| self.sees(caller, &row.workspace))
    }

    /// The same for a task.
    pub(super) fn sees_task(&self, caller: &Caller, id: &TaskId) -> bool {
        self.plane.task(id).is_none_or(|row| self.sees(caller, &row.workspace))
    }

    /// Whether the caller may see what a path of ours names.
    pub(super) fn sees_path(&self, caller: &Caller, path: &str) -> bool {
        let mut parts = path.trim_start_matches("/api/daemon/").split('/').map(decoded);
        match (parts.next().as_deref(), parts.next(), parts.next().as_deref(), parts.next()) {
            (Some("runtimes"), Some(runtime), Some("tasks"), Some(task)) if task != "claim" => {
                self.sees_runtime(caller, &RuntimeId::new(runtime))
                    && self.sees_task(caller, &TaskId::new(task))
            }
            (Some("runtimes"), Some(runtime), ..) => self.sees_runtime(caller, &RuntimeId::new(runtime)),
            (Some("tasks"), Some(task), Some(_), _) => self.sees_task(caller, &TaskId::new(task)),
            (Some("workspaces"), Some(workspace), ..) => self.sees(caller, &WorkspaceId::new(workspace)),
            _ => true,
        }
    }
}

fn decoded(part: &str) -> String {
    percent_encoding::percent_decode_str(part).decode_utf8_lossy().into_owned()
}

fn digest(token: &str) -> String {
    hex_digest(token.as_bytes())
}

fn millis(of: Duration) -> i64 {
    i64::try_from(of.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_renewed_in_its_last_week_and_is_no_good_after_its_end() {
        let day = |n: i64| UnixMillis(n * 24 * 3_600_000);
        let (mut tokens, token) = (Tokens::default(), Secret::new("mul_1"));
        assert!(tokens.grant(&token, Grant { holder: Holder::User, expires_at: Some(day(30)) }));
        let caller = tokens.caller("mul_1", day(0)).expect("accepted");
        assert_eq!(tokens.renew(&caller, day(0)), (Some(day(30)), false));
        assert_eq!(tokens.renew(&caller, day(24)), (Some(day(114)), true));
        assert!(tokens.caller("mul_1", day(113)).is_some() && tokens.caller("mul_1", day(114)).is_none());
        assert!(tokens.caller("mul_2", day(0)).is_none());
        assert!(tokens.grant(&Secret::new("mul_3"), Grant::user()));
        let caller = tokens.caller("mul_3", day(9999)).expect("for ever");
        assert_eq!(tokens.renew(&caller, day(9999)), (None, false));
    }
}
