//! The server's base address in the one form that every request is built from.

use url::Url;

/// Used when neither a flag nor the environment nor the config file names a server.
pub const DEFAULT_SERVER_URL: &str = "ws://localhost:8080/ws";

/// Turns `ws://h:8080/ws` into `http://h:8080`: `ws` becomes `http`, `wss` becomes `https`, a path that is exactly
/// `/ws` is dropped, as are query, fragment and trailing slashes. Any other path is kept as a prefix.
///
/// # Errors
/// Says in words what is wrong: no URL, another scheme, no host, or a user name in it.
pub fn normalise(text: &str) -> Result<String, &'static str> {
    let url = Url::parse(text.trim()).map_err(|_| "it is no URL")?;
    let scheme = match url.scheme() {
        "http" | "ws" => "http",
        "https" | "wss" => "https",
        _ => return Err("the scheme is none of http, https, ws, wss"),
    };
    if !url.username().is_empty() || url.password().is_some() {
        return Err("a user name or password in a URL would be logged");
    }
    let host = url.host_str().filter(|h| !h.is_empty()).ok_or("there is no host")?;
    // The default port of the scheme is not in `port()`, and that of `ws` is the one of `http`.
    let port = url.port().map(|p| format!(":{p}")).unwrap_or_default();
    let path = url.path().trim_end_matches('/');
    let path = if path == "/ws" { "" } else { path };
    Ok(format!("{scheme}://{host}{port}{path}"))
}

/// The host of a normalised address, in lower case and without the port.
pub fn host(base: &str) -> Option<String> {
    Url::parse(base).ok()?.host_str().map(str::to_ascii_lowercase)
}

/// One text for all spellings of a normalised address that lead to the same server: in lower case, without the dot that may end a host name,
/// and one name for this machine. It is compared, never called.
pub fn place(base: &str) -> String {
    let Ok(mut url) = Url::parse(base) else { return base.to_owned() };
    let host = url.host_str().unwrap_or_default().to_ascii_lowercase();
    let host = host.strip_suffix('.').unwrap_or(&host);
    let host = if matches!(host, "127.0.0.1" | "[::1]") { "localhost" } else { host };
    // A host that the parser has taken already is taken again.
    let _ = url.set_host(Some(host));
    url.as_str().trim_end_matches('/').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_server_have_one_place() {
        for (base, want) in [
            ("http://h", "http://h"),
            ("http://H.:80/", "http://h"),
            ("http://127.0.0.1:8080", "http://localhost:8080"),
            ("http://[::1]:8080", "http://localhost:8080"),
            ("http://127.0.0.2:8080", "http://127.0.0.2:8080"),
            ("https://h/Base", "https://h/Base"),
        ] {
            assert_eq!(place(base), want, "{base}");
        }
    }

    #[test]
    fn cli_23_addresses_are_normalised() {
        for (text, want) in [
            ("ws://h:8080/ws", "http://h:8080"),
            ("wss://h/ws", "https://h"),
            ("https://h/base/", "https://h/base"),
            ("https://h/base/ws", "https://h/base/ws"),
            ("http://h:1/?q=1#f", "http://h:1"),
            (" HTTP://H:80 ", "http://h"),
            ("http://[::1]:9", "http://[::1]:9"),
            (DEFAULT_SERVER_URL, "http://localhost:8080"),
        ] {
            assert_eq!(normalise(text).as_deref(), Ok(want), "{text}");
        }
    }

    #[test]
    fn cli_23_other_addresses_are_refused() {
        for bad in ["ftp://h", "h:8080", "localhost", "", "http://", "http://u:p@h"] {
            assert!(normalise(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_host_is_compared_without_port_and_case() {
        assert_eq!(host("https://API.multica.ai:443/x").as_deref(), Some("api.multica.ai"));
    }
}
