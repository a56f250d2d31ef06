//! Outbox: bounded queue of the messages for one client, or for the reader of one response. The
//! bound is in messages and in bytes, over all writers. Responses wait for space (backpressure);
//! notifications are dropped when there is none. A listener in this process takes each message as
//! it is made, and never makes a sender wait for a client.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use mcpd_protocol::NotificationMethod;
use mcpd_protocol::jsonrpc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::limits::memory_budget;

/// Maximum number of queued bytes. A larger message is queued alone.
pub(crate) const MAX_QUEUED_BYTES: u32 = 256 * 1024;
/// Minimum cost of a message in bytes, which covers its overhead.
const MIN_MESSAGE_COST: u32 = 1024;
/// Maximum number of queued messages, which follows.
const MAX_QUEUED_MESSAGES: u32 = MAX_QUEUED_BYTES / MIN_MESSAGE_COST;

/// Sending end of the queue.
#[derive(Debug, Clone)]
pub(crate) enum Outbox {
    Queue {
        queue: mpsc::Sender<Bytes>,
        space: Arc<Semaphore>,
    },
    Listener(OutboxListener),
}

type Listen = dyn Fn(&[u8]) + Send + Sync;

/// Callback that receives each message as it is made.
#[derive(Clone)]
pub(crate) struct OutboxListener(Arc<Listen>);

impl fmt::Debug for OutboxListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Listener")
    }
}

/// The message was not taken: its reader is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Closed;

impl Outbox {
    /// Creates an empty outbox, and the receiving end. A message takes up space until its reader
    /// drops it.
    pub(crate) fn new() -> (Self, mpsc::Receiver<Bytes>) {
        let (queue, messages) = mpsc::channel(MAX_QUEUED_MESSAGES as usize);
        let space = Arc::new(Semaphore::new(MAX_QUEUED_BYTES as usize));
        (Self::Queue { queue, space }, messages)
    }

    /// Creates an outbox that passes messages to `listener`, each before the next is made.
    pub(crate) fn to(listener: impl Fn(&[u8]) + Send + Sync + 'static) -> Self {
        Self::Listener(OutboxListener(Arc::new(listener)))
    }

    /// Creates an outbox that is closed.
    #[cfg(feature = "http")]
    pub(crate) fn nowhere() -> Self {
        Self::new().0
    }

    /// Queues a message as soon as there is space.
    ///
    /// # Errors
    ///
    /// The reader is gone.
    ///
    /// # Cancel safety
    ///
    /// Dropped before its end, it has queued nothing.
    pub(crate) async fn send(&self, message: Bytes) -> Result<(), Closed> {
        let (queue, space) = match self {
            Self::Queue { queue, space } => (queue, space),
            Self::Listener(OutboxListener(listener)) => {
                listener(&message);
                return Ok(());
            }
        };
        // The semaphore is fair: a large message is not overtaken for ever by small ones.
        let space = Arc::clone(space).acquire_many_owned(cost(message.len()));
        let space = tokio::select! {
            biased;
            space = space => space.map_err(|_| Closed)?,
            () = queue.closed() => return Err(Closed),
        };
        enqueue(queue, message, space)
    }

    /// Queues a message if there is space that no waiting sender is ahead for. Returns whether it
    /// did.
    pub(crate) fn try_send(&self, message: Bytes) -> bool {
        match self {
            Self::Queue { queue, space } => {
                let space = Arc::clone(space).try_acquire_many_owned(cost(message.len()));
                space.is_ok_and(|space| enqueue(queue, message, space).is_ok())
            }
            Self::Listener(OutboxListener(listener)) => {
                listener(&message);
                true
            }
        }
    }

    /// Closes the queue, and refuses the senders that wait for space: its reader has stalled. A
    /// listener cannot stall.
    pub(crate) fn close(&self) {
        if let Self::Queue { space, .. } = self {
            space.close();
        }
    }

    /// Returns whether the reader is gone.
    pub(crate) fn is_closed(&self) -> bool {
        match self {
            Self::Queue { queue, space } => queue.is_closed() || space.is_closed(),
            Self::Listener(_) => false,
        }
    }
}

/// Queues a message that has its space. The queue is as long as the space allows messages, so it
/// is never full.
fn enqueue(
    queue: &mpsc::Sender<Bytes>,
    message: Bytes,
    space: OwnedSemaphorePermit,
) -> Result<(), Closed> {
    let message = memory_budget::attach_guard(message, space);
    queue.try_send(message).map_err(|_| Closed)
}

/// Space that a message of this many bytes takes up.
pub(crate) fn cost(bytes: usize) -> u32 {
    u32::try_from(bytes).map_or(MAX_QUEUED_BYTES, |cost| {
        cost.clamp(MIN_MESSAGE_COST, MAX_QUEUED_BYTES)
    })
}

/// Encodes a notification.
pub(crate) fn notification<N: NotificationMethod>(params: &N::Params) -> Option<Bytes> {
    jsonrpc::notification(N::NAME, params)
        .inspect_err(
            |error| tracing::error!(%error, method = N::NAME, "failed to encode a notification"),
        )
        .ok()
        .map(Bytes::from)
}

/// Sends a notification, or drops it if the client does not keep up.
pub(crate) fn notify<N: NotificationMethod>(outbox: &Outbox, params: &N::Params) {
    let Some(message) = notification::<N>(params) else {
        return;
    };
    if !outbox.try_send(message) {
        tracing::debug!(
            method = N::NAME,
            "notification dropped: the client does not read fast enough"
        );
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::FutureExt as _;

    use super::*;

    fn message(cost: usize) -> Bytes {
        vec![b'x'; cost].into()
    }

    #[test]
    fn messages_are_bounded_in_number() {
        let (outbox, _messages) = Outbox::new();
        for _ in 0..MAX_QUEUED_MESSAGES {
            assert!(outbox.try_send(message(1)));
        }
        assert!(!outbox.try_send(message(1)));
    }

    #[test]
    fn messages_are_bounded_in_bytes_until_dropped() {
        let (outbox, mut messages) = Outbox::new();
        let half = MAX_QUEUED_BYTES as usize / 2;
        assert!(outbox.try_send(message(half)));
        assert!(outbox.try_send(message(half)));
        assert!(!outbox.try_send(message(1)));
        let first = messages.try_recv().unwrap();
        assert!(!outbox.try_send(message(1)));
        drop(first);
        assert!(outbox.try_send(message(1)));
    }

    #[test]
    fn large_message_is_queued_alone() {
        let (outbox, mut messages) = Outbox::new();
        assert!(outbox.try_send(message(1)));
        let mut large = Box::pin(outbox.send(message(MAX_QUEUED_BYTES as usize + 1)));
        assert_eq!(large.as_mut().now_or_never(), None);
        messages.try_recv().unwrap();
        assert_eq!(large.as_mut().now_or_never(), Some(Ok(())));
        assert!(!outbox.try_send(message(1)));
    }

    #[test]
    fn waiting_message_goes_before_droppable_ones() {
        let (outbox, mut messages) = Outbox::new();
        assert!(outbox.try_send(message(MAX_QUEUED_BYTES as usize)));
        let mut answer = Box::pin(outbox.send(message(MAX_QUEUED_BYTES as usize)));
        assert_eq!(answer.as_mut().now_or_never(), None);
        messages.try_recv().unwrap();
        assert!(!outbox.try_send(message(1)));
        assert_eq!(answer.as_mut().now_or_never(), Some(Ok(())));
    }

    #[test]
    fn listener_receives_every_message_at_once() {
        let listener = Arc::new(AtomicUsize::new(0));
        let outbox = Outbox::to({
            let listener = Arc::clone(&listener);
            move |_| _ = listener.fetch_add(1, Ordering::Relaxed)
        });
        for _ in 0..=MAX_QUEUED_MESSAGES {
            assert!(outbox.try_send(message(1)));
        }
        let answer = outbox.send(message(MAX_QUEUED_BYTES as usize));
        assert_eq!(answer.now_or_never(), Some(Ok(())));
        assert_eq!(
            listener.load(Ordering::Relaxed),
            MAX_QUEUED_MESSAGES as usize + 2
        );
    }

    #[tokio::test]
    async fn sender_does_not_wait_for_a_gone_or_stalled_reader() {
        let (outbox, messages) = Outbox::new();
        assert!(outbox.try_send(message(MAX_QUEUED_BYTES as usize)));
        let mut waiting = Box::pin(outbox.send(message(1)));
        assert_eq!(waiting.as_mut().now_or_never(), None);
        drop(messages);
        assert_eq!(waiting.await, Err(Closed));

        let (outbox, _messages) = Outbox::new();
        assert!(outbox.try_send(message(MAX_QUEUED_BYTES as usize)));
        let mut waiting = Box::pin(outbox.send(message(1)));
        assert_eq!(waiting.as_mut().now_or_never(), None);
        outbox.close();
        assert_eq!(waiting.await, Err(Closed));
        assert!(outbox.is_closed());
    }
}
