//! What is wrong with a trace, in words: as warnings beside what was read, or as the reason why nothing was.

use super::lines::Lines;
use super::source::STDIN;
use longshore_core::trace::{Damage, Trouble, Troubles};

/// A line for each trouble of a trace that was read nevertheless.
pub(super) fn warnings(lines: &Lines, troubles: &Troubles) -> Vec<String> {
    all(lines, troubles, |name, trouble| match &trouble.what {
        Damage::Empty => format!("{}; it was left out", empty(name)),
        Damage::Source { why } if trouble.at.line == 1 => format!("{name}: nothing can be read: {why}"),
        what => format!("{name}: {}: {what}", trouble.at),
    })
}

/// Why there is no trace at all.
pub(super) fn why_none(lines: &Lines, troubles: &Troubles) -> Vec<String> {
    let told = all(lines, troubles, |name, trouble| match &trouble.what {
        Damage::Empty => empty(name),
        Damage::Source { why } if trouble.at.line == 1 => format!("{name}: nothing can be read: {why}"),
        Damage::Source { why } => format!("{name}: {}: from here on nothing can be read: {why}", trouble.at),
        // There is no next header.
        Damage::NoHeader { why } => format!("{name}: {}: no header of a trace: {why}", trouble.at),
        what => format!("{name}: {}: {what}", trouble.at),
    });
    if told.is_empty() { vec![lines.nothing()] } else { told }
}

fn all(lines: &Lines, troubles: &Troubles, one: impl Fn(&str, &Trouble) -> String) -> Vec<String> {
    let mut all: Vec<String> =
        troubles.first().iter().map(|trouble| one(lines.name(trouble.at), trouble)).collect();
    if troubles.more() > 0 {
        all.push(format!("and {} more of that kind", troubles.more()));
    }
    all
}

fn empty(name: &str) -> String {
    if name == STDIN { format!("{STDIN} is empty") } else { format!("{name}: the file is empty") }
}
