//! The place of the daemon's credential, which is looked at again while the daemon runs: whoever logs in again writes another one there.

use super::error::ConfigError;
use super::file::ConfigFile;
use super::server_url;
use crate::secret::Secret;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A config file with a token in it, as it was at the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenFile {
    path: PathBuf,
    /// The server that the file named then: a token that comes together with another one is for that one.
    server: Option<String>,
}

/// What tells two contents of a file apart without reading them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    inode: u64,
    length: u64,
    changed: (i64, i64),
}

impl TokenFile {
    pub(super) fn new(path: &Path, file: &ConfigFile) -> Self {
        Self { path: path.to_owned(), server: server(file) }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the file looks like from outside; `None` if it cannot be seen.
    pub fn stamp(&self) -> Option<Stamp> {
        let meta = self.path.metadata().ok()?;
        Some(Stamp { inode: meta.ino(), length: meta.len(), changed: (meta.ctime(), meta.ctime_nsec()) })
    }

    /// The token that is in the file now; empty if there is none. Blocks for up to a second, see [`ConfigFile::load`], whose warnings are
    /// added.
    ///
    /// # Errors
    /// The file cannot be read, or names another server than at the start.
    pub fn read(&self, warnings: &mut Vec<String>) -> Result<Secret, ConfigError> {
        let file = ConfigFile::load(&self.path, warnings)?;
        if server(&file) != self.server {
            let problem = "it is another server than at the start, whose token is not shown to this one";
            return Err(ConfigError::value(
                file.place("server_url"),
                None,
                problem,
                "a restart of the daemon",
            ));
        }
        file.token()
    }
}

fn server(file: &ConfigFile) -> Option<String> {
    let text = file.text("server_url").ok()??;
    Some(server_url::normalise(text).unwrap_or_else(|_| text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, json: &str) {
        std::fs::write(path, json).expect("written");
    }

    fn read(file: &TokenFile) -> Result<String, ConfigError> {
        file.read(&mut Vec::new()).map(|token| token.expose().to_owned())
    }

    fn at_start(path: &Path, json: &str) -> TokenFile {
        write(path, json);
        TokenFile::new(path, &ConfigFile::load(path, &mut Vec::new()).expect("a file"))
    }

    #[test]
    fn the_token_of_the_present_is_read() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("config.json");
        let file = at_start(&path, r#"{"token":"mul_old","server_url":"https://h/"}"#);
        let before = file.stamp().expect("it is there");
        assert_eq!(Some(&before), file.stamp().as_ref());
        write(&path, r#"{"token":" mul_newer ","server_url":"wss://H/ws"}"#);
        assert_ne!(Some(before), file.stamp());
        assert_eq!(read(&file).expect("the same server"), "mul_newer");
        std::fs::remove_file(&path).expect("removed");
        assert_eq!(file.stamp(), None);
        assert!(read(&file).is_err(), "a file without the server's name is no word about a token for it");
    }

    #[test]
    fn a_token_for_another_server_is_not_taken() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("config.json");
        for (then, now) in [
            (
                r#"{"token":"a","server_url":"https://h"}"#,
                r#"{"token":"mul_secret","server_url":"https://g"}"#,
            ),
            (r#"{"token":"a"}"#, r#"{"token":"mul_secret","server_url":"https://g"}"#),
        ] {
            let file = at_start(&path, then);
            write(&path, now);
            let text = read(&file).expect_err("another server").to_string();
            assert!(
                text.contains("server_url") && text.contains("restart") && !text.contains("mul_secret"),
                "{text}"
            );
        }
    }
}
