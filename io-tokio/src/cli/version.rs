//! `version`: other programs read it, so its form is fixed.

use super::command::VersionOutput;
use crate::identity::{cli_version, commit, is_modified, source, source_date};
use std::ffi::OsString;
use std::path::Path;

/// What stands for what the build did not know, in JSON: its readers want a text.
const UNKNOWN: &str = "unknown";

/// The text with its line end.
pub(super) fn text(program: Option<&OsString>, output: VersionOutput) -> String {
    let called = program.and_then(|p| Path::new(p).file_name()).and_then(|name| name.to_str());
    let date = source_date();
    match output {
        VersionOutput::Text => line(called == Some("multica"), source().as_deref(), date.as_deref()),
        VersionOutput::Json => {
            let all = serde_json::json!({
                "version": cli_version(),
                "longshore": env!("CARGO_PKG_VERSION"),
                "commit": commit().unwrap_or(UNKNOWN),
                "modified": is_modified(),
                "date": date.as_deref().unwrap_or(UNKNOWN),
                "os": os(),
                "arch": arch(),
            });
            format!("{all:#}\n")
        }
    }
}

/// Name, version, and where it is from as far as that is known. Programs that call it by the name `multica` expect that name, and after it
/// the version told to servers.
fn line(as_multica: bool, commit: Option<&str>, date: Option<&str>) -> String {
    let own = env!("CARGO_PKG_VERSION");
    let source: Vec<&str> = commit.into_iter().chain(date).collect();
    let source = source.join(" ");
    match (as_multica, source.is_empty()) {
        (false, true) => format!("longshore {own}\n"),
        (false, false) => format!("longshore {own} ({source})\n"),
        (true, true) => format!("multica {} (longshore {own})\n", cli_version()),
        (true, false) => format!("multica {} (longshore {own}, {source})\n", cli_version()),
    }
}

fn os() -> &'static str {
    match std::env::consts::OS {
        "macos" => "darwin",
        same => same,
    }
}

fn arch() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        same => same,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_reads_the_name_the_version_and_what_is_known_of_the_source() {
        let own = env!("CARGO_PKG_VERSION");
        let (commit, date) = (Some("0123456789ab"), Some("2026-01-31"));
        assert_eq!(line(false, None, None), format!("longshore {own}\n"));
        assert_eq!(line(false, commit, date), format!("longshore {own} (0123456789ab 2026-01-31)\n"));
        assert_eq!(line(false, None, date), format!("longshore {own} (2026-01-31)\n"));
        for name in ["longshore", "/usr/bin/other"] {
            let text = text(Some(&name.into()), VersionOutput::Text);
            assert!(text.starts_with(&format!("longshore {own}")) && !text.contains("unknown"), "{text}");
        }
    }

    #[test]
    fn cli_58_as_multica_the_second_word_is_the_version_told_to_servers() {
        let named = text(Some(&"/usr/bin/multica".into()), VersionOutput::Text);
        for line in [named, line(true, None, None), line(true, Some("0123456789ab"), Some("2026-01-31"))] {
            let words: Vec<&str> = line.split(' ').collect();
            assert_eq!((words[0], words[1]), ("multica", cli_version().as_str()), "{line}");
            assert!(line.ends_with('\n') && line.lines().count() == 1);
        }
    }

    #[test]
    fn cli_58_the_json_form_has_the_fields_that_are_read() {
        let json: serde_json::Value = serde_json::from_str(&text(None, VersionOutput::Json)).expect("JSON");
        assert_eq!(json["version"], cli_version());
        for key in ["commit", "date", "os", "arch"] {
            assert!(json[key].as_str().is_some_and(|text| !text.is_empty()), "{key}");
        }
    }
}

/// The build script's part, which has no tests of its own.
#[cfg(test)]
#[path = "../../build/source.rs"]
mod source;

#[cfg(test)]
mod source_tests {
    use super::source::{Git, choose, of_git};
    use std::path::Path;
    use std::process::Command;

    fn git(dir: &Path, words: &[&str]) {
        let set = ["-c", "user.name=n", "-c", "user.email=e@x.test", "-c", "commit.gpgsign=false"];
        let mut command = Command::new("git");
        command.args(set).args(words).current_dir(dir).env("GIT_COMMITTER_DATE", "1700000000 +0200");
        for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
            command.env_remove(variable);
        }
        let output = command.output().expect("git is there");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    #[test]
    fn a_repository_tells_its_commit_and_a_source_without_one_or_inside_of_another_tells_nothing() {
        let dir = tempfile::tempdir().expect("a directory");
        assert!(of_git(dir.path()).is_none());
        git(dir.path(), &["init", "-q"]);
        assert!(of_git(dir.path()).is_none(), "no commit yet");
        git(dir.path(), &["commit", "-q", "--allow-empty", "-m", "m"]);
        let found = of_git(dir.path()).expect("a commit");
        assert_eq!((found.commit.len(), found.seconds, found.modified), (12, 1_700_000_000, false));
        assert!(found.watched.len() == 2 && found.watched.iter().all(|path| path.exists()), "{found:?}");
        std::fs::write(dir.path().join("Cargo.lock"), "").expect("written");
        assert!(!of_git(dir.path()).expect("a commit").modified, "it is not known to git");
        git(dir.path(), &["add", "Cargo.lock"]);
        let changed = of_git(dir.path()).expect("a commit");
        assert!(changed.modified && changed.watched.len() == 3, "{changed:?}");
        let below = dir.path().join("unpacked");
        std::fs::create_dir(&below).expect("made");
        assert!(of_git(&below).is_none(), "that commit is not of this source");
        let other = dir.path().join("worktree");
        git(dir.path(), &["worktree", "add", "-q", "--detach", other.to_str().expect("text")]);
        assert_eq!(of_git(&other).expect("a work tree").commit, found.commit);
    }

    #[test]
    fn what_whoever_builds_says_goes_first() {
        let git = Git { commit: "0123456789ab".into(), seconds: 7, modified: false, watched: Vec::new() };
        let chosen = |said: &[(&str, &str)], git: Option<&Git>| {
            let of = |name: &str| said.iter().find(|(known, _)| *known == name).map(|(_, v)| (*v).to_owned());
            choose(git, of)
        };
        let (commit, epoch) = (("LONGSHORE_COMMIT", "abcdef0"), ("SOURCE_DATE_EPOCH", "9"));
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(chosen(&[], None), (None, None));
        assert_eq!(chosen(&[], Some(&git)), (text("0123456789ab"), Some(7)));
        assert_eq!(chosen(&[commit, epoch], Some(&git)), (text("abcdef0"), Some(9)));
        assert_eq!(
            chosen(&[commit, epoch, ("LONGSHORE_SOURCE_DATE", "8")], None),
            (text("abcdef0"), Some(8))
        );
        let wrong = [("LONGSHORE_COMMIT", "main"), ("SOURCE_DATE_EPOCH", "today")];
        assert_eq!(chosen(&wrong, Some(&git)), (text("0123456789ab"), Some(7)));
        assert_eq!(chosen(&wrong, None), (None, None));
    }
}
