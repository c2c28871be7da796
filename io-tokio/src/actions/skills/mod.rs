//! The skills that the user of an agent CLI has installed, and the names of the MCP servers: listed, and one of the skills in full. Nothing is
//! followed out of the folders that hold skills, and everything is bounded.

mod mcp;
mod places;
mod tree;

pub(super) use places::Places;

use super::shown;
use crate::prepare::frontmatter;
use crate::wire::action::{SkillBundle, SkillFile, SkillSummary, SkillsReport};
use places::Root;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;
use tree::Tree;

/// The file that makes a folder a skill.
const SKILL_FILE: &str = "SKILL.md";
/// Folders within folders, of skills and of files in them.
const DEPTH: usize = 4;
const MAX_FILE: u64 = 1 << 20;
const MAX_BUNDLE: usize = 8 << 20;
const MAX_FILES: usize = 256;
/// Skills in one list, and names that are looked at for it.
const MAX_SKILLS: usize = 500;
const MAX_NAMES: usize = 20_000;

/// Why a skill cannot be imported.
#[derive(Debug, Error)]
pub(super) enum SkillError {
    #[error("there is no skill `{key}` on this machine; looked in {places}")]
    Missing { key: String, places: String },
    #[error("{0} has no skills of its user that could be imported")]
    Unsupported(String),
    #[error("`{file}` of the skill is larger than {} KiB", MAX_FILE >> 10)]
    FileTooLarge { file: String },
    #[error("the skill is larger than {} MiB in all", MAX_BUNDLE >> 20)]
    TooLarge,
    #[error("the skill has more than {MAX_FILES} files")]
    TooMany,
    #[error("`{file}` of the skill is no text in UTF-8; only text can be imported")]
    NoText { file: String },
    #[error("`{file}` of the skill cannot be read: {source}")]
    Read { file: String, source: io::Error },
}

/// Everything that there is. What cannot be read is left out.
pub(super) fn list(places: &Places, provider: &str) -> SkillsReport {
    let mut skills = Vec::new();
    let (mut seen, mut names) = (BTreeSet::new(), MAX_NAMES);
    for root in &places.roots {
        let Ok(tree) = Tree::open(&root.path) else { continue };
        for folder in tree.skills(DEPTH, &mut names) {
            let key = root.key(&folder);
            if skills.len() >= MAX_SKILLS || seen.contains(&key) {
                continue;
            }
            match summary(places, root, &tree, &folder, provider) {
                Ok(summary) => {
                    seen.insert(key);
                    skills.push(summary);
                }
                Err(error) => tracing::debug!(key, "a skill is left out of the list: {error}"),
            }
        }
    }
    let (mcp_servers, mcp_supported) = mcp::servers(places, provider);
    SkillsReport {
        skills,
        supported: places.supported,
        mcp_servers,
        mcp_supported,
        ..SkillsReport::default()
    }
}

fn summary(
    places: &Places,
    root: &Root,
    tree: &Tree,
    folder: &Path,
    provider: &str,
) -> Result<SkillSummary, SkillError> {
    let content = text(tree, &folder.join(SKILL_FILE), SKILL_FILE)?;
    let files = tree.files(folder, DEPTH, MAX_FILES).map_err(|source| read_error(folder, source))?;
    Ok(SkillSummary {
        key: root.key(folder),
        name: name(&content, folder),
        description: frontmatter::text_of(&content, "description").unwrap_or_default(),
        source_path: shown(&root.path.join(folder), &places.home),
        provider: provider.to_owned(),
        root: Some(root.kind),
        plugin: root.plugin.clone(),
        can_disable: matches!(provider, "claude" | "codex"),
        file_count: files.len() + 1,
    })
}

/// One of them, in full.
pub(super) fn load(places: &Places, provider: &str, key: &str) -> Result<SkillBundle, SkillError> {
    if !places.supported {
        return Err(SkillError::Unsupported(provider.to_owned()));
    }
    for root in &places.roots {
        let Some(folder) = root.folder(key) else { continue };
        let Ok(tree) = Tree::open(&root.path) else { continue };
        if tree.is_file(&folder.join(SKILL_FILE)) {
            return bundle(places, root, &tree, &folder, provider);
        }
    }
    let places =
        places.roots.iter().map(|root| shown(&root.path, &places.home)).collect::<Vec<_>>().join(", ");
    Err(SkillError::Missing { key: key.to_owned(), places })
}

fn bundle(
    places: &Places,
    root: &Root,
    tree: &Tree,
    folder: &Path,
    provider: &str,
) -> Result<SkillBundle, SkillError> {
    let content = text(tree, &folder.join(SKILL_FILE), SKILL_FILE)?;
    let mut size = content.len();
    let found = tree.files(folder, DEPTH, MAX_FILES).map_err(|source| read_error(folder, source))?;
    if found.len() >= MAX_FILES {
        return Err(SkillError::TooMany);
    }
    let mut files = Vec::with_capacity(found.len());
    for below in found {
        let path = below.display().to_string();
        let content = text(tree, &folder.join(&below), &path)?;
        size += content.len();
        if size > MAX_BUNDLE {
            return Err(SkillError::TooLarge);
        }
        files.push(SkillFile { path, content });
    }
    Ok(SkillBundle {
        name: name(&content, folder),
        description: frontmatter::text_of(&content, "description").unwrap_or_default(),
        content,
        source_path: shown(&root.path.join(folder), &places.home),
        provider: provider.to_owned(),
        files,
    })
}

fn name(content: &str, folder: &Path) -> String {
    let named = frontmatter::text_of(content, "name").filter(|name| !name.is_empty());
    named.unwrap_or_else(|| folder.file_name().unwrap_or_default().to_string_lossy().into_owned())
}

fn read_error(file: &Path, source: io::Error) -> SkillError {
    SkillError::Read { file: file.display().to_string(), source }
}

fn text(tree: &Tree, path: &Path, file: &str) -> Result<String, SkillError> {
    let bytes = tree.read(path, MAX_FILE).map_err(|source| match source.kind() {
        io::ErrorKind::FileTooLarge => SkillError::FileTooLarge { file: file.to_owned() },
        _ => SkillError::Read { file: file.to_owned(), source },
    })?;
    String::from_utf8(bytes)
        .ok()
        .filter(|text| !text.contains('\0'))
        .ok_or_else(|| SkillError::NoText { file: file.to_owned() })
}

/// Licence texts are no part of what a skill says.
fn is_left_out(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name).to_ascii_lowercase();
    name.starts_with('.') || ["license", "licence", "copying"].iter().any(|word| stem == *word)
}

/// Whether it is a path below a folder that goes straight down, by names that are not left out.
fn plain(key: &str) -> Option<PathBuf> {
    let path = PathBuf::from(key);
    let parts = crate::prepare::beneath::plain_parts(&path).ok()?;
    let good = |part: &&std::ffi::OsStr| part.to_str().is_some_and(|name| !name.starts_with('.'));
    let fits =
        !parts.is_empty() && parts.len() <= DEPTH && parts.iter().all(good) && !key.contains(['\\', '\0']);
    fits.then(|| parts.iter().collect())
}

#[cfg(test)]
mod tests;
