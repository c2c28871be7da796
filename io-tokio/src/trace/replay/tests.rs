use super::*;
use crate::trace_sink::segments;
use crate::trace_sink::tests::life::Life;
use crate::trace_sink::tests::{header, record};
use crate::trace_sink::{MIN_BUDGET, SegmentName, Sink};
use std::fs;
use tempfile::TempDir;

fn run(path: &Path, mode: Mode) -> (Verdict, String, String) {
    let events_only = mode == Mode::EventsOnly;
    ask(&Replay { file: path.to_owned(), events_only, ..Replay::default() })
}

fn ask(asked: &Replay) -> (Verdict, String, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let verdict = replay(asked, Path::new("/"), &mut out, &mut err).expect("writes to memory");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (verdict, text(out), text(err))
}

fn recorded(dir: &TempDir, steps: usize) -> PathBuf {
    let path = dir.path().join("run.jsonl");
    let mut life = Life::new(3);
    let mut sink = Sink::file(&path, header(&life), life.fx.as_slice()).expect("starts");
    record(&mut sink, &mut life, steps);
    sink.close("stopped", &life.daemon);
    path
}

#[test]
fn a_good_trace_ends_with_0_and_says_what_was_compared() {
    let dir = TempDir::new().expect("temp");
    let path = recorded(&dir, 300);
    let (verdict, out, err) = run(&path, Mode::Strict);
    assert_eq!((verdict, verdict.code(), err.as_str()), (Verdict::Same, 0, ""));
    for line in [
        "steps       301: 301 compared, 0 not replayed for want of a checkpoint\n",
        "digests     10 compared\n",
        "ended       stopped\n",
        "result      the core does what was recorded\n",
    ] {
        assert!(out.contains(line), "{out}");
    }
}

#[test]
fn what_is_lost_by_damage_qualifies_the_result() {
    let dir = TempDir::new().expect("temp");
    let path = recorded(&dir, 300);
    let text = fs::read_to_string(&path).expect("reads");
    let spoilt: Vec<_> =
        text.lines().enumerate().map(|(n, line)| if n > 60 { &line[1..] } else { line }).collect();
    fs::write(&path, spoilt.join("\n") + "\n").expect("writes");
    let (verdict, out, _) = run(&path, Mode::Strict);
    assert_eq!(verdict, Verdict::Same);
    assert!(out.contains("\nended       not known: what says so may be in what cannot be read\n"), "{out}");
    assert!(
        out.ends_with("the core does what was recorded, as far as the trace allows to compare\n"),
        "{out}"
    );
    // A killed daemon leaves a line without its end: nothing that was to be compared is lost.
    let (killed, _) = text.split_at(text.len() / 2);
    fs::write(&path, killed).expect("writes");
    let (_, out, _) = run(&path, Mode::Strict);
    assert!(out.contains("\nended       without a word"), "{out}");
    assert!(out.ends_with("the core does what was recorded\n"), "{out}");
}

#[test]
fn a_divergence_ends_with_1_and_shows_the_step() {
    let dir = TempDir::new().expect("temp");
    let path = recorded(&dir, 300);
    let text = fs::read_to_string(&path).expect("reads");
    let changed = text.replacen(r#""fact":"ready""#, r#""fact":"unauthorized""#, 1);
    assert_ne!(text, changed);
    fs::write(&path, changed).expect("writes");
    let (verdict, out, err) = run(&path, Mode::Strict);
    assert_eq!((verdict, verdict.code()), (Verdict::Differs, 1));
    assert!(out.ends_with("result      the core does something else than was recorded\n"), "{out}");
    assert!(out.contains("\nstopped     at step "), "{out}");
    assert!(err.contains(r#"fact.fact: "unauthorized" was recorded, "ready" was produced"#), "{err}");
    assert!(err.contains("the last steps of the replay:"), "{err}");
    assert_eq!(run(&path, Mode::EventsOnly).0, Verdict::Same);
}

#[test]
fn what_cannot_be_read_ends_with_2_and_says_why() {
    let dir = TempDir::new().expect("temp");
    let bad = |path: &Path| {
        let (verdict, _, err) = run(path, Mode::Strict);
        assert_eq!((verdict, verdict.code()), (Verdict::Unreadable, 2));
        err
    };
    assert!(bad(&dir.path().join("none")).contains("No such file"));
    assert!(bad(dir.path()).contains("no segment of a flight recorder"));
    let path = dir.path().join("empty");
    fs::write(&path, "").expect("writes");
    assert!(bad(&path).contains("empty: the file is empty"));
    fs::write(&path, "{\"rec\":\"step\"}\n").expect("writes");
    assert!(bad(&path).contains("line 1 (byte 0): no header of a trace: "));
}

#[test]
fn a_directory_is_replayed_in_order_with_its_newest_segment_still_empty() {
    let dir = TempDir::new().expect("temp");
    let mut life = Life::new(5);
    let first = life.fx.as_slice();
    let mut sink = Sink::flight(dir.path(), MIN_BUDGET, header(&life), first).expect("starts");
    record(&mut sink, &mut life, 3000);
    drop(sink);
    let count = segments(dir.path()).expect("lists").len();
    assert!(count > 1);
    let newest = segments(dir.path()).expect("lists").pop().expect("a segment");
    let name =
        newest.file_name().and_then(|name| name.to_str()).and_then(SegmentName::parse).expect("a name");
    let next = format!("flight-{:010}.jsonl", name.number + 1);
    fs::write(dir.path().join(&next), "").expect("writes");
    fs::write(dir.path().join("other.txt"), "not a segment").expect("writes");
    let (verdict, out, err) = run(dir.path(), Mode::Strict);
    assert_eq!(verdict, Verdict::Same, "{out}{err}");
    assert!(out.contains(&format!("segments    {count}, ")), "{out}");
    assert!(out.contains("without a word"), "{out}");
    assert!(err.contains(&format!("{next}: the file is empty; it was left out")), "{err}");

    let only = segments(dir.path()).expect("lists").swap_remove(1);
    let (verdict, out, _) = run(&only, Mode::Strict);
    assert_eq!(verdict, Verdict::Same);
    assert!(out.contains("began       at the checkpoint after step "), "{out}");
}

#[test]
fn a_trace_of_which_nothing_can_be_replayed_is_no_success() {
    let dir = TempDir::new().expect("temp");
    let mut life = Life::new(5);
    let first = life.fx.as_slice();
    let mut sink = Sink::flight(dir.path(), MIN_BUDGET, header(&life), first).expect("starts");
    record(&mut sink, &mut life, 3000);
    sink.close("stopped", &life.daemon);
    let path = segments(dir.path()).expect("lists").swap_remove(1);
    let text = fs::read_to_string(&path).expect("reads");
    let kept = text.lines().filter(|line| !line.starts_with(r#"{"rec":"checkpoint""#));
    fs::write(&path, kept.collect::<Vec<_>>().join("\n")).expect("writes");
    let (verdict, out, _) = run(&path, Mode::Strict);
    assert_eq!(verdict, Verdict::Unreadable);
    assert!(out.contains("nothing could be replayed"), "{out}");
}

#[test]
fn a_trace_without_a_step_is_said_to_have_none() {
    let dir = TempDir::new().expect("temp");
    let middle = crate::trace::test_traces::from_the_middle(&dir, 5, 140, 20);
    let text = fs::read_to_string(&middle).expect("reads");
    let lines = |count| text.split_inclusive('\n').take(count).collect::<String>();
    let path = dir.path().join("begun");
    let header = crate::trace::input::tests::recorded(5, 1).lines().take(1).collect::<String>();
    for (trace, began, why) in [
        (lines(2), true, "there is no step behind the checkpoint"),
        (lines(1), false, "there is no step behind the header"),
        (header, false, "there is no step behind the header"),
    ] {
        fs::write(&path, trace).expect("writes");
        let (verdict, out, _) = run(&path, Mode::Strict);
        assert_eq!(verdict, Verdict::Unreadable, "{out}");
        assert_eq!(out.contains("began       at the checkpoint after step 140\n"), began, "{out}");
        assert!(out.ends_with(&format!("result      nothing could be replayed: {why}\n")), "{out}");
        let (verdict, out, _) = ask(&Replay { file: path.clone(), rebase: true, ..Replay::default() });
        assert_eq!(verdict, Verdict::Unreadable, "{out}");
        assert!(out.ends_with(&format!("result      nothing could be replayed: {why}\n")), "{out}");
    }
}

#[test]
fn only_what_is_lost_behind_the_last_record_leaves_the_end_unknown() {
    let dir = TempDir::new().expect("temp");
    let path = dir.path().join("lives");
    let life = |seed| crate::trace::input::tests::recorded(seed, 60);
    let ended = |trace: &str| {
        fs::write(&path, trace).expect("writes");
        let (_, out, err) = run(&path, Mode::EventsOnly);
        (out.lines().find(|line| line.starts_with("ended ")).expect("it is said").to_owned(), err)
    };
    let killed = |text: &str| {
        let is_end = |line: &&str| line.contains("\"rec\":\"end\"");
        text.split_inclusive('\n').filter(|line| !is_end(line)).collect::<String>()
    };
    let (one, two) = (killed(&life(6)), killed(&life(7)));
    let spoilt = |text: &str, n: u64| text.replacen(&format!("\"n\":{n},"), "\"n\":x,", 1);
    for trace in [one.clone() + &two, spoilt(&one, 30) + &two, one.clone() + &spoilt(&two, 30)] {
        let (said, err) = ended(&trace);
        assert!(said.contains("without a word"), "{said}: {err}");
    }
    let last = format!("{one}{two}{}\n", r#"{"rec":"en?","n":60,"why":"clean"}"#);
    let (said, err) = ended(&last);
    assert!(said.contains("not known: what says so may be"), "{said}: {err}");
}

#[test]
fn it_stops_after_the_step_that_is_named_and_shows_the_last_ones() {
    let dir = TempDir::new().expect("temp");
    let file = recorded(&dir, 300);
    let (verdict, out, _) =
        ask(&Replay { file: file.clone(), until: "120".parse().ok(), ..Replay::default() });
    assert_eq!(verdict, Verdict::Same, "{out}");
    assert!(out.contains("steps       121: 121 compared"), "{out}");
    assert!(out.contains("stopped     after step 120, as was asked; the last steps:"), "{out}");
    assert!(out.contains("\n      120 ") && !out.contains("\n      100 "), "20 of them: {out}");
    let (_, out, _) = ask(&Replay { file, until: "1000".parse().ok(), ..Replay::default() });
    assert!(out.contains("stopped     never: the trace has no step 1000\n"), "{out}");
}

#[test]
fn the_life_of_a_step_is_named_where_there_is_more_than_one() {
    let dir = TempDir::new().expect("temp");
    let path = recorded(&dir, 100);
    let one = fs::read_to_string(&path).expect("reads");
    let (head, rest) = one.split_once("\"seed\":\"").expect("a seed");
    // The same steps in a life of another seed: the first digest differs, or an effect does.
    let two = format!("{one}{head}\"seed\":\"{:016x}{}", 99, &rest[16..]);
    fs::write(&path, two.replacen("\"n\":80,", "\"n\":x,", 1)).expect("writes");
    let (verdict, _, err) = run(&path, Mode::Strict);
    assert_eq!(verdict, Verdict::Differs);
    let step = err.lines().find(|line| line.starts_with("error: ")).expect("it is said");
    assert!(step.contains(" of life 2 (line "), "{step}");
    assert!(err.contains("), life 1: no record of a trace: "), "{err}");
    let (_, out, _) =
        ask(&Replay { file: path, until: "200".parse().ok(), events_only: true, ..Replay::default() });
    assert!(out.contains("stopped     never: the trace has no step 200 in any life\n"), "{out}");
}

#[test]
fn it_stops_at_the_step_of_the_life_that_is_named() {
    let dir = TempDir::new().expect("temp");
    let file = dir.path().join("two.jsonl");
    let life = |seed| crate::trace::input::tests::recorded(seed, 60);
    fs::write(&file, life(6) + &life(7)).expect("writes");
    let until =
        |step: &str| ask(&Replay { file: file.clone(), until: step.parse().ok(), ..Replay::default() }).1;
    assert!(until("2/40").contains("stopped     after step 40 of life 2, as was asked"), "{}", until("2/40"));
    assert!(until("40").contains("stopped     after step 40, as was asked"), "{}", until("40"));
    assert!(until("3/40").contains("never: the trace has no step 40 of life 3\n"), "{}", until("3/40"));
    let new = dir.path().join("new.jsonl");
    let asked = Replay { file: file.clone(), until: "2/5".parse().ok(), rebase: true, ..Replay::default() };
    let (verdict, out, err) = ask(&Replay { out: Some(new), ..asked });
    assert_eq!((verdict, err.as_str()), (Verdict::Same, ""));
    assert!(out.contains("steps       67: 67 with the effects that were recorded"), "{out}");
}

#[test]
fn digests_that_cannot_be_compared_are_not_counted_as_compared() {
    let dir = TempDir::new().expect("temp");
    let path = recorded(&dir, 300);
    let text = fs::read_to_string(&path).expect("reads");
    fs::write(&path, text.replacen("\"n\":150,", "\"n\":x,", 1)).expect("writes");
    let (_, out, _) = run(&path, Mode::Strict);
    assert!(out.contains("digests     8 compared, 2 not for want of a checkpoint\n"), "{out}");
}

#[test]
fn damage_is_said_and_what_is_left_is_compared() {
    let dir = TempDir::new().expect("temp");
    let path = recorded(&dir, 300);
    let text = fs::read_to_string(&path).expect("reads");
    let broken = text.replacen("\"n\":150,", "\"n\":15\u{fffd}0,", 1);
    fs::write(&path, &broken[..broken.len() - 20]).expect("writes");
    let (verdict, out, err) = run(&path, Mode::Strict);
    assert_eq!(verdict, Verdict::Same, "{out}{err}");
    assert!(
        out.contains("steps       300: 150 compared, 150 not replayed for want of a checkpoint"),
        "{out}"
    );
    assert!(out.contains("gaps        1, with 1 step; went on at a checkpoint 0 times"), "{out}");
    assert!(out.contains("as far as the trace allows to compare"), "{out}");
    assert!(err.contains("step 150 is missing; that is taken as a gap"), "{err}");
    assert!(err.contains("broken off after "), "{err}");
}

#[test]
fn a_rebased_trace_is_one_of_this_core_and_never_replaces_a_file() {
    let dir = TempDir::new().expect("temp");
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/traces/compat/1.1.jsonl");
    assert_eq!(run(&kept, Mode::Strict).0, Verdict::Differs);
    let new = dir.path().join("new.jsonl");
    let asked = Replay { file: kept, rebase: true, out: Some(new.clone()), ..Replay::default() };
    let (verdict, out, err) = ask(&asked);
    assert_eq!((verdict, err.as_str()), (Verdict::Same, ""), "{out}");
    assert!(out.contains("put in      5 answers to what traces of that format do not tell\n"), "{out}");
    assert!(out.contains("first       step 0 (line 2): 2 effects were recorded and 3 produced"), "{out}");
    let (verdict, out, _) = run(&new, Mode::Strict);
    assert_eq!(verdict, Verdict::Same);
    assert!(out.ends_with("result      the core does what was recorded\n"), "{out}");
    let (verdict, _, err) = ask(&asked);
    assert_eq!(verdict, Verdict::Unreadable);
    assert!(err.contains("exists already: name a file that does not"), "{err}");
}

/// A disk that is full takes the end of a segment, and then not the next one.
#[test]
fn the_end_of_a_segment_is_no_end_of_the_recording() {
    let dir = TempDir::new().expect("temp");
    let mut life = Life::new(4);
    let mut sink = Sink::flight(dir.path(), MIN_BUDGET, header(&life), life.fx.as_slice()).expect("starts");
    while segments(dir.path()).map_or(0, |all| all.len()) < 2 {
        record(&mut sink, &mut life, 200);
    }
    sink.close("stopped", &life.daemon);
    let all = segments(dir.path()).expect("lists");
    let text = fs::read_to_string(&all[0]).expect("reads");
    assert!(text.ends_with("\"why\":\"rotated\"}\n"), "{:?}", text.lines().last());
    let (verdict, out, _) = run(&all[0], Mode::Strict);
    assert_eq!(verdict, Verdict::Same);
    assert!(out.contains("\nended       without a word: the daemon was killed, or still records\n"), "{out}");
    let story = crate::trace::records::read(&all[0], Path::new("/"), &mut Vec::new())
        .expect("reads")
        .expect("a trace");
    let said = crate::trace::words::life_end(&story.lives[0].end);
    assert_eq!(said, "then nothing: the daemon was killed, or still records");
}
