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
/// How many lanes there may be before those are forgotten in which nobody is.
const LANES: usize = 1024;
/// How long a turn takes of which nothing is known yet.
const UNKNOWN_TURN: Duration = Duration::from_millis(100);
/// The shortest and the longest time that somebody is asked to wait before trying again.
const SHORTEST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// How many times as long as all who wait take somebody is asked to stay away at most, and how many turns later than
/// whoever was asked before.
const FARTHEST: u32 = 8;

/// Runs that are alike, such as those of one script: so many of them at a time.
#[derive(Debug)]
pub(crate) struct Lane {
    /// How many may wait.
    places: usize,
    // They change under the lock of the turns only.
    at_once: AtomicUsize,
    running: AtomicUsize,
    waiting: AtomicUsize,
    /// How long a turn took of late, in microseconds.
    turn: AtomicU64,
    began: Instant,
    /// When the last who was refused was asked to come back, in microseconds after it `began`.
    appointment: AtomicU64,
    /// When the first was refused since there was room for many, likewise.
    crowded: AtomicU64,
}

/// Nobody has been refused.
const NEVER: u64 = u64::MAX;

/// How many may run at a time in a lane that has a name, and since when that has been said.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Width {
    at_once: NonZeroUsize,
    said: Instant,
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
    /// Those that have names, whoever was the last to say how wide they are.
    lanes: BTreeMap<String, (Arc<Lane>, Width)>,
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
    answer: oneshot::Sender<Result<Instant, Busy>>,
}

/// A place in the queue, given up when dropped.
struct Place {
    claim: Claim,
    ticket: u64,
    answer: Answer,
}

/// What becomes of a place: a turn since then, if all goes well.
type Answer = oneshot::Receiver<Result<Instant, Busy>>;

impl Default for Lane {
    /// As many at a time as there are.
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

    /// One more waits.
    fn waits(&self) {
        let before = self.waiting.fetch_add(1, Relaxed);
        if before < self.places / 2 {
            self.crowded.store(NEVER, Relaxed);
        }
    }

    fn has_room(&self) -> bool {
        self.running.load(Relaxed) < self.at_once.load(Relaxed)
    }

    /// Remembers how long a turn has taken: each counts for less the more have been since.
    fn took(&self, time: Duration) {
        let before = self.turn.load(Relaxed);
        self.turn
            .store(before - before / 8 + micros(time) / 8, Relaxed);
    }

    /// How long to stay away: as long as it takes until all have run that wait now, and a turn longer than whoever was
    /// asked before. Who comes back any sooner takes time from those who run, and is refused again. The longer there
    /// are too many, the more turns it is: most who are served come again, and take the places that are free by then.
    fn wait(&self) -> Duration {
        self.wait_at(self.began.elapsed())
    }

    fn wait_at(&self, now: Duration) -> Duration {
        let [waiting, running] =
            [&self.waiting, &self.running].map(|number| number.load(Relaxed).max(1) as u32);
        let turn = Duration::from_micros(self.turn.load(Relaxed)) / running;
        let wait = turn
            .saturating_mul(waiting)
            .clamp(SHORTEST_WAIT, LONGEST_WAIT);
        let crowded = self.crowded.load(Relaxed).min(micros(now));
        self.crowded.store(crowded, Relaxed);
        let rounds = (micros(now) - crowded) / micros(wait);
        let turns = 1 + rounds.min(u64::from(FARTHEST) - 1) as u32;
        let appointments = now + wait..=now + wait * FARTHEST;
        let next = Duration::from_micros(self.appointment.load(Relaxed)) + turn * turns;
        let next = match appointments.contains(&next) {
            true => next,
            false => now + wait,
        };
        self.appointment.store(micros(next), Relaxed);
        (next - now).min(LONGEST_WAIT)
    }
}

impl Width {
    /// So many at a time, from now on.
    pub(crate) fn new(at_once: NonZeroUsize) -> Self {
        let said = Instant::now();
        Self { at_once, said }
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

impl Turns {
    /// So many turns at a time.
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

    /// The lane called `name`. It is the same for all of that name, so that those count who came when it had another
    /// width; of several widths the one that was said last holds.
    pub(crate) fn lane(&self, name: &str, width: Width) -> Arc<Lane> {
        lock(&self.0).lane(name, width)
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

    /// How many wait.
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
                // There may be room for those who wait.
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
            lane.waits();
        }
        Ok(Some((self.tickets, answer)))
    }

    /// Sees to it that one more can wait: where a queue is full, the last call of whoever has most in it is refused.
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

    /// Takes a turn back.
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

    /// Gives all turns there are to whoever is next.
    fn give_turns(&mut self) {
        while self.all.has_room()
            && let Some((name, ticket)) = self.next()
        {
            // Whoever has had a turn is the last to have another.
            if let Some(entry) = self.leave(&name, ticket) {
                self.begin(&name, &entry.lane);
                // It counts from now on, however long it takes the call to wake up.
                entry.answer.send(Ok(Instant::now())).ok();
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
        if let Ok(Ok(_)) = self.answer.try_recv() {
            state.end(&self.claim);
        }
    }
}

#[cfg(test)]
mod tests;
