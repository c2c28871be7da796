//! What is wrong with a trace, in words: as warnings beside what was read, or as the reason why nothing was.

use super::lines::Lines;
use super::source::STDIN;
use longshore_core::trace::{Damage, Salvage, Trouble};

/// A line for each trouble of a trace that was read nevertheless.
pub(super) fn warnings(lines: &Lines, salvage: &Salvage) -> Vec<String> {
    all(lines, salvage, |name, trouble| match &trouble.what {
        Damage::Empty => format!("{}; it was left out", empty(name)),
        Damage::Source { why } if trouble.at.line == 1 => format!("{name}: nothing can be read: {why}"),
        what @ (Damage::Absent { .. } | Damage::Archive { .. }) => format!("{name}: {what}"),
        what => format!("{name}: {}{}: {what}", trouble.at, life(salvage, trouble)),
    })
}

/// Why there is no trace at all.
pub(super) fn why_none(lines: &Lines, salvage: &Salvage) -> Vec<String> {
    let told = all(lines, salvage, |name, trouble| match &trouble.what {
        Damage::Empty => empty(name),
        Damage::Source { why } if trouble.at.line == 1 => format!("{name}: nothing can be read: {why}"),
        Damage::Source { why } => format!("{name}: {}: from here on nothing can be read: {why}", trouble.at),
        Damage::Absent { what } => format!("{name}: {what}"),
        Damage::Archive { why } => format!("{name}: {why}"),
        // There is no next header.
        Damage::NoHeader { why } => format!("{name}: {}: no header of a trace: {why}", trouble.at),
        what => format!("{name}: {}: {what}", trouble.at),
    });
    if told.is_empty() { vec![lines.nothing()] } else { told }
}

/// Which life it is in, if there is more than one.
fn life(salvage: &Salvage, trouble: &Trouble) -> String {
    match trouble.life {
        life @ 1.. if salvage.lives() > 1 => format!(", life {life}"),
        _ => String::new(),
    }
}

fn all(lines: &Lines, salvage: &Salvage, one: impl Fn(&str, &Trouble) -> String) -> Vec<String> {
    let troubles = salvage.troubles();
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
