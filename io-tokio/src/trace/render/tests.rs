//! The command, from a recorded life to a picture.

use super::*;
use crate::trace_sink::tests::life::Life;
use longshore_core::trace::{Header, Origin, encode};
use proptest::prelude::*;
use roxmltree::Document;
use std::fs;
use tempfile::TempDir;

/// A recorded life; steps for which `lost` holds are missing.
fn recorded(seed: u64, steps: u64, lost: impl Fn(u64) -> bool) -> Vec<u8> {
    let mut life = Life::new(seed);
    let mut lines = Vec::new();
    encode::header(&mut lines, &Header::new("test", life.config.clone(), life.seed, life.start))
        .expect("encodes");
    encode::start(&mut lines, life.start, life.fx.as_slice()).expect("encodes");
    let mut gap = None;
    for n in 1..=steps {
        let (now, event) = life.step();
        if lost(n) {
            gap.get_or_insert(n);
            continue;
        }
        if let Some(first) = gap.take() {
            encode::gap(&mut lines, first, n - first).expect("encodes");
        }
        encode::step(&mut lines, n, now, &event, life.fx.as_slice()).expect("encodes");
    }
    lines
}

fn story_and_drawing(lines: Vec<u8>) -> (Story, Drawing) {
    let open = || Input::of("test", io::Cursor::new(lines.clone())).expect("opens");
    let mut builder = Story::builder();
    open().for_each(|record| builder.record(&record));
    (builder.finish(), draw("test", &mut open()).0)
}

/// What holds of every drawing of a story.
fn hold(story: &Story, drawing: &Drawing) -> Result<(), TestCaseError> {
    let lanes: Vec<_> = drawing.lanes().map(|(_, lane)| lane).collect();
    let group =
        |name: &str| drawing.groups.iter().find(|group| group.name.as_str() == name).expect("is there");
    prop_assert_eq!(drawing.steps.len() as u64, story.lives.iter().map(|life| life.steps).sum::<u64>());
    prop_assert!(drawing.steps.is_sorted_by_key(|row| row.at));
    let held: usize = group("Slots").lanes.iter().map(|lane| lane.bars.len()).sum();
    prop_assert_eq!(held, story.slots.len());
    prop_assert_eq!(group("Runtimes").lanes.len(), story.runtimes.len());
    let tasks = group("Tasks");
    for task in &story.tasks {
        let named =
            |lane: &&drawing::Lane| task.id.as_ref().is_none_or(|id| lane.label.as_str() == id.as_str());
        let lane = tasks.lanes.iter().filter(named).find(|lane| lane.bars.len() >= task.phases.len());
        prop_assert!(lane.is_some(), "{:?} has no lane", task.id);
    }
    let phases: usize = story.tasks.iter().map(|task| task.phases.len().max(1)).sum();
    let drawn = tasks.lanes.iter().flat_map(|lane| &lane.bars).filter(|bar| !bar.kind.look().thin).count();
    prop_assert_eq!(drawn, phases);
    for lane in &lanes {
        for bar in &lane.bars {
            prop_assert!(bar.begin <= bar.end && bar.end <= drawing.end);
            for (step, at) in [(bar.first, bar.begin), (bar.last, bar.end)] {
                let Some(step) = step else { continue };
                prop_assert_eq!(drawing.steps[step as usize].at, at, "{:?}", bar);
            }
            let known = [(bar.open.begin, bar.first), (bar.open.end, bar.last)];
            prop_assert!(known.iter().all(|(open, step)| !open || step.is_none()), "{:?}", bar);
        }
        prop_assert!(lane.marks.iter().all(|mark| mark.at <= drawing.end));
    }
    let hinted = story.hints.iter().filter(|hint| hint.claim.is_some()).count();
    prop_assert_eq!(drawing.arrows.iter().filter(|it| it.kind == look::ArrowKind::Hint).count(), hinted);
    for arrow in &drawing.arrows {
        prop_assert!((arrow.from.lane as usize) < lanes.len() && (arrow.to.lane as usize) < lanes.len());
        prop_assert!(arrow.from.at <= arrow.to.at, "nothing leads to what was before");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_drawing_has_what_the_story_has(seed in 0..10_000_u64, steps in 1..900_u64) {
        let (story, drawing) = story_and_drawing(recorded(seed, steps, |_| false));
        hold(&story, &drawing)?;
        prop_assert_eq!(&drawing.violations, &Vec::new(), "the core breaks no rule");
        prop_assert_eq!(&drawing.unknown, &Vec::new());
        Document::parse(&svg(&drawing, 40)).expect("well-formed");
    }

    #[test]
    fn what_is_lost_is_drawn_as_unknown(seed in 0..10_000_u64, from in 50..300_u64, long in 1..200_u64) {
        let lines = recorded(seed, 700, |n| (from..from + long).contains(&n));
        let (story, drawing) = story_and_drawing(lines);
        hold(&story, &drawing)?;
        prop_assert_eq!(drawing.unknown.len(), 1);
        let said = format!("{} not recorded", count(long, "step was", "steps were"));
        prop_assert_eq!(drawing.unknown[0].why.as_str(), said.as_str());
    }
}

/// A recording that begins at a checkpoint, after so many steps.
fn from_the_middle(seed: u64, before: u64, steps: u64) -> Vec<u8> {
    let mut life = Life::new(seed);
    for _ in 0..before {
        life.step();
    }
    let mut header = Header::new("test", life.config.clone(), life.seed, life.start);
    header.from = Some(Origin::new(before, life.daemon.digest()));
    let mut lines = Vec::new();
    encode::header(&mut lines, &header).expect("encodes");
    encode::checkpoint(&mut lines, before, &life.daemon).expect("encodes");
    for n in before + 1..=before + steps {
        let (now, event) = life.step();
        encode::step(&mut lines, n, now, &event, life.fx.as_slice()).expect("encodes");
    }
    lines
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn a_recording_from_the_middle_begins_where_it_begins(seed in 0..10_000_u64, before in 1..600_u64, steps in 1..300_u64) {
        let (story, drawing) = story_and_drawing(from_the_middle(seed, before, steps));
        hold(&story, &drawing)?;
        prop_assert_eq!((drawing.steps[0].at, drawing.steps[0].n), (0, before + 1));
        prop_assert_eq!(drawing.judged, steps);
        let lives = &drawing.groups[0].lanes[0];
        prop_assert!(lives.bars[0].open.begin, "the life is older");
    }

    #[test]
    fn lives_come_one_after_the_other(seed in 0..10_000_u64, steps in 1..300_u64) {
        let lines = [recorded(seed, steps, |_| false), recorded(seed + 1, steps, |_| false)].concat();
        let (story, drawing) = story_and_drawing(lines);
        hold(&story, &drawing)?;
        prop_assert_eq!(story.lives.len(), 2);
        let lives: Vec<_> = drawing.steps.iter().map(|row| (row.life, row.n)).collect();
        let wanted = (0..2).flat_map(|life| (0..=steps).map(move |n| (life, n)));
        prop_assert_eq!(lives, wanted.collect::<Vec<_>>());
        let bars = &drawing.groups[0].lanes[0].bars;
        prop_assert!(bars.iter().any(|bar| bar.label.as_str() == "life 1"));
        prop_assert!(bars.iter().any(|bar| bar.label.as_str() == "life 2"));
    }
}

/// Runs the command in `dir`: exit code, what it says, and what it complains about.
fn run(dir: &TempDir, file: &str, out: &str) -> (Exit, String, String) {
    run_part(dir, file, out, (None, None))
}

/// The same from and to a moment.
fn run_part(
    dir: &TempDir,
    file: &str,
    out: &str,
    (from, to): (Option<&str>, Option<&str>),
) -> (Exit, String, String) {
    let moment = |text: &str| text.parse().expect("a moment");
    let (from, to) = (from.map(moment), to.map(moment));
    let asked = Render { file: file.into(), out: out.into(), from, to, lanes: 40 };
    let (mut said, mut complained) = (Vec::new(), Vec::new());
    let exit = render(&asked, dir.path(), &mut said, &mut complained).expect("writes to memory");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (exit, text(said), text(complained))
}

#[test]
fn the_form_is_that_of_the_name() {
    let dir = TempDir::new().expect("temp");
    fs::write(dir.path().join("run.jsonl"), recorded(3, 300, |_| false)).expect("writes");
    let (exit, said, complained) = run(&dir, "run.jsonl", "a.svg");
    assert_eq!((exit, complained.as_str()), (Exit::Code(0), ""));
    assert!(
        said.contains("a.svg: ")
            && said.contains(" lanes, 301 steps; 301 were held to the rules, 0 violations"),
        "{said}"
    );
    let picture = fs::read_to_string(dir.path().join("a.svg")).expect("is there");
    let document = Document::parse(&picture).expect("well-formed");
    assert!(
        document.descendants().any(|node| node.text() == Some("run.jsonl")),
        "the title is the file's name"
    );

    assert_eq!(run(&dir, "run.jsonl", "b.HTML").0, Exit::Code(0));
    let page = fs::read_to_string(dir.path().join("b.HTML")).expect("is there");
    assert!(page.starts_with("<!doctype html>") && page.contains("<title>run.jsonl</title>"));

    for name in ["c.png", "c", ".svg"] {
        let (exit, _, complained) = run(&dir, "run.jsonl", name);
        assert_eq!(exit, Exit::Code(2));
        assert!(complained.contains("name a file that ends in .svg or .html"), "{complained}");
        assert!(!dir.path().join(name).exists());
    }
}

#[test]
fn the_pictures_of_the_documents_are_what_is_drawn_of_their_traces() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let dir = TempDir::new().expect("temp");
    for (trace, picture) in [
        ("broken/a-lease-is-refreshed-twice.jsonl", "a-lease-is-refreshed-twice.svg"),
        ("demo/six-tasks.jsonl", "demo.svg"),
    ] {
        let trace = root.join("tests/traces").join(trace);
        assert_eq!(run(&dir, &trace.to_string_lossy(), picture).0, Exit::Code(0));
        let drawn = fs::read_to_string(dir.path().join(picture)).expect("is there");
        let shown = fs::read_to_string(root.join("docs/pictures").join(picture)).expect("is there");
        assert!(
            drawn == shown,
            "docs/pictures/{picture} is not what is drawn now: look at it anew, and replace it by\n\
             `longshore trace render {} -o {picture}`",
            trace.display()
        );
    }
}

#[test]
fn a_part_is_drawn_and_what_is_not_in_it_is_counted() {
    let dir = TempDir::new().expect("temp");
    fs::write(dir.path().join("run.jsonl"), recorded(3, 300, |_| false)).expect("writes");
    let (exit, said, complained) = run_part(&dir, "run.jsonl", "a.svg", (Some("100"), Some("150")));
    assert_eq!((exit, complained.as_str()), (Exit::Code(0), ""));
    let steps = said.split(" lanes, ").nth(1).and_then(|rest| rest.split(" steps; 301 ").next());
    let steps: usize = steps.and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("{said}"));
    assert!((51..90).contains(&steps), "{said}");
    assert!(
        said.contains(&format!("; outside of the window are {} steps, 0 violations and", 301 - steps)),
        "{said}"
    );
    assert!(said.ends_with(" bars reach out of it\n"), "{said}");
    assert_eq!(run_part(&dir, "run.jsonl", "a.html", (Some("1/100"), None)).0, Exit::Code(0));

    for (out, window, why) in [
        ("b.svg", (Some("150"), Some("100")), "the window is empty: it begins at "),
        ("b.html", (Some("301"), None), "the trace has no step 301"),
        ("c.svg", (Some("1000h"), None), "and the trace ends at "),
    ] {
        let (exit, said, complained) = run_part(&dir, "run.jsonl", out, window);
        assert_eq!((exit, said.as_str()), (Exit::Code(2), ""));
        assert!(complained.starts_with("error: ") && complained.contains(why), "{complained}");
        assert!(!dir.path().join(out).exists(), "no picture is left");
    }
}

#[test]
fn show_names_no_step_that_is_not_drawn() {
    let dir = TempDir::new().expect("temp");
    let mut named = 0;
    for seed in 0..6 {
        let gap = recorded(seed, 300, |n| (100..140).contains(&n));
        for lines in [from_the_middle(seed, 200, 150), gap] {
            let (story, drawing) = story_and_drawing(lines.clone());
            fs::write(dir.path().join("run.jsonl"), lines).expect("writes");
            let asked = crate::trace::show::Show { file: "run.jsonl".into(), ..Default::default() };
            let mut shown = Vec::new();
            crate::trace::show::show(&asked, dir.path(), &mut shown, &mut io::sink()).expect("writes");
            let shown = String::from_utf8(shown).expect("text");
            let steps = shown.lines().filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
            for n in steps {
                let from = Some(Moment::Step { life: None, n });
                assert!(drawing.steps.iter().any(|row| row.n == n), "step {n}: {shown}");
                assert!(window(drawing.clone(), 0, from, None).is_ok(), "step {n}: {shown}");
                named += 1;
            }
            let before = story.lives[0].first.expect("there are steps").n.checked_sub(1);
            if let Some(n) = before {
                assert!(window(drawing.clone(), 0, Some(Moment::Step { life: None, n }), None).is_err());
            }
        }
    }
    assert!(named > 500, "{named}");
}

#[test]
fn a_window_of_a_directory_is_refused_by_the_name_of_the_directory() {
    let dir = TempDir::new().expect("temp");
    let recorder = dir.path().join("recorder");
    fs::create_dir(&recorder).expect("a directory");
    let mut life = Life::new(5);
    let header = crate::trace_sink::tests::header(&life);
    let mut sink =
        crate::trace_sink::Sink::flight(&recorder, crate::trace_sink::MIN_BUDGET, header, life.fx.as_slice())
            .expect("starts");
    crate::trace_sink::tests::record(&mut sink, &mut life, 3000);
    sink.close("stopped", &life.daemon);
    let (exit, _, complained) = run_part(&dir, "recorder", "a.svg", (Some("99999"), None));
    assert_eq!(exit, Exit::Code(2));
    assert!(
        complained.starts_with("error: recorder: the trace has no step 99999; it has steps ")
            && complained.ends_with(" to 3000\n"),
        "{complained}"
    );
}

#[test]
fn a_file_that_is_there_stays_as_it_is() {
    let dir = TempDir::new().expect("temp");
    let lines = recorded(3, 50, |_| false);
    fs::write(dir.path().join("trace.svg"), &lines).expect("writes");
    let (exit, _, complained) = run(&dir, "trace.svg", "trace.svg");
    assert_eq!(exit, Exit::Code(2));
    assert!(complained.contains("exists already"), "{complained}");
    assert_eq!(fs::read(dir.path().join("trace.svg")).expect("reads"), lines);
    assert_eq!(fs::read_dir(dir.path()).expect("lists").count(), 1);
}

#[test]
fn what_cannot_be_read_leaves_no_picture() {
    let dir = TempDir::new().expect("temp");
    fs::write(dir.path().join("text"), "no trace\n").expect("writes");
    for file in ["text", "missing"] {
        let (exit, said, complained) = run(&dir, file, "a.svg");
        assert_eq!((exit, said.as_str()), (Exit::Code(2), ""));
        assert!(complained.starts_with("error: "), "{complained}");
    }
    assert_eq!(fs::read_dir(dir.path()).expect("lists").count(), 1);
}

#[test]
fn hostile_ids_of_a_trace_are_shown_and_do_nothing() {
    let dir = TempDir::new().expect("temp");
    let lines = String::from_utf8(recorded(3, 300, |_| false)).expect("text");
    let id = "</script><script>alert(1)</script>]]>\u{202e}";
    let quoted = serde_json::to_string(id).expect("text");
    let root = lines.split("\"task\":\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a task");
    let hostile = lines.replace(&format!("\"{root}\""), &quoted);
    assert_ne!(hostile, lines);
    fs::write(dir.path().join("run.jsonl"), hostile).expect("writes");
    assert_eq!(run(&dir, "run.jsonl", "a.svg").0, Exit::Code(0));
    assert_eq!(run(&dir, "run.jsonl", "a.html").0, Exit::Code(0));
    let picture = fs::read_to_string(dir.path().join("a.svg")).expect("is there");
    let document = Document::parse(&picture).expect("well-formed");
    assert!(document.descendants().all(|node| node.tag_name().name() != "script"));
    assert!(picture.contains("&lt;/script&gt;"), "it is to be read");
    let page = fs::read_to_string(dir.path().join("a.html")).expect("is there");
    assert_eq!(page.matches("<script").count(), 2);
    assert!(page.contains("alert(1)\\u003c/script\\u003e"), "it is to be read");
}

#[test]
fn violations_are_drawn_where_they_are() {
    let lines = String::from_utf8(recorded(3, 300, |_| false)).expect("text");
    // The daemon starts a task twice.
    let call = r#""call":{"call":"start""#;
    let line = lines.lines().find(|line| line.contains(call)).expect("a task is started");
    let effect = line.split(r#"{"fx":"api""#).find(|part| part.contains(call)).expect("is there");
    let effect =
        format!(r#"{{"fx":"api"{}"#, &effect[..effect.find("},{").map_or(effect.len() - 2, |at| at + 1)]);
    let twice = line.replacen(&effect, &format!("{effect},{effect}"), 1);
    assert_ne!(twice, line);
    let (_, drawing) = story_and_drawing(lines.replacen(line, &twice, 1).into_bytes());
    let n: u64 = line
        .split("\"n\":")
        .nth(1)
        .and_then(|rest| rest.split(',').next())
        .expect("a number")
        .parse()
        .expect("a number");
    let first = drawing.violations.first().expect("a rule is broken");
    assert_eq!(first.step.map(|step| drawing.steps[step as usize].n), Some(n));
    assert!(!first.says.as_str().is_empty() && !first.story.as_str().is_empty());
    assert!(page(&drawing).contains(first.rule.as_str()));
}
