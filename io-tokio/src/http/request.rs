//! One request, and its reply.

use crate::wire::json;
use crate::wire::routes::{Method, Route};
use bytes::Bytes;
use serde::Serialize;
use std::fmt;

use super::error::CallError;

/// A request that is ready to be sent. It prints without its body.
#[derive(Clone)]
pub struct Request {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) body: Option<Bytes>,
    pub(super) etag: Option<String>,
    /// Most bytes of a good answer.
    pub(super) most: usize,
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.body.as_ref().map_or(0, Bytes::len);
        write!(f, "{} {} ({bytes} bytes)", self.method.as_str(), self.path)
    }
}

impl Request {
    /// A request to `route` with `ids` in its path. A `POST` says `{}`.
    ///
    /// # Errors
    /// [`CallError::NotSent`] if an id cannot be part of a path.
    pub fn new(route: Route, ids: &[&str]) -> Result<Self, CallError> {
        let path = route.path(ids).map_err(|unusable| CallError::NotSent { why: unusable.to_string() })?;
        let body = match route.method {
            Method::Get => None,
            Method::Post => Some(Bytes::from_static(b"{}")),
        };
        Ok(Self { method: route.method, path, body, etag: None, most: route.most })
    }

    /// Says `value` instead.
    ///
    /// # Errors
    /// [`CallError::NotSent`] if `value` cannot be JSON.
    pub fn body<T: Serialize + ?Sized>(mut self, value: &T) -> Result<Self, CallError> {
        let bytes = json::encode(value).map_err(|error| CallError::NotSent {
            why: format!("the request cannot be written as JSON: {error}"),
        })?;
        self.body = Some(bytes);
        Ok(self)
    }

    /// Asks only for what is newer than `etag`; the reply's status may then be 304.
    #[must_use]
    pub fn unless(mut self, etag: Option<&str>) -> Self {
        self.etag = etag.map(str::to_owned);
        self
    }

    /// Adds `query`, which is already encoded and starts with `?`.
    #[must_use]
    pub(crate) fn query(mut self, query: &str) -> Self {
        self.path.push_str(query);
        self
    }
}

/// A reply with a status that means success. It prints without its text, which may hold credentials.
#[derive(Clone)]
pub struct Reply {
    /// From 200 to 299, or 304 if that was asked for.
    pub status: u16,
    /// Which state of the resource it is, to ask for something newer later.
    pub etag: Option<String>,
    /// The whole body, with what is no UTF-8 replaced.
    pub text: String,
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} bytes)", self.status, self.text.len())
    }
}
