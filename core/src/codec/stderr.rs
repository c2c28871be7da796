//! The end of what an agent wrote to stderr.

use serde::{Deserialize, Serialize};

/// Bytes of stderr that are kept.
pub const MAX_TAIL: usize = 2048;

/// The last bytes of a stream.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StderrTail(Vec<u8>);

impl StderrTail {
    /// Takes the next bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        let bytes = &bytes[bytes.len().saturating_sub(MAX_TAIL)..];
        let too_many = (self.0.len() + bytes.len()).saturating_sub(MAX_TAIL);
        self.0.drain(..too_many);
        self.0.extend_from_slice(bytes);
    }

    /// What is kept as text of at most [`MAX_TAIL`] bytes: half a character at the start is dropped, other bytes that are
    /// no text are U+FFFD, and so are NULs.
    pub fn text(&self) -> String {
        let half = self.0.iter().take(3).take_while(|b| **b & 0xc0 == 0x80).count();
        let text = String::from_utf8_lossy(&self.0[half..]).replace('\0', "\u{fffd}");
        let text = text.trim();
        text[text.ceil_char_boundary(text.len().saturating_sub(MAX_TAIL))..].to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn inv_agents_26_12_the_tail_is_bounded_valid_and_the_same_for_every_chunking() {
        let mut tail = StderrTail::default();
        tail.push(b"first\n");
        tail.push("é".repeat(2000).as_bytes());
        tail.push(b"x\n");
        let text = tail.text();
        assert!(text.len() <= MAX_TAIL && text.ends_with("éx") && text.starts_with('é'), "{text}");
        tail.push(b"\0\xff");
        assert!(tail.text().ends_with("x\n\u{fffd}\u{fffd}"));
    }

    proptest! {
        #[test]
        fn bug_33_random_bytes_on_stderr_are_bounded_text(
            chunks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..900), 0..8)
        ) {
            let mut pushed = StderrTail::default();
            for chunk in &chunks {
                pushed.push(chunk);
            }
            let mut whole = StderrTail::default();
            whole.push(&chunks.concat());
            prop_assert_eq!(pushed.text(), whole.text());
            prop_assert!(pushed.text().len() <= MAX_TAIL);
        }
    }
}
