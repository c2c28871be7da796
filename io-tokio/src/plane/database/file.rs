//! The file: opening, reading all of it, one transaction of changes.

use super::{Change, Table};
use redb::{
    Database, DatabaseError, ReadableDatabase, ReadableTable, StorageError, TableDefinition, TableError,
};
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// What the rows mean. A file with a greater number is left alone.
const FORMAT: u64 = 1;
/// Bytes of the file that are kept in memory: the rows are in memory already.
const CACHE: usize = 4 << 20;
/// Files that are put aside under the same name before it is given up.
const MAX_ASIDE: u32 = 1000;

const FORMATS: TableDefinition<'_, &str, u64> = TableDefinition::new("format");
const FORMAT_KEY: &str = "format";

fn definition(table: Table) -> TableDefinition<'static, &'static str, &'static [u8]> {
    TableDefinition::new(table.name())
}

/// Why a database file cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process has it.
    #[error("{}: another process uses this database; end that one first, or name another file", .0.display())]
    InUse(PathBuf),
    /// It was written by a later version.
    #[error("{}: this database has format {found}, and this version of longshore reads formats up to {FORMAT}; use the version that wrote it, or name another file", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u64,
    },
    /// It cannot be read or written.
    #[error("{}: the database cannot be opened: {why}", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// It is damaged and cannot be moved out of the way.
    #[error("{}: the database is damaged ({damage}) and cannot be put aside: {why}", path.display())]
    Stuck {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        damage: String,
        /// Why it stays where it is.
        why: io::Error,
    },
}

/// A row as it was read.
pub(in crate::plane) type Stored = (Table, String, Vec<u8>);

/// An open file with what was made of its rows.
#[derive(Debug)]
pub(in crate::plane) struct Opened<T> {
    pub(in crate::plane) file: File,
    pub(in crate::plane) made: T,
    /// Where the damaged file is that was there before, and what was wrong with it.
    pub(in crate::plane) set_aside: Option<(PathBuf, String)>,
}

/// What one attempt to open gives.
enum Attempt {
    Damaged(String),
    Failed(OpenError),
}

/// Opens the file, mode 0600, or makes it, and makes something of all its rows. If that fails, or the file is damaged, it is put
/// aside and a new one is made.
pub(in crate::plane) fn open<T>(
    path: &Path,
    mut make: impl FnMut(Vec<Stored>) -> Result<T, String>,
) -> Result<Opened<T>, OpenError> {
    let mut set_aside = None;
    loop {
        // The database checks what it reads with assertions in places, and a damaged file must not end the process.
        let attempt = catch_unwind(AssertUnwindSafe(|| attempt(path, &mut make)))
            .unwrap_or_else(|_| Err(Attempt::Damaged("its structure is broken".into())));
        match attempt {
            Ok((file, made)) => return Ok(Opened { file, made, set_aside }),
            Err(Attempt::Failed(error)) => return Err(error),
            Err(Attempt::Damaged(damage)) if set_aside.is_some() => {
                return Err(OpenError::Unusable { path: path.to_owned(), why: damage });
            }
            Err(Attempt::Damaged(damage)) => {
                let stuck = |why| OpenError::Stuck { path: path.to_owned(), damage: damage.clone(), why };
                let aside = put_aside(path).map_err(stuck)?;
                set_aside = Some((aside, damage));
            }
        }
    }
}

fn attempt<T>(
    path: &Path,
    make: &mut impl FnMut(Vec<Stored>) -> Result<T, String>,
) -> Result<(File, T), Attempt> {
    let unusable = |why: String| Attempt::Failed(OpenError::Unusable { path: path.to_owned(), why });
    let made = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path);
    made.map_err(|why| unusable(why.to_string()))?;
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE);
    let mut database = builder.create(path).map_err(|why| match why {
        DatabaseError::DatabaseAlreadyOpen => Attempt::Failed(OpenError::InUse(path.to_owned())),
        DatabaseError::Storage(StorageError::Io(why)) if is_of_the_disk(&why) => unusable(why.to_string()),
        why => Attempt::Damaged(why.to_string()),
    })?;
    match database.check_integrity() {
        Ok(true) => {}
        Ok(false) => return Err(Attempt::Damaged("its checksums do not fit".into())),
        Err(why) => return Err(Attempt::Damaged(why.to_string())),
    }
    let file = File { database };
    match file.format().map_err(Attempt::Damaged)? {
        None => file.begin().map_err(unusable)?,
        Some(found) if found > FORMAT => {
            return Err(Attempt::Failed(OpenError::Newer { path: path.to_owned(), found }));
        }
        Some(_) => {}
    }
    let rows = file.rows().map_err(Attempt::Damaged)?;
    let made = make(rows).map_err(Attempt::Damaged)?;
    Ok((file, made))
}

/// Whether it is the disk's or a right's trouble and not that of the file's bytes.
fn is_of_the_disk(why: &io::Error) -> bool {
    !matches!(why.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof)
}

/// Renames the file to the first free one of its name with `.damaged-N`.
fn put_aside(path: &Path) -> io::Result<PathBuf> {
    for n in 1..=MAX_ASIDE {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".damaged-{n}"));
        let aside = PathBuf::from(name);
        if !aside.try_exists()? {
            std::fs::rename(path, &aside)?;
            return Ok(aside);
        }
    }
    Err(io::Error::other(format!(
        "there are {MAX_ASIDE} damaged ones beside it: look at them and remove them"
    )))
}

/// The open file.
#[derive(Debug)]
pub(in crate::plane) struct File {
    database: Database,
}

impl File {
    fn format(&self) -> Result<Option<u64>, String> {
        let read = self.database.begin_read().map_err(|why| why.to_string())?;
        match read.open_table(FORMATS) {
            Ok(table) => {
                let found = table.get(FORMAT_KEY).map_err(|why| why.to_string())?;
                found.map(|it| it.value()).map(Some).ok_or_else(|| "it says no format".into())
            }
            Err(TableError::TableDoesNotExist(_)) => Ok(None),
            Err(why) => Err(why.to_string()),
        }
    }

    fn begin(&self) -> Result<(), String> {
        let write = || -> Result<(), redb::Error> {
            let write = self.database.begin_write()?;
            write.open_table(FORMATS)?.insert(FORMAT_KEY, FORMAT)?;
            for table in Table::all() {
                write.open_table(definition(table))?;
            }
            Ok(write.commit()?)
        };
        write().map_err(|why| why.to_string())
    }

    fn rows(&self) -> Result<Vec<Stored>, String> {
        let read = || -> Result<Vec<Stored>, redb::Error> {
            let read = self.database.begin_read()?;
            let mut rows = Vec::new();
            for table in Table::all() {
                let opened = match read.open_table(definition(table)) {
                    Ok(opened) => opened,
                    Err(TableError::TableDoesNotExist(_)) => continue,
                    Err(why) => return Err(why.into()),
                };
                for row in opened.iter()? {
                    let (key, value) = row?;
                    rows.push((table, key.value().to_owned(), value.value().to_vec()));
                }
            }
            Ok(rows)
        };
        read().map_err(|why| why.to_string())
    }

    /// Writes all of it or nothing; it is on the disk when this returns.
    pub(super) fn write(&self, changes: &[Change]) -> Result<(), redb::Error> {
        let write = self.database.begin_write()?;
        for change in changes {
            let mut table = write.open_table(definition(change.table))?;
            match &change.value {
                Some(value) => drop(table.insert(change.key.as_str(), value.as_slice())?),
                None => drop(table.remove(change.key.as_str())?),
            }
        }
        write.commit()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longshore_core::plane::Rows;
    use std::os::unix::fs::PermissionsExt;

    const AT: Table = Table::Plane(Rows::Tasks);

    fn put(file: &File, key: &str, value: &str) {
        let change = Change { table: AT, key: key.into(), value: Some(value.into()) };
        file.write(&[change]).expect("written");
    }

    fn all(path: &Path) -> Opened<Vec<Stored>> {
        open(path, Ok).expect("opened")
    }

    #[test]
    fn rows_are_there_again_and_the_file_is_its_owners_alone() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("queue.redb");
        let opened = all(&path);
        assert!(opened.made.is_empty() && opened.set_aside.is_none());
        put(&opened.file, "a", "1");
        put(&opened.file, "b", "2");
        let gone = Change { table: AT, key: "a".into(), value: None };
        opened.file.write(&[gone]).expect("written");
        let busy = open(&path, Ok).expect_err("one process at a time");
        assert!(matches!(busy, OpenError::InUse(_)), "{busy}");
        drop(opened);
        assert_eq!(all(&path).made, [(AT, "b".to_owned(), b"2".to_vec())]);
        let mode = std::fs::metadata(&path).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_damaged_file_is_put_aside_whatever_was_done_to_it() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("queue.redb");
        let opened = all(&path);
        (0..200).for_each(|n| put(&opened.file, &format!("{n}"), &"x".repeat(200)));
        drop(opened);
        let sound = std::fs::read(&path).expect("there");
        let zeros = |from: usize| {
            let mut bytes = sound.clone();
            let end = (from + 4096).min(bytes.len());
            bytes[from.min(end)..end].fill(0);
            bytes
        };
        let cases = [
            ("no database", b"this is a text, and no database".to_vec()),
            ("cut", sound[..sound.len() / 3].to_vec()),
            ("no head", zeros(0)),
        ];
        for (n, (what, bytes)) in cases.into_iter().enumerate() {
            std::fs::write(&path, &bytes).expect("written");
            let opened = all(&path);
            assert!(opened.made.is_empty(), "{what}");
            let (aside, damage) = opened.set_aside.expect(what);
            assert!(
                aside.display().to_string().ends_with(&format!("queue.redb.damaged-{}", n + 1)),
                "{what}"
            );
            assert_eq!(std::fs::read(&aside).expect("kept").len(), bytes.len(), "{what}: {damage}");
        }
        // One page after the other: either nothing that counts was in it, or the file is put aside. Never is a row changed.
        for from in (4096..sound.len()).step_by(4096) {
            std::fs::write(&path, zeros(from)).expect("written");
            let opened = all(&path);
            let rows = opened.made.iter().filter(|(_, _, value)| value == "x".repeat(200).as_bytes()).count();
            assert_eq!(rows, if opened.set_aside.is_some() { 0 } else { 200 }, "page at {from}");
        }
    }

    #[test]
    fn rows_that_make_no_sense_put_the_file_aside_and_a_later_format_is_left_alone() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("queue.redb");
        put(&all(&path).file, "a", "1");
        let fussy = |rows: Vec<Stored>| if rows.is_empty() { Ok(()) } else { Err("no sense".into()) };
        let (_, damage) = open(&path, fussy).expect("a new one").set_aside.expect("a damaged one");
        assert_eq!(damage, "no sense");
        let opened = all(&path);
        let write = opened.file.database.begin_write().expect("free");
        write.open_table(FORMATS).expect("there").insert(FORMAT_KEY, FORMAT + 1).expect("written");
        write.commit().expect("written");
        drop(opened);
        let newer = open(&path, Ok).expect_err("a later version's");
        assert!(newer.to_string().contains("format 2"), "{newer}");
        assert!(path.exists() && !dir.path().join("queue.redb.damaged-2").exists());
    }
}
