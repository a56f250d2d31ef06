//! Memory budget for large messages, incoming and outgoing: a limit per client and one over all,
//! however many tasks wait. Backpressure: a reader or writer waits for its reservation, with a
//! timeout.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

use crate::policy::principal::Principal;
use crate::support::sync::lock;

/// Size up to which a message needs no reservation, in bytes.
pub(crate) const MAX_UNRESERVED: usize = 64 * 1024;
/// Longest wait for a reservation, and the delay suggested to a refused client.
pub(crate) const RESERVATION_TIMEOUT: Duration = Duration::from_secs(10);
/// Unit of the budget, in bytes.
const UNIT_BYTES: usize = 1024;

/// Budget for messages of one kind.
#[derive(Debug)]
pub(crate) struct MemoryBudget {
    total: Arc<Semaphore>,
    /// Share of one client, in units.
    share: usize,
    /// Remaining share of each client with a reservation.
    shares: Mutex<BTreeMap<Arc<str>, Arc<Semaphore>>>,
}

/// Reserved memory, released when dropped.
#[derive(Debug)]
pub(crate) struct Reservation(
    #[cfg_attr(
        not(feature = "http"),
        expect(dead_code, reason = "given back when dropped")
    )]
    [OwnedSemaphorePermit; 2],
);

/// Reservation of a message, kept as long as any part of it exists; `None` if the message is
/// small.
pub(crate) type SharedReservation = Option<Arc<Reservation>>;

/// The budget stayed exhausted for the longest wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exhausted;

impl MemoryBudget {
    /// Creates a budget for `at_once` messages of `max_message` bytes, of which one client may
    /// have `at_once_per_client`.
    pub(crate) fn new(max_message: usize, at_once: usize, at_once_per_client: usize) -> Self {
        let capacity = |messages| {
            let units = units(max_message).saturating_mul(messages);
            units.min(Semaphore::MAX_PERMITS)
        };
        Self {
            total: Arc::new(Semaphore::new(capacity(at_once))),
            share: capacity(at_once_per_client),
            shares: Mutex::default(),
        }
    }

    /// Reserves memory for a message of `bytes`. A message larger than a client's share takes the
    /// whole share.
    ///
    /// # Errors
    ///
    /// The budget stayed exhausted for too long.
    pub(crate) async fn reserve(
        &self,
        client: &Principal,
        bytes: usize,
    ) -> Result<Option<Reservation>, Exhausted> {
        if bytes <= MAX_UNRESERVED {
            return Ok(None);
        }
        let permits = u32::try_from(units(bytes).min(self.share)).unwrap_or(u32::MAX);
        let share = self.share_of(client);
        // The client's own share comes first: a client that has used it up waits for itself, and
        // holds nothing of the common budget meanwhile.
        let reservation = async {
            let own = share.acquire_many_owned(permits).await?;
            let common = Arc::clone(&self.total).acquire_many_owned(permits);
            Ok::<_, AcquireError>(Reservation([own, common.await?]))
        };
        match tokio::time::timeout(RESERVATION_TIMEOUT, reservation).await {
            Ok(Ok(reservation)) => Ok(Some(reservation)),
            _ => Err(Exhausted),
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

impl Reservation {
    /// Releases the part that is not needed for `bytes`.
    #[cfg(feature = "http")]
    pub(crate) fn shrink(&mut self, bytes: usize) {
        for permit in &mut self.0 {
            let spare = permit.num_permits().saturating_sub(units(bytes));
            drop(permit.split(spare));
        }
    }
}

/// Returns the message with `guard` attached: it is dropped with the last part of the message.
pub(crate) fn attach_guard(message: Bytes, guard: impl Send + 'static) -> Bytes {
    struct Guarded<T> {
        message: Bytes,
        _guard: T,
    }

    impl<T> AsRef<[u8]> for Guarded<T> {
        fn as_ref(&self) -> &[u8] {
            &self.message
        }
    }

    Bytes::from_owner(Guarded {
        message,
        _guard: guard,
    })
}

/// Builds a message out of others, and keeps their reservations. Small ones have none.
pub(crate) fn inherit_guards(parts: impl IntoIterator<Item = Bytes>, message: Vec<u8>) -> Bytes {
    let large: Vec<_> = parts
        .into_iter()
        .filter(|part| part.len() > MAX_UNRESERVED)
        .collect();
    match large.is_empty() {
        true => message.into(),
        false => attach_guard(message.into(), large),
    }
}

fn units(bytes: usize) -> usize {
    bytes.div_ceil(UNIT_BYTES)
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
    async fn budget_has_a_share_per_client() {
        let budget = MemoryBudget::new(LARGEST, 3, 2);
        let (bob, mut reservations) = (Principal::new("bob"), Vec::new());
        for client in [&alice(), &alice(), &bob] {
            reservations.push(budget.reserve(client, LARGEST).await.unwrap().unwrap());
        }
        for client in [&alice(), &bob] {
            assert!(budget.reserve(client, LARGEST).now_or_never().is_none());
            assert!(
                budget
                    .reserve(client, MAX_UNRESERVED)
                    .await
                    .unwrap()
                    .is_none()
            );
        }
        reservations.clear();
        budget.reserve(&alice(), LARGEST).await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn message_larger_than_a_share_is_reserved_alone() {
        let budget = MemoryBudget::new(LARGEST, 3, 2);
        let reservation = budget.reserve(&alice(), 100 * LARGEST).await.unwrap();
        assert!(budget.reserve(&alice(), LARGEST).now_or_never().is_none());
        drop(reservation);
        budget.reserve(&alice(), LARGEST).await.unwrap().unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn reservation_fails_after_its_timeout() {
        let budget = MemoryBudget::new(LARGEST, 1, 1);
        let _reservation = budget.reserve(&alice(), LARGEST).await.unwrap();
        assert_eq!(
            budget.reserve(&alice(), LARGEST).await.unwrap_err(),
            Exhausted
        );
    }

    #[test]
    fn guard_is_dropped_with_the_last_part_of_a_derived_message() {
        let guard = Arc::new(());
        let result = attach_guard(vec![b'x'; MAX_UNRESERVED + 1].into(), Arc::clone(&guard));
        let response = inherit_guards([result], vec![b'y'; 10]);
        let part = response.slice(..1);
        drop(response);
        assert_eq!(Arc::strong_count(&guard), 2);
        drop(part);
        assert_eq!(Arc::strong_count(&guard), 1);
    }
}
