//! That the checks which must find nothing would find something.

use crate::audit::{self, Audit};
use crate::rig::{Rig, until};
use crate::stage::Stage;
use longshore_core::id::TaskId;
use longshore_core::plane::Message;
use longshore_io_tokio::plane::Server;
use longshore_tests::AGENT_WORK;
use std::fs;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[tokio::test]
async fn two_agents_at_once_for_one_work_are_noticed() {
    let mut rig = Rig::new(|home| home).await;
    let stage = Stage::new(&rig);
    let spec = || stage.spec(false).env(AGENT_WORK, "the same");
    let tasks = [(); 2].map(|()| rig.plane.enqueue(spec()).expect("it is taken"));
    // The first one waits at its gate meanwhile.
    let noticed = || Some(rig.home.overlapping_agents()).filter(|overlaps| !overlaps.is_empty());
    let overlaps = until("the second agent", noticed).await;
    assert!(overlaps.len() == 1 && tasks.iter().any(|task| task.as_str() == overlaps[0]), "{overlaps:?}");
    stage.open_all(&mut rig);
    for task in &tasks {
        rig.completed(task).await;
    }
    rig.stop().await;
}

/// Reports a failure, as no daemon does that has reported a success.
async fn fail(plane: &Server, task: &TaskId) {
    let (body, token) = (r#"{"error":"no"}"#, plane.token().expose());
    let request = format!(
        "POST /api/daemon/tasks/{task}/fail HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        plane.addr(),
        body.len(),
    );
    let mut stream = TcpStream::connect(plane.addr()).await.expect("it listens");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("answered");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

/// Says a message once more, as if a daemon had sent it twice.
fn double(plane: &Server, of: &Message, task: &TaskId) {
    plane.with_plane(|plane, _| plane.post_messages(task, vec![of.clone()])).expect("it is taken");
}

#[tokio::test]
async fn a_doubled_message_a_repeated_report_and_what_is_left_are_noticed() {
    let mut rig = Rig::new(|home| home).await;
    let stage = Stage::new(&rig);
    stage.open_all(&mut rig);
    let task = rig.enqueue(stage.spec(false));
    let tries = rig.completed(&task).await;
    let mut audit = Audit::default();
    audit::leftovers(&rig, &mut audit).await;
    audit.wrong.extend(audit::task(&rig, &tries, true).wrong);
    assert_eq!(audit.wrong, Vec::<String>::new());

    fail(&rig.plane, &task).await;
    let first = rig.plane.transcript(&task).remove(0);
    double(&rig.plane, &first, &task);
    let wrong = audit::task(&rig, &tries, true).wrong;
    for what in ["was told as", "another one", "messages of", "bytes are there"] {
        assert!(wrong.iter().any(|wrong| wrong.contains(what)), "{what}: {wrong:#?}");
    }
    fs::write(rig.home.temp_base().join("left"), "").expect("written");
    fs::write(rig.home.state_dir().join("half.tmp"), "").expect("written");
    let left = audit::files_left(&rig);
    assert_eq!(left.len(), 2, "{left:?}");
    rig.stop().await;
}
