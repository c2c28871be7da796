//! Proxies come from the environment, for requests and for the control link alike. As a process cannot change its own
//! environment here, the test runs itself again in another one.

use super::test_server::{TestServer, client, read_request, reply};
use super::{CallError, Client};
use crate::wire::status::TaskStatus;
use longshore_core::id::TaskId;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::Command;
use tokio::sync::mpsc;

const LONG: Duration = Duration::from_secs(30);
const ROLE: &str = "LONGSHORE_TEST_PROXY_ROLE";
const PASSWORD: &str = "hunter2";

/// Runs the test called `name` again as `role`, with `proxy` in its environment.
async fn again(name: &str, role: &str, proxy: &str, bypass: &str) {
    let proxies =
        ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"].map(|variable| (variable, proxy));
    let bypasses = ["NO_PROXY", "no_proxy"].map(|variable| (variable, bypass));
    again_with(name, role, &[&proxies[..], &bypasses].concat()).await;
}

/// Runs the test called `name` again as `role`, with these variables about proxies and no others.
async fn again_with(name: &str, role: &str, env: &[(&str, &str)]) {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    for variable in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"] {
        command.env_remove(variable).env_remove(variable.to_ascii_lowercase());
    }
    let output = command
        .args(["--exact", &format!("http::proxied::{name}"), "--test-threads=1"])
        .env(ROLE, role)
        .envs(env.iter().copied())
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
    if std::env::var(ROLE).is_ok_and(|role| role != "direct") {
        assert!(error.to_string().contains("by way of the proxy in "), "{error}");
    }
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

/// What a client asked a SOCKS proxy for: the name that it is to resolve or an address, and the login.
#[derive(Debug, PartialEq, Eq)]
struct Asked {
    version: u8,
    target: String,
    login: Option<String>,
}

async fn bytes(stream: &mut TcpStream, count: u8) -> Vec<u8> {
    let mut bytes = vec![0; usize::from(count)];
    stream.read_exact(&mut bytes).await.expect("all of it");
    bytes
}

async fn counted(stream: &mut TcpStream) -> String {
    let count = stream.read_u8().await.expect("a length");
    String::from_utf8(bytes(stream, count).await).expect("text")
}

/// Up to a zero.
async fn ended(stream: &mut TcpStream) -> String {
    let mut text = String::new();
    loop {
        match stream.read_u8().await.expect("more") {
            0 => return text,
            byte => text.push(char::from(byte)),
        }
    }
}

/// Takes the part of a proxy in a handshake of SOCKS 4a or 5; `None` if nobody spoke.
async fn shake_hands(stream: &mut TcpStream) -> Option<Asked> {
    let version = stream.read_u8().await.ok()?;
    if version == 4 {
        let head = bytes(stream, 7).await;
        let (port, address) = (u16::from_be_bytes([head[1], head[2]]), [head[3], head[4], head[5], head[6]]);
        ended(stream).await;
        assert_eq!((head[0], &address[..3], address[3] != 0), (1, &[0, 0, 0][..], true), "a name follows");
        let target = format!("{}:{port}", ended(stream).await);
        stream.write_all(&[0, 90, 0, 0, 0, 0, 0, 0]).await.expect("written");
        return Some(Asked { version, target, login: None });
    }
    let count = stream.read_u8().await.expect("a length");
    let methods = bytes(stream, count).await;
    let mut login = None;
    if methods.contains(&2) {
        stream.write_all(&[5, 2]).await.expect("written");
        assert_eq!(stream.read_u8().await.expect("a version"), 1);
        login = Some(format!("{}:{}", counted(stream).await, counted(stream).await));
        stream.write_all(&[1, 0]).await.expect("written");
    } else {
        stream.write_all(&[5, 0]).await.expect("written");
    }
    let head = bytes(stream, 4).await;
    assert_eq!(head[..3], [5, 1, 0], "a connection is asked for");
    let host = match head[3] {
        1 => bytes(stream, 4).await.iter().map(u8::to_string).collect::<Vec<_>>().join("."),
        3 => counted(stream).await,
        4 => {
            let address = <[u8; 16]>::try_from(bytes(stream, 16).await).expect("16 bytes");
            format!("[{}]", std::net::Ipv6Addr::from(address))
        }
        other => panic!("an address of kind {other}"),
    };
    let port = stream.read_u16().await.expect("a port");
    stream.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await.expect("written");
    Some(Asked { version, target: format!("{host}:{port}"), login })
}

#[tokio::test]
async fn requests_and_the_link_go_through_a_socks_proxy() {
    let name = "requests_and_the_link_go_through_a_socks_proxy";
    if let Ok(base) = std::env::var(ROLE) {
        let client = client(&base);
        assert_eq!(status(&client).await, Ok(TaskStatus::Running));
        let link = crate::ws::connect(&client, &[], LONG).await.map(drop).expect_err("no link");
        assert!(matches!(link, CallError::Undecodable { status: 200, .. }), "{link}");
        return;
    }
    let (tell, mut told) = mpsc::unbounded_channel();
    let proxy = TestServer::start(move |mut stream, _| {
        let tell = tell.clone();
        async move {
            let Some(asked) = shake_hands(&mut stream).await else { return };
            tell.send((asked, String::new())).expect("the test listens");
            while let Some(request) = read_request(&mut stream).await {
                let asked = Asked { version: 0, target: String::new(), login: None };
                tell.send((asked, request.line)).expect("the test listens");
                stream.write_all(&reply(200, "", r#"{"status":"running"}"#)).await.expect("written");
            }
        }
    })
    .await;
    let login = Some(format!("me:{PASSWORD}"));
    for (scheme, host, variable, version, login) in [
        ("socks5h", "server.invalid", "ALL_PROXY", 5, login),
        ("socks5h", "[2001:db8::1]", "ALL_PROXY", 5, None),
        ("socks5", "192.0.2.1", "http_proxy", 5, None),
        ("socks4a", "server.invalid", "HTTP_PROXY", 4, None),
    ] {
        let user = login.as_ref().map(|login| format!("{login}@")).unwrap_or_default();
        let url = format!("{scheme}://{user}{}", proxy.address);
        again_with(name, &format!("http://{host}:81"), &[(variable, &url)]).await;
        let mut lines = Vec::new();
        while let Ok((asked, line)) = told.try_recv() {
            if line.is_empty() {
                let target = format!("{host}:81");
                assert_eq!(asked, Asked { version, target, login: login.clone() }, "{scheme}");
            } else {
                lines.push(line);
            }
        }
        assert_eq!(
            lines,
            ["GET /api/daemon/tasks/t/status HTTP/1.1", "GET /api/daemon/ws HTTP/1.1"],
            "{scheme}"
        );
    }
}
