//! What can go wrong while a work directory is made, kept or looked at, typed so that it survives the pipe of the helper.

use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};

/// Why a preparation did not succeed. The text says what to do; [`PrepareError::kind`] is stable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum PrepareError {
    /// An id of the claim cannot be part of a path.
    #[error(
        "{what} {id:?} cannot be used in a path: it must be 1 to 128 letters, digits, '-', '_', '.' or ':'"
    )]
    InvalidId {
        /// Which id.
        what: String,
        /// The id as it came.
        id: String,
    },
    /// Another execution, of this or another process, holds the environment's lock.
    #[error("environment {} is held by a running execution; refusing to reset it", root.display())]
    Busy {
        /// The env root.
        root: PathBuf,
    },
    /// The directory belongs to another task.
    #[error("environment {} belongs to task {owner}; it was not touched", root.display())]
    OtherOwner {
        /// The env root.
        root: PathBuf,
        /// Whose it is.
        owner: String,
    },
    /// The directory holds something and nobody's name.
    #[error("environment {} has content but no owner; move it away if it is not needed", root.display())]
    Unowned {
        /// The env root.
        root: PathBuf,
    },
    /// The owner's name cannot be read, so nothing may be deleted.
    #[error("cannot read who owns environment {}: {reason}", root.display())]
    OwnerUnreadable {
        /// The env root.
        root: PathBuf,
        /// The system's text.
        reason: String,
    },
    /// The file system has no room left.
    #[error("disk full: cannot {action} {}; free some space", path.display())]
    DiskFull {
        /// What was being done.
        action: String,
        /// Where.
        path: PathBuf,
    },
    /// A symbolic link stands where a directory or file of ours belongs.
    #[error("{} is a symbolic link; it is never followed, remove it", path.display())]
    Symlink {
        /// Where.
        path: PathBuf,
    },
    /// A file with one of our names that we did not write.
    #[error("{} was not written by this daemon; it was left as it is, move it away", path.display())]
    Foreign {
        /// Where.
        path: PathBuf,
    },
    /// Something was exchanged between a check and the use of it.
    #[error("{} was replaced while it was being used", path.display())]
    Changed {
        /// Where.
        path: PathBuf,
    },
    /// A skill that cannot be installed.
    #[error("skill {skill:?}: {reason}")]
    Skill {
        /// Its name.
        skill: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The directory to work in is not usable.
    #[error("cannot work in {}: {reason}", path.display())]
    WorkDir {
        /// Where.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// Any other failure of the file system.
    #[error("cannot {action} {}: {reason}", path.display())]
    Io {
        /// What was being done.
        action: String,
        /// Where.
        path: PathBuf,
        /// The system's text.
        reason: String,
    },
    /// The helper was asked in a way that it does not understand.
    #[error("preparation request: {reason}")]
    Job {
        /// What is wrong with it.
        reason: String,
    },
    /// The helper's answer is none.
    #[error("preparation helper gave no usable answer: {reason}")]
    Reply {
        /// What is wrong with it.
        reason: String,
    },
    /// An error of a kind that this version does not know.
    #[error("{text}")]
    Other {
        /// The text as it was reported.
        text: String,
    },
}

impl PrepareError {
    /// A word for the kind, the same as on the helper's pipe.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::InvalidId { .. } => "invalid_id",
            Self::Busy { .. } => "busy",
            Self::OtherOwner { .. } => "other_owner",
            Self::Unowned { .. } => "unowned",
            Self::OwnerUnreadable { .. } => "owner_unreadable",
            Self::DiskFull { .. } => "disk_full",
            Self::Symlink { .. } => "symlink",
            Self::Foreign { .. } => "foreign",
            Self::Changed { .. } => "changed",
            Self::Skill { .. } => "skill",
            Self::WorkDir { .. } => "work_dir",
            Self::Io { .. } => "io",
            Self::Job { .. } => "job",
            Self::Reply { .. } => "reply",
            Self::Other { .. } => "other",
        }
    }
}

/// Says of an I/O result what was being done and where.
pub(crate) trait At<T> {
    /// `action` completes "cannot …", as in "create".
    fn at(self, action: &str, path: impl AsRef<Path>) -> Result<T, PrepareError>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, action: &str, path: impl AsRef<Path>) -> Result<T, PrepareError> {
        self.map_err(|error| {
            let (action, path) = (action.to_owned(), path.as_ref().to_owned());
            match error.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    PrepareError::DiskFull { action, path }
                }
                _ if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
                    PrepareError::Symlink { path }
                }
                _ => PrepareError::Io { action, path, reason: error.to_string() },
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bug_46_no_space_is_named_as_such_and_kinds_survive_the_pipe() {
        let full: io::Result<()> = Err(rustix::io::Errno::NOSPC.into());
        let error = full.at("write", "/w/x").expect_err("an error");
        assert_eq!(error.kind(), "disk_full");
        assert!(error.to_string().starts_with("disk full"), "{error}");
        let text = serde_json::to_string(&error).expect("plain data");
        assert!(text.contains("\"kind\":\"disk_full\""), "{text}");
        assert_eq!(serde_json::from_str::<PrepareError>(&text).expect("same"), error);
    }
}
