//! Skills that a claim only names, and the bundles in which their texts are fetched.

use super::json;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

/// A skill of an agent, by name: what it is, not what is in it.
#[derive(Clone, Debug)]
pub struct SkillRef {
    /// Its id; built-in ones have `builtin:<name>`.
    pub id: String,
    /// `workspace`, `builtin` or `plugin`.
    pub source: String,
    /// Its name.
    pub name: String,
    /// `sha256:<hex>` of all that is in it.
    pub hash: String,
    /// Bytes of all its texts, as the server says.
    pub size_bytes: u64,
    /// The whole object as it came, with what is not known here: that is what a request sends back.
    raw: Box<RawValue>,
}

impl<'de> Deserialize<'de> for SkillRef {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Known {
            #[serde(deserialize_with = "super::lenient::field")]
            id: String,
            #[serde(deserialize_with = "super::lenient::field")]
            source: String,
            #[serde(deserialize_with = "super::lenient::field")]
            name: String,
            #[serde(deserialize_with = "super::lenient::field")]
            hash: String,
            #[serde(deserialize_with = "super::lenient::field")]
            size_bytes: u64,
        }
        let raw = Box::<RawValue>::deserialize(from)?;
        let Known { id, source, name, hash, size_bytes } =
            serde_json::from_str(raw.get()).map_err(serde::de::Error::custom)?;
        Ok(Self { id, source, name, hash, size_bytes, raw })
    }
}

/// Asks for one skill. One for each request, so that what came is kept when the next one does not (#4505).
#[derive(Debug, Serialize)]
pub struct ResolveRequest<'a> {
    skills: [&'a RawValue; 1],
}

impl<'a> ResolveRequest<'a> {
    /// The request for this one.
    pub fn new(skill: &'a SkillRef) -> Self {
        Self { skills: [&skill.raw] }
    }
}

/// The answer to it.
#[derive(Debug, Deserialize)]
pub struct ResolveReply {
    /// In the order of the request.
    #[serde(default, deserialize_with = "json::nullable")]
    pub bundles: Vec<Bundle>,
}

/// A skill with all its texts, as the server sends it and as it is kept on disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Bundle {
    /// As in the reference.
    #[serde(deserialize_with = "json::nullable")]
    pub id: String,
    /// As in the reference.
    #[serde(deserialize_with = "json::nullable")]
    pub source: String,
    /// Its name.
    #[serde(deserialize_with = "json::nullable")]
    pub name: String,
    /// One line on what it is for.
    #[serde(deserialize_with = "json::nullable", skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// `sha256:<hex>` of all that is in it.
    #[serde(deserialize_with = "json::nullable")]
    pub hash: String,
    /// Bytes of all its texts; 0 if the server does not say.
    #[serde(deserialize_with = "json::nullable")]
    pub size_bytes: u64,
    /// `SKILL.md`.
    #[serde(deserialize_with = "json::nullable")]
    pub content: String,
    /// Its other files.
    #[serde(deserialize_with = "json::nullable", skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<BundleFile>,
}

/// One file of a bundle.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BundleFile {
    /// Below the skill's folder.
    #[serde(deserialize_with = "json::nullable")]
    pub path: String,
    /// Its text.
    #[serde(deserialize_with = "json::nullable")]
    pub content: String,
    /// `sha256:<hex>` of the text; empty if the server does not say.
    #[serde(deserialize_with = "json::nullable", skip_serializing_if = "String::is_empty")]
    pub sha256: String,
    /// Its bytes; 0 if the server does not say.
    #[serde(deserialize_with = "json::nullable")]
    pub size_bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::task::Agent;

    #[test]
    fn a_reference_is_sent_back_as_it_came_with_what_is_not_known_here() {
        let text = r#"{"skill_refs":[{"id":"a","source":"builtin","name":"n","hash":"sha256:0","size_bytes":5,
            "file_count":0,"newer":{"x":[1]}},null,"no",{"id":7,"size_bytes":-1}]}"#;
        let agent: Agent = serde_json::from_str(text).expect("lenient");
        assert_eq!(agent.skill_refs.len(), 2, "what is no object is left out");
        let first = &agent.skill_refs[0];
        assert_eq!((first.id.as_str(), first.hash.as_str(), first.size_bytes), ("a", "sha256:0", 5));
        let odd = &agent.skill_refs[1];
        assert_eq!((odd.id.as_str(), odd.size_bytes), ("", 0));
        let sent: serde_json::Value =
            serde_json::from_slice(&json::encode(&ResolveRequest::new(first)).expect("json")).expect("json");
        assert_eq!(sent["skills"][0]["newer"]["x"][0], 1);
        assert_eq!(sent["skills"].as_array().map(Vec::len), Some(1));
    }

    #[test]
    fn a_bundle_may_leave_out_what_it_does_not_have() {
        let reply: ResolveReply = json::decode(
            r#"{"bundles":[{"id":"a","content":"x","files":null,"description":null}]}"#,
            "bundles",
        )
        .expect("lenient");
        assert_eq!((reply.bundles.len(), reply.bundles[0].content.as_str()), (1, "x"));
        assert!(
            json::decode::<ResolveReply>(r#"{"bundles":null}"#, "bundles").expect("none").bundles.is_empty()
        );
        assert!(json::decode::<ResolveReply>(r#"{"bundles":[{"content":7}]}"#, "bundles").is_err());
    }
}
