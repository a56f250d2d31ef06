//! Reader of request bodies, with a timeout, a size limit and a memory budget per client and over
//! all, however many calls wait.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::FutureExt as _;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::StatusCode;
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderMap};

use super::reply::{self, RefusedResponse};
use crate::limits::admission;
use crate::limits::memory_budget::{
    MAX_UNRESERVED, MemoryBudget, RESERVATION_TIMEOUT, Reservation, SharedReservation,
};
use crate::observe::metrics::Metrics;
use crate::policy::principal::Principal;

/// Timeout for receiving a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// Memory budget in bodies of maximum size: over all clients, and for one of them.
const MAX_LARGE_BODIES: usize = 64;
const MAX_LARGE_BODIES_PER_CLIENT: usize = 16;

/// Body reader of one listener.
#[derive(Debug)]
pub(super) struct BodyReader {
    /// Maximum size of a body, in bytes.
    limit: usize,
    budget: MemoryBudget,
    metrics: Arc<Metrics>,
}

impl BodyReader {
    /// Creates a reader of bodies of at most `limit` bytes.
    pub(super) fn new(limit: usize, metrics: Arc<Metrics>) -> Self {
        Self {
            limit,
            budget: MemoryBudget::new(limit, MAX_LARGE_BODIES, MAX_LARGE_BODIES_PER_CLIENT),
            metrics,
        }
    }

    /// Reads the body of a POST with these headers. The caller keeps the returned memory
    /// reservation as long as any part of the body.
    ///
    /// # Errors
    ///
    /// The response for a body that is not JSON, too large, too slow, or beyond the memory
    /// budget.
    pub(super) async fn read(
        &self,
        client: &Principal,
        headers: &HeaderMap,
        body: &mut Incoming,
    ) -> Result<(Bytes, SharedReservation), RefusedResponse> {
        let refused = |status, reason: &'static str| Err(Box::new(reply::text(status, reason)));
        // An empty body needs no type.
        if !is_json(headers) && !body.is_end_stream() {
            let reason = "the body must be application/json";
            return refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, reason);
        }
        if body.size_hint().lower() > self.limit as u64 {
            return Err(self.too_large());
        }
        let mut collecting = pin!(self.collect(client, body));
        // Most bodies have arrived with their headers.
        if let Some(read) = collecting.as_mut().now_or_never() {
            return read;
        }
        match tokio::time::timeout(BODY_TIMEOUT, collecting).await {
            Ok(read) => read,
            Err(_) => {
                let reason = "the body did not arrive in time";
                refused(StatusCode::REQUEST_TIMEOUT, reason)
            }
        }
    }

    async fn collect(
        &self,
        client: &Principal,
        body: &mut Incoming,
    ) -> Result<(Bytes, SharedReservation), RefusedResponse> {
        let announced = body.size_hint().exact();
        // The reservation is made in one step: readers that hold a part and wait for the rest
        // would wait for each other (deadlock).
        let most = announced.map_or(self.limit, |announced| announced as usize);
        let mut reservation = match announced {
            Some(_) => self.reserve(client, most).await?,
            None => None,
        };
        // Most bodies have one part. Other parts are copied together and not kept, as each could
        // be a single byte in its own buffer.
        let (mut first, mut whole) = (Bytes::new(), BytesMut::new());
        let mut body = Limited::new(body, self.limit);
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| match error.is::<LengthLimitError>() {
                true => self.too_large(),
                false => {
                    let reason = "the body could not be read";
                    Box::new(reply::text(StatusCode::BAD_REQUEST, reason))
                }
            })?;
            let Ok(part) = frame.into_data() else {
                continue;
            };
            if first.is_empty() && whole.is_empty() {
                first = part;
            } else {
                if whole.is_empty() {
                    whole.reserve(announced.map_or(first.len() + part.len(), |_| most));
                    whole.extend_from_slice(&std::mem::take(&mut first));
                }
                whole.extend_from_slice(&part);
            }
            if first.len() + whole.len() > MAX_UNRESERVED && reservation.is_none() {
                reservation = self.reserve(client, most).await?;
            }
        }
        let whole = match first.is_empty() {
            true => whole.freeze(),
            false => first,
        };
        if let Some(reservation) = &mut reservation {
            reservation.shrink(whole.len());
        }
        Ok((whole, reservation.map(Arc::new)))
    }

    async fn reserve(
        &self,
        client: &Principal,
        bytes: usize,
    ) -> Result<Option<Reservation>, RefusedResponse> {
        self.budget.reserve(client, bytes).await.map_err(|_| {
            self.metrics.count_refusal(admission::Rejection::Busy);
            let reason = "the server's memory budget for requests is exhausted";
            Box::new(reply::too_many(reason, RESERVATION_TIMEOUT))
        })
    }

    fn too_large(&self) -> RefusedResponse {
        let limit = self.limit;
        let reason = format!("the body exceeds the limit of {limit} bytes");
        Box::new(reply::text(StatusCode::PAYLOAD_TOO_LARGE, reason))
    }
}

/// Returns whether the body is declared as JSON. "The client MUST use HTTP POST" with a JSON
/// body; any other type could come from a web form.
fn is_json(headers: &HeaderMap) -> bool {
    let content_type = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    content_type
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .eq_ignore_ascii_case("application/json")
}
