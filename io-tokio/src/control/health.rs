//! What answers at a daemon's port.

use super::error::ControlError;
use crate::config::Profile;
use crate::health::of_listener;
use serde_json::{Map, Value};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

/// How long an answer is waited for: a daemon answers at once, whatever it is doing.
const ANSWER: Duration = Duration::from_secs(2);
/// How long one may take that is as long as a recording.
const LONG_ANSWER: Duration = Duration::from_mins(10);
/// Longer answers are none of a daemon.
const MAX_ANSWER: usize = 1 << 20;

/// What was seen at a port.
#[derive(Debug)]
pub enum Seen {
    /// Nobody listens.
    Nobody,
    /// A daemon.
    Daemon(Health),
    /// Something that does not answer as a daemon does.
    Stranger(String),
    /// Something that does not answer.
    Silent(String),
}

/// What a daemon says of itself. It may be of another version, or another program that speaks the same protocol.
#[derive(Clone, Debug)]
pub struct Health(Map<String, Value>);

/// Whose daemon it says it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatedProfile {
    /// It says nothing, as old ones do.
    Unsaid,
    /// The profile of this name; the default one has an empty name.
    Named(String),
    /// Something that is no name.
    Unreadable,
}

impl StatedProfile {
    /// Whether this can be a daemon of `profile`.
    pub fn fits(&self, profile: &Profile) -> bool {
        match self {
            Self::Unsaid => true,
            Self::Named(name) => name == profile.name(),
            Self::Unreadable => false,
        }
    }

    /// For people.
    pub fn describe(&self) -> String {
        match self {
            Self::Unsaid => "an unnamed profile".to_owned(),
            Self::Named(name) if name.is_empty() => "the default profile".to_owned(),
            Self::Named(name) => format!("profile {name:?}"),
            Self::Unreadable => "a profile whose name cannot be read".to_owned(),
        }
    }
}

impl Health {
    fn read(bytes: &[u8]) -> Option<Self> {
        let Ok(Value::Object(all)) = serde_json::from_slice(bytes) else { return None };
        let alive = matches!(all.get("status").and_then(Value::as_str), Some("starting" | "running"));
        alive.then_some(Self(all))
    }

    /// All of it.
    pub fn fields(&self) -> &Map<String, Value> {
        &self.0
    }

    /// A text; empty if there is none.
    pub fn text(&self, name: &str) -> &str {
        self.0.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// A number, if there is one.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.0.get(name).and_then(Value::as_u64)
    }

    /// Its process id; zero is none.
    pub fn pid(&self) -> Option<i32> {
        self.number("pid").and_then(|pid| i32::try_from(pid).ok()).filter(|pid| *pid > 0)
    }

    /// Whether it is one of this program, which says where it is in its life.
    pub fn is_longshore(&self) -> bool {
        !self.text("state").is_empty()
    }

    /// Where it is in its life: `starting`, `running`, `draining` or `stopping`.
    pub fn state(&self) -> &str {
        if self.is_longshore() { self.text("state") } else { self.text("status") }
    }

    /// Tasks that it is not done with.
    pub fn active_tasks(&self) -> u64 {
        self.number("active_task_count").unwrap_or(0)
    }

    /// Whether it says that it has an agent program of this machine.
    pub fn has_agents(&self) -> bool {
        self.0.get("agents").and_then(Value::as_array).is_some_and(|agents| !agents.is_empty())
    }

    /// Whose daemon it says it is.
    pub fn profile(&self) -> StatedProfile {
        match self.0.get("profile") {
            None => StatedProfile::Unsaid,
            Some(Value::String(name)) => StatedProfile::Named(name.clone()),
            Some(_) => StatedProfile::Unreadable,
        }
    }
}

/// A client for one port of this machine. No proxy is ever between.
#[derive(Clone, Debug)]
pub(super) struct Local {
    http: reqwest::Client,
    port: u16,
}

/// Why there is no answer.
pub(super) enum Unanswered {
    /// Nobody listens.
    Nobody,
    /// It broke off, or took too long.
    Silent(String),
}

impl Local {
    pub(super) fn new(port: u16) -> Result<Self, ControlError> {
        // An error means that the process has one already.
        drop(rustls::crypto::ring::default_provider().install_default());
        let builder = reqwest::Client::builder()
            .user_agent(concat!("longshore/", env!("CARGO_PKG_VERSION")))
            .http1_only()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .pool_max_idle_per_host(0)
            .timeout(ANSWER)
            // Nothing here is encrypted.
            .tls_certs_only([]);
        let http = builder.build().map_err(|error| ControlError::Http(error.to_string()))?;
        Ok(Self { http, port })
    }

    pub(super) async fn health(&self) -> Seen {
        match self.exchange(reqwest::Method::GET, "/health").await {
            Ok((_, body)) => Health::read(&body)
                .map_or_else(|| Seen::Stranger("its answer is none of a daemon".to_owned()), Seen::Daemon),
            Err(Unanswered::Nobody) => Seen::Nobody,
            Err(Unanswered::Silent(why)) => Seen::Silent(why),
        }
    }

    /// Posts without a body: the status and the answer.
    pub(super) async fn post(&self, path: &str) -> Result<(u16, String), Unanswered> {
        let (status, body) = self.exchange(reqwest::Method::POST, path).await?;
        Ok((status, String::from_utf8_lossy(&body).trim().to_owned()))
    }

    /// Begins to read an answer that may be long.
    pub(super) async fn open(&self, path: &str) -> Result<reqwest::Response, Unanswered> {
        let address = format!("http://127.0.0.1:{}{path}", self.port);
        let request = self.http.get(address).timeout(LONG_ANSWER);
        request.send().await.map_err(|error| unanswered(&error))
    }

    async fn exchange(&self, method: reqwest::Method, path: &str) -> Result<(u16, Vec<u8>), Unanswered> {
        let address = format!("http://127.0.0.1:{}{path}", self.port);
        let request = self.http.request(method, address).header(reqwest::header::CONTENT_LENGTH, 0);
        let mut response = request.send().await.map_err(|error| unanswered(&error))?;
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(|error| unanswered(&error))? {
            body.extend_from_slice(&piece);
            if body.len() > MAX_ANSWER {
                return Err(Unanswered::Silent("its answer does not end".to_owned()));
            }
        }
        Ok((response.status().as_u16(), body))
    }
}

fn unanswered(error: &reqwest::Error) -> Unanswered {
    if error.is_timeout() {
        return Unanswered::Silent(format!("no answer within {} s", ANSWER.as_secs()));
    }
    if error.is_connect() {
        return Unanswered::Nobody;
    }
    Unanswered::Silent("it answers with something other than HTTP".to_owned())
}

/// The user who has a port, if that is another one, as far as the system tells.
pub(super) fn other_user(port: u16) -> Option<u32> {
    let owner = of_listener(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port));
    other_than(owner, rustix::process::geteuid().as_raw())
}

fn other_than(owner: Option<u32>, me: u32) -> Option<u32> {
    owner.filter(|owner| *owner != me)
}

/// Looks at a port.
///
/// # Errors
/// HTTP cannot be set up.
pub async fn probe(port: u16) -> Result<Seen, ControlError> {
    Ok(Local::new(port)?.health().await)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn health(text: &str) -> Option<Health> {
        Health::read(text.as_bytes())
    }

    #[test]
    fn only_what_says_that_it_runs_is_a_daemon() {
        for other in ["", "ok", "[]", "{}", r#"{"status":"stopped"}"#, r#"{"status":1}"#] {
            assert!(health(other).is_none(), "{other}");
        }
        let go = health(r#"{"status":"running","pid":7,"profile":"dev"}"#).expect("a daemon");
        assert_eq!((go.pid(), go.state(), go.is_longshore()), (Some(7), "running", false));
        let ours = health(r#"{"status":"running","pid":0,"state":"draining"}"#).expect("a daemon");
        assert_eq!((ours.pid(), ours.state(), ours.is_longshore()), (None, "draining", true));
    }

    #[test]
    fn a_daemon_of_another_user_is_told_apart() {
        assert_eq!([Some(7), Some(8), None].map(|owner| other_than(owner, 7)), [None, Some(8), None]);
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        assert_eq!(other_user(listener.local_addr().expect("bound").port()), None, "it is ours");
    }

    #[test]
    fn cli_70_a_daemon_of_another_profile_is_told_apart() {
        let (dev, default) = (Profile::new("dev").expect("a name"), Profile::default());
        let stated = |text: &str| health(&format!(r#"{{"status":"running"{text}}}"#)).expect("one").profile();
        assert!(stated("").fits(&dev) && stated("").fits(&default));
        assert!(stated(r#","profile":"dev""#).fits(&dev) && !stated(r#","profile":"dev""#).fits(&default));
        assert!(stated(r#","profile":"""#).fits(&default) && !stated(r#","profile":"""#).fits(&dev));
        assert!(!stated(r#","profile":7"#).fits(&default));
    }
}
