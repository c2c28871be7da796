//! Keeps web pages and other users of the machine away from the local HTTP server.

use super::connection::Caller;
use super::server::plain;
use super::socket_owner;
use super::trace;
use axum::extract::{ConnectInfo, Request};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::Response;

/// Runs before every route.
///
/// A page whose name was made to point here is known by its `Host`, one that sends a form by its `Origin` or
/// `Sec-Fetch-Site`. Another user of the machine is known by the owner of the socket; what changes something is kept from them, and so is
/// the trace, whose files are the owner's alone too.
pub(super) async fn check(
    ConnectInfo(caller): ConnectInfo<Caller>,
    request: Request,
    next: Next,
) -> Response {
    caller.request_begun();
    if let Err(reason) = allowed(request.uri(), request.headers()) {
        return plain(StatusCode::FORBIDDEN, reason);
    }
    if !is_for_all(request.method(), request.uri().path())
        && !socket_owner::may_control(caller.peer(), caller.local())
    {
        return plain(StatusCode::FORBIDDEN, "this daemon belongs to another user");
    }
    next.run(request).await
}

/// Whether other users of the machine may ask for it too.
fn is_for_all(method: &Method, path: &str) -> bool {
    match path {
        "/health" => true,
        trace::PATH => false,
        _ => matches!(*method, Method::GET | Method::HEAD),
    }
}

fn allowed(uri: &Uri, headers: &HeaderMap) -> Result<(), &'static str> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let host = hosts.next().and_then(|h| h.to_str().ok()).filter(|h| is_loopback(h));
    let absolute = uri.authority().is_none_or(|authority| is_loopback(authority.as_str()));
    if host.is_none() || hosts.next().is_some() || !absolute {
        return Err("only requests to 127.0.0.1 or localhost are answered");
    }
    if headers.contains_key(header::ORIGIN) {
        return Err("requests of web pages are not answered");
    }
    match headers.get("sec-fetch-site").map(axum::http::HeaderValue::as_bytes) {
        None | Some(b"none" | b"same-origin") => Ok(()),
        Some(_) => Err("requests of web pages are not answered"),
    }
}

fn is_loopback(host: &str) -> bool {
    let Ok(authority) = host.parse::<Authority>() else { return false };
    let name = authority.host();
    // A user name before the host would be no plain host, and a colon must be followed by a port.
    let plain = !host.contains('@') && (authority.port().is_some() || host.len() == name.len());
    plain && (name == "127.0.0.1" || name == "[::1]" || name.eq_ignore_ascii_case("localhost"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut all = HeaderMap::new();
        for (name, value) in pairs {
            all.append(*name, value.parse().expect("a value"));
        }
        all
    }

    fn verdict(pairs: &[(&'static str, &'static str)]) -> bool {
        allowed(&Uri::from_static("/health"), &headers(pairs)).is_ok()
    }

    #[test]
    fn cli_39_foreign_hosts_are_refused() {
        for good in ["127.0.0.1", "127.0.0.1:19514", "localhost:1", "LOCALHOST", "[::1]:8", "[::1]"] {
            assert!(verdict(&[("host", good)]), "{good}");
        }
        for bad in
            ["evil.example", "127.0.0.1.evil.example", "a@127.0.0.1", "127.0.0.2", "localhost:", ":80", ""]
        {
            assert!(!verdict(&[("host", bad)]), "{bad}");
        }
        assert!(!verdict(&[]));
        assert!(!verdict(&[("host", "localhost"), ("host", "evil.example")]));
        let absolute = Uri::from_static("http://evil.example/health");
        assert!(allowed(&absolute, &headers(&[("host", "localhost")])).is_err());
    }

    #[test]
    fn cli_39_web_pages_are_refused() {
        let host = ("host", "127.0.0.1:1");
        assert!(!verdict(&[host, ("origin", "http://127.0.0.1:1")]));
        assert!(!verdict(&[host, ("origin", "null")]));
        assert!(!verdict(&[host, ("sec-fetch-site", "cross-site")]));
        assert!(!verdict(&[host, ("sec-fetch-site", "same-site")]));
    }

    #[test]
    fn what_changes_something_and_the_trace_are_for_the_owner() {
        for path in ["/health", "/nothing"] {
            assert!(is_for_all(&Method::GET, path) && is_for_all(&Method::HEAD, path), "{path}");
        }
        assert!(is_for_all(&Method::POST, "/health"), "clients of today ask so");
        for (method, path) in [(Method::POST, "/shutdown"), (Method::GET, "/trace"), (Method::HEAD, "/trace")]
        {
            assert!(!is_for_all(&method, path), "{method} {path}");
        }
    }

    #[test]
    fn cli_40_the_command_line_and_the_desktop_app_are_served() {
        let host = ("host", "127.0.0.1:19514");
        assert!(verdict(&[host, ("user-agent", "Go-http-client/1.1"), ("accept-encoding", "gzip")]));
        assert!(verdict(&[host, ("sec-fetch-mode", "cors"), ("accept", "*/*")]));
        assert!(verdict(&[host, ("sec-fetch-site", "none")]));
    }
}
