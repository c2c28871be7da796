//! The embedded control plane against recorded exchanges of a real server: the same requests, the same statuses, shapes and words.

mod accepted;
mod fixture;
mod replay;
mod shape;
mod story;

use accepted::{ACCEPTED, section};
use fixture::World;
use replay::{Found, replay};
use std::path::Path;

const BEGIN: &str = "<!-- written by the test of the recorded exchanges: begin -->\n";
const END: &str = "<!-- written by the test of the recorded exchanges: end -->\n";

#[tokio::test]
async fn recorded_requests_get_the_recorded_answers_but_for_the_accepted_differences() {
    let fixtures = fixture::all();
    let world = World::of(&fixtures);
    let mut found = Found::default();
    for fixture in &fixtures {
        replay(&world, fixture, &mut found).await;
    }
    let known = |place: &str| ACCEPTED.iter().any(|(known, _)| *known == place);
    let news: Vec<_> = found.differences.iter().filter(|(place, _)| !known(place)).collect();
    assert!(news.is_empty(), "{} new differences: {news:#?}", news.len());
    let stale: Vec<_> =
        ACCEPTED.iter().filter(|(place, _)| !found.differences.contains_key(*place)).collect();
    assert!(stale.is_empty(), "accepted and no longer so: {stale:#?}");
    assert!(found.compared > 900, "only {} answers were compared", found.compared);
}

#[test]
fn the_documented_differences_are_the_accepted_ones() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/protocol.md");
    let text = std::fs::read_to_string(&path).expect("the page");
    let (head, rest) = text.split_once(BEGIN).expect("the section's begin");
    let (written, tail) = rest.split_once(END).expect("the section's end");
    if std::env::var_os("LONGSHORE_BLESS").is_some() {
        std::fs::write(&path, format!("{head}{BEGIN}{}{END}{tail}", section())).expect("written");
    } else {
        assert_eq!(written, section(), "run this test with LONGSHORE_BLESS=1 to write the page anew");
    }
}
