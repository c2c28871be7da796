//! A request body that knows whether it was handed over.

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};

const WAITING: u8 = 0;
const HANDED_OVER: u8 = 1;
const REVOKED: u8 = 2;

/// Whether a body was handed over to the connection. The connection asks for the body before it writes the first
/// byte of the request's head, so "not handed over" means that nothing left this machine.
#[derive(Clone, Debug, Default)]
pub(crate) struct Handover(Arc<AtomicU8>);

impl Handover {
    /// Ends the matter: whether the body was *not* handed over. If so, it never will be.
    pub(super) fn revoke(&self) -> bool {
        self.0
            .compare_exchange(WAITING, REVOKED, Ordering::AcqRel, Ordering::Acquire)
            .map_or_else(|was| was == REVOKED, |_| true)
    }

    fn take(&self) -> bool {
        self.0.compare_exchange(WAITING, HANDED_OVER, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

/// A whole body in one piece.
pub(super) struct TrackedBody {
    bytes: Option<Bytes>,
    handover: Handover,
}

/// The request was given up before its body was asked for.
#[derive(Debug, thiserror::Error)]
#[error("the request was given up before it was sent")]
pub(super) struct Revoked;

impl TrackedBody {
    /// `bytes` must not be empty: an empty body is never asked for.
    pub(super) fn new(bytes: Bytes) -> (Self, Handover) {
        debug_assert!(!bytes.is_empty());
        let handover = Handover::default();
        (Self { bytes: Some(bytes), handover: handover.clone() }, handover)
    }
}

impl http_body::Body for TrackedBody {
    type Data = Bytes;
    type Error = Revoked;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Revoked>>> {
        let Some(bytes) = self.bytes.take() else { return Poll::Ready(None) };
        let given = if self.handover.take() { Ok(Frame::data(bytes)) } else { Err(Revoked) };
        Poll::Ready(Some(given))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body::Body;

    fn poll(body: &mut TrackedBody) -> Poll<Option<Result<Frame<Bytes>, Revoked>>> {
        Pin::new(body).poll_frame(&mut Context::from_waker(std::task::Waker::noop()))
    }

    #[test]
    fn a_body_is_either_handed_over_or_revoked() {
        let (mut body, handover) = TrackedBody::new(Bytes::from_static(b"{}"));
        assert_eq!(body.size_hint().exact(), Some(2));
        assert!(matches!(poll(&mut body), Poll::Ready(Some(Ok(_)))));
        assert!(body.is_end_stream());
        assert!(!handover.revoke());

        let (mut body, handover) = TrackedBody::new(Bytes::from_static(b"{}"));
        assert!(handover.revoke());
        assert!(handover.revoke());
        assert!(matches!(poll(&mut body), Poll::Ready(Some(Err(Revoked)))));
    }
}
