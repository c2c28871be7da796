//! Answers and error envelopes.

use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use longshore_core::plane::Refusal;
use serde_json::{Value, json};

/// What the server answers where it has no route; daemons tell it from a missing row by this text.
pub(super) const NO_ROUTE: &str = "404 page not found\n";

/// A refused request.
#[derive(Clone, Debug)]
pub(super) struct Refused {
    pub(super) status: u16,
    pub(super) text: String,
}

impl Refused {
    pub(super) fn new(status: u16, text: impl Into<String>) -> Self {
        Self { status, text: text.into() }
    }

    pub(super) fn envelope(&self) -> Value {
        json!({ "error": self.text })
    }
}

impl From<Refusal> for Refused {
    fn from(why: Refusal) -> Self {
        Self::new(why.status(), why.to_string())
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        json(self.status, &self.envelope())
    }
}

/// A handler's result: the body of a 200, or the refusal.
pub(super) type Answered = Result<Value, Refused>;

/// A JSON answer, closed by a newline as the real server's are.
pub(super) fn json(status: u16, body: &Value) -> Response {
    raw(status, "application/json", format!("{body}\n").into_bytes())
}

/// The answer of a handler.
pub(super) fn answer(result: Answered) -> Response {
    result.map_or_else(IntoResponse::into_response, |body| json(200, &body))
}

/// The answer where there is no route.
pub(super) fn no_route() -> Response {
    raw(404, "text/plain; charset=utf-8", NO_ROUTE.into())
}

/// An answer with these very bytes.
pub(super) fn raw(status: u16, content_type: &str, body: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if let Ok(value) = content_type.parse() {
        response.headers_mut().insert(header::CONTENT_TYPE, value);
    }
    response
}
