//! Archives of a flight recorder's directory, as they are made, and as somebody may make them on purpose.

use super::archive::{BLOCK, is_one, segments as found_in};
use super::tests::{gzip, recorded, records, zstd};
use super::*;
use crate::trace_sink::tests::life::Life;
use crate::trace_sink::tests::{header, record};
use crate::trace_sink::{MIN_BUDGET, Sink, segments};
use proptest::prelude::*;
use std::fs;
use std::io::Cursor;
use tar::{Builder, EntryType, Header as TarHeader};
use tempfile::TempDir;

/// An archive with these files, in this order.
pub(crate) fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for (path, bytes) in files {
        let mut header = TarHeader::new_gnu();
        header.set_size(bytes.len() as u64);
        builder.append_data(&mut header, path, *bytes).expect("appended");
    }
    builder.into_inner().expect("an archive")
}

/// An entry as nobody's program would make it: its kind and path as they are, and the size that it claims.
fn odd(kind: EntryType, path: &[u8], size: u64, bytes: &[u8]) -> Vec<u8> {
    let mut header = TarHeader::new_gnu();
    header.set_entry_type(kind);
    header.as_gnu_mut().expect("of that kind").name[..path.len()].copy_from_slice(path);
    header.set_size(size);
    header.set_cksum();
    let padding = bytes.len().next_multiple_of(BLOCK) - bytes.len();
    [header.as_bytes(), bytes, &vec![0; padding]].concat()
}

/// A flight recorder that has recorded two lives in several segments. Gives their names and contents.
fn recorder() -> (TempDir, Vec<(String, Vec<u8>)>) {
    let dir = TempDir::new().expect("temp");
    for (seed, steps) in [(3, 50), (4, 2300)] {
        let mut life = Life::new(seed);
        let first = life.fx.as_slice();
        let mut sink =
            Sink::flight(&dir.path().join("trace"), MIN_BUDGET, header(&life), first).expect("starts");
        record(&mut sink, &mut life, steps);
        sink.close("stopped", &life.daemon);
    }
    let files = segments(&dir.path().join("trace")).expect("lists").into_iter().map(|path| {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        (name, fs::read(path).expect("reads"))
    });
    let files = files.collect();
    (dir, files)
}

fn of(bytes: Vec<u8>) -> (Vec<Record>, String) {
    records(Input::of("it", Cursor::new(bytes)).expect("a trace"))
}

fn refusal(bytes: Vec<u8>) -> String {
    Input::of("it", Cursor::new(bytes)).expect_err("no trace").to_string()
}

/// The files below this directory in the archive.
fn below<'a>(dir: &str, files: &'a [(String, Vec<u8>)]) -> Vec<(String, &'a [u8])> {
    files.iter().map(|(name, bytes)| (format!("{dir}{name}"), bytes.as_slice())).collect()
}

fn borrowed<'a>(files: &'a [(String, &'a [u8])]) -> Vec<(&'a str, &'a [u8])> {
    files.iter().map(|(path, bytes)| (path.as_str(), *bytes)).collect()
}

#[test]
fn an_archive_is_the_directory_however_it_was_made() {
    let (dir, files) = recorder();
    assert!(files.len() > 3, "{}", files.len());
    let (whole, said) = records(Input::open(Path::new("trace"), dir.path()).expect("a trace"));
    assert_eq!(said, "");
    let deep = format!("./home/{}/trace/", "a-long-name/".repeat(20));
    for path in ["", "./", "trace/", deep.as_str()] {
        let mut files = below(path, &files);
        let in_order = tar(&borrowed(&files));
        files.reverse();
        // A directory is given out in any order, and with what else there is.
        files.insert(1, ("trace/README".to_owned(), b"nothing of a recorder".as_slice()));
        let other_way = tar(&borrowed(&files));
        for archive in [&in_order, &other_way] {
            for bytes in [archive.clone(), gzip(archive), zstd(archive), gzip(&zstd(archive))] {
                assert!(of(bytes) == (whole.clone(), String::new()), "{path}");
            }
        }
    }
    // The other way to give a long path.
    let mut builder = Builder::new(Vec::new());
    for (path, bytes) in below(&deep, &files) {
        let said = [("mtime", b"1.5".as_slice()), ("path", path.as_bytes())];
        builder.append_pax_extensions(said).expect("appended");
        builder.get_mut().extend(odd(EntryType::Regular, b"cut-off", bytes.len() as u64, bytes));
    }
    assert!(of(builder.into_inner().expect("an archive")) == (whole.clone(), String::new()));
    // Segments that were packed one by one, in an archive and in the directory.
    let packed = files.iter().enumerate().map(|(n, (name, bytes))| match n % 3 {
        0 => (format!("{name}.gz"), gzip(bytes)),
        1 => (format!("{name}.zst"), zstd(bytes)),
        _ => (name.clone(), gzip(bytes)),
    });
    let packed: Vec<(String, Vec<u8>)> = packed.collect();
    let archive = tar(&borrowed(&below("trace/", &packed)));
    assert!(of(archive.clone()) == (whole.clone(), String::new()));
    assert!(of(gzip(&archive)) == (whole.clone(), String::new()));
    let other = TempDir::new().expect("temp");
    for (name, bytes) in &packed {
        fs::write(other.path().join(name), bytes).expect("writes");
    }
    assert!(
        records(Input::open(Path::new("."), other.path()).expect("a trace"))
            == (whole.clone(), String::new())
    );
    fs::write(other.path().join("trace.tgz"), gzip(&archive)).expect("writes");
    let (all, said) = records(Input::open(Path::new("trace.tgz"), other.path()).expect("a trace"));
    assert!(all == whole && said.is_empty());
}

/// A later header is told from the one before by its life.
#[test]
fn a_segment_that_is_missing_is_named_and_reading_goes_on() {
    let (dir, files) = recorder();
    let lost = files.len() - 2;
    let some: Vec<_> =
        files.iter().enumerate().filter(|(n, _)| *n != lost).map(|(_, file)| file.clone()).collect();
    fs::remove_file(dir.path().join("trace").join(&files[lost].0)).expect("removes");
    let (from_dir, said) = records(Input::open(Path::new("trace"), dir.path()).expect("a trace"));
    let named =
        format!("{} is not there; what is in it is missing, and reading went on behind it\n", files[lost].0);
    assert!(said.starts_with(&format!("warning: trace: {named}")), "{said}");
    assert!(said.contains(" are missing; that is taken as a gap"), "{said}");
    // By the name that was given, also where that is a longer one than is needed.
    for name in [Path::new("./trace"), &dir.path().join("trace")] {
        let (_, said) = records(Input::open(name, dir.path()).expect("a trace"));
        let after = name.join(&files[lost + 1].0);
        assert!(said.starts_with(&format!("warning: {}: {named}", name.display())), "{said}");
        assert!(said.contains(&format!("warning: {}", after.display())), "{said}");
    }
    let (from_tar, said) = of(tar(&borrowed(&below("t/", &some))));
    assert!(said.starts_with(&format!("warning: it: t: {named}")), "{said}");
    assert!(from_tar == from_dir && from_dir.len() > 1000);
    // Of a whole life nothing else would tell.
    let ends =
        tar(&borrowed(&below("", &[files[0].clone(), (files[3].0.replace("04", "09"), files[1].1.clone())])));
    let (_, said) = of(ends);
    let named = "flight-0000000002.jsonl to flight-0000000008.jsonl are not there (7 segments); what is in it is missing";
    assert_eq!(said, format!("warning: it: {named}, and reading went on behind it\n"));
}

#[test]
fn recorders_of_two_daemons_are_read_one_after_another() {
    let (_dir, files) = recorder();
    let (one, two) = (below("b/", &files[..1]), below("a/", &files[1..2]));
    let (all, said) = of(tar(&borrowed(&[one, two].concat())));
    assert_eq!(said, "", "numbers of different directories tell nothing of each other");
    assert_eq!(all.iter().filter(|record| matches!(record, Record::Header(_))).count(), 2);
}

#[test]
fn what_is_in_an_archive_and_cannot_be_used_does_no_harm() {
    let text = recorded(3, 20).into_bytes();
    let (whole, _) = of(text.clone());
    let good = tar(&[("flight-0000000001.jsonl", &text)]);
    let size = text.len() as u64;
    let second = b"flight-0000000002.jsonl".as_slice();
    for (before, words) in [
        // Paths lead nowhere: of each only the name at its end counts.
        (odd(EntryType::Regular, b"../../../../etc/passwd", 4, b"root"), ""),
        (odd(EntryType::Regular, b"/etc/\xff\x1b[31m", 4, b"root"), ""),
        (odd(EntryType::Directory, b"flight-0000000003.jsonl/", 0, b""), ""),
        (
            odd(EntryType::Symlink, second, 0, b""),
            "warning: it: flight-0000000002.jsonl is a link, which is not followed",
        ),
        (
            odd(EntryType::Link, second, 0, b""),
            "warning: it: flight-0000000002.jsonl is a link, which is not followed",
        ),
        (
            odd(EntryType::Fifo, second, 0, b""),
            "warning: it: flight-0000000002.jsonl is no file in the archive",
        ),
        (
            odd(EntryType::GNUSparse, second, 0, b""),
            "warning: it: flight-0000000002.jsonl is a file with holes",
        ),
        (
            odd(EntryType::new(b'V'), second, 0, b""),
            "warning: it: flight-0000000002.jsonl is no file in the archive",
        ),
        (odd(EntryType::GNULongLink, b"x", 4, b"long"), ""),
        (odd(EntryType::XGlobalHeader, b"x", 20, b"20 path=../elsewhere\n"), ""),
        // One archive in another is none.
        (
            odd(EntryType::Regular, second, good.len() as u64, &good),
            "warning: it: flight-0000000002.jsonl: line 1",
        ),
        (odd(EntryType::Regular, second, 0, b""), "warning: it: flight-0000000002.jsonl: the file is empty"),
    ] {
        for archive in [
            [before.clone(), good.clone()].concat(),
            [&good[..good.len() - 1024], &before, &[0; 1024]].concat(),
        ] {
            let (all, said) = of(archive);
            assert!(all == whole, "{said}");
            assert!(if words.is_empty() { said.is_empty() } else { said.starts_with(words) }, "{said}");
        }
    }
    // Lies about sizes end the archive, and what came before is used.
    let good = &good[..good.len() - 1024];
    for after in [
        odd(EntryType::Regular, second, u64::MAX / 2, &text),
        odd(EntryType::Regular, second, size + (1 << 40), &text),
        odd(EntryType::Regular, b"other", 1 << 40, b"x"),
        odd(EntryType::GNULongName, b"x", 1 << 40, b"x"),
        odd(EntryType::XHeader, b"x", 1 << 40, b"x"),
        [odd(EntryType::XHeader, b"x", 13, b"13 size=4096\n"), odd(EntryType::Regular, second, 4, b"text")]
            .concat(),
        b"what belongs to no archive".repeat(40),
    ] {
        let (all, said) = of([good.to_vec(), after].concat());
        assert!(all.starts_with(&whole), "{said}");
        assert!(said.contains("warning: it: the archive cannot be read to its end: "), "{said}");
        let words = "; what stands before that in the archive was used, and what stands behind it was not read: there may be more segments\n";
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn an_archive_without_a_segment_says_what_it_has() {
    let none = refusal(tar(&[("x/incident.jsonl", b"{}"), ("y", b"")]));
    assert_eq!(
        none,
        "it: nothing can be read: the archive has no segment of a flight recorder, but for example incident.jsonl (unpack it, and name the \
         file that is the trace)"
    );
    let link = odd(EntryType::Symlink, b"flight-0000000001.jsonl", 0, b"");
    let link = refusal([link, vec![0; 1024]].concat());
    assert!(link.starts_with("it: flight-0000000001.jsonl is a link, which is not followed"), "{link}");
    let torn = refusal(tar(&[("flight-0000000001.jsonl", b"x")])[..400].to_vec());
    assert!(torn.contains("broken off after 400 bytes"), "{torn}");
    let mut damaged = tar(&[("flight-0000000001.jsonl", b"x")]);
    damaged[0] ^= 1;
    let damaged = refusal(damaged);
    assert_eq!(damaged, "it: the archive cannot be read to its end: archive header checksum mismatch");
}

/// Between two entries nothing of an entry is missing: only the mark of the end says that no other one follows.
#[test]
fn an_archive_that_is_cut_or_damaged_says_that_there_may_be_more() {
    let text = recorded(3, 20).into_bytes();
    let (whole, _) = of(text.clone());
    let names = ["1", "2", "3"].map(|n| format!("flight-000000000{n}.jsonl"));
    let one = tar(&[(&names[0], &text)]);
    let one = &one[..one.len() - 1024];
    let all = tar(&[(&names[0], &text), (&names[1], &text), (&names[2], &text)]);
    let after = "; what stands before that in the archive was used, and what stands behind it was not read: there may be more segments\n";
    let said_of = |bytes: Vec<u8>| {
        let (records, said) = of(bytes);
        assert!(records.starts_with(&whole), "{said}");
        (records.len(), said)
    };
    // Cut between two entries, in the header of one, and in one.
    for (at, why) in [
        (0, "it ends without a mark of its end"),
        (100, "failed to read entire block"),
        (700, "it is cut off"),
    ] {
        for pack in [|bytes: &[u8]| bytes.to_vec(), gzip] {
            let (count, said) = said_of(pack(&all[..one.len() + at]));
            assert_eq!(count, whole.len(), "{said}");
            assert!(
                said.contains(&format!("warning: it: the archive cannot be read to its end: {why}")),
                "{at}: {said}"
            );
            assert!(said.contains(after), "{said}");
        }
    }
    // A header that the disk lost looks like the end, and one that is damaged like nothing.
    for (bytes, why) in [
        (vec![0; BLOCK], "it goes on behind the mark of its end"),
        (vec![7; 9], "archive header checksum mismatch"),
    ] {
        let mut damaged = all.clone();
        damaged.splice(one.len()..one.len() + bytes.len(), bytes);
        let (count, said) = said_of(damaged);
        assert_eq!(count, whole.len());
        assert_eq!(said, format!("warning: it: the archive cannot be read to its end: {why}{after}"));
    }
    // Zeros behind the end are what programs put there.
    let padded = [one, &vec![0; 10 * 1024]].concat();
    assert_eq!(said_of(padded), (whole.len(), String::new()));
}

/// The memory for an archive is bounded, whatever it claims and however well it was packed.
#[test]
fn no_more_is_held_than_there_is_room_for() {
    let one = recorded(3, 200).into_bytes();
    let all = tar(&[("a/flight-0000000001.jsonl", &one), ("a/flight-0000000002.jsonl", &one), ("b/c", b"")]);
    let parts = |most: usize| {
        let found = found_in("it", Box::new(Cursor::new(all.clone())), most);
        let said: Vec<String> = found.troubles.iter().map(ToString::to_string).collect();
        (found.parts.len(), said.join("\n"))
    };
    let packed = gzip(&one).len() + 1;
    assert_eq!(parts(2 * packed), (2, String::new()));
    for (most, read) in [(2 * packed - 1, 1), (packed, 1), (packed - 1, 0), (0, 0)] {
        let (got, said) = parts(most);
        assert_eq!(got, read, "{said}");
        assert!(said.starts_with("the archive has more than can be held in memory (unpack it"), "{said}");
    }
    // What was not read is not said to be absent.
    let [one_of, two_of, three_of] = ["1", "2", "3"].map(|n| format!("flight-000000000{n}.jsonl"));
    let out_of_order = tar(&[(&one_of, &one), (&three_of, &one), (&two_of, &one)]);
    let found = found_in("it", Box::new(Cursor::new(out_of_order)), 2 * packed);
    assert_eq!((found.parts.len(), found.troubles.len()), (2, 1));
    // A gigabyte of nothing.
    let nothing = io::repeat(0).take(1 << 30);
    let head = odd(EntryType::Regular, b"flight-0000000001.jsonl", 1 << 30, b"");
    let bomb: Stream = Box::new(io::BufReader::new(Cursor::new(head).chain(nothing)));
    let found = found_in("it", bomb, 64 * 1024);
    assert_eq!(found.parts.len(), 0);
    assert!(found.troubles[0].to_string().contains("more than can be held"), "{:?}", found.troubles);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the first block of an archive becomes, reading comes to an end, and a trace is never taken for one.
    #[test]
    fn no_archive_makes_reading_fail_without_a_word(
        at in 0_usize..2 * BLOCK,
        with in prop::collection::vec(any::<u8>(), 1..16),
    ) {
        let text = recorded(3, 5);
        prop_assert!(!is_one(&text.as_bytes()[..BLOCK]));
        let mut archive = tar(&[("flight-0000000001.jsonl", text.as_bytes())]);
        archive.splice(at..at + with.len(), with);
        match Input::of("it", Cursor::new(archive)) {
            Ok(input) => prop_assert!(!records(input).0.is_empty()),
            Err(error) => prop_assert!(error.to_string().starts_with("it: "), "{}", error),
        }
    }
}
