//! What longshore says otherwise than the recorded daemon, and why.

use super::tape::Said;
use std::collections::{BTreeMap, BTreeSet};

/// A difference that is meant.
#[derive(Debug)]
struct Difference {
    route: &'static str,
    what: &'static str,
    why: &'static str,
}

const fn of(route: &'static str, what: &'static str, why: &'static str) -> Difference {
    Difference { route, what, why }
}

/// All of them. A test fails on one that is not here, and the list is part of `docs/protocol.md`.
const LISTED: &[Difference] = &[
    of(
        "GET /api/daemon/tasks/{}/status",
        "is new",
        "the status is looked at before each report, at a stop too: what the server has ended meanwhile is acknowledged, not failed",
    ),
    of(
        "POST /api/daemon/tasks/{}/fail",
        "`session_id: text` is new",
        "a run that a stop has ended can be resumed by its retry",
    ),
    of(
        "POST /api/daemon/tasks/{}/usage",
        "is new",
        "what a cancelled or stopped run has used is reported as well",
    ),
    of(
        "POST /api/daemon/workspaces/{}/issues/gc-check",
        "is not used",
        "the collector's first round comes 30 s after the start, as recorded; what is played here is over by then",
    ),
];

/// Where the list is told to people, between two marks.
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/protocol.md");
const BEGIN: &str = "<!-- differences: written by a test -->\n";
const END: &str = "<!-- end of differences -->";

/// Differences that a comparison found: route and what.
#[derive(Debug, Default)]
pub(super) struct Found(BTreeSet<(String, String)>);

impl Found {
    pub(super) fn note(&mut self, route: &str, what: &str) {
        self.0.insert((route.to_owned(), what.to_owned()));
    }

    /// The names of headers, which are the same on all requests with and without a body.
    pub(super) fn compare_headers(&mut self, recorded: &[Said], ours: &[Said]) {
        let by_method = |said: &[Said]| {
            let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
            for said in said {
                let method = said.route.split(' ').next().unwrap_or_default();
                if method != "frame" {
                    all.entry(method.to_owned()).or_default().extend(said.headers.iter().cloned());
                }
            }
            all
        };
        let (recorded, ours) = (by_method(recorded), by_method(ours));
        for (method, theirs) in &recorded {
            let Some(mine) = ours.get(method) else { continue };
            for header in theirs.difference(mine) {
                self.note(method, &format!("header `{header}` is missing"));
            }
        }
    }
}

/// Fails on a difference that is not listed, and on one that is listed and not there.
pub(super) fn are_as_listed(stories: &[(&str, Found)]) {
    let is =
        |known: &Difference, (route, what): &(String, String)| known.route == route && known.what == what;
    let all = || stories.iter().flat_map(|(story, found)| found.0.iter().map(move |one| (story, one)));
    let unknown: Vec<_> = all().filter(|(_, one)| !LISTED.iter().any(|known| is(known, one))).collect();
    assert!(unknown.is_empty(), "not listed: {unknown:#?}");
    let stale: Vec<_> = LISTED.iter().filter(|known| !all().any(|(_, one)| is(known, one))).collect();
    assert!(stale.is_empty(), "listed, but there is no such difference: {stale:#?}");
}

#[test]
fn the_page_about_the_protocol_lists_the_differences() {
    let rows = LISTED.iter().map(|one| format!("| `{}` | {} | {} |\n", one.route, one.what, one.why));
    let list: String =
        ["| route | difference | why |\n|---|---|---|\n".to_owned()].into_iter().chain(rows).collect();
    let page = std::fs::read_to_string(PAGE).expect("the page");
    let (before, rest) = page.split_once(BEGIN).expect("the first mark");
    let (told, after) = rest.split_once(END).expect("the second mark");
    if std::env::var_os("LONGSHORE_BLESS").is_some() {
        std::fs::write(PAGE, format!("{before}{BEGIN}{list}{END}{after}")).expect("written");
    } else {
        assert_eq!(told, list, "write it with LONGSHORE_BLESS=1");
    }
}
