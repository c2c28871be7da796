//! From an HTTP request to a link.

use super::link::{Deadlines, Link};
use crate::http::{self, CallError, Client, Limit};
use crate::wire::routes::{LINK, Method, link_query};
use longshore_core::id::RuntimeId;
use reqwest::StatusCode;
use reqwest::header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE};
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

/// Most bytes of the handshake's path and query: what HTTP libraries take. At 36 characters an id it is room for some
/// 1 500 runtimes.
pub const MAX_TARGET: usize = 60_000;

/// Dials the control link for `runtimes`, all of which the server must know: it refuses the whole link for one that
/// it does not. Without any, the link only says when memberships change.
///
/// # Errors
/// See [`CallError`]: `Rejected` says what the server said, [`CallError::Undecodable`] that something answered which
/// does not speak WebSocket.
pub async fn connect(
    client: &Client,
    runtimes: &[RuntimeId],
    handshake: impl Into<Limit>,
) -> Result<Link, CallError> {
    let limit = handshake.into();
    let ids: Vec<&str> = runtimes.iter().map(RuntimeId::as_str).collect();
    let target = format!("{}{}", LINK.template, link_query(&ids));
    if target.len() > MAX_TARGET {
        let why = format!("{} runtimes are too many for one control link; polling goes on", ids.len());
        return Err(CallError::NotSent { why });
    }
    let key = generate_key();
    let token = client.credential().number();
    let request = client
        .builder(Method::Get, &target)
        .header(CONNECTION, "Upgrade")
        .header(UPGRADE, "websocket")
        .header(SEC_WEBSOCKET_VERSION, "13")
        .header(SEC_WEBSOCKET_KEY, &key);

    let expired = limit.expired();
    tokio::pin!(expired);
    let sent = http::send(request, None, expired.as_mut()).await;
    let mut response = sent.map_err(|error| client.with_way(error))?;
    let status = response.status();
    client.credential().heard(token, status.as_u16(), response.headers());
    if status.is_success() {
        return Err(CallError::Undecodable { status: status.as_u16(), why: NO_WEBSOCKET.to_owned() });
    }
    if status != StatusCode::SWITCHING_PROTOCOLS {
        return Err(http::refusal(&mut response, expired).await);
    }
    if response
        .headers()
        .get(SEC_WEBSOCKET_ACCEPT)
        .is_none_or(|accept| accept.as_bytes() != derive_accept_key(key.as_bytes()).as_bytes())
    {
        return Err(CallError::Undecodable { status: 101, why: NO_WEBSOCKET.to_owned() });
    }
    let stream = tokio::select! {
        stream = response.upgrade() => stream.map_err(|error| CallError::Unknown { why: error.to_string() })?,
        why = expired => return Err(CallError::Unknown { why }),
    };
    Ok(Link::start(stream, ids.len(), Deadlines::default()).await)
}

const NO_WEBSOCKET: &str = "it does not speak WebSocket: check whether a proxy on the way passes upgrades on";
