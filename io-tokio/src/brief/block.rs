//! The daemon's part of a file that may also have other text in it: between two marker lines, so that it can be
//! replaced and taken out again without touching one byte of the rest.

use crate::prepare::{Dir, PrepareError};
use rustix::fs::FileType;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// First line of the block. Shared with other daemons that may find the file.
pub const BEGIN: &str = "<!-- BEGIN MULTICA-RUNTIME (auto-managed; do not edit) -->";
/// Last line of the block.
pub const END: &str = "<!-- END MULTICA-RUNTIME -->";
/// What stands between somebody's text and the block.
const SEPARATOR: &str = "\n\n";
/// Largest file that is edited, in bytes.
const MAX_FILE: u64 = 4 * 1024 * 1024;

/// Puts the brief into `name` in the work directory, or replaces the one that is there.
///
/// A link is followed only if it points to a file in the work directory; another one is an error, and so is a file of
/// more than 4 MiB or one that is no text.
pub fn install(work_dir: &Dir, name: &str, brief: &str) -> Result<(), PrepareError> {
    edit(work_dir, name, |old| Some(installed(old.unwrap_or_default(), old.is_some(), brief)))
}

/// Takes the brief out of `name` again, byte for byte; a file that had nothing else is removed.
pub fn remove(work_dir: &Dir, name: &str) -> Result<(), PrepareError> {
    edit(work_dir, name, |old| removed(old?))
}

fn installed(old: &str, exists: bool, brief: &str) -> String {
    // The brief has texts of others in it; none may look like the end of the block.
    let brief =
        brief.replace(END, "<!-- end multica-runtime -->").replace(BEGIN, "<!-- begin multica-runtime -->");
    let block = format!("{BEGIN}\n{}\n{END}\n", brief.trim_end_matches('\n'));
    match find(old) {
        Some((begin, end)) => format!("{}{block}{}", &old[..begin], &old[end..]),
        None if exists => format!("{old}{SEPARATOR}{block}"),
        None => block,
    }
}

/// The file without the block; empty text with `None` semantics is told apart by the separator.
fn removed(old: &str) -> Option<String> {
    let Some((begin, end)) = find(old) else { return Some(old.to_owned()) };
    match old[..begin].strip_suffix(SEPARATOR) {
        Some(before) => Some(format!("{before}{}", &old[end..])),
        None => Some(format!("{}{}", &old[..begin], &old[end..])).filter(|rest| !rest.is_empty()),
    }
}

/// Where the block is, its newline included; without an end it goes on to the end of the file.
fn find(text: &str) -> Option<(usize, usize)> {
    let begin =
        text.match_indices(BEGIN).map(|(at, _)| at).find(|at| *at == 0 || text[..*at].ends_with('\n'))?;
    let Some(end) = text[begin..].find(END) else { return Some((begin, text.len())) };
    let end = begin + end + END.len();
    let newline =
        if text[end..].starts_with("\r\n") { 2 } else { usize::from(text[end..].starts_with('\n')) };
    Some((begin, end + newline))
}

/// Reads, changes and writes in one step; `None` removes the file.
fn edit(
    work_dir: &Dir,
    name: &str,
    change: impl FnOnce(Option<&str>) -> Option<String>,
) -> Result<(), PrepareError> {
    let shown = work_dir.path().join(name);
    let fail = |action: &str, error: &io::Error| PrepareError::Io {
        action: action.to_owned(),
        path: shown.clone(),
        reason: error.to_string(),
    };
    let (holder, file) = target(work_dir, name)?;
    let dir = holder.as_ref().unwrap_or(work_dir);
    let (old, mode) = match dir.open_file(&file).map_err(|error| fail("read", &error))? {
        None => (None, 0o644),
        Some(open) => {
            let mode = open.metadata().map_err(|error| fail("read", &error))?.permissions().mode() & 0o777;
            let bytes = crate::prepare::read_bounded(open, MAX_FILE).map_err(|error| fail("read", &error))?;
            let text = String::from_utf8(bytes)
                .map_err(|_| fail("edit", &io::Error::other("it is not UTF-8 text")))?;
            (Some(text), mode)
        }
    };
    let new = change(old.as_deref());
    if new == old {
        return Ok(());
    }
    match new {
        Some(text) => dir.replace(&file, text.as_bytes(), mode).map_err(|error| fail("write", &error)),
        None => dir.unlink(&file).map(drop).map_err(|error| fail("remove", &error)),
    }
}

/// The file that is meant: the named one, or what a link of that name points to inside the work directory.
fn target(work_dir: &Dir, name: &str) -> Result<(Option<Dir>, OsString), PrepareError> {
    let path = work_dir.path().join(name);
    let refuse = || PrepareError::Symlink { path: path.clone() };
    match work_dir.kind(name) {
        Ok(Some(FileType::Symlink)) => {}
        _ => return Ok((None, name.into())),
    }
    let to = rustix::fs::readlinkat(work_dir, name, Vec::new()).map_err(|_| refuse())?;
    let to = PathBuf::from(OsString::from_vec(to.into_bytes()));
    let to: PathBuf = to.components().filter(|part| *part != std::path::Component::CurDir).collect();
    let file = to.file_name().ok_or_else(refuse)?.to_owned();
    let holder =
        work_dir.descend(to.parent().ok_or_else(refuse)?).map_err(|_| refuse())?.ok_or_else(refuse)?;
    match holder.kind(&file) {
        Ok(Some(FileType::RegularFile)) => Ok((Some(holder), file)),
        _ => Err(refuse()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn work_dir() -> (tempfile::TempDir, Dir) {
        let temp = tempfile::tempdir().expect("temp");
        let dir = Dir::open(temp.path()).expect("open");
        (temp, dir)
    }

    #[test]
    fn ctx_2_installing_and_removing_gives_back_every_byte() {
        let texts = [
            "",
            "x",
            "x\n",
            "x\r\ny\r\n",
            "x\n\n\n",
            "\n",
            "\n\n",
            "about <!-- END MULTICA-RUNTIME --> and more\n",
            "inline <!-- BEGIN MULTICA-RUNTIME (auto-managed; do not edit) --> is no block\n",
        ];
        for text in texts {
            let (temp, dir) = work_dir();
            let path = temp.path().join("CLAUDE.md");
            fs::write(&path, text).expect("user's");
            install(&dir, "CLAUDE.md", "brief one").expect("installed");
            install(&dir, "CLAUDE.md", "brief two\n").expect("replaced");
            let both = fs::read_to_string(&path).expect("both");
            assert!(
                both.starts_with(text) && both.contains("brief two") && !both.contains("brief one"),
                "{both:?}"
            );
            remove(&dir, "CLAUDE.md").expect("removed");
            assert_eq!(fs::read_to_string(&path).expect("still there"), text);
        }
    }

    #[test]
    fn ctx_2_a_file_of_ours_alone_goes_and_text_after_the_block_stays() {
        let (temp, dir) = work_dir();
        let path = temp.path().join("CLAUDE.md");
        install(&dir, "CLAUDE.md", "brief").expect("installed");
        let once = fs::read(&path).expect("file");
        install(&dir, "CLAUDE.md", "brief").expect("ctx_3: twice is once");
        assert_eq!(fs::read(&path).expect("file"), once);
        remove(&dir, "CLAUDE.md").expect("removed");
        assert!(!path.exists());
        remove(&dir, "CLAUDE.md").expect("nothing to remove");

        fs::write(&path, "user").expect("user's");
        install(&dir, "CLAUDE.md", "brief").expect("installed");
        let text = fs::read_to_string(&path).expect("file") + "added later\n";
        fs::write(&path, text).expect("added");
        install(&dir, "CLAUDE.md", "brief two").expect("installed");
        remove(&dir, "CLAUDE.md").expect("removed");
        assert_eq!(fs::read_to_string(&path).expect("file"), "useradded later\n");
    }

    #[test]
    fn ctx_4_a_block_without_end_is_replaced() {
        let (temp, dir) = work_dir();
        let path = temp.path().join("CLAUDE.md");
        fs::write(&path, format!("user\n\n{BEGIN}\nold and cut o")).expect("cut");
        install(&dir, "CLAUDE.md", "new").expect("installed");
        assert_eq!(fs::read_to_string(&path).expect("file"), format!("user\n\n{BEGIN}\nnew\n{END}\n"));
    }

    #[test]
    fn a_brief_cannot_end_its_own_block() {
        let (temp, dir) = work_dir();
        install(&dir, "CLAUDE.md", &format!("a\n{END}\nb")).expect("installed");
        install(&dir, "CLAUDE.md", "c").expect("installed");
        assert_eq!(
            fs::read_to_string(temp.path().join("CLAUDE.md")).expect("file"),
            format!("{BEGIN}\nc\n{END}\n")
        );
    }

    #[test]
    fn ctx_11_a_link_is_followed_only_inside_the_work_directory() {
        let (outside, _) = work_dir();
        let victim = outside.path().join("victim.md");
        fs::write(&victim, "precious").expect("victim");
        let (temp, dir) = work_dir();
        std::os::unix::fs::symlink(&victim, temp.path().join("CLAUDE.md")).expect("link");
        assert_eq!(install(&dir, "CLAUDE.md", "brief").expect_err("outside").kind(), "symlink");
        assert_eq!(fs::read_to_string(&victim).expect("whole"), "precious");
        fs::remove_file(temp.path().join("CLAUDE.md")).expect("remove");
        fs::write(temp.path().join("AGENTS.md"), "shared").expect("file");
        std::os::unix::fs::symlink("./AGENTS.md", temp.path().join("CLAUDE.md")).expect("link");
        install(&dir, "CLAUDE.md", "brief").expect("inside");
        assert!(temp.path().join("CLAUDE.md").is_symlink());
        assert!(fs::read_to_string(temp.path().join("AGENTS.md")).expect("file").contains("brief"));
        remove(&dir, "CLAUDE.md").expect("removed");
        assert_eq!(fs::read_to_string(temp.path().join("AGENTS.md")).expect("file"), "shared");
    }
}
