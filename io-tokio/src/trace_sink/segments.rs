//! The flight recorder's directory: numbered segments, the oldest of which go when the budget needs it. Numbers grow over restarts, so that
//! what an earlier process recorded before it crashed stays until newer segments need its room.

use super::drawn::Piece;
use super::names::{HIGHEST, Hole, SegmentName, in_a_row};
use std::fmt;
use std::fs::{self, DirBuilder, File, FileType, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Most segments that are kept: a daemon that is restarted again and again leaves many small ones.
pub(super) const MOST_SEGMENTS: usize = 64;

/// For messages.
const IN_PLACE: &str = "stands where the flight recorder's directory has to be (move it away, or mend it)";

/// Most numbers that are tried for a new segment, if somebody else makes some at the same time.
const TRIES: usize = 16;

/// One segment on the disk.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Segment {
    name: SegmentName,
    path: PathBuf,
}

/// The segments of a flight recorder in `dir`, oldest first, also those that somebody packed. Of one that is there twice, plain and packed, the
/// plain one.
///
/// # Errors
/// If the directory cannot be read.
pub fn segments(dir: &Path) -> io::Result<Vec<PathBuf>> {
    Ok(once_each(dir)?.into_iter().map(|segment| segment.path).collect())
}

/// Numbers of which `dir` has something that is called as a segment, and no file: each with what that is, for people, lowest first. It is never
/// opened: a pipe would be waited for without an end.
///
/// # Errors
/// If the directory cannot be read.
pub fn odd(dir: &Path) -> io::Result<Vec<(u64, String)>> {
    let mut all = named(dir)?;
    all.sort_unstable();
    let mut odd: Vec<(u64, String)> = Vec::new();
    let of_one = all.chunk_by(|(one, _), (other, _)| one.number == other.number);
    for of_one in of_one.filter(|of_one| !of_one.iter().any(|(_, path)| is_file(path))) {
        let what = of_one.iter().find_map(|(name, path)| oddity(name, path));
        odd.extend(what.map(|what| (of_one[0].0.number, what)));
    }
    Ok(odd)
}

/// What is the matter with a segment that is no file; nothing if the daemon that records has removed it in the meantime.
fn oddity(name: &SegmentName, path: &Path) -> Option<String> {
    match fs::metadata(path) {
        Ok(meta) => Some(format!("{name} is {} and no file", kind(meta.file_type()))),
        Err(error) if !is_absent(&error) => Some(format!("{name} cannot be looked at ({error})")),
        Err(_) => path.is_symlink().then(|| format!("{name} is a link that leads to no file")),
    }
}

/// Whether it is a file, or a link to one.
fn is_file(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| meta.is_file())
}

fn kind(of: FileType) -> &'static str {
    match of {
        of if of.is_dir() => "a directory",
        of if of.is_fifo() => "a named pipe",
        of if of.is_socket() => "a socket",
        _ => "a device",
    }
}

/// What a reader of the segments misses, as a sentence without its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Absent {
    /// Segments are not there.
    Hole(Hole),
    /// One is none although it is called so: what it is.
    Odd(String),
}

impl From<Hole> for Absent {
    fn from(hole: Hole) -> Self {
        Self::Hole(hole)
    }
}

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hole(hole) if hole.is_of_several() => write!(f, "{hole}; what was in them is missing"),
            Self::Hole(hole) => write!(f, "{hole}; what was in it is missing"),
            Self::Odd(what) => write!(f, "{what}; what was in it is missing"),
        }
    }
}

/// What is not there between the segments in `dir`, or is none although it is called so, in the order of their numbers.
///
/// # Errors
/// If the directory cannot be read.
pub fn absent(dir: &Path) -> io::Result<Vec<Absent>> {
    let files = once_each(dir)?.into_iter().map(|segment| (segment.name.number, Ok(())));
    let odd = odd(dir)?.into_iter().map(|(number, what)| (number, Err(Absent::Odd(what))));
    Ok(in_a_row(files.chain(odd).collect()).into_iter().filter_map(Result::err).collect())
}

fn once_each(dir: &Path) -> io::Result<Vec<Segment>> {
    let mut all = list(dir)?;
    all.dedup_by_key(|segment| segment.name.number);
    Ok(all)
}

/// All files that are called as a segment.
fn list(dir: &Path) -> io::Result<Vec<Segment>> {
    let mut all = named(dir)?;
    // One that is a pipe would be waited for without an end, and one that is a directory cannot make room.
    all.retain(|(_, path)| is_file(path));
    let mut all: Vec<_> = all.into_iter().map(|(name, path)| Segment { name, path }).collect();
    all.sort_unstable();
    Ok(all)
}

/// Whatever is called as a segment, in any order.
fn named(dir: &Path) -> io::Result<Vec<(SegmentName, PathBuf)>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).and_then(SegmentName::parse);
        all.extend(name.map(|name| (name, path)));
    }
    Ok(all)
}

/// All segments in `dir`, opened, of each as much as `length` says of its path and its size.
pub(super) fn pieces(dir: &Path, length: impl Fn(&Path, u64) -> u64) -> io::Result<Vec<Piece>> {
    let mut pieces = Vec::new();
    for Segment { path, .. } in once_each(dir)? {
        let file = match File::open(&path) {
            // It had to make room for a newer one, or somebody tidied up.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            opened => opened?,
        };
        let len = length(&path, file.metadata()?.len());
        pieces.push(Piece { file, len });
    }
    Ok(pieces)
}

/// Whether there is no file or directory of the name: one of the directories in it may be something else.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Makes segments.
#[derive(Debug)]
pub(super) struct Segments {
    dir: PathBuf,
    budget: u64,
    /// No segment is longer.
    longest: u64,
    /// The number of the next one; it is more if there are such in the directory.
    next: u64,
    /// The one that is written, if it could be made.
    newest: Option<PathBuf>,
}

impl Segments {
    /// Nothing is asked of the disk before there is something to write.
    pub(super) fn new(dir: &Path, budget: u64, longest: u64) -> Self {
        Self { dir: dir.to_owned(), budget, longest, next: 1, newest: None }
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Makes the directory, for its owner alone, if it is not there.
    fn make_dir(&self) -> io::Result<()> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&self.dir);
        made.map_err(|error| match error.kind() {
            // What a link leads to may be on a disk that is not mounted, and is not made in its place.
            io::ErrorKind::AlreadyExists if self.dir.is_symlink() => {
                io::Error::new(error.kind(), format!("a link that leads to no directory {IN_PLACE}"))
            }
            io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => {
                io::Error::new(error.kind(), format!("something that is no directory {IN_PLACE}"))
            }
            _ => error,
        })?;
        let mode = fs::metadata(&self.dir)?.permissions().mode() & 0o777;
        if mode != 0o700 {
            fs::set_permissions(&self.dir, Permissions::from_mode(0o700))?;
        }
        Ok(())
    }

    /// A new, empty segment, after room was made for it.
    pub(super) fn create(&mut self) -> io::Result<File> {
        self.newest = None;
        self.make_dir()?;
        self.make_room()?;
        let mut last = None;
        for _ in 0..TRIES {
            if self.next > HIGHEST {
                break;
            }
            let path = self.dir.join(SegmentName::new(self.next).to_string());
            match OpenOptions::new().append(true).create_new(true).mode(0o600).open(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    let why = format!(
                        "{} and those before it are there and no files (move them away)",
                        path.display()
                    );
                    last = Some(io::Error::new(error.kind(), why));
                    self.next += 1;
                }
                Err(error) => return Err(error),
                Ok(file) => {
                    self.next += 1;
                    self.newest = Some(path);
                    return Ok(file);
                }
            }
        }
        Err(last.unwrap_or_else(|| io::ErrorKind::AlreadyExists.into()))
    }

    /// Takes back the newest segment, of which nothing was written. A disk that is full would be given one after another otherwise, and
    /// each of them takes the place of one that has something.
    pub(super) fn take_back(&mut self) {
        if let Some(path) = self.newest.take()
            && fs::remove_file(path).is_ok()
        {
            self.next -= 1;
        }
    }

    /// Whether the newest segment is still this file: somebody may have removed it, or moved its directory away.
    pub(super) fn is_newest(&self, file: &File) -> io::Result<bool> {
        let Some(path) = &self.newest else { return Ok(true) };
        let (here, there) = (file.metadata()?, fs::symlink_metadata(path));
        match there {
            Ok(there) => Ok((here.dev(), here.ino()) == (there.dev(), there.ino())),
            Err(error) if is_absent(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// All segments, opened; of the newest the first `whole` bytes.
    pub(super) fn pieces(&self, whole: u64) -> io::Result<Vec<Piece>> {
        let length = |path: &Path, len| if self.newest.as_deref() == Some(path) { whole } else { len };
        match pieces(&self.dir, length) {
            // Nothing could be written, or it was removed.
            Err(error) if is_absent(&error) => Ok(Vec::new()),
            pieces => pieces,
        }
    }

    /// Removes the oldest segments, and sees which number comes next.
    fn make_room(&mut self) -> io::Result<()> {
        let all = list(&self.dir)?;
        let past = all.last().map_or(1, |last| last.name.number + 1);
        if let Some(last) = all.last().filter(|_| past > HIGHEST) {
            let why = "has the highest number of a segment, and none can follow it (move it away)";
            return Err(io::Error::other(format!("{} {why}", last.path.display())));
        }
        // One that had the highest number was moved away.
        self.next = if self.next > HIGHEST { past } else { self.next.max(past) };
        let size = |segment: &Segment| fs::symlink_metadata(&segment.path).map_or(0, |meta| meta.len());
        let all: Vec<(u64, Segment)> = all.into_iter().map(|segment| (size(&segment), segment)).collect();
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
