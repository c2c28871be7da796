//! Versions in what programs print.

use super::registry::Version;

/// A longer version line is cut.
pub const MAX_VERSION_LINE: usize = 200;

/// The first line that has a version in it, without blanks around it; else the whole text. Cut after
/// [`MAX_VERSION_LINE`] bytes.
pub fn version_line(output: &str) -> String {
    let line = output.lines().map(str::trim).find(|line| version(line).is_some());
    let shown = line.unwrap_or(output.trim()).chars();
    // It goes to the server and to terminals.
    let mut line: String = shown.map(|c| if c.is_control() { ' ' } else { c }).collect();
    line.truncate(line.floor_char_boundary(MAX_VERSION_LINE));
    line.trim().to_owned()
}

/// The first three numbers with points between.
pub fn version(text: &str) -> Option<Version> {
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        rest = &rest[start..];
        if let Some(found) = leading(rest) {
            return Some(found);
        }
        rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    }
    None
}

fn leading(text: &str) -> Option<Version> {
    let (first, text) = number(text)?;
    let (second, text) = number(text.strip_prefix('.')?)?;
    let (third, _) = number(text.strip_prefix('.')?)?;
    Some((first, second, third))
}

/// A number too large for its place is no version.
fn number(text: &str) -> Option<(u32, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    Some((digits.parse().ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_programs_print() {
        for (text, want) in [
            ("2.1.197 (Claude Code)", Some((2, 1, 197))),
            ("codex-cli 0.144.1", Some((0, 144, 1))),
            ("v1.2.3-beta.4", Some((1, 2, 3))),
            ("build 2026.5 of 1.0.0", Some((1, 0, 0))),
            ("1.2 and 3", None),
            ("99999999999.1.1 then 1.1.1", Some((1, 1, 1))),
            ("", None),
        ] {
            assert_eq!(version(text), want, "{text}");
        }
    }

    #[test]
    fn gh_2516_noise_before_the_version_is_passed_over() {
        assert_eq!(
            version_line("Active code page: 65001\r\n  2.1.0 (Claude Code)\r\n"),
            "2.1.0 (Claude Code)"
        );
        assert_eq!(version_line(" nightly \n"), "nightly");
        assert_eq!(version_line("\u{1b}[1m2.1.0\u{7}\n"), "[1m2.1.0", "nothing in it acts on a terminal");
        let long = "\u{e4}".repeat(MAX_VERSION_LINE);
        assert_eq!(version_line(&long).len(), MAX_VERSION_LINE);
    }
}
