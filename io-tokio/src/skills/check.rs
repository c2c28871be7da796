//! Whether a bundle is what was asked for: who it is, what is in it, how much, and where its files would go.

use crate::wire::skill::{Bundle, SkillRef};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Most bytes of all texts of a skill.
pub(super) const MAX_BYTES: u64 = 8 * 1024 * 1024;
/// Most files of a skill beside its `SKILL.md`.
pub(super) const MAX_FILES: usize = 256;
/// Longest path of a file in a skill, in bytes, and longest part of it.
const MAX_PATH: usize = 1024;
const MAX_NAME: usize = 255;

/// Where the skills come from whose texts are fixed: another hash than the one that was asked for is refused.
const PINNED: &str = "plugin";

/// Why a bundle cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// The server sent another skill.
    #[error("the server sent the skill {source_is:?} {id:?} instead")]
    AnotherSkill {
        /// Its id.
        id: String,
        /// Its source.
        source_is: String,
    },
    /// What came does not have the hash that it says it has.
    #[error("its texts do not fit its hash: {what} says {says:?}, but has {has}")]
    Hash {
        /// The bundle, or the path of a file.
        what: String,
        /// As it says.
        says: String,
        /// As it is.
        has: String,
    },
    /// It is another version than the one asked for, of a skill that is fixed to one.
    #[error("the plugin has another version of it by now ({has}, asked for was {asked})")]
    AnotherVersion {
        /// What was asked for.
        asked: String,
        /// What came.
        has: String,
    },
    /// It is larger or has more files than a skill may.
    #[error("it is too large: {what}")]
    TooLarge {
        /// How large, and what is allowed.
        what: String,
    },
    /// What it says of its size is not true.
    #[error("{what} says that it has {says} bytes, but has {has}")]
    Size {
        /// The bundle, or the path of a file.
        what: String,
        /// As it says.
        says: u64,
        /// As it is.
        has: u64,
    },
    /// A file would be where no file of a skill may be.
    #[error("file {path:?} {why}")]
    Path {
        /// Its path.
        path: String,
        /// What is wrong with it.
        why: &'static str,
    },
}

/// A bundle that was checked. There is no other way to one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked(Bundle);

impl Checked {
    /// Checks a bundle that came for `asked`.
    pub fn of_reply(bundle: Bundle, asked: &SkillRef) -> Result<Self, Unusable> {
        let checked = Self::check(bundle, &asked.id, &asked.source)?;
        let has = &checked.0.hash;
        if asked.source == PINNED && *has != asked.hash {
            return Err(Unusable::AnotherVersion { asked: asked.hash.clone(), has: has.clone() });
        }
        Ok(checked)
    }

    /// Checks a bundle that was kept as the one with this id, source and hash.
    pub(super) fn of_cache(bundle: Bundle, id: &str, source: &str, hash: &str) -> Result<Self, Unusable> {
        let checked = Self::check(bundle, id, source)?;
        let has = &checked.0.hash;
        if has == hash {
            Ok(checked)
        } else {
            Err(Unusable::Hash { what: "the kept copy".to_owned(), says: hash.to_owned(), has: has.clone() })
        }
    }

    fn check(mut bundle: Bundle, id: &str, source: &str) -> Result<Self, Unusable> {
        if bundle.id != id || bundle.source != source {
            return Err(Unusable::AnotherSkill { id: bundle.id, source_is: bundle.source });
        }
        sizes(&bundle)?;
        paths(&bundle)?;
        for file in bundle.files.iter().filter(|file| !file.sha256.is_empty()) {
            let has = file_hash(&file.content);
            if has != file.sha256 {
                return Err(Unusable::Hash { what: file.path.clone(), says: file.sha256.clone(), has });
            }
        }
        let has = bundle_hash(&bundle);
        if !bundle.hash.is_empty() && bundle.hash != has {
            return Err(Unusable::Hash { what: "the bundle".to_owned(), says: bundle.hash, has });
        }
        bundle.hash = has;
        Ok(Self(bundle))
    }

    /// The bundle; its hash is filled in.
    pub const fn bundle(&self) -> &Bundle {
        &self.0
    }

    /// Bytes of all its texts.
    pub fn bytes(&self) -> u64 {
        total(&self.0)
    }
}

fn total(bundle: &Bundle) -> u64 {
    bundle.files.iter().map(|file| file.content.len() as u64).sum::<u64>() + bundle.content.len() as u64
}

fn sizes(bundle: &Bundle) -> Result<(), Unusable> {
    if bundle.files.len() > MAX_FILES {
        let what = format!("{} files, of which there may be {MAX_FILES}", bundle.files.len());
        return Err(Unusable::TooLarge { what });
    }
    let has = total(bundle);
    if has > MAX_BYTES {
        return Err(Unusable::TooLarge { what: too_many_bytes(has) });
    }
    let said = |says: u64, has: u64, what: &str| {
        if says == 0 || says == has {
            Ok(())
        } else {
            Err(Unusable::Size { what: what.to_owned(), says, has })
        }
    };
    said(bundle.size_bytes, has, "the bundle")?;
    bundle.files.iter().try_for_each(|file| said(file.size_bytes, file.content.len() as u64, &file.path))
}

pub(super) fn too_many_bytes(bytes: u64) -> String {
    format!("{bytes} bytes, of which there may be {MAX_BYTES}")
}

/// Each path is clean, there once, and no folder is also a file.
fn paths(bundle: &Bundle) -> Result<(), Unusable> {
    let mut files = BTreeSet::new();
    let refuse = |path: &str, why| Err(Unusable::Path { path: path.to_owned(), why });
    for file in &bundle.files {
        if let Err(why) = clean(&file.path) {
            return refuse(&file.path, why);
        }
        if !files.insert(file.path.as_str()) {
            return refuse(&file.path, "comes twice");
        }
    }
    for file in &files {
        let folders = file.match_indices('/').map(|(at, _)| &file[..at]);
        if folders.into_iter().any(|folder| files.contains(folder) || folder == "SKILL.md") {
            return refuse(file, "is in a folder that is a file");
        }
    }
    Ok(())
}

fn clean(path: &str) -> Result<(), &'static str> {
    if path.is_empty() || path.len() > MAX_PATH {
        return Err("has an empty path or a very long one");
    }
    if path.contains(['\0', '\\']) {
        return Err("has a NUL or a backslash in its path");
    }
    for part in path.split('/') {
        match part {
            "" => return Err("has a path with an empty part: it must be relative, with single slashes"),
            "." | ".." => return Err("has '.' or '..' in its path"),
            part if part.len() > MAX_NAME => return Err("has a part in its path that is too long"),
            _ => {}
        }
    }
    Ok(())
}

/// `sha256:<hex>` of a file's text.
pub fn file_hash(content: &str) -> String {
    named(Sha256::digest(content))
}

/// `sha256:<hex>` of all that is in a bundle: each part with its length before it, files in the order of their paths.
pub fn bundle_hash(bundle: &Bundle) -> String {
    let mut hash = Sha256::new();
    let mut part = |text: &str| {
        hash.update(text.len().to_string());
        hash.update(b":");
        hash.update(text);
        hash.update(b"\n");
    };
    for text in ["v1", &bundle.source, &bundle.id, &bundle.name, &bundle.description, &bundle.content] {
        part(text);
    }
    let mut files: Vec<_> = bundle.files.iter().collect();
    files.sort_by(|a, b| a.path.as_bytes().cmp(b.path.as_bytes()));
    for file in files {
        part(&file.path);
        part(&file_hash(&file.content));
        part(&file.content);
    }
    named(hash.finalize())
}

fn named(digest: impl IntoIterator<Item = u8>) -> String {
    digest.into_iter().fold(String::from("sha256:"), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::wire::skill::BundleFile;

    pub(crate) fn bundle(source: &str, id: &str, content: &str, files: &[(&str, &str)]) -> Bundle {
        let file = |(path, content): &(&str, &str)| BundleFile {
            path: (*path).to_owned(),
            content: (*content).to_owned(),
            sha256: file_hash(content),
            size_bytes: content.len() as u64,
        };
        let mut bundle = Bundle {
            id: id.to_owned(),
            source: source.to_owned(),
            name: "demo-skill".to_owned(),
            description: "A demo".to_owned(),
            content: content.to_owned(),
            files: files.iter().map(file).collect(),
            ..Bundle::default()
        };
        bundle.size_bytes = total(&bundle);
        bundle.hash = bundle_hash(&bundle);
        bundle
    }

    pub(crate) fn reference(bundle: &Bundle) -> SkillRef {
        serde_json::from_value(serde_json::json!({
            "id": bundle.id, "source": bundle.source, "name": bundle.name, "description": bundle.description,
            "hash": bundle.hash, "size_bytes": bundle.size_bytes, "file_count": bundle.files.len(),
        }))
        .expect("a reference")
    }

    fn demo() -> Bundle {
        let files = [("ref/b.md", "beta\n"), ("ref/a.md", "alpha é\n")];
        bundle("workspace", "5b0e4c1e-1111-4222-8333-944455556666", "# Demo\n", &files)
    }

    #[test]
    fn the_hash_is_the_one_that_every_program_of_the_protocol_computes() {
        let demo = demo();
        assert_eq!(
            demo.files[1].sha256,
            "sha256:06c71e01623bf7b3a7bff5a361125286c48a4997c8d4932cb3c4717400d6a5ec"
        );
        assert_eq!(
            demo.files[0].sha256,
            "sha256:f2c82decdd7181cf98945929a62598db7e6b477e11f6e0eb0ae97020eff151ad"
        );
        assert_eq!((demo.size_bytes, demo.files[1].size_bytes, demo.files[0].size_bytes), (21, 9, 5));
        assert_eq!(demo.hash, "sha256:67cf7cdea1eb2929d4a72aaf45494307729e230b2e7b3507fe97a96201cd0c48");
    }

    #[test]
    fn what_came_must_be_what_was_asked_for() {
        let asked = reference(&demo());
        Checked::of_reply(demo(), &asked).expect("it is");
        let refused = |change: fn(&mut Bundle)| {
            let mut other = demo();
            change(&mut other);
            Checked::of_reply(other, &asked).expect_err("refused")
        };
        assert!(matches!(refused(|b| b.id = "x".into()), Unusable::AnotherSkill { .. }));
        assert!(matches!(refused(|b| b.source = "builtin".into()), Unusable::AnotherSkill { .. }));
        assert!(matches!(refused(|b| b.content.replace_range(..1, "?")), Unusable::Hash { .. }));
        assert!(matches!(refused(|b| b.files[0].content = "zeta\n".into()), Unusable::Hash { .. }));
        assert!(matches!(refused(|b| b.size_bytes += 1), Unusable::Size { .. }));
        assert!(matches!(refused(|b| b.files[0].size_bytes += 1), Unusable::Size { .. }));
        let mut silent = demo();
        (silent.hash, silent.size_bytes) = (String::new(), 0);
        assert_eq!(Checked::of_reply(silent, &asked).expect("computed").bundle().hash, asked.hash);
    }

    #[test]
    fn newer_texts_are_taken_but_not_those_of_a_plugin() {
        let newer = |source| bundle(source, "a", "newer", &[]);
        let asked = |source| reference(&bundle(source, "a", "old", &[]));
        assert_eq!(Checked::of_reply(newer("builtin"), &asked("builtin")).expect("taken").bytes(), 5);
        let error = Checked::of_reply(newer("plugin"), &asked("plugin")).expect_err("pinned");
        assert!(matches!(error, Unusable::AnotherVersion { .. }), "{error}");
        Checked::of_reply(newer("plugin"), &reference(&newer("plugin"))).expect("the same version");
    }

    #[test]
    fn skc_4_paths_that_are_not_clean_are_refused() {
        for path in ["a/../b", "/a", "a\\b", "a\0b", "", ".", "./a", "a//b", "a/", "..", "SKILL.md/x"] {
            let odd = bundle("workspace", "a", "x", &[(path, "text")]);
            let error = Checked::of_reply(odd.clone(), &reference(&odd)).expect_err(path);
            assert!(matches!(error, Unusable::Path { .. }), "{path:?} {error}");
        }
        for files in [&[("a", "1"), ("a", "2")][..], &[("a", "1"), ("a/b", "2")]] {
            let odd = bundle("workspace", "a", "x", files);
            assert!(Checked::of_reply(odd.clone(), &reference(&odd)).is_err(), "{files:?}");
        }
    }

    #[test]
    fn a_skill_is_bounded() {
        let large = "x".repeat(usize::try_from(MAX_BYTES).expect("small"));
        let fits = bundle("workspace", "a", &large, &[]);
        Checked::of_reply(fits.clone(), &reference(&fits)).expect("just fits");
        let large = bundle("workspace", "a", &large, &[("f", "1")]);
        assert!(matches!(
            Checked::of_reply(large.clone(), &reference(&large)),
            Err(Unusable::TooLarge { .. })
        ));
        let names: Vec<String> = (0..=MAX_FILES).map(|n| n.to_string()).collect();
        let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).collect();
        let many = bundle("workspace", "a", "x", &files);
        assert!(matches!(Checked::of_reply(many.clone(), &reference(&many)), Err(Unusable::TooLarge { .. })));
    }
}
