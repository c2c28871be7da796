//! `docs/reliability.md`: its tables are what the tests saw. With `LONGSHORE_BLESS=1` they are written anew; otherwise a difference is
//! a failure.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

const BLESS: &str = "LONGSHORE_BLESS";

/// Several tests have a table in the one file.
static WRITING: Mutex<()> = Mutex::new(());

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a workspace").join("docs/reliability.md")
}

/// Holds the table of this name to what was seen.
pub(crate) fn hold(name: &str, seen: &str) {
    let _one = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    let path = path();
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let (before, written, after) =
        parts(&text, name).unwrap_or_else(|| panic!("{} has no place for the table {name}", path.display()));
    if std::env::var_os(BLESS).is_some() {
        fs::write(&path, format!("{before}\n{seen}{after}")).expect("written");
        return;
    }
    assert!(
        written.trim() == seen.trim(),
        "{} says of {name}:\n{written}\nand this was seen:\n{seen}\nIf that is right, run the test again with {BLESS}=1.",
        path.display()
    );
}

/// The text up to a table, the table, and the rest.
fn parts<'a>(text: &'a str, name: &str) -> Option<(&'a str, &'a str, &'a str)> {
    let mark = format!("<!-- seen: {name} -->\n");
    let from = text.find(&mark)? + mark.len();
    let to = from + text[from..].find("<!-- end -->")?;
    Some((&text[..from], &text[from..to], &text[to..]))
}

/// A table with a head.
pub(crate) fn table(head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let head: Vec<_> = head.iter().map(|&cell| cell.to_owned()).collect();
    let mut text = line(&head);
    text.push_str(&"|---".repeat(head.len()));
    text.push_str("|\n");
    for row in rows {
        text.push_str(&line(&row));
    }
    text.push('\n');
    text
}

#[test]
fn a_table_is_found_between_its_marks_and_no_other() {
    let text = "a\n<!-- seen: x -->\n\n| 1 |\n\n<!-- end -->\nb\n<!-- seen: y -->\n| 2 |\n<!-- end -->\n";
    let (before, written, after) = parts(text, "y").expect("it is there");
    assert_eq!((written, after), ("| 2 |\n", "<!-- end -->\n"));
    assert!(before.ends_with("y -->\n"));
    assert_eq!(parts(text, "x").expect("it is there").1.trim(), "| 1 |");
    assert!(parts(text, "z").is_none());
}
