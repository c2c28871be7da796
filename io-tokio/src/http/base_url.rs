//! Where the server is.

use std::fmt;
use url::{Host, Url};

/// The server's address, normalised: `http` or `https`, no query, no fragment, no slash at the end. A path is a
/// prefix of every route.
#[derive(Clone, PartialEq, Eq)]
pub struct BaseUrl {
    text: String,
    loopback: bool,
}

/// Why an address cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BaseUrlError {
    /// It is no URL.
    #[error("the server URL is not a URL ({0}): write it as https://host or http://host:port")]
    NoUrl(String),
    /// It is something else than HTTP.
    #[error("the server URL starts with `{0}:`; it must start with http:, https:, ws: or wss:")]
    Scheme(String),
    /// It holds a name or password.
    #[error(
        "the server URL holds a user name or password; take them out, the token is configured on its own"
    )]
    Credentials,
}

impl BaseUrl {
    /// Normalises `configured`: `ws` becomes `http` and `wss` becomes `https`; a path that is just `/ws` is dropped.
    pub fn parse(configured: &str) -> Result<Self, BaseUrlError> {
        let configured = configured.trim();
        let mut url = Url::parse(configured).map_err(|error| BaseUrlError::NoUrl(error.to_string()))?;
        let scheme = match url.scheme() {
            "http" | "ws" => "http",
            "https" | "wss" => "https",
            other => return Err(BaseUrlError::Scheme(other.to_owned())),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(BaseUrlError::Credentials);
        }
        let loopback = match url.host() {
            Some(Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            None => return Err(BaseUrlError::NoUrl("no host".to_owned())),
        };
        if url.set_scheme(scheme).is_err() {
            return Err(BaseUrlError::Scheme(url.scheme().to_owned()));
        }
        url.set_query(None);
        url.set_fragment(None);
        if url.path() == "/ws" {
            url.set_path("");
        }
        Ok(Self { text: url.as_str().trim_end_matches('/').to_owned(), loopback })
    }

    /// The address, without a slash at the end.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it is on this machine. Such a server is never called through a proxy.
    pub const fn is_loopback(&self) -> bool {
        self.loopback
    }

    pub(crate) fn is_tls(&self) -> bool {
        self.text.starts_with("https:")
    }
}

impl fmt::Debug for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_normalised() {
        for (configured, normal) in [
            ("https://multica.test", "https://multica.test"),
            (" https://multica.test/ ", "https://multica.test"),
            ("ws://h:8080/ws", "http://h:8080"),
            ("wss://h/ws?x=1#y", "https://h"),
            ("https://h/prefix//", "https://h/prefix"),
            ("wss://h/prefix/ws", "https://h/prefix/ws"),
            ("http://[::1]:9/", "http://[::1]:9"),
            ("HTTP://H", "http://h"),
        ] {
            assert_eq!(BaseUrl::parse(configured).expect(configured).as_str(), normal);
        }
    }

    #[test]
    fn what_is_no_server_is_refused_without_quoting_a_password() {
        assert!(matches!(BaseUrl::parse("ftp://h"), Err(BaseUrlError::Scheme(_))));
        assert!(matches!(BaseUrl::parse("localhost:8080"), Err(BaseUrlError::Scheme(_))));
        assert!(matches!(BaseUrl::parse("h"), Err(BaseUrlError::NoUrl(_))));
        assert!(matches!(BaseUrl::parse("http://"), Err(BaseUrlError::NoUrl(_))));
        let error = BaseUrl::parse("https://me:hunter2@h").expect_err("credentials");
        assert!(!error.to_string().contains("hunter2"));
    }

    #[test]
    fn this_machine_is_known_by_its_names() {
        for (text, loopback) in [
            ("http://localhost:1", true),
            ("http://127.1.2.3", true),
            ("http://[::1]", true),
            ("http://h", false),
        ] {
            assert_eq!(BaseUrl::parse(text).expect(text).is_loopback(), loopback, "{text}");
        }
    }
}
