//! Files that many tasks have and nobody changes: one on the disk, and a link to it in each task's directory.
//!
//! The file cannot be written through any of its links as long as its mode stands. Who rewrites their copy as editors do, under another name
//! that then takes its place, has a file of their own and changes nobody else's. Who changes the mode first could change it for all, so it is
//! compared whenever it is linked to anew, and one that is not as it must be is given up: links to it stay, and nobody gets another one.

use super::beneath::{Dir, Identity};
use super::layout;
use rustix::fs::{AtFlags, fstat};
use std::ffi::OsStr;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Mode of a file that is shared.
const SHARED: u32 = 0o444;
/// Of its mode, the bits that let somebody write.
const WRITABLE: u32 = 0o222;

/// A folder of files that are shared.
#[derive(Clone, Debug)]
pub(crate) struct Folder(Rc<Dir>);

/// One of them, which may not be there yet.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    folder: Folder,
    below: PathBuf,
}

impl Folder {
    /// One of its files.
    pub(crate) fn file(&self, below: &Path) -> Shared {
        Shared { folder: self.clone(), below: below.to_owned() }
    }
}

impl Shared {
    /// The folder at `below` of the workspaces root, made if there is none; `None` if it cannot be had, as then there is no sharing.
    pub(crate) fn folder(root: &Path, below: &Path) -> Option<Folder> {
        let mut at = Dir::open(root).ok()?;
        for part in super::beneath::plain_parts(below).ok()? {
            at = at.ensure(part, layout::PRIVATE_DIR).ok()?;
        }
        Some(Folder(Rc::new(at)))
    }

    /// Makes `name` in `dir` a link to the file, which says `bytes`. [`io::ErrorKind::AlreadyExists`] if anything has that name; after any other
    /// error there is nothing of that name.
    fn link(&self, bytes: &[u8], dir: &Dir, name: &OsStr) -> io::Result<()> {
        let wrong = || io::Error::new(io::ErrorKind::InvalidInput, "no path of a file");
        let mut at = self.folder.0.try_clone()?;
        for part in super::beneath::plain_parts(self.below.parent().unwrap_or(Path::new("")))? {
            at = at.ensure(part, layout::PRIVATE_DIR)?;
        }
        let own = self.below.file_name().ok_or_else(wrong)?;
        let file = if let Ok(Some(file)) = as_it_must_be(&at, own, bytes) {
            file
        } else {
            at.replace(own, bytes, SHARED)?;
            let changed = || io::Error::other("a file was changed while it was made");
            as_it_must_be(&at, own, bytes)?.ok_or_else(changed)?
        };
        rustix::fs::linkat(&at, own, dir, name, AtFlags::empty())?;
        if dir.identity_of(name)? == Some(file) {
            return Ok(());
        }
        // Another file got its name between the look at it and the link.
        dir.unlink(name)?;
        Err(io::Error::other("a shared file was replaced while it was linked to"))
    }
}

/// The file, if it says `bytes`, is ours, and nobody can write to it.
fn as_it_must_be(dir: &Dir, name: &OsStr, bytes: &[u8]) -> io::Result<Option<Identity>> {
    let Some(file) = dir.open_file(name)? else { return Ok(None) };
    let stat = fstat(&file)?;
    let ours = stat.st_uid == rustix::process::geteuid().as_raw();
    #[allow(clippy::useless_conversion, reason = "the types differ between systems")]
    let mode = u32::from(stat.st_mode);
    if !ours || mode & WRITABLE != 0 || u64::try_from(stat.st_size).ok() != Some(bytes.len() as u64) {
        return Ok(None);
    }
    let identity = Identity::of_open(&file)?;
    let mut has = Vec::with_capacity(bytes.len());
    file.take(bytes.len() as u64 + 1).read_to_end(&mut has)?;
    Ok((has == bytes).then_some(identity))
}

/// Makes a new file that says `bytes`: a link to the shared one if that can be, otherwise one of its own.
pub(crate) fn create(shared: Option<&Shared>, dir: &Dir, name: &OsStr, bytes: &[u8]) -> io::Result<()> {
    match shared.map(|shared| shared.link(bytes, dir, name)) {
        Some(Ok(())) => Ok(()),
        Some(Err(error)) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
        // Another file system, too many links, a folder that somebody put in the way: a copy is as good.
        Some(Err(_)) | None => dir.create(name, bytes, layout::FILE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    struct Place {
        temp: tempfile::TempDir,
        folder: Folder,
    }

    fn place() -> Place {
        let temp = tempfile::tempdir().expect("temp");
        let folder = Shared::folder(temp.path(), Path::new(".cache/files")).expect("made");
        Place { temp, folder }
    }

    impl Place {
        fn task(&self, name: &str) -> (Dir, PathBuf) {
            let dir = Dir::open(self.temp.path()).expect("open").ensure(name, 0o755).expect("made");
            let path = dir.path().join("a.md");
            (dir, path)
        }

        fn put(&self, task: &str, text: &str) -> PathBuf {
            let (dir, path) = self.task(task);
            create(Some(&self.folder.file(Path::new("ref/a.md"))), &dir, "a.md".as_ref(), text.as_bytes())
                .expect("there");
            assert_eq!(fs::read_to_string(&path).expect("readable"), text);
            path
        }

        fn kept(&self) -> PathBuf {
            self.temp.path().join(".cache/files/ref/a.md")
        }
    }

    fn inode(path: &Path) -> u64 {
        fs::symlink_metadata(path).expect("there").ino()
    }

    #[test]
    fn two_tasks_have_one_file_that_cannot_be_written_to() {
        let place = place();
        let (one, two) = (place.put("one", "text"), place.put("two", "text"));
        assert_eq!((inode(&one), inode(&two)), (inode(&place.kept()), inode(&place.kept())));
        assert_eq!(fs::metadata(&one).expect("there").permissions().mode() & 0o777, SHARED);
        fs::remove_file(&one).expect("a task's cleanup");
        assert_eq!(fs::read_to_string(&two).expect("stays"), "text");
        assert_eq!(fs::read_to_string(place.kept()).expect("stays"), "text");
    }

    #[test]
    fn an_agent_that_rewrites_its_copy_changes_nobody_elses() {
        let place = place();
        let (one, two) = (place.put("one", "text"), place.put("two", "text"));
        fs::write(one.with_extension("new"), "changed").expect("written");
        fs::rename(one.with_extension("new"), &one).expect("exchanged");
        assert_eq!(fs::read_to_string(&two).expect("stays"), "text");
        assert_eq!(inode(&place.put("three", "text")), inode(&two));
    }

    #[test]
    fn skc_1_a_shared_file_that_was_changed_or_opened_up_is_given_up() {
        let place = place();
        for change in ["mode", "text", "mode and text", "owner's link"] {
            let one = place.put(&format!("one {change}"), "text");
            let before = inode(&place.kept());
            match change {
                "mode" => fs::set_permissions(&one, fs::Permissions::from_mode(0o644)).expect("mode"),
                "text" | "mode and text" => {
                    fs::set_permissions(&one, fs::Permissions::from_mode(0o644)).expect("mode");
                    fs::write(&one, "tamp").expect("written through the link");
                    let mode = if change == "text" { 0o444 } else { 0o644 };
                    fs::set_permissions(&one, fs::Permissions::from_mode(mode)).expect("mode");
                }
                _ => {
                    fs::remove_file(place.kept()).expect("removed");
                    symlink(&one, place.kept()).expect("link");
                }
            }
            let two = place.put(&format!("two {change}"), "text");
            assert_ne!(inode(&two), before, "{change}");
            assert_eq!(inode(&two), inode(&place.kept()), "{change}");
        }
    }

    #[test]
    fn where_there_can_be_no_link_there_is_a_copy() {
        let place = place();
        fs::create_dir_all(place.kept().join("in the way")).expect("a folder");
        let path = place.put("one", "text");
        assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o644);
        let (dir, path) = place.task("two");
        create(None, &dir, "a.md".as_ref(), b"own").expect("there");
        assert_eq!(fs::metadata(&path).expect("there").nlink(), 1);
    }

    #[test]
    fn what_is_there_already_is_neither_replaced_nor_followed() {
        let place = place();
        let (dir, path) = place.task("one");
        symlink(place.temp.path().join("nowhere"), &path).expect("link");
        let shared = place.folder.file(Path::new("ref/a.md"));
        let error = create(Some(&shared), &dir, "a.md".as_ref(), b"text").expect_err("taken");
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert!(path.is_symlink() && !place.temp.path().join("nowhere").exists());
    }

    #[test]
    fn bug_42_a_link_on_the_way_to_shared_files_means_no_sharing() {
        let temp = tempfile::tempdir().expect("temp");
        fs::create_dir(temp.path().join("victim")).expect("victim");
        symlink(temp.path().join("victim"), temp.path().join(".cache")).expect("link");
        assert!(Shared::folder(temp.path(), Path::new(".cache/files")).is_none());
        assert!(Shared::folder(temp.path(), Path::new("../x")).is_none());
        assert_eq!(fs::read_dir(temp.path().join("victim")).expect("list").count(), 0);
    }
}
