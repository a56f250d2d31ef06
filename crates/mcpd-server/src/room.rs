//! The memory that large messages take, as they come in and as they go out: so much there may be of one client's at once,
//! and so much of all, however many are waiting.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

use crate::principal::Principal;
use crate::sync::lock;

/// What is no larger needs no room of its own, in bytes.
pub(crate) const SMALL: usize = 64 * 1024;
/// How long room is waited for, and how long a client is asked to wait before it tries again.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// In what room is counted, in bytes.
const UNIT: usize = 1024;

/// Room for the messages of one kind.
#[derive(Debug)]
pub(crate) struct Room {
    all: Arc<Semaphore>,
    /// What one client may take, in units.
    share: usize,
    /// What is left of that, of each client who takes any.
    shares: Mutex<BTreeMap<Arc<str>, Arc<Semaphore>>>,
}

/// A part of it, given back when dropped.
#[derive(Debug)]
pub(crate) struct Taken(
    #[cfg_attr(
        not(feature = "http"),
        expect(dead_code, reason = "given back when dropped")
    )]
    [OwnedSemaphorePermit; 2],
);

/// What a message holds as long as anything of it is there. Nothing if it is small.
pub(crate) type Held = Option<Arc<Taken>>;

/// There was no room for as long as anybody waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Crowded;

impl Room {
    /// For so many messages of so many bytes, and so many of one client.
    pub(crate) fn new(largest: usize, at_once: usize, of_one: usize) -> Self {
        let room = |messages| {
            let units = units(largest).saturating_mul(messages);
            units.min(Semaphore::MAX_PERMITS)
        };
        Self {
            all: Arc::new(Semaphore::new(room(at_once))),
            share: room(of_one),
            shares: Mutex::default(),
        }
    }

    /// Takes room for a message of so many bytes. One of more than a client may take, takes all of that.
    ///
    /// # Errors
    ///
    /// There was none for too long.
    pub(crate) async fn take(
        &self,
        client: &Principal,
        bytes: usize,
    ) -> Result<Option<Taken>, Crowded> {
        if bytes <= SMALL {
            return Ok(None);
        }
        let permits = u32::try_from(units(bytes).min(self.share)).unwrap_or(u32::MAX);
        let share = self.share_of(client);
        let taken = async {
            let ours = share.acquire_many_owned(permits).await?;
            let of_all = Arc::clone(&self.all).acquire_many_owned(permits);
            Ok::<_, AcquireError>(Taken([ours, of_all.await?]))
        };
        match tokio::time::timeout(PATIENCE, taken).await {
            Ok(Ok(taken)) => Ok(Some(taken)),
            _ => Err(Crowded),
        }
    }

    fn share_of(&self, client: &Principal) -> Arc<Semaphore> {
        let mut shares = lock(&self.shares);
        shares.retain(|_, share| Arc::strong_count(share) > 1);
        let share = shares
            .entry(Arc::clone(client.shared_name()))
            .or_insert_with(|| Arc::new(Semaphore::new(self.share)));
        Arc::clone(share)
    }
}

impl Taken {
    /// Gives back what is not needed for so many bytes.
    #[cfg(feature = "http")]
    pub(crate) fn shrink(&mut self, bytes: usize) {
        for permit in &mut self.0 {
            let spare = permit.num_permits().saturating_sub(units(bytes));
            drop(permit.split(spare));
        }
    }
}

/// The same message, which holds something as long as anything of it is there.
pub(crate) fn holding(message: Bytes, held: impl Send + 'static) -> Bytes {
    struct Holding<T> {
        message: Bytes,
        _held: T,
    }

    impl<T> AsRef<[u8]> for Holding<T> {
        fn as_ref(&self) -> &[u8] {
            &self.message
        }
    }

    Bytes::from_owner(Holding {
        message,
        _held: held,
    })
}

/// A message that was made of others, and holds what they hold. Small ones hold nothing.
pub(crate) fn made_of(parts: impl IntoIterator<Item = Bytes>, message: Vec<u8>) -> Bytes {
    let large: Vec<_> = parts
        .into_iter()
        .filter(|part| part.len() > SMALL)
        .collect();
    match large.is_empty() {
        true => message.into(),
        false => holding(message.into(), large),
    }
}

fn units(bytes: usize) -> usize {
    bytes.div_ceil(UNIT)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    const LARGEST: usize = 1 << 20;

    fn alice() -> Principal {
        Principal::new("alice")
    }

    #[tokio::test]
    async fn one_client_does_not_take_all_of_it() {
        let room = Room::new(LARGEST, 3, 2);
        let (bob, mut taken) = (Principal::new("bob"), Vec::new());
        for client in [&alice(), &alice(), &bob] {
            taken.push(room.take(client, LARGEST).await.unwrap().unwrap());
        }
        for client in [&alice(), &bob] {
            assert!(room.take(client, LARGEST).now_or_never().is_none());
            assert!(room.take(client, SMALL).await.unwrap().is_none());
        }
        taken.clear();
        room.take(&alice(), LARGEST).await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_message_of_any_size_has_room_alone() {
        let room = Room::new(LARGEST, 3, 2);
        let taken = room.take(&alice(), 100 * LARGEST).await.unwrap();
        assert!(room.take(&alice(), LARGEST).now_or_never().is_none());
        drop(taken);
        room.take(&alice(), LARGEST).await.unwrap().unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_ever() {
        let room = Room::new(LARGEST, 1, 1);
        let _taken = room.take(&alice(), LARGEST).await.unwrap();
        assert_eq!(room.take(&alice(), LARGEST).await.unwrap_err(), Crowded);
    }

    #[test]
    fn what_is_held_is_let_go_with_the_last_of_what_was_made_of_it() {
        let held = Arc::new(());
        let result = holding(vec![b'x'; SMALL + 1].into(), Arc::clone(&held));
        let response = made_of([result], vec![b'y'; 10]);
        let part = response.slice(..1);
        drop(response);
        assert_eq!(Arc::strong_count(&held), 2);
        drop(part);
        assert_eq!(Arc::strong_count(&held), 1);
    }
}
