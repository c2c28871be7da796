//! A failing script as a test in Rust: it fails as long as the core has the bug.

use super::case::Case;
use crate::config::Config;
use crate::observe::catalog;
use serde_json::{Error, Value};
use std::fmt::Write;

/// A test of its own file below `core/tests/`, for a case that was made small from `from` events.
///
/// # Errors
/// If serialisation fails, which no record is known to make it do.
pub fn regression_test(case: &Case, from: usize) -> Result<String, Error> {
    let trace = String::from_utf8_lossy(&case.trace()?).into_owned();
    let (header, steps) = trace.split_once('\n').unwrap_or((&trace, ""));
    let header = without_defaults(header)?;
    let rule = &case.rule;
    let says = catalog::entry(rule).map_or("the core does not panic", |(_, entry)| entry.says);
    let name: String =
        rule.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect();
    let mut hashes = "#".to_owned();
    while trace.contains(&format!("\"{hashes}")) {
        hashes.push('#');
    }
    let mut text = String::new();
    // A String takes everything.
    let _ = write!(
        text,
        "//! {rule}: {says}.
//! Made small by `longshore trace shrink`: {} of {from} events are left.

use longshore_core::script::held_to;

/// As the core was when it had the bug.
pub(crate) const TRACE: &str = r{hashes}\"{header}
{steps}\"{hashes};

#[test]
fn {name}_holds_over_what_once_broke_it() {{
    let broken = held_to(TRACE, \"{rule}\").expect(\"a trace of one life\");
    assert!(broken.is_empty(), \"{{broken:#?}}\");
}}
",
        case.script.len()
    );
    Ok(text)
}

/// A setting that a header does not have is at its default.
fn without_defaults(header: &str) -> Result<String, Error> {
    let mut header: Value = serde_json::from_str(header)?;
    let default = serde_json::to_value(Config::default())?;
    if let Some(config) = header.get_mut("config") {
        strip(config, &default);
    }
    serde_json::to_string(&header)
}

fn strip(value: &mut Value, default: &Value) {
    let (Some(all), Some(default)) = (value.as_object_mut(), default.as_object()) else { return };
    all.retain(|key, value| default.get(key) != Some(value));
    if let (Some(timers), Some(default)) = (all.get_mut("timers"), default.get("timers")) {
        strip(timers, default);
    }
}
