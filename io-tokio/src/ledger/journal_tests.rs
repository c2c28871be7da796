use super::*;
use crate::book::Outbox;
use longshore_core::codec::message::AgentMessage;
use longshore_core::codec::options::Options;
use longshore_core::codec::{Codec, for_provider};
use std::fs;

fn stream() -> Stream {
    Stream::new(4, for_provider("claude").expect("a codec").start(&Options::default()), true)
}

fn message(seq: u32, text: &str) -> Message {
    serde_json::from_value(serde_json::json!({"seq": seq, "type": "text", "content": text}))
        .expect("a message")
}

fn numbers(replayed: &Replayed) -> Vec<u32> {
    replayed.unsent.iter().map(|message| message.seq).collect()
}

struct Bed {
    temp: tempfile::TempDir,
}

impl Bed {
    fn new() -> Self {
        Self { temp: tempfile::tempdir().expect("a directory") }
    }

    fn path(&self) -> PathBuf {
        self.temp.path().join("outbox.jsonl")
    }

    fn read(&self) -> Replayed {
        Journal::read(&self.path()).expect("readable")
    }
}

#[test]
fn what_was_written_is_read_again_with_the_place_that_it_leads_to() {
    let bed = Bed::new();
    let mut stream = stream();
    let line = b"{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"s\"}\n{\"half";
    stream.stdout(line, &mut Vec::new());
    stream.stderr(b"hm");
    stream.session = Some("s".into());
    let at = At::of(&stream, 2);
    let mut journal = Journal::new(bed.path(), 0);
    journal.add(&[message(1, "a"), message(2, "b\n\"c\"")], &at).expect("written");
    journal.taken(1).expect("written");
    let read = bed.read();
    assert_eq!((read.taken, read.last, numbers(&read)), (1, 2, vec![2]));
    assert_eq!(read.unsent[0].content, "b\n\"c\"");
    let back = read.at.expect("a place").stream();
    let whole = line.len() as u64 - 6;
    assert_eq!(back.position(), Position { stdout: whole, stderr: 2 }, "half of a line is read again");
    assert_eq!((back.attempt, back.session.as_deref(), back.resumed), (4, Some("s"), true));
    assert_eq!(back.codec.consumed(), whole);
}

#[test]
fn a_message_that_was_written_twice_is_read_once() {
    let bed = Bed::new();
    let at = |last| At::of(&stream(), last);
    let mut journal = Journal::new(bed.path(), 0);
    journal.add(&[message(1, "a")], &at(1)).expect("written");
    for _ in 0..2 {
        journal.add(&[message(2, "b"), message(3, "c")], &at(3)).expect("written");
    }
    journal.taken(1).expect("written");
    journal.add(&[message(4, "d")], &at(4)).expect("written");
    let read = bed.read();
    assert_eq!((read.taken, read.last, numbers(&read)), (1, 4, vec![2, 3, 4]));
    assert_eq!(read.whole, fs::metadata(bed.path()).expect("there").len());
}

#[test]
fn a_write_that_was_cut_short_is_as_if_it_never_was() {
    let bed = Bed::new();
    let at = |last| At::of(&stream(), last);
    let mut journal = Journal::new(bed.path(), 0);
    journal.add(&[message(1, "a")], &at(1)).expect("written");
    let before = fs::read(bed.path()).expect("there");
    journal.add(&[message(2, "b"), message(3, "c")], &at(3)).expect("written");
    let all = fs::read(bed.path()).expect("there");
    for cut in before.len()..all.len() {
        fs::write(bed.path(), &all[..cut]).expect("cut");
        let read = bed.read();
        assert_eq!(
            (read.last, numbers(&read), read.whole),
            (1, vec![1], before.len() as u64),
            "cut at {cut}"
        );
        // What comes next stands where it began.
        Journal::new(bed.path(), read.whole).add(&[message(2, "B")], &at(2)).expect("written");
        let read = bed.read();
        assert_eq!((read.last, numbers(&read), read.unsent[1].content.as_str()), (2, vec![1, 2], "B"));
    }
}

#[test]
fn a_damaged_line_costs_what_comes_after_it() {
    let bed = Bed::new();
    let mut journal = Journal::new(bed.path(), 0);
    journal.add(&[message(1, "a")], &At::of(&stream(), 1)).expect("written");
    let mut bytes = fs::read(bed.path()).expect("there");
    bytes.extend_from_slice(b"\0\0junk\n");
    fs::write(bed.path(), &bytes).expect("damaged");
    let read = bed.read();
    assert_eq!((read.last, numbers(&read)), (1, vec![1]));
}

#[test]
fn a_later_form_is_refused_and_not_taken_for_damage() {
    let bed = Bed::new();
    let mut journal = Journal::new(bed.path(), 0);
    journal.add(&[], &At::of(&stream(), 0)).expect("written");
    let text = fs::read_to_string(bed.path()).expect("there");
    for later in
        [text.replace("\"version\":1", "\"version\":7"), "{\"at\":{\"version\":7,\"new\":1}}\n".to_owned()]
    {
        fs::write(bed.path(), later).expect("changed");
        let error = Journal::read(&bed.path()).expect_err("a later form").to_string();
        assert!(error.contains("form 7"), "{error}");
    }
}

#[test]
fn a_journal_that_is_mostly_over_is_written_anew() {
    let bed = Bed::new();
    let mut journal = Journal::new(bed.path(), 0);
    let long = "x".repeat(600 << 10);
    for seq in 1..=3 {
        journal.add(&[message(seq, &long)], &At::of(&stream(), seq)).expect("written");
    }
    assert!(journal.is_bloated(64) && !journal.is_bloated(600 << 10));
    journal.write_anew(&[message(3, "c")], &At::of(&stream(), 3), 2).expect("written");
    journal.add(&[message(4, "d")], &At::of(&stream(), 4)).expect("goes on");
    let read = bed.read();
    assert_eq!((read.taken, read.last, numbers(&read)), (2, 4, vec![3, 4]));
    assert!(bed.path().metadata().expect("there").len() < 8192);
}

#[test]
fn the_outbox_of_a_later_process_goes_on_with_the_same_numbers() {
    let bed = Bed::new();
    let mut journal = Journal::new(bed.path(), 0);
    journal.add(&[message(1, "a"), message(2, "b")], &At::of(&stream(), 2)).expect("written");
    let outbox = Outbox::default();
    outbox.restore(bed.read());
    outbox.push(AgentMessage::Text { text: "c".into() }, "");
    let (batch, last) = outbox.batch(0, 9);
    let seen: Vec<_> = batch.iter().map(|message| (message.seq, message.content.as_str())).collect();
    assert_eq!(
        (seen, last),
        (vec![(1, "a"), (2, "b"), (3, "c")], 3),
        "what may have been sent does not change"
    );
}
