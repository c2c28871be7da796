//! HTTP to the control plane.
//!
//! [`Client::call`] makes one request within a deadline and says how it ended: with a reply, or with a [`CallError`]
//! that tells what is known about the request's fate. It never repeats a request; when to try again is decided
//! elsewhere. [`endpoints`] has a typed method for each route.

mod base_url;
mod body;
mod client;
mod credential;
pub mod endpoints;
mod error;
mod limit;
mod proxy;
mod read;
mod request;
mod retry_after;
mod skew;

#[cfg(test)]
mod calls;
#[cfg(test)]
mod cut_short;
#[cfg(test)]
mod proxied;
#[cfg(test)]
pub(crate) mod test_server;

pub use base_url::{BaseUrl, BaseUrlError};
pub use client::{Client, ClientConfig, ClientError};
pub(crate) use client::{refusal, send};
pub use credential::{Credential, Replaced};
pub use error::{CallError, RejectKind, Rejection};
pub use limit::Limit;
pub use proxy::{ProxyError, ProxyProblem};
pub use read::MAX_ERROR_BODY;
pub use request::{Reply, Request};
pub use retry_after::{MAX_RETRY_AFTER, MIN_RETRY_AFTER};
