//! Whole logs, written by hand after what the format says.

use super::line::Line;
use super::*;
use crate::trace::input::archive_tests::tar;
use crate::trace::input::tests::gzip;
use crate::trace::show::{Show, show};
use longshore_core::effect::{Effect, Fact, PhaseName, ReportKind, RuntimeChange};
use longshore_core::event::{ApiReply, Event, Offer, RunEnd, RunEvent};
use longshore_core::reason::FailReason;
use longshore_core::trace::{Header, Mode, Reader, Replay, Step};
use proptest::collection::vec;
use proptest::prelude::*;
use std::fs;
use std::io::BufReader;
use std::os::unix::ffi::OsStrExt;
use tempfile::TempDir;

/// A day of a daemon: one task that ends well, one that fails, one that is cancelled, and a stop.
pub(super) const DAY: &str = r#"09:00:00.000 INF starting daemon component=daemon version=0.9.1 agents=[claude] server=https://s.example profile=""
09:00:00.001 DBG daemon config resolved component=daemon daemon_id=d-1 poll_interval=500ms heartbeat_interval=2s agent_timeout=0s idle_watchdog=20m0s max_concurrent_tasks=3 gc_enabled=true
09:00:00.200 INF registered runtime component=daemon workspace_id=ws-1 runtime_id=rt-1 provider=claude
09:00:00.201 DBG background loops launched (heartbeat, gc); health now reporting ready component=daemon
09:00:00.300 INF task wakeup websocket connected component=daemon runtimes=1
09:00:05.000 DBG task wakeup received component=daemon runtime_id=rt-1 task_id=""
09:00:05.100 INF task received component=daemon task=aaaa1111 target=t-1
09:00:05.101 INF picked task component=daemon task=aaaa1111 issue=t-1 agent="an agent" provider=claude
09:00:05.102 DBG task context component=daemon task=aaaa1111 workspace_id=ws-1 runtime_id=rt-1
09:00:05.500 INF starting agent component=daemon task=aaaa1111 provider=claude workdir=/home/somebody/work/ws-1/0123/workdir
09:00:05.510 INF claude started component=daemon pid=77 cwd=/home/somebody/work/ws-1/0123/workdir model=""
09:00:06.000 DBG agent component=daemon task=aaaa1111 text="a private word"
09:00:06.100 INF tool #1: Read component=daemon task=aaaa1111
09:00:06.500 DBG reported task messages component=daemon task=aaaa1111 count=2 last_seq=2
09:00:07.000 INF task received component=daemon task=bbbb2222 target=t-2
09:00:07.001 INF picked task component=daemon task=bbbb2222 issue=t-2 provider=claude
09:00:08.000 INF claude finished component=daemon pid=77 status=completed duration=2.5s
09:00:08.001 INF agent finished component=daemon task=aaaa1111 status=completed duration=3s tools=1
09:00:08.002 DBG agent result detail component=daemon task=aaaa1111 status=completed models_with_usage=1 agent_error=""
09:00:08.100 INF task completed component=daemon task=aaaa1111 status=completed
09:00:09.000 INF agent finished component=daemon task=bbbb2222 status=failed duration=1s tools=0
09:00:09.001 INF task did not complete, reporting failure component=daemon task=bbbb2222 status=blocked failure_reason=agent_error.process_failure
09:00:10.000 INF task received component=daemon task=cccc3333 target=t-3
09:00:11.000 INF task reached terminal state server-side, interrupting agent component=daemon task=cccc3333 status=cancelled
09:00:11.500 INF task cancelled during execution, discarding result component=daemon task=cccc3333
09:00:12.000 INF poll loop stopping, waiting for in-flight tasks component=daemon max_wait=30s
09:00:12.100 INF deregistered runtimes component=daemon count=1
"#;

pub(super) struct Imported {
    pub(super) headers: Vec<Header>,
    pub(super) steps: Vec<Step>,
    pub(super) notes: Vec<String>,
    pub(super) said: String,
    pub(super) text: String,
}

impl Imported {
    pub(super) fn facts(&self) -> Vec<Fact> {
        let effects = self.steps.iter().flat_map(|step| step.effects.iter().flatten());
        effects
            .filter_map(|effect| if let Effect::Fact { fact } = effect { Some(fact.clone()) } else { None })
            .collect()
    }

    pub(super) fn offers(&self) -> Vec<Offer> {
        let events = self.steps.iter().filter_map(|step| step.event.as_ref());
        let offers = events.filter_map(|event| match event {
            Event::Api { r: Ok(ApiReply::Claimed { offers, .. }), .. } => Some(offers.clone()),
            _ => None,
        });
        offers.flatten().collect()
    }
}

pub(super) fn asked(files: Vec<PathBuf>, out: &Path) -> Import {
    Import {
        files,
        output: Some(out.to_owned()),
        date: Some(jiff::civil::date(2026, 3, 1)),
        time_zone: Some(TimeZone::UTC),
        ..Import::default()
    }
}

/// Imports, and reads what came of it as every other trace is read.
pub(super) fn imported(asked: &Import) -> Result<Imported, ImportError> {
    let mut said = Vec::new();
    import(asked, Path::new("/"), &mut said)?;
    let path = asked.output.as_ref().expect("a file");
    let text = fs::read_to_string(path).expect("a trace");
    let open = || Reader::new(BufReader::new(text.as_bytes())).expect("a header");
    for mode in [Mode::Strict, Mode::EventsOnly] {
        let report = Replay::new(mode).run(open()).expect("every record is in its place");
        assert!(report.imported && report.compared == 0 && report.steps == report.skipped, "{report:?}");
    }
    let reader = open();
    let (mut headers, mut steps, mut notes) = (vec![reader.header().clone()], Vec::new(), Vec::new());
    for record in reader {
        match record.expect("a record") {
            Record::Header(header) => headers.push(*header),
            Record::Step(step) => steps.push(step),
            Record::Note(note) => notes.push(note.text),
            _ => {}
        }
    }
    Ok(Imported { headers, steps, notes, said: String::from_utf8(said).expect("text"), text })
}

pub(super) fn import_text(text: &[u8]) -> Result<Imported, ImportError> {
    let dir = TempDir::new().expect("temp");
    let log = dir.path().join("daemon.log");
    fs::write(&log, text).expect("written");
    imported(&asked(vec![log], &dir.path().join("out.jsonl")))
}

pub(super) fn good(text: &str) -> Imported {
    import_text(text.as_bytes()).expect("imported")
}

#[test]
fn a_day_of_a_daemon_is_told_with_its_tasks_and_their_ends() {
    use PhaseName::{Preparing, Reporting, Running, Settling, Starting};
    let day = good(DAY);
    let [header] = day.headers.as_slice() else { panic!("one life") };
    assert!(header.is_imported() && header.from.is_none());
    assert_eq!((header.core.as_str(), header.config.slots, header.config.gc), ("multica 0.9.1", 3, true));
    let timers = &header.config.timers;
    assert_eq!((timers.poll.as_millis(), timers.beat.as_secs(), timers.idle.as_secs()), (500, 2, 1200));
    assert_eq!(header.start.wall.0, 1_772_355_600_000, "2026-03-01T09:00:00Z");
    assert!(day.steps[0].event.is_none(), "it begins with the creation");
    assert_eq!(day.steps.last().map(|last| last.mono.as_millis()), Some(12_100));

    let offers = day.offers();
    let tasks: Vec<&str> = offers.iter().map(|offer| offer.task.as_str()).collect();
    assert_eq!(tasks, ["aaaa1111", "bbbb2222", "cccc3333"]);
    assert_eq!((offers[0].runtime.as_str(), offers[0].root.as_str()), ("rt-1", "ws-1/0123"));
    assert_eq!(
        (offers[1].runtime.as_str(), offers[1].root.as_str()),
        ("", ""),
        "it is not told, so it is empty"
    );

    let facts = day.facts();
    let phases = |n: usize| -> Vec<PhaseName> {
        let of = |fact: &Fact| match fact {
            Fact::Phase { claim, phase } if *claim == offers[n].claim => Some(*phase),
            _ => None,
        };
        facts.iter().filter_map(of).collect()
    };
    assert_eq!(phases(0), [Preparing, Starting, Running, Settling]);
    assert_eq!(phases(1), [Preparing, Settling, Reporting], "no line says that it was launched");
    let reports: Vec<(u64, ReportKind)> = facts
        .iter()
        .filter_map(|fact| match fact {
            Fact::Reported { claim, report, .. } => Some((claim.0, *report)),
            _ => None,
        })
        .collect();
    let failed = ReportKind::Fail { reason: FailReason::ProcessFailure };
    assert_eq!(reports, [(offers[0].claim.0, ReportKind::Complete), (offers[1].claim.0, failed)]);
    let released = facts.iter().filter(|fact| matches!(fact, Fact::Released { .. })).count();
    let forgotten = |effect: &&Effect| matches!(effect, Effect::Forget { .. });
    let forgotten = day.steps.iter().flat_map(|step| step.effects.iter().flatten()).filter(forgotten).count();
    assert_eq!((released, forgotten), (3, 3), "the cancelled one is over too");

    let ends: Vec<_> = day
        .steps
        .iter()
        .filter_map(|step| match &step.event {
            Some(Event::Run { run: RunEvent::Ended { outcome }, .. }) => {
                Some((outcome.end, outcome.have, outcome.usage))
            }
            _ => None,
        })
        .collect();
    let reason = FailReason::ProcessFailure;
    assert_eq!(ends, [(RunEnd::Completed, 2, true), (RunEnd::Failed { reason }, 0, false)]);
    let removed = |effect: &&Effect| matches!(effect, Effect::Runtime { change: RuntimeChange::Removed, .. });
    assert_eq!(day.steps.iter().flat_map(|step| step.effects.iter().flatten()).filter(removed).count(), 1);

    assert!(day.notes[0].contains("27 lines, of which 27 were understood"), "{:?}", day.notes);
    assert!(day.said.contains("understood  27 lines") && !day.said.contains("not known"), "{}", day.said);
    for private in ["a private word", "somebody", "s.example", "an agent"] {
        assert!(!day.text.contains(private), "{private}");
    }
}

#[test]
fn colours_json_and_carriage_returns_tell_the_same() {
    let plain = good(DAY).steps;
    let crlf = good(&DAY.replace('\n', "\r\n"));
    assert_eq!(crlf.steps, plain);
    let coloured =
        DAY.replace(" INF ", " \u{1b}[92mINF\u{1b}[0m ").replace(" DBG ", " \u{1b}[2mDBG\u{1b}[0m ");
    assert_eq!(good(&coloured.replace("component=", "\u{1b}[2mcomponent=\u{1b}[0m")).steps, plain);

    let json = r#"{"time":"2026-03-01T10:00:00+01:00","level":"INFO","msg":"starting daemon","component":"daemon","version":"0.9.1"}
{"time":"2026-03-01T10:00:01.5+01:00","level":"INFO","msg":"task received","component":"daemon","task":"aaaa1111"}
"#;
    let read = good(json);
    assert_eq!(read.headers[0].start.wall.0, 1_772_355_600_000);
    assert_eq!((read.steps[1].mono.as_millis(), read.offers().len()), (1500, 1));
}

#[test]
fn what_is_not_known_is_counted_said_and_left_out() {
    let odd = "goroutine 7 [running]:\n\tmain.go:12\n09:00:20.000 WRN a thing that nobody knows component=daemon n=1\n\
               09:00:21.000 WRN a thing that nobody knows component=daemon n=2\n09:00:22.000 INF task completed component=daemon task=\"cut he";
    let day = good(&format!("{DAY}{odd}"));
    for line in [
        "understood  27 lines",
        "not known   2 lines, left out:",
        "2 x \"a thing that nobody knows\", first in line 30",
        "other       2 lines are none of the log",
        "daemon.log has no line end: left out, as what it says may be half",
    ] {
        assert!(day.said.contains(line), "{line}: {}", day.said);
    }
    assert_eq!(day.steps, good(DAY).steps, "a task whose name is cut is none");
}

#[test]
fn a_report_that_went_wrong_is_not_said_to_be_taken() {
    let (before, after) = DAY.split_once("09:00:10.000").expect("a part");
    let warned =
        format!("{before}09:00:09.500 ERR no answer component=daemon task=bbbb2222\n09:00:10.000{after}");
    let day = good(&warned);
    let reports = day.facts().iter().filter(|fact| matches!(fact, Fact::Reported { .. })).count();
    assert_eq!(reports, 1, "the one of success");
}

#[test]
fn a_log_that_begins_in_the_middle_says_so() {
    let (_, rest) = DAY.split_once("09:00:06.000").expect("a part");
    let day = good(&format!("09:00:06.000{rest}"));
    assert!(day.headers[0].from.is_some(), "no life begins here");
    assert_eq!(day.headers[0].core, "multica");
    assert!(
        day.notes.iter().any(|note| note == "claim 1 is task aaaa1111: the log does not say when it came"),
        "{:?}",
        day.notes
    );
    assert_eq!(day.offers().len(), 2);
}

#[test]
fn slots_that_the_log_does_not_tell_are_shown_as_not_known() {
    let dir = TempDir::new().expect("temp");
    let silent: Vec<&str> = DAY.lines().filter(|line| !line.contains("resolved")).collect();
    let silent = silent.join("\n");
    for (name, text, said) in
        [("told", DAY, ", 3 slots, begun "), ("silent", &silent, ", slots not known, begun ")]
    {
        let (log, out) = (dir.path().join(name), dir.path().join(format!("{name}.jsonl")));
        fs::write(&log, text).expect("written");
        imported(&asked(vec![log], &out)).expect("imported");
        let asked = Show { file: out, ..Show::default() };
        let (mut shown, mut err) = (Vec::new(), Vec::new());
        assert!(show(&asked, dir.path(), &mut shown, &mut err).expect("writes to memory"));
        let shown = String::from_utf8(shown).expect("text");
        assert!(shown.lines().next().is_some_and(|first| first.contains(said)), "{shown}");
    }
}

#[test]
fn a_process_that_follows_another_is_a_life_of_its_own() {
    let day = good(&format!("{DAY}{}", DAY.replace("09:00", "08:30")));
    assert_eq!(day.headers.len(), 2);
    assert!(!day.headers[0].same_life(&day.headers[1]));
    assert_eq!(day.headers[1].start.mono.as_millis(), 0);
    let claims: Vec<u64> = day.offers().iter().map(|offer| offer.claim.0).collect();
    assert_eq!(claims, [1, 2, 3, 4, 5, 6], "the same task, claimed again, is another claim");
}

#[test]
fn a_rotated_log_is_read_over_its_files_and_a_night() {
    let dir = TempDir::new().expect("temp");
    let (first, second) = DAY.split_at(DAY.find("09:00:07").expect("a part"));
    let late = first.replace("09:00:", "23:59:");
    let early = second.replace("09:00:", "00:00:");
    fs::write(dir.path().join("daemon-2026-03-02T00-00-00.000.log"), late).expect("written");
    fs::write(dir.path().join("daemon.log"), early).expect("written");
    let all = asked(vec![dir.path().to_owned()], &dir.path().join("out.jsonl"));
    let day = imported(&all).expect("imported");
    assert_eq!((day.headers.len(), day.offers().len()), (1, 3));
    // From 23:59:00 to 00:00:12 of the next day.
    assert_eq!(day.steps.last().map(|last| last.mono.as_millis()), Some(72_100));
    let wall: Vec<i64> = day.steps.iter().map(|step| step.wall.0).collect();
    assert!(wall.is_sorted());
}

#[test]
fn what_is_no_log_is_refused_and_nothing_is_written() {
    let dir = TempDir::new().expect("temp");
    let (log, out) = (dir.path().join("x"), dir.path().join("out.jsonl"));
    fs::write(&log, "not a log\nof anybody\n").expect("written");
    let error = imported(&asked(vec![log], &out)).err().expect("refused").to_string();
    assert!(error.contains("none of the 2 lines") && error.contains("daemon.log"), "{error}");
    let only = "09:00:08.000 INF claude finished component=daemon pid=77 status=completed\n";
    let error = import_text(only.as_bytes()).err().expect("an empty trace is none").to_string();
    assert!(error.starts_with("its one line tells of no task, runtime or process"), "{error}");
    let error = imported(&asked(vec![dir.path().join("none")], &out)).err().expect("refused").to_string();
    assert!(error.contains("none cannot be read"), "{error}");
    assert!(!out.exists());
    fs::write(&out, "mine").expect("written");
    let error = imported(&asked(vec![out.clone()], &out)).err().expect("refused").to_string();
    assert!(error.contains("exists already"), "{error}");
}

#[test]
fn what_has_no_line_is_refused_as_what_it_is() {
    let refused = |text: &[u8]| import_text(text).err().expect("refused").to_string();
    assert!(refused(b"").ends_with("daemon.log is empty"), "{}", refused(b""));
    let archive = tar(&[("logs/daemon.log", b"10:00:00.000 INF starting daemon version=1")]);
    for archive in [gzip(&archive), archive] {
        let told = refused(&archive);
        assert!(told.ends_with("it is an archive; unpack it, and name the directory or the logs"), "{told}");
    }
    for (cut, packer) in [(vec![0x1f, 0x8b, 8, 0, 0], "gzip"), (vec![0x28, 0xb5, 0x2f, 0xfd, 0x24], "zstd")] {
        let told = refused(&cut);
        let said = format!("daemon.log can be read: the {packer} data is cut off (for the rest, copy");
        assert!(told.contains(&said), "{told}");
    }
}

#[test]
fn a_mark_of_byte_order_before_the_first_line_does_no_harm() {
    for text in [DAY, "{\"time\":\"2026-03-01T10:00:00Z\",\"level\":\"INFO\",\"msg\":\"starting daemon\"}\n"]
    {
        let (plain, marked) = (good(text), good(&format!("\u{feff}{text}")));
        assert_eq!((&marked.headers, &marked.steps), (&plain.headers, &plain.steps));
    }
}

#[test]
fn a_date_is_one_that_a_trace_can_hold() {
    assert_eq!(date("2026-03-01"), Ok(jiff::civil::date(2026, 3, 1)));
    assert!(date("1970-01-01").is_ok() && date("9999-12-29").is_ok());
    for outside in ["9999-12-31", "9999-12-30", "1969-12-31", "-000044-03-15"] {
        let why = date(outside).expect_err("outside");
        assert_eq!(why, "a trace can hold the days from 1970-01-01 to 9999-12-29", "{outside}");
    }
    assert!(date("yesterday").is_err_and(|why| why.contains("no date such as")));
    // The last day, in the zone where it ends last.
    for (day, offset) in [("1970-01-01", "+14:00"), ("9999-12-29", "-12:00")] {
        let zone = zone(offset).expect("a zone");
        let at = date(day).expect("inside").at(23, 59, 59, 999_000_000);
        assert!(zone.to_timestamp(at).is_ok(), "{day}");
    }
}

#[test]
fn standard_input_is_read_once() {
    let mut twice = asked(vec!["-".into(), "x".into(), "-".into()], Path::new("/missing/out"));
    let error = imported(&twice).err().expect("refused").to_string();
    assert!(error.starts_with("standard input can be read only once"), "{error}");
    twice.files.truncate(2);
    assert!(matches!(imported(&twice).err(), Some(ImportError::Destination(_))), "that is another trouble");
}

/// A log whose lines were doubled, lost, swapped and changed.
fn mangled() -> impl Strategy<Value = Vec<u8>> {
    let line = (0..DAY.lines().count(), any::<proptest::sample::Index>(), vec(any::<u8>(), 0..6), 0..4_u8);
    vec(line, 1..60).prop_map(|lines| {
        let all: Vec<&str> = DAY.lines().collect();
        let mut text = Vec::new();
        for (n, at, bytes, how) in lines {
            let mut line = all[n].as_bytes().to_vec();
            let at = at.index(line.len());
            match how {
                0 => {}
                1 => line.truncate(at),
                2 => drop(line.splice(at..at, bytes)),
                _ => line[at] = bytes.first().copied().unwrap_or(b'0'),
            }
            text.extend(line);
            text.push(b'\n');
        }
        text
    })
}

/// Whatever came, it is either refused or a trace.
fn is_refused_or_a_trace(text: &[u8]) -> Result<(), TestCaseError> {
    match import_text(text) {
        Ok(day) => {
            let order = day.steps.windows(2).all(|two| two[0].mono <= two[1].mono || two[1].n == 0);
            prop_assert!(order || day.headers.len() > 1, "time never goes back");
        }
        Err(
            ImportError::Nothing { .. }
            | ImportError::Cut
            | ImportError::Silent { .. }
            | ImportError::Empty { .. }
            | ImportError::Broken { .. },
        ) => {}
        Err(other) => return Err(TestCaseError::fail(other.to_string())),
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_bytes_are_refused_or_a_trace(bytes in vec(any::<u8>(), 0..2000)) {
        is_refused_or_a_trace(&bytes)?;
    }

    #[test]
    fn any_change_of_a_log_is_refused_or_a_trace(text in mangled()) {
        is_refused_or_a_trace(&text)?;
    }

    #[test]
    fn any_line_is_read_without_harm(text in "\\PC{0,80}", time in "[0-2][0-9]:[0-5][0-9]:[0-5][0-9]\\.[0-9]{3}") {
        let _ = Line::read(&text);
        let _ = Line::read(&format!("{time} INF {text}"));
    }
}

#[test]
fn a_zone_is_an_offset_or_a_name() {
    for offset in ["+02:00", "-05:30", "+14:00", "-14:00", "+00:00"] {
        assert!(zone(offset).is_ok(), "{offset}");
    }
    for offset in ["+25:00", "+14:01", "-14:30", "-23:59"] {
        let why = zone(offset).expect_err("outside");
        assert!(why.starts_with("an offset is from -14:00 to +14:00"), "{offset}: {why}");
    }
    assert!(zone("Middle-earth/Shire").is_err_and(|why| why.contains("+02:00")));
}

#[test]
fn a_name_that_is_no_text_is_a_name() {
    let dir = TempDir::new().expect("temp");
    let log = dir.path().join(std::ffi::OsStr::from_bytes(b"log-\xff"));
    if fs::write(&log, DAY).is_ok() {
        imported(&asked(vec![log], &dir.path().join("out.jsonl"))).expect("imported");
    }
}

#[test]
fn a_directory_of_the_user_leaves_no_name_in_the_trace() {
    for theirs in [
        "/home/alice/work/secretproject",
        "/home/alice/secretproject",
        "/home/alice/workdir",
        "/srv/alice/site/workdir",
    ] {
        let log = DAY.replace("/home/somebody/work/ws-1/0123/workdir", theirs);
        let dir = TempDir::new().expect("temp");
        fs::write(dir.path().join("daemon.log"), log).expect("written");
        let there =
            imported(&asked(vec![dir.path().join("daemon.log")], &dir.path().join("t"))).expect("imported");
        for name in ["alice", "secret", "site"] {
            assert!(!there.text.contains(name), "{theirs}");
        }
    }
}
