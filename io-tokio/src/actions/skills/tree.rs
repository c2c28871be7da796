//! A folder of skills, held open. A link in it is followed if it ends in it, and else it is not there.

use super::{SKILL_FILE, is_left_out};
use crate::prepare::beneath::Dir;
use rustix::fs::FileType;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

/// Such a folder.
pub(super) struct Tree {
    root: Dir,
    /// Where it is, without links.
    real: PathBuf,
}

impl Tree {
    /// Opens it; the way there may have links, as it is the user's own.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let real = std::fs::canonicalize(path)?;
        Ok(Self { root: Dir::open(&real)?, real })
    }

    /// Where a path below it really is, below it; an error if that is elsewhere.
    fn resolve(&self, below: &Path) -> io::Result<PathBuf> {
        let real = std::fs::canonicalize(self.real.join(below))?;
        let inside = real.strip_prefix(&self.real).map(Path::to_owned);
        inside.map_err(|_| {
            io::Error::new(
                io::ErrorKind::PermissionDenied,
                "it is a link that leads out of the folder of skills",
            )
        })
    }

    /// Opens a folder below it. Between the look and this nothing can be exchanged for a link: none is followed here.
    fn folder(&self, below: &Path) -> io::Result<Dir> {
        let real = self.resolve(below)?;
        self.root.descend(&real)?.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Whether there is a file.
    pub(super) fn is_file(&self, below: &Path) -> bool {
        self.split(below).is_ok_and(|(dir, name)| matches!(dir.kind(&name), Ok(Some(FileType::RegularFile))))
    }

    /// Reads a file of at most `limit` bytes.
    pub(super) fn read(&self, below: &Path, limit: u64) -> io::Result<Vec<u8>> {
        let (dir, name) = self.split(below)?;
        dir.read(&name, limit)?.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// The folder that a file really is in, and its name there.
    fn split(&self, below: &Path) -> io::Result<(Dir, std::ffi::OsString)> {
        let real = self.resolve(below)?;
        let name = real.file_name().ok_or(io::ErrorKind::NotFound)?.to_owned();
        let parent = real.parent().unwrap_or(Path::new(""));
        let dir = self.root.descend(parent)?.ok_or(io::ErrorKind::NotFound)?;
        Ok((dir, name))
    }

    /// The folders below it that are skills, in the order of their names. `names` is how many may still be looked at.
    pub(super) fn skills(&self, depth: usize, names: &mut usize) -> Vec<PathBuf> {
        let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
        self.skills_in(Path::new(""), depth, names, &mut seen, &mut found);
        found
    }

    fn skills_in(
        &self,
        at: &Path,
        depth: usize,
        names: &mut usize,
        seen: &mut BTreeSet<PathBuf>,
        found: &mut Vec<PathBuf>,
    ) {
        let Ok(entries) = self.folder(at).and_then(|dir| dir.names()) else { return };
        for name in entries {
            if *names == 0 {
                return;
            }
            *names -= 1;
            let Some(name) = name.to_str().filter(|name| !name.starts_with('.')) else { continue };
            let below = at.join(name);
            // A link to a folder above is no skill.
            let Ok(real) = self.resolve(&below) else { continue };
            if at.starts_with(&real) || !self.is_folder(&below) {
                continue;
            }
            if self.is_file(&below.join(SKILL_FILE)) {
                found.push(below);
            } else if depth > 1 && seen.insert(real) {
                self.skills_in(&below, depth - 1, names, seen, found);
            }
        }
    }

    fn is_folder(&self, below: &Path) -> bool {
        self.folder(below).is_ok()
    }

    /// The files of a skill but its `SKILL.md`, below its folder, at most `most` of them.
    ///
    /// # Errors
    /// One of its folders cannot be read.
    pub(super) fn files(&self, skill: &Path, depth: usize, most: usize) -> io::Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        self.files_in(skill, Path::new(""), depth, most, &mut found)?;
        Ok(found)
    }

    fn files_in(
        &self,
        skill: &Path,
        at: &Path,
        depth: usize,
        most: usize,
        found: &mut Vec<PathBuf>,
    ) -> io::Result<()> {
        let dir = self.folder(&skill.join(at))?;
        for name in dir.names()? {
            let Some(name) = name.to_str().filter(|name| !is_left_out(name)) else { continue };
            let below = at.join(name);
            if found.len() >= most {
                return Ok(());
            }
            let inside = skill.join(&below);
            if self.is_file(&inside) {
                // Its main file comes by itself, however it is spelled.
                if !(at.as_os_str().is_empty() && name.eq_ignore_ascii_case(SKILL_FILE)) {
                    found.push(below);
                }
            } else if depth > 1 && self.is_folder(&inside) {
                // A folder that links to one above ends at the depth.
                self.files_in(skill, &below, depth - 1, most, found)?;
            }
        }
        Ok(())
    }
}
