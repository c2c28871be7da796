//! Cutting a stream of bytes into lines, with bounded memory.
//!
//! Bytes are cut first and decoded as whole lines, so that a character which was split over two reads stays whole.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Bytes of the longest line that is read, without its end.
pub const MAX_LINE: usize = 64 << 20;

/// Bytes of room that a splitter keeps between lines; what a longer line needed is given back.
const KEPT_ROOM: usize = 1 << 20;

/// What the splitter found.
#[derive(Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// A line without its end (`\n` or `\r\n`). Bytes that are no UTF-8 are U+FFFD. Empty lines are not reported.
    Text(Cow<'a, str>),
    /// A line that was too long, and of which nothing was kept.
    Oversized {
        /// Its length without the `\n`.
        bytes: u64,
    },
}

/// Cuts a byte stream into lines.
///
/// Its serialised form says what a reader needs that goes on at offset [`consumed`](Self::consumed) of the stream: the
/// start of a line that was not complete is not part of it, as it is read again.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LineSplitter {
    /// Bytes that a line may have.
    limit: usize,
    /// Offset in the stream behind the last byte that need not be read again.
    consumed: u64,
    /// Bytes of the over-long line that is being skipped.
    skipped: Option<u64>,
    /// The start of a line whose end has not come.
    #[serde(skip)]
    partial: Vec<u8>,
}

impl Default for LineSplitter {
    fn default() -> Self {
        Self::new(MAX_LINE)
    }
}

impl LineSplitter {
    /// A splitter at the start of a stream, for lines of at most `limit` bytes.
    pub const fn new(limit: usize) -> Self {
        Self { limit, consumed: 0, skipped: None, partial: Vec::new() }
    }

    /// Takes the next bytes of the stream and calls `each` for every line that they complete. Never holds more than
    /// the limit between two calls.
    pub fn push(&mut self, mut bytes: &[u8], mut each: impl FnMut(Line<'_>)) {
        while let Some(end) = bytes.iter().position(|b| *b == b'\n') {
            self.end_of_line(&bytes[..end], 1, &mut each);
            bytes = &bytes[end + 1..];
        }
        let length = bytes.len() as u64;
        if let Some(skipped) = &mut self.skipped {
            *skipped = skipped.saturating_add(length);
            self.consumed = self.consumed.saturating_add(length);
        } else if self.partial.len() + bytes.len() > self.limit {
            let all = self.partial.len() as u64 + length;
            self.partial = Vec::new();
            self.skipped = Some(all);
            self.consumed = self.consumed.saturating_add(all);
        } else {
            self.keep(bytes);
        }
    }

    /// The stream has ended: reports what is left as a line. The splitter is then as at the start of a line.
    pub fn finish(&mut self, mut each: impl FnMut(Line<'_>)) {
        self.end_of_line(&[], 0, &mut each);
    }

    /// Offset in the stream from which a reader has to go on if it has only the serialised form of this splitter: the
    /// end of the last complete line, or any place inside of a line that is being skipped.
    pub const fn consumed(&self) -> u64 {
        self.consumed
    }

    /// Bytes of memory that are held.
    pub fn held(&self) -> usize {
        self.partial.capacity()
    }

    fn end_of_line(&mut self, tail: &[u8], line_end: u64, each: &mut impl FnMut(Line<'_>)) {
        let length = tail.len() as u64;
        if let Some(skipped) = self.skipped.take() {
            self.consumed = self.consumed.saturating_add(length + line_end);
            each(Line::Oversized { bytes: skipped.saturating_add(length) });
            return;
        }
        let all = self.partial.len() + tail.len();
        self.consumed = self.consumed.saturating_add(all as u64 + line_end);
        if all > self.limit {
            self.partial = Vec::new();
            each(Line::Oversized { bytes: all as u64 });
        } else if self.partial.is_empty() {
            report(tail, each);
        } else {
            self.keep(tail);
            let mut line = std::mem::take(&mut self.partial);
            report(&line, each);
            if line.capacity() <= KEPT_ROOM {
                line.clear();
                self.partial = line;
            }
        }
    }

    /// Appends to the partial line; room grows by doubling, but never over the limit.
    fn keep(&mut self, bytes: &[u8]) {
        let need = self.partial.len() + bytes.len();
        if need > self.partial.capacity() {
            let room = self.partial.capacity().saturating_mul(2).min(self.limit).max(need);
            self.partial.reserve_exact(room - self.partial.len());
        }
        self.partial.extend_from_slice(bytes);
    }
}

fn report(line: &[u8], each: &mut impl FnMut(Line<'_>)) {
    let line = line.trim_ascii();
    if !line.is_empty() {
        each(Line::Text(String::from_utf8_lossy(line)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split(limit: usize, chunks: &[&[u8]]) -> (Vec<String>, LineSplitter) {
        let mut splitter = LineSplitter::new(limit);
        let mut found = Vec::new();
        let mut note = |line: Line<'_>| {
            found.push(match line {
                Line::Text(text) => text.into_owned(),
                Line::Oversized { bytes } => format!("<{bytes}>"),
            });
        };
        for chunk in chunks {
            splitter.push(chunk, &mut note);
        }
        splitter.finish(&mut note);
        (found, splitter)
    }

    #[test]
    fn crlf_empty_lines_and_a_last_line_without_an_end() {
        let (found, splitter) = split(100, &[b"a\r\n\n  \nb", b"c\n", b"last"]);
        assert_eq!(found, ["a", "bc", "last"]);
        assert_eq!(splitter.consumed(), 14);
    }

    #[test]
    fn bug_33_utf8_split_over_reads_stays_whole_and_a_bad_byte_harms_its_line_only() {
        let text = "é你🙂".repeat(50);
        for size in [1, 2, 3, 7] {
            let chunks: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
            assert_eq!(split(10_000, &chunks).0, [text.as_str()]);
        }
        assert_eq!(
            split(100, &[b"x\xffy\n", b"\xe4\xbd", b"\xa0\nhalf\xf0\x9f"]).0,
            ["x\u{fffd}y", "你", "half\u{fffd}"]
        );
    }

    #[test]
    fn bug_30_a_line_over_the_limit_is_skipped_reported_once_and_the_next_ones_are_read() {
        assert_eq!(split(4, &[b"1234\n12345\nok\n"]).0, ["1234", "<5>", "ok"]);
        assert_eq!(split(4, &[b"123", b"456", b"7890", b"1\nok\n123456"]).0, ["<11>", "ok", "<6>"]);
    }

    #[test]
    fn a_reader_that_goes_on_from_the_serialised_form_sees_the_same_lines() {
        let stream = b"one\ntwo\nthis one is far too long\nthree\n";
        let whole = split(8, &[stream]).0;
        for cut in 0..=stream.len() {
            let mut found = Vec::new();
            let mut note = |line: Line<'_>| {
                found.push(match line {
                    Line::Text(text) => text.into_owned(),
                    Line::Oversized { bytes } => format!("<{bytes}>"),
                });
            };
            let mut first = LineSplitter::new(8);
            first.push(&stream[..cut], &mut note);
            let state = serde_json::to_string(&first).expect("state is plain data");
            let mut second: LineSplitter = serde_json::from_str(&state).expect("state is read back");
            let from = usize::try_from(second.consumed()).expect("small");
            assert!(from <= cut);
            second.push(&stream[from..], &mut note);
            second.finish(&mut note);
            assert_eq!(found, whole, "cut at {cut}");
        }
    }

    proptest! {
        #[test]
        fn every_chunking_gives_the_same_lines_in_bounded_memory(
            bytes in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), Just(0xe9), any::<u8>()], 0..300),
            sizes in proptest::collection::vec(1usize..20, 1..20),
        ) {
            let whole = split(16, &[&bytes]).0;
            let mut splitter = LineSplitter::new(16);
            let mut found = Vec::new();
            let mut note = |line: Line<'_>| found.push(match line {
                Line::Text(text) => text.into_owned(),
                Line::Oversized { bytes } => format!("<{bytes}>"),
            });
            let mut rest = bytes.as_slice();
            for size in sizes.iter().cycle() {
                if rest.is_empty() { break; }
                let (chunk, after) = rest.split_at((*size).min(rest.len()));
                splitter.push(chunk, &mut note);
                prop_assert!(splitter.held() <= 16);
                rest = after;
            }
            splitter.finish(&mut note);
            prop_assert_eq!(splitter.consumed(), bytes.len() as u64);
            prop_assert_eq!(found, whole);
        }
    }
}
