//! Outbox: bounded queue of the messages for one client, or for the reader of one response. The
//! bound is in messages and in bytes, over all writers. Responses wait for space (backpressure);
//! notifications are dropped when there is none. A listener in this process takes each message as
//! it is made, and never makes a sender wait for a client.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::room;

/// Maximum number of queued bytes. A larger message is queued alone.
const BYTES: u32 = 256 * 1024;
/// Minimum cost of a message in bytes, which covers its overhead.
const LEAST: u32 = 1024;
/// Maximum number of queued messages, which follows.
const MESSAGES: u32 = BYTES / LEAST;

/// Sending end of the queue.
#[derive(Debug, Clone)]
pub(crate) enum Outbox {
    Queue {
        queue: mpsc::Sender<Bytes>,
        room: Arc<Semaphore>,
    },
    Listener(Listener),
}

type Listen = dyn Fn(&[u8]) + Send + Sync;

/// Callback that receives each message as it is made.
#[derive(Clone)]
pub(crate) struct Listener(Arc<Listen>);

impl fmt::Debug for Listener {
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
        let (queue, messages) = mpsc::channel(MESSAGES as usize);
        let room = Arc::new(Semaphore::new(BYTES as usize));
        (Self::Queue { queue, room }, messages)
    }

    /// Creates an outbox that passes messages to `listener`, each before the next is made.
    pub(crate) fn to(listener: impl Fn(&[u8]) + Send + Sync + 'static) -> Self {
        Self::Listener(Listener(Arc::new(listener)))
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
        let (queue, room) = match self {
            Self::Queue { queue, room } => (queue, room),
            Self::Listener(Listener(listener)) => {
                listener(&message);
                return Ok(());
            }
        };
        // The semaphore is fair: a large message is not overtaken for ever by small ones.
        let room = Arc::clone(room).acquire_many_owned(size(&message));
        let room = tokio::select! {
            biased;
            room = room => room.map_err(|_| Closed)?,
            () = queue.closed() => return Err(Closed),
        };
        put(queue, message, room)
    }

    /// Queues a message if there is space that no waiting sender is ahead for. Returns whether it
    /// did.
    pub(crate) fn try_send(&self, message: Bytes) -> bool {
        match self {
            Self::Queue { queue, room } => {
                let room = Arc::clone(room).try_acquire_many_owned(size(&message));
                room.is_ok_and(|room| put(queue, message, room).is_ok())
            }
            Self::Listener(Listener(listener)) => {
                listener(&message);
                true
            }
        }
    }

    /// Closes the queue, and refuses the senders that wait for space: its reader has stalled. A
    /// listener cannot stall.
    pub(crate) fn close(&self) {
        if let Self::Queue { room, .. } = self {
            room.close();
        }
    }

    /// Returns whether the reader is gone.
    pub(crate) fn is_closed(&self) -> bool {
        match self {
            Self::Queue { queue, room } => queue.is_closed() || room.is_closed(),
            Self::Listener(_) => false,
        }
    }
}

/// Queues a message that has its space. The queue is as long as the space allows messages, so it
/// is never full.
fn put(
    queue: &mpsc::Sender<Bytes>,
    message: Bytes,
    room: OwnedSemaphorePermit,
) -> Result<(), Closed> {
    let message = room::holding(message, room);
    queue.try_send(message).map_err(|_| Closed)
}

/// Space that a message takes up.
fn size(message: &Bytes) -> u32 {
    u32::try_from(message.len()).map_or(BYTES, |size| size.clamp(LEAST, BYTES))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::FutureExt as _;

    use super::*;

    fn message(size: usize) -> Bytes {
        vec![b'x'; size].into()
    }

    #[test]
    fn messages_are_bounded_in_number() {
        let (outbox, _messages) = Outbox::new();
        for _ in 0..MESSAGES {
            assert!(outbox.try_send(message(1)));
        }
        assert!(!outbox.try_send(message(1)));
    }

    #[test]
    fn messages_are_bounded_in_bytes_until_they_are_dropped() {
        let (outbox, mut messages) = Outbox::new();
        let half = BYTES as usize / 2;
        assert!(outbox.try_send(message(half)));
        assert!(outbox.try_send(message(half)));
        assert!(!outbox.try_send(message(1)));
        let first = messages.try_recv().unwrap();
        assert!(!outbox.try_send(message(1)));
        drop(first);
        assert!(outbox.try_send(message(1)));
    }

    #[test]
    fn a_message_of_any_size_goes_through_alone() {
        let (outbox, mut messages) = Outbox::new();
        assert!(outbox.try_send(message(1)));
        let mut large = Box::pin(outbox.send(message(BYTES as usize + 1)));
        assert_eq!(large.as_mut().now_or_never(), None);
        messages.try_recv().unwrap();
        assert_eq!(large.as_mut().now_or_never(), Some(Ok(())));
        assert!(!outbox.try_send(message(1)));
    }

    #[test]
    fn what_waits_goes_before_what_may_be_dropped() {
        let (outbox, mut messages) = Outbox::new();
        assert!(outbox.try_send(message(BYTES as usize)));
        let mut answer = Box::pin(outbox.send(message(BYTES as usize)));
        assert_eq!(answer.as_mut().now_or_never(), None);
        messages.try_recv().unwrap();
        assert!(!outbox.try_send(message(1)));
        assert_eq!(answer.as_mut().now_or_never(), Some(Ok(())));
    }

    #[test]
    fn a_listener_gets_every_message_as_it_comes() {
        let heard = Arc::new(AtomicUsize::new(0));
        let outbox = Outbox::to({
            let heard = Arc::clone(&heard);
            move |_| _ = heard.fetch_add(1, Ordering::Relaxed)
        });
        for _ in 0..=MESSAGES {
            assert!(outbox.try_send(message(1)));
        }
        let answer = outbox.send(message(BYTES as usize));
        assert_eq!(answer.now_or_never(), Some(Ok(())));
        assert_eq!(heard.load(Ordering::Relaxed), MESSAGES as usize + 2);
    }

    #[tokio::test]
    async fn nothing_waits_for_a_reader_that_is_gone_or_given_up() {
        let (outbox, messages) = Outbox::new();
        assert!(outbox.try_send(message(BYTES as usize)));
        let mut waiting = Box::pin(outbox.send(message(1)));
        assert_eq!(waiting.as_mut().now_or_never(), None);
        drop(messages);
        assert_eq!(waiting.await, Err(Closed));

        let (outbox, _messages) = Outbox::new();
        assert!(outbox.try_send(message(BYTES as usize)));
        let mut waiting = Box::pin(outbox.send(message(1)));
        assert_eq!(waiting.as_mut().now_or_never(), None);
        outbox.close();
        assert_eq!(waiting.await, Err(Closed));
        assert!(outbox.is_closed());
    }
}
