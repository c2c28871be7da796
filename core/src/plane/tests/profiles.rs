//! Profiles, repositories, reasons, and machines that had another name.

use super::*;

fn with_profile() -> (Plane, ProfileId) {
    let (mut plane, _) = plane();
    let spec = ProfileSpec::new("Mine", "Codex", "my-codex");
    let id = plane.add_profile(at(1), &"ws-1".into(), spec).expect("room");
    (plane, id)
}

fn entry(profile: &ProfileId) -> Registration {
    let entry = RuntimeEntry { profile: Some(profile.clone()), online: true, ..RuntimeEntry::default() };
    Registration { device_name: "box".into(), runtimes: vec![entry], ..Registration::new("ws-1".into(), "d") }
}

#[test]
fn a_profile_has_runtimes_of_its_own_under_its_family() {
    let (mut plane, profile) = with_profile();
    assert_eq!(
        plane.take_hints(),
        [Hint::ProfilesChanged { workspace: "ws-1".into(), profile: profile.clone() }]
    );
    let ids = plane.register(at(2), entry(&profile)).expect("registered");
    let row = plane.runtime(&ids[0]).expect("there").clone();
    assert_eq!(
        (row.provider.as_str(), &*row.name, row.profile),
        ("codex", "Mine (box)", Some(profile.clone()))
    );
    let built_in = plane.register(at(3), registration("d", &["codex"])).expect("registered");
    assert_ne!(built_in, ids, "a built-in runtime of the same family is another one");
    assert_eq!(plane.register(at(4), entry(&profile)).expect("registered"), ids, "the same comes again");
    let mut spec = plane.profile(&profile).expect("there").spec.clone();
    spec.family = "claude".into();
    plane.change_profile(at(5), &profile, spec).expect("there");
    assert_eq!(plane.register(at(6), entry(&profile)).expect("registered"), ids, "also with another family");
}

#[test]
fn unknown_and_disabled_profiles_refuse_the_registration() {
    let (mut plane, profile) = with_profile();
    let unknown = plane.register(at(2), entry(&"nope".into())).expect_err("unknown");
    assert_eq!((unknown.status(), unknown.to_string()), (400, "unknown runtime profile nope".into()));
    plane.add_workspace("ws-2".into(), "two").expect("room");
    let foreign = Registration { workspace: "ws-2".into(), ..entry(&profile) };
    assert_eq!(plane.register(at(2), foreign).expect_err("another workspace's").status(), 400);
    let mut spec = plane.profile(&profile).expect("there").spec.clone();
    spec.enabled = false;
    plane.change_profile(at(3), &profile, spec).expect("there");
    assert_eq!(plane.register(at(4), entry(&profile)).expect_err("disabled").status(), 409);
    assert_eq!(plane.runtimes().count(), 1, "nothing was taken");
}

#[test]
fn a_profile_that_fails_has_an_offline_row_with_the_reason_until_it_works() {
    let (mut plane, profile) = with_profile();
    let failed = FailedProfile { profile: profile.clone(), reason: "my-codex is not on the path".into() };
    let from = Registration { failed_profiles: vec![failed], ..Registration::new("ws-1".into(), "d") };
    assert_eq!(plane.register(at(2), from), Ok(Vec::new()));
    let row = plane.runtimes().find(|row| row.profile.is_some()).expect("a row").clone();
    let reason = row.offline_reason.expect("a reason").to_string();
    assert_eq!((row.online, reason.as_str()), (false, "profile_unusable: my-codex is not on the path"));
    let refused = plane.enqueue(at(3), issue(&row.id, "a", "i")).expect_err("waiting would not help");
    assert_eq!(refused.status(), 409);
    assert_eq!(plane.register(at(4), entry(&profile)), Ok(vec![row.id.clone()]));
    assert_eq!(plane.runtime(&row.id).expect("there").offline_reason, None);
    plane.enqueue(at(5), issue(&row.id, "a", "i")).expect("it works again");
}

#[test]
fn a_removed_profile_takes_its_runtimes_and_their_tasks_with_it() {
    let (mut plane, profile) = with_profile();
    let runtime = plane.register(at(2), entry(&profile)).expect("registered").remove(0);
    let task = plane.running(at(3), &runtime);
    assert!(plane.remove_profile(at(4), &profile) && !plane.remove_profile(at(4), &profile));
    assert_eq!((plane.state(&task), plane.runtime(&runtime)), (State::Cancelled, None));
    assert_eq!(plane.heartbeat(at(5), &runtime), Err(Refusal::RuntimeNotFound));
    assert!(plane.take_hints().iter().any(|hint| matches!(hint, Hint::ProfilesChanged { .. })));
}

#[test]
fn a_command_is_one_word() {
    let (mut plane, _) = plane();
    for (family, command) in [("claude", "a b"), ("claude", ""), (" ", "a")] {
        let spec = ProfileSpec::new("x", family, command);
        assert_eq!(plane.add_profile(at(0), &"ws-1".into(), spec).expect_err("refused").status(), 400);
    }
    let spec = ProfileSpec::new("x", "claude", "a");
    assert_eq!(plane.add_profile(at(0), &"ws-9".into(), spec), Err(Refusal::WorkspaceNotFound));
}

#[test]
fn runtimes_of_the_machines_earlier_names_are_merged_with_their_tasks() {
    let mut plane = Plane::new(7);
    plane.add_workspace("ws-1".into(), "one").expect("room");
    let old = plane.register(at(0), registration("Box.local", &["claude", "codex"])).expect("registered");
    let other = plane.register(at(0), registration("elsewhere", &["claude"])).expect("registered");
    let running = plane.enqueue(at(1), issue(&old[0], "a", "i")).expect("queued");
    plane.claim(at(1), "Box.local", &old, 1).expect("claimed");
    plane.start(at(1), &running).expect("started");
    let queued = plane.enqueue(at(1), issue(&old[0], "b", "i")).expect("queued");
    let mut from = registration("id-7", &["claude"]);
    from.legacy_daemon_ids = vec!["box".into(), "BOX.LOCAL".into(), "id-7".into()];
    let new = plane.register(at(2), from).expect("registered").remove(0);
    for task in [&running, &queued] {
        assert_eq!(plane.task(task).expect("there").runtime, new);
    }
    assert_eq!(plane.state(&running), State::Running, "a run goes on");
    let left: Vec<_> = plane.runtimes().map(|row| row.id.clone()).collect();
    assert!(!left.contains(&old[0]), "merged");
    assert!(left.contains(&old[1]) && left.contains(&other[0]), "of another provider, of another machine");
    assert_eq!(plane.claim(at(3), "id-7", std::slice::from_ref(&new), 5).expect("claimed")[0].task, queued);
}

#[test]
fn a_reason_holds_tasks_off_until_a_beat_or_a_registration() {
    let (mut plane, runtime) = plane();
    let reason = OfflineReason { code: "not_executable".into(), ..OfflineReason::default() };
    let mut reasons = [(runtime.clone(), reason)].into_iter().collect();
    plane.deregister_because(std::slice::from_ref(&runtime), &mut reasons).expect("a list");
    let refused = plane.enqueue(at(1), issue(&runtime, "a", "i")).expect_err("it cannot run");
    assert!(refused.to_string().contains("not_executable"), "{refused}");
    plane.heartbeat(at(2), &runtime).expect("there");
    plane.enqueue(at(3), issue(&runtime, "a", "i")).expect("it beats");
    plane.deregister(std::slice::from_ref(&runtime)).expect("a list");
    plane.enqueue(at(4), issue(&runtime, "a", "j")).expect("an ordinary end gives no reason");
}

#[test]
fn repositories_are_trimmed_and_told_once_and_settings_are_an_object() {
    let (mut plane, _) = plane();
    let repo = |url: &str| Repo { url: url.into(), description: "d".into() };
    let ws = "ws-1".into();
    plane
        .set_repos(&ws, vec![repo(" https://a "), repo(""), repo("https://a"), repo("https://b")])
        .expect("there");
    let urls: Vec<_> = plane.workspace(&ws).expect("there").repos.iter().map(|it| it.url.clone()).collect();
    assert_eq!(urls, [Text::from("https://a"), "https://b".into()]);
    assert_eq!(&*plane.workspace(&ws).expect("there").settings, "{}");
    plane.set_settings(&ws, "{ \"github_enabled\": false }").expect("an object");
    assert_eq!(&*plane.workspace(&ws).expect("there").settings, "{\"github_enabled\":false}");
    assert_eq!(plane.set_settings(&ws, "[]").expect_err("no object").status(), 400);
    assert_eq!(plane.set_repos(&"nope".into(), Vec::new()), Err(Refusal::WorkspaceNotFound));
}

#[test]
fn a_task_that_cannot_be_handed_out_is_withdrawn_with_its_reason() {
    let (mut plane, runtime) = plane();
    let task = plane.claimed(at(0), &runtime);
    let row = plane.withdraw(at(1), &task, "local_directory_error", "no worktrees here").expect("there");
    assert_eq!((row.state, row.failure_reason.as_deref()), (State::Cancelled, Some("local_directory_error")));
    let again = plane.withdraw(at(2), &task, "other", "other").expect("there").clone();
    assert_eq!(again.error.as_deref(), Some("no worktrees here"), "an ended task never changes");
}

#[test]
fn skills_are_asked_for_while_a_task_is_prepared() {
    let (mut plane, runtime) = plane();
    let task = plane.claimed(at(0), &runtime);
    assert!(plane.preparing(&runtime, &task).is_ok());
    assert_eq!(plane.preparing(&"x".into(), &task), Err(Refusal::RuntimeNotFound));
    assert_eq!(plane.preparing(&runtime, &"x".into()), Err(Refusal::TaskNotFound));
    plane.start(at(1), &task).expect("started");
    assert_eq!(plane.preparing(&runtime, &task).expect_err("it runs").status(), 409);
}
