//! Texts that can be shown: what is in a trace may come from a server, and must not paint where it has no business.

use std::borrow::Cow;
use std::fmt::{self, Write};

/// Characters of one text that are kept.
const MOST_CHARS: usize = 400;

/// A text without control characters and without characters that change the direction of writing: those are spelled out, as in
/// `\u{202e}`. Longer texts than 400 characters end with an ellipsis.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text(Box<str>);

impl Text {
    /// Makes any text fit to be shown.
    pub fn new<'a>(text: impl Into<Cow<'a, str>>) -> Self {
        let text: Cow<'a, str> = text.into();
        if text.len() <= MOST_CHARS && !text.chars().any(is_hidden) {
            return Self(text.into());
        }
        let mut shown = String::with_capacity(text.len().min(2 * MOST_CHARS));
        for (i, c) in text.chars().enumerate() {
            if i == MOST_CHARS {
                shown.push('…');
                break;
            }
            if is_hidden(c) {
                write!(shown, "\\u{{{:x}}}", u32::from(c)).expect("a string takes everything");
            } else {
                shown.push(c);
            }
        }
        Self(shown.into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

/// A text as text in HTML or XML, also in an attribute between quotes.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// Whether a character is better spelled out: it is not seen, changes how its neighbours are seen, or is not allowed in XML.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{fffe}'
                | '\u{ffff}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Ids that a hostile server might give.
    pub(in crate::trace::render) const HOSTILE: [&str; 9] = [
        "<script>alert(1)</script>",
        "</script><script>alert(1)</script>",
        "<!--<script>",
        "\"onload=\"alert(1)",
        "' onload='alert(1)",
        "]]><x/>",
        "&lt;&amp;&#0;{{data}}",
        "gpj.\u{202e}exe\u{2028}\u{2029}",
        "nul\0 esc\x1b[31m bell\x07 \u{fffe}",
    ];

    proptest! {
        #[test]
        fn nothing_hidden_stays_and_what_is_plain_stays_as_it_is(text in ".{0,500}") {
            let shown = Text::new(text.as_str());
            prop_assert!(!shown.as_str().chars().any(is_hidden));
            if shown.as_str().chars().count() <= MOST_CHARS {
                prop_assert_eq!(&Text::new(shown.as_str()), &shown, "once is enough");
            }
            if !text.chars().any(is_hidden) && text.chars().count() <= MOST_CHARS {
                prop_assert_eq!(shown.as_str(), text.as_str());
            }
        }
    }

    #[test]
    fn direction_and_control_characters_are_spelled_out() {
        assert_eq!(Text::from("a\u{202e}b\0").as_str(), "a\\u{202e}b\\u{0}");
    }
}
