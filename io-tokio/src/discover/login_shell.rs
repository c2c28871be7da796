//! Asks the user's login shell where commands are: that is where version managers put them on `PATH`.

use super::Search;
use super::capture::Probe;
use super::lookup::{Lookup, is_executable};
use crate::config::Env;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How long the shell may take.
const LIMIT: Duration = Duration::from_secs(3);
/// What it said counts for so long: its start files may be costly.
pub(super) const FRESH: Duration = Duration::from_mins(30);
/// Shells that the script is written for.
const SHELLS: [&str; 5] = ["bash", "zsh", "sh", "dash", "ksh"];

/// Aliases and functions are dropped, as only a file can be started. The directory is resolved because some version
/// managers make one for each shell and remove it when the shell ends.
const SCRIPT: &str = r#"for n in NAMES; do
  unalias "$n" 2>/dev/null; unset -f "$n" 2>/dev/null
  p=$(command -v "$n" 2>/dev/null) || continue
  case $p in /*) ;; *) continue ;; esac
  d=$(cd "${p%/*}/" 2>/dev/null && pwd -P) || continue
  printf '%s\t%s\n' "$n" "$d/${p##*/}"
done"#;

/// The paths of those `names` that the shell finds; without a usable `SHELL`, or if it fails, none.
pub(super) async fn find(env: &Env, lookup: &Lookup, names: &[&str]) -> Said {
    let plain = |n: &str| n.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'));
    let names: Vec<&str> = names.iter().copied().filter(|n| !n.is_empty() && plain(n)).collect();
    let Some(shell) = env.path("SHELL").filter(|s| usable(s)) else { return BTreeMap::new() };
    if names.is_empty() {
        return BTreeMap::new();
    }
    let script = SCRIPT.replace("NAMES", &names.join(" "));
    let mut args = vec![OsStr::new("-ilc"), OsStr::new(&script)];
    // An interactive shell that does not own the terminal is stopped by it, so it gets a session without one.
    let setsid = lookup.find(OsStr::new("setsid"));
    if setsid.is_some() {
        args.insert(0, shell.as_os_str());
    }
    let probe = Probe {
        program: setsid.as_ref().unwrap_or(&shell),
        args: &args,
        env,
        limit: LIMIT,
        enough: |_| false,
        makes_session: setsid.is_some(),
    };
    match probe.run().await {
        Ok(text) => parse(&text, &names),
        Err(error) => {
            tracing::debug!(shell = %shell.display(), %error, "the login shell did not say where commands are");
            BTreeMap::new()
        }
    }
}

/// What a shell said of commands: where each one is.
pub(super) type Said = BTreeMap<String, PathBuf>;

/// What the shell said last. It depends on the environment, which stays what it is for as long as this process lives.
#[derive(Debug, Default)]
pub(super) struct Shell {
    last: Mutex<Option<(Instant, Arc<Said>)>>,
    turn: tokio::sync::Mutex<()>,
}

impl Shell {
    /// Where the default commands of all agent CLIs are; what was said less than `fresh` ago is not asked for again. That the shell failed
    /// is an answer too. Several who ask at the same time get one answer.
    pub(super) async fn ask(&self, search: &Search, fresh: Duration) -> Arc<Said> {
        let _turn = self.turn.lock().await;
        if let Some((at, said)) = self.last()
            && at.elapsed() < fresh
        {
            return said;
        }
        let names: Vec<&str> = search.clis.iter().map(|cli| cli.command).collect();
        let said = Arc::new(find(&search.env, &search.lookup(), &names).await);
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), said.clone()));
        said
    }

    /// What it said last and when, if it was ever asked.
    pub(super) fn last(&self) -> Option<(Instant, Arc<Said>)> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn usable(shell: &Path) -> bool {
    let known = |name: &OsStr| SHELLS.iter().any(|s| name == *s);
    shell.is_absolute() && shell.file_name().is_some_and(known) && is_executable(shell)
}

/// Start files may print anything, so a line counts only if it names what was asked for and a file that can run.
fn parse(text: &str, names: &[&str]) -> BTreeMap<String, PathBuf> {
    let lines = text.lines().filter_map(|line| line.split_once('\t'));
    let good = lines.filter(|(name, path)| names.contains(name) && path.starts_with('/'));
    good.map(|(name, path)| (name.to_owned(), PathBuf::from(path)))
        .filter(|(_, p)| is_executable(p))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_directory_that_only_the_login_shell_knows_is_found() {
        let home = tempfile::tempdir().expect("a directory");
        let home = home.path().canonicalize().expect("a real path");
        let bin = home.join("node/bin");
        std::fs::create_dir_all(&bin).expect("directories");
        // Links to a program that is there already: nothing is written that is run.
        std::os::unix::fs::symlink("/bin/sh", bin.join("agent")).expect("a link");
        let profile = "echo welcome; alias other='echo x'; PATH=\"$HOME/node/bin:$PATH\"; export PATH\n";
        std::fs::write(home.join(".profile"), profile).expect("written");
        let env = Env::from_pairs([
            ("HOME", home.as_os_str()),
            ("SHELL", "/bin/sh".as_ref()),
            ("PATH", "/usr/bin:/bin".as_ref()),
        ]);
        let lookup = Lookup::new(&env, &home, &home);
        let found = find(&env, &lookup, &["agent", "other", "missing-agent", "not;plain"]).await;
        assert_eq!(found, BTreeMap::from([("agent".to_owned(), bin.join("agent"))]));
    }

    #[tokio::test]
    async fn an_unknown_shell_is_not_asked() {
        let env = Env::from_pairs([("SHELL", "/bin/false"), ("PATH", "/bin")]);
        let lookup = Lookup::new(&env, Path::new("/"), Path::new("/"));
        assert!(find(&env, &lookup, &["sh"]).await.is_empty());
    }

    #[test]
    fn lines_that_were_not_asked_for_do_not_count() {
        let text = "sh\t/bin/sh\nls\t/bin/ls\nsh\nsh\trelative\nmotd\n";
        assert_eq!(parse(text, &["sh"]), BTreeMap::from([("sh".to_owned(), PathBuf::from("/bin/sh"))]));
        assert!(parse("sh\t/missing/sh\n", &["sh"]).is_empty());
    }
}
