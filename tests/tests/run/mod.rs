//! A directory of its own for a run of the binary, and what is left of the run in the system.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// The binary under another path, so that each process of this run, and of no other, can be told by its program.
pub(crate) struct Bench {
    dir: TempDir,
}

impl Bench {
    /// On the file system of the binary, so that a link to it can be made: nothing is written that is run.
    pub(crate) fn new() -> Self {
        #[cfg(target_os = "linux")]
        longshore_tests::heed_interrupts();
        let dir = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
        let bench = Self { dir };
        std::fs::hard_link(env!("CARGO_BIN_EXE_longshore-under-test"), bench.program()).expect("a link");
        bench
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.dir.path().canonicalize().expect("a real path")
    }

    /// Under this name the program is the double when it is called by it, and the command line when it has other arguments.
    pub(crate) fn program(&self) -> PathBuf {
        self.path().join("longshore")
    }

    /// The binary with these arguments, an empty environment but for a `PATH`, and everything below the bench.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(self.program());
        command
            .args(args)
            .current_dir(self.path())
            .env_clear()
            .env("HOME", self.path())
            .env("TMPDIR", self.path())
            .env("PATH", "/usr/bin:/bin");
        command
    }

    /// Processes whose program is that of this bench.
    #[cfg(target_os = "linux")]
    pub(crate) fn processes(&self) -> Vec<String> {
        let ours = self.path();
        let mut found = Vec::new();
        for process in std::fs::read_dir("/proc").expect("procfs").flatten() {
            let exe = std::fs::read_link(process.path().join("exe")).unwrap_or_default();
            if exe.starts_with(&ours) {
                let words = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
                found.push(String::from_utf8_lossy(&words).replace('\0', " "));
            }
        }
        found
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn processes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Standard output and standard error as texts.
pub(crate) fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    (text(&output.stdout), text(&output.stderr))
}

/// What comes after `label` on the line that begins with it.
pub(crate) fn after<'a>(text: &'a str, label: &str) -> &'a Path {
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix(label));
    Path::new(line.unwrap_or_else(|| panic!("no {label:?} in {text}")).trim())
}
