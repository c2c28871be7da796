use super::super::job::Setup;
use super::super::skill::Skill;
use super::super::{Claim, seal};
use super::*;
use crate::wire::task::Task;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

const TASK: &str = "0197a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b";
const KEY: &str = "ws/0c1d2e3f4a5b";

/// An issue's task with some fields in place of its own, as `,"name":value,…`.
fn task(extra: &str) -> Task {
    let base = format!(
        r#"{{"id":"{TASK}","workspace_id":"ws","agent_id":"a","issue_id":"i","agent":{{"id":"a","name":"N"}}}}"#
    );
    super::super::test_task::with_fields(&base, extra)
}

fn setup<'a>(root: &'a Path, provider: &'a str) -> Setup<'a> {
    Setup {
        workspaces_root: root,
        provider,
        reuse: None,
        local_workdir: None,
        home: None,
        codex_home: None,
        fetched: &[],
    }
}

/// Through the bytes, as in the helper process.
fn through(job: &Job) -> Result<Prepared, PrepareError> {
    read_reply(&helper(&job.to_bytes().expect("bytes")))
}

fn prepare(root: &Path, task: &Task, provider: &str) -> Result<Prepared, PrepareError> {
    through(&Job::for_task(task, &setup(root, provider)).unclaimed())
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("there").permissions().mode() & 0o777
}

/// Names, modes and texts of everything below `path`.
fn snapshot(path: &Path) -> Vec<(PathBuf, u32, Vec<u8>)> {
    let mut all = Vec::new();
    let mut todo = vec![path.to_owned()];
    while let Some(dir) = todo.pop() {
        for entry in fs::read_dir(&dir).expect("list") {
            let entry = entry.expect("entry").path();
            let meta = fs::symlink_metadata(&entry).expect("meta");
            let text = if meta.is_file() { fs::read(&entry).expect("file") } else { Vec::new() };
            all.push((entry.clone(), meta.permissions().mode(), text));
            if meta.is_dir() {
                todo.push(entry);
            }
        }
    }
    all.sort();
    all
}

#[test]
fn pre_1_a_plain_task_has_its_directories_files_and_modes() {
    let temp = tempfile::tempdir().expect("temp");
    let prepared = prepare(temp.path(), &task(""), "claude").expect("prepared");
    let root = temp.path().join(KEY);
    assert_eq!((&prepared.root, &prepared.workdir), (&root, &root.join("workdir")));
    assert!(
        !prepared.reused && !prepared.local_directory && prepared.warnings.is_empty(),
        "{:?}",
        prepared.warnings
    );
    prepared.verify().expect("as prepared");
    for dir in ["workdir", "output", "logs", "multica-config"] {
        assert!(root.join(dir).is_dir(), "{dir}");
    }
    assert_eq!(mode(&root), 0o700, "bug_36: what is below is the owner's alone");
    assert_eq!(mode(&root.join("multica-config")), 0o700);
    assert_eq!(fs::read_to_string(root.join(".task_owner")).expect("owner"), TASK);
    assert_eq!(
        fs::read_to_string(root.join(".managed_env.json")).expect("provenance"),
        r#"{"managed_by":"multica-daemon-managed-env","workspace_id":"ws","issue_id":"i","agent_id":"a"}"#
    );
    let marker =
        fs::read_to_string(prepared.workdir.join(".multica/daemon_task_context.json")).expect("marker");
    assert_eq!(
        marker,
        "{\n  \"managed_by\": \"multica-daemon-task\",\n  \"agent_id\": \"a\",\n  \"issue_id\": \"i\"\n}"
    );
    assert!(root.join(".multica_sidecar_manifest.json").exists());
    assert!(prepared.workdir.join(".agent_context/issue_context.md").exists());
    assert!(
        fs::read_to_string(prepared.workdir.join("CLAUDE.md"))
            .expect("brief")
            .contains(prepared.brief.trim_end())
    );
    assert!(temp.path().join(".multica/daemon_task_context.json").exists(), "root_5");
}

#[test]
fn pre_2_only_issues_and_chats_have_provenance() {
    let temp = tempfile::tempdir().expect("temp");
    let autopilot = task(r#","issue_id":"","autopilot_run_id":"r""#);
    let prepared = prepare(temp.path(), &autopilot, "claude").expect("prepared");
    assert!(!prepared.root.join(".managed_env.json").exists());
}

#[test]
fn inv_82_prepare_retry_on_the_same_root_starts_from_scratch() {
    let temp = tempfile::tempdir().expect("temp");
    let claim = Claim::take(temp.path(), "ws", TASK).expect("claimed");
    // What a helper that was killed half-way may leave.
    let root = claim.path().to_owned();
    fs::create_dir_all(root.join("workdir/half")).expect("half");
    fs::write(root.join(".multica_sidecar_manifest.json"), "{\"fil").expect("torn");
    fs::write(root.join("workdir/.multica"), "a file").expect("in the way");
    let job = Job::for_task(&task(""), &setup(temp.path(), "claude"));
    for _ in 0..2 {
        let prepared = through(&job).expect("prepared");
        assert!(!prepared.workdir.join("half").exists());
        assert_eq!(prepared.identity, claim.identity(), "the directory itself stays");
        fs::create_dir(prepared.workdir.join("half")).expect("half");
    }
    assert_eq!(fs::read_to_string(root.join(".task_owner")).expect("owner"), TASK);
}

#[test]
fn clm_8_a_helper_without_a_claim_refuses_while_an_execution_lives() {
    let temp = tempfile::tempdir().expect("temp");
    let claim = Claim::take(temp.path(), "ws", TASK).expect("claimed");
    fs::write(claim.path().join("work"), "x").expect("work");
    let error = prepare(temp.path(), &task(""), "claude").expect_err("refused");
    assert_eq!(error.kind(), "busy");
    assert!(error.to_string().contains("running execution") && claim.path().join("work").exists());
    drop(claim);
    prepare(temp.path(), &task(""), "claude").expect("free again");
}

#[test]
fn inv_84_a_helper_never_wipes_what_belongs_to_another_task() {
    let temp = tempfile::tempdir().expect("temp");
    let root = temp.path().join(KEY);
    fs::create_dir_all(root.join("workdir")).expect("root");
    fs::write(root.join("workdir/work"), "x").expect("work");
    let claimed = Job::for_task(&task(""), &setup(temp.path(), "claude"));
    assert_eq!(through(&claimed).expect_err("unowned").kind(), "unowned");
    fs::write(root.join(".task_owner"), "other").expect("owner");
    assert_eq!(through(&claimed).expect_err("other").kind(), "other_owner");
    assert_eq!(prepare(temp.path(), &task(""), "claude").expect_err("other").kind(), "other_owner");
    assert!(root.join("workdir/work").exists());
    fs::remove_dir_all(&root).expect("gone");
    assert_eq!(through(&claimed).expect_err("the claim is gone").kind(), "changed");
}

#[test]
fn ids_and_requests_that_are_no_good_touch_nothing() {
    let temp = tempfile::tempdir().expect("temp");
    for (workspace, id) in [("../ws", TASK), ("ws", "a/b"), ("", TASK), ("ws", "")] {
        let mut task = task("");
        (task.workspace_id, task.id) = (workspace.to_owned(), id.to_owned());
        assert_eq!(prepare(temp.path(), &task, "claude").expect_err("invalid").kind(), "invalid_id");
    }
    assert_eq!(read_reply(&helper(b"{}")).expect_err("no request").kind(), "job");
    assert_eq!(fs::read_dir(temp.path()).expect("list").count(), 0);
    for garbage in ["", "  \n", "{", "{\"prepared\":1}", "[]"] {
        assert_eq!(read_reply(garbage.as_bytes()).expect_err("garbage").kind(), "reply", "{garbage:?}");
    }
}

#[test]
fn an_error_of_a_kind_that_is_not_known_keeps_its_text() {
    let reply = r#"{"error":{"error":{"kind":"from_the_future","x":1},"text":"it broke"}}"#;
    assert_eq!(
        read_reply(reply.as_bytes()).expect_err("error"),
        PrepareError::Other { text: "it broke".into() }
    );
}

#[test]
fn skills_are_where_claude_looks_and_bug_42_a_path_that_leads_out_fails_the_preparation() {
    let temp = tempfile::tempdir().expect("temp");
    let good = task(
        r#","agent":{"id":"a","skills":[{"name":"My Skill","content":"Do it.","files":[{"path":"ref/x.md","content":"x"}]},
            {"name":"hid","content":"---\ndisable-model-invocation: true\n---\n"}]}"#,
    );
    let prepared = prepare(temp.path(), &good, "claude").expect("prepared");
    let skills = prepared.workdir.join(".claude/skills");
    assert!(
        fs::read_to_string(skills.join("my-skill/SKILL.md"))
            .expect("skill")
            .starts_with("---\nname: my-skill\n")
    );
    assert!(skills.join("my-skill/ref/x.md").exists() && skills.join("hid/SKILL.md").exists());
    assert!(prepared.brief.contains("- `my-skill`") && !prepared.brief.contains("- `hid`"));
    for path in ["../../../../victim", "/tmp/victim-of-longshore-test"] {
        let bad = task(&format!(
            r#","agent":{{"id":"a","skills":[{{"name":"s","files":[{{"path":"{path}","content":"x"}}]}}]}}"#
        ));
        let error = prepare(temp.path(), &bad, "claude").expect_err("refused");
        assert_eq!(error.kind(), "skill");
        assert!(error.to_string().contains(path), "{error}");
        assert!(!Path::new("/tmp/victim-of-longshore-test").exists());
    }
}

#[test]
fn the_agents_mcp_servers_are_in_a_private_file_that_goes_with_the_run() {
    let temp = tempfile::tempdir().expect("temp");
    let with = task(r#","agent":{"id":"a","mcp_config":{"mcpServers":{"s":{"env":{"K":"zzz"}}}}}"#);
    let prepared = prepare(temp.path(), &with, "claude").expect("prepared");
    let file = prepared.mcp_config.clone().expect("a file");
    assert_eq!((mode(&file), fs::read_to_string(&file).expect("file").contains("zzz")), (0o600, true));
    assert!(!format!("{prepared:?}").contains("zzz"));
    let others = snapshot(temp.path()).into_iter().filter(|(path, ..)| *path != file);
    assert!(others.into_iter().all(|(_, _, text)| !String::from_utf8_lossy(&text).contains("zzz")));
    seal::unwind(&prepared, "claude").expect("unwound");
    seal::unwind(&prepared, "claude").expect("again");
    assert!(
        !file.exists() && prepared.workdir.join("CLAUDE.md").exists(),
        "the rest is kept for the next turn"
    );
}

#[test]
fn codex_gets_a_home_and_other_providers_a_general_file() {
    let temp = tempfile::tempdir().expect("temp");
    let shared = temp.path().join("shared");
    fs::create_dir(&shared).expect("shared");
    fs::write(shared.join("config.json"), "{}").expect("config");
    let root = temp.path().join("w");
    let with_skill = task(r#","agent":{"id":"a","skills":[{"name":"s","content":"x"}],"mcp_config":{}}"#);
    let job =
        Job::for_task(&with_skill, &Setup { codex_home: Some(&shared), ..setup(&root, "codex") }).unclaimed();
    let prepared = through(&job).expect("prepared");
    let home = prepared.codex_home.clone().expect("a home");
    assert_eq!(home, root.join(KEY).join("codex-home"));
    assert_eq!(fs::read_to_string(home.join("config.json")).expect("copy"), "{}");
    assert!(home.join("skills/s/SKILL.md").exists() && prepared.workdir.join("AGENTS.md").exists());
    assert!(prepared.workdir.join(".agent_context/skills").is_dir());
    assert_eq!(prepared.warnings.len(), 1, "mcp_5: said, not dropped silently: {:?}", prepared.warnings);

    let prepared = prepare(&root, &task(""), "gemini-or-so").expect("prepared");
    assert!(!prepared.workdir.join("AGENTS.md").exists() && !prepared.brief.is_empty());
    let prepared = prepare(&root, &with_skill, "hermes").expect("prepared");
    assert!(!prepared.workdir.join(".agent_context/skills").exists(), "skl_1");
}

#[test]
fn pre_3_and_4_a_persons_directory_is_given_back_byte_for_byte() {
    let temp = tempfile::tempdir().expect("temp");
    let mine = temp.path().join("mine");
    fs::create_dir_all(mine.join(".claude/skills/s")).expect("user's");
    fs::write(mine.join(".claude/skills/s/SKILL.md"), "user's").expect("user's");
    fs::write(mine.join("CLAUDE.md"), "my rules\n").expect("user's");
    let before = snapshot(&mine);
    let root = temp.path().join("w");
    let with_skill = task(r#","agent":{"id":"a","skills":[{"name":"s","content":"x"}]}"#);
    let local = Setup { local_workdir: Some(&mine), ..setup(&root, "claude") };
    let prepared = through(&Job::for_task(&with_skill, &local).unclaimed()).expect("prepared");
    assert!(prepared.local_directory && prepared.workdir == fs::canonicalize(&mine).expect("real"));
    assert!(!root.join(KEY).join("workdir").exists() && !root.join(KEY).join(".managed_env.json").exists());
    assert!(mine.join(".claude/skills/s-multica/SKILL.md").exists(), "skl_2");
    seal::unwind(&prepared, "claude").expect("unwound");
    assert_eq!(snapshot(&mine), before);

    let bad = task(r#","agent":{"id":"a","skills":[{"name":"s","files":[{"path":"../x","content":""}]}]}"#);
    through(&Job::for_task(&bad, &local).unclaimed()).expect_err("refused");
    assert_eq!(snapshot(&mine), before);
    fs::write(root.join("file"), "").expect("file");
    let codex = Setup { provider: "codex", codex_home: Some(&root.join("file")), ..local };
    let error =
        through(&Job::for_task(&task(""), &codex).unclaimed()).expect_err("after the files were written");
    assert_eq!(error.kind(), "io");
    assert_eq!(snapshot(&mine), before);
}

#[test]
fn ctx_10_what_a_killed_run_left_in_a_persons_directory_goes_with_the_next() {
    let temp = tempfile::tempdir().expect("temp");
    let mine = temp.path().join("mine");
    fs::create_dir(&mine).expect("user's");
    fs::write(mine.join("CLAUDE.md"), "my rules").expect("user's");
    let before = snapshot(&mine);
    let root = temp.path().join("w");
    let with_skill = task(r#","agent":{"id":"a","skills":[{"name":"s","content":"x"}]}"#);
    let local = Setup { local_workdir: Some(&mine), ..setup(&root, "claude") };
    through(&Job::for_task(&with_skill, &local).unclaimed()).expect("prepared, and then the daemon dies");
    let prepared = through(&Job::for_task(&task(""), &local).unclaimed()).expect("prepared again");
    assert!(!mine.join(".claude").exists());
    let theirs = Some(seal::Theirs { real: &mine, shared: false });
    seal::unwind_at(&prepared.root, prepared.identity, theirs, "claude").expect("unwound by paths alone");
    assert_eq!(snapshot(&mine), before);
    seal::unwind_at(&root.join("none"), prepared.identity, theirs, "claude")
        .expect("a root that was never made");
}

#[test]
fn inv_91_a_chat_in_a_persons_directory_leaves_alone_what_the_task_there_has() {
    let temp = tempfile::tempdir().expect("temp");
    let mine = temp.path().join("mine");
    fs::create_dir(&mine).expect("user's");
    fs::write(mine.join("CLAUDE.md"), "my rules\n").expect("user's");
    let before = snapshot(&mine);
    let root = temp.path().join("w");
    let local = Setup { local_workdir: Some(&mine), ..setup(&root, "claude") };
    let coding = through(&Job::for_task(&task(""), &local).unclaimed()).expect("prepared");
    let at_work = snapshot(&mine);
    assert_ne!(at_work, before);
    let mut chat = task(r#","chat_session_id":"c""#);
    chat.id = "0197a1b2-c3d4-7e5f-8a9b-0c1d2e3f0099".into();
    let guest = through(&Job::for_task(&chat, &local).unclaimed()).expect("prepared");
    assert!(guest.shared_directory && guest.workdir == coding.workdir && guest.root != coding.root);
    assert_eq!(snapshot(&mine), at_work, "neither the brief nor the marker is exchanged");
    seal::unwind(&guest, "claude").expect("unwound");
    assert_eq!(snapshot(&mine), at_work, "nor taken away");
    seal::unwind(&coding, "claude").expect("unwound");
    assert_eq!(snapshot(&mine), before);
}

#[test]
fn ctx_9_a_foreign_marker_in_a_persons_directory_is_an_error_and_stays() {
    let temp = tempfile::tempdir().expect("temp");
    let mine = temp.path().join("mine");
    fs::create_dir_all(mine.join(".multica")).expect("user's");
    fs::write(mine.join(".multica/daemon_task_context.json"), r#"{"managed_by":"x"}"#).expect("foreign");
    let before = snapshot(&mine);
    let root = temp.path().join("w");
    let local = Setup { local_workdir: Some(&mine), ..setup(&root, "claude") };
    assert_eq!(
        through(&Job::for_task(&task(""), &local).unclaimed()).expect_err("foreign").kind(),
        "foreign"
    );
    assert_eq!(snapshot(&mine), before);
    let none = temp.path().join("none");
    let local = Setup { local_workdir: Some(&none), ..local };
    assert_eq!(
        through(&Job::for_task(&task(""), &local).unclaimed()).expect_err("no directory").kind(),
        "work_dir"
    );
}

#[test]
fn bug_37_two_tasks_of_one_second_have_two_roots_and_neither_touches_the_other() {
    let temp = tempfile::tempdir().expect("temp");
    let mut one = task("");
    let mut two = task("");
    one.id = "0197a1b2-c3d4-7e5f-8a9b-0c1d2e3f0001".into();
    two.id = "0197a1b2-c3d4-7e5f-8a9b-0c1d2e3f0002".into();
    let first = prepare(temp.path(), &one, "claude").expect("prepared");
    fs::write(first.workdir.join("mine"), "1").expect("work");
    let second = prepare(temp.path(), &two, "claude").expect("prepared");
    assert_ne!(first.root, second.root);
    assert!(first.workdir.join("mine").exists() && !second.workdir.join("mine").exists());
}

#[test]
fn bug_42_a_link_deep_in_old_work_is_removed_and_not_followed() {
    let temp = tempfile::tempdir().expect("temp");
    let victim = temp.path().join("victim");
    fs::create_dir(&victim).expect("victim");
    fs::write(victim.join("f"), "x").expect("file");
    let root = temp.path().join("w");
    let prepared = prepare(&root, &task(""), "claude").expect("prepared");
    symlink(&victim, prepared.workdir.join("link")).expect("link");
    fs::remove_dir_all(prepared.root.join("output")).expect("removed");
    symlink(&victim, prepared.root.join("output")).expect("link");
    let again = prepare(&root, &task(""), "claude").expect("prepared");
    assert!(again.root.join("output").symlink_metadata().expect("there").is_dir());
    assert!(victim.join("f").exists());
}

#[test]
fn a_directory_that_was_exchanged_after_the_helper_is_noticed() {
    let temp = tempfile::tempdir().expect("temp");
    let prepared = prepare(temp.path(), &task(""), "claude").expect("prepared");
    fs::rename(&prepared.workdir, temp.path().join("moved")).expect("moved");
    assert!(prepared.verify().expect_err("gone").to_string().contains("prepared directory"), "bug_36 case C");
    fs::create_dir(&prepared.workdir).expect("another");
    assert_eq!(prepared.verify().expect_err("another").kind(), "changed");
}

#[test]
fn a_project_is_announced_and_its_resources_are_listed() {
    let temp = tempfile::tempdir().expect("temp");
    let prepared = prepare(temp.path(), &task(r#","project_id":"p","project_title":"Boats""#), "claude")
        .expect("prepared");
    let text =
        fs::read_to_string(prepared.workdir.join(".multica/project/resources.json")).expect("resources");
    assert!(text.contains("\"resources\": []") && prepared.brief.contains("Boats"));
}

/// A skill that was fetched, with a file that is shared.
fn fetched() -> Skill {
    Skill {
        name: "s".into(),
        content: "x".into(),
        files: vec![("ref/a.md".into(), "text".into())],
        shared: Some(".skill-cache/v1/ws/builtin/s/sha256:0/files".into()),
        ..Skill::default()
    }
}

#[test]
fn shared_files_of_skills_outlive_every_task_and_its_cleanup() {
    use std::os::unix::fs::MetadataExt;
    let temp = tempfile::tempdir().expect("temp");
    let root = temp.path().join("w");
    let (skills, named) = ([fetched()], task(r#","agent":{"id":"a","skill_refs":[{"id":"s"}]}"#));
    let kept = root.join(".skill-cache/v1/ws/builtin/s/sha256:0/files/ref/a.md");
    let shared_by = |links: u64| {
        let there = fs::metadata(&kept).expect("kept");
        assert_eq!((there.nlink(), mode(&kept)), (links, 0o444));
        assert_eq!(fs::read_to_string(&kept).expect("kept"), "text");
    };
    for (provider, place) in [("claude", "workdir/.claude/skills"), ("codex", "codex-home/skills")] {
        let with = Setup { fetched: &skills, ..setup(&root, provider) };
        // The second time everything of the first is wiped.
        for _ in 0..2 {
            through(&Job::for_task(&named, &with).unclaimed()).expect("prepared");
            let place = root.join(KEY).join(place).join("s");
            assert_eq!(fs::read_to_string(place.join("ref/a.md")).expect("linked"), "text");
            assert_eq!(mode(&place.join("SKILL.md")), 0o644, "that one is the task's own");
            shared_by(2);
        }
    }
    // In a person's directory, which is given back.
    let mine = temp.path().join("mine");
    fs::create_dir(&mine).expect("mine");
    let local = Setup { fetched: &skills, local_workdir: Some(&mine), ..setup(&root, "claude") };
    let prepared = through(&Job::for_task(&named, &local).unclaimed()).expect("prepared");
    assert_eq!(fs::read_to_string(mine.join(".claude/skills/s/ref/a.md")).expect("linked"), "text");
    shared_by(2);
    seal::unwind(&prepared, "claude").expect("unwound");
    assert!(!mine.join(".claude").exists());
    shared_by(1);
}
