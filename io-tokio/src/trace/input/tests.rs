//! Sources of every kind, whole and damaged; and that every command comes to an end with all of them.

use super::archive_tests::tar;
use super::*;
use crate::trace::check::{Check, check};
use crate::trace::replay::{Replay, replay};
use crate::trace::shrink::{Shrink, shrink};
use flate2::Compression;
use flate2::write::GzEncoder;
use longshore_core::script::{Life, Mark, Search};
use longshore_core::trace::{MAX_LINE, StepNumber, encode};
use proptest::prelude::*;
use proptest::sample::Index;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use std::fs;
use std::io::Cursor;
use std::sync::Arc;
use tempfile::TempDir;

/// A recorded life, with a checkpoint after each 50 steps.
pub(crate) fn recorded(seed: u64, steps: usize) -> String {
    let mark = |n: StepNumber| if n.is_multiple_of(50) { Mark::Checkpoint } else { Mark::None };
    let mut lines = Life::recorded(seed, steps, mark);
    encode::end(&mut lines, steps as u64, "stopped").expect("encodes");
    String::from_utf8(lines).expect("a trace is text")
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("packs");
    encoder.finish().expect("packs")
}

pub(crate) fn zstd(bytes: &[u8]) -> Vec<u8> {
    compress_to_vec(bytes, CompressionLevel::Fastest)
}

pub(super) fn records(mut input: Input) -> (Vec<Record>, String) {
    let all = input.by_ref().collect();
    let mut said = Vec::new();
    input.say(&mut said).expect("writes to memory");
    (all, String::from_utf8(said).expect("text"))
}

fn of(bytes: &[u8]) -> (Vec<Record>, String) {
    records(Input::of("it", Cursor::new(bytes.to_vec())).expect("a trace"))
}

/// Gives one byte at a time, as a pipe may.
struct Dripping(Cursor<Vec<u8>>);

impl Read for Dripping {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let most = to.len().min(1);
        self.0.read(&mut to[..most])
    }
}

#[test]
fn packed_or_not_the_records_are_the_same() {
    let text = recorded(3, 150);
    let (whole, said) = of(text.as_bytes());
    assert_eq!((whole.len(), said.as_str()), (1 + 151 + 3 + 1, ""));
    let half = text.find("{\"rec\":\"step\",\"n\":70,").expect("is there");
    let (one, two) = text.as_bytes().split_at(half);
    let skipped = [&[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"any"].concat();
    for packed in [
        gzip(text.as_bytes()),
        zstd(text.as_bytes()),
        [gzip(one), gzip(two)].concat(),
        [zstd(one), skipped, zstd(two)].concat(),
        gzip(&gzip(text.as_bytes())),
        gzip(&zstd(text.as_bytes())),
        zstd(&gzip(&gzip(text.as_bytes()))),
    ] {
        assert!(of(&packed) == (whole.clone(), String::new()));
        let input = Input::of("it", Dripping(Cursor::new(packed))).expect("a trace");
        assert!(records(input) == (whole.clone(), String::new()));
    }
}

#[test]
fn of_a_packed_trace_that_is_cut_off_what_came_is_read() {
    let text = recorded(3, 1_500);
    let (whole, _) = of(text.as_bytes());
    for packed in [gzip(text.as_bytes()), zstd(text.as_bytes()), gzip(&zstd(text.as_bytes()))] {
        let (some, said) = of(&packed[..packed.len() * 3 / 4]);
        assert!(some.len() > whole.len() / 4 && some.len() < whole.len(), "{}", some.len());
        assert!(whole.starts_with(&some[..some.len() - 1]), "{said}");
        assert!(said.contains("from here on nothing can be read: the "), "{said}");
        let words = "data is cut off (for the rest, copy the whole file again); what came before was used\n";
        assert!(said.ends_with(words), "{said}");
    }
}

/// A byte order mark is none of the text, whether or not it was packed with it, and the place of a damage is that in the file.
#[test]
fn a_mark_of_byte_order_is_skipped() {
    let text = recorded(3, 20);
    let (whole, _) = of(text.as_bytes());
    let marked = format!("\u{feff}{text}").into_bytes();
    for bytes in [gzip(&marked), zstd(&marked), marked] {
        assert!(of(&bytes) == (whole.clone(), String::new()));
    }
    let second = text.find('\n').expect("a line") + 1;
    let (_, said) = of(format!("\u{feff}{}x\n{}", &text[..second], &text[second..]).as_bytes());
    assert!(said.contains(&format!("line 2 (byte {}): no record", second + 3)), "{said}");
    let inside = format!("{}\u{feff}{}", &text[..second], &text[second..]);
    assert!(of(inside.as_bytes()).1.contains("line 2 (byte "), "elsewhere it is damage");
}

/// Whatever is wrong with packed bytes is said in one of these ways, none of which shows the insides of a decoder.
#[test]
fn damage_of_what_is_packed_is_told_in_words() {
    let text = recorded(3, 5);
    let ways = [
        " data is cut off (for the rest, copy the whole file again)",
        " data is damaged (for the rest, copy the file again from where it is whole)",
        "what follows is no zstd data",
        "the zstd data needs a window of ",
        "the zstd data needs dictionary ",
    ];
    let mut met = [false; 5];
    let mut why = |bytes: Vec<u8>| {
        let mut stream = crate::unpack::unpacked(Cursor::new(bytes)).expect("opens");
        if let Err(error) = stream.read_to_end(&mut Vec::new()) {
            let error = error.to_string();
            let way = ways.iter().position(|way| error.contains(way));
            met[way.unwrap_or_else(|| panic!("{error}"))] = true;
        }
    };
    for packed in [gzip(text.as_bytes()), zstd(text.as_bytes())] {
        (4..packed.len()).for_each(|at| why(packed[..at].to_vec()));
        for at in 4..packed.len() {
            let mut flipped = packed.clone();
            flipped[at] ^= 1 << (at % 8);
            why(flipped);
        }
        why([&packed[..], b"what does not belong there"].concat());
    }
    // Frame headers by hand: a window of 256 MiB, and a dictionary.
    let frame = |rest: &[u8]| [&[0x28, 0xb5, 0x2f, 0xfd][..], rest].concat();
    why(frame(&[0x00, 0x90, 1, 0, 0]));
    why(frame(&[0x21, 7, 5, 1, 0, 0]));
    assert_eq!(met, [true; 5], "{ways:?}");
}

#[test]
fn a_last_line_without_its_end_counts_if_it_is_whole() {
    let text = recorded(3, 20);
    let (whole, _) = of(text.as_bytes());
    assert!(of(text.trim_end().as_bytes()) == (whole.clone(), String::new()));
    let (some, said) = of(&text.as_bytes()[..text.len() - 5]);
    assert!(some == whole[..whole.len() - 1]);
    assert!(said.starts_with("warning: it: line 23 (byte "), "{said}");
    assert!(said.contains("): broken off after "), "{said}");
}

#[test]
fn a_line_without_bounds_is_passed_over() {
    let text = recorded(3, 20);
    let (whole, _) = of(text.as_bytes());
    let (head, tail) = text.split_at(text.find('\n').expect("a line") + 1);
    let long = io::repeat(b'x').take(MAX_LINE as u64 + 99);
    let source = Cursor::new(head.to_owned()).chain(long).chain(Cursor::new(format!("\n{tail}")));
    let (all, said) = records(Input::of("it", source).expect("a trace"));
    assert!(all == whole);
    let place = format!("line 2 (byte {}): longer than {MAX_LINE} bytes; it was left out\n", head.len());
    assert!(said.ends_with(&place), "{said}");
}

#[test]
fn what_is_not_there_or_no_trace_is_refused_with_a_reason() {
    let dir = TempDir::new().expect("temp");
    let refused = |name: &str, bytes: Option<&[u8]>| {
        if let Some(bytes) = bytes {
            fs::write(dir.path().join(name), bytes).expect("writes");
        }
        Input::open(Path::new(name), dir.path()).expect_err("no trace").to_string()
    };
    assert!(refused("none", None).starts_with("none: No such file"));
    assert!(refused(".", None).contains("no segment of a flight recorder. Name a trace file, a flight"));
    assert!(
        refused("six", Some(&(0..6).fold(recorded(3, 5).into_bytes(), |packed, _| gzip(&packed)))).contains(
            "nothing can be read: it is packed more than 3 times (unpack it first, by gzip -d or zstd -d)"
        )
    );
    assert_eq!(refused("empty", Some(b"")), "empty: the file is empty");
    assert_eq!(refused("blank", Some(b"\n \n")), "blank: there are only blank lines, and no trace");
    assert_eq!(
        refused("mark", Some("\u{feff}".as_bytes())),
        "mark: there are only blank lines, and no trace"
    );
    let text = refused("text", Some(b"hello\n"));
    assert!(text.starts_with("text: line 1 (byte 0): no header of a trace: expected"), "{text}");
    assert!(!text.contains("left out"), "{text}");
    let unread = |packer| {
        format!("nothing can be read: it is packed in a way that is not read ({packer}): unpack it first")
    };
    let xz = [0xfd, b'7', b'z', b'X', b'Z', 0, 0, 4, 0xe6, 0xd6];
    assert_eq!(refused("x.tar.xz", Some(&xz)), format!("x.tar.xz: {}", unread("xz")));
    assert_eq!(refused("gz.xz", Some(&gzip(&xz))), format!("gz.xz: {}", unread("xz")));
    for bz2 in [b"BZh9\x31\x41\x59\x26\x53\x59\0", b"BZh1\x17\x72\x45\x38\x50\x90\0"] {
        assert_eq!(refused("x.bz2", Some(bz2)), format!("x.bz2: {}", unread("bzip2")));
    }
    assert!(refused("text", Some(b"BZh9 is no mark\n")).contains("no header of a trace"));
    let none = refused("e.tar", Some(&[0; 10240]));
    assert!(
        none.starts_with("e.tar: nothing can be read: it has nothing but zeros, as an archive of no file"),
        "{none}"
    );
    let gzip = refused("gz", Some(&[0x1f, 0x8b, 9, 9]));
    assert!(gzip.starts_with("gz: nothing can be read: the gzip data is "), "{gzip}");
    let zstd = refused("zst", Some(&[0x28, 0xb5, 0x2f, 0xfd]));
    assert!(zstd.starts_with("zst: nothing can be read: the zstd data is cut off "), "{zstd}");
    assert!(!gzip.contains("was used") && !zstd.contains("was used"));
    let newer = recorded(3, 5).replacen("\"major\":1", "\"major\":2", 1);
    assert!(refused("newer", Some(newer.as_bytes())).contains("use the version that recorded it"));
}

/// Each command with a file; it must say something and come to a verdict.
fn every_command(dir: &Path) {
    let say = |out: Vec<u8>, err: Vec<u8>| assert!(!(out.is_empty() && err.is_empty()), "it says something");
    let file = || std::path::PathBuf::from("t");
    for asked in [
        Replay { file: file(), ..Replay::default() },
        Replay { file: file(), until: "30".parse().ok(), ..Replay::default() },
        Replay { file: file(), events_only: true, ..Replay::default() },
        Replay { file: file(), rebase: true, ..Replay::default() },
    ] {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let verdict = replay(&asked, dir, &mut out, &mut err).expect("writes to memory");
        assert!(verdict.code() <= 2);
        say(out, err);
    }
    for json in [false, true] {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let asked = Check { file: file(), json, ..Check::default() };
        let verdict = check(&asked, dir, &mut out, &mut err).expect("writes to memory");
        assert!(verdict.code() <= 2);
        say(out, err);
    }
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let asked = Shrink { file: file(), ..Shrink::default() };
    let (search, stop) = (Search::new(None), || Ok(Arc::default()));
    let exit = shrink(&asked, search, dir, stop, &mut out, &mut err).expect("writes to memory");
    assert!(exit.code() <= 2);
    say(out, err);
}

#[derive(Clone, Debug)]
enum Damage {
    Cut(Index),
    Flip(Index, u8),
    Insert(Index, Vec<u8>),
    Twice(Index, Index),
    Swap(Index, Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = any::<Index>;
    prop_oneof![
        at().prop_map(Damage::Cut),
        (at(), 0_u8..8).prop_map(|(at, bit)| Damage::Flip(at, bit)),
        (at(), prop::collection::vec(any::<u8>(), 1..40)).prop_map(|(at, what)| Damage::Insert(at, what)),
        (at(), at()).prop_map(|(from, to)| Damage::Twice(from, to)),
        (at(), at()).prop_map(|(one, other)| Damage::Swap(one, other)),
    ]
}

fn damaged(bytes: &mut Vec<u8>, how: &Damage) {
    if bytes.is_empty() {
        return;
    }
    let count = bytes.len();
    match how {
        Damage::Cut(at) => bytes.truncate(at.index(count)),
        Damage::Flip(at, bit) => bytes[at.index(count)] ^= 1 << bit,
        Damage::Insert(at, what) => {
            let at = at.index(count);
            bytes.splice(at..at, what.iter().copied());
        }
        Damage::Twice(one, other) => {
            let (from, to) =
                (one.index(count).min(other.index(count)), one.index(count).max(other.index(count)));
            let copy = bytes[from..to].to_vec();
            bytes.splice(to..to, copy);
        }
        Damage::Swap(one, other) => bytes.swap(one.index(count), other.index(count)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_command_ends_with_a_verdict_and_a_message_whatever_the_bytes(
        seed in 0_u64..6,
        packed in 0_u8..5,
        before in prop::collection::vec(damage(), 0..3),
        after in prop::collection::vec(damage(), 0..3),
    ) {
        let mut bytes = recorded(seed, 60).into_bytes();
        for how in &before {
            damaged(&mut bytes, how);
        }
        let mut bytes = match packed {
            0 => bytes,
            1 => gzip(&bytes),
            2 => zstd(&bytes),
            3 => tar(&[("flight-0000000001.jsonl", &bytes)]),
            _ => gzip(&tar(&[("flight-0000000001.jsonl", &gzip(&bytes))])),
        };
        for how in &after {
            damaged(&mut bytes, how);
        }
        let dir = TempDir::new().expect("temp");
        fs::write(dir.path().join("t"), &bytes).expect("writes");
        every_command(dir.path());
    }
}
