//! Tolerant reading of JSON text that a program on the other side of a pipe wrote.
//!
//! A strict parse into a tree refuses lone surrogates and deep nesting, and so drops an event whole. Here a value stays
//! the text it was ([`Json`]); only what is asked for is looked at, one level at a time, and a field of the wrong type is
//! as if it were not there. Nothing is recursive, nothing is stored per field.

use super::json_repair;
use serde::de::{Deserialize, Deserializer as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// Stands in for what cannot be a character of a text: a lone surrogate, a NUL, a bad byte.
const REPLACEMENT: char = char::REPLACEMENT_CHARACTER;

/// One JSON value as the text it was written as, known to be well formed.
#[derive(Clone, Copy, Debug)]
pub struct Json<'a>(&'a RawValue);

impl<'a> Json<'a> {
    /// The text, without white space around it.
    pub fn raw(self) -> &'a str {
        self.0.get()
    }

    /// Whether this is an object.
    pub fn is_object(self) -> bool {
        self.starts_with(b'{')
    }

    /// Whether this is an array.
    pub fn is_array(self) -> bool {
        self.starts_with(b'[')
    }

    /// Whether this is `null`.
    pub fn is_null(self) -> bool {
        self.starts_with(b'n')
    }

    /// Whether this is a string.
    pub fn is_string(self) -> bool {
        self.starts_with(b'"')
    }

    /// The text of a string; `None` for another type. Lone surrogates and NUL become U+FFFD. Borrows if nothing had to
    /// be unescaped.
    pub fn string(self) -> Option<Cow<'a, str>> {
        let inside = self.raw().strip_prefix('"')?.strip_suffix('"')?;
        Some(if inside.contains('\\') { Cow::Owned(unescape(inside)) } else { Cow::Borrowed(inside) })
    }

    /// A boolean; `None` for another type.
    pub fn bool(self) -> Option<bool> {
        match self.raw() {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }

    /// A whole number; `None` for another type. Negative numbers are 0, fractions are cut off (`3.0` is 3), what is too
    /// large is `u64::MAX`.
    pub fn u64(self) -> Option<u64> {
        let raw = self.raw();
        if let Ok(n) = raw.parse::<u64>() {
            return Some(n);
        }
        if !raw.starts_with(|c: char| c == '-' || c.is_ascii_digit()) {
            return None;
        }
        #[expect(clippy::cast_sign_loss, reason = "a cast from float saturates, which is what is promised")]
        raw.parse::<f64>().ok().map(|n| n as u64)
    }

    /// Calls `each` with name and value of every field, in order; does nothing if this is no object. The name is the
    /// JSON string it was written as.
    pub fn each_field(self, mut each: impl FnMut(Json<'a>, Json<'a>)) {
        if self.is_object() {
            let mut text = deserializer(self.raw());
            // The text is known to be well formed, and the visitor takes every entry: this cannot fail.
            let _ = text.deserialize_map(Fields(&mut each));
        }
    }

    /// Calls `each` with every element, in order; does nothing if this is no array.
    pub fn each_item(self, mut each: impl FnMut(Json<'a>)) {
        if self.is_array() {
            let mut text = deserializer(self.raw());
            // As above.
            let _ = text.deserialize_seq(Items(&mut each));
        }
    }

    /// The fields called `names`, in one pass; of a name that occurs twice, the last. All `None` if this is no object.
    pub fn fields<const N: usize>(self, names: [&str; N]) -> [Option<Json<'a>>; N] {
        let mut found = [None; N];
        self.each_field(|name, value| {
            if let Some(name) = name.string()
                && let Some(i) = names.iter().position(|wanted| *wanted == name)
            {
                found[i] = Some(value);
            }
        });
        found
    }

    /// The field called `name`; of two, the last.
    pub fn field(self, name: &str) -> Option<Json<'a>> {
        let [value] = self.fields([name]);
        value
    }

    /// The text of the string field called `name`; empty if there is none.
    pub fn text(self, name: &str) -> Cow<'a, str> {
        self.field(name).and_then(Self::string).unwrap_or_default()
    }

    fn starts_with(self, byte: u8) -> bool {
        self.raw().as_bytes().first() == Some(&byte)
    }
}

/// What one line of text holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineContent {
    /// How many JSON values were found on it.
    pub values: usize,
    /// Whether something that is not JSON followed them, or stood there alone.
    pub noise: bool,
}

/// Calls `each` with every JSON value on `line` (a second one behind the first is found too), up to the first thing that
/// is none. A byte-order mark is passed over. A line that is not JSON as it stands is read again with control
/// characters and false escapes in its strings repaired.
pub fn values_of_line(line: &str, mut each: impl FnMut(Json<'_>)) -> LineContent {
    let line = line.trim_start_matches('\u{feff}');
    let (first, rest) = values(line, &mut each);
    if rest.is_empty() {
        return LineContent { values: first, noise: false };
    }
    let repaired = json_repair::repaired(rest);
    let (second, rest) = values(&repaired, &mut each);
    LineContent { values: first + second, noise: !rest.is_empty() }
}

/// Reads values from the start of `text`; gives their number and what is left.
fn values<'a>(text: &'a str, each: &mut impl FnMut(Json<'a>)) -> (usize, &'a str) {
    let mut stream = deserializer(text).into_iter::<&RawValue>();
    let (mut count, mut read) = (0, 0);
    while let Some(Ok(value)) = stream.next() {
        count += 1;
        read = stream.byte_offset();
        each(Json(value));
    }
    (count, text.get(read..).unwrap_or_default().trim())
}

/// `raw` with the escapes that a strict reader or a database refuses (`\u0000`, lone surrogates) as `\ufffd`. `raw` has
/// to be well formed JSON, and so is what comes out; it borrows if there was nothing to replace.
pub fn without_forbidden_escapes(raw: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut copied = 0;
    let mut at = 0;
    while let Some(found) = raw.get(at..).and_then(|rest| rest.find('\\')) {
        let start = at + found;
        let (end, ch) = escape_at(raw, start);
        if matches!(ch, None | Some('\0' | REPLACEMENT)) {
            out.push_str(&raw[copied..start]);
            out.push_str("\\ufffd");
            copied = end;
        }
        at = end;
    }
    if copied == 0 {
        return Cow::Borrowed(raw);
    }
    out.push_str(&raw[copied..]);
    Cow::Owned(out)
}

/// `text` as a JSON string, with nothing in it that any reader could take for the end of a line (U+2028 and U+2029 are
/// that to some).
pub fn quoted(text: &str) -> String {
    one_line(serde_json::to_string(text).expect("every text can be a JSON string"))
}

/// `raw`, which has to be well formed JSON, with nothing in it that any reader could take for the end of a line.
pub fn one_line(raw: String) -> String {
    if !raw.contains(['\r', '\n', '\u{2028}', '\u{2029}']) {
        return raw;
    }
    // Carriage returns and line feeds stand only between values, the two separators only inside strings.
    raw.replace(['\r', '\n'], " ").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

fn deserializer(text: &str) -> serde_json::Deserializer<serde_json::de::StrRead<'_>> {
    serde_json::Deserializer::from_str(text)
}

fn unescape(inside: &str) -> String {
    let mut out = String::with_capacity(inside.len());
    let mut at = 0;
    while let Some(found) = inside.get(at..).and_then(|rest| rest.find('\\')) {
        let start = at + found;
        out.push_str(&inside[at..start]);
        let (end, ch) = escape_at(inside, start);
        out.push(ch.filter(|ch| *ch != '\0').unwrap_or(REPLACEMENT));
        at = end;
    }
    out.push_str(inside.get(at..).unwrap_or_default());
    out
}

/// Reads the escape that starts with the backslash at `start`: where it ends, and its character (`None` for a lone
/// surrogate). Both halves of a pair are one escape.
fn escape_at(text: &str, start: usize) -> (usize, Option<char>) {
    let simple = |ch| (start + 2, Some(ch));
    match text.as_bytes().get(start + 1) {
        Some(b'u') => {}
        Some(b'b') => return simple('\u{8}'),
        Some(b'f') => return simple('\u{c}'),
        Some(b'n') => return simple('\n'),
        Some(b'r') => return simple('\r'),
        Some(b't') => return simple('\t'),
        Some(ch @ (b'"' | b'\\' | b'/')) => return simple(char::from(*ch)),
        // Not well formed; be harmless.
        _ => return (start + 1, Some('\\')),
    }
    let end = start + 6;
    let Some(unit) = hex4(text, start) else { return (start + 1, Some('\\')) };
    if let Some(ch) = char::from_u32(unit) {
        return (end, Some(ch));
    }
    match hex4(text, end) {
        Some(low @ 0xdc00..=0xdfff) if unit < 0xdc00 => {
            (end + 6, char::from_u32(0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00)))
        }
        _ => (end, None),
    }
}

/// The number in the escape `\uXXXX` at `start`, if there is one.
pub(super) fn hex4(text: &str, start: usize) -> Option<u32> {
    let digits = text.get(start..start.checked_add(6)?)?.strip_prefix("\\u")?;
    digits.bytes().all(|b| b.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok()).flatten()
}

struct Fields<'f, F>(&'f mut F);

impl<'de, F: FnMut(Json<'de>, Json<'de>)> Visitor<'de> for Fields<'_, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some((name, value)) = map.next_entry::<&RawValue, &RawValue>()? {
            (self.0)(Json(name), Json(value));
        }
        Ok(())
    }
}

struct Items<'f, F>(&'f mut F);

impl<'de, F: FnMut(Json<'de>)> Visitor<'de> for Items<'_, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while let Some(value) = seq.next_element::<&RawValue>()? {
            (self.0)(Json(value));
        }
        Ok(())
    }
}

/// Reads `text` as exactly one JSON value; `None` if it is anything else.
pub fn parse(text: &str) -> Option<Json<'_>> {
    let mut reader = deserializer(text);
    let value = <&RawValue>::deserialize(&mut reader).ok()?;
    reader.end().ok().map(|()| Json(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Json<'_> {
        parse(text).expect("test text is JSON")
    }

    fn on_line(line: &str) -> (Vec<String>, LineContent) {
        let mut found = Vec::new();
        let content = values_of_line(line, |value| found.push(value.raw().to_owned()));
        (found, content)
    }

    #[test]
    fn a_lone_surrogate_is_one_replacement_character_and_pairs_are_joined() {
        let text = one(r#""a\ud800b \ud83d\ude00 \udc00 \ud800A \ud800\ud83d\ude00""#);
        assert_eq!(text.string().expect("string"), "a\u{fffd}b 😀 \u{fffd} \u{fffd}A \u{fffd}😀");
    }

    #[test]
    fn every_simple_escape_is_undone_and_nul_is_made_harmless() {
        let text = one(r#""\"\\\/\b\f\n\r\t\u0041\u0000é""#);
        assert_eq!(text.string().expect("string"), "\"\\/\u{8}\u{c}\n\r\tA\u{fffd}é");
        assert!(matches!(one(r#""plain é""#).string(), Some(Cow::Borrowed("plain é"))));
    }

    #[test]
    fn wrong_types_are_as_if_absent() {
        let value = one(r#"{"number":1,"word":"true","digits":"7","list":[],"x":null}"#);
        let get = |name: &str| value.field(name).expect("it is there");
        assert_eq!((get("number").string(), get("number").bool()), (None, None));
        assert_eq!((get("word").bool(), get("digits").u64()), (None, None));
        assert!(get("list").is_array() && get("list").field("q").is_none());
        assert!(get("x").is_null() && get("x").u64().is_none() && value.field("y").is_none());
        assert_eq!((value.text("number"), value.text("word")), ("".into(), "true".into()));
    }

    #[test]
    fn numbers_are_cut_to_what_can_be_counted() {
        for (raw, n) in [("7", 7), ("-4", 0), ("3.9", 3), ("3.0", 3), ("2e3", 2000), ("1e400", u64::MAX)] {
            assert_eq!(one(raw).u64(), Some(n), "{raw}");
        }
    }

    #[test]
    fn names_may_be_escaped_or_hold_lone_surrogates_and_the_last_of_two_wins() {
        let value = one(r#"{"\ud800":1,"ty\u0070e":"first","type":"last"}"#);
        assert_eq!(value.text("type"), "last");
        let mut names = Vec::new();
        value.each_field(|name, _| names.push(name.raw().to_owned()));
        assert_eq!(names, [r#""\ud800""#, r#""ty\u0070e""#, r#""type""#]);
    }

    #[test]
    fn a_hundred_thousand_levels_are_carried_through() {
        let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
        let text = format!(r#"{{"a":{deep},"b":"after"}}"#);
        let value = one(&text);
        assert_eq!(value.field("a").expect("field").raw(), deep);
        assert_eq!(value.text("b"), "after");
    }

    #[test]
    fn bug_32_two_values_on_one_line_and_what_is_noise() {
        let two = on_line(r#"{"a":1}{"b":2}"#);
        assert_eq!(
            two,
            (vec![r#"{"a":1}"#.into(), r#"{"b":2}"#.into()], LineContent { values: 2, noise: false })
        );
        assert_eq!(on_line("plain words"), (vec![], LineContent { values: 0, noise: true }));
        assert_eq!(on_line(r#"{"type":"#), (vec![], LineContent { values: 0, noise: true }));
        assert_eq!(on_line("{\"a\":1} trailing words").1, LineContent { values: 1, noise: true });
        assert_eq!(on_line("\u{feff}{}").1, LineContent { values: 1, noise: false });
        assert_eq!(on_line("").1, LineContent::default());
    }

    #[test]
    fn forbidden_escapes_are_replaced_only_where_they_are_escapes() {
        let raw = r#"{"a":"\u0000 \ud800 \ud83d\ude00 \\u0000 \n"}"#;
        assert_eq!(without_forbidden_escapes(raw), r#"{"a":"\ufffd \ufffd \ud83d\ude00 \\u0000 \n"}"#);
        assert!(matches!(without_forbidden_escapes(r#"{"a":"\n\\"}"#), Cow::Borrowed(_)));
    }

    #[test]
    fn what_is_written_out_is_one_line_for_every_reader() {
        let text = "a\nb\r\u{2028}\u{2029}\u{85}\"";
        let line = quoted(text);
        assert!(!line.contains(['\n', '\r', '\u{2028}', '\u{2029}']), "{line}");
        assert_eq!(one(&line).string().expect("string"), text);
        assert_eq!(one_line("{\"a\":\r1}".to_owned()), "{\"a\": 1}");
    }
}
