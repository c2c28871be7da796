//! Skills that a claim only names.

use crate::bed::{Bed, WITHIN, polled};
use longshore_core::id::TaskId;
use longshore_io_tokio::agent_double::Step;
use longshore_io_tokio::plane::{Action, Fault, Request, Rule, State, TaskSpec};
use longshore_io_tokio::skills::{bundle_hash, file_hash};
use longshore_io_tokio::wire::skill::{Bundle, BundleFile};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;

const RESOLVE: &str = "/api/daemon/runtimes/*/tasks/*/skill-bundles/resolve";

fn bundle(name: &str) -> Bundle {
    let (content, text) = (format!("# {name}\n"), format!("how to {name}\n"));
    let file = BundleFile {
        path: "references/how.md".into(),
        sha256: file_hash(&text),
        size_bytes: text.len() as u64,
        content: text,
    };
    let mut bundle = Bundle {
        id: format!("builtin:{name}"),
        source: "builtin".into(),
        name: name.into(),
        size_bytes: content.len() as u64 + file.size_bytes,
        content,
        files: vec![file],
        ..Bundle::default()
    };
    bundle.hash = bundle_hash(&bundle);
    bundle
}

fn reference(bundle: &Bundle) -> Value {
    json!({
        "id": bundle.id, "source": bundle.source, "name": bundle.name, "hash": bundle.hash,
        "size_bytes": bundle.size_bytes, "file_count": 1, "kind_of_later": ["servers"],
    })
}

fn reply(bundle: &Bundle) -> Action {
    let body = json!({ "bundles": [bundle] }).to_string();
    Action::Reply { status: 200, body, headers: vec![("content-type".into(), "application/json".into())] }
}

/// The server answers the first requests with these, in this order.
fn shelf<D>(bed: &Bed<D>, names: &[&str]) -> Vec<Fault> {
    let nth = |(n, name): (usize, &&str)| {
        bed.plane.fault(Rule::new("POST", RESOLVE, reply(&bundle(name))).nth(n as u64 + 1))
    };
    names.iter().enumerate().map(nth).collect()
}

fn with_skills(names: &[&str]) -> TaskSpec {
    let mut spec = TaskSpec::new("claude").script(&[Step::Result("done".into())]);
    let refs: Vec<Value> = names.iter().map(|name| reference(&bundle(name))).collect();
    spec.content.agent_fields.insert("skill_refs".into(), json!(refs));
    spec
}

fn is_resolve(request: &Request) -> bool {
    request.path.ends_with("/skill-bundles/resolve")
}

fn asked<D>(bed: &Bed<D>) -> Vec<String> {
    let requests = bed.plane.requests_where(is_resolve);
    requests
        .iter()
        .map(|request| request.body["skills"][0]["name"].as_str().unwrap_or("?").to_owned())
        .collect()
}

fn placed<D>(bed: &Bed<D>, task: &TaskId, name: &str) -> PathBuf {
    bed.env_root(task).join("workdir/.claude/skills").join(name)
}

#[tokio::test]
async fn a_task_has_the_skills_that_its_claim_names_and_the_next_one_asks_for_none() {
    let bed = Bed::new().await;
    let _shelf = shelf(&bed, &["sail", "anchor"]);
    let first = bed.enqueue(with_skills(&["sail", "anchor"]));
    bed.completed(&first).await;
    assert_eq!(asked(&bed), ["sail", "anchor"], "one for each request, in the claim's order");
    let request = &bed.plane.requests_where(is_resolve)[0];
    assert_eq!(request.body["skills"][0]["kind_of_later"][0], "servers", "the reference goes back whole");
    let second = bed.enqueue(with_skills(&["anchor", "sail"]));
    bed.completed(&second).await;
    assert_eq!(asked(&bed).len(), 2, "both were kept");

    let mut inodes = Vec::new();
    for task in [&first, &second] {
        for name in ["sail", "anchor"] {
            let skill = placed(&bed, task, name);
            let head = fs::read_to_string(skill.join("SKILL.md")).expect("installed");
            assert!(
                head.contains(&format!("name: {name}\n")) && head.ends_with(&format!("# {name}\n")),
                "{head}"
            );
            let how = skill.join("references/how.md");
            assert_eq!(fs::read_to_string(&how).expect("installed"), format!("how to {name}\n"));
            inodes.push(fs::metadata(&how).expect("there").ino());
        }
    }
    // A user's files are linked; the superuser's are not, as it can write through any link.
    let shared = inodes[0] == inodes[2] && inodes[1] == inodes[3];
    let root = fs::metadata("/proc/self").expect("there").uid() == 0;
    assert_eq!(shared, !root);
    let brief = fs::read_to_string(bed.env_root(&first).join("workdir/CLAUDE.md")).expect("a brief");
    assert!(brief.contains("`sail`") && brief.contains("`anchor`"));
    let cache = bed.home.dir().join("ws/.skill-cache/v1");
    assert_eq!(fs::read_dir(cache).expect("kept").count(), 1, "of one workspace");
}

#[tokio::test]
async fn skc_2_a_refused_skill_fails_the_task_with_its_reason_and_name_and_keeps_the_others() {
    let bed = Bed::new().await;
    let _shelf = shelf(&bed, &["sail"]);
    let refused = Action::error(404, "skill bundle not found");
    let _refused = bed.plane.fault(Rule::new("POST", RESOLVE, refused).nth(2));
    let task = bed.enqueue(TaskSpec { max_attempts: 1, ..with_skills(&["sail", "anchor"]) });
    bed.failed(&task).await;
    let report = &bed.bodies(&task, "fail")[0];
    assert_eq!(report["failure_reason"], "skill_bundle_unavailable");
    let error = report["error"].as_str().expect("a text");
    assert!(error.contains("\"anchor\"") && error.contains("skill bundle not found"), "{error}");
    assert!(bed.calls(&task, "start").is_empty() && bed.home.processes_of(&task).is_empty());

    let next = bed.enqueue(with_skills(&["sail"]));
    bed.completed(&next).await;
    assert_eq!(asked(&bed), ["sail", "anchor"]);
}

#[tokio::test]
async fn incident_r49_a_download_that_breaks_off_is_reported_as_a_missing_skill() {
    let bed = Bed::new().await;
    let dropped = bed.plane.fault(Rule::new("POST", RESOLVE, Action::DropRequest));
    let task = bed.enqueue(TaskSpec { max_attempts: 1, ..with_skills(&["sail"]) });
    bed.failed(&task).await;
    dropped.reached(3).await;
    assert_eq!(bed.bodies(&task, "fail")[0]["failure_reason"], "skill_bundle_unavailable");
    assert_eq!(asked(&bed).len(), 3, "it is tried again twice");
}

#[tokio::test]
async fn a_slow_download_keeps_its_lease_and_holds_up_no_other_task() {
    let often = |core: &mut longshore_core::config::Config| core.timers.lease = Duration::from_millis(100);
    let bed = Bed::driven(polled(), |home| home, often).await;
    let held = bed.plane.fault(Rule::new("POST", RESOLVE, Action::Hold));
    let slow = bed.enqueue(with_skills(&["sail"]));
    held.reached(1).await;
    let other = bed.enqueue(TaskSpec::new("claude").script(&[Step::Result("done".into())]));
    bed.completed(&other).await;
    let of_slow = format!("/tasks/{slow}/prepare-lease");
    let leases = |request: &Request| request.path.ends_with(&of_slow);
    bed.plane.wait_for_requests(4, WITHIN, leases).await.expect("the lease is kept");
    assert!(bed.calls(&slow, "start").is_empty());
    // And a cancel ends it at once.
    assert_eq!(bed.plane.cancel(&slow), Ok(State::Cancelled));
    bed.answered(&slow, "cancel-ack").await;
    assert!(bed.calls(&slow, "start").is_empty() && bed.calls(&slow, "fail").is_empty());
    held.release();
    bed.daemon.stop().await;
}

#[tokio::test]
async fn a_download_that_never_ends_is_cut_off_at_the_deadline_of_the_preparation() {
    let soon = |core: &mut longshore_core::config::Config| core.timers.prepare = Duration::from_millis(500);
    let bed = Bed::driven(polled(), |home| home, soon).await;
    let held = bed.plane.fault(Rule::new("POST", RESOLVE, Action::Hold));
    let task = bed.enqueue(TaskSpec { max_attempts: 1, ..with_skills(&["sail"]) });
    bed.failed(&task).await;
    let report = &bed.bodies(&task, "fail")[0];
    assert_eq!(report["failure_reason"], "timeout");
    assert!(report["error"].as_str().expect("a text").contains("skills"), "{report}");
    held.release();
    bed.daemon.stop().await;
}
