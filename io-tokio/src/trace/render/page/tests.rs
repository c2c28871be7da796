//! The page as text. What a browser makes of it is tried in `tests/tests/page`.

mod decode;

use super::*;
use crate::trace::render::specimen::{plain, specimen};
use crate::trace::render::text::tests::HOSTILE;
use proptest::prelude::*;
use serde_json::Value;

/// What is between a beginning and an end, and the text without it.
fn cut<'a>(text: &'a str, begin: &str, end: &str) -> (&'a str, String) {
    let (before, rest) = text.split_once(begin).expect("begins");
    let (inside, after) = rest.split_once(end).expect("ends");
    (inside, format!("{before}{begin}{end}{after}"))
}

fn data_of(page: &str) -> Value {
    serde_json::from_str(cut(page, "id=\"data\">", "</script>").0).expect("JSON")
}

/// The page without what comes from the trace.
fn frame_of(page: &str) -> String {
    let rest = cut(page, "id=\"data\">", "</script>").1;
    let rest = cut(&rest, "<title>", "</title>").1;
    cut(&rest, "<h1 id=\"title\">", "</h1>").1
}

#[test]
fn what_is_drawn_comes_out_of_the_page_again() {
    for drawing in [specimen(20, plain), Drawing::default()] {
        assert_eq!(decode::drawing(&data_of(&page(&drawing))), sorted(drawing));
    }
    for hostile in HOSTILE {
        let drawing = specimen(5, |what, n| format!("{hostile}{what}{n}"));
        assert_eq!(decode::drawing(&data_of(&page(&drawing))), sorted(drawing), "{hostile}");
    }
}

/// The page has the bars of a lane row by row.
fn sorted(mut drawing: Drawing) -> Drawing {
    for lane in drawing.groups.iter_mut().flat_map(|group| &mut group.lanes) {
        let rows = crate::trace::render::stack::stack(lane).rows;
        lane.bars = rows.iter().flatten().map(|i| lane.bars[*i].clone()).collect();
    }
    drawing
}

#[test]
fn no_name_gets_out_of_the_data() {
    let frame = frame_of(&page(&specimen(5, plain)));
    for hostile in HOSTILE {
        let page = page(&specimen(5, |_, n| format!("{hostile}{n}")));
        assert_eq!(frame_of(&page), frame, "{hostile}");
        let data = cut(&page, "id=\"data\">", "</script>").0;
        assert!(!data.contains(['<', '>', '&', '\u{2028}', '\u{2029}', '\u{202e}', '\0']), "{hostile}");
        let title = cut(&page, "<title>", "</title>").0;
        assert!(!title.contains(['<', '>', '"', '\'', '\u{202e}', '\0']), "{hostile}");
    }
}

#[test]
fn the_policy_allows_this_script_and_this_style_and_nothing_else() {
    let page = page(&specimen(3, plain));
    let policy = cut(&page, "Content-Security-Policy\" content=\"", "\">").0;
    let script = cut(&page, "<script>", "</script>").0;
    let style = cut(&page, "<style>", "</style>").0;
    let wanted = format!(
        "default-src 'none'; script-src '{}'; style-src '{}'; img-src data:; base-uri 'none'; form-action 'none'",
        hash(script),
        hash(style)
    );
    assert_eq!(policy, wanted);
    assert!(script.starts_with("'use strict';") && style.contains("box-sizing"));
}

#[test]
fn the_script_asks_nobody_and_makes_no_markup_of_texts() {
    for word in [
        "http:",
        "https:",
        "//cdn",
        "fetch(",
        "XMLHttpRequest",
        "WebSocket",
        "sendBeacon",
        "import(",
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "new Function",
        "</script",
        "<!--",
        "@import",
        "url(",
    ] {
        assert!(!SCRIPT.contains(word) && !STYLE.contains(word), "{word}");
    }
    assert!(!STYLE.contains("</style"));
    let handlers = [" onload=", " onclick=", " onerror=", " style=", " src="];
    assert!(
        handlers.iter().all(|word| !FRAME.contains(word)),
        "the policy forbids what stands in attributes"
    );
}

proptest! {
    #[test]
    fn escaped_json_says_the_same(text in "(?s).{0,80}", number: i64) {
        let value = serde_json::json!({ "a": [text.clone(), number], text: "</script>\u{2028}&" });
        let escaped = escape(&value.to_string());
        let harmless = !escaped.contains(['<', '>', '&', '\u{2028}', '\u{2029}']);
        prop_assert!(harmless);
        prop_assert_eq!(serde_json::from_str::<Value>(&escaped).expect("JSON"), value);
    }
}
