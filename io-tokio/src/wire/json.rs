//! Bodies to and from JSON.
//!
//! Going out, U+0000 is taken out of every text: the server's store cannot hold it, and one such character makes a
//! report fail for ever. Coming in, a reply is read as far as it can be understood, and an error never quotes it.

use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::error::Category;

/// How U+0000 looks in JSON text; raw it cannot occur there.
const NUL: &[u8] = b"\\u0000";

/// Writes `value` as a request body, without U+0000.
///
/// # Errors
/// Only if `value` cannot be JSON at all, such as a map whose keys are no texts.
pub fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Bytes, serde_json::Error> {
    serde_json::to_vec(value).map(|json| without_nul(json).into())
}

fn without_nul(json: Vec<u8>) -> Vec<u8> {
    if !json.windows(NUL.len()).any(|part| part == NUL) {
        return json;
    }
    let mut clean = Vec::with_capacity(json.len());
    let mut rest = json.as_slice();
    while let Some(at) = rest.iter().position(|&byte| byte == b'\\') {
        clean.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        // An escape is taken as a whole, so that an escaped backslash before `u0000` stays what it is.
        let length = if rest.starts_with(NUL) { 0 } else { 2.min(rest.len()) };
        clean.extend_from_slice(&rest[..length]);
        rest = &rest[if length == 0 { NUL.len() } else { length }..];
    }
    clean.extend_from_slice(rest);
    clean
}

/// Why a reply cannot be used. The text never quotes the reply, which may hold a credential.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// There is no reply.
    #[error("the answer is empty where JSON was expected")]
    Empty,
    /// A page for browsers.
    #[error(
        "the answer is an HTML page, not the server's JSON: check the server URL and any proxy on the way"
    )]
    Html,
    /// It is cut off.
    #[error("the answer ends before its JSON does")]
    Truncated,
    /// No JSON.
    #[error("the answer is not JSON (line {line}, column {column})")]
    Syntax {
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
    },
    /// JSON of another shape.
    #[error("the answer is JSON, but not {0}")]
    Shape(&'static str),
}

/// Reads the JSON value at the start of `text`; `shape` says in words what it should be. What follows the value is
/// ignored.
pub fn decode<'a, T: Deserialize<'a>>(text: &'a str, shape: &'static str) -> Result<T, DecodeError> {
    let mut reader = serde_json::Deserializer::from_str(text);
    T::deserialize(&mut reader).map_err(|error| {
        let start = text.trim_start();
        match error.classify() {
            _ if start.is_empty() => DecodeError::Empty,
            _ if start.starts_with('<') => DecodeError::Html,
            Category::Eof => DecodeError::Truncated,
            Category::Data => DecodeError::Shape(shape),
            Category::Syntax | Category::Io => {
                DecodeError::Syntax { line: error.line(), column: error.column() }
            }
        }
    })
}

/// A list that is written as `null` when it is empty, as the server's other clients do.
pub(crate) fn null_if_empty<T: Serialize, S: Serializer>(list: &[T], to: S) -> Result<S::Ok, S::Error> {
    if list.is_empty() { to.serialize_none() } else { list.serialize(to) }
}

/// A field that must be there, but may be `null` for the empty value.
pub(crate) fn nullable<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    from: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
pub(crate) fn is_false(flag: &bool) -> bool {
    !*flag
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn bug_13_nul_is_taken_out_of_every_text() {
        let body =
            encode(&json!({"a\0": ["ok\0end", "\0\0"], "b": "x\\u0000y", "c": "\\\0\\", "d": "\n\"\0"}))
                .expect("json");
        let back: serde_json::Value = serde_json::from_slice(&body).expect("json");
        assert_eq!(back, json!({"a": ["okend", ""], "b": "x\\u0000y", "c": "\\\\", "d": "\n\""}));
    }

    #[test]
    fn a_text_without_nul_is_left_alone() {
        for text in ["", "plain", "\\", "\\\\u0000 in words", "u0000", "ä\u{1f600}"] {
            assert_eq!(encode(text).expect("json"), serde_json::to_vec(text).expect("json"), "{text}");
        }
    }

    #[test]
    fn an_unreadable_reply_is_named_and_not_quoted() {
        let read = |text| decode::<Vec<u8>>(text, "a list").expect_err("unreadable");
        assert_eq!(read(" "), DecodeError::Empty);
        assert_eq!(read("<!DOCTYPE html><p>mat_1</p>"), DecodeError::Html);
        assert_eq!(read("[1,2"), DecodeError::Truncated);
        assert_eq!(read("\"mat_1\""), DecodeError::Shape("a list"));
        assert_eq!(read("mat_1"), DecodeError::Syntax { line: 1, column: 1 });
        for text in ["<p>mat_1", "\"mat_1\"", "mat_1"] {
            assert!(!read(text).to_string().contains("mat_1"));
        }
    }

    #[test]
    fn what_follows_the_first_value_is_ignored() {
        assert_eq!(decode::<Vec<u8>>("[1]\n garbage", "a list"), Ok(vec![1]));
    }
}
