//! Memory budget for large messages, incoming and outgoing: a limit per client and one over all,
//! however many tasks wait. Backpressure: a reader or writer waits for its reservation, with a
//! timeout.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

use crate::principal::Principal;
use crate::sync::lock;

/// Size up to which a message needs no reservation, in bytes.
pub(crate) const SMALL: usize = 64 * 1024;
/// Longest wait for a reservation, and the delay suggested to a refused client.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// Unit of the budget, in bytes.
const UNIT: usize = 1024;

/// Budget for messages of one kind.
#[derive(Debug)]
pub(crate) struct Room {
    all: Arc<Semaphore>,
    /// Share of one client, in units.
    share: usize,
    /// Remaining share of each client with a reservation.
    shares: Mutex<BTreeMap<Arc<str>, Arc<Semaphore>>>,
}

/// Reserved memory, released when dropped.
#[derive(Debug)]
pub(crate) struct Taken(
    #[cfg_attr(
        not(feature = "http"),
        expect(dead_code, reason = "given back when dropped")
    )]
    [OwnedSemaphorePermit; 2],
);

/// Reservation of a message, kept as long as any part of it exists; `None` if the message is
/// small.
pub(crate) type Held = Option<Arc<Taken>>;

/// The budget stayed exhausted for the longest wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Crowded;

impl Room {
    /// Creates a budget for `at_once` messages of `largest` bytes, of which one client may have
    /// `of_one`.
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

    /// Reserves memory for a message of `bytes`. A message larger than a client's share takes the
    /// whole share.
    ///
    /// # Errors
    ///
    /// The budget stayed exhausted for too long.
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
        // The client's own share comes first: a client that has used it up waits for itself, and
        // holds nothing of the common budget meanwhile.
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
    /// Releases the part that is not needed for `bytes`.
    #[cfg(feature = "http")]
    pub(crate) fn shrink(&mut self, bytes: usize) {
        for permit in &mut self.0 {
            let spare = permit.num_permits().saturating_sub(units(bytes));
            drop(permit.split(spare));
        }
    }
}

/// Returns the message with `held` attached: it is dropped with the last part of the message.
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

/// Builds a message out of others, and keeps their reservations. Small ones have none.
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
