//! The messages that wait for one client, or for the reader of one response: bounded in number and in
//! bytes, whoever writes them. Answers wait for room; what is only told by the way is dropped. Nothing waits for a client
//! in this process that takes each message as it comes.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::room;

/// How many bytes may wait. A message of more waits alone.
const BYTES: u32 = 256 * 1024;
/// What the smallest message counts as: it costs more than its bytes.
const LEAST: u32 = 1024;
/// How many messages may wait, therefore.
const MESSAGES: u32 = BYTES / LEAST;

/// The end that messages are put into.
#[derive(Debug, Clone)]
pub(crate) enum Outbox {
    Queue {
        queue: mpsc::Sender<Bytes>,
        room: Arc<Semaphore>,
    },
    Listener(Listener),
}

type Listen = dyn Fn(&[u8]) + Send + Sync;

/// What takes each message as it comes.
#[derive(Clone)]
pub(crate) struct Listener(Arc<Listen>);

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Listener")
    }
}

/// A message was not taken: nobody will fetch it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Closed;

impl Outbox {
    /// An empty one, and the end that messages come out of. A message takes up room until its reader
    /// lets go of it.
    pub(crate) fn new() -> (Self, mpsc::Receiver<Bytes>) {
        let (queue, messages) = mpsc::channel(MESSAGES as usize);
        let room = Arc::new(Semaphore::new(BYTES as usize));
        (Self::Queue { queue, room }, messages)
    }

    /// One whose messages go to `listener`, each before the next is made.
    pub(crate) fn to(listener: impl Fn(&[u8]) + Send + Sync + 'static) -> Self {
        Self::Listener(Listener(Arc::new(listener)))
    }

    /// One that takes nothing.
    #[cfg(feature = "http")]
    pub(crate) fn nowhere() -> Self {
        Self::new().0
    }

    /// Puts a message in as soon as there is room.
    ///
    /// # Errors
    ///
    /// When nobody will fetch it.
    ///
    /// # Cancel safety
    ///
    /// Dropped before its end, it has put nothing in.
    pub(crate) async fn send(&self, message: Bytes) -> Result<(), Closed> {
        let (queue, room) = match self {
            Self::Queue { queue, room } => (queue, room),
            Self::Listener(Listener(listener)) => {
                listener(&message);
                return Ok(());
            }
        };
        let room = Arc::clone(room).acquire_many_owned(size(&message));
        let room = tokio::select! {
            biased;
            room = room => room.map_err(|_| Closed)?,
            () = queue.closed() => return Err(Closed),
        };
        put(queue, message, room)
    }

    /// Puts a message in if there is room for it that nothing else waits for, and says whether.
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

    /// Takes nothing more, and refuses what waits for room: its reader has stalled. A listener can't.
    pub(crate) fn close(&self) {
        if let Self::Queue { room, .. } = self {
            room.close();
        }
    }

    /// Whether nobody will fetch another message.
    pub(crate) fn is_closed(&self) -> bool {
        match self {
            Self::Queue { queue, room } => queue.is_closed() || room.is_closed(),
            Self::Listener(_) => false,
        }
    }
}

/// The queue is as long as there is room for messages, so it is never full.
fn put(
    queue: &mpsc::Sender<Bytes>,
    message: Bytes,
    room: OwnedSemaphorePermit,
) -> Result<(), Closed> {
    let message = room::holding(message, room);
    queue.try_send(message).map_err(|_| Closed)
}

/// The room that a message takes up.
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
