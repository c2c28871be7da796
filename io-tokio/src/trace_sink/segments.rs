//! The flight recorder's directory: numbered segments, the oldest of which go when the budget needs it. Numbers grow over restarts, so that
//! what an earlier process recorded before it crashed stays until newer segments need its room.

use super::drawn::Piece;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

const PREFIX: &str = "flight-";
const SUFFIX: &str = ".jsonl";

/// Most segments that are kept: a daemon that is restarted again and again leaves many small ones.
pub(super) const MOST_SEGMENTS: usize = 64;

/// Most numbers that are tried for a new segment, if somebody else makes some at the same time.
const TRIES: usize = 16;

/// One segment on the disk.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Segment {
    number: u64,
    path: PathBuf,
}

/// The segments of a flight recorder in `dir`, oldest first.
///
/// # Errors
/// If the directory cannot be read.
pub fn segments(dir: &Path) -> io::Result<Vec<PathBuf>> {
    Ok(list(dir)?.into_iter().map(|segment| segment.path).collect())
}

fn list(dir: &Path) -> io::Result<Vec<Segment>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let digits = name.and_then(|name| name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX));
        if let Some(number) = digits.and_then(|digits| digits.parse().ok()) {
            all.push(Segment { number, path });
        }
    }
    all.sort_unstable();
    Ok(all)
}

/// Makes segments.
#[derive(Debug)]
pub(super) struct Segments {
    dir: PathBuf,
    budget: u64,
    /// No segment is longer.
    longest: u64,
    next: u64,
    /// The one that is written, if it could be made.
    newest: Option<PathBuf>,
}

impl Segments {
    /// Makes the directory, for its owner alone.
    pub(super) fn open(dir: &Path, budget: u64, longest: u64) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        let mode = fs::metadata(dir)?.permissions().mode() & 0o777;
        if mode != 0o700 {
            fs::set_permissions(dir, Permissions::from_mode(0o700))?;
        }
        let next = list(dir)?.last().map_or(1, |last| last.number.saturating_add(1));
        Ok(Self { dir: dir.to_owned(), budget, longest, next, newest: None })
    }

    /// A new, empty segment, after room was made for it.
    pub(super) fn create(&mut self) -> io::Result<File> {
        self.newest = None;
        self.make_room()?;
        let mut last = None;
        for _ in 0..TRIES {
            let path = self.dir.join(format!("{PREFIX}{:010}{SUFFIX}", self.next));
            self.next = self.next.saturating_add(1);
            match OpenOptions::new().append(true).create_new(true).mode(0o600).open(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = Some(error),
                Err(error) => return Err(error),
                Ok(file) => {
                    self.newest = Some(path);
                    return Ok(file);
                }
            }
        }
        Err(last.unwrap_or_else(|| io::ErrorKind::AlreadyExists.into()))
    }

    /// All segments, opened; of the newest the first `whole` bytes.
    pub(super) fn pieces(&self, whole: u64) -> io::Result<Vec<Piece>> {
        let mut pieces = Vec::new();
        for Segment { path, .. } in list(&self.dir)? {
            let file = match File::open(&path) {
                // Somebody tidied up.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                opened => opened?,
            };
            let len = if self.newest.as_ref() == Some(&path) { whole } else { file.metadata()?.len() };
            pieces.push(Piece { file, len });
        }
        Ok(pieces)
    }

    fn make_room(&self) -> io::Result<()> {
        let size = |segment: &Segment| fs::symlink_metadata(&segment.path).map_or(0, |meta| meta.len());
        let all: Vec<(u64, Segment)> =
            list(&self.dir)?.into_iter().map(|segment| (size(&segment), segment)).collect();
        let (mut bytes, mut count) = (all.iter().map(|(size, _)| size).sum::<u64>(), all.len());
        for (size, segment) in all {
            if bytes.saturating_add(self.longest) <= self.budget && count < MOST_SEGMENTS {
                break;
            }
            match fs::remove_file(&segment.path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => (bytes, count) = (bytes - size, count - 1),
            }
        }
        Ok(())
    }
}
