//! The end of a file that grows, and is put aside by whoever writes it.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The file is read backwards in pieces of this size.
const PIECE: usize = 64 << 10;

/// A file, read from somewhere near its end.
pub(super) struct Tail {
    path: PathBuf,
    file: File,
    at: u64,
}

impl Tail {
    /// Begins with the last `lines` lines.
    pub(super) fn open(path: &Path, lines: usize) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let at = start_of(&mut file, lines)?;
        Ok(Self { path: path.to_owned(), file, at })
    }

    /// Copies what is new, and goes on with the file that took the place of this one, if one did.
    pub(super) fn copy_new(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.copy(out)?;
        // Between two files there is a moment without any.
        let Ok(next) = File::open(&self.path) else { return Ok(()) };
        if same(&next, &self.file)? {
            if next.metadata()?.len() < self.at {
                // Somebody has emptied it.
                self.at = 0;
                self.copy(out)?;
            }
            return Ok(());
        }
        // What was written before it was put aside, and after the look above.
        self.copy(out)?;
        (self.file, self.at) = (next, 0);
        self.copy(out)
    }

    fn copy(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(self.at))?;
        let mut piece = vec![0; PIECE];
        loop {
            let n = self.file.read(&mut piece)?;
            if n == 0 {
                return out.flush();
            }
            out.write_all(&piece[..n])?;
            self.at += n as u64;
        }
    }
}

fn same(a: &File, b: &File) -> io::Result<bool> {
    let (a, b) = (a.metadata()?, b.metadata()?);
    Ok((a.dev(), a.ino()) == (b.dev(), b.ino()))
}

/// Where the last `lines` lines begin. A last line without an end counts.
fn start_of(file: &mut File, lines: usize) -> io::Result<u64> {
    let end = file.seek(SeekFrom::End(0))?;
    if lines == 0 {
        return Ok(end);
    }
    let (mut at, mut left) = (end, lines);
    while at > 0 {
        let from = at.saturating_sub(PIECE as u64);
        let mut piece = vec![0; usize::try_from(at - from).unwrap_or(PIECE)];
        file.seek(SeekFrom::Start(from))?;
        file.read_exact(&mut piece)?;
        for (n, byte) in piece.iter().enumerate().rev() {
            // The end of the last line begins no other.
            if *byte == b'\n' && from + n as u64 + 1 != end {
                left -= 1;
                if left == 0 {
                    return Ok(from + n as u64 + 1);
                }
            }
        }
        at = from;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn new_of(tail: &mut Tail) -> String {
        let mut out = Vec::new();
        tail.copy_new(&mut out).expect("copied");
        String::from_utf8(out).expect("UTF-8")
    }

    fn append(path: &Path, text: &str) {
        let mut file = File::options().create(true).append(true).open(path).expect("open");
        file.write_all(text.as_bytes()).expect("written");
    }

    #[test]
    fn the_last_lines_are_found_whatever_their_length() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("log");
        let long = "x".repeat(PIECE + 7);
        let text = format!("one\n\n{long}\nlast\n");
        fs::write(&path, &text).expect("written");
        let shown = |lines| new_of(&mut Tail::open(&path, lines).expect("open"));
        assert_eq!(shown(0), "");
        assert_eq!(shown(1), "last\n");
        assert_eq!(shown(2), format!("{long}\nlast\n"));
        assert_eq!(shown(3), format!("\n{long}\nlast\n"));
        assert_eq!((shown(4), shown(99)), (text.clone(), text));
        append(&path, "unfinished");
        assert_eq!(shown(2), "last\nunfinished");
        fs::write(&path, "").expect("written");
        assert_eq!(shown(3), "");
    }

    #[test]
    fn cli_91_what_comes_is_followed_across_rotations() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("log");
        append(&path, "a\n");
        let mut tail = Tail::open(&path, 10).expect("open");
        assert_eq!(new_of(&mut tail), "a\n");
        append(&path, "b\n");
        fs::rename(&path, dir.path().join("log.1")).expect("renamed");
        assert_eq!(
            new_of(&mut tail),
            "b\n",
            "what was written before it was put aside, while there is no new one"
        );
        append(&dir.path().join("log.1"), "c\n");
        append(&path, "d\n");
        assert_eq!(new_of(&mut tail), "c\nd\n");
        fs::write(&path, "").expect("emptied");
        append(&path, "e");
        assert_eq!(new_of(&mut tail), "e");
        assert_eq!(new_of(&mut tail), "");
    }
}
