//! What is known of the source that is built: its commit and its date. Neither depends on when or where the build runs, so the same source
//! makes the same program.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The commit, which whoever builds may say: for a source without its history.
pub(crate) const COMMIT: &str = "LONGSHORE_COMMIT";
/// The date of the source, in seconds since 1970, which whoever builds may say.
pub(crate) const DATE: &str = "LONGSHORE_SOURCE_DATE";
/// The same for all programs that are built: <https://reproducible-builds.org/specs/source-date-epoch/>.
pub(crate) const EPOCH: &str = "SOURCE_DATE_EPOCH";

/// What the program is built from.
const SOURCES: &[&str] = &["Cargo.lock", "Cargo.toml", "core", "io-tokio"];

/// What git says.
#[derive(Debug)]
pub(crate) struct Git {
    /// The commit, 12 or more hexadecimal digits.
    pub(crate) commit: String,
    /// When it was made, in seconds since 1970.
    pub(crate) seconds: i64,
    /// Whether what the program is built from was changed since.
    pub(crate) modified: bool,
    /// Files that change with it, and what the program is built from.
    pub(crate) watched: Vec<PathBuf>,
}

/// What git says of the directory `top`; nothing if that is no repository's top, as when the source was unpacked inside of another one.
pub(crate) fn of_git(top: &Path) -> Option<Git> {
    if !top.join(".git").exists() {
        return None;
    }
    let said = |words: &[&str]| {
        // A variable of a hook, say, would lead to another repository.
        let vars = std::env::vars_os().filter(|(name, _)| !name.to_string_lossy().starts_with("GIT_"));
        let output = Command::new("git").args(words).current_dir(top).env_clear().envs(vars).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    let shown = said(&["log", "-1", "--no-show-signature", "--abbrev=12", "--format=%h %ct"])?;
    let (commit, seconds) = shown.split_once(' ')?;
    let status = said(&[&["status", "--porcelain", "--untracked-files=no", "--"], SOURCES].concat())?;
    let path = |name: &str| Some(top.join(said(&["rev-parse", "--git-path", name])?));
    // The one changes with a checkout, the other with a commit too.
    let watched = ["HEAD", "logs/HEAD"].into_iter().filter_map(path);
    let watched = watched.chain(SOURCES.iter().map(|source| top.join(source)));
    let watched = watched.filter(|path| path.exists()).collect();
    Some(Git {
        commit: commit.to_owned(),
        seconds: seconds.parse().ok()?,
        modified: !status.is_empty(),
        watched,
    })
}

/// The commit and the date in seconds: what whoever builds says goes before what git says. What is no commit and no number is not said.
pub(crate) fn choose(
    git: Option<&Git>,
    of: impl Fn(&str) -> Option<String>,
) -> (Option<String>, Option<i64>) {
    let is_commit = |text: &String| {
        (7..=40).contains(&text.len()) && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    };
    let seconds = |name: &str| of(name)?.trim().parse().ok();
    let commit = of(COMMIT).filter(is_commit).or_else(|| git.map(|git| git.commit.clone()));
    let date = seconds(DATE).or_else(|| seconds(EPOCH)).or_else(|| git.map(|git| git.seconds));
    (commit, date)
}
