//! Recording and replay, over the public API.

use longshore_core::config::Config;
use longshore_core::daemon::Daemon;
use longshore_core::effect::{Effect, Effects, PhaseName};
use longshore_core::event::{ApiReply, Event};
use longshore_core::id::OpId;
use longshore_core::rng::Seed;
use longshore_core::script::Life;
use longshore_core::time::{Instant, Now, UnixMillis};
use longshore_core::trace::{
    Audit, Difference, FORMAT, Header, Mode, Origin, Place, Reader, Record, Replay, ReplayError, Report,
    Torn, TraceError, Version, encode,
};
use proptest::prelude::*;
use std::fmt::Write as _;

/// A recorder in memory.
struct Tape {
    life: Life,
    lines: Vec<u8>,
}

impl Tape {
    fn new(seed: u64) -> Self {
        let life = Life::new(seed);
        let mut lines = Vec::new();
        let header = Header::new("test", life.config.clone(), life.seed, life.start);
        encode::header(&mut lines, &header).expect("encodes");
        encode::start(&mut lines, life.start, life.fx.as_slice()).expect("encodes");
        Self { life, lines }
    }

    fn steps(&mut self, count: usize) {
        for _ in 0..count {
            let (now, event) = self.life.step();
            encode::step(&mut self.lines, self.life.n, now, &event, self.life.fx.as_slice())
                .expect("encodes");
        }
    }

    fn digest(&mut self) {
        encode::digest(&mut self.lines, self.life.n, self.life.daemon.digest()).expect("encodes");
    }

    fn checkpoint(&mut self) {
        encode::checkpoint(&mut self.lines, self.life.n, &self.life.daemon).expect("encodes");
    }

    /// Begins a new segment of the same life, in place of what was recorded.
    fn segment(&mut self) {
        self.segment_behind(0);
    }

    /// The same, where so many steps before were not recorded.
    fn segment_behind(&mut self, lost: u64) {
        let (n, digest) = (self.life.n, self.life.daemon.digest());
        let mut header = Header::new("test", self.life.config.clone(), self.life.seed, self.life.start);
        header.from = Some(Origin { lost, ..Origin::new(n, digest) });
        self.lines.clear();
        encode::header(&mut self.lines, &header).expect("encodes");
    }

    fn replay(&self) -> Result<Report, ReplayError> {
        replay(&self.lines, Mode::Strict)
    }
}

fn replay(lines: &[u8], mode: Mode) -> Result<Report, ReplayError> {
    Replay::new(mode).run(Reader::new(lines)?)
}

fn text(lines: &[u8]) -> String {
    String::from_utf8(lines.to_vec()).expect("a trace is text")
}

#[test]
fn a_recorded_life_replays_effect_by_effect() {
    let mut tape = Tape::new(3);
    tape.steps(600);
    tape.digest();
    tape.steps(600);
    tape.digest();
    encode::end(&mut tape.lines, 1200, "clean").expect("encodes");
    let report = tape.replay().expect("replays");
    let lives = (report.lives, report.from_checkpoint, report.segments);
    assert_eq!((report.steps, report.compared, report.digests, lives), (1201, 1201, 2, (1, None, 1)));
    assert_eq!((report.end.as_deref(), report.torn, report.skipped), (Some("clean"), None, 0));
    let text = text(&tape.lines);
    for seen in
        ["\"running\"", "\"reporting\"", "\"ws\":\"up\"", "\"call\":\"claim\"", "\"call\":\"complete\""]
    {
        assert!(text.contains(seen), "the life must be worth replaying: no {seen}");
    }
}

#[test]
fn a_difference_names_its_life_where_there_is_more_than_one() {
    let life = |seed, wrong| {
        let mut tape = Tape::new(seed);
        tape.steps(50);
        encode::digest(&mut tape.lines, 50, tape.life.daemon.digest() ^ wrong).expect("encodes");
        tape.lines
    };
    let said = |lives: &[Vec<u8>]| match replay(&lives.concat(), Mode::Strict) {
        Err(ReplayError::Diverged(what)) => what.to_string(),
        other => panic!("{other:?}"),
    };
    assert!(said(&[life(4, 1), life(5, 0)]).starts_with("step 50 (line 53): the state has digest "));
    assert!(
        said(&[life(4, 0), life(5, 1)]).starts_with("step 50 of life 2 (line 106): the state has digest ")
    );
    let mut audit = Audit::default();
    let all = [life(4, 1), life(5, 1)].concat();
    let trace = Reader::new(all.as_slice()).expect("a trace");
    audit.record(Place::default(), Record::Header(Box::new(trace.header().clone()))).expect("a header");
    for record in trace {
        audit.record(Place::default(), record.expect("a record")).expect("it goes on behind a difference");
    }
    assert_eq!(audit.audited().diverged, [(1, 50), (2, 50)]);
    assert_eq!(audit.report().all_lives, 2);
}

#[test]
fn a_segment_that_starts_in_the_middle_replays_from_its_checkpoint() {
    let mut tape = Tape::new(5);
    tape.steps(400);
    // In the middle of something.
    while tape.life.daemon.view().tasks().count() == 0 {
        tape.steps(1);
    }
    let begins = tape.life.n;
    tape.segment();
    tape.checkpoint();
    tape.steps(400);
    tape.digest();
    let report = tape.replay().expect("replays");
    assert_eq!((report.from_checkpoint, report.steps, report.compared), (Some(begins), 400, 400));
    assert_eq!((report.digests, report.lives, report.restored), (1, 0, 0));
}

#[test]
fn segments_of_a_life_are_one_replay_and_a_missing_one_is_a_gap() {
    let mut tape = Tape::new(8);
    tape.steps(100);
    let one = tape.lines.clone();
    tape.segment();
    tape.steps(100);
    let two = tape.lines.clone();
    tape.segment();
    tape.checkpoint();
    tape.steps(100);
    let three = tape.lines.clone();

    let report = replay(&[one.clone(), two, three.clone()].concat(), Mode::Strict).expect("replays");
    assert_eq!((report.segments, report.compared, report.skipped, report.gaps), (3, 301, 0, 0));
    assert_eq!(report.digests, 3, "one at each joint, one in the checkpoint");

    let report = replay(&[one, three].concat(), Mode::Strict).expect("replays");
    assert_eq!((report.segments, report.compared, report.gaps, report.lost), (2, 201, 1, 100));
    assert_eq!(report.restored, 1);
}

#[test]
fn a_segment_that_says_what_is_missing_before_it_is_a_gap_with_and_without_the_one_before() {
    let mut tape = Tape::new(8);
    tape.steps(100);
    let one = tape.lines.clone();
    let mut gap = Vec::new();
    encode::gap(&mut gap, 101, 50).expect("encodes");
    tape.steps(50);
    tape.segment_behind(50);
    tape.checkpoint();
    tape.steps(100);
    let two = tape.lines.clone();
    for (trace, steps) in
        [(two.clone(), 100), ([one.clone(), two.clone()].concat(), 201), ([one, gap, two].concat(), 201)]
    {
        let report = replay(&trace, Mode::Strict).expect("replays");
        assert_eq!((report.gaps, report.lost), (1, 50), "it is said once");
        assert_eq!((report.steps, report.compared), (steps, steps));
    }
    // More than there can be is none of a recorder.
    let whole = Origin { lost: u64::MAX, ..Origin::new(7, 0) };
    assert_eq!(whole.gap().map(|gap| (gap.n, gap.lost)), Some((0, 8)));
}

#[test]
fn a_segment_without_checkpoint_and_predecessor_is_skipped_and_said() {
    let mut tape = Tape::new(8);
    tape.steps(10);
    tape.segment();
    tape.steps(20);
    tape.digest();
    let report = tape.replay().expect("is no error");
    assert_eq!((report.steps, report.compared, report.skipped, report.digests), (20, 0, 20, 0));
}

#[test]
fn after_a_gap_nothing_is_compared_until_the_next_checkpoint() {
    let mut tape = Tape::new(13);
    tape.steps(100);
    let kept = tape.lines.len();
    tape.steps(7);
    tape.lines.truncate(kept);
    encode::gap(&mut tape.lines, 101, 7).expect("encodes");
    tape.steps(50);
    tape.digest();
    tape.checkpoint();
    tape.steps(100);
    tape.digest();
    let report = tape.replay().expect("replays around the gap");
    assert_eq!((report.gaps, report.lost, report.skipped, report.restored), (1, 7, 50, 1));
    assert_eq!((report.compared, report.digests), (201, 1));

    let report = replay(&tape.lines, Mode::EventsOnly).expect("goes on in spite of the gap");
    assert_eq!((report.skipped, report.compared, report.steps), (0, 0, 251));
}

#[test]
fn a_changed_effect_is_found_at_its_step_and_field() {
    let mut tape = Tape::new(21);
    tape.steps(300);
    let lines = text(&tape.lines);
    let (line, was) = lines
        .lines()
        .enumerate()
        .filter(|(_, line)| line.contains(r#""phase":"running""#))
        .last()
        .expect("something ran");
    let lines = lines.replace(was, &was.replacen(r#""phase":"running""#, r#""phase":"sealing""#, 1));
    let Err(ReplayError::Diverged(found)) = replay(lines.as_bytes(), Mode::Strict) else {
        panic!("the change must be found")
    };
    assert_eq!((found.line, found.n), (line as u64 + 1, line as u64 - 1));
    let Difference::Effects { recorded, produced } = &found.what else { panic!("effects differ") };
    assert_eq!(recorded.len(), produced.len());
    assert_ne!(recorded, produced);
    let said = found.to_string();
    let field = r#"fact.phase: "sealing" was recorded, "running" was produced"#;
    assert!(said.contains(field), "{said}");
    assert_eq!(said.lines().skip_while(|line| !line.contains("the last steps")).count(), 22, "{said}");
    assert!(
        said.lines().last().is_some_and(|last| last.trim_start().starts_with(&found.n.to_string())),
        "{said}"
    );
    assert!(replay(lines.as_bytes(), Mode::EventsOnly).is_ok(), "events only: nothing is compared");
}

#[test]
fn missing_and_additional_effects_are_found() {
    let mut tape = Tape::new(21);
    tape.steps(40);
    let cut = |line: &str| {
        let Ok(Record::Step(mut step)) = parse_line(line) else { return None };
        let fx = step.effects.as_mut()?;
        fx.pop()?;
        let mut out = Vec::new();
        encode::record(&mut out, &Record::Step(step)).expect("encodes");
        Some(text(&out).trim_end().to_owned())
    };
    let lines = text(&tape.lines);
    let (was, is) = lines.lines().find_map(|line| Some((line, cut(line)?))).expect("a step with effects");
    let error = replay(lines.replace(was, &is).as_bytes(), Mode::Strict).expect_err("an effect is missing");
    assert!(error.to_string().contains("recorded: nothing more"), "{error}");
}

fn parse_line(line: &str) -> Result<Record, TraceError> {
    let mut text = Vec::new();
    encode::header(&mut text, &Header::new("test", Config::default(), Seed(0), Now::default()))
        .expect("encodes");
    text.extend_from_slice(line.as_bytes());
    text.push(b'\n');
    Reader::new(text.as_slice())?.next().expect("one record")
}

#[test]
fn a_changed_digest_is_found_with_the_last_good_one() {
    let mut tape = Tape::new(2);
    tape.steps(20);
    tape.digest();
    tape.steps(20);
    encode::digest(&mut tape.lines, 40, tape.life.daemon.digest() ^ 1).expect("encodes");
    let error = tape.replay().expect_err("the digest differs");
    let ReplayError::Diverged(found) = &error else { panic!("{error}") };
    assert!(matches!(found.what, Difference::Digest { since: Some(20), .. }), "{error}");
    assert!(error.to_string().contains("so was the state after step 20"), "{error}");
}

#[test]
fn a_checkpoint_that_is_not_the_state_is_found() {
    let mut tape = Tape::new(2);
    tape.steps(20);
    tape.segment();
    tape.checkpoint();
    let lines = text(&tape.lines).replace(r#""strays_told":0"#, r#""strays_told":7"#);
    let error = replay(lines.as_bytes(), Mode::Strict).expect_err("it was changed");
    assert!(matches!(error, ReplayError::Checkpoint { line: 2, .. }), "{error}");
    let lines = lines.replace(r#""strays_told":7,"#, "").replace(r#","strays_told":7"#, "");
    let error = replay(lines.as_bytes(), Mode::Strict).expect_err("it is incomplete");
    assert!(error.to_string().contains("line 2: the checkpoint cannot be read by this version"), "{error}");
}

#[test]
fn a_torn_last_line_is_said_and_everything_before_it_counts() {
    let mut tape = Tape::new(2);
    tape.steps(5);
    let whole = tape.lines.len();
    tape.steps(1);
    for cut in [whole + 1, whole + 20, tape.lines.len() - 2] {
        let report = replay(&tape.lines[..cut], Mode::Strict).expect("replays");
        assert_eq!(report.torn, Some(Torn { line: 8, bytes: cut - whole }));
        assert_eq!(report.compared, 6);
    }
    let report = replay(&tape.lines[..tape.lines.len() - 1], Mode::Strict).expect("replays");
    assert_eq!((report.torn, report.compared), (None, 7), "only the line end is missing");
    let mut zeros = tape.lines[..whole].to_vec();
    zeros.extend([0; 64]);
    let report = replay(&zeros, Mode::Strict).expect("a power cut may leave zeros");
    assert_eq!(report.torn, Some(Torn { line: 8, bytes: 64 }));
}

#[test]
fn steps_out_of_order_are_an_error_and_never_a_divergence() {
    let mut tape = Tape::new(2);
    tape.steps(5);
    let lines = text(&tape.lines);
    let without = |n: usize| {
        let kept = lines.lines().enumerate().filter(|(i, _)| *i != n);
        kept.fold(String::new(), |mut all, (_, line)| {
            writeln!(all, "{line}").expect("a string");
            all
        })
    };
    let error = replay(without(4).as_bytes(), Mode::Strict).expect_err("step 3 is missing");
    assert_eq!(error.to_string(), "line 5: step 4 is here, where 3 must be");
    let report = replay(without(1).as_bytes(), Mode::Strict).expect("the creation may be left out");
    assert_eq!(report.compared, 5);
}

#[test]
fn what_cannot_be_read_is_said_with_its_line() {
    let mut tape = Tape::new(2);
    tape.steps(2);
    let lines = text(&tape.lines);
    let fails = |lines: &str| replay(lines.as_bytes(), Mode::Strict).expect_err("must fail").to_string();
    let next = format!("{lines}{}\n", r#"{"rec":"miracle","n":3}"#);
    assert_eq!(fails(&next), "line 5: `miracle` is no kind of record in format 1.3");
    let next = format!("{lines}{}\n", r#"{"rec":"step","n":3,"t":1,"w":1,"ev":{"ev":"miracle"}}"#);
    assert!(fails(&next).starts_with("line 5: not a record of a trace: unknown variant `miracle`"));
    assert!(fails(&format!("{lines}nonsense\n{lines}")).starts_with("line 5: not a record"));
    let other = |version: &str| lines.replacen(r#"{"major":1,"minor":3}"#, version, 1);
    for newer in [r#"{"major":2,"minor":0}"#, r#"{"major":0,"minor":9}"#, r#"{"major":1,"minor":4}"#] {
        assert!(fails(&other(newer)).contains("and this program reads 1.0 to 1.3"), "{newer}");
    }
    assert!(Version { major: 1, minor: 4 }.reads(FORMAT), "an older minor version is read");
    let error =
        Reader::new(&b"{\"rec\":\"header\",\"format\":{\"major\":9,\"minor\":1},\"all\":\"new\"}\n"[..]);
    assert!(matches!(error, Err(TraceError::Version { line: 1, found: Version { major: 9, minor: 1 } })));
    assert!(matches!(Reader::new(&b""[..]), Err(TraceError::Empty)));
    assert!(matches!(Reader::new(&tape.lines[..50]), Err(TraceError::Empty)));
    assert!(matches!(Reader::new(&b"what?\n"[..]), Err(TraceError::NoHeader { .. })));
    assert!(matches!(
        Reader::new(&tape.lines[lines.find('\n').expect("lines") + 1..]),
        Err(TraceError::NoHeader { .. })
    ));
}

#[test]
fn unknown_fields_are_ignored_everywhere() {
    let mut tape = Tape::new(2);
    tape.steps(30);
    tape.digest();
    tape.checkpoint();
    let more = text(&tape.lines)
        .replace("{\"rec\":", "{\"us\":[40,11],\"rec\":")
        .replace("{\"ev\":", "{\"new\":1,\"ev\":");
    assert_eq!(replay(more.as_bytes(), Mode::Strict).expect("replays").compared, 31);
}

#[test]
fn a_trace_of_events_alone_is_replayed_and_observed() {
    let lines = concat!(
        r#"{"rec":"header","format":{"major":1,"minor":0},"core":"0","source":"hand","seed":"0000000000000001","#,
        r#""start":{"mono":0,"wall":0},"config":CONFIG}"#,
        "\n\n",
        r#"{"rec":"note","n":0,"text":"written by hand"}"#,
        "\n",
        r#"{"rec":"step","n":1,"t":0,"w":0,"ev":{"ev":"stop"}}"#,
        "\n",
        r#"{"rec":"step","n":2,"t":99999999,"w":0,"ev":{"ev":"tick"}}"#,
    );
    let config = serde_json::to_string(&Config::default()).expect("encodes");
    let lines = lines.replace("CONFIG", &config);
    let mut replay = Replay::new(Mode::Strict);
    let mut exits = 0;
    let reader = Reader::new(lines.as_bytes()).expect("reads");
    replay
        .segment(reader, |seen| {
            exits += seen.effects.iter().filter(|fx| matches!(fx, Effect::Exit { .. })).count();
            assert_eq!(seen.now.wall, UnixMillis(0));
            assert!(seen.event.is_some());
        })
        .expect("replays");
    assert_eq!((replay.report().steps, replay.report().compared, exits), (2, 0, 1));
}

#[test]
fn what_was_imported_is_read_and_never_fed_to_a_core() {
    let mut tape = Tape::new(3);
    tape.steps(50);
    // Another daemon's log knows of no core: the same events, and effects that this one would not have had.
    let lines = text(&tape.lines).replacen(r#""source":"test""#, r#""source":"imported""#, 1);
    let lines = lines.replace(r#""fact":"ready""#, r#""fact":"unauthorized""#);
    for mode in [Mode::Strict, Mode::EventsOnly] {
        let report = replay(lines.as_bytes(), mode).expect("every record is in its place");
        assert!(report.imported);
        assert_eq!((report.steps, report.skipped, report.compared, report.lives), (51, 51, 0, 0));
    }
    let torn = lines.replacen(r#"{"rec":"step","n":7,"#, r#"{"rec":"step","n":8,"#, 1);
    assert!(matches!(replay(torn.as_bytes(), Mode::Strict), Err(ReplayError::Order { expected: 7, .. })));
}

#[test]
fn a_step_is_written_as_format_1_0_says() {
    let mut out = Vec::new();
    let event = Event::Api { op: OpId(12), r: Ok(ApiReply::Done) };
    let now = Now::new(Instant::from_millis(30_012), UnixMillis(1_764_000_030_012));
    encode::step(&mut out, 17, now, &event, &[Effect::Cancel { op: OpId(3) }, Effect::DropIdleConnections])
        .expect("encodes");
    encode::digest(&mut out, 17, 0x9f2c).expect("encodes");
    encode::gap(&mut out, 18, 12).expect("encodes");
    encode::note(&mut out, 29, "operator: network unplugged").expect("encodes");
    encode::end(&mut out, 29, "clean").expect("encodes");
    let expected = [
        r#"{"rec":"step","n":17,"t":30012,"w":1764000030012,"ev":{"ev":"api","op":12,"r":{"Ok":{"reply":"done"}}},"fx":[{"fx":"cancel","op":3},{"fx":"drop_idle_connections"}]}"#,
        r#"{"rec":"digest","n":17,"h":"0000000000009f2c"}"#,
        r#"{"rec":"gap","n":18,"lost":12}"#,
        r#"{"rec":"note","n":29,"text":"operator: network unplugged"}"#,
        r#"{"rec":"end","n":29,"why":"clean"}"#,
    ];
    assert_eq!(text(&out).lines().collect::<Vec<_>>(), expected);
}

#[test]
fn every_kind_of_record_survives_being_read_and_written() {
    let mut tape = Tape::new(34);
    tape.steps(200);
    tape.digest();
    tape.checkpoint();
    encode::note(&mut tape.lines, 200, "ä \"quoted\"\nnote").expect("encodes");
    encode::gap(&mut tape.lines, 201, 3).expect("encodes");
    encode::end(&mut tape.lines, 203, "rotated").expect("encodes");
    let twice = [tape.lines.clone(), tape.lines.clone()].concat();
    let reader = Reader::new(twice.as_slice()).expect("reads");
    let mut again = Vec::new();
    encode::header(&mut again, reader.header()).expect("encodes");
    for record in reader {
        encode::record(&mut again, &record.expect("reads")).expect("encodes");
    }
    assert_eq!(text(&again), text(&twice));
}

/// Runs a life from its first step, and from a checkpoint of it, with the same events.
fn twins(seed: u64, before: usize, after: usize) -> Result<(), TestCaseError> {
    let mut life = Life::new(seed);
    for _ in 0..before {
        life.step();
    }
    let checkpoint = life.daemon.checkpoint().expect("every state can be written");
    let mut twin = Daemon::restore(&checkpoint).expect("every checkpoint can be read");
    prop_assert_eq!(twin.digest(), life.daemon.digest());
    prop_assert_eq!(twin.checkpoint().expect("every state can be written"), checkpoint);
    prop_assert_eq!(twin.next_wakeup(), life.daemon.next_wakeup());
    let mut fx = Effects::new();
    for i in 0..after {
        let (now, event) = if i == after / 2 { life.handle(Event::stop()) } else { life.step() };
        fx.clear();
        twin.handle(now, &event, &mut fx);
        prop_assert_eq!(fx.as_slice(), life.fx.as_slice());
        prop_assert_eq!(twin.digest(), life.daemon.digest());
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_restored_daemon_does_what_the_other_does(seed: u64, before in 0_usize..400) {
        twins(seed, before, 200)?;
    }

    #[test]
    fn any_life_replays(seed: u64, steps in 1_usize..300) {
        let mut tape = Tape::new(seed);
        tape.steps(steps);
        tape.digest();
        let report = tape.replay().expect("replays");
        prop_assert_eq!((report.compared, report.digests), (steps as u64 + 1, 1));
    }

    #[test]
    fn rubbish_is_an_error_and_never_a_panic(mut lines in prop::collection::vec(any::<u8>(), 0..200), at: prop::sample::Index) {
        let mut tape = Tape::new(1);
        tape.steps(10);
        let at = at.index(tape.lines.len());
        tape.lines.truncate(at);
        tape.lines.append(&mut lines);
        let result = replay(&tape.lines, Mode::Strict);
        prop_assert!(!matches!(result, Err(ReplayError::Diverged(_))), "rubbish is no divergence");
    }
}

/// Every phase of a task is in some life, and restores.
#[test]
fn a_checkpoint_restores_in_every_phase_of_a_task() {
    use PhaseName::{
        AwaitingDirectory, AwaitingSlot, Preparing, Reporting, Resolving, Running, Sealing, Settling,
        Starting,
    };
    let (mut seen, mut late) = (std::collections::BTreeSet::new(), false);
    for seed in 1..40 {
        let mut life = Life::new(seed);
        for _ in 0..900 {
            life.step();
            let phases: Vec<PhaseName> = life.daemon.view().tasks().filter_map(|task| task.phase).collect();
            let known = phases.iter().all(|phase| seen.contains(phase));
            if known && (late || !life.daemon.view().has_late_reports()) {
                continue;
            }
            seen.extend(phases);
            late |= life.daemon.view().has_late_reports();
            let text = life.daemon.checkpoint().expect("every state can be written");
            let twin = Daemon::restore(&text).expect("every checkpoint can be read");
            assert_eq!(twin.digest(), life.daemon.digest());
        }
    }
    assert!(late, "some life has late reports");
    assert_eq!(
        seen.into_iter().collect::<Vec<_>>(),
        [
            Resolving,
            AwaitingDirectory,
            AwaitingSlot,
            Preparing,
            Starting,
            Running,
            Settling,
            Reporting,
            Sealing
        ]
    );
}
