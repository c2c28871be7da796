//! Where a command is on this machine.

use crate::config::Env;
use rustix::fs::{Access, access};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Programs that look at the name they were called by: their links are not followed.
const NAME_DISPATCHERS: [&str; 3] = ["volta-shim", "vp", "mise"];

/// The places in which commands are looked for.
pub(super) struct Lookup {
    directories: Vec<PathBuf>,
    cwd: PathBuf,
}

impl Lookup {
    /// The directories of `PATH` without relative ones, and without the wrappers below `~/.multica/hooks`, which
    /// would call themselves.
    pub(super) fn new(env: &Env, home: &Path, cwd: &Path) -> Self {
        let hooks = home.join(".multica/hooks");
        let real_hooks = hooks.canonicalize().ok();
        let wrapper = |dir: &Path| {
            dir.starts_with(&hooks)
                || real_hooks.as_ref().is_some_and(|h| dir.canonicalize().is_ok_and(|d| d.starts_with(h)))
        };
        let path = env.raw("PATH").unwrap_or_default();
        let directories = std::env::split_paths(path).filter(|d| d.is_absolute() && !wrapper(d)).collect();
        Self { directories, cwd: cwd.to_owned() }
    }

    /// The absolute path of a command. One with a separator must be there as it is; its links are kept. A bare name
    /// is looked for in the directories, and its links are followed, so that the file stays the same when a
    /// version manager turns a link.
    pub(super) fn find(&self, command: &OsStr) -> Option<PathBuf> {
        if command.as_bytes().contains(&b'/') {
            let path = self.cwd.join(command);
            return is_executable(&path).then_some(path);
        }
        let hit = self.directories.iter().map(|d| d.join(command)).find(|path| is_executable(path))?;
        Some(pin(hit))
    }
}

/// Follows links, except those to programs that need the name they are called by.
fn pin(path: PathBuf) -> PathBuf {
    match path.canonicalize() {
        Ok(real) if !NAME_DISPATCHERS.iter().any(|name| real.file_name() == Some(OsStr::new(name))) => real,
        _ => path,
    }
}

/// Whether this user can run the file.
pub(super) fn is_executable(path: &Path) -> bool {
    path.is_file() && access(path, Access::EXEC_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn program(path: &Path) {
        fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        fs::write(path, "#!/bin/sh\n").expect("written");
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("chmod");
    }

    fn home() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().expect("a directory");
        let real = dir.path().canonicalize().expect("a real path");
        (dir, real)
    }

    fn lookup(home: &Path, path: &[&str]) -> Lookup {
        let path = std::env::join_paths(path.iter().map(|p| home.join(p))).expect("a PATH");
        Lookup::new(&Env::from_pairs([("PATH", path)]), home, home)
    }

    #[test]
    fn bare_names_are_pinned_to_what_the_link_means_today() {
        let (_kept, home) = home();
        program(&home.join("versions/1/agent"));
        fs::create_dir(home.join("bin")).expect("a directory");
        symlink(home.join("versions/1/agent"), home.join("bin/agent")).expect("a link");
        assert_eq!(lookup(&home, &["bin"]).find("agent".as_ref()), Some(home.join("versions/1/agent")));
    }

    #[test]
    fn shims_that_look_at_their_name_are_kept() {
        let (_kept, home) = home();
        program(&home.join("opt/volta-shim"));
        fs::create_dir(home.join("bin")).expect("a directory");
        symlink(home.join("opt/volta-shim"), home.join("bin/agent")).expect("a link");
        assert_eq!(lookup(&home, &["bin"]).find("agent".as_ref()), Some(home.join("bin/agent")));
    }

    #[test]
    fn wrappers_and_files_that_cannot_run_are_passed_over() {
        let (_kept, home) = home();
        program(&home.join(".multica/hooks/agent"));
        program(&home.join("plain/agent"));
        fs::set_permissions(home.join("plain/agent"), fs::Permissions::from_mode(0o600)).expect("chmod");
        fs::create_dir_all(home.join("dir/agent")).expect("a directory of that name");
        program(&home.join("bin/agent"));
        let path = [".multica/hooks", "missing", "dir", "bin"];
        assert_eq!(lookup(&home, &path).find("agent".as_ref()), Some(home.join("bin/agent")));
        assert_eq!(lookup(&home, &[".multica/hooks"]).find("agent".as_ref()), None);
    }

    #[test]
    fn cli_27_a_path_is_taken_as_it_is_or_not_at_all() {
        let (_kept, home) = home();
        program(&home.join("bin/agent"));
        symlink(home.join("bin/agent"), home.join("link")).expect("a link");
        let lookup = lookup(&home, &["bin"]);
        assert_eq!(lookup.find("./link".as_ref()), Some(home.join("./link")));
        assert_eq!(lookup.find(home.join("link").as_os_str()), Some(home.join("link")));
        assert_eq!(lookup.find("/missing/agent".as_ref()), None);
    }
}
