//! The head of a `SKILL.md`: its `name` must be the name of the folder, and every other byte stays as it is.
//!
//! It is edited line by line: no YAML reader is needed to find a key that stands at the beginning of a line, and one
//! would not give back comments, order and line ends.

use std::fmt::Write;

/// The text of `SKILL.md` with `name: <slug>`. `description` is used only where there is no head yet.
pub(crate) fn with_name(content: &str, slug: &str, description: &str) -> String {
    let Some((head, body, newline)) = split(content) else {
        return synthesised(content, slug, description);
    };
    let lines: Vec<&str> = head.split_inclusive('\n').collect();
    let names = entries(&lines, "name");
    let first = lines.iter().find(|line| is_content(line));
    // A mapping in braces, or the same key twice: nothing that lines could tell apart.
    if names.len() > 1 || first.is_some_and(|line| line.starts_with(['{', '['])) {
        return synthesised(body, slug, description);
    }
    let mut text = format!("---{newline}");
    let entry = names.first().copied().unwrap_or((0, 0));
    let (before, after) = (&lines[..entry.0], &lines[entry.1..]);
    let anchor = lines[entry.0..entry.1].first().and_then(|line| anchored(line));
    for line in before {
        text.push_str(&unaliased(line, anchor));
    }
    let _ = write!(text, "name: {slug}{newline}");
    for line in after {
        text.push_str(&unaliased(line, anchor));
    }
    text.push_str(&content[newline.len() + 3 + head.len()..]);
    text
}

/// Whether the head hides the skill from the model.
pub(crate) fn is_hidden(content: &str) -> bool {
    let Some((head, ..)) = split(content) else { return false };
    let lines: Vec<&str> = head.split_inclusive('\n').collect();
    entries(&lines, "disable-model-invocation").first().is_some_and(|(at, _)| {
        let value = lines[*at].split_once(':').map_or("", |(_, value)| value);
        let value = value.split(" #").next().unwrap_or("").trim().trim_matches(['"', '\'']);
        value.eq_ignore_ascii_case("true")
    })
}

/// The text of a key, if it is there once: plain, in quotes, or a block over several lines, which become one.
pub(crate) fn text_of(content: &str, key: &str) -> Option<String> {
    let (head, ..) = split(content)?;
    let lines: Vec<&str> = head.split_inclusive('\n').collect();
    let &[(start, end)] = entries(&lines, key).as_slice() else { return None };
    let first = lines[start].split_once(':')?.1.trim();
    let rest = lines[start + 1..end].iter().map(|line| line.trim()).filter(|line| !line.is_empty());
    let block = first.starts_with(['|', '>']);
    let words: Vec<&str> = (!block && !first.is_empty()).then_some(first).into_iter().chain(rest).collect();
    let text = words.join(" ");
    let quoted = |mark: char| {
        text.strip_prefix(mark).and_then(|text| text.strip_suffix(mark)).filter(|_| text.len() > 1)
    };
    Some(if let Some(inside) = quoted('"') {
        // The escapes of YAML that people write are those of JSON.
        serde_json::from_str(&text).unwrap_or_else(|_| inside.to_owned())
    } else if let Some(inside) = quoted('\'') {
        inside.replace("''", "'")
    } else if block {
        text
    } else {
        text.split(" #").next().unwrap_or_default().trim_end().to_owned()
    })
}

/// Head without its delimiters, body, and the line end in use; `None` without a closed head.
fn split(content: &str) -> Option<(&str, &str, &str)> {
    let newline = if content.starts_with("---\r\n") {
        "\r\n"
    } else if content.starts_with("---\n") {
        "\n"
    } else {
        return None;
    };
    let rest = &content[3 + newline.len()..];
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        let bare = line.strip_suffix('\n').unwrap_or(line);
        if bare.strip_suffix('\r').unwrap_or(bare) == "---" {
            return Some((&rest[..at], &rest[at + line.len()..], newline));
        }
        at += line.len();
    }
    None
}

/// The line ranges of the entries with this key: from the key to the next line that begins another one.
fn entries(lines: &[&str], key: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        if key_of(line) != Some(key) {
            continue;
        }
        let mut end = at + 1;
        let mut last = end;
        while end < lines.len() && continues(lines[end]) {
            end += 1;
            // Blank lines and comments at the end belong to what follows.
            if is_content(lines[end - 1]) {
                last = end;
            }
        }
        found.push((at, last));
    }
    found
}

fn is_content(line: &str) -> bool {
    let text = line.trim();
    !text.is_empty() && !text.starts_with('#')
}

fn continues(line: &str) -> bool {
    !is_content(line) || line.starts_with([' ', '\t'])
}

fn key_of(line: &str) -> Option<&str> {
    let (key, rest) = line.split_once(':')?;
    if key.starts_with([' ', '\t', '#', '-'])
        || !(rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']))
    {
        return None;
    }
    let key = key.trim_end();
    Some(
        key.strip_prefix('"')
            .and_then(|k| k.strip_suffix('"'))
            .or_else(|| key.strip_prefix('\'')?.strip_suffix('\''))
            .unwrap_or(key),
    )
}

/// The anchor of a value on its key's line, with the value.
fn anchored(line: &str) -> Option<(&str, &str)> {
    let value = line.split_once(':')?.1.trim();
    let (anchor, value) =
        value.strip_prefix('&')?.split_once(char::is_whitespace).unwrap_or((&value[1..], "null"));
    Some((anchor, value.trim()))
}

/// A line in which an alias of the anchor that goes away is its value.
fn unaliased(line: &str, anchor: Option<(&str, &str)>) -> String {
    let Some((anchor, value)) = anchor else { return line.to_owned() };
    let alias = format!("*{anchor}");
    let Some((before, after)) = line.split_once(&alias) else { return line.to_owned() };
    let begins = before.ends_with([' ', '\t', '[', ',', '{']);
    let ends = after.is_empty() || after.starts_with([' ', '\t', '\r', '\n', ']', ',', '}']);
    if begins && ends {
        format!("{before}{value}{}", unaliased(after, Some((anchor, value))))
    } else {
        line.to_owned()
    }
}

fn synthesised(body: &str, slug: &str, description: &str) -> String {
    let description = description.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut text = format!("---\nname: {slug}\n");
    if !description.is_empty() {
        let _ = writeln!(text, "description: \"{}\"", description.replace('\\', "\\\\").replace('"', "\\\""));
    }
    text.push_str("---\n\n");
    text.push_str(body);
    text
}

#[cfg(test)]
mod tests {
    use super::with_name;

    #[test]
    fn skl_5_a_text_without_head_gets_one() {
        assert_eq!(with_name("Do it.", "s", ""), "---\nname: s\n---\n\nDo it.");
        assert_eq!(
            with_name("", "s", "a \"b\"\nc\\d"),
            "---\nname: s\ndescription: \"a \\\"b\\\" c\\\\d\"\n---\n\n"
        );
        assert_eq!(
            with_name("---\nname: x\n", "s", ""),
            "---\nname: s\n---\n\n---\nname: x\n",
            "never closed"
        );
        assert_eq!(with_name("---\nname: x\n----\n--- x\n", "s", "").find("name: s"), Some(4));
    }

    #[test]
    fn skl_5_only_the_name_changes_whatever_its_form_and_line_end() {
        for newline in ["\n", "\r\n"] {
            for old in [
                "name: x",
                "name: \"x y\"",
                "'name': x",
                "\"name\" : x",
                "name:",
                "name: |\n  a\n  b",
                "name: >-\n\n  a",
            ] {
                let old = old.replace('\n', newline);
                let text = format!(
                    "---{newline}# c{newline}a: 1{newline}{old}{newline}# d{newline}b: [2]{newline}---{newline}body"
                );
                let want = format!(
                    "---{newline}# c{newline}a: 1{newline}name: s{newline}# d{newline}b: [2]{newline}---{newline}body"
                );
                assert_eq!(with_name(&text, "s", "unused"), want, "{old:?}");
            }
        }
    }

    #[test]
    fn skl_5_a_head_without_name_gets_it_first_and_a_nested_one_is_none() {
        let text = "---\ndescription: d\nmeta:\n  name: inner\n---";
        assert_eq!(with_name(text, "s", ""), "---\nname: s\ndescription: d\nmeta:\n  name: inner\n---");
        assert_eq!(
            with_name("---\nnamed: d\nname:x\n---\n", "s", ""),
            "---\nname: s\nnamed: d\nname:x\n---\n"
        );
    }

    #[test]
    fn skl_6_an_anchor_on_the_name_is_written_out_where_it_was_used() {
        let text = "---\nname: &t true\ndisable-model-invocation: *t\nother: [*t, *tt]\n---\n";
        let got = with_name(text, "s", "");
        assert_eq!(got, "---\nname: s\ndisable-model-invocation: true\nother: [true, *tt]\n---\n");
        assert!(super::is_hidden(&got));
        assert!(!super::is_hidden("---\ndisable-model-invocation: false\n---\n"));
        assert!(!super::is_hidden("disable-model-invocation: true"));
    }

    #[test]
    fn skl_5_what_lines_cannot_tell_apart_is_made_anew() {
        assert_eq!(
            with_name("---\n{name: x, a: b}\n---\nbody", "s", "d"),
            "---\nname: s\ndescription: \"d\"\n---\n\nbody"
        );
        assert_eq!(with_name("---\nname: x\nname: y\n---\nbody", "s", ""), "---\nname: s\n---\n\nbody");
    }
}
