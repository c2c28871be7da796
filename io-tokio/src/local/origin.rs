//! Which directory a run's directory is. A copy of one says of itself what its original said: whoever goes on with the copy would take an agent
//! over that belongs to the original, so the two are told apart by what no copy takes along.

use crate::regular;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The file that says it: the number of the directory on its file system, and below that its path.
const FILE: &str = "origin";
/// Longest file that is read, in bytes.
const MOST: u64 = 8 * 1024;

/// What a directory says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// It is the one that was made for the run, wherever it is by now; or nothing says anything else.
    Own,
    /// It is a copy of this one, which is there.
    CopyOf(PathBuf),
    /// It is a copy of one that was made as this, and is not there any more: as one that was restored from a backup is.
    Restored(PathBuf),
}

/// Writes into the directory which one it is.
pub(crate) fn mark(dir: &Path) -> io::Result<()> {
    let mut text = format!("{}\n", fs::metadata(dir)?.ino()).into_bytes();
    text.extend_from_slice(dir.as_os_str().as_bytes());
    text.push(b'\n');
    // A power cut leaves a whole mark or none: one that was cut short could not be told from a copy's.
    let mut file = tempfile::Builder::new().prefix(".origin-").tempfile_in(dir)?;
    file.write_all(&text)?;
    file.as_file().sync_all()?;
    file.persist(dir.join(FILE))?;
    Ok(())
}

/// What the directory says of itself. One that was moved is still the one that it was, unless something of its number is left where it came from.
pub(crate) fn of(dir: &Path) -> io::Result<Origin> {
    let text = match regular::read(&dir.join(FILE), MOST) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Origin::Own),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => return Err(unreadable()),
        Err(error) => return Err(io::Error::new(error.kind(), format!("its file {FILE}: {error}"))),
        Ok(text) => text,
    };
    let (number, made_as) = parse(&text).ok_or_else(unreadable)?;
    let is = |dir: &Path| fs::metadata(dir).is_ok_and(|there| there.ino() == number);
    let copy =
        !is(dir) || (made_as != dir && is(&made_as) && made_as.canonicalize().is_ok_and(|it| it != dir));
    Ok(match copy {
        false => Origin::Own,
        true if is(&made_as) => Origin::CopyOf(made_as),
        true => Origin::Restored(made_as),
    })
}

fn parse(text: &[u8]) -> Option<(u64, PathBuf)> {
    let text = text.strip_suffix(b"\n")?;
    let end = text.iter().position(|byte| *byte == b'\n')?;
    let number = std::str::from_utf8(&text[..end]).ok()?.parse().ok()?;
    Some((number, Path::new(OsStr::from_bytes(&text[end + 1..])).to_owned()))
}

fn unreadable() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("its file {FILE} is damaged"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(temp: &Path, name: &str) -> PathBuf {
        let dir = temp.canonicalize().expect("there").join(name);
        fs::create_dir(&dir).expect("made");
        mark(&dir).expect("marked");
        dir
    }

    #[test]
    fn a_directory_is_its_own_also_when_it_was_moved_and_with_any_name() {
        let temp = tempfile::tempdir().expect("temp");
        let dir = made(temp.path(), "local-a\nb");
        assert_eq!(of(&dir).expect("read"), Origin::Own);
        let moved = dir.with_file_name("moved");
        fs::rename(&dir, &moved).expect("moved");
        assert_eq!(of(&moved).expect("read"), Origin::Own);
        mark(&moved).expect("marked anew");
        assert_eq!(of(&moved).expect("read"), Origin::Own);
    }

    #[test]
    fn a_copy_is_none_whether_its_original_is_there_or_not() {
        let temp = tempfile::tempdir().expect("temp");
        let dir = made(temp.path(), "local-a");
        let copy = dir.with_file_name("copy");
        fs::create_dir(&copy).expect("made");
        fs::copy(dir.join(FILE), copy.join(FILE)).expect("copied");
        assert_eq!(of(&copy).expect("read"), Origin::CopyOf(dir.clone()));
        let moved = dir.with_file_name("moved");
        fs::rename(&dir, moved).expect("moved");
        assert_eq!(of(&copy).expect("read"), Origin::Restored(dir.clone()));
        fs::rename(&copy, &dir).expect("moved");
        assert_eq!(
            of(&dir).expect("read"),
            Origin::Restored(dir.clone()),
            "in the place of its original too"
        );
        fs::remove_file(dir.join(FILE)).expect("removed");
        assert_eq!(of(&dir).expect("read"), Origin::Own, "somebody said so");
    }

    #[test]
    fn a_damaged_mark_is_an_error() {
        let temp = tempfile::tempdir().expect("temp");
        let dir = made(temp.path(), "local-a");
        for damage in ["", "17", "x\n/a\n", "17\n/a"] {
            fs::write(dir.join(FILE), damage).expect("written");
            assert_eq!(of(&dir).expect_err(damage).kind(), io::ErrorKind::InvalidData, "{damage}");
        }
    }

    #[test]
    fn what_is_no_regular_file_is_an_error_and_is_not_waited_for() {
        let temp = tempfile::tempdir().expect("temp");
        let dir = made(temp.path(), "local-a");
        for what in regular::tests::intruders(&dir.join(FILE)) {
            let error = of(&dir).expect_err(what).to_string();
            assert_eq!(error, "its file origin: it is no regular file", "{what}");
        }
    }
}
