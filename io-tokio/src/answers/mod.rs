//! What is done about every answer to every request that can go wrong: one table, which the page about the protocol shows and a test drives
//! through a server's faults, row by row.
//!
//! The table tells; the machines of the core and the adapter do. So a row that is not true fails that test.

mod table;

pub use table::{ANSWERS, Row};

use longshore_core::error::{ApiError, Refusal};

/// What came instead of a good answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Trouble {
    /// No byte of the request left this machine: refused connections, unknown hosts, failed handshakes.
    NotSent,
    /// No answer came in time, or it broke off: the request may have been carried out.
    NoAnswer,
    /// 429, or 503 with `Retry-After`.
    Throttled,
    /// 408, 425, any other 5xx, and what is the word of something before the server: redirects, a page or an unknown text under a 4xx, 407, 421.
    Server,
    /// 502, 504: a proxy has lost sight of the server, which may have carried the request out.
    Gateway,
    /// A 2xx that cannot be read: truncated or broken JSON, a page, wrong types where they matter, more than the route allows.
    Garbled,
    /// 401.
    Unauthorized,
    /// 403.
    Forbidden,
    /// 404 "404 page not found", 405: the server has no such route.
    NoRoute,
    /// 404 in the server's own words for what the request is about: "task not found", "runtime not found", "workspace not found".
    Gone,
    /// Any other 4xx, a 404 in other words of the server ("not found": no access).
    Refused,
}

impl Trouble {
    /// Every one.
    pub const ALL: [Self; 11] = [
        Self::NotSent,
        Self::NoAnswer,
        Self::Throttled,
        Self::Server,
        Self::Gateway,
        Self::Garbled,
        Self::Unauthorized,
        Self::Forbidden,
        Self::NoRoute,
        Self::Gone,
        Self::Refused,
    ];

    /// For people.
    pub const fn words(self) -> &'static str {
        match self {
            Self::NotSent => "not sent",
            Self::NoAnswer => "no answer",
            Self::Throttled => "429",
            Self::Server => "5xx, a proxy's 4xx",
            Self::Gateway => "502, 504",
            Self::Garbled => "unreadable 2xx",
            Self::Unauthorized => "401",
            Self::Forbidden => "403",
            Self::NoRoute => "no such route",
            Self::Gone => "gone",
            Self::Refused => "other 4xx",
        }
    }

    /// Which one the core is told.
    pub const fn of(error: ApiError) -> Self {
        match error {
            ApiError::NotSent => Self::NotSent,
            ApiError::Throttled { .. } => Self::Throttled,
            ApiError::Server { status: 502 | 504 } => Self::Gateway,
            ApiError::Server { .. } => Self::Server,
            ApiError::Undecodable => Self::Garbled,
            ApiError::Refused { kind, .. } => match kind {
                Refusal::Unauthorized | Refusal::ClockSkew => Self::Unauthorized,
                Refusal::Forbidden => Self::Forbidden,
                Refusal::RouteMissing => Self::NoRoute,
                Refusal::TaskGone | Refusal::RuntimeGone | Refusal::WorkspaceGone => Self::Gone,
                _ => Self::Refused,
            },
            _ => Self::NoAnswer,
        }
    }
}

/// What is done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reaction {
    /// Sent again after a wait that doubles, until it is taken.
    Again,
    /// Sent again, a few times in all.
    FewTries,
    /// Left at that: the next one comes at its own time.
    NextTime,
    /// Never sent again, and nothing waits for it.
    LetGo,
    /// The daemon goes on as if there were nothing to know.
    GoesOn,
    /// The task's status is asked for, which decides.
    AsksStatus,
    /// What the server has is asked for first, then what is missing is sent.
    AsksMessages,
    /// Another route serves in its place.
    OtherRoute,
    /// The runtime leaves the set, and its workspace is registered again.
    DropsRuntime,
    /// The workspace is not served until a list names it again.
    DropsWorkspace,
    /// Believed after three looks over at least 5 s: then the run is ended, and nothing is reported.
    BelievedLater,
    /// A `fail` that says why follows.
    FailsInstead,
    /// The task fails with a reason of its own.
    FailsTask,
    /// Sent in halves, until the one message that is refused is alone: that one is skipped and logged.
    Halves,
    /// The directory of what is asked about is freed.
    Frees,
    /// Skipped and logged; what comes after it goes on.
    Skips,
    /// It is over; that is logged.
    Over,
    /// Nothing is asked of the server any more, but every 30 s whether it still refuses; work in hand goes on, and is reported once it does not.
    LosesAccess,
    /// Every runtime beats at once, which shows whom the server does not know; the connection is dialled again without those.
    BeatsAll,
}

impl Reaction {
    /// For people.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Again => "again after a wait that doubles",
            Self::FewTries => "again, 4 times in all",
            Self::NextTime => "left at that; the next one comes at its time",
            Self::LetGo => "never again; nothing waits for it",
            Self::GoesOn => "goes on as if there were nothing to know",
            Self::AsksStatus => "asks for the status, which decides",
            Self::AsksMessages => "asks what the server has, then sends what is missing",
            Self::OtherRoute => "another route serves in its place",
            Self::DropsRuntime => "the runtime leaves the set; its workspace is registered again",
            Self::DropsWorkspace => "the workspace is not served until a list names it again",
            Self::BelievedLater => "believed after 3 looks over 5 s: the run is ended, nothing is reported",
            Self::FailsInstead => "a `fail` that says why",
            Self::FailsTask => "the task fails with this as its reason",
            Self::Halves => "in halves, until what is refused is alone and is skipped",
            Self::Frees => "the directory is freed",
            Self::Skips => "skipped, logged",
            Self::Over => "over, logged",
            Self::LosesAccess => "access is lost",
            Self::BeatsAll => "all runtimes beat; dialled again without those that are refused",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::routes::{self, Method, Route};
    use std::collections::BTreeSet;
    use std::fmt::Write;

    /// Where the table is shown to people, between two marks.
    const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/protocol.md");
    const BEGIN: &str = "<!-- answers: written by a test -->\n";
    const END: &str = "<!-- end of answers -->";

    /// Asked by commands, or by nobody yet.
    const UNUSED: [Route; 2] = [routes::ME, routes::REPOS];

    #[test]
    fn every_route_has_one_row_for_every_trouble() {
        for route in routes::ALL.iter().filter(|route| !UNUSED.contains(route)) {
            for trouble in Trouble::ALL {
                let rows: Vec<_> = ANSWERS
                    .iter()
                    .filter(|row| row.route == *route && row.troubles.contains(&trouble))
                    .collect();
                assert_eq!(rows.len(), 1, "{} {}: {trouble:?}", route.method.as_str(), route.template);
            }
        }
        assert!(ANSWERS.iter().all(|row| routes::ALL.contains(&row.route)));
    }

    /// One line for each route; what all of its troubles of a kind have in common is said once.
    fn page() -> String {
        let mut out = String::from("| request | answer | what follows |\n|---|---|---|\n");
        let mut shown: BTreeSet<(&str, &str)> = BTreeSet::new();
        for row in ANSWERS {
            let method = if row.route.method == Method::Get { "GET" } else { "POST" };
            let first = shown.insert((method, row.route.template));
            let name = if first { format!("`{method} {}`", row.route.template) } else { String::new() };
            let troubles: Vec<&str> = row.troubles.iter().map(|trouble| trouble.words()).collect();
            let note = if row.note.is_empty() { String::new() } else { format!(": {}", row.note) };
            let _ = writeln!(out, "| {name} | {} | {}{note} |", troubles.join("; "), row.reaction.words());
        }
        out
    }

    #[test]
    fn the_page_about_the_protocol_shows_the_table() {
        let text = std::fs::read_to_string(PAGE).expect("the page");
        let (before, rest) = text.split_once(BEGIN).expect("the first mark");
        let (shown, after) = rest.split_once(END).expect("the second mark");
        if std::env::var_os("LONGSHORE_BLESS").is_some() {
            std::fs::write(PAGE, format!("{before}{BEGIN}{}{END}{after}", page())).expect("written");
        } else {
            assert_eq!(shown, page(), "write it with LONGSHORE_BLESS=1");
        }
    }
}
