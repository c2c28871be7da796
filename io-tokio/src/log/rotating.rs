//! A log file that is put aside when it is full, packed, and in the end removed.

use crate::config::LogRotation;
use flate2::Compression;
use flate2::write::GzEncoder;
use jiff::{Span, Timestamp};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

const STAMP: &str = "%Y-%m-%dT%H-%M-%S.%3f";
const PUT_ASIDE: &str = ".log";
const PACKED: &str = ".log.gz";

/// An open log file. What cannot be rotated is written on: a full disk costs lines, not the daemon.
///
/// A file that was put aside is named after the time (UTC), such as `daemon-2026-08-22T07-05-07.042.log.gz`.
pub struct LogFile {
    path: PathBuf,
    rotation: LogRotation,
    file: File,
    /// Bytes in it, or since the last attempt to put it aside.
    len: u64,
    /// Held while files are packed.
    packing: Arc<Mutex<()>>,
    packer: Option<JoinHandle<()>>,
}

impl LogFile {
    /// Opens the file at its end; a new one is for its user alone. One that is full already is put aside first.
    ///
    /// # Errors
    /// It can be neither opened nor made.
    pub fn open(path: impl Into<PathBuf>, rotation: LogRotation) -> io::Result<Self> {
        let path = path.into();
        let file = open(&path)?;
        let len = file.metadata()?.len();
        let mut log = Self { path, rotation, file, len, packing: Arc::default(), packer: None };
        if len >= log.limit() {
            log.put_aside();
        } else {
            // What an earlier process has put aside and did not get to pack.
            log.pack();
        }
        Ok(log)
    }

    fn limit(&self) -> u64 {
        u64::from(self.rotation.max_size_mib) << 20
    }

    fn put_aside(&mut self) {
        self.len = 0;
        let moved = free_name(&self.path).and_then(|to| fs::rename(&self.path, to));
        if moved.is_err() {
            return;
        }
        if let Ok(file) = open(&self.path) {
            self.file = file;
        }
        self.pack();
    }

    /// Packs what was put aside, and removes what is too much or too old, without making the log wait.
    fn pack(&mut self) {
        let (path, rotation, packing) = (self.path.clone(), self.rotation.clone(), Arc::clone(&self.packing));
        let work = move || {
            let _one_at_a_time = packing.lock().unwrap_or_else(PoisonError::into_inner);
            for (_, file) in backups(&path, PUT_ASIDE) {
                // Kept as it is if it cannot be packed; the next round tries again.
                let _ = pack(&file);
            }
            remove_surplus(&path, &rotation);
        };
        // Without a thread it is left to the next round.
        self.packer = std::thread::Builder::new().name("log-packer".into()).spawn(work).ok();
    }

    /// Waits until files that were put aside are packed.
    #[cfg(test)]
    fn packed(&mut self) {
        if let Some(packer) = self.packer.take() {
            packer.join().expect("no panic");
        }
    }
}

impl Write for LogFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.len > 0 && self.len + bytes.len() as u64 > self.limit() {
            self.put_aside();
        }
        let written = self.file.write(bytes)?;
        self.len += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn open(path: &Path) -> io::Result<File> {
    File::options().create(true).append(true).mode(0o600).open(path)
}

/// What stands before the time in the names of files that were put aside.
fn prefix(path: &Path) -> String {
    format!("{}-", path.file_stem().unwrap_or_default().to_string_lossy())
}

/// A name for the file that is put aside now, which no other has.
fn free_name(path: &Path) -> io::Result<PathBuf> {
    let now = Timestamp::now();
    for ms in 0..1_000 {
        let stamp = (now + Span::new().milliseconds(ms)).strftime(STAMP).to_string();
        let name = |end| path.with_file_name(format!("{}{stamp}{end}", prefix(path)));
        if !name(PUT_ASIDE).exists() && !name(PACKED).exists() {
            return Ok(name(PUT_ASIDE));
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// The files that were put aside and have this ending, with the time in their name, newest first.
fn backups(path: &Path, end: &str) -> Vec<(String, PathBuf)> {
    let prefix = prefix(path);
    let listed = path.parent().and_then(|dir| fs::read_dir(dir).ok()).into_iter().flatten().flatten();
    let mut found: Vec<_> = listed
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let stamp = name.strip_prefix(&prefix)?.strip_suffix(end)?;
            // Something else may have a similar name.
            jiff::civil::DateTime::strptime(STAMP, stamp).ok()?;
            Some((stamp.to_owned(), entry.path()))
        })
        .collect();
    found.sort_by(|a, b| b.cmp(a));
    found
}

fn pack(from: &Path) -> io::Result<()> {
    let to = from.with_extension("log.gz");
    let part = from.with_extension("log.gz.part");
    let out = File::options().write(true).create(true).truncate(true).mode(0o600).open(&part)?;
    let mut packer = GzEncoder::new(out, Compression::default());
    io::copy(&mut File::open(from)?, &mut packer)?;
    packer.finish()?;
    fs::rename(&part, &to)?;
    fs::remove_file(from)
}

fn remove_surplus(path: &Path, rotation: &LogRotation) {
    let age = Span::new().hours(i64::from(rotation.max_age_days.min(100_000)) * 24);
    let oldest =
        Timestamp::now().checked_sub(age).map(|at| at.strftime(STAMP).to_string()).unwrap_or_default();
    let most = usize::try_from(rotation.max_backups).unwrap_or(usize::MAX);
    for (n, (stamp, file)) in backups(path, PACKED).into_iter().enumerate() {
        if n >= most || stamp < oldest {
            let _ = fs::remove_file(file);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::GzDecoder;
    use std::io::Read;
    use std::os::unix::fs::PermissionsExt;

    const ROTATION: LogRotation = LogRotation { max_size_mib: 1, max_backups: 2, max_age_days: 30 };

    fn names(dir: &Path) -> Vec<String> {
        let listed = fs::read_dir(dir).expect("listed").flatten();
        let mut names: Vec<_> = listed.map(|entry| entry.file_name().into_string().expect("UTF-8")).collect();
        names.sort();
        names
    }

    fn unpacked(path: &Path) -> String {
        let mut text = String::new();
        GzDecoder::new(File::open(path).expect("open")).read_to_string(&mut text).expect("a whole file");
        text
    }

    #[test]
    fn cli_87_full_files_are_packed_and_only_so_many_are_kept() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("daemon.log");
        let mut log = LogFile::open(&path, ROTATION).expect("open");
        // Four to a file.
        let line = |n: usize| format!("{n} {}\n", "x".repeat(250 * 1024));
        for n in 0..21 {
            log.write_all(line(n).as_bytes()).expect("written");
            log.packed();
        }
        let names = names(dir.path());
        assert_eq!(names.len(), 3, "{names:?}");
        assert!(names[2] == "daemon.log" && names[0].ends_with(".log.gz"), "{names:?}");
        assert_eq!(fs::read_to_string(&path).expect("read"), line(20));
        let last = unpacked(&dir.path().join(&names[1]));
        assert_eq!(last, (16..20).map(line).collect::<String>(), "no line is lost or cut");
        for name in names {
            let mode = fs::metadata(dir.path().join(&name)).expect("metadata").permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
    }

    #[test]
    fn what_a_crash_left_unpacked_is_packed_and_the_old_goes() {
        let dir = tempfile::tempdir().expect("a directory");
        let put = |name: &str, text: &str| fs::write(dir.path().join(name), text).expect("written");
        put("daemon-2999-01-02T03-04-05.006.log", "left");
        put("daemon-2001-01-02T03-04-05.006.log.gz", "old");
        put("daemon-notes.log", "not ours");
        put("daemon.log", &"x".repeat(2 << 20));
        let mut log = LogFile::open(dir.path().join("daemon.log"), ROTATION).expect("open");
        log.packed();
        let names = names(dir.path());
        assert_eq!(names.len(), 4, "the full one was put aside at once: {names:?}");
        assert!(names.contains(&"daemon-notes.log".to_owned()), "{names:?}");
        assert!(!names.iter().any(|name| name.contains("2001")), "{names:?}");
        assert_eq!(unpacked(&dir.path().join("daemon-2999-01-02T03-04-05.006.log.gz")), "left");
    }

    #[test]
    fn cli_129_a_file_that_cannot_be_put_aside_is_written_on() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("logs/daemon.log");
        fs::create_dir(dir.path().join("logs")).expect("a directory");
        let mut log = LogFile::open(&path, ROTATION).expect("open");
        fs::rename(dir.path().join("logs"), dir.path().join("gone")).expect("renamed");
        for _ in 0..6 {
            log.write_all(&vec![b'x'; 250 * 1024]).expect("written");
        }
        let written = fs::metadata(dir.path().join("gone/daemon.log")).expect("metadata").len();
        assert_eq!(written, 6 * 250 * 1024);
    }
}
