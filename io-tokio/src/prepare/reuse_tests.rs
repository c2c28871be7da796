use super::super::job::{Job, Setup};
use super::super::{helper, read_reply};
use super::*;
use std::fs;
use std::os::unix::fs::symlink;

const FIRST: &str = "0197a1b2-c3d4-7e5f-8a9b-000000000001";
const SECOND: &str = "0197a1b2-c3d4-7e5f-8a9b-000000000002";

struct Place {
    temp: tempfile::TempDir,
    prior: Prepared,
}

impl Place {
    fn root(&self) -> PathBuf {
        self.temp.path().join("w")
    }

    fn claim(&self) -> Claim {
        Claim::take(&self.root(), "ws", SECOND).expect("claimed")
    }
}

fn task(id: &str, extra: &str) -> Task {
    let base = format!(
        r#"{{"id":"{id}","workspace_id":"ws","agent_id":"a","issue_id":"i",
            "agent":{{"id":"a","name":"N","skills":[{{"name":"one","content":"x"}}]}}}}"#
    );
    super::super::test_task::with_fields(&base, extra)
}

fn run(root: &Path, task: &Task, reuse: Option<&Reuse>) -> Prepared {
    let setup = Setup {
        workspaces_root: root,
        provider: "claude",
        reuse,
        local_workdir: None,
        home: None,
        codex_home: None,
        fetched: &[],
    };
    let job = Job::for_task(task, &setup);
    let job = if reuse.is_none() && task.id == FIRST { job.unclaimed() } else { job };
    read_reply(&helper(&job.to_bytes().expect("bytes"))).expect("prepared")
}

/// A first task that is over, and left work.
fn place() -> Place {
    let temp = tempfile::tempdir().expect("temp");
    let prior = run(&temp.path().join("w"), &task(FIRST, ""), None);
    fs::write(prior.workdir.join("work"), "x").expect("work");
    Place { temp, prior }
}

fn next(place: &Place, extra: &str) -> Task {
    let mut task = task(SECOND, extra);
    task.prior_work_dir = place.prior.workdir.to_str().expect("text").to_owned();
    task.prior_session_id = "session".to_owned();
    task
}

fn fresh(place: &Place, task: &Task, claim: &Claim) -> FreshBecause {
    match decide(&place.root(), task, claim) {
        Decision::Fresh(because) => because,
        Decision::Reuse(reuse) => panic!("reused {}", reuse.workdir().display()),
    }
}

fn reused(place: &Place, task: &Task, claim: &Claim) -> Reuse {
    match decide(&place.root(), task, claim) {
        Decision::Reuse(reuse) => reuse,
        Decision::Fresh(because) => panic!("fresh: {because}"),
    }
}

#[test]
fn reu_1_the_next_turn_of_the_same_work_finds_its_files_and_its_session() {
    let place = place();
    let claim = place.claim();
    let mut task = next(&place, r#","trigger_comment_id":"c""#);
    task.agent.as_mut().expect("agent").skills[0].name = "two".to_owned();
    fs::create_dir(place.prior.workdir.join(".claude/skills/mine")).expect("user's");
    fs::write(place.prior.workdir.join(".claude/skills/one/added"), "by the agent").expect("added");
    for _ in 0..3 {
        let reuse = reused(&place, &task, &claim);
        let prepared = run(&place.root(), &task, Some(&reuse));
        assert!(prepared.reused && reuse.is_confirmed_by(&prepared), "{:?}", prepared.warnings);
        assert_eq!(fs::read(prepared.workdir.join("work")).expect("work"), b"x");
        let skills: Vec<_> = {
            let dir = Dir::open(&prepared.workdir.join(".claude/skills")).expect("skills");
            dir.names().expect("names")
        };
        assert_eq!(
            skills,
            ["mine", "two"],
            "reu_7 and reu_8: nothing doubles, what is unbound goes, the user's stays"
        );
        let pointer =
            fs::read_to_string(prepared.workdir.join(".agent_context/issue_context.md")).expect("pointer");
        assert!(pointer.contains("`c`"), "context files are of this turn");
        assert_eq!(
            resume(&task, "claude", &prepared),
            Resume { session_id: Some("session".into()), is_lost: false }
        );
    }
    assert!(!place.prior.root.join(".gc_meta.json").exists(), "inv_86: it is not needed");
    claim.release();
    assert!(!place.root().join("ws/000000000002").exists(), "the claim on the unused root leaves nothing");
}

#[test]
fn reu_2_other_work_gets_a_fresh_environment() {
    let place = place();
    let claim = place.claim();
    for extra in [
        r#","issue_id":"j""#,
        r#","issue_id":"","chat_session_id":"c""#,
        r#","agent":{"id":"b"}"#,
        r#","workspace_id":"other""#,
        r#","issue_id":"","autopilot_run_id":"r""#,
        r#","agent_id":"","agent":{"id":""}"#,
    ] {
        let because = fresh(&place, &next(&place, extra), &claim);
        assert!(matches!(because, FreshBecause::NotProven(_)), "{extra}: {because}");
    }
    let mut none = next(&place, "");
    none.prior_work_dir.clear();
    assert_eq!(fresh(&place, &none, &claim), FreshBecause::NoPrior);
}

#[test]
fn reu_3_and_4_only_a_workdir_below_the_root_counts_and_a_linked_root_is_fine() {
    let place = place();
    let claim = place.claim();
    let mut task = next(&place, "");
    for dir in [
        place.prior.root.clone(),
        place.prior.root.join("output"),
        place.prior.workdir.join(".multica"),
        place.temp.path().to_owned(),
        place.temp.path().join("none"),
        PathBuf::from("relative"),
    ] {
        task.prior_work_dir = dir.to_str().expect("text").to_owned();
        fresh(&place, &task, &claim);
    }
    let link = place.temp.path().join("link");
    symlink(place.root(), &link).expect("link");
    task.prior_work_dir = link.join("ws/000000000001/workdir").to_str().expect("text").to_owned();
    assert!(matches!(decide(&link, &task, &claim), Decision::Reuse(_)));

    let elsewhere = place.temp.path().join("elsewhere");
    fs::rename(&place.prior.workdir, &elsewhere).expect("moved out");
    symlink(&elsewhere, &place.prior.workdir).expect("link");
    fresh(&place, &next(&place, ""), &claim);
}

#[test]
fn inv_85_without_proof_nothing_is_written_in_the_prior_root() {
    for broken in [".managed_env.json", "workdir/.multica/daemon_task_context.json"] {
        let place = place();
        let claim = place.claim();
        fs::remove_file(place.prior.root.join(".task_lock")).expect("no lock left");
        let path = place.prior.root.join(broken);
        for text in ["{", r#"{"managed_by":"somebody"}"#] {
            fs::write(&path, text).expect("broken");
            assert!(
                matches!(fresh(&place, &next(&place, ""), &claim), FreshBecause::NotProven(_)),
                "reu_5 {broken}"
            );
        }
        fs::remove_file(&path).expect("gone");
        fresh(&place, &next(&place, ""), &claim);
        assert!(!place.prior.root.join(".task_lock").exists());
    }
}

#[test]
fn reu_10_and_11_a_busy_environment_is_not_waited_for_and_not_a_failure() {
    let place = place();
    let claim = place.claim();
    let held = reused(&place, &next(&place, ""), &claim);
    assert_eq!(fresh(&place, &next(&place, ""), &claim), FreshBecause::InUse);
    drop(held);
    reused(&place, &next(&place, ""), &claim);
}

#[test]
fn clm_13_the_own_root_is_not_locked_twice() {
    let place = place();
    let claim = Claim::take(&place.root(), "ws", FIRST).expect("claimed");
    let mut task = next(&place, "");
    task.id = FIRST.to_owned();
    let reuse = reused(&place, &task, &claim);
    assert_eq!(reuse.identity(), claim.identity());
    assert!(run(&place.root(), &task, Some(&reuse)).workdir.join("work").exists());
}

#[test]
fn clm_12_an_environment_exchanged_after_the_decision_is_not_used() {
    let place = place();
    let claim = place.claim();
    let task = next(&place, "");
    let reuse = reused(&place, &task, &claim);
    fs::rename(&place.prior.root, place.temp.path().join("moved")).expect("moved");
    fs::create_dir_all(&place.prior.workdir).expect("a look-alike");
    let prepared = run(&place.root(), &task, Some(&reuse));
    assert!(!prepared.reused && prepared.root.ends_with("ws/000000000002"), "a fresh one instead");
    assert_eq!(prepared.warnings.len(), 1);
    assert!(!reuse.is_confirmed_by(&prepared));
    assert_eq!(fs::read_dir(&place.prior.workdir).expect("list").count(), 0, "nothing was written there");
    assert_eq!(resume(&task, "claude", &prepared), Resume { session_id: None, is_lost: true }, "rec_12");
}

#[test]
fn bug_42_d_a_folder_of_ours_that_the_agent_made_a_link_is_refused_and_said() {
    let place = place();
    let victim = place.temp.path().join("victim");
    fs::create_dir(&victim).expect("victim");
    fs::write(victim.join("issue_context.md"), "precious").expect("file");
    fs::remove_dir_all(place.prior.workdir.join(".agent_context")).expect("removed");
    symlink(&victim, place.prior.workdir.join(".agent_context")).expect("link");
    let claim = place.claim();
    let task = next(&place, "");
    let reuse = reused(&place, &task, &claim);
    let prepared = run(&place.root(), &task, Some(&reuse));
    assert!(!prepared.reused);
    assert!(
        prepared.warnings.iter().any(|warning| warning.contains("symbolic link")),
        "{:?}",
        prepared.warnings
    );
    assert_eq!(fs::read(victim.join("issue_context.md")).expect("whole"), b"precious");
    assert_eq!(fs::read_dir(&victim).expect("list").count(), 1);

    assert!(!place.prior.workdir.join(".multica").exists(), "taken out before the link was found");
    symlink(&victim, place.prior.workdir.join(".multica")).expect("link");
    drop(reuse);
    fresh(&place, &task, &claim);
}

#[test]
fn inv_87_a_session_goes_on_only_in_its_own_directory_and_with_its_record() {
    let place = place();
    let mut task = next(&place, "");
    let prepared = Prepared { codex_home: Some(place.temp.path().join("codex")), ..place.prior.clone() };
    assert!(resume(&task, "claude", &prepared).session_id.is_some());
    assert_eq!(resume(&task, "codex", &prepared), Resume { session_id: None, is_lost: true });
    fs::create_dir_all(place.temp.path().join("codex/sessions")).expect("sessions");
    fs::write(place.temp.path().join("codex/sessions/rollout-1-session.jsonl"), "").expect("rollout");
    assert!(resume(&task, "codex", &prepared).session_id.is_some());
    task.prior_session_resume_unavailable = true;
    assert!(resume(&task, "claude", &prepared).is_lost, "the server's word is not taken back");
    task.prior_work_dir = place.temp.path().to_str().expect("text").to_owned();
    assert!(resume(&task, "claude", &prepared).session_id.is_none());
    assert_eq!(
        resume(&Task::default(), "claude", &prepared),
        Resume::default(),
        "an ordinary first run loses nothing"
    );
}
