//! Text of a trace on its way to a terminal: nothing in it acts there. Traces come from elsewhere, and what is wrong with a damaged one is
//! told in its own words.

use std::io::{self, Write};

/// Passes text on, with control characters and those that turn the direction of writing as `\u{…}`. Each write is text of its own, as
/// [`write!`] gives it.
#[derive(Debug)]
pub(super) struct Plain<W>(pub(super) W);

fn acts(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\t'))
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}')
}

/// The same for JSON, which has escapes of its own.
pub(super) fn json(value: &serde_json::Value) -> String {
    // All that act have four digits.
    let one = |c: char| if acts(c) { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() };
    value.to_string().chars().map(one).collect()
}

impl<W: Write> Write for Plain<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        let mut rest = &*text;
        while let Some(at) = rest.find(acts) {
            let (before, from) = rest.split_at(at);
            let mut chars = from.chars();
            let c = chars.next().unwrap_or_default();
            write!(self.0, "{before}{}", c.escape_unicode())?;
            rest = chars.as_str();
        }
        self.0.write_all(rest.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_acts_on_a_terminal_gets_through() {
        let mut out = Vec::new();
        let hostile = "\u{1b}[31m\u{7}\u{202e}x\u{9b}";
        writeln!(Plain(&mut out), "a\tb {hostile}").expect("written");
        assert_eq!(String::from_utf8(out).expect("text"), "a\tb \\u{1b}[31m\\u{7}\\u{202e}x\\u{9b}\n");
    }
}
