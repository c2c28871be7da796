//! Skills of agents as the wire shows them: named in a claim, handed out on request, or inlined for daemons that cannot ask.

use super::shape::hex_digest;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// A skill of an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skill {
    /// Its id.
    pub id: String,
    /// Where it comes from: `workspace`, `builtin` or `plugin`.
    pub source: String,
    /// Name, from which its folder's name is made.
    pub name: String,
    /// One line on what it is for; may be empty.
    pub description: String,
    /// `SKILL.md`.
    pub content: String,
    /// Its other files.
    pub files: Vec<SkillFile>,
}

/// A file of a skill.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillFile {
    /// Path below the skill's folder, with `/` between its parts.
    pub path: String,
    /// Its text.
    pub content: String,
}

impl Skill {
    /// A skill of the workspace.
    pub fn of_workspace(id: &str, name: &str, content: &str) -> Self {
        let (id, name, content) = (id.into(), name.into(), content.into());
        Self { id, source: "workspace".into(), name, content, ..Self::default() }
    }

    /// A skill of the server.
    pub fn builtin(name: &str, content: &str) -> Self {
        let id = format!("builtin:{name}");
        Self { id, source: "builtin".into(), name: name.into(), content: content.into(), ..Self::default() }
    }

    /// With one more file.
    #[must_use]
    pub fn file(mut self, path: &str, content: &str) -> Self {
        self.files.push(SkillFile { path: path.into(), content: content.into() });
        self
    }

    /// What its texts hash to: a change of any of them changes it.
    pub fn hash(&self) -> String {
        let mut files: Vec<_> = self.files.iter().collect();
        files.sort_by(|a, b| a.path.as_bytes().cmp(b.path.as_bytes()));
        let head = ["v1", &self.source, &self.id, &self.name, &self.description, &self.content];
        let mut parts: Vec<String> = head.into_iter().map(Into::into).collect();
        for file in files {
            parts.extend([file.path.clone(), digest(&file.content), file.content.clone()]);
        }
        let mut stream = Vec::new();
        for part in parts {
            stream.extend_from_slice(format!("{}:", part.len()).as_bytes());
            stream.extend_from_slice(part.as_bytes());
            stream.push(b'\n');
        }
        format!("sha256:{}", hex_digest(&stream))
    }

    /// Bytes of all its texts.
    pub fn size(&self) -> usize {
        self.content.len() + self.files.iter().map(|file| file.content.len()).sum::<usize>()
    }

    fn head(&self) -> Map<String, Value> {
        let mut out = Map::new();
        let texts = [("id", &self.id), ("source", &self.source), ("name", &self.name)];
        out.extend(texts.map(|(name, text)| (name.to_owned(), Value::from(text.as_str()))));
        if !self.description.is_empty() {
            out.insert("description".into(), self.description.as_str().into());
        }
        out
    }

    /// What a claim says of it to daemons that fetch skills themselves.
    pub(super) fn reference(&self) -> Value {
        let mut out = self.head();
        out.insert("hash".into(), self.hash().into());
        out.insert("size_bytes".into(), self.size().into());
        out.insert("file_count".into(), self.files.len().into());
        self.put_files(&mut out, |file| {
            json!({ "path": file.path, "sha256": digest(&file.content), "size_bytes": file.content.len() })
        });
        Value::Object(out)
    }

    /// All of it.
    pub(super) fn bundle(&self) -> Value {
        let mut out = self.head();
        out.insert("hash".into(), self.hash().into());
        out.insert("size_bytes".into(), self.size().into());
        out.insert("content".into(), self.content.as_str().into());
        self.put_files(&mut out, |file| {
            json!({
                "path": file.path,
                "content": file.content,
                "sha256": digest(&file.content),
                "size_bytes": file.content.len(),
            })
        });
        Value::Object(out)
    }

    /// All of it, for daemons that cannot ask; what the server brings along has no id there.
    pub(super) fn inlined(&self) -> Value {
        let mut out = self.head();
        if self.source == "builtin" {
            out.insert("id".into(), "".into());
        }
        out.insert("content".into(), self.content.as_str().into());
        self.put_files(&mut out, |file| json!({ "path": file.path, "content": file.content }));
        Value::Object(out)
    }

    fn put_files(&self, out: &mut Map<String, Value>, shape: impl Fn(&SkillFile) -> Value) {
        if !self.files.is_empty() {
            out.insert("files".into(), self.files.iter().map(shape).collect());
        }
    }
}

fn digest(text: &str) -> String {
    format!("sha256:{}", hex_digest(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skill_hashes_as_the_protocols_test_vector_does() {
        let mut skill = Skill::of_workspace("5b0e4c1e-1111-4222-8333-944455556666", "demo-skill", "# Demo\n")
            .file("ref/b.md", "beta\n")
            .file("ref/a.md", "alpha é\n");
        skill.description = "A demo".into();
        let hash = "sha256:67cf7cdea1eb2929d4a72aaf45494307729e230b2e7b3507fe97a96201cd0c48";
        assert_eq!((skill.hash().as_str(), skill.size()), (hash, 21));
        let file = &skill.bundle()["files"][1];
        let sha = "sha256:06c71e01623bf7b3a7bff5a361125286c48a4997c8d4932cb3c4717400d6a5ec";
        assert_eq!((&file["sha256"], &file["size_bytes"]), (&json!(sha), &json!(9)));
        skill.files[0].content.push('!');
        assert_ne!(skill.hash(), hash);
    }
}
