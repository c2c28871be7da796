//! Directories of a flight recorder in which something is that is no segment.

use super::tests::{gzip, recorded, records};
use super::*;
use rustix::fs::{CWD, Mode, mkfifoat};
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use tempfile::TempDir;

/// A pipe is not waited for: nobody writes to it.
#[test]
fn what_is_called_as_a_segment_and_is_no_file_is_named_and_passed_over() {
    let dir = TempDir::new().expect("temp");
    let of = |n: u64| dir.path().join(format!("flight-000000000{n}.jsonl"));
    mkfifoat(CWD, of(1), Mode::RUSR | Mode::WUSR).expect("makes");
    let refused = Input::open(Path::new("."), dir.path()).expect_err("no trace").to_string();
    let why = "the directory has no segment of a flight recorder that can be read: flight-0000000001.jsonl is a named pipe and no file";
    assert!(refused.contains(why), "{refused}");

    fs::write(of(2), recorded(3, 20)).expect("writes");
    let (whole, _) = records(Input::open(&of(2), dir.path()).expect("a trace"));
    fs::create_dir(of(3)).expect("makes");
    let _socket = UnixListener::bind(of(4)).expect("binds");
    symlink("nowhere", of(5)).expect("links");
    symlink(of(1), of(6)).expect("links");
    // Of this one a copy can be read.
    fs::create_dir(of(8)).expect("makes");
    let packed = dir.path().join("flight-0000000008.jsonl.gz");
    fs::write(&packed, gzip(recorded(4, 20).as_bytes())).expect("writes");
    let (copy, _) = records(Input::open(&packed, dir.path()).expect("a trace"));
    let (all, said) = records(Input::open(Path::new("."), dir.path()).expect("a trace"));
    assert!(all == [whole, copy].concat(), "{said}");
    let named: Vec<&str> =
        said.lines().filter_map(|line| line.strip_prefix("warning: .: ")?.split(';').next()).collect();
    let wanted = [
        "flight-0000000001.jsonl is a named pipe and no file",
        "flight-0000000003.jsonl is a directory and no file",
        "flight-0000000004.jsonl is a socket and no file",
        "flight-0000000005.jsonl is a link that leads to no file",
        "flight-0000000006.jsonl is a named pipe and no file",
        "flight-0000000007.jsonl is not there",
    ];
    assert_eq!(named, wanted, "{said}");
}
