//! The lines of log files, in order, whatever bytes they have.

use super::days::Until;
use crate::trace::input::{Source, Stream, archive, is_stdin};
use crate::unpack::peeked;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use std::fs;
use std::io::{self, BufRead, Read};
use std::path::{Path, PathBuf};

/// As much of a line is read, in bytes without its line end; the rest of a longer one is passed over.
pub(super) const LONGEST: usize = 256 * 1024;

/// How the time is written in the name of a log that was put aside, in UTC.
const STAMP: &str = "%Y-%m-%dT%H-%M-%S.%3f";

/// What a log has behind its name when it is packed.
const PACKED: [&str; 2] = [".gz", ".zst"];

/// One log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Log {
    Stdin,
    File {
        path: PathBuf,
        /// As it was named, for messages.
        name: String,
    },
}

/// The logs that are read for `path`: itself, `-` for standard input, or, for a directory, its logs that were put aside, oldest first, and the one that is
/// written. Relative paths are below `cwd`.
pub(super) fn logs(path: &Path, cwd: &Path) -> io::Result<Vec<Log>> {
    if is_stdin(path) {
        return Ok(vec![Log::Stdin]);
    }
    let named = path;
    let path = cwd.join(path);
    if !fs::metadata(&path)?.is_dir() {
        return Ok(vec![Log::File { path, name: named.display().to_string() }]);
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(&path)? {
        let path = entry?.path();
        if put_aside(&path).is_some() {
            found.push(path);
        }
    }
    found.sort_by_cached_key(|path| (put_aside(path), path.clone()));
    found.extend(Some(path.join("daemon.log")).filter(|log| log.is_file()));
    if found.is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::NotFound,
            "the directory has neither a daemon.log nor one that was put aside",
        ));
    }
    let log = |path: PathBuf| {
        let name = path.file_name().map_or_else(|| named.to_owned(), |name| named.join(name));
        Log::File { path, name: name.display().to_string() }
    };
    Ok(found.into_iter().map(log).collect())
}

/// When a log was put aside, by its name.
fn put_aside(path: &Path) -> Option<Timestamp> {
    let name = path.file_name()?.to_str()?;
    let name = PACKED.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name).strip_suffix(".log")?;
    let stamp = name.strip_prefix("daemon-")?;
    TimeZone::UTC.to_timestamp(DateTime::strptime(STAMP, stamp).ok()?).ok()
}

/// How a line ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineEnd {
    /// As every line does.
    There,
    /// The log ends without it.
    Missing,
    /// It is longer than [`LONGEST`], of which that much is there.
    TooFar,
}

/// What became of the reading of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Done {
    /// Lines that were read.
    pub(super) lines: u64,
    /// Why the rest cannot be read, if there is one: what came before was.
    pub(super) broken: Option<String>,
}

impl Log {
    /// For messages.
    pub(super) fn name(&self) -> String {
        self.source().name()
    }

    fn source(&self) -> Source {
        match self {
            Self::Stdin => Source::Stdin,
            Self::File { path, name } => Source::File { path: path.clone(), name: name.clone() },
        }
    }

    /// When its last line was written, at the latest; that of standard input is taken to be written now.
    pub(super) fn until(&self) -> io::Result<Until> {
        let Self::File { path, .. } = self else { return Ok(Until::Now(Timestamp::now())) };
        if let Some(at) = put_aside(path) {
            return Ok(Until::Named(at));
        }
        // A time before the calendar is none; the file may be on a strange file system.
        let written = Timestamp::try_from(fs::metadata(path)?.modified()?);
        Ok(written.map_or_else(|_| Until::Now(Timestamp::now()), Until::Written))
    }

    /// Gives each line to `take`, unpacked and without its line end, and how it ends; what is no UTF-8 is replaced.
    ///
    /// # Errors
    /// If it cannot be opened. What goes wrong later is told.
    pub(super) fn lines(&self, mut take: impl FnMut(&str, LineEnd)) -> io::Result<Done> {
        let mut done = Done::default();
        let (first, stream) = peeked(self.source().open()?, archive::BLOCK);
        // Its first line would be lost, and with it where the next log begins.
        if archive::is_one(&first) {
            return Err(io::Error::other("it is an archive; unpack it, and name the directory or the logs"));
        }
        if let Err(error) = read(stream, &mut take, &mut done) {
            done.broken = Some(error.to_string());
        }
        Ok(done)
    }
}

fn read(mut from: Stream, take: &mut impl FnMut(&str, LineEnd), done: &mut Done) -> io::Result<()> {
    let mut line = Vec::new();
    loop {
        line.clear();
        // With one byte more: the line end, or the first one too many.
        let read = from.by_ref().take(LONGEST as u64 + 1).read_until(b'\n', &mut line);
        if line.is_empty() {
            return read.map(drop);
        }
        let mut rest = Ok(());
        let end = if line.last() == Some(&b'\n') {
            line.pop();
            LineEnd::There
        } else if line.len() <= LONGEST {
            LineEnd::Missing
        } else {
            line.truncate(LONGEST);
            rest = from.skip_until(b'\n').map(drop);
            LineEnd::TooFar
        };
        done.lines += 1;
        take(&String::from_utf8_lossy(&line), end);
        read.and(rest)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};
    use std::io::Write;

    fn packed(text: &[u8]) -> Vec<u8> {
        let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
        packer.write_all(text).expect("written");
        packer.finish().expect("written")
    }

    fn zstd(text: &[u8]) -> Vec<u8> {
        compress_to_vec(text, CompressionLevel::Fastest)
    }

    fn all(path: &Path) -> (Vec<String>, Vec<LineEnd>, Done) {
        let (mut found, mut ends) = (Vec::new(), Vec::new());
        let log = Log::File { path: path.to_owned(), name: String::new() };
        let take = |line: &str, end| {
            found.push(line.to_owned());
            ends.push(end);
        };
        let read = log.lines(take).expect("reads");
        (found, ends, read)
    }

    #[test]
    fn a_directory_is_its_logs_in_the_order_of_time() {
        let dir = tempfile::tempdir().expect("temp");
        for (name, text) in [
            ("daemon-2026-03-02T00-00-00.000.log.gz", packed(b"second\n")),
            ("daemon-2026-03-02T12-00-00.000.log.zst", zstd(b"and a half\n")),
            ("daemon-2026-03-01T00-00-00.000.log", b"first\n".to_vec()),
            ("daemon.log", b"third".to_vec()),
            ("daemon-notes.log", b"no log of ours\n".to_vec()),
            ("daemon.err.log", b"nor this\n".to_vec()),
        ] {
            fs::write(dir.path().join(name), text).expect("written");
        }
        let found = logs(Path::new("."), dir.path()).expect("lists");
        let mut texts = Vec::new();
        for log in &found {
            log.lines(|line, _| texts.push(line.to_owned())).expect("reads");
        }
        assert_eq!(texts, ["first", "second", "and a half", "third"]);
        let names: Vec<String> = found.iter().map(Log::name).collect();
        assert_eq!(
            (names[0].as_str(), names[3].as_str()),
            ("./daemon-2026-03-01T00-00-00.000.log", "./daemon.log")
        );
        let aside = "2026-03-01T00:00:00Z".parse().expect("a time");
        assert_eq!(found[0].until().expect("a time"), Until::Named(aside));
        assert!(matches!(found[3].until().expect("a time"), Until::Written(_)));
        assert!(matches!(Log::Stdin.until().expect("a time"), Until::Now(_)));

        let empty = tempfile::tempdir().expect("temp");
        assert!(
            logs(empty.path(), Path::new("/"))
                .expect_err("nothing")
                .to_string()
                .contains("neither a daemon.log")
        );
    }

    #[test]
    fn long_lines_are_cut_and_strange_bytes_replaced() {
        let dir = tempfile::tempdir().expect("temp");
        let path = dir.path().join("x");
        let mut text = vec![b'a'; LONGEST + 1];
        text.push(b'\n');
        text.extend(vec![b'a'; LONGEST]);
        text.extend(b"\nb\xff\0c\r\n\nlast");
        fs::write(&path, text).expect("written");
        let (lines, ends, read) = all(&path);
        assert_eq!((lines[0].len(), lines[1].len()), (LONGEST, LONGEST));
        assert_eq!(lines[2..], ["b\u{fffd}\0c\r", "", "last"]);
        let there = LineEnd::There;
        assert_eq!(ends, [LineEnd::TooFar, there, there, there, LineEnd::Missing]);
        assert_eq!(read, Done { lines: 5, broken: None });
        // As long as a line may be, and nothing behind it.
        fs::write(&path, vec![b'a'; LONGEST]).expect("written");
        assert_eq!(all(&path).1, [LineEnd::Missing]);
    }

    #[test]
    fn of_a_broken_archive_comes_what_can_be_read() {
        let dir = tempfile::tempdir().expect("temp");
        let path = dir.path().join("x");
        let text = (0..50_000).map(|n| format!("line {n}")).collect::<Vec<_>>().join("\n");
        for (whole, packer) in [(packed(text.as_bytes()), "gzip"), (zstd(text.as_bytes()), "zstd")] {
            fs::write(&path, &whole[..whole.len() * 3 / 4]).expect("written");
            let (lines, _, read) = all(&path);
            assert!(lines.len() > 100 && lines.len() < 50_000, "{packer}: {}", lines.len());
            assert_eq!(lines[..2], ["line 0", "line 1"]);
            assert!(read.broken.is_some_and(|why| why.contains(&format!("the {packer} data is cut off"))));
            assert_eq!(read.lines, lines.len() as u64);
        }
    }
}
