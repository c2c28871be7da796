//! What a person can do about a directory of our own state, or a file in it, that cannot be used.

use std::io::{self, ErrorKind};

/// What to do, as part of a sentence.
pub(crate) fn for_directory(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::AlreadyExists | ErrorKind::NotADirectory => {
            "something in that path is no directory: move it away"
        }
        ErrorKind::InvalidInput => "move away what has that name",
        // A limit on the size of files is as good as a disk without room.
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => "free some space",
        ErrorKind::Unsupported => "it has to be on a file system that has locks",
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            "make the directory writable for this user"
        }
        _ => "make the directory writable for this user, or free some space",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, DirBuilder, File};

    #[test]
    fn what_is_in_the_way_is_to_be_moved_and_not_made_room_for() {
        let home = tempfile::tempdir().expect("a directory");
        let way = home.path().join("ledger");
        nix::unistd::mkfifo(&way, nix::sys::stat::Mode::S_IRWXU).expect("made");
        let at = DirBuilder::new().recursive(true).create(&way).expect_err("it is there");
        let below = DirBuilder::new().recursive(true).create(way.join("1")).expect_err("no directory");
        fs::remove_file(&way).expect("removed");
        File::create(&way).expect("made");
        let file = fs::read_dir(&way).map(drop).expect_err("no directory");
        for error in [at, below, file] {
            assert!(for_directory(&error).ends_with("is no directory: move it away"), "{error}");
        }
        assert_eq!(for_directory(&ErrorKind::StorageFull.into()), "free some space");
    }
}
