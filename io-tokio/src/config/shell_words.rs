//! Splits a text into words as a POSIX shell does, without expanding anything.

/// The words of `text`: blanks separate, single quotes keep everything, double quotes let `\` escape `"`, `\`, `$`,
/// a backquote and a line end, and outside of quotes `\` keeps the next character.
///
/// # Errors
/// Says in words which quote or escape is not finished.
pub fn split(text: &str) -> Result<Vec<String>, &'static str> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' | '\n' | '\r' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next().ok_or("a single quote is not closed")? {
                        '\'' => break,
                        kept => word.push(kept),
                    }
                }
            }
            '"' => double_quoted(&mut chars, word.get_or_insert_default())?,
            '\\' => match chars.next().ok_or("it ends in a backslash")? {
                '\n' => {}
                kept => word.get_or_insert_default().push(kept),
            },
            plain => word.get_or_insert_default().push(plain),
        }
    }
    words.extend(word);
    Ok(words)
}

fn double_quoted(chars: &mut std::str::Chars<'_>, word: &mut String) -> Result<(), &'static str> {
    const OPEN: &str = "a double quote is not closed";
    loop {
        match chars.next().ok_or(OPEN)? {
            '"' => return Ok(()),
            '\\' => match chars.next().ok_or(OPEN)? {
                '\n' => {}
                escaped @ ('"' | '\\' | '$' | '`') => word.push(escaped),
                other => word.extend(['\\', other]),
            },
            kept => word.push(kept),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_a_shell_does() {
        let words = |t| split(t).unwrap_or_else(|e| panic!("{t}: {e}"));
        assert_eq!(words("  --a  b\t'c d'\n"), ["--a", "b", "c d"]);
        assert_eq!(words(r#"--x="a b" 'it'\''s' """#), ["--x=a b", "it's", ""]);
        assert_eq!(words(r#"a\ b "\$x \n \"q\"""#), ["a b", r#"$x \n "q""#]);
        assert!(words("").is_empty());
    }

    #[test]
    fn cli_26_an_open_quote_is_an_error() {
        for bad in ["'a", "\"a", "a\\", "\"a\\"] {
            assert!(split(bad).is_err(), "{bad}");
        }
    }
}
