//! Who may run next: so many at a time, of them so many of one script and of one caller. Those who wait are served
//! caller by caller, so nobody waits for all that another has brought; where there is no more room to wait, the caller
//! who takes most of it gives way.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::principal::Principal;
use crate::sync::lock;

/// How many may wait in all.
const QUEUE: usize = 1024;
/// How many may wait in one lane.
const LANE_QUEUE: usize = 256;
/// How long a turn takes of which nothing is known yet.
const UNKNOWN_TURN: Duration = Duration::from_millis(100);
/// The shortest and the longest time that somebody is asked to wait before trying again.
const SHORTEST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Runs that are alike, such as those of one script: so many of them at a time.
#[derive(Debug)]
pub(crate) struct Lane {
    at_once: usize,
    // They change under the lock of the turns only.
    running: AtomicUsize,
    waiting: AtomicUsize,
    /// How long a turn took of late, in microseconds.
    turn: AtomicU64,
    /// How many were asked to come back.
    deferred: AtomicU64,
}

/// Those who run and those who wait for it. All clones are one.
#[derive(Debug, Clone)]
pub(crate) struct Turns(Arc<Mutex<State>>);

/// The right to run, given back when dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    claim: Claim,
    since: Instant,
}

/// Whose turn it is or will be, and in which lane.
#[derive(Debug, Clone)]
struct Claim {
    turns: Turns,
    caller: Arc<str>,
    lane: Arc<Lane>,
}

/// As many as may are waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Busy {
    #[error("run a script: {waiting} calls of it are waiting already")]
    Lane { waiting: usize, wait: Duration },
    #[error("run a script: {waiting} calls are waiting already")]
    All { waiting: usize, wait: Duration },
}

impl Busy {
    /// How a call ends that is refused so, in a word.
    pub(crate) const NAME: &'static str = "busy";
}

#[derive(Debug)]
struct State {
    /// In which everybody is.
    all: Lane,
    tickets: u64,
    /// Those who run or wait.
    callers: BTreeMap<Arc<str>, Caller>,
    /// Those who wait; the first is next.
    order: VecDeque<Arc<str>>,
}

#[derive(Debug, Default)]
struct Caller {
    at_once: usize,
    running: usize,
    /// The oldest first.
    waiting: VecDeque<Entry>,
}

#[derive(Debug)]
struct Entry {
    ticket: u64,
    lane: Arc<Lane>,
    answer: oneshot::Sender<Result<(), Busy>>,
}

/// A place in the queue, given up when dropped.
struct Place {
    claim: Claim,
    ticket: u64,
    answer: Answer,
}

/// What becomes of a place.
type Answer = oneshot::Receiver<Result<(), Busy>>;

impl Lane {
    pub(crate) fn new(at_once: NonZeroUsize) -> Self {
        Self {
            at_once: at_once.get(),
            running: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            turn: AtomicU64::new(micros(UNKNOWN_TURN)),
            deferred: AtomicU64::new(0),
        }
    }

    fn has_room(&self) -> bool {
        self.running.load(Relaxed) < self.at_once
    }

    /// Remembers how long a turn has taken: each counts for less the more have been since.
    fn took(&self, time: Duration) {
        let before = self.turn.load(Relaxed);
        self.turn
            .store(before - before / 8 + micros(time) / 8, Relaxed);
    }

    /// How long to stay away: about as long as it takes until all have run that wait now, and up to twice as long, each a
    /// little longer than the one before. All who are told the same come back at the same moment.
    fn wait(&self) -> Duration {
        let [waiting, running] =
            [&self.waiting, &self.running].map(|number| number.load(Relaxed).max(1) as u64);
        let turns = self.turn.load(Relaxed).saturating_mul(waiting);
        let wait = Duration::from_micros(turns / running).clamp(SHORTEST_WAIT, LONGEST_WAIT);
        let place = self.deferred.fetch_add(1, Relaxed) % waiting;
        (wait + wait.mul_f64(place as f64 / waiting as f64)).min(LONGEST_WAIT)
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

impl Turns {
    /// So many turns at a time.
    pub(crate) fn new(at_once: usize) -> Self {
        Self(Arc::new(Mutex::new(State {
            all: Lane::new(NonZeroUsize::new(at_once).unwrap_or(NonZeroUsize::MIN)),
            tickets: 0,
            callers: BTreeMap::new(),
            order: VecDeque::new(),
        })))
    }

    /// Waits for a turn in `lane`.
    ///
    /// # Errors
    ///
    /// There is no room to wait, or no longer.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up the place in the queue.
    pub(crate) async fn take(&self, principal: &Principal, lane: &Arc<Lane>) -> Result<Turn, Busy> {
        let claim = Claim {
            turns: self.clone(),
            caller: Arc::clone(principal.shared_name()),
            lane: Arc::clone(lane),
        };
        let at_once = principal.quota().concurrency.get();
        let Some((ticket, answer)) = lock(&self.0).enter(&claim, at_once)? else {
            return Ok(Turn::new(claim));
        };
        let mut place = Place {
            claim,
            ticket,
            answer,
        };
        match (&mut place.answer).await {
            Ok(answer) => answer.map(|()| Turn::new(place.claim.clone())),
            Err(_) => unreachable!("nobody leaves the queue without an answer"),
        }
    }

    /// How many wait.
    #[cfg(feature = "metrics")]
    pub(crate) fn waiting(&self) -> usize {
        lock(&self.0).all.waiting.load(Relaxed)
    }
}

impl State {
    /// Gives a turn at once, or a place in the queue.
    fn enter(&mut self, claim: &Claim, at_once: usize) -> Result<Option<(u64, Answer)>, Busy> {
        let caller = self.callers.entry(Arc::clone(&claim.caller)).or_default();
        caller.at_once = at_once;
        // Overtakes nobody: whoever could run has been given a turn when it became free.
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
            lane.waiting.fetch_add(1, Relaxed);
        }
        Ok(Some((self.tickets, answer)))
    }

    /// Sees to it that one more can wait: where a queue is full, the last call of whoever has most in it is refused.
    fn make_room(&mut self, claim: &Claim) -> Result<(), Busy> {
        let waiting = claim.lane.waiting.load(Relaxed);
        if waiting >= LANE_QUEUE {
            let of_lane = |entry: &Entry| Arc::ptr_eq(&entry.lane, &claim.lane);
            let wait = claim.lane.wait();
            self.refuse_most(&claim.caller, of_lane, Busy::Lane { waiting, wait })?;
        }
        let waiting = self.all.waiting.load(Relaxed);
        if waiting >= QUEUE {
            let wait = self.all.wait();
            self.refuse_most(&claim.caller, |_| true, Busy::All { waiting, wait })?;
        }
        Ok(())
    }

    /// Refuses the last of the calls in question of whoever has most of them; that is an error if it is `asking`.
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
        // With one more it would have as many.
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

    /// Takes a place out of the queue, if it is still there.
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

    /// Takes a turn back, and gives it to whoever is next.
    fn end(&mut self, claim: &Claim) {
        for lane in [&claim.lane, &self.all] {
            lane.running.fetch_sub(1, Relaxed);
        }
        if let Some(caller) = self.callers.get_mut(&claim.caller) {
            caller.running -= 1;
        }
        self.forget(&claim.caller);
        while self.all.has_room()
            && let Some((name, ticket)) = self.next()
        {
            // Whoever has had a turn is the last to have another.
            if let Some(entry) = self.leave(&name, ticket) {
                self.begin(&name, &entry.lane);
                entry.answer.send(Ok(())).ok();
            }
            if let Some(place) = self.order.iter().position(|waiting| *waiting == name) {
                self.order.remove(place);
                self.order.push_back(name);
            }
        }
    }

    /// The first that may run.
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

    /// Nothing is kept of a caller that neither runs nor waits.
    fn forget(&mut self, name: &Arc<str>) {
        let is_idle = |caller: &Caller| caller.running == 0 && caller.waiting.is_empty();
        if self.callers.get(name).is_some_and(is_idle) {
            self.callers.remove(name);
        }
    }
}

impl Turn {
    fn new(claim: Claim) -> Self {
        let since = Instant::now();
        Self { claim, since }
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
        // A turn that came too late.
        if let Ok(Ok(())) = self.answer.try_recv() {
            state.end(&self.claim);
        }
    }
}

#[cfg(test)]
mod tests;
