//! Proxies come from the environment, for requests and for the control link alike. As a process cannot change its own
//! environment here, the test runs itself again in another one.

use super::test_server::{TestServer, client, read_request, reply};
use super::{CallError, Client};
use crate::wire::status::TaskStatus;
use longshore_core::id::TaskId;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::sync::mpsc;

const LONG: Duration = Duration::from_secs(30);
const ROLE: &str = "LONGSHORE_TEST_PROXY_ROLE";
const PASSWORD: &str = "hunter2";

/// Runs the test called `name` again as `role`, with `proxy` in its environment.
async fn again(name: &str, role: &str, proxy: &str, bypass: &str) {
    let output = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", &format!("http::proxied::{name}"), "--test-threads=1"])
        .env(ROLE, role)
        .envs(["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"].map(|variable| (variable, proxy)))
        .envs(["NO_PROXY", "no_proxy"].map(|variable| (variable, bypass)))
        .env_remove("REQUEST_METHOD")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .expect("it ran");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

fn not_sent(result: Result<TaskStatus, CallError>) {
    let error = result.expect_err("no answer");
    assert!(matches!(error, CallError::NotSent { .. }), "{error}");
    assert!(!error.to_string().contains(PASSWORD) && !format!("{error:?}").contains(PASSWORD), "{error:?}");
}

async fn status(client: &Client) -> Result<TaskStatus, CallError> {
    client.status(&TaskId::new("t"), LONG).await
}

#[tokio::test]
async fn inv_70_bug_29_requests_and_the_link_use_the_same_proxy() {
    match std::env::var(ROLE).ok().as_deref() {
        None => {}
        Some("through") => {
            assert_eq!(status(&client("http://server.invalid")).await, Ok(TaskStatus::Running));
            let tls = client("https://server.invalid");
            not_sent(status(&tls).await);
            not_sent(crate::ws::connect(&tls, &[], LONG).await.map(|_| TaskStatus::Unknown));
            return;
        }
        Some(_) => {
            for base in ["http://server.invalid", "https://server.invalid"] {
                let client = client(base);
                not_sent(status(&client).await);
                not_sent(crate::ws::connect(&client, &[], LONG).await.map(|_| TaskStatus::Unknown));
            }
            return;
        }
    }

    let (tell, mut told) = mpsc::unbounded_channel();
    let proxy = TestServer::start(move |mut stream, _| {
        let tell = tell.clone();
        async move {
            while let Some(request) = read_request(&mut stream).await {
                let answer = if request.line.starts_with("CONNECT") {
                    reply(502, "", "")
                } else {
                    reply(200, "", r#"{"status":"running"}"#)
                };
                let login = request.header("proxy-authorization").is_some();
                tell.send((request.line, login)).expect("the test listens");
                stream.write_all(&answer).await.expect("written");
            }
        }
    })
    .await;
    let name = "inv_70_bug_29_requests_and_the_link_use_the_same_proxy";
    let url = format!("http://me:{PASSWORD}@{}", proxy.address);
    again(name, "through", &url, "").await;
    for line in [
        "GET http://server.invalid/api/daemon/tasks/t/status HTTP/1.1",
        "CONNECT server.invalid:443 HTTP/1.1",
        "CONNECT server.invalid:443 HTTP/1.1",
    ] {
        assert_eq!(told.recv().await, Some((line.to_owned(), true)));
    }
    again(name, "direct", &url, "server.invalid").await;
    assert!(told.try_recv().is_err());
}

#[tokio::test]
async fn a_server_on_this_machine_is_called_directly() {
    if let Ok(base) = std::env::var(ROLE) {
        assert_eq!(status(&client(&base)).await, Ok(TaskStatus::Queued));
        return;
    }
    let server = TestServer::answering(reply(200, "", r#"{"status":"queued"}"#)).await;
    let nowhere = "http://127.0.0.1:1";
    again("a_server_on_this_machine_is_called_directly", &format!("http://{}", server.address), nowhere, "")
        .await;
}
