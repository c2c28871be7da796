use super::*;
use crate::trace::test_traces::{from_the_middle, over_lives, recorded, six_tasks, stopped, told};
use longshore_core::story::{At, Life, Origin};
use longshore_core::trace::encode;
use std::fs;
use tempfile::TempDir;

fn shown(asked: &Show) -> (bool, String, String) {
    told(|out, err| show(asked, Path::new("/"), out, err))
}

fn of(file: PathBuf) -> Show {
    Show { file, ..Show::default() }
}

#[test]
fn a_story_says_when_how_long_and_why_things_waited() {
    let (done, out, err) = shown(&of(six_tasks()));
    assert_eq!((done, err.as_str()), (true, ""));
    for line in [
        "life 1: daemon, core 0.1.0, 20 slots, begun 2026-11-30T15:47:37.461Z\n",
        "  0:00:00.125        8  claim brings 6 tasks: 7f8e8760-5d9b-4dd8-8912-56e9cb3a5a8e, \
         bd94896b-19a4-4654-b0c2-4742dc84f8f8, …, after 24 ms\n",
        "  0:00:00.369       72  task 9dc49283-75ea-4be5-8ae3-28a78ba1989d waits 4.2 s to send complete again: server \
         failed with 503\n",
        "  0:00:04.581      143  task 9dc49283-75ea-4be5-8ae3-28a78ba1989d is reported as completed, at try 2\n",
        "task d0b6a08a-2879-4118-9f07-969eca080031: its agent is over after 595 ms: ended as it was told to\n",
        "  0:00:00.860       89  task d0b6a08a-2879-4118-9f07-969eca080031 is over after 735 ms: cancelled\n",
        "  146 steps in 4.5 s; the daemon stopped, as it was asked to\n",
    ] {
        assert!(out.contains(line), "{line}\n{out}");
    }
    assert!(
        !out.contains("waits 0 ms for the last refresh"),
        "what goes on in the same step does not wait: {out}"
    );
}

#[test]
fn lines_are_in_order_and_every_task_is_told_of() {
    let dir = TempDir::new().expect("temp");
    let mut tasks = 0;
    for seed in 1..5 {
        let path = recorded(&dir, seed, 800);
        let (done, out, _) = shown(&of(path.clone()));
        let steps = out.lines().filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
        assert!(done && steps.clone().is_sorted(), "{out}");
        assert!(steps.count() > 100);
        let story = records::read(&path, Path::new("/"), &mut Vec::new()).expect("reads").expect("a trace");
        for task in &story.tasks {
            let came = format!("task {} is ", words::task(task));
            assert!(out.contains(&came), "{came}\n{out}");
        }
        tasks += story.tasks.len();
    }
    assert!(tasks > 10, "{tasks}");
}

#[test]
fn one_task_is_told_with_its_requests_and_without_other_tasks() {
    let id = "9dc49283-75ea-4be5-8ae3-28a78ba1989d";
    let (done, out, _) = shown(&Show { task: Some(id.into()), ..of(six_tasks()) });
    assert!(done);
    assert!(out.contains("request 56: complete (14 ms): server failed with 503\n"), "{out}");
    assert!(out.contains("needs its lease no more, 44.8 s before it ran out\n"), "{out}");
    assert!(!out.contains("d0b6a08a"), "{out}");
    let by_claim = out.lines().count();
    let story =
        records::read(&six_tasks(), Path::new("/"), &mut Vec::new()).expect("reads").expect("a trace");
    let claim = story.tasks.iter().find(|task| words::task(task) == id).expect("is there").claim.0;
    let (_, same, _) = shown(&Show { task: Some(format!("#{claim}")), ..of(six_tasks()) });
    assert_eq!((same.lines().count(), same), (by_claim, out));
}

#[test]
fn one_runtime_is_told_with_its_tasks_and_without_others() {
    let (_, all, _) = shown(&of(stopped()));
    let runtime = "6c02c8f8-ae07-4b68-8f8f-de3f58f73177";
    let (done, out, _) = shown(&Show { runtime: Some(runtime.into()), ..of(stopped()) });
    assert!(done && out.lines().count() < all.lines().count());
    assert!(
        out.contains("runtime 6c02c8f8-ae07-4b68-8f8f-de3f58f73177 (claude, ws-1) is registered\n"),
        "{out}"
    );
    assert!(!out.contains("(codex, ws-1)"), "{out}");
}

#[test]
fn an_unknown_id_is_an_error_that_names_those_that_there_are() {
    let (done, out, err) = shown(&Show { task: Some("nobody".into()), ..of(stopped()) });
    assert_eq!((done, out.as_str()), (false, ""));
    assert!(err.contains("the trace has no task nobody; it has 8fa8dd8e-"), "{err}");
    assert!(err.ends_with(" and 1 more\n"), "{err}");
    let (done, _, err) = shown(&Show { runtime: Some("nobody".into()), ..of(stopped()) });
    assert!(!done && err.contains("the trace has no runtime nobody; it has "), "{err}");
}

#[test]
fn what_was_there_before_the_records_is_said_to_be() {
    let dir = TempDir::new().expect("temp");
    let (mut agents, mut phases) = (0, 0);
    for seed in 1..10 {
        let (done, out, err) = shown(&of(from_the_middle(&dir, seed, 400, 300)));
        assert!(done && err.is_empty(), "{err}");
        let (before, lines): (Vec<&str>, Vec<&str>) = out
            .lines()
            .filter(|line| line.starts_with("  ") && line.contains(':'))
            .partition(|line| line.split_whitespace().nth(1) == Some("–"));
        assert!(!before.is_empty(), "{out}");
        assert!(before.iter().all(|line| !line.contains(" is launched")), "{out}");
        assert!(
            before.iter().filter(|line| line.contains("task ")).all(|line| {
                line.contains(", since before the records begin") || line.contains(" waits at least ")
            }),
            "{out}"
        );
        assert!(lines.iter().all(|line| !line.contains("since before the records begin")), "{out}");
        agents += before.iter().filter(|line| line.contains(": its agent works, since before")).count();
        phases += before.iter().filter(|line| line.contains("(at least ")).count();
    }
    assert!(agents > 2 && phases > 5, "{agents}, {phases}");
}

#[test]
fn what_cannot_be_read_is_said_and_what_is_damaged_is_told_all_the_same() {
    let dir = TempDir::new().expect("temp");
    let (done, _, err) = shown(&of(dir.path().join("none")));
    assert!(!done && err.contains("No such file") && err.contains("Name a trace file"), "{err}");
    let text = fs::read_to_string(six_tasks()).expect("reads");
    let torn = dir.path().join("torn");
    fs::write(&torn, &text[..text.len() - 20]).expect("writes");
    let (done, out, err) = shown(&of(torn));
    assert!(done && out.contains("(claude, demo) is registered"), "{out}");
    assert!(err.contains("broken off after"), "{err}");
    let lines: Vec<&str> = text.lines().collect();
    let broken = dir.path().join("broken");
    fs::write(&broken, [&lines[..60], &["{}"], &lines[60..]].concat().join("\n")).expect("writes");
    let (done, out, err) = shown(&of(broken));
    assert!(done && out.contains("the daemon stopped, as it was asked to"), "{out}");
    assert!(err.contains("line 61 (byte ") && err.contains("it was left out"), "{err}");
}

#[test]
fn a_trace_cannot_steer_the_terminal() {
    let dir = TempDir::new().expect("temp");
    let text = fs::read_to_string(six_tasks()).expect("reads");
    let hostile = r"\u001b[2J\u202ex";
    let path = dir.path().join("hostile");
    fs::write(&path, text.replace("9dc49283-75ea-4be5-8ae3-28a78ba1989d", hostile)).expect("writes");
    let (done, out, _) = shown(&of(path));
    assert!(done && out.contains(r"task \u{1b}[2J\u{202e}x is taken"), "{out}");
    assert!(!out.contains(['\u{1b}', '\u{202e}']), "{out}");
}

#[test]
fn a_trace_without_effects_or_with_a_gap_says_what_is_not_known() {
    let dir = TempDir::new().expect("temp");
    let text = fs::read_to_string(six_tasks()).expect("reads");
    let lines: Vec<&str> = text.lines().collect();
    let gap = r#"{"rec":"gap","n":60,"lost":20}"#;
    let missing = |line: &&&str| (60..80).any(|n| line.contains(&format!("\"n\":{n},")));
    let kept: Vec<&str> = lines.iter().filter(|line| !missing(line)).copied().collect();
    let at = kept.iter().position(|line| line.contains("\"n\":80,")).expect("is there");
    let path = dir.path().join("gap");
    fs::write(&path, [&kept[..at], &[gap], &kept[at..]].concat().join("\n")).expect("writes");
    let (done, out, err) = shown(&of(path));
    assert!(done, "{err}");
    assert!(
        out.contains("— 20 steps are missing from step 60 on; what was there after them is not known —"),
        "{out}"
    );
    assert!(out.contains("(at least "), "{out}");

    let (begun, _) = lines[1].split_once(",\"fx\":").expect("the creation has effects");
    let events: Vec<String> = lines[2..]
        .iter()
        .map(|line| match line.split_once(",\"fx\":") {
            Some((step, _)) => format!("{step}}}"),
            None => (*line).to_owned(),
        })
        .collect();
    let path = dir.path().join("events");
    fs::write(&path, [lines[0], &format!("{begun}}}"), &events.join("\n")].join("\n")).expect("writes");
    let (done, out, err) = shown(&of(path));
    assert!(done, "{err}");
    assert!(out.contains("steps have no effects: what the daemon did in them is not known"), "{out}");
    assert!(out.contains("what the daemon did about it was not recorded"), "{out}");
}

#[test]
fn what_began_in_an_earlier_life_took_at_least_the_time_that_is_seen_of_it() {
    let dir = TempDir::new().expect("temp");
    let path = dir.path().join("lives");
    let (mut agents, mut tasks, mut runs) = (0, 0, 0);
    for seed in 0..48 {
        let mut text = Vec::new();
        for record in over_lives(seed) {
            encode::record(&mut text, &record).expect("encodes");
        }
        fs::write(&path, text).expect("writes");
        let (done, out, err) = shown(&of(path.clone()));
        assert!(done, "seed {seed}: {err}");
        let story = records::read(&path, Path::new("/"), &mut Vec::new()).expect("reads").expect("a trace");
        let line_of = |life: &Life, at: At, what: &str| {
            let (time, what) = (words::clock(life.since_story(at.at)), format!("  {:>7}  {what}", at.n));
            out.lines()
                .find(|line| line.trim_start().starts_with(&time) && line.contains(&what))
                .map(str::to_owned)
        };
        for task in &story.tasks {
            let (life, name) = (&story[task.life], words::task(task));
            for launch in &task.launches {
                let Some(end) = launch.span.end.seen() else { continue };
                let over = line_of(life, end, &format!("task {name}: its agent is over after "));
                let Some(over) = over else { continue };
                let is_part = launch.attached || launch.span.begin.seen().is_none();
                assert_eq!(over.contains(" after at least "), is_part, "seed {seed}: {over}");
                agents += usize::from(launch.attached);
            }
            if let Some(over) = task
                .here
                .end
                .seen()
                .and_then(|end| line_of(life, end, &format!("task {name} is over after ")))
            {
                // Of some the earlier process did not record that it had them.
                let is_rest = task.before.is_some() || matches!(task.origin, Origin::Recovered(_));
                let is_part = is_rest || task.here.begin.seen().is_none();
                assert_eq!(over.contains(" after at least "), is_part, "seed {seed}: {over}");
                tasks += usize::from(task.before.is_some());
            }
            for (nth, phase) in task.phases.iter().enumerate().filter(|(nth, _)| task.goes_on_in(*nth)) {
                let what = format!("task {name}: {} (", words::phase(phase.name));
                let told = line_of(life, phase.span.begin.first(), &what);
                assert!(
                    told.is_none_or(|told| told.contains("(at least ")),
                    "seed {seed}: phase {nth} of {name}\n{out}"
                );
                runs += 1;
            }
        }
    }
    assert!(agents > 5 && tasks > 5 && runs > 5, "{agents}, {tasks}, {runs}");
}
