//! However a stream is cut, the splitter finds the same lines as a plain split, within its memory.
//!
//! The first byte is the longest line, the second one the size of the pieces.
#![no_main]

use libfuzzer_sys::fuzz_target;
use longshore_core::codec::lines::{Line, LineSplitter};

fn found(line: Line<'_>) -> Result<String, u64> {
    match line {
        Line::Text(text) => Ok(text.into_owned()),
        Line::Oversized { bytes } => Err(bytes),
    }
}

fuzz_target!(|data: &[u8]| {
    let [limit, size, stream @ ..] = data else { return };
    let limit = usize::from(*limit);

    let expected: Vec<_> = stream
        .split(|byte| *byte == b'\n')
        .filter_map(|line| {
            if line.len() > limit {
                return Some(Err(line.len() as u64));
            }
            let text = line.trim_ascii();
            (!text.is_empty()).then(|| Ok(String::from_utf8_lossy(text).into_owned()))
        })
        .collect();

    let (mut splitter, mut lines) = (LineSplitter::new(limit), Vec::new());
    for piece in stream.chunks(usize::from(*size).max(1)) {
        splitter.push(piece, |line| lines.push(found(line)));
        assert!(splitter.held() <= limit, "{} bytes are held for lines of {limit}", splitter.held());
    }
    splitter.finish(|line| lines.push(found(line)));
    assert_eq!(lines, expected);
    assert_eq!(splitter.consumed(), stream.len() as u64);
});
