//! The client itself.

use super::base_url::{BaseUrl, BaseUrlError};
use super::body::{Handover, TrackedBody};
use super::credential::Credential;
use super::error::CallError;
use super::limit::Limit;
use super::proxy::{self, ProxyError};
use super::read::{self, ReadError};
use super::request::{Reply, Request};
use crate::secret::Secret;
use crate::wire::routes::Method;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, ETAG, HeaderMap, HeaderName, HeaderValue, IF_NONE_MATCH};
use std::error::Error as _;
use std::fmt;
use std::sync::{Once, PoisonError, RwLock};
use std::time::Duration;

/// For how long an unused connection is kept. Shorter than proxies keep theirs, so that a request rarely meets a
/// connection that is just being closed.
const POOL_IDLE: Duration = Duration::from_secs(50);
/// Unused connections that are kept.
const POOL_SIZE: usize = 32;
/// Until a connection that nothing moves on is probed.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// What a client needs to know.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// Where the server is.
    pub base_url: String,
    /// The daemon's token.
    pub token: Secret,
    /// Sent as `X-Client-Version`.
    pub version: String,
    /// Sent as `X-Client-Capabilities`. It shapes claims, so it must be the same everywhere.
    pub capabilities: Vec<String>,
    /// Sent as `X-Client-OS`, such as [`std::env::consts::OS`].
    pub os: String,
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The address cannot be used.
    #[error(transparent)]
    BaseUrl(#[from] BaseUrlError),
    /// A value cannot be sent.
    #[error("the {0} cannot be sent in a header: it is empty, or holds something other than visible ASCII")]
    Header(&'static str),
    /// A variable names a proxy for the server that cannot be used.
    #[error(transparent)]
    Proxy(#[from] ProxyError),
    /// TLS is not set up.
    #[error("HTTP cannot be set up: {0}; check the CA certificates")]
    Setup(String),
}

/// A client of one server. Each call stands alone; any number may run at once.
pub struct Client {
    base: BaseUrl,
    headers: HeaderMap,
    credential: Credential,
    /// The variable that names the proxy on the way, if there is one.
    proxy: Option<&'static str>,
    /// It can change while calls are running.
    http: RwLock<reqwest::Client>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("base", &self.base).finish_non_exhaustive()
    }
}

impl Client {
    /// Sets a client up; nothing is sent yet. Proxies are those of the usual environment variables.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn new(config: &ClientConfig) -> Result<Self, ClientError> {
        let base = BaseUrl::parse(&config.base_url)?;
        let proxy = proxy::variable_for(&base, |name| std::env::var_os(name))?;
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("x-client-platform", "daemon"),
            ("x-client-version", &config.version),
            ("x-client-os", &config.os),
            ("x-client-capabilities", &config.capabilities.join(",")),
        ] {
            let value = HeaderValue::from_str(value).map_err(|_| ClientError::Header(name))?;
            headers.insert(HeaderName::from_static(name), value);
        }
        let http = RwLock::new(build(&base)?);
        Ok(Self { base, headers, credential: Credential::new(&config.token)?, proxy, http })
    }

    /// Where the server is.
    pub fn base_url(&self) -> &BaseUrl {
        &self.base
    }

    /// The token in use.
    pub fn credential(&self) -> &Credential {
        &self.credential
    }

    /// Forgets all connections that are not in use, and reads certificates and proxy settings anew. Calls that are
    /// running are not touched.
    ///
    /// # Errors
    /// If HTTP cannot be set up any more; the old connections stay.
    pub fn drop_idle(&self) -> Result<(), ClientError> {
        let http = build(&self.base)?;
        *self.http.write().unwrap_or_else(PoisonError::into_inner) = http;
        Ok(())
    }

    /// Makes one request, and reads the whole reply, within `limit`.
    ///
    /// # Errors
    /// See [`CallError`]. A request that was not sent when the limit is reached never will be.
    pub async fn call(&self, request: Request, limit: impl Into<Limit>) -> Result<Reply, CallError> {
        let limit = limit.into();
        let token = self.credential.number();
        let mut builder = self.builder(request.method, &request.path);
        let conditional = request.etag.is_some();
        if let Some(etag) = request.etag {
            builder = builder.header(IF_NONE_MATCH, etag);
        }
        let mut handover = None;
        if let Some(bytes) = request.body {
            let (body, flag) = TrackedBody::new(bytes);
            builder = builder.header(CONTENT_TYPE, "application/json").body(reqwest::Body::wrap(body));
            handover = Some(flag);
        }
        // One limit for the whole call: what is left after the head is what the body may take.
        let expired = limit.expired();
        tokio::pin!(expired);
        let sent = send(builder, handover, expired.as_mut()).await;
        let mut response = sent.map_err(|error| self.with_way(error))?;

        let status = response.status().as_u16();
        self.credential.heard(token, status, response.headers());
        if !(response.status().is_success() || conditional && status == 304) {
            return Err(refusal(&mut response, expired).await);
        }
        let etag = response.headers().get(ETAG).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let text = tokio::select! {
            text = read::whole(&mut response, request.most) => text,
            why = expired => return Err(CallError::Unknown { why: format!("{why}; the server answered {status}, but not all of it came") }),
        };
        match text {
            Ok(text) => Ok(Reply { status, etag, text }),
            Err(ReadError::TooLarge) => Err(CallError::Undecodable {
                status,
                why: format!("the answer is larger than {} MiB", request.most >> 20),
            }),
            Err(ReadError::Broken(error)) => Err(self.with_way(CallError::Unknown {
                why: format!("the answer ({status}) broke off: {}", causes(&error)),
            })),
        }
    }

    /// Names the proxy on the way of a request that got no answer: what is at fault may be that.
    pub(crate) fn with_way(&self, error: CallError) -> CallError {
        let Some(variable) = self.proxy else { return error };
        let by_way = |why: String| format!("{why} (by way of the proxy in {variable})");
        match error {
            CallError::NotSent { why } => CallError::NotSent { why: by_way(why) },
            CallError::Unknown { why } => CallError::Unknown { why: by_way(why) },
            answered => answered,
        }
    }

    /// A request with the headers that all requests have.
    pub(crate) fn builder(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let http = self.http.read().unwrap_or_else(PoisonError::into_inner).clone();
        let method = match method {
            Method::Get => reqwest::Method::GET,
            Method::Post => reqwest::Method::POST,
        };
        http.request(method, format!("{}{path}", self.base.as_str()))
            .headers(self.headers.clone())
            .header(AUTHORIZATION, self.credential.header())
    }
}

/// Sends a request and waits for the head of its reply until `expired` ends, which says why. `handover` is that of
/// its body; without one, only a connection that never came about counts as not sent.
pub(crate) async fn send(
    builder: reqwest::RequestBuilder,
    handover: Option<Handover>,
    expired: impl Future<Output = String>,
) -> Result<reqwest::Response, CallError> {
    let result = tokio::select! {
        result = builder.send() => result.map_err(|error| (causes(&error), error.is_connect() || error.is_builder())),
        why = expired => Err((why, false)),
    };
    result.map_err(|(why, never_connected)| {
        let not_sent = handover.as_ref().map_or(never_connected, Handover::revoke);
        if not_sent { CallError::NotSent { why } } else { CallError::Unknown { why } }
    })
}

/// Reads a reply that is no success, as far as it comes before `expired` ends.
pub(crate) async fn refusal(
    response: &mut reqwest::Response,
    expired: impl Future<Output = String>,
) -> CallError {
    let mut head = Vec::new();
    tokio::select! {
        () = read::head(response, &mut head) => {}
        _ = expired => {}
    }
    CallError::from_reply(response.status().as_u16(), response.headers(), read::text(head))
}

/// An error with what caused it, without the URL.
fn causes(error: &reqwest::Error) -> String {
    let mut text = String::new();
    let mut next = error.source();
    while let Some(cause) = next {
        let words = cause.to_string();
        // Wrappers often repeat the words of what they wrap.
        if !text.contains(&words) {
            if !text.is_empty() {
                text.push_str(": ");
            }
            text.push_str(&words);
        }
        next = cause.source();
    }
    if text.is_empty() { "the request failed".to_owned() } else { text }
}

fn build(base: &BaseUrl) -> Result<reqwest::Client, ClientError> {
    static CRYPTO: Once = Once::new();
    // An error means that the process has one already.
    CRYPTO.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));

    let builder = || {
        let builder = reqwest::Client::builder()
            .user_agent(concat!("longshore/", env!("CARGO_PKG_VERSION")))
            .http1_only()
            .redirect(reqwest::redirect::Policy::none())
            // A request is sent once: whether to send it again is not for this layer to say.
            .retry(reqwest::retry::never())
            .pool_idle_timeout(POOL_IDLE)
            .pool_max_idle_per_host(POOL_SIZE)
            .tcp_keepalive(KEEPALIVE);
        if base.is_loopback() { builder.no_proxy() } else { builder }
    };
    let built = builder().build().or_else(|error| {
        // A machine without CA certificates can still speak plain HTTP.
        if base.is_tls() { Err(error) } else { builder().tls_certs_only([]).build() }
    });
    built.map_err(|error| ClientError::Setup(causes(&error)))
}
