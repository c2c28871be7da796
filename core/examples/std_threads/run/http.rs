//! As much of HTTP/1.1 as two programs of one kind need: one request for each connection, bodies with their length.

use longshore_core::error::ApiError;
use serde_json::Value;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Bytes of a head at most.
const MOST_HEAD: u64 = 16 * 1024;
/// Bytes of a body at most.
const MOST_BODY: usize = 1024 * 1024;

/// A request or an answer: its first line, and what follows.
pub(crate) struct Message {
    pub(crate) first: String,
    pub(crate) body: Value,
}

/// Reads a message. Whoever sends more than is allowed, or less than was announced, gets an error.
pub(crate) fn read(stream: &TcpStream) -> io::Result<Message> {
    let mut from = BufReader::new(stream);
    let mut head = (&mut from).take(MOST_HEAD);
    let mut first = String::new();
    head.read_line(&mut first)?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        if head.read_line(&mut line)? == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the head has no end"));
        }
        let line = line.trim();
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
    }
    if length > MOST_BODY {
        return Err(io::Error::other("the body is too long"));
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body)?;
    let body = if body.is_empty() { Value::Null } else { serde_json::from_slice(&body)? };
    Ok(Message { first: first.trim().to_owned(), body })
}

/// Writes a message.
pub(crate) fn write(mut stream: &TcpStream, first: &str, body: &Value) -> io::Result<()> {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let length = body.len();
    let head = format!(
        "{first}\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(format!("{head}{body}").as_bytes())
}

/// Asks the server, and waits for its answer no longer than `within`. Honest about what is not known: only what was never sent is `NotSent`.
pub(crate) fn ask(
    to: SocketAddr,
    (method, path): (&str, &str),
    body: &Value,
    within: Duration,
) -> Result<(u16, Value), ApiError> {
    let within = within.max(Duration::from_millis(1));
    let stream = TcpStream::connect_timeout(&to, within).map_err(|_| ApiError::NotSent)?;
    let timeouts = stream.set_read_timeout(Some(within)).and(stream.set_write_timeout(Some(within)));
    timeouts.map_err(|_| ApiError::NotSent)?;
    write(&stream, &format!("{method} {path} HTTP/1.1"), body).map_err(|_| ApiError::Unknown)?;
    let answer = read(&stream).map_err(|_| ApiError::Unknown)?;
    let status = answer.first.split(' ').nth(1).and_then(|status| status.parse().ok());
    status.map(|status| (status, answer.body)).ok_or(ApiError::Undecodable)
}
