//! What clients send, each message whole. Bounded in size and time, and in how much there may be of it at once, however
//! many clients there are and however many of their calls wait.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::StatusCode;
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderMap};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::reply::{self, Refused};
use crate::wire::Held;

/// How long a body may take to arrive.
const BODY: Duration = Duration::from_secs(30);
/// How long it waits for room, and how long its client is asked to wait before it tries again.
const PATIENCE: Duration = Duration::from_secs(10);
/// A body of this size needs no room of its own, in bytes: how many connections there are is bounded.
const SMALL: usize = 64 * 1024;
/// How many of the largest bodies there may be at once.
const LARGEST: usize = 32;
/// In what room is counted, in bytes.
const UNIT: usize = 1024;

/// What takes in the bodies of one listener.
#[derive(Debug)]
pub(super) struct Intake {
    /// The largest body, in bytes.
    limit: usize,
    room: Arc<Semaphore>,
}

impl Intake {
    /// With bodies of so many bytes at most.
    pub(super) fn new(limit: usize) -> Self {
        let room = units(limit).saturating_mul(LARGEST);
        Self {
            limit,
            room: Arc::new(Semaphore::new(room.min(Semaphore::MAX_PERMITS))),
        }
    }

    /// The whole body of a POST with these headers, and the room it takes: to be kept as long as anything of it is.
    ///
    /// # Errors
    ///
    /// The response for a body that is not JSON, too large, too slow or too much now.
    pub(super) async fn read(
        &self,
        headers: &HeaderMap,
        body: &mut Incoming,
    ) -> Result<(Bytes, Held), Refused> {
        let refused = |status, reason: &'static str| Err(Box::new(reply::text(status, reason)));
        if !is_json(headers) {
            let reason = "the body must be application/json";
            return refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, reason);
        }
        if body.size_hint().lower() > self.limit as u64 {
            return Err(self.too_large());
        }
        match tokio::time::timeout(BODY, self.collect(body)).await {
            Ok(read) => read,
            Err(_) => {
                let reason = "the body did not arrive in time";
                refused(StatusCode::REQUEST_TIMEOUT, reason)
            }
        }
    }

    async fn collect(&self, body: &mut Incoming) -> Result<(Bytes, Held), Refused> {
        let announced = body.size_hint().exact();
        // All of it in one go: those who have a part and wait for the rest would wait for each other.
        let most = announced.map_or(self.limit, |announced| announced as usize);
        let mut held = match announced {
            Some(_) if most > SMALL => Some(self.take(most).await?),
            _ => None,
        };
        let (mut parts, mut size) = (Vec::new(), 0);
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
            size += part.len();
            if size > SMALL && held.is_none() {
                held = Some(self.take(most).await?);
            }
            parts.push(part);
        }
        if let Some(held) = &mut held {
            drop(held.split(held.num_permits() - units(size)));
        }
        let whole = match &mut parts[..] {
            [whole] => std::mem::take(whole),
            parts => parts.concat().into(),
        };
        Ok((whole, held.map(Arc::new)))
    }

    async fn take(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Refused> {
        let permits = u32::try_from(units(bytes)).unwrap_or(u32::MAX);
        let taken = Arc::clone(&self.room).acquire_many_owned(permits);
        match tokio::time::timeout(PATIENCE, taken).await {
            Ok(Ok(held)) => Ok(held),
            _ => {
                let reason = "too much is being sent to this server at once";
                Err(Box::new(reply::too_many(reason, PATIENCE)))
            }
        }
    }

    fn too_large(&self) -> Refused {
        let limit = self.limit;
        let reason = format!("the body is larger than {limit} bytes, the most that is read here");
        Box::new(reply::text(StatusCode::PAYLOAD_TOO_LARGE, reason))
    }
}

fn units(bytes: usize) -> usize {
    bytes.div_ceil(UNIT)
}

/// "The client MUST use HTTP POST" with a JSON body; anything else could come from a web form.
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
