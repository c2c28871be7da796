//! The pages about traces show what their commands print.
#![cfg(unix)]

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// The commands of a page with what it says that they print. A block may have several; `> ` goes on with one.
fn shown(page: &str) -> Vec<(String, &str)> {
    let blocks = page.split("```console\n").skip(1).map(|rest| rest.split("\n```").next().expect("an end"));
    blocks
        .flat_map(|block| block.strip_prefix("$ ").expect("a command").split("\n$ "))
        .map(|one| {
            // A command may print nothing.
            let (first, mut rest) = one.split_once('\n').unwrap_or((one, ""));
            let mut command = first.to_owned();
            while let Some((more, after)) = rest.strip_prefix("> ").and_then(|it| it.split_once('\n')) {
                command += more;
                rest = after;
            }
            (command, rest)
        })
        .collect()
}

/// Whether that was printed; `…` stands for anything.
fn fits(shown: &str, printed: &str) -> bool {
    let Some((head, tail)) = shown.split_once('…') else { return shown == printed };
    printed.strip_prefix(head).is_some_and(|rest| {
        rest.char_indices().map(|(at, _)| at).chain([rest.len()]).any(|at| fits(tail, &rest[at..]))
    })
}

#[test]
fn dots_stand_for_anything_and_nothing_else_does() {
    for (shown, printed) in [("a", "a"), ("a…", "ab\nc"), ("a…c", "abc"), ("a…c", "acbc"), ("…\nb", "a\nb")]
    {
        assert!(fits(shown, printed), "{shown} {printed}");
    }
    for (shown, printed) in [("a", "ab"), ("a…c", "ab"), ("a…c", "acb"), ("b…", "ab"), ("", "a")] {
        assert!(!fits(shown, printed), "{shown} {printed}");
    }
}

/// Runs the commands of a page beside the traces that they are about.
fn walk(page: &str, at_least: usize) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let text = std::fs::read_to_string(root.join(page)).expect("the page");
    let (bin, here) = (TempDir::new().expect("a directory"), TempDir::new().expect("a directory"));
    symlink(env!("CARGO_BIN_EXE_longshore-under-test"), bin.path().join("longshore")).expect("a link");
    for (name, is) in [
        ("broken", "tests/traces/broken"),
        ("compat", "tests/traces/compat"),
        ("demo", "tests/traces/demo"),
        ("tests", "tests"),
        ("daemon.log", "tests/fixtures/daemon.log"),
    ] {
        symlink(root.join(is), here.path().join(name)).expect("a link");
    }
    let shown = shown(&text);
    assert!(shown.len() >= at_least, "{page} has {} commands", shown.len());
    for (command, output) in shown {
        let ran = Command::new("/bin/sh")
            .args(["-c", &format!("{command} 2>&1")])
            .current_dir(here.path())
            .env_clear()
            .env("PATH", format!("{}:/usr/bin:/bin", bin.path().display()))
            .env("HOME", bin.path())
            .output()
            .expect("it ran");
        let printed = String::from_utf8(ran.stdout).expect("text");
        let printed = printed.trim_end();
        assert!(fits(output, printed), "{page} has\n$ {command}\n{output}\n\nand it prints\n{printed}");
    }
}

#[test]
fn the_walk_from_an_incident_to_a_test_shows_what_its_commands_print() {
    walk("docs/traces.md", 4);
}

#[test]
fn the_page_about_checks_shows_what_its_commands_print() {
    walk("docs/traces/check.md", 8);
}

#[test]
fn the_page_about_stories_shows_what_its_commands_print() {
    walk("docs/traces/story.md", 4);
}
