//! Skills: folders with a `SKILL.md` where the agent's CLI looks for them.

use super::beneath::Dir;
use super::error::{At, PrepareError};
use super::frontmatter;
use super::share::Shared;
use crate::skills::{Checked, Place};
use crate::wire::task;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

/// How many names are tried where a folder already is.
const MAX_TRIES: usize = 64;

/// A skill as it travels to the helper.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Skill {
    /// Its name, from which its folder's name is made.
    pub name: String,
    /// One line on what it is for.
    pub description: String,
    /// `SKILL.md`.
    pub content: String,
    /// Its other files: relative path and text.
    pub files: Vec<(String, String)>,
    /// Where the skill cache has those files, or is to have them, below the workspaces root; `None` if each task gets files of its own.
    pub shared: Option<PathBuf>,
}

impl Skill {
    /// A skill that was fetched in this workspace. Its files are shared with other tasks where file modes protect them: `root` can write through
    /// any mode, and would change them for everybody.
    pub fn fetched(skill: &Checked, workspace: &str) -> Self {
        let bundle = skill.bundle();
        let place = Place::new(workspace, &bundle.source, &bundle.id, &bundle.hash);
        Self {
            name: bundle.name.clone(),
            description: bundle.description.clone(),
            content: bundle.content.clone(),
            files: bundle.files.iter().map(|file| (file.path.clone(), file.content.clone())).collect(),
            shared: place.filter(|_| !rustix::process::geteuid().is_root()).map(|place| place.files()),
        }
    }
}

impl From<&task::Skill> for Skill {
    fn from(skill: &task::Skill) -> Self {
        Self {
            name: skill.name.clone(),
            description: skill.description.clone(),
            content: skill.content.clone(),
            files: skill.files.iter().map(|file| (file.path.clone(), file.content.clone())).collect(),
            shared: None,
        }
    }
}

/// Where a provider's CLI finds skills, below the work directory; `None` for codex and hermes, which have a home of
/// their own.
pub fn folder(provider: &str) -> Option<&'static Path> {
    let folder = match provider {
        "codex" | "hermes" => return None,
        "claude" => ".claude/skills",
        "codebuddy" => ".codebuddy/skills",
        "copilot" => ".github/skills",
        "opencode" => ".opencode/skills",
        "deveco" => ".deveco/skills",
        "openclaw" => "skills",
        "pi" => ".pi/skills",
        "omp" => ".omp/skills",
        "cursor" => ".cursor/skills",
        "kimi" => ".kimi/skills",
        "reasonix" => ".reasonix/skills",
        "dsh" => ".dsh/skills",
        "kiro" => ".kiro/skills",
        "qoder" | "qoderclicn" => ".qoder/skills",
        "qwen" => ".qwen/skills",
        "mcode" => ".minimax/skills",
        "traecli" => ".traecli/skills",
        "antigravity" => ".agents/skills",
        "grok" => ".grok/skills",
        "qwenpaw" => "skill_pool",
        _ => ".agent_context/skills",
    };
    Some(Path::new(folder))
}

/// A name as the name of a folder: lower-case letters and digits, with single dashes between them.
pub fn slug(name: &str) -> String {
    let mut slug = String::new();
    for c in name.chars().flat_map(char::to_lowercase) {
        if c.is_ascii_alphanumeric() {
            slug.push(c);
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    // A folder's name has at most 255 bytes; suffixes need some of them.
    slug.truncate(200);
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() { "skill".to_owned() } else { slug.to_owned() }
}

/// The folders of a list of skills, in its order: `x`, `x-multica`, `x-multica-2`, …
///
/// Names that `is_taken` are passed over; 64 tries without success are an error.
fn slugs(
    skills: &[Skill],
    mut is_taken: impl FnMut(&str) -> Result<bool, PrepareError>,
) -> Result<Vec<String>, PrepareError> {
    let mut used = BTreeSet::new();
    let mut all = Vec::with_capacity(skills.len());
    for skill in skills {
        let base = slug(&skill.name);
        let mut found = None;
        for n in 0..MAX_TRIES.max(skills.len() + 1) {
            let name = match n {
                0 => base.clone(),
                1 => format!("{base}-multica"),
                n => format!("{base}-multica-{n}"),
            };
            if !used.contains(&name) && !is_taken(&name)? {
                found = Some(name);
                break;
            }
        }
        let name = found.ok_or_else(|| PrepareError::Skill {
            skill: skill.name.clone(),
            reason: format!("there are already {MAX_TRIES} folders called {base:?} or so; remove some"),
        })?;
        used.insert(name.clone());
        all.push(name);
    }
    Ok(all)
}

/// A skill in its folder.
#[derive(Debug)]
pub(crate) struct Placed {
    /// The folder's name, which is also the skill's.
    pub(crate) slug: String,
    /// Whether the model is to be told about it.
    pub(crate) is_listed: bool,
    /// What is in it, `SKILL.md` first.
    pub(crate) files: Vec<PlacedFile>,
}

/// One file of it.
#[derive(Debug)]
pub(crate) struct PlacedFile {
    /// Below the folder of the skills.
    pub(crate) below: PathBuf,
    /// What it says.
    pub(crate) text: String,
    /// The file that may be linked to instead of written.
    pub(crate) shared: Option<Shared>,
}

/// Decides the folder of each skill, beside what is there already, and checks every path. `root` is the workspaces root.
pub(crate) fn place(skills: &[Skill], into: Option<&Dir>, root: &Path) -> Result<Vec<Placed>, PrepareError> {
    let names = slugs(skills, |name| match into {
        Some(dir) => Ok(dir.kind(name).at("look at", dir.path().join(name))?.is_some()),
        None => Ok(false),
    })?;
    skills.iter().zip(names).map(|(skill, slug)| placed(skill, slug, root)).collect()
}

fn placed(skill: &Skill, slug: String, root: &Path) -> Result<Placed, PrepareError> {
    let refuse = |reason: String| PrepareError::Skill { skill: skill.name.clone(), reason };
    let text = frontmatter::with_name(&skill.content, &slug, &skill.description);
    // Its head names this folder, so it is never shared.
    let mut files = vec![PlacedFile { below: PathBuf::from(&slug).join("SKILL.md"), text, shared: None }];
    let store = skill.shared.as_ref().and_then(|below| Shared::folder(root, below));
    let mut seen = BTreeSet::new();
    for (path, content) in &skill.files {
        let below = checked(path).map_err(|why| refuse(format!("file {path:?} {why}")))?;
        let Some(below) = below else { continue };
        if !seen.insert(below.clone()) {
            return Err(refuse(format!("file {path:?} comes twice")));
        }
        let shared = store.as_ref().map(|store| store.file(&below));
        files.push(PlacedFile { below: PathBuf::from(&slug).join(below), text: content.clone(), shared });
    }
    Ok(Placed { is_listed: !frontmatter::is_hidden(&skill.content), slug, files })
}

/// A path that stays inside the skill; `None` for another `SKILL.md`, which is not ours to write.
fn checked(path: &str) -> Result<Option<PathBuf>, &'static str> {
    if path.is_empty() || path.contains('\0') || path.contains('\\') {
        return Err("has a path that is empty or has a NUL or a backslash in it");
    }
    let mut clean = PathBuf::new();
    let mut climbs = false;
    for part in Path::new(path).components() {
        match part {
            Component::Normal(name) => clean.push(name),
            Component::CurDir => {}
            Component::ParentDir => {
                climbs = true;
                if !clean.pop() {
                    return Err("leads out of the skill's folder");
                }
            }
            Component::RootDir | Component::Prefix(_) => return Err("has an absolute path"),
        }
    }
    if clean.to_str().is_some_and(|clean| clean.eq_ignore_ascii_case("SKILL.md")) {
        return Ok(None);
    }
    if climbs || clean.as_os_str().is_empty() {
        Err("has a path with '..' in it or none at all")
    } else {
        Ok(Some(clean))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skill(name: &str, files: &[&str]) -> Skill {
        let files = files.iter().map(|path| ((*path).to_owned(), "text".to_owned())).collect();
        Skill { name: name.to_owned(), files, ..Skill::default() }
    }

    fn placed_names(skills: &[Skill], into: Option<&Dir>) -> Vec<String> {
        place(skills, into, Path::new("/")).expect("placed").into_iter().map(|skill| skill.slug).collect()
    }

    #[test]
    fn names_become_plain_folder_names() {
        for (name, want) in
            [("A B", "a-b"), ("--x__y!!", "x-y"), ("", "skill"), ("日本", "skill"), ("../../etc", "etc")]
        {
            assert_eq!(slug(name), want, "{name}");
        }
        assert!(slug(&"x".repeat(1000)).len() <= 200);
    }

    #[test]
    fn skl_3_two_skills_of_one_name_get_two_folders_in_order() {
        let skills = [skill("A B", &[]), skill("A-B", &[]), skill("a b", &[]), skill("c", &[])];
        assert_eq!(placed_names(&skills, None), ["a-b", "a-b-multica", "a-b-multica-2", "c"]);
    }

    #[test]
    fn skl_2_a_users_folder_is_passed_over_and_the_head_names_the_new_one() {
        let temp = tempfile::tempdir().expect("temp");
        std::fs::create_dir(temp.path().join("foo")).expect("user's");
        let dir = Dir::open(temp.path()).expect("open");
        let placed = place(&[skill("foo", &[])], Some(&dir), Path::new("/")).expect("placed");
        assert_eq!(placed[0].slug, "foo-multica");
        assert!(
            placed[0].files[0].text.contains("name: foo-multica\n"),
            "skl_9: a head even without any text"
        );
    }

    #[test]
    fn skl_4_too_many_collisions_are_an_error() {
        let temp = tempfile::tempdir().expect("temp");
        let dir = Dir::open(temp.path()).expect("open");
        for name in ["x".to_owned(), "x-multica".to_owned()]
            .into_iter()
            .chain((2..64).map(|n| format!("x-multica-{n}")))
        {
            dir.make(name, 0o755).expect("made");
        }
        assert_eq!(
            place(&[skill("x", &[])], Some(&dir), Path::new("/")).expect_err("none free").kind(),
            "skill"
        );
    }

    #[test]
    fn skl_7_another_skill_md_is_left_out() {
        let placed = place(
            &[skill("x", &["SKILL.md", "skill.md", "./SKILL.md", "a/../SKILL.md", "./b/c.md"])],
            None,
            Path::new("/"),
        );
        let files: Vec<_> =
            placed.expect("placed").remove(0).files.into_iter().map(|file| file.below).collect();
        assert_eq!(files, [PathBuf::from("x/SKILL.md"), PathBuf::from("x/b/c.md")]);
    }

    #[test]
    fn skl_8_and_bug_42_paths_that_lead_out_are_refused() {
        for path in ["../x", "/x", "a\\b", "a\0b", "", ".", "a/../../x", "a/../b"] {
            let error = place(&[skill("x", &[path])], None, Path::new("/")).expect_err(path);
            assert_eq!(error.kind(), "skill", "{path:?}");
        }
        assert!(place(&[skill("x", &["a/b", "./a/b"])], None, Path::new("/")).is_err(), "one file twice");
    }

    #[test]
    fn skl_1_each_provider_has_its_place() {
        assert_eq!(folder("claude"), Some(Path::new(".claude/skills")));
        assert_eq!(folder("nobody-knows"), Some(Path::new(".agent_context/skills")));
        assert_eq!((folder("codex"), folder("hermes")), (None, None));
    }
}
