//! Traces that a command has written.

use flate2::read::MultiGzDecoder;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

/// All bytes of a trace, unpacked where its name says that it is compressed.
pub fn trace_text(path: &Path) -> Vec<u8> {
    if path.extension().is_none_or(|end| end != "gz") {
        return fs::read(path).expect("a trace");
    }
    let mut unpacked = Vec::new();
    let mut packed = MultiGzDecoder::new(File::open(path).expect("a trace"));
    packed.read_to_end(&mut unpacked).expect("gzip");
    unpacked
}
