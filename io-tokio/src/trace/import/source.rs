//! The lines of log files, in order, whatever bytes they have.

use flate2::bufread::MultiGzDecoder;
use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// As much of a line is read, in bytes; the rest of a longer one is passed over.
pub(super) const LONGEST: usize = 256 * 1024;

/// How the time is written in the name of a log that was put aside, in UTC.
const STAMP: &str = "%Y-%m-%dT%H-%M-%S.%3f";

/// The files that are read for `path`: itself, or, for a directory, its logs that were put aside, oldest first, and the one that is written.
pub(super) fn files(path: &Path) -> io::Result<Vec<PathBuf>> {
    if !fs::metadata(path)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(path)? {
        let path = entry?.path();
        if put_aside(&path).is_some() {
            found.push(path);
        }
    }
    found.sort_by_key(|path| put_aside(path));
    found.extend(Some(path.join("daemon.log")).filter(|log| log.is_file()));
    if found.is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::NotFound,
            "the directory has neither a daemon.log nor one that was put aside",
        ));
    }
    Ok(found)
}

/// When a log was put aside, by its name.
fn put_aside(path: &Path) -> Option<Timestamp> {
    let name = path.file_name()?.to_str()?;
    let name = name.strip_suffix(".gz").unwrap_or(name).strip_suffix(".log")?;
    let stamp = name.strip_prefix("daemon-")?;
    TimeZone::UTC.to_timestamp(DateTime::strptime(STAMP, stamp).ok()?).ok()
}

/// The day in `zone` on which the last line of a file was written.
pub(super) fn last_day(path: &Path, zone: &TimeZone) -> io::Result<Date> {
    let at = match put_aside(path) {
        Some(at) => at,
        // A time before the calendar is none; the file may be on a strange file system.
        None => Timestamp::try_from(fs::metadata(path)?.modified()?).unwrap_or_else(|_| Timestamp::now()),
    };
    Ok(zone.to_datetime(at).date())
}

/// What became of the reading of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Done {
    /// Lines that were longer than can be read.
    pub(super) long: u64,
    /// Whether it is compressed and broken off, or damaged: what came before that was read.
    pub(super) broken: bool,
}

/// Gives each line of a file to `take`, without its line end; what is no UTF-8 is replaced.
pub(super) fn lines(path: &Path, take: impl FnMut(&str)) -> io::Result<Done> {
    let mut file = BufReader::new(File::open(path)?);
    if file.fill_buf()?.starts_with(&[0x1f, 0x8b]) {
        let mut read = read(BufReader::new(MultiGzDecoder::new(file)), take);
        if let Err((_, before)) = &mut read {
            before.broken = true;
        }
        return Ok(read.unwrap_or_else(|(_, before)| before));
    }
    read(file, take).map_err(|(error, _)| error)
}

fn read(mut from: impl BufRead, mut take: impl FnMut(&str)) -> Result<Done, (io::Error, Done)> {
    let (mut done, mut line) = (Done::default(), Vec::new());
    loop {
        line.clear();
        let read = from.by_ref().take(LONGEST as u64).read_until(b'\n', &mut line);
        if let Err(error) = read {
            if !line.is_empty() {
                take(&String::from_utf8_lossy(&line));
            }
            return Err((error, done));
        }
        if line.is_empty() {
            return Ok(done);
        }
        if line.last() == Some(&b'\n') {
            line.pop();
        } else if line.len() == LONGEST {
            done.long += 1;
            if let Err(error) = from.skip_until(b'\n') {
                return Err((error, done));
            }
        }
        take(&String::from_utf8_lossy(&line));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;

    fn packed(text: &[u8]) -> Vec<u8> {
        let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
        packer.write_all(text).expect("written");
        packer.finish().expect("written")
    }

    fn all(path: &Path) -> (Vec<String>, Done) {
        let mut found = Vec::new();
        let read = lines(path, |line| found.push(line.to_owned())).expect("reads");
        (found, read)
    }

    #[test]
    fn a_directory_is_its_logs_in_the_order_of_time() {
        let dir = tempfile::tempdir().expect("temp");
        for (name, text) in [
            ("daemon-2026-03-02T00-00-00.000.log.gz", packed(b"second\n")),
            ("daemon-2026-03-01T00-00-00.000.log", b"first\n".to_vec()),
            ("daemon.log", b"third".to_vec()),
            ("daemon-notes.log", b"no log of ours\n".to_vec()),
            ("daemon.err.log", b"nor this\n".to_vec()),
        ] {
            fs::write(dir.path().join(name), text).expect("written");
        }
        let found = files(dir.path()).expect("lists");
        let texts: Vec<String> = found.iter().flat_map(|path| all(path).0).collect();
        assert_eq!(texts, ["first", "second", "third"]);
        let zone = TimeZone::posix("XXX-5").expect("a zone");
        let day = last_day(&found[0], &zone).expect("a day");
        assert_eq!(day.to_string(), "2026-03-01");
        let zone = TimeZone::posix("XXX5").expect("a zone");
        assert_eq!(last_day(&found[0], &zone).expect("a day").to_string(), "2026-02-28");

        let empty = tempfile::tempdir().expect("temp");
        assert!(files(empty.path()).expect_err("nothing").to_string().contains("neither a daemon.log"));
    }

    #[test]
    fn long_lines_are_cut_and_strange_bytes_replaced() {
        let dir = tempfile::tempdir().expect("temp");
        let path = dir.path().join("x");
        let mut text = vec![b'a'; LONGEST + 10];
        text.extend(b"\nb\xff\0c\r\n\nlast");
        fs::write(&path, text).expect("written");
        let (lines, read) = all(&path);
        assert_eq!(lines[0].len(), LONGEST);
        assert_eq!(lines[1..], ["b\u{fffd}\0c\r", "", "last"]);
        assert_eq!(read, Done { long: 1, broken: false });
    }

    #[test]
    fn of_a_broken_archive_comes_what_can_be_read() {
        let dir = tempfile::tempdir().expect("temp");
        let path = dir.path().join("x.gz");
        let text = (0..5000).map(|n| format!("line {n}")).collect::<Vec<_>>().join("\n");
        let whole = packed(text.as_bytes());
        fs::write(&path, &whole[..whole.len() / 2]).expect("written");
        let (lines, read) = all(&path);
        assert!(read.broken && lines.len() > 100 && lines.len() < 5000, "{}", lines.len());
        assert_eq!(lines[..2], ["line 0", "line 1"]);
    }
}
