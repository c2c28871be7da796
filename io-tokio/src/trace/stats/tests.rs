use super::*;
use crate::trace::figures::Spread;
use crate::trace::test_traces::{recorded, six_tasks, told};
use serde_json::Value;
use tempfile::TempDir;

fn counted(file: PathBuf, json: bool) -> (bool, String, String) {
    told(|out, err| stats(&Stats { file, json }, Path::new("/"), out, err))
}

#[test]
fn percentiles_are_values_that_occur() {
    let spread = Spread::of((1..=10).rev().collect());
    assert_eq!((spread.count, spread.p50, spread.p90), (10, Some(5), Some(9)));
    assert_eq!((spread.p99, spread.max), (Some(10), Some(10)));
    let one = Spread::of(vec![7]);
    assert_eq!([one.p50, one.p90, one.p99, one.max], [Some(7); 4]);
    assert_eq!(Spread::of(Vec::new()), Spread::default());
    let many = Spread::of((1..=1000).collect());
    assert_eq!((many.p50, many.p90, many.p99, many.max), (Some(500), Some(900), Some(990), Some(1000)));
}

#[test]
fn the_table_has_what_the_run_came_to() {
    let (done, out, err) = counted(six_tasks(), false);
    assert_eq!((done, err.as_str()), (true, ""));
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let lines: Vec<String> = out.lines().map(words).collect();
    for line in [
        "lives 1, steps 146 in 4.5 s",
        "runtimes 1, tasks 6",
        "completed 4",
        "cancelled 1",
        "failed (agent_error.unknown) 1",
        "preparing 6 86 ms 146 ms 146 ms 146 ms",
        "retry 1 4.2 s 4.2 s 4.2 s 4.2 s",
        "complete 5 4 8 ms 14 ms 14 ms 1 server failed with 503",
        "run 6 4 73 ms 2.6 s 2.6 s 1 ended as it was told to, 1 failed:",
        "status 13 12 6 ms 17 ms 17 ms 1 cancelled",
    ] {
        assert!(lines.iter().any(|known| known == line), "{line}\n{out}");
    }
    assert!(out.lines().all(|line| line.chars().count() <= usize::from(WIDTH) + 40), "{out}");
}

#[test]
fn the_object_has_the_same_numbers_and_they_add_up() {
    let dir = TempDir::new().expect("temp");
    let mut tasks = 0;
    for path in (1..5).map(|seed| recorded(&dir, seed, 1500)).chain([six_tasks()]) {
        let (done, out, _) = counted(path, true);
        let json: Value = serde_json::from_str(&out).expect("JSON");
        let number = |value: &Value| value.as_u64().expect("a number");
        let sum = |list: &Value| {
            list.as_array().expect("a list").iter().map(|of| number(&of["count"])).sum::<u64>()
        };
        assert!(done);
        assert_eq!(sum(&json["outcomes"]), number(&json["tasks"]), "each task has one outcome");
        for kind in json["requests"].as_array().expect("a list") {
            let ends = number(&kind["done"]) + sum(&kind["failed"]) + number(&kind["no_end"]);
            assert_eq!(ends, number(&kind["count"]), "each request ends once: {kind}");
        }
        let claims = &json["claims"];
        let known = ["brought", "empty", "failed"].map(|name| number(&claims[name])).iter().sum::<u64>();
        assert!(known <= number(&claims["sent"]) && number(&claims["brought"]) <= number(&claims["tasks"]));
        tasks += number(&json["tasks"]);
    }
    assert!(tasks > 20, "{tasks}");
}

#[test]
fn what_cannot_be_read_has_no_numbers() {
    let (done, out, err) = counted("/nowhere/at/all".into(), false);
    assert_eq!((done, out.as_str()), (false, ""));
    assert!(err.starts_with("error: /nowhere/at/all: "), "{err}");
}
