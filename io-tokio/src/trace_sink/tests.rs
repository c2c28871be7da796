pub(crate) mod life {
    pub(crate) use longshore_core::script::Life;
}

use super::segments::MOST_SEGMENTS;
use super::*;
use life::Life;
use longshore_core::trace::{Mode, Place, Reader, Replay, Report, Salvage};
use std::fs::{self, File};
use std::io::{BufReader, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use tempfile::TempDir;

pub(crate) fn header(life: &Life) -> Header {
    Header::new("test", life.config.clone(), life.seed, life.start)
}

pub(crate) fn record(sink: &mut Sink, life: &mut Life, steps: usize) {
    for _ in 0..steps {
        let (now, event) = life.step();
        sink.step(now, &event, life.fx.as_slice(), &life.daemon);
    }
}

fn replay(files: &[PathBuf]) -> Report {
    let mut replay = Replay::new(Mode::Strict);
    for path in files {
        let source = BufReader::new(File::open(path).expect("opens"));
        replay.segment(Reader::new(source).expect("reads"), |_| {}).expect("replays");
    }
    replay.finish()
}

/// What is wrong with the segments one after another.
fn damage(files: &[PathBuf]) -> Vec<String> {
    let mut salvage = Salvage::default();
    for (source, path) in files.iter().enumerate() {
        salvage.begin();
        let text = fs::read_to_string(path).expect("reads");
        for (line, text) in (1..).zip(text.lines()) {
            salvage.line(Place { source, line, byte: 0 }, text.as_bytes());
        }
    }
    salvage.finish();
    salvage.troubles().first().iter().map(|trouble| trouble.what.to_string()).collect()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("is there").permissions().mode() & 0o777
}

fn size(dir: &Path) -> u64 {
    // A segment may be removed between being listed and being looked at.
    let sizes = segments(dir).unwrap_or_default().into_iter().filter_map(|path| fs::metadata(path).ok());
    sizes.map(|meta| meta.len()).sum()
}

#[test]
fn a_recorded_file_is_private_new_and_replays() {
    let dir = TempDir::new().expect("temp");
    let path = dir.path().join("run.jsonl");
    let mut life = Life::new(3);
    let mut sink = Sink::file(&path, header(&life), life.fx.as_slice()).expect("starts");
    record(&mut sink, &mut life, 700);
    sink.note("half of it", &life.daemon);
    record(&mut sink, &mut life, 700);
    let closed = sink.close("stopped", &life.daemon);
    assert_eq!(closed, Closed { steps: 1400, lost: 0, error: None });
    assert_eq!(mode(&path), 0o600);
    let report = replay(std::slice::from_ref(&path));
    assert_eq!((report.steps, report.compared, report.end.as_deref()), (1401, 1401, Some("stopped")));
    assert_eq!(report.digests, 13, "steps 1, 2, 4 … 1024, 1000 and the last");
    assert!(fs::read_to_string(&path).expect("reads").contains("half of it"));

    let again = Sink::file(&path, header(&life), &[]).expect_err("a file that is there is never written to");
    assert!(matches!(again, SinkError::Exists { .. }), "{again}");
}

#[test]
fn segments_stay_within_the_budget_are_private_and_replay_alone_and_together() {
    let temp = TempDir::new().expect("temp");
    let dir = temp.path().join("state/trace");
    let mut life = Life::new(4);
    let mut sink = Sink::flight(&dir, MIN_BUDGET, header(&life), life.fx.as_slice()).expect("starts");
    for _ in 0..120 {
        record(&mut sink, &mut life, 100);
        assert!(size(&dir) <= MIN_BUDGET, "while it records");
    }
    let closed = sink.close("stopped", &life.daemon);
    assert_eq!(closed, Closed { steps: 12_000, lost: 0, error: None });

    let files = segments(&dir).expect("lists");
    assert!(size(&dir) <= MIN_BUDGET && size(&dir) > MIN_BUDGET / 2, "{}", size(&dir));
    assert!(files.len() > 4, "{}", files.len());
    assert!(!files[0].ends_with("flight-0000000001.jsonl"), "the oldest had to go");
    assert_eq!((mode(&dir), mode(&files[0])), (0o700, 0o600));

    let all = replay(&files);
    assert_eq!((all.skipped, all.gaps, all.lives, all.compared), (0, 0, 0, all.steps));
    assert_eq!(all.end.as_deref(), Some("stopped"));
    assert!(all.from_checkpoint.is_some());
    let alone: Vec<Report> = files.iter().map(|file| replay(std::slice::from_ref(file))).collect();
    assert!(
        alone.iter().all(|one| one.from_checkpoint.is_some() && one.compared == one.steps && one.steps > 0)
    );
    assert_eq!(alone.iter().map(|one| one.steps).sum::<u64>(), all.steps);
}

#[test]
fn what_an_earlier_process_recorded_is_kept_while_there_is_room() {
    let dir = TempDir::new().expect("temp");
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).expect("chmod");
    let mut crashed = Life::new(6);
    let mut sink =
        Sink::flight(dir.path(), MIN_BUDGET, header(&crashed), crashed.fx.as_slice()).expect("starts");
    record(&mut sink, &mut crashed, 50);
    drop(sink);
    assert_eq!(mode(dir.path()), 0o700, "a directory that others could read is closed");
    let mut life = Life::new(7);
    let mut sink = Sink::flight(dir.path(), MIN_BUDGET, header(&life), life.fx.as_slice()).expect("starts");
    record(&mut sink, &mut life, 20);
    sink.close("stopped", &life.daemon);
    let files = segments(dir.path()).expect("lists");
    assert_eq!(files.len(), 2);
    let report = replay(&files);
    assert_eq!((report.lives, report.compared, report.gaps), (2, 51 + 21, 0));
}

#[test]
fn a_daemon_that_is_restarted_again_and_again_leaves_a_bounded_number_of_segments() {
    let dir = TempDir::new().expect("temp");
    for seed in 0..MOST_SEGMENTS as u64 + 3 {
        let life = Life::new(seed);
        let sink = Sink::flight(dir.path(), MIN_BUDGET, header(&life), life.fx.as_slice()).expect("starts");
        sink.close("stopped", &life.daemon);
    }
    let files = segments(dir.path()).expect("lists");
    assert_eq!(files.len(), MOST_SEGMENTS);
    assert!(files[0].ends_with("flight-0000000004.jsonl"), "{files:?}");
}

#[test]
fn a_disk_that_is_too_slow_makes_a_gap_and_never_a_wait() {
    let (read, write) = io::pipe().expect("a pipe");
    let mut life = Life::new(9);
    let writer = Writer::new(Output::File("pipe".into()), Some(File::from(OwnedFd::from(write))));
    let mut sink = Sink::start(writer, None, header(&life), life.fx.as_slice()).expect("starts");
    while sink.lost.is_none() {
        // Nobody reads the pipe: the writer waits, and this does not.
        record(&mut sink, &mut life, 100);
        assert!(life.n < 200_000, "the queue has a bound");
    }
    record(&mut sink, &mut life, 50);
    let reader = std::thread::spawn(move || {
        let mut all = Vec::new();
        let mut read = read;
        read.read_to_end(&mut all).map(|_| all)
    });
    while sink.lost.is_some() {
        record(&mut sink, &mut life, 1);
        std::thread::yield_now();
    }
    record(&mut sink, &mut life, 500);
    let closed = sink.close("stopped", &life.daemon);
    let all = reader.join().expect("reads").expect("reads");
    let report = Replay::new(Mode::Strict).run(Reader::new(all.as_slice()).expect("reads")).expect("replays");
    assert_eq!((report.gaps, report.restored, report.skipped), (1, 1, 0));
    assert_eq!((report.lost, report.steps + report.lost), (closed.lost, closed.steps + 1));
    assert!(closed.lost > 50 && closed.error.is_some_and(|error| error.last.contains("too slow")));
    assert_eq!((report.compared, report.end.as_deref()), (report.steps, Some("stopped")));
}

#[test]
fn a_step_that_is_too_long_for_the_budget_is_a_gap_of_one_step() {
    let dir = TempDir::new().expect("temp");
    let mut life = Life::new(4);
    let first = life.fx.as_slice().to_vec();
    let mut sink = Sink::flight(dir.path(), MIN_BUDGET, header(&life), &first).expect("starts");
    record(&mut sink, &mut life, 20);
    let (now, event) = life.step();
    let many: Vec<Effect> = first.iter().cycle().take(2000).cloned().collect();
    sink.step(now, &event, &many, &life.daemon);
    record(&mut sink, &mut life, 20);
    let closed = sink.close("stopped", &life.daemon);
    assert_eq!((closed.steps, closed.lost), (41, 1));
    let files = segments(dir.path()).expect("lists");
    assert_eq!(damage(&files), Vec::<String>::new());
    let report = replay(&files);
    assert_eq!((report.gaps, report.lost, report.steps, report.compared), (1, 1, 41, 41));
    let text = fs::read_to_string(&files[1]).expect("reads");
    let told = "step 21 is missing: step 21 is too long for the flight recorder's budget";
    assert!(text.contains(told), "{text}");
}

/// Whether a segment has its header.
fn is_begun(dir: &Path) -> bool {
    let is_begun = |path: &PathBuf| fs::metadata(path).is_ok_and(|meta| meta.len() > 0);
    segments(dir).is_ok_and(|found| found.iter().any(is_begun))
}

/// Records until it is known that the disk refuses.
fn until_refused(sink: &mut Sink, life: &mut Life) {
    while sink.lost.is_none() {
        record(sink, life, 1);
        std::thread::yield_now();
    }
}

/// Records until the disk takes it again, and then 40 steps.
fn until_taken_again(sink: &mut Sink, life: &mut Life) {
    let failed = life.n;
    while sink.lost.is_some() {
        record(sink, life, 1);
        assert!(life.n < failed + 10_000, "it is tried again when time has passed");
    }
    record(sink, life, 40);
}

#[test]
fn after_the_disk_refused_recording_goes_on_and_says_what_is_missing() {
    let temp = TempDir::new().expect("temp");
    let dir = temp.path().join("trace");
    let away = temp.path().join("away");
    let mut life = Life::new(10);
    let mut sink = Sink::flight(&dir, MIN_BUDGET, header(&life), life.fx.as_slice()).expect("starts");
    while !is_begun(&dir) {
        std::thread::yield_now();
    }
    // The next segment cannot be made.
    rustix::fs::rename(&dir, &away)
        .and_then(|()| rustix::fs::symlink("nowhere/at/all", &dir))
        .expect("moves");
    while sink.error.as_ref().is_none_or(|error| error.last.contains("moved away")) {
        record(&mut sink, &mut life, 1);
        std::thread::yield_now();
    }
    fs::remove_file(&dir).expect("removes");
    until_taken_again(&mut sink, &mut life);
    let closed = sink.close("stopped", &life.daemon);
    assert!(closed.lost > 0 && closed.error.is_some(), "{closed:?}");
    let before = segments(&away).expect("lists");
    let after = segments(&dir).expect("lists");
    assert!(after[0].ends_with("flight-0000000002.jsonl"), "no number is left out: {after:?}");
    let alone = replay(&after);
    assert_eq!((alone.steps, alone.compared, alone.gaps, alone.lost), (40, 40, 1, closed.lost));
    let both = [before, after].concat();
    assert_eq!(damage(&both), Vec::<String>::new(), "what the recorder knows to be missing is said");
    let all = replay(&both);
    assert_eq!((all.gaps, all.lost, all.steps + all.lost), (1, closed.lost, closed.steps + 1));
}

/// What was written to a directory that somebody had removed once went nowhere, without a word, until the next segment.
#[test]
fn a_recorder_whose_directory_is_removed_makes_it_again_and_begins_anew() {
    let temp = TempDir::new().expect("temp");
    let dir = temp.path().join("longshore/trace");
    let mut life = Life::new(10);
    let mut sink = Sink::flight(&dir, MIN_BUDGET, header(&life), life.fx.as_slice()).expect("starts");
    for removed in ["longshore/trace", "longshore", "longshore/trace"] {
        // Nothing else is to be written then, so nothing is made while it is removed.
        while !is_begun(&dir) {
            std::thread::yield_now();
        }
        let before = sink.lost_before;
        fs::remove_dir_all(temp.path().join(removed)).expect("removes");
        while sink.lost_before == before {
            record(&mut sink, &mut life, 1);
            std::thread::yield_now();
        }
    }
    record(&mut sink, &mut life, 40);
    let closed = sink.close("stopped", &life.daemon);
    assert!(closed.error.is_some_and(|error| error.last.contains("was removed or moved away")));
    let files = segments(&dir).expect("lists");
    assert_eq!((files.len(), mode(&dir)), (1, 0o700));
    let report = replay(&files);
    assert_eq!((report.steps, report.compared, report.end.as_deref()), (40, 40, Some("stopped")));
    let text = fs::read_to_string(&files[0]).expect("reads");
    let note = text.lines().find(|line| line.contains("\"rec\":\"note\"")).expect("a note");
    assert!(note.contains("are missing: the segment that was written, or"), "{note}");
}

/// A disk that was full for the first second once cost the header, and with it everything that came later; and so did a file in the directory's
/// place.
#[test]
fn a_recorder_whose_first_lines_are_refused_begins_later() {
    let temp = TempDir::new().expect("temp");
    let dir = temp.path().join("trace");
    fs::write(&dir, "").expect("writes");
    let mut life = Life::new(12);
    let mut sink = Sink::flight(&dir, MIN_BUDGET, header(&life), life.fx.as_slice()).expect("starts");
    until_refused(&mut sink, &mut life);
    assert!(
        sink.error.as_ref().is_some_and(|error| error.last.contains("no directory stands where")),
        "{:?}",
        sink.error
    );
    fs::remove_file(&dir).expect("removes");
    until_taken_again(&mut sink, &mut life);
    let closed = sink.close("stopped", &life.daemon);
    let report = replay(&segments(&dir).expect("lists"));
    assert_eq!((report.steps, report.compared, report.end.as_deref()), (40, 40, Some("stopped")));
    assert_eq!(closed.lost + 40, closed.steps + 1, "{closed:?}");
    assert_eq!((report.gaps, report.lost), (1, closed.lost), "the creation is lost as well");
}

#[test]
#[cfg(target_os = "linux")] // It has a device that is always full.
fn a_file_whose_first_lines_are_refused_begins_later() {
    let full = OpenOptions::new().append(true).open("/dev/full").expect("opens");
    let mut life = Life::new(13);
    let writer = Writer::new(Output::File("/dev/full".into()), Some(full));
    let mut sink = Sink::start(writer, None, header(&life), life.fx.as_slice()).expect("starts");
    until_refused(&mut sink, &mut life);
    sink.resume(&life.daemon, true);
    // What a disk with room for it would have now.
    let reader = Reader::new(sink.line.as_slice()).expect("a header");
    assert_eq!(reader.header().from.map(|from| from.n), Some(life.n));
    let report = Replay::new(Mode::Strict).run(reader).expect("a trace");
    assert_eq!((report.from_checkpoint, report.gaps, report.lost), (Some(life.n), 1, life.n + 1));
}

#[test]
#[cfg(target_os = "linux")] // It has a device that is always full.
fn a_file_that_takes_nothing_costs_the_recording_and_nothing_else() {
    let full = OpenOptions::new().append(true).open("/dev/full").expect("opens");
    let mut life = Life::new(11);
    let writer = Writer::new(Output::File("/dev/full".into()), Some(full));
    let mut sink = Sink::start(writer, None, header(&life), life.fx.as_slice()).expect("starts");
    record(&mut sink, &mut life, 40);
    let closed = sink.close("stopped", &life.daemon);
    assert_eq!((closed.steps, closed.lost), (40, 41), "the creation is lost as well");
    assert!(closed.error.is_some(), "{closed:?}");
}

/// Once a file of the highest number that fits ended all recording, and nobody said which.
#[test]
fn a_number_that_no_recorder_has_stops_nothing_and_the_highest_one_is_named() {
    let dir = TempDir::new().expect("temp");
    let mut life = Life::new(13);
    let mut once = || {
        let mut sink =
            Sink::flight(dir.path(), MIN_BUDGET, header(&life), life.fx.as_slice()).expect("starts");
        record(&mut sink, &mut life, 30);
        sink.close("stopped", &life.daemon)
    };
    let [above, highest] = ["flight-18446744073709551615.jsonl", "flight-999999999999999.jsonl"];
    let [above, highest] = [above, highest].map(|name| dir.path().join(name));
    fs::write(&above, "mine").expect("writes");
    assert_eq!(once().error, None);
    let files = segments(dir.path()).expect("lists");
    assert!(files.len() == 1 && files[0].ends_with("flight-0000000001.jsonl"), "{files:?}");
    assert_eq!(fs::read_to_string(&above).expect("is there"), "mine");

    fs::write(&highest, "mine").expect("writes");
    let why = once().error.map_or_else(String::new, |error| error.to_string());
    assert_eq!(
        why,
        format!(
            "{} has the highest number of a segment, and none can follow it (move it away)",
            highest.display()
        )
    );
    fs::remove_file(&highest).expect("removes");
    let mut segments = Segments::new(dir.path(), MIN_BUDGET, MIN_BUDGET / 4);
    let before_it = dir.path().join("flight-999999999999998.jsonl");
    fs::write(&before_it, "").expect("writes");
    segments.create().expect("the last one");
    assert!(segments.create().is_err_and(|error| error.to_string() == why), "none follows it");
    fs::remove_file(&highest).expect("removes");
    segments.create().expect("goes on");
    fs::remove_file(&highest).expect("removes");
    fs::remove_file(&before_it).expect("removes");
    segments.create().expect("goes on");
    assert!(dir.path().join("flight-0000000002.jsonl").exists());
}

#[test]
fn a_budget_that_cannot_hold_a_checkpoint_is_refused() {
    let dir = TempDir::new().expect("temp");
    let life = Life::new(1);
    let error =
        Sink::flight(&dir.path().join("x"), MIN_BUDGET - 1, header(&life), &[]).expect_err("too small");
    assert_eq!(error.to_string(), "a flight recorder needs at least 1048576 bytes, not 1048575");
}

#[test]
fn a_state_without_room_for_a_checkpoint_is_recorded_without_one() {
    let dir = TempDir::new().expect("temp");
    let mut life = Life::new(12);
    for cap in 0..3000 {
        life.config.provider_caps.insert(format!("provider-{cap}").as_str().into(), 1);
    }
    let mut life = Life::with(life.config, 12);
    let mut sink = Sink::flight(dir.path(), MIN_BUDGET, header(&life), life.fx.as_slice()).expect("starts");
    record(&mut sink, &mut life, 800);
    sink.close("stopped", &life.daemon);
    let files = segments(dir.path()).expect("lists");
    assert!(files.len() > 1 && size(dir.path()) <= MIN_BUDGET);
    let report = replay(&files);
    assert_eq!((report.compared, report.skipped), (801, 0), "from the beginning of the life it replays");
    let report = replay(&files[1..]);
    assert_eq!((report.compared, report.steps), (0, report.skipped), "from a later segment it does not");
}
