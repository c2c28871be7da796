//! A person's own directory that a task is tied to: what the server says of it, and whether it may be used.
//!
//! Its path stays in here: the core sees a number that stands for it, and people see its name.

use crate::wire::lenient;
use crate::wire::task::{Kind, ProjectResource, Task};
use longshore_core::id::PathKey;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use uuid::Uuid;

/// Directories that are never worked in, nor what they are links to; what is below them may be.
const NEVER: [&str; 10] =
    ["/", "/Users", "/Users/Shared", "/home", "/root", "/var", "/etc", "/tmp", "/usr", "/opt"];
/// What the file is called that is made and removed to see whether one can be.
const PROBE: &str = ".multica-rwcheck-";

/// What a task has to do with a directory of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Binding {
    /// Nothing.
    None,
    /// It works there.
    Directory(LocalDirectory),
    /// It cannot be told, or cannot be done: why.
    Refused(String),
}

/// A directory that a task works in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocalDirectory {
    /// As the server names it.
    pub path: PathBuf,
    /// With all links resolved, once it was looked at.
    pub real: Option<PathBuf>,
    /// What people call it; no path.
    pub name: String,
    /// Whether others may be working there at the same time: a chat does not wait for them.
    pub shared: bool,
}

#[derive(Deserialize)]
struct Reference {
    #[serde(default, deserialize_with = "lenient::field")]
    daemon_id: String,
    #[serde(default, deserialize_with = "lenient::field")]
    local_path: String,
    #[serde(default, deserialize_with = "lenient::field")]
    label: String,
    /// Read strictly: a mode that is not understood must never come to mean the plain one.
    #[serde(default)]
    execution_mode: serde_json::Value,
}

/// The directory of this machine that a task is tied to. Leaders only hand work out, and are tied to none.
pub(super) fn binding(task: &Task, daemon_id: &str) -> Binding {
    let mut found = Binding::None;
    let locals = task.project_resources.iter().filter(|r| r.resource_type == "local_directory");
    for resource in locals.filter(|_| !task.is_leader_task) {
        let reference =
            resource.resource_ref.as_deref().map(|raw| serde_json::from_str::<Reference>(raw.get()));
        let Some(Ok(reference)) = reference else {
            return refused(
                "a local directory of the task's project is described in a way that is not understood",
            );
        };
        if reference.daemon_id.is_empty() {
            return refused(
                "a local directory of the task's project names no daemon, so it could be any machine's",
            );
        }
        if reference.daemon_id != daemon_id {
            continue;
        }
        if found != Binding::None {
            return refused(
                "the task's project is tied to two directories of this machine; remove one of them from the project",
            );
        }
        found = of_this_machine(task, resource, &reference);
        if let Binding::Refused(_) = found {
            return found;
        }
    }
    found
}

fn refused(why: impl Into<String>) -> Binding {
    Binding::Refused(why.into())
}

fn of_this_machine(task: &Task, resource: &ProjectResource, reference: &Reference) -> Binding {
    let path = PathBuf::from(&reference.local_path);
    let name = name(&path, [&reference.label, &resource.label]);
    match &reference.execution_mode {
        serde_json::Value::Null => {}
        serde_json::Value::String(mode) if mode.is_empty() || mode == "in_place" => {}
        serde_json::Value::String(mode) if mode == "worktree" => {
            return refused(format!(
                "the directory {name} is to be worked on in a git worktree, which this version of longshore does not do yet; \
                 nothing was touched. Set its mode to in_place to let tasks work in the directory itself"
            ));
        }
        other => {
            return refused(format!(
                "the directory {name} has the mode {other}, which this version of longshore does not know; nothing was touched"
            ));
        }
    }
    if path.as_os_str().is_empty() {
        return refused("a local directory of the task's project has no path");
    }
    let shared = task.kind() == Kind::Chat;
    Binding::Directory(LocalDirectory { path, real: None, name, shared })
}

/// A label that is no path, else the last part of the path.
fn name(path: &Path, labels: [&String; 2]) -> String {
    let label = labels.into_iter().find(|label| !label.trim().is_empty() && !label.contains(['/', '\\']));
    let last = || path.file_name().map(|name| name.to_string_lossy().into_owned());
    label.cloned().or_else(last).unwrap_or_else(|| "directory".to_owned())
}

/// Why a task says that it waits: for people, who may be on other machines, so there is no path in it.
pub(super) fn wait_reason(name: &str, holder: Option<&str>) -> String {
    let short = |id: &str| id.chars().take(8).collect::<String>();
    match holder {
        Some(holder) => format!("{name} is in use by task {}", short(holder)),
        None => format!("{name} is in use by another task"),
    }
}

/// Looks whether a directory can be worked in, and which one it really is. Blocks on the file system. The error names no path.
pub(super) fn check(directory: &LocalDirectory, home: &Path) -> Result<PathBuf, String> {
    let (path, name) = (&directory.path, &directory.name);
    if !path.is_absolute() {
        return Err(format!("the path of the directory {name} is not absolute"));
    }
    let never = || Err(format!("the directory {name} is a system or home directory; choose one below it"));
    if is_never(path, home) {
        return never();
    }
    let real = fs::canonicalize(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => format!("the directory {name} does not exist on this machine"),
        _ => format!("the directory {name} cannot be looked at: {error}"),
    })?;
    if is_never(&real, home) {
        return never();
    }
    if !real.is_dir() {
        return Err(format!("{name} is not a directory"));
    }
    fs::read_dir(&real).map_err(|error| format!("the directory {name} cannot be read: {error}"))?;
    let probe = real.join(format!("{PROBE}{}", Uuid::new_v4().simple()));
    let written = fs::File::options().write(true).create_new(true).open(&probe);
    written.map_err(|error| format!("the directory {name} cannot be written to: {error}"))?;
    fs::remove_file(&probe)
        .map_err(|error| format!("in the directory {name} files can be made and not removed: {error}"))?;
    Ok(real)
}

fn is_never(path: &Path, home: &Path) -> bool {
    let same = |never: &Path| path == never || fs::canonicalize(never).is_ok_and(|real| real == path);
    NEVER.iter().any(|never| same(Path::new(never))) || same(home)
}

/// Numbers that stand for directories, the same for one directory as long as this process lives.
#[derive(Debug, Default)]
pub(super) struct Numbers(BTreeMap<PathBuf, usize>);

impl Numbers {
    /// What the core calls this directory.
    pub(super) fn key(&mut self, real: &Path) -> PathKey {
        let next = self.0.len() + 1;
        let number = self.0.entry(real.to_owned()).or_insert(next);
        PathKey::new(format!("dir-{number}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn bound(resources: &str, more: &str) -> Binding {
        let text = format!(r#"{{"id":"t","project_resources":[{resources}]{more}}}"#);
        binding(&serde_json::from_str(&text).expect("a task"), "d-1")
    }

    fn resource(reference: &str) -> String {
        format!(r#"{{"resource_type":"local_directory","resource_ref":{reference}}}"#)
    }

    fn why(binding: Binding) -> String {
        match binding {
            Binding::Refused(why) => why,
            other => panic!("not refused: {other:?}"),
        }
    }

    const OURS: &str = r#"{"daemon_id":"d-1","local_path":"/src/boat","label":"Boat"}"#;

    #[test]
    fn a_task_is_tied_to_the_directory_of_this_machine() {
        let boat =
            LocalDirectory { path: "/src/boat".into(), real: None, name: "Boat".into(), shared: false };
        assert_eq!(bound(&resource(OURS), ""), Binding::Directory(boat.clone()));
        let other = resource(r#"{"daemon_id":"d-2","local_path":"/elsewhere","execution_mode":"odd"}"#);
        assert_eq!(bound(&format!("{other},{}", resource(OURS)), ""), Binding::Directory(boat.clone()));
        assert_eq!(bound(&other, ""), Binding::None);
        let chat = bound(&resource(OURS), r#","chat_session_id":"c""#);
        assert_eq!(chat, Binding::Directory(LocalDirectory { shared: true, ..boat }), "ldr_3");
        assert_eq!(bound(&resource(OURS), r#","is_leader_task":true"#), Binding::None, "ldr_4");
    }

    #[test]
    fn t16_and_ldr_7_what_is_not_understood_is_never_taken_for_the_plain_mode() {
        for (mode, says) in [("\"worktree\"", "worktree"), ("\"cloud\"", "cloud"), ("7", "7"), ("{}", "{}")] {
            let reference = format!(r#"{{"daemon_id":"d-1","local_path":"/x","execution_mode":{mode}}}"#);
            assert!(why(bound(&resource(&reference), "")).contains(says), "{mode}");
        }
        for mode in ["null", "\"\"", "\"in_place\""] {
            let reference = format!(r#"{{"daemon_id":"d-1","local_path":"/x","execution_mode":{mode}}}"#);
            assert!(matches!(bound(&resource(&reference), ""), Binding::Directory(_)), "{mode}");
        }
    }

    #[test]
    fn what_is_malformed_or_twice_there_is_refused() {
        for reference in ["null", "[]", "7", "{}", r#"{"local_path":"/x"}"#, r#"{"daemon_id":"d-1"}"#] {
            why(bound(&resource(reference), ""));
        }
        assert!(why(bound(&format!("{0},{0}", resource(OURS)), "")).contains("two directories"));
    }

    #[test]
    fn a_reason_for_people_has_no_path_in_it() {
        assert_eq!(name(Path::new("/home/ada/boat"), [&String::new(), &"/home/ada/boat".to_owned()]), "boat");
        assert_eq!(wait_reason("boat", Some("0198c2d0-7f3a")), "boat is in use by task 0198c2d0");
        assert_eq!(wait_reason("boat", None), "boat is in use by another task");
    }

    fn checked(path: &Path, home: &Path) -> Result<PathBuf, String> {
        check(
            &LocalDirectory { path: path.to_owned(), real: None, name: "boat".to_owned(), shared: false },
            home,
        )
    }

    #[test]
    fn ldr_5_and_6_a_directory_that_cannot_be_used_is_refused_without_a_trace() {
        let temp = tempfile::tempdir().expect("temp");
        let at = |name: &str| temp.path().join(name);
        let home = at("home");
        for dir in ["home/boat", "sealed"] {
            fs::create_dir_all(at(dir)).expect("made");
        }
        fs::write(at("file"), "").expect("made");
        symlink(&home, at("to-home")).expect("made");
        symlink("/tmp", at("to-tmp")).expect("made");
        let dirs = ["/", "/tmp", "/tmp/", "/usr/../etc", "/home/.", "relative"].map(PathBuf::from);
        let more = [home.clone(), at("to-home"), at("to-tmp"), at("none"), at("file")];
        for bad in dirs.iter().chain(&more) {
            let why = checked(bad, &home).expect_err("refused");
            assert!(!why.contains(&temp.path().display().to_string()), "{why}");
        }
        fs::set_permissions(at("sealed"), fs::Permissions::from_mode(0o555)).expect("sealed");
        if !rustix::process::geteuid().is_root() {
            assert!(checked(&at("sealed"), &home).expect_err("refused").contains("cannot be written"));
        }
        let boat = at("home/boat");
        assert_eq!(checked(&boat, &home), Ok(fs::canonicalize(&boat).expect("real")));
        for empty in [&boat, &at("sealed")] {
            assert_eq!(fs::read_dir(empty).expect("list").count(), 0, "the probe is gone");
        }
    }

    #[test]
    fn ldr_1_one_directory_has_one_number_whatever_it_is_called() {
        let temp = tempfile::tempdir().expect("temp");
        let (boat, link) = (temp.path().join("boat"), temp.path().join("link"));
        fs::create_dir(&boat).expect("made");
        symlink(&boat, &link).expect("made");
        let real = |path: &Path| checked(path, Path::new("/nowhere")).expect("usable");
        let mut numbers = Numbers::default();
        assert_eq!(numbers.key(&real(&boat)), numbers.key(&real(&link)));
        assert_eq!(numbers.key(temp.path()).as_str(), "dir-2");
    }
}
