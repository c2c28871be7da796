use super::*;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

fn base() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("t").tempdir().expect("base")
}

fn create(base: &tempfile::TempDir) -> TempDir {
    TempDir::create(Some(base.path().as_os_str())).expect("made")
}

fn sweep_all(base: &tempfile::TempDir, ttl: Duration) -> Swept {
    sweep(Some(base.path().as_os_str()), Some(ttl), SystemTime::now()).expect("swept")
}

fn names(base: &tempfile::TempDir) -> Vec<OsString> {
    Dir::open(base.path()).expect("open").names().expect("names")
}

#[test]
fn inv_76_without_a_base_the_path_is_short_private_and_named_for_a_task() {
    let made = TempDir::create(None).expect("made");
    let other = TempDir::create(Some(OsStr::new("  "))).expect("blank is nothing");
    let path = made.path().to_owned();
    assert!(path.as_os_str().len() <= MAX_PATH, "{}", path.display());
    assert!(path.starts_with(default_base()) && path != other.path());
    let name = path
        .file_name()
        .expect("name")
        .to_str()
        .expect("text")
        .strip_prefix(PREFIX)
        .expect("prefix")
        .to_owned();
    assert!(name.bytes().all(|b| b.is_ascii_digit()), "{name}");
    assert_eq!(fs::metadata(&path).expect("meta").permissions().mode() & 0o7777, 0o700);
    assert!(path.join(LOCK).exists() && !path.join(CLAIMING).exists());
    made.remove().expect("removed");
    assert!(!path.exists());
}

#[test]
fn bug_40_a_socket_with_a_long_name_fits() {
    let made = TempDir::create(None).expect("made");
    let socket = made.path().join("s".repeat(60));
    drop(std::os::unix::net::UnixListener::bind(&socket).expect("bound"));
    made.remove().expect("removed");
}

#[test]
fn tmp_13_a_base_that_cannot_be_used_is_an_error_that_names_the_variable() {
    let base = base();
    let file = base.path().join("file");
    fs::write(&file, "").expect("file");
    for bad in [OsStr::new("relative/dir"), file.as_os_str(), base.path().join("none").as_os_str()] {
        let error = TempDir::create(Some(bad)).expect_err("unusable");
        assert!(error.to_string().contains(BASE_VARIABLE), "{error}");
    }
    let error = TempDir::create(Some(file.as_os_str())).expect_err("unusable").to_string();
    assert!(error.starts_with("MULTICA_AGENT_TEMP_BASE: create task temp dir"), "{error}");
}

#[test]
fn a_long_configured_base_is_taken_and_warned_about() {
    let base = base();
    let long = base.path().join("x".repeat(100));
    fs::create_dir(&long).expect("long");
    let made = TempDir::create(Some(long.as_os_str())).expect("taken as it is");
    let warning = made.warning().expect("a warning");
    assert!(
        warning.contains(&made.path().as_os_str().len().to_string()) && warning.contains("80"),
        "{warning}"
    );
    assert_eq!(TempDir::create(None).expect("made").warning(), None);
}

#[test]
fn inv_77_removal_takes_everything_and_follows_no_link() {
    let base = base();
    let victim = base.path().join("victim");
    fs::create_dir(&victim).expect("victim");
    fs::write(victim.join("f"), "x").expect("file");
    let made = create(&base);
    fs::create_dir_all(made.path().join("deep/er")).expect("dirs");
    symlink(&victim, made.path().join("deep/er/link")).expect("link");
    fs::set_permissions(made.path().join("deep/er"), fs::Permissions::from_mode(0o500)).expect("mode");
    fs::set_permissions(made.path(), fs::Permissions::from_mode(0o500)).expect("mode");
    made.remove().expect("removed");
    assert_eq!(names(&base), ["victim"]);
    assert!(victim.join("f").exists());
}

#[test]
fn bug_42_a_directory_exchanged_for_a_link_costs_only_the_link() {
    let base = base();
    let victim = base.path().join("victim");
    fs::create_dir(&victim).expect("victim");
    fs::write(victim.join("f"), "x").expect("file");
    let made = create(&base);
    let path = made.path().to_owned();
    fs::rename(&path, base.path().join("moved")).expect("moved");
    fs::write(base.path().join("moved/f"), "agent's").expect("file");
    symlink(&victim, &path).expect("link");
    made.remove().expect("removed");
    assert!(victim.join("f").exists() && !path.is_symlink());
    assert!(!base.path().join("moved/f").exists(), "what was in the real one is gone");
}

#[test]
fn a_directory_that_is_gone_already_is_no_error() {
    let base = base();
    let made = create(&base);
    fs::remove_dir_all(made.path()).expect("gone");
    made.remove().expect("nothing to do");
}

#[test]
fn inv_78_the_lock_is_visible_only_while_it_is_held() {
    let base = base();
    let made = create(&base);
    let path = made.path().to_owned();
    assert!(TempDir::adopt(&path).expect_err("in use").to_string().contains("in use"));
    assert_eq!(sweep_all(&base, Duration::from_nanos(1)).removed, 0, "tmp_2: a live one stays at any age");
    assert_eq!(made.leave(), path);
    let again = TempDir::adopt(&path).expect("taken over");
    assert_eq!(sweep_all(&base, Duration::from_nanos(1)).removed, 0);
    again.remove().expect("removed");
    assert!(names(&base).is_empty());
}

#[test]
fn bug_39_the_dead_go_at_once_and_nothing_else_does() {
    let base = base();
    let live = create(&base);
    let dead = create(&base).leave();
    fs::write(dead.join("f"), "12345").expect("file");
    let dir = |name: &str| {
        let path = base.path().join(format!("{PREFIX}{name}"));
        fs::create_dir(&path).expect("dir");
        path
    };
    let starting = dir("starting");
    fs::write(starting.join(CLAIMING), "").expect("file");
    let empty = dir("empty");
    let legacy = dir("legacy");
    fs::write(legacy.join("f"), "x").expect("file");
    let file = base.path().join(format!("{PREFIX}file"));
    fs::write(&file, "").expect("file");
    let link = base.path().join(format!("{PREFIX}link"));
    symlink(&legacy, &link).expect("link");
    let other = base.path().join("other");
    fs::create_dir(&other).expect("dir");

    let swept = sweep(Some(base.path().as_os_str()), None, SystemTime::now()).expect("swept");
    assert_eq!((swept.removed, swept.kept_legacy, swept.failed), (1, 3, 0), "{swept:?}");
    assert!(swept.bytes >= 5 && !dead.exists());
    for kept in [live.path(), &starting, &empty, &legacy, &file, &link, &other] {
        assert!(kept.symlink_metadata().is_ok(), "{}", kept.display());
    }
    let later = SystemTime::now() + Duration::from_hours(1);
    let swept = sweep(Some(base.path().as_os_str()), Some(Duration::from_mins(1)), later).expect("swept");
    assert_eq!((swept.removed, swept.kept_legacy), (1, 2), "only the one with old content: {swept:?}");
    assert!(!legacy.exists() && starting.exists() && empty.exists() && live.path().exists());
}

#[test]
fn tmp_10_a_base_that_is_not_there_has_nothing_to_sweep() {
    let base = base();
    let swept = sweep(Some(base.path().join("none").as_os_str()), None, SystemTime::now()).expect("nothing");
    assert_eq!((swept.removed, swept.kept_legacy), (0, 0));
}

#[test]
fn tmp_12_making_and_sweeping_at_once_never_loses_a_live_one() {
    let base = base();
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let base = &base;
        scope.spawn(move || {
            while stopped.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
                sweep_all(base, Duration::from_nanos(1));
            }
        });
        // Moved in, so that a failure here ends the other thread too.
        let _stop = stop;
        for _ in 0..200 {
            let made = create(base);
            fs::write(made.path().join("f"), "x").expect("it is there");
            made.remove().expect("removed");
        }
    });
    sweep_all(&base, Duration::from_nanos(1));
    assert!(names(&base).is_empty());
}

#[test]
fn dropping_removes_too() {
    let base = base();
    drop(create(&base));
    assert!(names(&base).is_empty());
}
