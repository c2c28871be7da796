//! What the commands about traces are given.

use flate2::Compression;
use flate2::write::GzEncoder;
use longshore_tests::Home;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use std::fs;
use std::io::Write;
use std::path::PathBuf;

/// A home for commands that need no daemon and no server.
pub(crate) fn alone() -> Home {
    Home::at(env!("CARGO_BIN_EXE_longshore-under-test"), "http://127.0.0.1:9", "mul_none")
}

/// A trace of a whole run.
pub(crate) fn whole() -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("traces/demo/six-tasks.jsonl");
    fs::read_to_string(path).expect("a trace")
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    packer.write_all(bytes).expect("packs");
    packer.finish().expect("packs")
}

pub(crate) fn zstd(bytes: &[u8]) -> Vec<u8> {
    compress_to_vec(bytes, CompressionLevel::Fastest)
}

/// What is in the home's directory.
pub(crate) fn names(home: &Home) -> Vec<String> {
    let listed = fs::read_dir(home.dir()).expect("lists");
    let mut names: Vec<String> =
        listed.map(|entry| entry.expect("an entry").file_name().display().to_string()).collect();
    names.sort();
    names
}
