//! What clients send, each message whole. Bounded in size and time, and in how much there may be of it at once: of one
//! client, and of all of them, however many of their calls wait.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::StatusCode;
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderMap};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

use super::reply::{self, Refused};
use crate::admission;
use crate::metrics::Metrics;
use crate::principal::Principal;
use crate::sync::lock;
use crate::wire::Held;

/// How long a body may take to arrive.
const BODY: Duration = Duration::from_secs(30);
/// How long it waits for room, and how long its client is asked to wait before it tries again.
const PATIENCE: Duration = Duration::from_secs(10);
/// A body of this size needs no room of its own, in bytes.
const SMALL: usize = 64 * 1024;
/// How many of the largest bodies there may be at once, and how many of one client's.
const LARGEST: usize = 64;
const LARGEST_OF_ONE: usize = 16;
/// In what room is counted, in bytes.
const UNIT: usize = 1024;

/// What takes in the bodies of one listener.
#[derive(Debug)]
pub(super) struct Intake {
    /// The largest body, in bytes.
    limit: usize,
    room: Arc<Semaphore>,
    /// That of each client who takes any.
    shares: Mutex<BTreeMap<Arc<str>, Arc<Semaphore>>>,
    metrics: Arc<Metrics>,
}

impl Intake {
    /// With bodies of so many bytes at most.
    pub(super) fn new(limit: usize, metrics: Arc<Metrics>) -> Self {
        Self {
            limit,
            room: room(limit, LARGEST),
            shares: Mutex::default(),
            metrics,
        }
    }

    /// The whole body of a POST with these headers, and the room it takes: to be kept as long as anything of it is.
    ///
    /// # Errors
    ///
    /// The response for a body that is not JSON, too large, too slow or too much now.
    pub(super) async fn read(
        &self,
        client: &Principal,
        headers: &HeaderMap,
        body: &mut Incoming,
    ) -> Result<(Bytes, Held), Refused> {
        let refused = |status, reason: &'static str| Err(Box::new(reply::text(status, reason)));
        // What is empty is of no type.
        if !is_json(headers) && !body.is_end_stream() {
            let reason = "the body must be application/json";
            return refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, reason);
        }
        if body.size_hint().lower() > self.limit as u64 {
            return Err(self.too_large());
        }
        match tokio::time::timeout(BODY, self.collect(client, body)).await {
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
    ) -> Result<(Bytes, Held), Refused> {
        let announced = body.size_hint().exact();
        // All of it in one go: those who have a part and wait for the rest would wait for each other.
        let most = announced.map_or(self.limit, |announced| announced as usize);
        let mut held = match announced {
            Some(_) if most > SMALL => Some(self.take(client, most).await?),
            _ => None,
        };
        // Most are of one part. Of others no part is kept for itself: each could be one byte.
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
            if first.len() + whole.len() > SMALL && held.is_none() {
                held = Some(self.take(client, most).await?);
            }
        }
        let whole = match first.is_empty() {
            true => whole.freeze(),
            false => first,
        };
        for held in held.iter_mut().flatten() {
            drop(held.split(held.num_permits() - units(whole.len())));
        }
        Ok((whole, held.map(Arc::new)))
    }

    /// Takes room for so many bytes: of the client's, and of all.
    async fn take(
        &self,
        client: &Principal,
        bytes: usize,
    ) -> Result<[OwnedSemaphorePermit; 2], Refused> {
        let permits = u32::try_from(units(bytes)).unwrap_or(u32::MAX);
        let share = self.share(client);
        let taken = async {
            let ours = share.acquire_many_owned(permits).await?;
            let of_all = Arc::clone(&self.room).acquire_many_owned(permits);
            Ok::<_, AcquireError>([ours, of_all.await?])
        };
        match tokio::time::timeout(PATIENCE, taken).await {
            Ok(Ok(held)) => Ok(held),
            _ => {
                self.metrics.refused(admission::Refused::Busy);
                let reason = "too much is being sent to this server at once";
                Err(Box::new(reply::too_many(reason, PATIENCE)))
            }
        }
    }

    /// What a client may take.
    fn share(&self, client: &Principal) -> Arc<Semaphore> {
        let mut shares = lock(&self.shares);
        shares.retain(|_, share| Arc::strong_count(share) > 1);
        let share = shares
            .entry(Arc::clone(client.shared_name()))
            .or_insert_with(|| room(self.limit, LARGEST_OF_ONE));
        Arc::clone(share)
    }

    fn too_large(&self) -> Refused {
        let limit = self.limit;
        let reason = format!("the body is larger than {limit} bytes, the most that is read here");
        Box::new(reply::text(StatusCode::PAYLOAD_TOO_LARGE, reason))
    }
}

/// Room for so many bodies of so many bytes.
fn room(limit: usize, bodies: usize) -> Arc<Semaphore> {
    let units = units(limit).saturating_mul(bodies);
    Arc::new(Semaphore::new(units.min(Semaphore::MAX_PERMITS)))
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
