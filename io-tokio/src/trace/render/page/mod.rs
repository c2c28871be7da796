//! A trace as one page for a browser: everything in one file, which asks the network for nothing.
//!
//! The script is plain: files that are put one after the other, without a build step. The page's policy allows this script and this style
//! sheet by their hashes and nothing else, so that not even a text that found its way out of the data could do anything.

mod data;

use super::drawing::Drawing;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

const FRAME: &str = include_str!("frame.html");
const STYLE: &str = concat!(
    include_str!("style/theme.css"),
    include_str!("style/frame.css"),
    include_str!("style/panels.css")
);
const SCRIPT: &str = concat!(
    "'use strict';\n",
    include_str!("script/data.js"),
    include_str!("script/time.js"),
    include_str!("script/theme.js"),
    include_str!("script/layout.js"),
    include_str!("script/view.js"),
    include_str!("script/bars.js"),
    include_str!("script/marks.js"),
    include_str!("script/frame.js"),
    include_str!("script/minimap.js"),
    include_str!("script/pick.js"),
    include_str!("script/details.js"),
    include_str!("script/table.js"),
    include_str!("script/search.js"),
    include_str!("script/pointer.js"),
    include_str!("script/keys.js"),
    include_str!("script/main.js")
);

/// The page.
pub fn page(drawing: &Drawing) -> String {
    let data = escape(&data::data(drawing).to_string());
    let title = super::text::escaped(drawing.title.as_str());
    let policy = format!(
        "default-src 'none'; script-src '{}'; style-src '{}'; img-src data:; base-uri 'none'; form-action 'none'",
        hash(SCRIPT),
        hash(STYLE)
    );
    let mut out = String::with_capacity(FRAME.len() + STYLE.len() + SCRIPT.len() + data.len() + 1_024);
    let mut rest = FRAME;
    // In one pass, so that nothing in a value is taken for a place.
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after.split_once("}}").expect("the frame closes what it opens");
        out.push_str(before);
        out.push_str(match name {
            "title" => &title,
            "policy" => &policy,
            "style" => STYLE,
            "data" => &data,
            "script" => SCRIPT,
            other => unreachable!("the frame has no place {other}"),
        });
        rest = after;
    }
    out.push_str(rest);
    out
}

fn hash(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text)))
}

/// JSON that can stand in a script element and in JavaScript: the characters that mean something there are only in strings, where they may be
/// written as escapes.
fn escape(json: &str) -> String {
    let mut out = String::with_capacity(json.len() + json.len() / 64);
    for c in json.chars() {
        match c {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests;
