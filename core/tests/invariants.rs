//! The catalogue of invariants against reality: each rule is in the observers and has a change that it notices, each test exists, and
//! `docs/invariants.md` is what the catalogue says. With `LONGSHORE_BLESS=1` the document is written anew.

#![expect(clippy::disallowed_methods, reason = "a test of files; the core itself reads none")]

use longshore_core::observe::catalog;
use longshore_core::observe::catalog::{Check, Entry, incidents};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the core has a parent").to_owned()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The texts of the Rust files of a directory and what is below it, but for one.
fn sources(dir: &Path, except: &str) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display())) {
        let path = entry.expect("it can be listed").path();
        if path.is_dir() {
            if !path.ends_with(except) {
                text.push_str(&sources(&path, except));
            }
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            text.push_str(&read(&path));
        }
    }
    text
}

/// Everything that looks like the id of a rule and stands in quotes.
fn quoted_ids(text: &str) -> BTreeSet<String> {
    let is_id = |word: &&str| {
        let made_of = |part: &str, ok: fn(char) -> bool| !part.is_empty() && part.chars().all(ok);
        let capital = |part: &str| made_of(part, |c| c.is_ascii_uppercase());
        let part = |part: &str| capital(part) || made_of(part, |c| c.is_ascii_digit());
        let (head, tail) = word.split_once('-').unwrap_or((word, ""));
        let numbered =
            word.strip_prefix("INV-").or(word.strip_prefix('I')).is_some_and(|n| n.parse::<u16>().is_ok());
        numbered || (head.len() > 1 && capital(head) && (tail.is_empty() || tail.split('-').all(part)))
    };
    text.split('"').filter(is_id).map(str::to_owned).collect()
}

fn entries() -> impl Iterator<Item = &'static Entry> {
    catalog().iter().flat_map(|family| family.entries)
}

fn rules() -> BTreeSet<&'static str> {
    entries().filter(|entry| entry.checks.contains(&Check::Rule)).map(|entry| entry.id).collect()
}

fn all_checks() -> impl Iterator<Item = (&'static str, &'static Check)> {
    let of_entries = entries().flat_map(|entry| entry.checks.iter().map(|check| (entry.id, check)));
    of_entries
        .chain(incidents().flat_map(|incident| incident.checks.iter().map(|check| (incident.id, check))))
}

#[test]
fn every_invariant_is_there_once_and_is_checked_somehow() {
    let mut ids = BTreeMap::new();
    for entry in entries() {
        *ids.entry(entry.id.to_owned()).or_insert(0) += 1;
        assert!(
            !entry.checks.is_empty() && !entry.says.is_empty() && !entry.origin.is_empty(),
            "{}",
            entry.id
        );
    }
    let twice: Vec<_> = ids.iter().filter(|(_, count)| **count > 1).collect();
    assert!(twice.is_empty(), "{twice:?}");
    let wanted = (1..=147).map(|n| format!("INV-{n:02}")).chain((1..=26).map(|n| format!("I{n}")));
    let missing: Vec<_> = wanted.filter(|id| !ids.contains_key(id)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let told: Vec<String> = incidents().map(|incident| incident.id.to_owned()).collect();
    assert_eq!(told, (1..=59).map(|n| format!("R-{n:02}")).collect::<Vec<_>>());
    assert!(incidents().all(|incident| !incident.checks.is_empty()));
}

#[test]
fn the_rules_of_the_catalogue_are_those_of_the_observers() {
    let used = quoted_ids(&sources(&root().join("core/src/observe"), "catalog"));
    assert!(used.len() > 60, "the sources are read");
    let known: BTreeSet<&str> = entries().map(|entry| entry.id).collect();
    let unknown: Vec<_> = used.iter().filter(|id| !known.contains(id.as_str())).collect();
    assert!(unknown.is_empty(), "rules that the catalogue does not have: {unknown:?}");
    let absent: Vec<_> = rules().into_iter().filter(|id| !used.contains(*id)).collect();
    assert!(absent.is_empty(), "rules that nobody checks: {absent:?}");
    let unnamed: Vec<_> = used.iter().filter(|id| !rules().contains(id.as_str())).collect();
    assert!(unnamed.is_empty(), "rules that are checked and not called so: {unnamed:?}");
    let truths = quoted_ids(&sources(&root().join("core/src/sim"), ""));
    let unknown: Vec<_> = truths.iter().filter(|id| !known.contains(id.as_str())).collect();
    assert!(truths.len() > 5 && unknown.is_empty(), "truths that the catalogue does not have: {unknown:?}");
    for (id, check) in all_checks() {
        if let Check::By(rule) = check {
            assert!(rules().contains(rule) || is_covered(rule), "{id} is said to be checked by {rule}");
        }
    }
}

/// Whether this is an entry that is checked in its turn.
fn is_covered(id: &str) -> bool {
    entries()
        .any(|entry| entry.id == id && !entry.checks.iter().all(|check| matches!(check, Check::Later(_))))
}

#[test]
fn every_rule_has_a_history_that_it_notices() {
    let used = quoted_ids(&sources(&root().join("core/src/observe"), "catalog"));
    let changed = quoted_ids(&sources(&root().join("core/tests/rules"), ""));
    let blind: Vec<_> = used.difference(&changed).collect();
    assert!(blind.is_empty(), "rules without a change that they notice: {blind:?}");
    let idle: Vec<_> = changed.difference(&used).collect();
    assert!(idle.is_empty(), "changes for rules that nobody checks: {idle:?}");
}

#[test]
fn every_test_that_is_named_exists() {
    let mut texts: BTreeMap<&str, String> = BTreeMap::new();
    let mut missing = Vec::new();
    for (id, check) in all_checks() {
        if let Check::Test(path, name) = check {
            let text = texts
                .entry(path)
                .or_insert_with(|| fs::read_to_string(root().join(path)).unwrap_or_default());
            if !text.contains(&format!("fn {name}()")) {
                missing.push(format!("{id}: {path} {name}"));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

fn checked(checks: &[Check]) -> String {
    let one = |check: &Check| match check {
        Check::Rule => "**rule**".to_owned(),
        Check::By(rule) => format!("rule {rule}"),
        Check::Test(path, name) => format!("[`{name}`](../{path})"),
        Check::Type(why) => format!("by construction: {why}"),
        Check::Later(why) => format!("*not yet*: {why}"),
    };
    checks.iter().map(one).collect::<Vec<_>>().join("<br>")
}

const HEAD: &str = "# Invariants

Everything that must hold, and what holds the code to it. Made from `core/src/observe/catalog/` by
`LONGSHORE_BLESS=1 cargo test -p longshore-core --all-features --test invariants`; a test fails where this file, the catalogue and the code differ.

A **rule** is checked at every step of every generated history, of every scenario and of the simulator (`core/src/observe/`, by its id in
quotes), and there is a history with one change that it notices (`core/tests/rules/`). `rule X` is one that says at
least as much under another id.
Ids are stable and never used again. **test** names what shows it where the core cannot see it;
**type** a type that makes the opposite impossible to write; **not yet** a part that does not exist. The simulator compares the server's rows
with the truth of its own world; what it finds has the ids of the last family. *Seed* is one of the contracts that came first, *MUL-…* and *#…* are
numbers of public reports, *observed* is what today's daemons do.
";

fn document() -> String {
    let mut text = HEAD.to_owned();
    let put = |text: &mut String, line: &str| writeln!(text, "{line}").expect("a String takes everything");
    for family in catalog() {
        put(
            &mut text,
            &format!("\n## {}\n\n| id | what holds | from | checked |\n|---|---|---|---|", family.name),
        );
        for Entry { id, says, origin, checks, overruled } in family.entries {
            let says =
                overruled.map_or_else(|| (*says).to_owned(), |but| format!("{says}<br>*Overruled:* {but}"));
            put(&mut text, &format!("| {id} | {says} | {origin} | {} |", checked(checks)));
        }
    }
    put(
        &mut text,
        "\n## Incidents\n\nWhat went wrong in daemons of this kind, by public report, and what keeps it from going wrong here.\n",
    );
    put(&mut text, "| id | report | what went wrong | kept from it by |\n|---|---|---|---|");
    for incident in incidents() {
        let checks = checked(incident.checks);
        put(&mut text, &format!("| {} | {} | {} | {checks} |", incident.id, incident.report, incident.what));
    }
    text
}

#[test]
fn the_document_is_what_the_catalogue_says() {
    let path = root().join("docs/invariants.md");
    let text = document();
    let bless = std::env::var_os("LONGSHORE_BLESS").is_some();
    if bless {
        fs::write(&path, &text).expect("the document can be written");
    }
    let same = fs::read_to_string(&path).is_ok_and(|there| there == text);
    assert!(same, "docs/invariants.md differs; LONGSHORE_BLESS=1 writes it anew");
}
