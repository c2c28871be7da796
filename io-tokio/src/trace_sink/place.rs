//! Where a recording is written to.

use std::fmt;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use tracing::field::{DisplayValue, display};

/// A path, as a field of a line in the log.
type Field<'a> = DisplayValue<std::path::Display<'a>>;

/// Where a recording is written to. Several may be on at once, and a line in the log says which one it is about.
#[derive(Clone, Debug)]
pub enum Place {
    /// The directory of a flight recorder.
    Dir(PathBuf),
    /// The one file of a whole run.
    File(PathBuf),
}

impl Place {
    /// The directory, for the log.
    pub fn dir(&self) -> Option<Field<'_>> {
        match self {
            Self::Dir(dir) => Some(display(dir.display())),
            Self::File(_) => None,
        }
    }

    /// The file, for the log.
    pub fn file(&self) -> Option<Field<'_>> {
        match self {
            Self::Dir(_) => None,
            Self::File(file) => Some(display(file.display())),
        }
    }
}

/// What was written went away under it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gone {
    /// The newest segment, or the directory.
    Segment,
    /// The file of a whole run has no name any more: nobody will ever read it.
    Removed,
    /// The file of a whole run has another name. What is in it stays.
    Moved,
}

impl Gone {
    /// What became of the file of a whole run that was made as `path`. One that is no regular file, or cannot be looked for, counts as there.
    pub(super) fn of_file(file: &File, path: &Path) -> Option<Self> {
        let here = file.metadata().ok().filter(fs::Metadata::is_file)?;
        if here.nlink() == 0 {
            return Some(Self::Removed);
        }
        let moved = match fs::symlink_metadata(path) {
            Ok(there) => (here.dev(), here.ino()) != (there.dev(), there.ino()),
            Err(error) => matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
        };
        moved.then_some(Self::Moved)
    }

    /// For the log. `is_last`: nothing more will come that could be written.
    pub(super) const fn warning(self, is_last: bool) -> &'static str {
        match (self, is_last) {
            (Self::Segment, false) => {
                "the segment that was written, or the flight recorder's directory, was removed or moved away; recording begins anew with the next step"
            }
            (Self::Segment, true) => {
                "the segment that was written, or the flight recorder's directory, was removed or moved away; the end of the recording is missing"
            }
            (Self::Removed, _) => {
                "the file of the recording was removed; nothing more is written to it, and nothing of this run is left in it"
            }
            (Self::Moved, _) => "the file of the recording was moved away; nothing more is written to it",
        }
    }
}

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Segment => {
                "the segment that was written, or the flight recorder's directory, was removed or moved away"
            }
            Self::Removed => "the file was removed while it was recorded to",
            Self::Moved => "the file was moved away while it was recorded to",
        })
    }
}
