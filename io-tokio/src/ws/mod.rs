//! The control link: a WebSocket over which the server gives hints and takes heartbeats and claims.
//!
//! It is dialled through the HTTP client, so that it goes the same way as every other request: same TLS, same proxies,
//! same headers. Everything it does can also be done by polling.

mod dial;
mod inbound;
mod link;
mod outbound;

#[cfg(test)]
mod links;

pub use dial::{MAX_TARGET, connect};
pub use inbound::{MAX_QUEUED_BYTES, MAX_QUEUED_HINTS};
pub use link::{DownReason, Link, LinkEvent, MAX_MESSAGE, READ_DEADLINE, WRITE_DEADLINE};
pub use outbound::{FrameTicket, LinkSender, MAX_FRAME, Recall, SendError};
