//! A server for tests that answers each connection as the test says.

use super::client::{Client, ClientConfig};
use crate::secret::Secret;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

pub(crate) const TOKEN: &str = "mul_0123456789";

/// Ends with all its connections when dropped.
pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    task: JoinHandle<()>,
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl TestServer {
    /// `serve` gets each connection with its number, from 0.
    pub(crate) async fn start<F, Fut>(serve: F) -> Self
    where
        F: Fn(TcpStream, usize) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            for number in 0.. {
                let Ok((stream, _)) = listener.accept().await else { break };
                connections.spawn(serve(stream, number));
            }
        });
        Self { address, task }
    }

    /// Answers every request with `response`, which is written as it is.
    pub(crate) async fn answering(response: impl Into<Vec<u8>>) -> Self {
        let response = response.into();
        Self::start(move |mut stream, _| {
            let response = response.clone();
            async move {
                while read_request(&mut stream).await.is_some() {
                    if stream.write_all(&response).await.is_err() {
                        return;
                    }
                }
            }
        })
        .await
    }

    pub(crate) fn client(&self) -> Client {
        client(&format!("http://{}/", self.address))
    }
}

pub(crate) fn client(base_url: &str) -> Client {
    Client::new(&ClientConfig {
        base_url: base_url.to_owned(),
        token: Secret::new(TOKEN),
        version: "0.4.30".into(),
        capabilities: crate::driver::CAPABILITIES.iter().map(|&name| name.to_owned()).collect(),
        os: "linux".into(),
    })
    .expect("a client")
}

/// A reply with a length.
pub(crate) fn reply(status: u16, headers: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n{headers}\r\n{body}", body.len()).into_bytes()
}

pub(crate) struct Seen {
    pub(crate) line: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(have, _)| have.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

/// Reads a request; `None` when the connection ends.
pub(crate) async fn read_request(stream: &mut TcpStream) -> Option<Seen> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).expect("ASCII");
    let mut lines = head.trim_end().split("\r\n");
    let line = lines.next()?.to_owned();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let mut seen = Seen { line, headers, body: String::new() };
    let length = seen.header("content-length").map_or(0, |length| length.parse().expect("a number"));
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    seen.body = String::from_utf8(body).expect("UTF-8");
    Some(seen)
}
