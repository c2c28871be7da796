use super::super::scan::scan;
use super::*;
use crate::config::GcSettings;
use crate::prepare::layout::{GC_META, OWNER};
use jiff::Timestamp;
use longshore_core::event::Collect;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

struct Place {
    temp: tempfile::TempDir,
}

fn place() -> Place {
    Place { temp: tempfile::tempdir().expect("temp") }
}

impl Place {
    fn root(&self) -> &Path {
        self.temp.path()
    }

    /// A task's directory with a file in it.
    fn env_root(&self, key: &str) -> PathBuf {
        let path = self.root().join("ws").join(key);
        fs::create_dir_all(path.join("workdir/src")).expect("made");
        fs::write(path.join(OWNER), key).expect("owner");
        fs::write(path.join("workdir/src/main.rs"), "12345").expect("file");
        path
    }

    fn free(&self, key: &str, verdict: Verdict) -> Result<Freed, FreeError> {
        let patterns = ["node_modules".to_owned(), ".next".to_owned()];
        free(self.root(), &EnvRoot::new(format!("ws/{key}")), verdict, &patterns)
    }

    fn left(&self) -> Vec<String> {
        let names = fs::read_dir(self.root()).expect("list");
        let mut names: Vec<_> =
            names.map(|entry| entry.expect("entry").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

/// Makes a directory look as if nothing had happened in it for so long.
fn age(path: &Path, by: Duration) {
    let then = SystemTime::now() - by;
    fs::File::open(path).expect("there").set_modified(then).expect("set");
}

fn settings() -> GcSettings {
    let hours = |hours| Some(Duration::from_hours(hours));
    GcSettings {
        enabled: true,
        interval: Duration::from_hours(2),
        ttl: hours(24),
        completed_task_ttl: None,
        orphan_ttl: hours(72),
        artifact_ttl: hours(12),
        artifact_patterns: Vec::new(),
        repo_ttl: None,
        repo_maintenance: false,
        codex_session_ttl: None,
        hermes_memory_ttl: None,
        hermes_session_ttl: None,
        task_temp_legacy_ttl: None,
    }
}

#[test]
fn all_of_a_directory_goes_and_nothing_of_its_neighbours() {
    let place = place();
    let (one, two) = (place.env_root("one"), place.env_root("two"));
    let outside = place.root().join("outside");
    fs::create_dir(&outside).expect("outside");
    fs::write(outside.join("f"), "x").expect("file");
    symlink(&outside, one.join("workdir/link")).expect("link");
    let freed = place.free("one", Verdict::All).expect("freed");
    assert!(freed.bytes >= 5 && freed.entries >= 5 && freed.failed == 0, "{freed:?}");
    assert!(!one.exists() && two.join("workdir/src/main.rs").exists() && outside.join("f").exists());
    assert_eq!(place.left(), ["outside", "ws"], "nothing is left in between");
    assert_eq!(place.free("one", Verdict::All).expect("gone is done"), Freed::default());
    assert_eq!(place.free("two", Verdict::Keep).expect("kept"), Freed::default());
    assert!(two.exists());
}

#[test]
fn gc_2_a_directory_that_somebody_works_in_is_left_alone() {
    let place = place();
    let path = place.env_root("one");
    let dir = Dir::open(&path).expect("open");
    let held = LockFile::try_take(&dir, LOCK).expect("lock").expect("free");
    for verdict in [Verdict::All, Verdict::Artifacts, Verdict::Managed] {
        assert!(matches!(place.free("one", verdict), Err(FreeError::InUse)));
    }
    assert!(path.join("workdir/src/main.rs").exists());
    drop(held);
    place.free("one", Verdict::All).expect("freed");
    assert!(!path.exists());
}

#[test]
fn bug_42_what_no_daemon_made_or_is_a_link_is_not_touched() {
    let place = place();
    let theirs = place.root().join("ws/theirs");
    fs::create_dir_all(theirs.join("node_modules")).expect("made");
    for verdict in [Verdict::All, Verdict::Artifacts] {
        assert!(matches!(place.free("theirs", verdict), Err(FreeError::NotOurs)));
    }
    assert!(theirs.join("node_modules").exists());
    // A mark that is a link is none.
    symlink(place.root(), theirs.join(OWNER)).expect("link");
    assert!(matches!(place.free("theirs", Verdict::All), Err(FreeError::NotOurs)));
    let real = place.env_root("real");
    symlink(&real, place.root().join("ws/link")).expect("link");
    assert!(place.free("link", Verdict::All).is_err());
    for odd in ["../ws/real", ".skill-cache", "a/b", ""] {
        assert_eq!(place.free(odd, Verdict::All).expect("nothing"), Freed::default(), "{odd}");
    }
    assert!(real.exists());
}

#[test]
fn gc_9_gc_10_and_gc_11_only_what_can_be_made_again_goes_and_never_by_way_of_a_link() {
    let place = place();
    let path = place.env_root("one");
    let work = path.join("workdir");
    let make = |below: &str| {
        fs::create_dir_all(work.join(below)).expect("made");
        fs::write(work.join(below).join("f"), "x").expect("file");
    };
    for below in ["node_modules/a", "app/.next", ".git/node_modules", "kept", ".sandbox-bin"] {
        make(below);
    }
    let outside = place.root().join("outside");
    fs::create_dir_all(outside.join("node_modules")).expect("outside");
    symlink(outside.join("node_modules"), work.join("kept/node_modules")).expect("link");
    symlink(&outside, work.join("elsewhere")).expect("link");
    symlink(&outside, path.join("codex-home")).expect("link");
    fs::create_dir(outside.join(MANAGED)).expect("outside");
    let freed = place.free("one", Verdict::Artifacts).expect("freed");
    assert_eq!(freed.failed, 0);
    assert!(!work.join("node_modules").exists() && !work.join("app/.next").exists());
    for kept in [".git/node_modules/f", "kept/f", "kept/node_modules", ".sandbox-bin/f", "app", "src/main.rs"]
    {
        assert!(work.join(kept).symlink_metadata().is_ok(), "{kept}");
    }
    assert!(outside.join("node_modules").exists() && outside.join(MANAGED).exists());
}

#[test]
fn codexs_copies_of_its_program_go_on_their_own() {
    let place = place();
    let path = place.env_root("one");
    fs::create_dir_all(path.join("codex-home/.sandbox-bin/bin")).expect("made");
    fs::create_dir_all(path.join("workdir/node_modules")).expect("made");
    place.free("one", Verdict::Managed).expect("freed");
    assert!(path.join("codex-home").exists() && !path.join("codex-home/.sandbox-bin").exists());
    assert!(path.join("workdir/node_modules").exists());
}

#[test]
fn gc_14_a_look_finds_what_daemons_made_and_no_caches() {
    let place = place();
    let now = Timestamp::now();
    assert!(scan(&place.root().join("none"), &settings(), now, || true).expect("nothing").found.is_empty());
    for key in ["asked", "young", "old", "odd", "chat"] {
        place.env_root(key);
    }
    let ws = place.root().join("ws");
    fs::write(ws.join("asked").join(GC_META), r#"{"issue_id":"i","workspace_id":"w"}"#)
        .expect("gc_15: no kind");
    fs::write(ws.join("chat").join(GC_META), r#"{"kind":"chat","chat_session_id":"c","workspace_id":"w"}"#)
        .expect("meta");
    fs::write(ws.join("odd").join(GC_META), r#"{"kind":"of the future","workspace_id":"w"}"#).expect("meta");
    for path in [".skill-cache/v1/ws", ".repos/ws/bare", "ws/theirs", "ws/.hidden"] {
        fs::create_dir_all(place.root().join(path)).expect("made");
        fs::write(place.root().join(path).join("f"), "x").expect("file");
        age(&place.root().join(path), Duration::from_hours(999));
    }
    symlink(ws.join("old"), ws.join("link")).expect("link");
    symlink(&ws, place.root().join("ws2")).expect("link");
    for key in ["old", "odd", "asked"] {
        age(&ws.join(key), Duration::from_hours(73));
    }
    let seen = scan(place.root(), &settings(), now, || true).expect("looked");
    let found: Vec<_> = seen.found.iter().map(|found| (found.root.as_str(), found.what)).collect();
    let all = Some(Collect::All);
    assert_eq!(found, [("ws/asked", None), ("ws/chat", None), ("ws/odd", all), ("ws/old", all)], "gc_16");
    assert_eq!((seen.questions.len(), seen.verdicts.len()), (2, 2));
    assert!(scan(place.root(), &settings(), now, || false).expect("cancelled").found.is_empty(), "gc_22");
}

#[test]
fn what_an_earlier_process_did_not_get_to_remove_goes_with_the_next_look() {
    let place = place();
    fs::create_dir_all(place.root().join(TRASH).join("x/y")).expect("made");
    scan(place.root(), &settings(), Timestamp::now(), || true).expect("looked");
    assert!(place.left().is_empty());
}
