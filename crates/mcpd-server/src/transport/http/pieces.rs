//! Response body in at most three pieces, complete from the start, so that a large shared result is
//! sent without a copy.

use std::convert::Infallible;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use mcpd_protocol::jsonrpc::{self, RequestId};

use crate::limits::memory_budget;

/// Size from which a result is sent without a copy, in bytes. It may be the list of a thousand
/// tools, which all clients share.
const MIN_UNCOPIED: usize = 16 * 1024;

/// Body in at most three pieces, some of them empty.
#[derive(Debug)]
pub(super) struct Pieces([Bytes; 3]);

impl Pieces {
    /// Builds the response with this result, which is not copied if it is large.
    pub(super) fn response(id: &RequestId, result: Bytes) -> Self {
        if result.len() < MIN_UNCOPIED {
            return Bytes::from(jsonrpc::response_raw(id, &result)).into();
        }
        let (before, after) = jsonrpc::response_around(id);
        Self([before.into(), result, Bytes::from_static(after)])
    }

    /// Joins the pieces on one line, as an event stream requires.
    pub(super) fn join(self) -> Bytes {
        match self.0 {
            [whole, rest, _] if rest.is_empty() => whole,
            pieces => {
                let mut whole = pieces.concat();
                jsonrpc::one_line(&mut whole);
                memory_budget::inherit_guards(pieces, whole)
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn len(&self) -> usize {
        self.0.iter().map(Bytes::len).sum()
    }
}

impl<T: Into<Bytes>> From<T> for Pieces {
    fn from(whole: T) -> Self {
        Self([whole.into(), Bytes::new(), Bytes::new()])
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = self.0.iter_mut().find(|piece| !piece.is_empty());
        Poll::Ready(next.map(|piece| Ok(Frame::data(mem::take(piece)))))
    }

    fn is_end_stream(&self) -> bool {
        self.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    #[track_caller]
    fn check(size: usize, pieces: usize) {
        let id = RequestId::from(7);
        let result = format!(r#"{{"text":"{}"}}"#, "x".repeat(size - 11));
        let whole = jsonrpc::response_raw(&id, result.as_bytes());
        let response = || Pieces::response(&id, result.clone().into());
        assert_eq!(response().join(), whole);
        assert_eq!(response().size_hint().exact(), Some(whole.len() as u64));
        let parts = response().0.into_iter().filter(|piece| !piece.is_empty());
        assert_eq!(parts.count(), pieces);
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let sent = runtime.unwrap().block_on(response().collect()).unwrap();
        assert_eq!(sent.to_bytes(), whole);
    }

    #[test]
    fn joined_response_is_one_line() {
        for size in [16, MIN_UNCOPIED] {
            let result = format!("{{\r\n\"text\":\"{}\"}}", "x".repeat(size));
            let response = Pieces::response(&RequestId::from(7), result.into());
            assert!(!response.join().iter().any(u8::is_ascii_control), "{size}");
        }
    }

    #[test]
    fn small_result_is_sent_in_one_piece() {
        check(MIN_UNCOPIED - 1, 1);
    }

    #[test]
    fn large_result_is_sent_without_a_copy() {
        check(MIN_UNCOPIED, 3);
    }
}
