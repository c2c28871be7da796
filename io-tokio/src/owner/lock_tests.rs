use super::*;
use crate::config::{Env, Flags};
use std::os::unix::fs::{PermissionsExt, symlink};

fn settings(home: &Path, flags: Flags) -> Settings {
    let env = Env::from_pairs([("HOME", home)]);
    Settings::load(&flags, &env, Path::new("/")).expect("settings")
}

fn take(home: &Path, server: &str, profile: &str, id: &str) -> Result<Owner, OwnerError> {
    let flags = Flags {
        server_url: Some(server.into()),
        profile: profile.into(),
        daemon_id: Some(id.into()),
        ..Flags::default()
    };
    let settings = settings(home, flags);
    let identity = Identity::find(&settings, "host").expect("an identity");
    Owner::take(&settings, &identity)
}

fn refusal(result: Result<Owner, OwnerError>) -> String {
    let error = result.expect_err("somebody has it");
    assert!(matches!(error, OwnerError::Taken { .. }), "{error}");
    error.to_string()
}

fn only_file(home: &Path) -> PathBuf {
    let listed = std::fs::read_dir(home.join(".multica").join(FOLDER)).expect("a folder");
    let files: Vec<_> = listed.map(|entry| entry.expect("an entry").path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files[0].clone()
}

#[test]
fn bug_04_one_identity_has_one_owner_at_a_server_however_both_are_spelt() {
    let home = tempfile::tempdir().expect("a directory");
    let kept = take(home.path(), "https://h.test/base", "dev", "some-id").expect("nobody has it");
    for server in ["https://H.test/base/", "wss://h.test:443/base", " https://h.test./base//?x#y "] {
        for (profile, id) in [("", "some-id"), ("dev", "some-id"), ("other", "SOME-ID")] {
            let text = refusal(take(home.path(), server, profile, id));
            assert!(
                text.contains(&format!("process {}, profile dev, since 20", std::process::id())),
                "{text}"
            );
        }
    }
    let link = home.path().join("link");
    symlink(home.path(), &link).expect("a link");
    refusal(take(&link, "https://h.test/base", "", "some-id"));
    drop(kept);
    take(&link, "https://h.test/base", "", "some-id").expect("it was given back");
}

#[test]
fn another_id_and_another_server_are_no_conflict() {
    let home = tempfile::tempdir().expect("a directory");
    let place = home.path();
    let _kept = take(place, "http://h.test", "", "some-id").expect("nobody has it");
    for (server, id) in [
        ("http://h.test", "other-id"),
        ("http://h.test:81", "some-id"),
        ("https://h.test", "some-id"),
        ("http://h.test/base", "some-id"),
        ("http://g.test", "some-id"),
    ] {
        take(place, server, "", id).unwrap_or_else(|error| panic!("{server} {id}: {error}"));
    }
}

#[test]
fn this_machine_is_one_server_by_each_of_its_names() {
    let home = tempfile::tempdir().expect("a directory");
    let _kept = take(home.path(), "ws://localhost:8080/ws", "", "i").expect("nobody has it");
    for server in ["http://127.0.0.1:8080", "http://[::1]:8080/", "http://LOCALHOST:8080"] {
        refusal(take(home.path(), server, "", "i"));
    }
    take(home.path(), "http://127.0.0.1:8081", "", "i").expect("another port");
}

#[test]
fn what_an_earlier_daemon_left_is_no_obstacle_and_its_words_are_not_kept() {
    let home = tempfile::tempdir().expect("a directory");
    drop(take(home.path(), "http://h.test", "", "i").expect("nobody has it"));
    let path = only_file(home.path());
    let inode = path.metadata().expect("metadata").ino();
    std::fs::write(&path, "process 1, profile x, since 1970-01-01T00:00:00Z and much longer than the next\n")
        .expect("written");
    let _kept = take(home.path(), "http://h.test", "", "i").expect("a file is no owner");
    assert_eq!(only_file(home.path()).metadata().expect("metadata").ino(), inode, "it is never removed");
    let text = std::fs::read_to_string(&path).expect("read");
    assert!(text.starts_with(&format!("process {}, ", std::process::id())), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    let mode = |path: &Path| path.metadata().expect("metadata").permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(path.parent().expect("a folder"))), (0o600, 0o700));
}

#[test]
fn a_lock_on_a_file_that_was_removed_is_none() {
    let home = tempfile::tempdir().expect("a directory");
    let path = home.path().join("x.lock");
    let before = open(&path).expect("made");
    assert!(is_in_place(&before, &path));
    std::fs::remove_file(&path).expect("removed");
    assert!(!is_in_place(&before, &path));
    let after = open(&path).expect("made again");
    assert!(is_in_place(&after, &path) && !is_in_place(&before, &path));
}

#[test]
fn without_a_place_for_the_lock_nobody_serves() {
    let home = tempfile::tempdir().expect("a directory");
    let state = home.path().join(".multica/longshore");
    std::fs::create_dir_all(&state).expect("directories");
    std::fs::write(state.join("owners"), "in its place").expect("written");
    let error = take(home.path(), "http://h.test", "", "i").expect_err("no folder");
    assert!(matches!(error, OwnerError::Lock { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("longshore/owners/") && text.contains("move it away"), "{text}");
}

#[test]
fn what_is_no_file_is_not_locked() {
    let home = tempfile::tempdir().expect("a directory");
    drop(take(home.path(), "http://h.test", "", "i").expect("nobody has it"));
    let path = only_file(home.path());
    std::fs::remove_file(&path).expect("removed");
    symlink("/dev/null", &path).expect("a link");
    assert!(matches!(take(home.path(), "http://h.test", "", "i"), Err(OwnerError::Lock { .. })));
    std::fs::remove_file(&path).expect("removed");
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).expect("made");
    assert!(matches!(take(home.path(), "http://h.test", "", "i"), Err(OwnerError::Lock { .. })));
}

#[test]
fn the_words_of_a_holder_are_shown_as_text_and_no_more() {
    let home = tempfile::tempdir().expect("a directory");
    let _kept = take(home.path(), "http://h.test", "", "i").expect("nobody has it");
    let path = only_file(home.path());
    let long = "x".repeat(10_000);
    for (words, shown) in
        [("", "has not said"), ("a\u{1b}[31mb\nc", "already: a[31mb. Stop"), (&long, "xxx. Stop")]
    {
        std::fs::write(&path, words).expect("written");
        let text = refusal(take(home.path(), "http://h.test", "", "i"));
        assert!(text.contains(shown) && text.len() < 500, "{text}");
    }
}
