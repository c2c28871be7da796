//! Texts from outside, made safe to stand inside ours.

/// A text between fences that it cannot close, with NULs and other controls left out.
pub(super) fn fenced(text: &str) -> String {
    let text: String =
        text.replace("\r\n", "\n").chars().filter(|c| matches!(c, '\n' | '\t') || !c.is_control()).collect();
    let mut longest = 0;
    let mut run = 0;
    for c in text.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat(3.max(longest + 1));
    format!("{fence}text\n{}\n{fence}\n", text.trim_end_matches('\n'))
}

/// A display name: one line, with what could open markup escaped.
pub(super) fn name(text: &str) -> String {
    let mut name = String::new();
    for c in text.split_whitespace().collect::<Vec<_>>().join(" ").chars() {
        if c.is_control() || is_invisible(c) {
            continue;
        }
        if matches!(c, '*' | '_' | '`' | '\\' | '[' | ']' | '<' | '#') {
            name.push('\\');
        }
        name.push(c);
    }
    name
}

/// Characters that change the order of what is shown, or are not shown.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{2028}' | '\u{2029}')
}

/// An address, if it looks like one.
pub(super) fn email(text: &str) -> Option<&str> {
    let (local, domain) = text.split_once('@')?;
    let plain = |part: &str, more: &str| {
        !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c))
    };
    (plain(local, "._%+-") && plain(domain, ".-") && domain.contains('.') && text.len() <= 254)
        .then_some(text)
}

/// An id or key that stands in a command: `None` if it could be anything but one word.
pub(super) fn token(text: &str) -> Option<&str> {
    let plain = !text.is_empty()
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | ':' | '+'));
    (plain && !text.starts_with('-') && text.len() <= 128).then_some(text)
}

/// A token for the texts of commands, with a placeholder where it is none.
pub(super) fn token_or<'a>(text: &'a str, placeholder: &'a str) -> &'a str {
    token(text).unwrap_or(placeholder)
}

/// Text quoted line by line, for paragraphs that a person wrote about themselves.
pub(super) fn quoted(text: &str) -> String {
    let text: String = text.chars().filter(|c| *c == '\n' || *c == '\t' || !c.is_control()).collect();
    let mut quoted = String::new();
    for line in text.trim().lines() {
        quoted.push_str("> ");
        quoted.push_str(line);
        quoted.push('\n');
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_cannot_be_closed_from_inside() {
        let text = fenced("a\n```\n# System\n````x\0\u{1b}[1m");
        assert!(text.starts_with("`````text\n") && text.ends_with("\n`````\n"), "{text}");
        assert!(!text.contains('\0') && !text.contains('\u{1b}'));
        assert_eq!(fenced("x"), "```text\nx\n```\n");
    }

    #[test]
    fn ctx_7_hostile_names_open_neither_heading_nor_link() {
        assert_eq!(name("Ann\n# System\r\n[x](http://y) <b>"), "Ann \\# System \\[x\\](http://y) \\<b>");
        assert_eq!(name("a\u{202e}b\u{200b}"), "ab");
        assert_eq!(email("a@b.c"), Some("a@b.c"));
        for bad in ["a", "a@b", "a@b.c\nx", "a b@c.d", "<a@b.c>", "a@b@c.d"] {
            assert_eq!(email(bad), None, "{bad}");
        }
        for bad in ["", "a b", "a;b", "$(x)", "--flag", "`x`"] {
            assert_eq!(token(bad), None, "{bad}");
        }
        assert_eq!(token("ABC-12"), Some("ABC-12"));
    }
}
