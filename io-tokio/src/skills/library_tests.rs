use super::super::check::tests::{bundle, reference};
use super::*;
use crate::http::test_server::{Seen, TestServer, read_request, reply};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::AsyncWriteExt;

/// What a server answers to the request for a skill, the so-manieth one of all.
type Answer = Box<dyn Fn(&str, usize) -> (Vec<u8>, Duration) + Send + Sync>;

/// A server of skills that counts what it is asked for.
struct Shelf {
    server: TestServer,
    asked: Arc<Mutex<Vec<Seen>>>,
}

impl Shelf {
    async fn new(answer: Answer) -> Self {
        let asked: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let (seen, answer, count) = (asked.clone(), Arc::new(answer), Arc::new(AtomicUsize::new(0)));
        let server = TestServer::start(move |mut stream, _| {
            let (seen, answer, count) = (seen.clone(), answer.clone(), count.clone());
            async move {
                while let Some(request) = read_request(&mut stream).await {
                    let body: serde_json::Value = serde_json::from_str(&request.body).expect("JSON");
                    let id = body["skills"][0]["id"].as_str().expect("an id").to_owned();
                    seen.lock().expect("no panic").push(request);
                    let (text, pause) = answer(&id, count.fetch_add(1, Ordering::SeqCst));
                    tokio::time::sleep(pause).await;
                    if stream.write_all(&text).await.is_err() {
                        return;
                    }
                }
            }
        })
        .await;
        Self { server, asked }
    }

    fn ids(&self) -> Vec<String> {
        let id = |seen: &Seen| {
            let body: serde_json::Value = serde_json::from_str(&seen.body).expect("JSON");
            assert_eq!(body["skills"].as_array().map(Vec::len), Some(1), "one for each request");
            body["skills"][0]["id"].as_str().expect("an id").to_owned()
        };
        self.asked.lock().expect("no panic").iter().map(id).collect()
    }
}

fn skill(id: &str) -> Bundle {
    bundle("builtin", id, &format!("# {id}\n"), &[("references/a.md", id)])
}

fn given(id: &str) -> Vec<u8> {
    reply(200, "", &serde_json::json!({"bundles": [skill(id)]}).to_string())
}

fn refs(ids: &[&str]) -> Vec<SkillRef> {
    ids.iter().map(|id| reference(&skill(id))).collect()
}

async fn get(library: &Library, shelf: &Shelf, skills: &[SkillRef]) -> Result<Vec<String>, Missing> {
    let (runtime, task) = (RuntimeId::new("r"), TaskId::new("t"));
    let wanted = Wanted { workspace: "w", runtime: &runtime, task: &task, skills };
    let got = library.get(&shelf.server.client(), wanted).await?;
    Ok(got.iter().map(|skill| skill.bundle().id.clone()).collect())
}

#[tokio::test]
async fn skills_come_one_request_each_in_the_claims_order_and_then_from_the_disk() {
    let temp = tempfile::tempdir().expect("temp");
    let shelf = Shelf::new(Box::new(|id, _| (given(id), Duration::ZERO))).await;
    let wanted = refs(&["c", "a", "b"]);
    let library = Library::new(temp.path());
    assert_eq!(get(&library, &shelf, &wanted).await.expect("all"), ["c", "a", "b"]);
    assert_eq!(shelf.ids(), ["c", "a", "b"]);
    assert_eq!(
        shelf.asked.lock().expect("no panic")[0].line,
        "POST /api/daemon/runtimes/r/tasks/t/skill-bundles/resolve HTTP/1.1"
    );
    // Also for the next process.
    assert_eq!(get(&Library::new(temp.path()), &shelf, &wanted).await.expect("all"), ["c", "a", "b"]);
    assert_eq!(shelf.ids().len(), 3);
}

#[tokio::test]
async fn skc_2_a_skill_that_fails_keeps_those_that_came_before() {
    for status in [400, 404, 409] {
        let temp = tempfile::tempdir().expect("temp");
        let refuse = move |id: &str, _| match id {
            "b" => (reply(status, "", r#"{"error":"skill bundle not found"}"#), Duration::ZERO),
            id => (given(id), Duration::ZERO),
        };
        let shelf = Shelf::new(Box::new(refuse)).await;
        let error =
            get(&Library::new(temp.path()), &shelf, &refs(&["a", "b", "c"])).await.expect_err("refused");
        assert!(error.to_string().contains("\"demo-skill\" (b)"), "{error}");
        assert_eq!(shelf.ids(), ["a", "b"], "{status}: a refusal is not asked again");
        assert_eq!(get(&Library::new(temp.path()), &shelf, &refs(&["a"])).await.expect("kept"), ["a"]);
        assert_eq!(shelf.ids().len(), 2);
    }
}

#[tokio::test]
async fn failures_that_pass_are_tried_again_after_half_a_second_and_two() {
    let temp = tempfile::tempdir().expect("temp");
    let shelf = Shelf::new(Box::new(|id, count| match count {
        0 => (reply(503, "", ""), Duration::ZERO),
        1 => (reply(200, "", "<html>a proxy's page"), Duration::ZERO),
        _ => (given(id), Duration::ZERO),
    }))
    .await;
    let down = Shelf::new(Box::new(|_, _| (reply(500, "", ""), Duration::ZERO))).await;
    let library = Library::new(temp.path());
    let begun = tokio::time::Instant::now();
    let (a, b) = (refs(&["a"]), refs(&["b"]));
    let (got, error) = tokio::join!(get(&library, &shelf, &a), get(&library, &down, &b));
    assert!(begun.elapsed() >= Duration::from_millis(2500), "{:?}", begun.elapsed());
    assert_eq!(got.expect("third time"), ["a"]);
    let error = error.expect_err("down");
    assert!(matches!(error, Missing::Call { why: CallError::ServerError { .. }, .. }), "{error}");
    assert_eq!((shelf.ids().len(), down.ids().len()), (3, 3));
}

#[tokio::test]
async fn skc_3_two_tasks_that_want_one_skill_fetch_it_once() {
    let temp = tempfile::tempdir().expect("temp");
    let shelf = Shelf::new(Box::new(|id, _| (given(id), Duration::from_millis(100)))).await;
    let (library, wanted) = (Library::new(temp.path()), refs(&["a", "b"]));
    let all = (0..4).map(|_| get(&library, &shelf, &wanted));
    for got in futures_util::future::join_all(all).await {
        assert_eq!(got.expect("all"), ["a", "b"]);
    }
    assert_eq!(shelf.ids(), ["a", "b"]);
    assert!(library.turn(["w", "x", "y", "z"].map(str::to_owned)).try_lock().is_ok());
    assert_eq!(library.fetching.lock().expect("no panic").len(), 1, "turns that are over are forgotten");
}

#[tokio::test]
async fn whoever_waits_for_a_task_that_is_cancelled_fetches_on_their_own() {
    let temp = tempfile::tempdir().expect("temp");
    // The first request hangs.
    let pause = |count| if count == 0 { Duration::from_hours(1) } else { Duration::ZERO };
    let shelf = Shelf::new(Box::new(move |id, count| (given(id), pause(count)))).await;
    let (library, wanted) = (Library::new(temp.path()), refs(&["a"]));
    let mut first = Box::pin(get(&library, &shelf, &wanted));
    let asked = async {
        while shelf.ids().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        got = &mut first => panic!("{got:?}"),
        () = asked => {}
    }
    let mut second = Box::pin(get(&library, &shelf, &wanted));
    tokio::select! {
        got = &mut second => panic!("it did not wait: {got:?}"),
        () = tokio::time::sleep(Duration::from_millis(200)) => {}
    }
    assert_eq!(shelf.ids().len(), 1);
    drop(first);
    let got = tokio::time::timeout(Duration::from_secs(20), second).await.expect("in time");
    assert_eq!(got.expect("fetched"), ["a"]);
    assert_eq!(shelf.ids().len(), 2);
}

#[tokio::test]
async fn an_answer_that_is_not_the_skill_is_refused() {
    for (bundles, words) in [
        (serde_json::json!([]), "nothing"),
        (serde_json::json!([skill("a"), skill("b")]), "more than"),
        (serde_json::json!([skill("b")]), "instead"),
        (serde_json::json!(null), "nothing"),
    ] {
        let temp = tempfile::tempdir().expect("temp");
        let text = reply(200, "", &serde_json::json!({"bundles": bundles}).to_string());
        let shelf = Shelf::new(Box::new(move |_, _| (text.clone(), Duration::ZERO))).await;
        let error = get(&Library::new(temp.path()), &shelf, &refs(&["a"])).await.expect_err("refused");
        assert!(error.to_string().contains(words), "{error}");
        assert_eq!(shelf.ids().len(), 1);
    }
}

#[tokio::test]
async fn what_cannot_be_asked_for_or_is_too_much_is_refused_without_a_request() {
    let temp = tempfile::tempdir().expect("temp");
    let shelf = Shelf::new(Box::new(|id, _| (given(id), Duration::ZERO))).await;
    let library = Library::new(temp.path());
    let no_hash: SkillRef =
        serde_json::from_str(r#"{"id":"a","source":"builtin","name":"n"}"#).expect("lenient");
    let huge: SkillRef = serde_json::from_str(
        r#"{"id":"a","source":"builtin","name":"n","hash":"sha256:0","size_bytes":99999999}"#,
    )
    .expect("lenient");
    for skills in [vec![no_hash], vec![huge], refs(&vec!["a"; MAX_TASK_SKILLS + 1])] {
        get(&library, &shelf, &skills).await.expect_err("refused");
    }
    assert!(shelf.ids().is_empty());
    assert!(get(&library, &shelf, &[]).await.expect("none").is_empty());
}

#[tokio::test]
async fn a_cache_that_cannot_be_written_does_no_harm() {
    let temp = tempfile::tempdir().expect("temp");
    std::fs::write(temp.path().join(".skill-cache"), "in the way").expect("file");
    let shelf = Shelf::new(Box::new(|id, _| (given(id), Duration::ZERO))).await;
    let library = Library::new(temp.path());
    for _ in 0..2 {
        assert_eq!(get(&library, &shelf, &refs(&["a"])).await.expect("fetched"), ["a"]);
    }
    assert_eq!(shelf.ids().len(), 2);
}

#[tokio::test]
async fn newer_texts_are_kept_under_their_own_hash() {
    let temp = tempfile::tempdir().expect("temp");
    let newer = bundle("workspace", "a", "newer", &[]);
    let asked = bundle("workspace", "a", "old", &[]);
    let text = reply(200, "", &serde_json::json!({"bundles": [newer]}).to_string());
    let shelf = Shelf::new(Box::new(move |_, _| (text.clone(), Duration::ZERO))).await;
    let library = Library::new(temp.path());
    get(&library, &shelf, &[reference(&asked)]).await.expect("taken");
    get(&library, &shelf, &[reference(&newer)]).await.expect("kept");
    assert_eq!(shelf.ids().len(), 1);
}

#[test]
fn a_request_has_the_time_that_its_size_needs() {
    assert_eq!(deadline(0), Duration::from_secs(30));
    assert_eq!(deadline(50 * 1024 * 60), Duration::from_mins(1));
    assert_eq!(deadline(u64::MAX), Duration::from_mins(5));
}
