//! Every command about a trace reads it from a pipe as it does from a file.

use crate::traces::{alone, gzip, names, whole, zstd};
use std::fs;

/// What is said to each command about one trace, with `{}` for that.
const ALL: [&[&str]; 8] = [
    &["replay", "{}"],
    &["replay", "--rebase", "{}"],
    &["check", "{}"],
    &["show", "{}"],
    &["stats", "{}"],
    &["export", "--chrome", "{}"],
    &["shrink", "{}"],
    &["diff", "{}", "whole.jsonl"],
];

fn words<'a>(of: &[&'a str], trace: &'a str) -> Vec<&'a str> {
    let word = |word: &&'a str| if *word == "{}" { trace } else { *word };
    std::iter::once("trace").chain(of.iter().map(word)).collect()
}

#[tokio::test]
async fn a_pipe_gives_what_a_file_gives_whatever_packs_it() {
    let home = alone();
    let text = whole();
    fs::write(home.dir().join("whole.jsonl"), &text).expect("writes");
    for of in ALL {
        let file = home.run(&words(of, "whole.jsonl")).await;
        // No core of ours breaks a rule over what it recorded itself.
        assert_eq!(file.code, Some(i32::from(of[0] == "shrink")), "{file:?}");
        for bytes in [text.clone().into_bytes(), gzip(text.as_bytes()), zstd(text.as_bytes())] {
            let piped = home.run_fed(&words(of, "-"), &bytes).await;
            let out = piped.out.replace("a  -\n", "a  whole.jsonl\n");
            assert_eq!(
                (piped.code, out, piped.err),
                (file.code, file.out.clone(), file.err.clone()),
                "{of:?}"
            );
        }
    }
    for (name, of) in [("a.svg", "whole.jsonl"), ("b.svg", "-")] {
        let said = home.run_fed(&["trace", "render", of, "-o", name], text.as_bytes()).await;
        assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{said:?}");
        assert!(fs::read_to_string(home.dir().join(name)).expect("a picture").contains("</svg>"));
    }
}

#[tokio::test]
async fn a_pipe_with_nothing_in_it_is_told_as_that_and_leaves_no_file() {
    let home = alone();
    fs::write(home.dir().join("whole.jsonl"), whole()).expect("writes");
    let before = names(&home);
    let more: [&[&str]; 3] = [
        &["render", "{}", "-o", "new.svg"],
        &["replay", "--rebase", "{}", "-o", "new.jsonl"],
        &["shrink", "{}", "-o", "new.jsonl.gz"],
    ];
    for of in ALL.iter().chain(&more) {
        for (input, why) in [
            ("", "error: standard input is empty\n"),
            ("\n\n", "error: standard input: there are only blank lines, and no trace\n"),
        ] {
            let said = home.run_fed(&words(of, "-"), input.as_bytes()).await;
            assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (Some(2), "", why), "{of:?}");
        }
        assert_eq!(names(&home), before, "{of:?}");
    }
}

#[tokio::test]
async fn a_pipe_is_no_two_traces() {
    let said = alone().run_fed(&["trace", "diff", "-", "-"], whole().as_bytes()).await;
    assert_eq!((said.code, said.out.as_str()), (Some(2), ""));
    assert!(said.err.starts_with("error: standard input can be read only once"), "{said:?}");
}

/// In a pipeline of tests 1 means that a rule is broken.
#[tokio::test]
async fn a_rule_that_does_not_exist_is_no_broken_one() {
    let home = alone();
    for command in ["check", "shrink"] {
        let said = home.run_fed(&["trace", command, "--rule", "NOPE", "-"], whole().as_bytes()).await;
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{said:?}");
        assert!(said.err.contains("there is no rule of that id"), "{said:?}");
    }
}
