//! Fair scheduler for runs: round-robin over callers, with concurrency limits for the server, for
//! each script and for each caller.
//!
//! Backpressure: when a queue is full, the newest call of the caller with the most queued calls
//! is rejected, so a busy caller displaces its own calls before those of others. A rejected call
//! gets a suggested retry delay. Delays are handed out in sequence (a backoff), so that rejected
//! callers do not all return at once:
//!
//! ```text
//! now              now + drain       previous       next           now + 8 × drain
//!  |--------------------|----------------|------------|------------------|
//!                       ^ earliest       |<-k × turn->|                  ^ latest
//!
//! drain  time until all calls queued now have run
//! turn   mean time between two turns that become free
//! k      1 + drain times since the overload began, at most 8
//! ```
//!
//! A `next` outside of these two bounds restarts the sequence at the earliest.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::principal::Principal;
use crate::sync::lock;

/// Maximum number of queued calls in all.
const QUEUE: usize = 1024;
/// Maximum number of queued calls of one lane.
const LANE_QUEUE: usize = 256;
/// Number of named lanes from which idle ones are dropped before another is added.
const LANES: usize = 1024;
/// Assumed duration of a turn before the first one has been measured.
const UNKNOWN_TURN: Duration = Duration::from_millis(100);
/// Bounds of the suggested retry delay.
const SHORTEST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// Upper bound of the suggested retry delay as a multiple of the current drain time, and of the
/// spacing between two suggestions as a multiple of a turn.
const FARTHEST: u32 = 8;

/// Queue and concurrency limit of runs that are alike, such as those of one script.
#[derive(Debug)]
pub(crate) struct Lane {
    /// Maximum number of queued calls.
    places: usize,
    // These change only under the lock of the scheduler; atomics merely make them writable behind
    // `Arc`.
    at_once: AtomicUsize,
    running: AtomicUsize,
    waiting: AtomicUsize,
    /// Moving average of the duration of a turn, in microseconds.
    turn: AtomicU64,
    began: Instant,
    /// Last suggested retry time, in microseconds after `began`.
    appointment: AtomicU64,
    /// Time of the first rejection since the queue was last less than half full, in microseconds
    /// after `began`; [`NEVER`] without one.
    crowded: AtomicU64,
}

/// Value of `crowded` while no call has been rejected.
const NEVER: u64 = u64::MAX;

/// Concurrency limit of a named lane, and the time at which it was set.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Width {
    at_once: NonZeroUsize,
    said: Instant,
}

/// Scheduler state shared by all clones.
#[derive(Debug, Clone)]
pub(crate) struct Turns(Arc<Mutex<State>>);

/// Permission to run, returned when dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    claim: Claim,
    since: Instant,
}

/// Caller and lane that a turn or a queued call belongs to.
#[derive(Debug, Clone)]
struct Claim {
    turns: Turns,
    caller: Arc<str>,
    lane: Arc<Lane>,
}

/// Rejection of a call because a queue is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Busy {
    #[error("run a script: {waiting} calls of it are waiting already")]
    Lane { waiting: usize, wait: Duration },
    #[error("run a script: {waiting} calls are waiting already")]
    All { waiting: usize, wait: Duration },
}

impl Busy {
    /// Name of this ending in metrics and in the audit log.
    pub(crate) const NAME: &'static str = "busy";
}

#[derive(Debug)]
struct State {
    /// Limits and counters over all lanes.
    all: Lane,
    tickets: u64,
    /// Callers with running or queued calls.
    callers: BTreeMap<Arc<str>, Caller>,
    /// Callers with queued calls; the first is next.
    order: VecDeque<Arc<str>>,
    /// Named lanes, each with the latest limit set for it.
    lanes: BTreeMap<String, (Arc<Lane>, Width)>,
}

#[derive(Debug, Default)]
struct Caller {
    at_once: usize,
    running: usize,
    /// Oldest first.
    waiting: VecDeque<Entry>,
}

#[derive(Debug)]
struct Entry {
    ticket: u64,
    lane: Arc<Lane>,
    answer: oneshot::Sender<Result<Instant, Busy>>,
}

/// Queued call; dropping it leaves the queue.
struct Place {
    claim: Claim,
    ticket: u64,
    answer: Answer,
}

/// Decision on a queued call: the time since when it may run, or a rejection.
type Answer = oneshot::Receiver<Result<Instant, Busy>>;

impl Default for Lane {
    /// Creates a lane without a limit of its own.
    fn default() -> Self {
        Self::new(NonZeroUsize::MAX)
    }
}

impl Lane {
    pub(crate) fn new(at_once: NonZeroUsize) -> Self {
        Self::with_places(at_once, LANE_QUEUE)
    }

    fn with_places(at_once: NonZeroUsize, places: usize) -> Self {
        Self {
            at_once: at_once.get().into(),
            places,
            running: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            turn: AtomicU64::new(micros(UNKNOWN_TURN)),
            began: Instant::now(),
            appointment: AtomicU64::new(0),
            crowded: AtomicU64::new(NEVER),
        }
    }

    /// Counts one more queued call, and ends the overload once the queue is less than half full.
    fn waits(&self) {
        let before = self.waiting.fetch_add(1, Relaxed);
        if before < self.places / 2 {
            self.crowded.store(NEVER, Relaxed);
        }
    }

    fn has_room(&self) -> bool {
        self.running.load(Relaxed) < self.at_once.load(Relaxed)
    }

    /// Adds the duration of a turn to the moving average, with a weight of one eighth.
    fn took(&self, time: Duration) {
        let before = self.turn.load(Relaxed);
        self.turn
            .store(before - before / 8 + micros(time) / 8, Relaxed);
    }

    /// Returns the suggested retry delay: the drain time of the queue at least, and a turn later
    /// than the previous suggestion. A caller that returns sooner costs running calls time and is
    /// rejected again. Spacing grows with the length of the overload, because most served callers
    /// come again and take the places that are free by then.
    fn wait(&self) -> Duration {
        self.wait_at(self.began.elapsed())
    }

    fn wait_at(&self, now: Duration) -> Duration {
        let [waiting, running] =
            [&self.waiting, &self.running].map(|number| number.load(Relaxed).max(1) as u32);
        // Turns become free this often, as `running` of them proceed side by side.
        let turn = Duration::from_micros(self.turn.load(Relaxed)) / running;
        let wait = turn
            .saturating_mul(waiting)
            .clamp(SHORTEST_WAIT, LONGEST_WAIT);
        // The overload begins now unless an earlier rejection began it.
        let crowded = self.crowded.load(Relaxed).min(micros(now));
        self.crowded.store(crowded, Relaxed);
        // Each drain time of overload adds one turn to the spacing, up to the maximum.
        let rounds = (micros(now) - crowded) / micros(wait);
        let turns = 1 + rounds.min(u64::from(FARTHEST) - 1) as u32;
        let appointments = now + wait..=now + wait * FARTHEST;
        let next = Duration::from_micros(self.appointment.load(Relaxed)) + turn * turns;
        // Callers may have ignored earlier suggestions, or the queue may have drained since: the
        // sequence restarts instead of leading into the past or ever further into the future.
        let next = match appointments.contains(&next) {
            true => next,
            false => now + wait,
        };
        self.appointment.store(micros(next), Relaxed);
        (next - now).min(LONGEST_WAIT)
    }
}

impl Width {
    /// Creates a limit that replaces all earlier ones.
    pub(crate) fn new(at_once: NonZeroUsize) -> Self {
        let said = Instant::now();
        Self { at_once, said }
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

impl Turns {
    /// Creates a scheduler with a limit for all callers together.
    pub(crate) fn new(at_once: usize) -> Self {
        Self(Arc::new(Mutex::new(State {
            all: Lane::with_places(
                NonZeroUsize::new(at_once).unwrap_or(NonZeroUsize::MIN),
                QUEUE,
            ),
            tickets: 0,
            callers: BTreeMap::new(),
            order: VecDeque::new(),
            lanes: BTreeMap::new(),
        })))
    }

    /// Returns the lane called `name`. All calls of one name share it, including those queued
    /// under an earlier limit; the latest limit applies.
    pub(crate) fn lane(&self, name: &str, width: Width) -> Arc<Lane> {
        lock(&self.0).lane(name, width)
    }

    /// Waits for a turn in `lane`.
    ///
    /// # Errors
    ///
    /// Fails if the queue is full, or if the call has to leave a queue that has become full.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the queue.
    pub(crate) async fn take(&self, principal: &Principal, lane: &Arc<Lane>) -> Result<Turn, Busy> {
        let claim = Claim {
            turns: self.clone(),
            caller: Arc::clone(principal.shared_name()),
            lane: Arc::clone(lane),
        };
        let at_once = principal.quota().concurrency.get();
        let Some((ticket, answer)) = lock(&self.0).enter(&claim, at_once)? else {
            let since = Instant::now();
            return Ok(Turn { claim, since });
        };
        let mut place = Place {
            claim,
            ticket,
            answer,
        };
        match (&mut place.answer).await {
            Ok(answer) => answer.map(|since| Turn {
                claim: place.claim.clone(),
                since,
            }),
            Err(_) => unreachable!("nobody leaves the queue without an answer"),
        }
    }

    /// Returns the number of queued calls.
    #[cfg(feature = "metrics")]
    pub(crate) fn waiting(&self) -> usize {
        lock(&self.0).all.waiting.load(Relaxed)
    }
}

impl State {
    fn lane(&mut self, name: &str, width: Width) -> Arc<Lane> {
        if let Some((lane, known)) = self.lanes.get_mut(name) {
            let lane = Arc::clone(lane);
            if known.said < width.said {
                *known = width;
                lane.at_once.store(width.at_once.get(), Relaxed);
                // A higher limit may let queued calls run.
                self.give_turns();
            }
            return lane;
        }
        if self.lanes.len() >= LANES {
            self.lanes
                .retain(|_, (lane, _)| Arc::strong_count(lane) > 1);
        }
        let lane = Arc::new(Lane::new(width.at_once));
        let named = (Arc::clone(&lane), width);
        self.lanes.insert(name.to_owned(), named);
        lane
    }

    /// Grants a turn at once, or queues the call.
    fn enter(&mut self, claim: &Claim, at_once: usize) -> Result<Option<(u64, Answer)>, Busy> {
        let caller = self.callers.entry(Arc::clone(&claim.caller)).or_default();
        caller.at_once = at_once;
        // Overtakes no queued call: one that could run was granted its turn when that became
        // free.
        if self.all.has_room() && caller.running < at_once && claim.lane.has_room() {
            self.begin(&claim.caller, &claim.lane);
            return Ok(None);
        }
        if let Err(busy) = self.make_room(claim) {
            self.forget(&claim.caller);
            return Err(busy);
        }
        self.tickets += 1;
        let (sender, answer) = oneshot::channel();
        let entry = Entry {
            ticket: self.tickets,
            lane: Arc::clone(&claim.lane),
            answer: sender,
        };
        let caller = self.callers.entry(Arc::clone(&claim.caller)).or_default();
        if caller.waiting.is_empty() {
            self.order.push_back(Arc::clone(&claim.caller));
        }
        caller.waiting.push_back(entry);
        for lane in [&claim.lane, &self.all] {
            lane.waits();
        }
        Ok(Some((self.tickets, answer)))
    }

    /// Makes room for one more queued call: a full queue rejects the newest call of the caller
    /// with the most calls in it.
    fn make_room(&mut self, claim: &Claim) -> Result<(), Busy> {
        let waiting = claim.lane.waiting.load(Relaxed);
        if waiting >= claim.lane.places {
            let of_lane = |entry: &Entry| Arc::ptr_eq(&entry.lane, &claim.lane);
            let wait = claim.lane.wait();
            self.refuse_most(&claim.caller, of_lane, Busy::Lane { waiting, wait })?;
        }
        let waiting = self.all.waiting.load(Relaxed);
        if waiting >= self.all.places {
            let wait = self.all.wait();
            self.refuse_most(&claim.caller, |_| true, Busy::All { waiting, wait })?;
        }
        Ok(())
    }

    /// Rejects the newest of the matching calls of the caller with the most of them; returns the
    /// rejection as an error if that caller is `asking`.
    fn refuse_most(
        &mut self,
        asking: &Arc<str>,
        is_meant: impl Fn(&Entry) -> bool,
        busy: Busy,
    ) -> Result<(), Busy> {
        let count = |caller: &Caller| caller.waiting.iter().filter(|e| is_meant(e)).count();
        let own = self.callers.get(asking).map_or(0, count);
        let most = self.callers.iter().map(|(name, it)| (count(it), name));
        let (most, name) = most.max().ok_or(busy)?;
        // One more call would give `asking` as many: it rejects its own.
        if most <= own + 1 {
            return Err(busy);
        }
        let name = Arc::clone(name);
        let caller = self.callers.get(&name).ok_or(busy)?;
        let last = caller.waiting.iter().rfind(|entry| is_meant(entry));
        let ticket = last.ok_or(busy)?.ticket;
        if let Some(refused) = self.leave(&name, ticket) {
            refused.answer.send(Err(busy)).ok();
        }
        Ok(())
    }

    /// Removes a queued call, if it is still queued.
    fn leave(&mut self, name: &Arc<str>, ticket: u64) -> Option<Entry> {
        let caller = self.callers.get_mut(name)?;
        let place = caller.waiting.iter().position(|e| e.ticket == ticket)?;
        let entry = caller.waiting.remove(place)?;
        if caller.waiting.is_empty() {
            self.order.retain(|waiting| waiting != name);
        }
        for lane in [&entry.lane, &self.all] {
            lane.waiting.fetch_sub(1, Relaxed);
        }
        self.forget(name);
        Some(entry)
    }

    fn begin(&mut self, name: &Arc<str>, lane: &Lane) {
        for lane in [lane, &self.all] {
            lane.running.fetch_add(1, Relaxed);
        }
        self.callers.entry(Arc::clone(name)).or_default().running += 1;
    }

    /// Takes back a turn.
    fn end(&mut self, claim: &Claim) {
        for lane in [&claim.lane, &self.all] {
            lane.running.fetch_sub(1, Relaxed);
        }
        if let Some(caller) = self.callers.get_mut(&claim.caller) {
            caller.running -= 1;
        }
        self.forget(&claim.caller);
        self.give_turns();
    }

    /// Grants all free turns to queued calls, in order.
    fn give_turns(&mut self) {
        while self.all.has_room()
            && let Some((name, ticket)) = self.next()
        {
            // Round-robin: a caller that was served goes to the end.
            if let Some(entry) = self.leave(&name, ticket) {
                self.begin(&name, &entry.lane);
                // The turn counts from now on, however late its task wakes up.
                entry.answer.send(Ok(Instant::now())).ok();
            }
            if let Some(place) = self.order.iter().position(|waiting| *waiting == name) {
                self.order.remove(place);
                self.order.push_back(name);
            }
        }
    }

    /// Returns the first queued call that may run.
    fn next(&self) -> Option<(Arc<str>, u64)> {
        self.order.iter().find_map(|name| {
            let caller = self.callers.get(name)?;
            if caller.running >= caller.at_once {
                return None;
            }
            let entry = caller.waiting.iter().find(|entry| entry.lane.has_room())?;
            Some((Arc::clone(name), entry.ticket))
        })
    }

    /// Drops the entry of a caller with neither running nor queued calls.
    fn forget(&mut self, name: &Arc<str>) {
        let is_idle = |caller: &Caller| caller.running == 0 && caller.waiting.is_empty();
        if self.callers.get(name).is_some_and(is_idle) {
            self.callers.remove(name);
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let took = self.since.elapsed();
        let mut state = lock(&self.claim.turns.0);
        for lane in [&self.claim.lane, &state.all] {
            lane.took(took);
        }
        state.end(&self.claim);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = lock(&self.claim.turns.0);
        if state.leave(&self.claim.caller, self.ticket).is_some() {
            return;
        }
        // The turn was granted, but its call is gone.
        if let Ok(Ok(_)) = self.answer.try_recv() {
            state.end(&self.claim);
        }
    }
}

#[cfg(test)]
mod tests;
