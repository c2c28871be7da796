//! The page about traces shows what its commands print.
#![cfg(unix)]

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

/// The page's commands with what it says that they print.
fn shown(page: &str) -> Vec<(&str, &str)> {
    let blocks = page.split("```console\n").skip(1).map(|rest| rest.split("\n```").next().expect("an end"));
    blocks
        .map(|block| block.strip_prefix("$ ").and_then(|it| it.split_once('\n')).expect("a command"))
        .collect()
}

#[test]
fn the_page_about_traces_shows_what_its_commands_print() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = std::fs::read_to_string(root.join("docs/traces.md")).expect("the page");
    let bin = tempfile::tempdir().expect("a directory");
    symlink(env!("CARGO_BIN_EXE_longshore-under-test"), bin.path().join("longshore")).expect("a link");
    let shown = shown(&page);
    assert!(shown.len() >= 4, "{}", shown.len());
    for (command, output) in shown {
        let ran = Command::new("/bin/sh")
            .args(["-c", &format!("{command} 2>&1")])
            .current_dir(root.join("tests/traces"))
            .env_clear()
            .env("PATH", bin.path())
            .env("HOME", bin.path())
            .output()
            .expect("it ran");
        let printed = String::from_utf8(ran.stdout).expect("text");
        assert_eq!(printed.trim_end(), output, "$ {command}");
    }
}
