//! Files of our own state, opened with a look at what they are: in the place of one may be a FIFO, which would be waited for without an
//! end, or a device.

use rustix::fs::OFlags;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens a file as `options` say, if it is a regular one. It never waits.
pub(crate) fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    // To open a device may do something already.
    if fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        return Err(not_regular());
    }
    let file = options.custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)?;
    // It may be another one by now.
    if file.metadata()?.is_file() { Ok(file) } else { Err(not_regular()) }
}

/// Reads a regular file of at most `most` bytes.
pub(crate) fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(OpenOptions::new().read(true), path)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("it has more than {most} bytes")));
    }
    Ok(bytes)
}

fn not_regular() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Puts what is no regular file in a file's place: a FIFO, a directory, a device, and links to those.
    pub(crate) fn intruders(path: &Path) -> impl Iterator<Item = &'static str> {
        let put = move |what: &str| match what {
            "FIFO" => nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).expect("made"),
            "directory" => fs::create_dir(path).expect("made"),
            "device" => std::os::unix::fs::symlink("/dev/zero", path).expect("made"),
            _ => unreachable!("these three"),
        };
        ["FIFO", "directory", "device"].into_iter().inspect(move |what| {
            let _ = fs::remove_file(path).or_else(|_| fs::remove_dir(path));
            put(what);
        })
    }

    #[test]
    fn only_a_regular_file_is_opened_and_nothing_is_waited_for() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("file");
        for what in intruders(&path) {
            for options in [OpenOptions::new().read(true), OpenOptions::new().append(true).create(true)] {
                let error = open(options, &path).expect_err(what);
                assert_eq!(error.to_string(), "it is no regular file", "{what}");
            }
        }
        fs::remove_file(&path).expect("removed");
        assert_eq!(read(&path, 3).expect_err("none").kind(), io::ErrorKind::NotFound);
        fs::write(&path, "abc").expect("written");
        assert_eq!(read(&path, 3).expect("read"), b"abc");
        assert_eq!(read(&path, 2).expect_err("too long").kind(), io::ErrorKind::InvalidData);
    }
}
