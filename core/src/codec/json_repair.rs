//! Second chance for a line that is not JSON because of what stands inside its strings.

use super::json;

/// `line` with control characters in strings escaped (NUL as U+FFFD), those between values made blanks, and a backslash
/// that starts no escape doubled. What was valid JSON stays as it is.
pub(super) fn repaired(line: &str) -> String {
    let mut out = String::with_capacity(line.len() + line.len() / 8);
    let mut in_string = false;
    let mut copied = 0;
    let mut at = 0;
    let bytes = line.as_bytes();
    while let Some(byte) = bytes.get(at) {
        // All that is looked at is ASCII, so every cut is at the border of a character.
        let replacement = match byte {
            b'"' => {
                in_string = !in_string;
                None
            }
            b'\\' if in_string && is_escape(line, at) => {
                at += 1;
                None
            }
            b'\\' if in_string => Some("\\\\".to_owned()),
            0 if in_string => Some("\\ufffd".to_owned()),
            ..0x20 if in_string => Some(format!("\\u{byte:04x}")),
            ..0x20 => Some(" ".to_owned()),
            _ => None,
        };
        at += 1;
        if let Some(replacement) = replacement {
            out.push_str(&line[copied..at - 1]);
            out.push_str(&replacement);
            copied = at;
        }
    }
    out.push_str(line.get(copied..).unwrap_or_default());
    out
}

fn is_escape(line: &str, at: usize) -> bool {
    match line.as_bytes().get(at + 1) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => true,
        Some(b'u') => json::hex4(line, at).is_some(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn control_characters_and_false_escapes_do_not_cost_the_event() {
        let line = "\0{\"a\":\"x\0y\tz\\q \\u12 \\\\\",\u{1}\"b\":\"é\\\"\"}";
        let fixed = repaired(line);
        let value = json::parse(&fixed).expect("repaired");
        assert_eq!(value.text("a"), "x\u{fffd}y\tz\\q \\u12 \\");
        assert_eq!(value.text("b"), "é\"");
    }

    #[test]
    fn what_is_valid_stays_as_it_is() {
        let line = r#"{"a":"\n\u00e9\\ \"","b":[1,2.5e3,null]}"#;
        assert_eq!(repaired(line), line);
    }

    proptest! {
        #[test]
        fn a_text_with_raw_control_characters_comes_back(text in "[\u{1}-\u{1f} -~é😀]{0,40}") {
            let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
            let fixed = repaired(&format!("{{\"t\":\"{escaped}\"}}"));
            let value = json::parse(&fixed);
            prop_assert_eq!(value.map(|v| v.text("t").into_owned()), Some(text));
        }

        #[test]
        fn any_line_is_repaired_without_a_panic(line in "\\PC*|[\\x00-\\x7f]{0,60}") {
            let fixed = repaired(&line);
            prop_assert!(fixed.len() >= line.len());
        }
    }
}
