//! What a daemon says that it can do, as far as it shapes what it is given.

use axum::http::HeaderMap;

/// The header that names them, in every request and in the handshake of a control channel.
const HEADER: &str = "x-client-capabilities";

/// Those that change a claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Capabilities {
    /// It fetches skills: a claim only names them.
    pub(super) skill_bundles: bool,
    /// It shows each comment by itself.
    pub(super) coalesced_comments: bool,
    /// It works in a worktree of a user's repository.
    pub(super) local_worktree: bool,
}

/// What the header says, one by one.
pub(super) fn named(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let values = headers.get_all(HEADER).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim).filter(|name| !name.is_empty())
}

impl Capabilities {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let mut out = Self::default();
        for name in named(headers) {
            match name {
                "skill-bundles-v1" => out.skill_bundles = true,
                "coalesced-comments-v1" => out.coalesced_comments = true,
                "local-worktree-v1" => out.local_worktree = true,
                _ => {}
            }
        }
        out
    }
}
