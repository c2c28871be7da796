use super::*;
use crate::trace::test_traces::{six_tasks, stopped, told};
use serde_json::Value;

fn compared(a: PathBuf, b: PathBuf, json: bool) -> (bool, String, String) {
    told(|out, err| diff(&Diff { a, b, json }, Path::new("/"), out, err))
}

#[test]
fn a_trace_does_not_differ_from_itself() {
    let (done, out, err) = compared(six_tasks(), six_tasks(), false);
    assert_eq!((done, err.as_str()), (true, ""));
    let (differ, all) = out.lines().last().expect("it says so").split_once(" of ").expect("two numbers");
    assert_eq!(differ, "0");
    assert!(all.ends_with(" numbers differ") && !all.starts_with('0'), "{all}");
}

#[test]
fn standard_input_is_no_two_traces() {
    let (done, out, err) = compared("-".into(), "-".into(), false);
    assert_eq!((done, out.as_str()), (false, ""));
    assert!(err.starts_with("error: standard input can be read only once: save what"), "{err}");
}

#[test]
fn two_traces_are_laid_side_by_side() {
    let (done, out, _) = compared(six_tasks(), stopped(), false);
    assert!(done);
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let lines: Vec<String> = out.lines().map(words).collect();
    for line in
        ["steps 146 37 -109", "tasks 6 9 +3", "recorded 4.5 s 58.8 s +54.2 s", "outcome cancelled 1 0 -1"]
    {
        assert!(lines.iter().any(|known| known == line), "{line}\n{out}");
    }
    assert!(!lines.iter().any(|line| line.starts_with("lives ")), "what is the same is left out: {out}");
}

#[test]
fn the_difference_is_the_second_less_the_first_and_turns_around() {
    let rows = |a, b| -> Vec<Value> {
        let (done, out, _) = compared(a, b, true);
        assert!(done);
        serde_json::from_str(&out).expect("JSON")
    };
    let (there, back) = (rows(six_tasks(), stopped()), rows(stopped(), six_tasks()));
    assert_eq!(there.len(), back.len());
    for (there, back) in there.iter().zip(&back) {
        assert_eq!((&there["name"], &there["a"], &there["b"]), (&back["name"], &back["b"], &back["a"]));
        match (there["a"].as_i64(), there["b"].as_i64()) {
            (Some(a), Some(b)) => assert_eq!(there["difference"], b - a, "{there}"),
            _ => assert!(there["difference"].is_null() && there["unit"] == "ms", "{there}"),
        }
    }
}

#[test]
fn both_must_be_there() {
    for (a, b) in [("/nowhere/a".into(), six_tasks()), (six_tasks(), "/nowhere/b".into())] {
        let (done, out, err) = compared(a, b, false);
        assert_eq!((done, out.as_str()), (false, ""));
        assert!(err.starts_with("error: /nowhere/"), "{err}");
    }
}
