//! The proxy that the environment names for the server: which variable counts, and whether what it says can be used.
//!
//! What a variable means is for [`Matcher`] to say, which the HTTP client asks as well, so what is judged here is what happens there. By
//! itself the client passes over a variable that it cannot read, and calls the server directly; whoever set it does not want that.

use super::base_url::BaseUrl;
use axum::http::Uri;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use std::ffi::OsString;

const HTTP: [&str; 2] = ["HTTP_PROXY", "http_proxy"];
const HTTPS: [&str; 2] = ["HTTPS_PROXY", "https_proxy"];
const ALL: [&str; 2] = ["ALL_PROXY", "all_proxy"];
const BYPASS: [&str; 2] = ["NO_PROXY", "no_proxy"];
/// Where this is set, the process is a CGI program and `HTTP_PROXY` may be a header of a request: the client uses no proxy.
const CGI: &str = "REQUEST_METHOD";
const SCHEMES: [&str; 6] = ["http", "https", "socks5", "socks5h", "socks4", "socks4a"];

/// A variable about proxies that cannot be used. No value is in it, as there may be a password in that.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProxyError {
    /// The proxy of the server.
    #[error(
        "the proxy in {variable} cannot be used: {problem}; correct or unset it, or add {host} to NO_PROXY to call the server directly"
    )]
    Proxy {
        /// The variable.
        variable: &'static str,
        /// What is wrong with it.
        problem: ProxyProblem,
        /// The server's host.
        host: String,
    },
    /// The list of servers that are called directly.
    #[error("{variable} is not UTF-8 text; correct or unset it")]
    Bypass {
        /// The variable.
        variable: &'static str,
    },
}

/// What is wrong with the address of a proxy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProxyProblem {
    /// It is in another encoding.
    #[error("it is not UTF-8 text")]
    NotText,
    /// It is no address.
    #[error(
        "it is no address such as http://host:port (in a user name or password # is written as %23, / as %2F, ? as %3F, @ as %40)"
    )]
    Unreadable,
    /// It is one of another kind.
    #[error("there is no support for {0:?}, only for {known}", known = SCHEMES.join(", "))]
    Scheme(String),
    /// Nothing is between scheme and port.
    #[error("it names no host")]
    NoHost,
    /// What follows the colon is no port.
    #[error("its port is no number from 1 to 65535")]
    Port,
    /// The port is not said, and there is none that goes without saying.
    #[error("it names no port, and a SOCKS proxy needs one (mostly 1080)")]
    NoPort,
    /// The client looks the server's IPv6 address up like a name, and finds nothing.
    #[error(
        "with socks5:// this machine looks the server up, and an IPv6 address cannot be looked up; write socks5h:// in its place"
    )]
    ResolvesV6,
    /// There is no room for one in a request of SOCKS 4.
    #[error(
        "SOCKS 4 cannot lead to an IPv6 address, which the server's is; use a SOCKS 5 proxy, with socks5h://"
    )]
    NoV6,
    /// The client does not send one.
    #[error(
        "to a SOCKS 4 proxy no user is sent here; leave user and password out, or use a SOCKS 5 proxy, with socks5h://"
    )]
    Socks4User,
}

/// The variable whose proxy calls of this server go through; `None` if it is called directly. `of` gives the value of a variable.
///
/// # Errors
/// The variable that counts cannot be used. The others are not looked at.
pub(super) fn variable_for(
    base: &BaseUrl,
    of: impl Fn(&str) -> Option<OsString>,
) -> Result<Option<&'static str>, ProxyError> {
    // It was a URL already; what is none is nothing that a client would call.
    let Ok(server) = base.as_str().parse::<Uri>() else { return Ok(None) };
    if base.is_loopback() || of(CGI).is_some() {
        return Ok(None);
    }
    // The first of a pair that is set counts, an empty one too: it says that there is none.
    let first = |pair: [&'static str; 2]| pair.into_iter().find_map(|name| Some((name, of(name)?)));
    let own = if base.is_tls() { HTTPS } else { HTTP };
    let named = [own, ALL].into_iter().filter_map(first).find(|(_, value)| !value.is_empty());
    let Some((variable, value)) = named else { return Ok(None) };
    let bypass = match first(BYPASS) {
        None => String::new(),
        Some((variable, value)) => value.into_string().map_err(|_| ProxyError::Bypass { variable })?,
    };
    let any = Matcher::builder().all("http://any".to_owned()).no(bypass).build();
    if any.intercept(&server).is_none() {
        return Ok(None);
    }
    let judged = match value.into_string() {
        Ok(value) => judge(&value, &server),
        Err(_) => Err(ProxyProblem::NotText),
    };
    let host = server.host().unwrap_or_default().to_owned();
    judged.map(|()| Some(variable)).map_err(|problem| ProxyError::Proxy { variable, problem, host })
}

fn judge(value: &str, server: &Uri) -> Result<(), ProxyProblem> {
    let Some(proxy) = Matcher::builder().all(value.to_owned()).build().intercept(server) else {
        let scheme = value.split_once("://").map(|(scheme, _)| scheme).filter(|scheme| is_scheme(scheme));
        return Err(match scheme {
            Some(scheme) if !SCHEMES.contains(&scheme) => ProxyProblem::Scheme(scheme.to_owned()),
            _ => ProxyProblem::Unreadable,
        });
    };
    // A character that ends the authority, in a password, makes a host of the user's name: what is behind the last @ is what was meant.
    let has_login = proxy.basic_auth().is_some() || proxy.raw_auth().is_some();
    if value.matches('@').count() > usize::from(has_login) {
        return Err(ProxyProblem::Unreadable);
    }
    reachable(&proxy)?;
    socks(&proxy, has_login, server)
}

/// Whether a SOCKS proxy can do what is asked of it.
fn socks(proxy: &Intercept, has_login: bool, server: &Uri) -> Result<(), ProxyProblem> {
    let is_v6 = server.host().is_some_and(|host| host.starts_with('['));
    match proxy.uri().scheme_str() {
        Some("socks4" | "socks4a") if has_login => Err(ProxyProblem::Socks4User),
        Some("socks4" | "socks4a") if is_v6 => Err(ProxyProblem::NoV6),
        Some("socks5") if is_v6 => Err(ProxyProblem::ResolvesV6),
        _ => Ok(()),
    }
}

/// Whether there is a host and a port to connect to.
fn reachable(proxy: &Intercept) -> Result<(), ProxyProblem> {
    let uri = proxy.uri();
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    let host = uri.host().unwrap_or_default();
    if host.is_empty() {
        return Err(ProxyProblem::NoHost);
    }
    let port = authority.strip_prefix(host).unwrap_or_default().trim_start_matches(':');
    let is_socks = uri.scheme_str().is_some_and(|scheme| scheme.starts_with("socks"));
    if port.is_empty() {
        return if is_socks { Err(ProxyProblem::NoPort) } else { Ok(()) };
    }
    match port.parse::<u16>() {
        Ok(0) | Err(_) => Err(ProxyProblem::Port),
        Ok(_) => Ok(()),
    }
}

/// Whether it can be the scheme of a URL, and so is no part of a password.
fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::os::unix::ffi::OsStringExt;

    type Found = Result<Option<&'static str>, ProxyError>;

    fn found(base: &str, env: &[(&str, &str)]) -> Found {
        let base = BaseUrl::parse(base).expect("a server");
        variable_for(&base, |name| {
            env.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value))
        })
    }

    fn problem(value: &str) -> Option<ProxyProblem> {
        match found("https://h.test", &[("HTTPS_PROXY", value)]) {
            Err(ProxyError::Proxy { variable: "HTTPS_PROXY", problem, .. }) => Some(problem),
            Err(other) => panic!("{other}"),
            Ok(variable) => {
                assert_eq!(variable, Some("HTTPS_PROXY"), "{value}");
                None
            }
        }
    }

    #[test]
    fn the_variable_that_counts_is_the_one_that_the_client_uses() {
        let (tls, plain) = ("wss://h.test/ws", "http://h.test:8080");
        let p = "http://proxy.test:3128";
        for (base, env, used) in [
            (tls, &[("HTTPS_PROXY", p), ("https_proxy", "%")][..], Some("HTTPS_PROXY")),
            (tls, &[("https_proxy", p), ("ALL_PROXY", "%")], Some("https_proxy")),
            (tls, &[("HTTP_PROXY", "%"), ("all_proxy", p)], Some("all_proxy")),
            (tls, &[("HTTPS_PROXY", ""), ("https_proxy", "%"), ("ALL_PROXY", p)], Some("ALL_PROXY")),
            (plain, &[("HTTP_PROXY", p), ("HTTPS_PROXY", "%")], Some("HTTP_PROXY")),
            (plain, &[("http_proxy", p)], Some("http_proxy")),
            (plain, &[("HTTPS_PROXY", "%")], None),
            (plain, &[("ALL_PROXY", "")], None),
            (plain, &[("HTTP_PROXY", "%"), ("REQUEST_METHOD", "GET")], None),
            ("http://localhost:1", &[("HTTP_PROXY", "%")], None),
            (plain, &[], None),
        ] {
            assert_eq!(found(base, env), Ok(used), "{base} {env:?}");
        }
    }

    #[test]
    fn a_server_that_is_called_directly_needs_no_proxy_that_works() {
        let direct = |base: &str, list: &str| {
            let found = found(base, &[("ALL_PROXY", "ftp://x"), ("no_proxy", list)]);
            assert!(matches!(found, Ok(None) | Err(ProxyError::Proxy { .. })), "{found:?}");
            found.is_ok()
        };
        for list in ["h.test", ".test", "test", "*", "other, H.TEST ,"] {
            assert!(direct("https://h.test", list), "{list}");
        }
        for list in ["", "est", "h.test:443", "*.test", "x.h.test", "h.test other"] {
            assert!(!direct("https://h.test", list), "{list}");
        }
        assert!(direct("http://10.1.2.3", "10.0.0.0/8") && direct("http://[fd00::1]", "fd00::/8"));
        assert!(!direct("http://10.1.2.3", "10.1.2") && !direct("http://h.test", "10.0.0.0/8"));
    }

    #[test]
    fn what_is_wrong_is_told() {
        for good in [
            "http://proxy.test:3128",
            "proxy.test:3128",
            "proxy.test",
            "http://proxy.test/",
            "HTTP://proxy.test",
            "https://me:p%23ss@proxy.test:8443/",
            "http://[fd00::1]:3128",
            "socks5://127.0.0.1:1080",
            "socks5h://me:secret@proxy.test:1080",
            "socks4a://proxy.test:1080",
        ] {
            assert_eq!(problem(good), None, "{good}");
        }
        let scheme = |name: &str| ProxyProblem::Scheme(name.to_owned());
        for (bad, why) in [
            ("ftp://proxy.test:21", scheme("ftp")),
            ("socks://proxy.test:1080", scheme("socks")),
            ("SOCKS5://proxy.test:1080", scheme("SOCKS5")),
            (" http://proxy.test", ProxyProblem::Unreadable),
            ("http://me:hunter2#x@proxy.test:1", ProxyProblem::Unreadable),
            ("http://me:hunter2@x@proxy.test:1", ProxyProblem::Unreadable),
            ("http://me:80#x@proxy.test:1", ProxyProblem::Unreadable),
            ("http://me:80/x@proxy.test:1", ProxyProblem::Unreadable),
            ("http://me:80?x@proxy.test:1", ProxyProblem::Unreadable),
            ("me:hunter2://x@proxy.test", ProxyProblem::Unreadable),
            ("http://proxy test", ProxyProblem::Unreadable),
            ("http://", ProxyProblem::Unreadable),
            ("/proxy", ProxyProblem::Unreadable),
            ("http://proxy.test:99999", ProxyProblem::Port),
            ("http://proxy.test:0", ProxyProblem::Port),
            ("socks5://proxy.test", ProxyProblem::NoPort),
        ] {
            assert_eq!(problem(bad), Some(why), "{bad}");
        }
    }

    #[test]
    fn what_a_socks_proxy_cannot_do_is_told_at_once_with_what_can() {
        let problem = |base: &str, value: &str| match found(base, &[("ALL_PROXY", value)]) {
            Err(ProxyError::Proxy { variable: "ALL_PROXY", problem, .. }) => Some(problem),
            Err(other) => panic!("{other}"),
            Ok(used) => {
                assert_eq!(used, Some("ALL_PROXY"), "{value}");
                None
            }
        };
        let (v6, v4, name) = ("http://[2001:db8::1]:8080", "https://192.0.2.1", "https://h.test");
        for (base, value, why) in [
            (v6, "socks5://proxy.test:1080", Some(ProxyProblem::ResolvesV6)),
            (v6, "socks5h://me:secret@proxy.test:1080", None),
            (v6, "http://proxy.test:1080", None),
            (v6, "socks4://proxy.test:1080", Some(ProxyProblem::NoV6)),
            (v6, "socks4a://proxy.test:1080", Some(ProxyProblem::NoV6)),
            (v4, "socks5://me:secret@proxy.test:1080", None),
            (v4, "socks4://proxy.test:1080", None),
            (v4, "socks4://me@proxy.test:1080", Some(ProxyProblem::Socks4User)),
            (name, "socks4a://me:secret@proxy.test:1080", Some(ProxyProblem::Socks4User)),
            (name, "socks5://proxy.test:1080", None),
        ] {
            assert_eq!(problem(base, value), why, "{base} by {value}");
        }
        for (base, value) in [(v6, "socks5://p:1"), (v6, "socks4://p:1"), (v4, "socks4://hunter2@p:1")] {
            let text = found(base, &[("ALL_PROXY", value)]).expect_err("refused").to_string();
            assert!(
                text.contains("ALL_PROXY") && text.contains("socks5h://") && !text.contains("hunter2"),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_no_text_is_not_passed_over() {
        let base = BaseUrl::parse("http://h.test").expect("a server");
        let of = |broken: &'static str| {
            move |name: &str| match name {
                name if name == broken => Some(OsString::from_vec(b"h\xff".to_vec())),
                "http_proxy" => Some("http://proxy.test".into()),
                _ => None,
            }
        };
        let error = variable_for(&base, of("HTTP_PROXY")).expect_err("no text").to_string();
        assert!(error.starts_with("the proxy in HTTP_PROXY cannot be used: it is not UTF-8"), "{error}");
        let error = variable_for(&base, of("NO_PROXY")).expect_err("no text").to_string();
        assert!(error.starts_with("NO_PROXY is not UTF-8 text"), "{error}");
    }

    #[test]
    fn an_error_says_which_variable_what_and_what_to_do() {
        let text = found("https://h.test", &[("ALL_PROXY", "ftp://me:hunter2@p:1")])
            .expect_err("refused")
            .to_string();
        for words in ["ALL_PROXY", "\"ftp\"", "socks5h", "unset it", "add h.test to NO_PROXY"] {
            assert!(text.contains(words), "{text}");
        }
    }

    proptest! {
        /// Whatever is wrong, and wherever a password stands, it is not repeated.
        #[test]
        fn no_error_repeats_a_password(
            before in "(http|https|socks5|ftp|x y)?(://)?[a-z#@:/ %]{0,6}",
            after in "[a-z#@:/ %0-9]{0,9}",
        ) {
            let value = format!("{before}:hunter2{after}");
            if let Err(error) = found("https://h.test", &[("HTTPS_PROXY", &value)]) {
                prop_assert!(!error.to_string().contains("hunter2"), "{}", error);
                prop_assert!(!format!("{error:?}").contains("hunter2"), "{:?}", error);
            }
        }

        /// What is let through is what the client takes.
        #[test]
        fn what_is_let_through_is_a_proxy_for_the_client(value in "(http://|socks5://|)[a-z@:%.]{0,8}(:[0-9]{0,6})?/?") {
            let server = Uri::from_static("https://h.test");
            if found("https://h.test", &[("HTTPS_PROXY", &value)]) == Ok(Some("HTTPS_PROXY")) {
                let proxy = Matcher::builder().all(value).build().intercept(&server).expect("a proxy");
                prop_assert!(proxy.uri().host().is_some_and(|host| !host.is_empty()));
            }
        }
    }
}
