//! Streams that have broken other daemons.

use super::super::lines::MAX_LINE;
use super::super::outcome::Status;
use super::*;

fn feed_in_pieces(stream: &[u8], size: usize) -> Fed {
    let mut fed = Fed { run: Family::Claude.start(&Options::default()), out: Vec::new() };
    for piece in stream.chunks(size) {
        fed.run.stdout(piece, &mut fed.out);
    }
    fed.run.stdout_end(&mut fed.out);
    fed
}

#[test]
fn bug_30_a_line_over_64_mib_is_skipped_with_a_note_and_the_run_completes() {
    let piece = vec![b'x'; 1 << 20];
    let mut fed = Fed { run: Family::Claude.start(&Options::default()), out: Vec::new() };
    fed.run.stdout(INIT.as_bytes(), &mut fed.out);
    let pieces = MAX_LINE / piece.len() + 1;
    for _ in 0..pieces {
        fed.run.stdout(&piece, &mut fed.out);
    }
    // The daemon may be restarted in the middle of the line.
    let state = serde_json::to_string(&fed.run).expect("plain data");
    assert!(state.len() < 2000, "nothing of the line is kept: {}", state.len());
    fed.run = serde_json::from_str(&state).expect("read back");
    assert_eq!(fed.run.consumed(), (INIT.len() + pieces * piece.len()) as u64);
    fed.run.stdout(b"yz\n", &mut fed.out);
    fed.run.stdout(DONE.as_bytes(), &mut fed.out);
    fed.run.stdout_end(&mut fed.out);

    let messages = fed.messages();
    let [AgentMessage::Note { text }] = &messages[..] else { panic!("one note: {messages:?}") };
    assert!(text.contains(&(pieces * piece.len() + 2).to_string()), "{text}");
    let outcome = fed.exits(0);
    assert_eq!((outcome.status, outcome.warnings.len()), (Status::Completed, 1));
}

#[test]
fn bug_32_noise_between_the_events_costs_none_of_them() {
    let mut stream = Vec::new();
    stream.extend_from_slice("\u{feff}".as_bytes());
    stream.extend_from_slice(INIT.as_bytes());
    stream.extend_from_slice(b"plain text\n\n{\"type\":\n");
    stream.extend_from_slice(says("crlf").replace('\n', "\r\n").as_bytes());
    stream.extend_from_slice(format!("{}{}", says("one").trim_end(), says("two")).as_bytes());
    let filler = "x".repeat(900);
    for i in 0..12_000 {
        stream.extend_from_slice(says(&format!("{i} {filler}")).as_bytes());
    }
    stream.extend_from_slice(b"null\n[]\n{\"type\":\"brand_new\"}\n");
    stream.extend_from_slice(DONE.trim_end().as_bytes());

    let whole = feed(&stream);
    assert_eq!(whole.messages()[..3], [text("crlf"), text("one"), text("two")]);
    assert_eq!(whole.messages().len(), 12_003);
    for size in [1, 7] {
        let pieces = feed_in_pieces(&stream, size);
        assert!(pieces.out == whole.out, "pieces of {size}");
        assert_eq!(pieces.exits(0), feed(&stream).exits(0));
    }
    let logged = whole.out.iter().filter(|output| matches!(output, Output::Log { .. })).count();
    assert_eq!(logged, 4, "plain text, the cut event, null, []");
    let outcome = whole.exits(0);
    assert_eq!(outcome.status, Status::Completed);
    assert!(outcome.warnings[0].starts_with("4 lines"), "{:?}", outcome.warnings);
}

#[test]
fn bug_32_of_much_noise_ten_lines_are_logged_and_all_are_counted() {
    let fed = feed("noise\n".repeat(500));
    assert_eq!(fed.out.len(), 10);
    assert!(fed.exits(0).warnings[0].starts_with("500 lines"));
}

#[test]
fn bug_33_utf8_split_over_reads_is_whole_in_every_chunking() {
    let long = "é你🙂".repeat(5000);
    let stream = says(&long);
    for size in [1, 2, 3, 4095] {
        let fed = feed_in_pieces(stream.as_bytes(), size);
        assert!(fed.messages() == [text(&long)], "pieces of {size}");
    }
}

#[test]
fn bug_33_a_bad_byte_becomes_one_replacement_character_and_the_event_stays() {
    let mut stream = says("a#b").into_bytes();
    let at = stream.iter().position(|b| *b == b'#').expect("marked");
    stream[at] = 0xff;
    stream.extend_from_slice(b"\xff\xfe garbage \0\n");
    stream.extend_from_slice(DONE.as_bytes());
    stream.extend_from_slice(b"\xf0\x9f\x99");
    for size in [1, 5, stream.len()] {
        let fed = feed_in_pieces(&stream, size);
        assert_eq!(fed.messages(), [text("a\u{fffd}b")]);
        assert_eq!(fed.exits(0).status, Status::Completed);
    }
}
