//! Whether a program's file is still the one that was asked.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What tells one state of a file from another without reading it. Links are followed: what counts is what is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileMark {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

impl FileMark {
    /// The mark of the file at `path`; `None` if there is none.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let meta = path.metadata().ok()?;
        let modified = (meta.mtime(), meta.mtime_nsec());
        Some(Self { device: meta.dev(), inode: meta.ino(), size: meta.size(), modified })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_file_that_is_replaced_or_written_has_another_mark() {
        let dir = tempfile::tempdir().expect("a directory");
        let (file, other, link) = (dir.path().join("a"), dir.path().join("b"), dir.path().join("link"));
        fs::write(&file, "one").expect("written");
        symlink(&file, &link).expect("a link");
        let first = FileMark::of(&link);
        assert!(first.is_some() && first == FileMark::of(&file), "links are followed");
        fs::write(&other, "one").expect("written");
        fs::rename(&other, &file).expect("replaced");
        let second = FileMark::of(&link);
        assert_ne!(first, second, "another inode");
        fs::write(&file, "longer").expect("written");
        assert_ne!(second, FileMark::of(&link));
        fs::remove_file(&file).expect("removed");
        assert_eq!(FileMark::of(&link), None);
    }
}
