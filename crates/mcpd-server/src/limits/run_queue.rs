//! Fair scheduler for runs: round-robin over callers, with concurrency limits for the server, for
//! each script and for each caller. A call waits for its turn here.
//!
//! The FIFO queue of `mcpd_exec::Executor` comes after it. That one bounds all processes of the
//! program, probes included, and knows no callers. This scheduler releases no more calls than the
//! executor runs at a time, so a released call waits there only for probes, and for other users of
//! a shared executor.
//!
//! Backpressure: when a queue is full, the newest call of the caller with the most queued calls
//! is rejected, so a busy caller displaces its own calls before those of others. A rejected call
//! gets a suggested retry delay. Delays are handed out in sequence (a backoff), so that rejected
//! callers do not all return at once:
//!
//! ```text
//! now              now + drain       previous       next           now + 8 × drain
//!  |--------------------|----------------|------------|------------------|
//!                       ^ earliest       |<- k steps->|                  ^ latest
//!
//! drain  time until all calls queued now have run
//! step   mean time between two permits that become free
//! k      1 + drain times since the overload began, at most 8
//! ```
//!
//! A `next` outside of these two bounds restarts the sequence at the earliest.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use mcpd_protocol::jsonrpc::ErrorObject;

use crate::limits::rate_limit::retry_later_error;
use crate::policy::concurrency::ConcurrencyLimit;
use crate::policy::principal::Principal;
use crate::support::sync::lock;

mod script_queue;

pub(crate) use script_queue::ScriptQueue;

/// Maximum number of queued calls in all.
const MAX_QUEUED_CALLS: usize = 1024;
/// Maximum number of queued calls of one script.
const MAX_QUEUED_CALLS_PER_SCRIPT: usize = 256;
/// Number of script queues from which idle ones are dropped before another is added.
const MAX_SCRIPT_QUEUES: usize = 1024;
/// Assumed duration of a run before the first one has been measured.
const INITIAL_RUN_TIME: Duration = Duration::from_millis(100);
/// Bounds of the suggested retry delay.
const MIN_RETRY_DELAY: Duration = Duration::from_millis(100);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(30);
/// Upper bound of the suggested retry delay as a multiple of the current drain time, and of the
/// spacing between two suggestions as a multiple of the interval between two free permits.
const MAX_RETRY_FACTOR: u32 = 8;

/// Scheduler state shared by all clones.
#[derive(Debug, Clone)]
pub(crate) struct RunQueue(Arc<Mutex<QueueState>>);

/// Permission to run, returned when dropped.
#[derive(Debug)]
pub(crate) struct RunPermit {
    origin: CallOrigin,
    since: Instant,
}

/// Caller and script queue that a permit or a queued call belongs to.
#[derive(Debug, Clone)]
struct CallOrigin {
    queue: RunQueue,
    caller: Arc<str>,
    script_queue: Arc<ScriptQueue>,
}

/// Rejection of a call because a queue is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Busy {
    #[error("run a script: {waiting} calls of it are already waiting")]
    Script { waiting: usize, wait: Duration },
    #[error("run a script: {waiting} calls are already waiting")]
    Server { waiting: usize, wait: Duration },
}

impl Busy {
    /// Time after which another attempt makes sense.
    pub(crate) fn wait(self) -> Duration {
        match self {
            Self::Script { wait, .. } | Self::Server { wait, .. } => wait,
        }
    }

    /// Name of this ending in metrics and in the audit log.
    pub(crate) const NAME: &'static str = "busy";
}

#[derive(Debug)]
struct QueueState {
    /// Limits and counters over all script queues.
    all: ScriptQueue,
    last_ticket: u64,
    /// Callers with running or queued calls.
    callers: BTreeMap<Arc<str>, CallerQueue>,
    /// Callers with queued calls; the first is next.
    waiting_callers: VecDeque<Arc<str>>,
    /// Script queues by name, each with the latest limit set for it.
    script_queues: BTreeMap<String, (Arc<ScriptQueue>, ConcurrencyLimit)>,
}

#[derive(Debug, Default)]
struct CallerQueue {
    limit: usize,
    running: usize,
    /// Oldest first.
    waiting: VecDeque<QueueEntry>,
}

#[derive(Debug)]
struct QueueEntry {
    ticket: u64,
    script_queue: Arc<ScriptQueue>,
    decision: oneshot::Sender<Result<Instant, Busy>>,
}

/// Queued call; dropping it leaves the queue.
struct QueuedCall {
    origin: CallOrigin,
    ticket: u64,
    decision: Decision,
}

/// Decision on a queued call: the time since when it may run, or a rejection.
type Decision = oneshot::Receiver<Result<Instant, Busy>>;

/// Error of a call that a full queue rejects. It is an error and no result, because the client
/// can retry and the model need not know.
pub(crate) fn busy_error(subject: &str, busy: Busy) -> ErrorObject {
    let (reason, wait) = match busy {
        Busy::Script { waiting, wait } => {
            let reason = format!("{subject} is busy: {waiting} calls of it are already waiting");
            (reason, wait)
        }
        Busy::Server { waiting, wait } => {
            let reason = format!("The server is busy: {waiting} calls are already waiting");
            (reason, wait)
        }
    };
    retry_later_error(&reason, wait)
}

impl RunQueue {
    /// Creates a scheduler with a limit for all callers together.
    pub(crate) fn new(limit: usize) -> Self {
        Self(Arc::new(Mutex::new(QueueState {
            all: ScriptQueue::with_capacity(
                NonZeroUsize::new(limit).unwrap_or(NonZeroUsize::MIN),
                MAX_QUEUED_CALLS,
            ),
            last_ticket: 0,
            callers: BTreeMap::new(),
            waiting_callers: VecDeque::new(),
            script_queues: BTreeMap::new(),
        })))
    }

    /// Returns the queue called `name`. All calls of one name share it, including those queued
    /// under an earlier limit; the latest limit applies.
    pub(crate) fn script_queue(&self, name: &str, limit: ConcurrencyLimit) -> Arc<ScriptQueue> {
        let mut state = lock(&self.0);
        if let Some((script_queue, known)) = state.script_queues.get_mut(name) {
            let script_queue = Arc::clone(script_queue);
            if known.set_at < limit.set_at {
                *known = limit;
                script_queue.limit.store(limit.limit.get(), Relaxed);
                // A higher limit may let queued calls run.
                state.grant_permits();
            }
            return script_queue;
        }
        if state.script_queues.len() >= MAX_SCRIPT_QUEUES {
            state
                .script_queues
                .retain(|_, (script_queue, _)| Arc::strong_count(script_queue) > 1);
        }
        let script_queue = Arc::new(ScriptQueue::new(limit.limit));
        let named = (Arc::clone(&script_queue), limit);
        state.script_queues.insert(name.to_owned(), named);
        script_queue
    }

    /// Waits for a permit in `script_queue`.
    ///
    /// # Errors
    ///
    /// Fails if the queue is full, or if the call has to leave a queue that has become full.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the queue.
    pub(crate) async fn acquire(
        &self,
        principal: &Principal,
        script_queue: &Arc<ScriptQueue>,
    ) -> Result<RunPermit, Busy> {
        let origin = CallOrigin {
            queue: self.clone(),
            caller: Arc::clone(principal.shared_name()),
            script_queue: Arc::clone(script_queue),
        };
        let limit = principal.quota().concurrency.get();
        let Some((ticket, decision)) = lock(&self.0).enqueue(&origin, limit)? else {
            let since = Instant::now();
            return Ok(RunPermit { origin, since });
        };
        let mut place = QueuedCall {
            origin,
            ticket,
            decision,
        };
        match (&mut place.decision).await {
            Ok(decision) => decision.map(|since| RunPermit {
                origin: place.origin.clone(),
                since,
            }),
            Err(_) => unreachable!("nobody leaves the queue without an answer"),
        }
    }

    /// Returns the number of calls that run at a time.
    #[cfg(feature = "metrics")]
    pub(crate) fn limit(&self) -> usize {
        lock(&self.0).all.limit.load(Relaxed)
    }

    /// Returns the number of calls that can be queued.
    #[cfg(feature = "metrics")]
    pub(crate) fn capacity(&self) -> usize {
        lock(&self.0).all.capacity
    }

    /// Returns the number of queued calls.
    pub(crate) fn waiting(&self) -> usize {
        lock(&self.0).all.waiting.load(Relaxed)
    }
}

impl QueueState {
    /// Grants a permit at once, or queues the call.
    fn enqueue(
        &mut self,
        origin: &CallOrigin,
        limit: usize,
    ) -> Result<Option<(u64, Decision)>, Busy> {
        let caller = self.callers.entry(Arc::clone(&origin.caller)).or_default();
        caller.limit = limit;
        // Overtakes no queued call: one that could run was granted its permit when that became
        // free.
        if self.all.has_free_slot() && caller.running < limit && origin.script_queue.has_free_slot()
        {
            self.start_run(&origin.caller, &origin.script_queue);
            return Ok(None);
        }
        if let Err(busy) = self.make_room(origin) {
            self.forget_if_idle(&origin.caller);
            return Err(busy);
        }
        self.last_ticket += 1;
        let (sender, decision) = oneshot::channel();
        let entry = QueueEntry {
            ticket: self.last_ticket,
            script_queue: Arc::clone(&origin.script_queue),
            decision: sender,
        };
        let caller = self.callers.entry(Arc::clone(&origin.caller)).or_default();
        if caller.waiting.is_empty() {
            self.waiting_callers.push_back(Arc::clone(&origin.caller));
        }
        caller.waiting.push_back(entry);
        for script_queue in [&origin.script_queue, &self.all] {
            script_queue.add_waiting();
        }
        Ok(Some((self.last_ticket, decision)))
    }

    /// Makes room for one more queued call: a full queue rejects the newest call of the caller
    /// with the most calls in it.
    fn make_room(&mut self, origin: &CallOrigin) -> Result<(), Busy> {
        let waiting = origin.script_queue.waiting.load(Relaxed);
        if waiting >= origin.script_queue.capacity {
            let is_of_script =
                |entry: &QueueEntry| Arc::ptr_eq(&entry.script_queue, &origin.script_queue);
            let wait = origin.script_queue.retry_delay();
            self.reject_newest(&origin.caller, is_of_script, Busy::Script { waiting, wait })?;
        }
        let waiting = self.all.waiting.load(Relaxed);
        if waiting >= self.all.capacity {
            let wait = self.all.retry_delay();
            self.reject_newest(&origin.caller, |_| true, Busy::Server { waiting, wait })?;
        }
        Ok(())
    }

    /// Rejects the newest of the matching calls of the caller with the most of them; returns the
    /// rejection as an error if that caller is `asking`.
    fn reject_newest(
        &mut self,
        asking: &Arc<str>,
        is_meant: impl Fn(&QueueEntry) -> bool,
        busy: Busy,
    ) -> Result<(), Busy> {
        let count = |caller: &CallerQueue| caller.waiting.iter().filter(|e| is_meant(e)).count();
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
        if let Some(refused) = self.remove_call(&name, ticket) {
            refused.decision.send(Err(busy)).ok();
        }
        Ok(())
    }

    /// Removes a queued call, if it is still queued.
    fn remove_call(&mut self, name: &Arc<str>, ticket: u64) -> Option<QueueEntry> {
        let caller = self.callers.get_mut(name)?;
        let place = caller.waiting.iter().position(|e| e.ticket == ticket)?;
        let entry = caller.waiting.remove(place)?;
        if caller.waiting.is_empty() {
            self.waiting_callers.retain(|waiting| waiting != name);
        }
        for script_queue in [&entry.script_queue, &self.all] {
            script_queue.waiting.fetch_sub(1, Relaxed);
        }
        self.forget_if_idle(name);
        Some(entry)
    }

    fn start_run(&mut self, name: &Arc<str>, script_queue: &ScriptQueue) {
        for script_queue in [script_queue, &self.all] {
            script_queue.running.fetch_add(1, Relaxed);
        }
        self.callers.entry(Arc::clone(name)).or_default().running += 1;
    }

    /// Takes back a permit.
    fn end_run(&mut self, origin: &CallOrigin) {
        for script_queue in [&origin.script_queue, &self.all] {
            script_queue.running.fetch_sub(1, Relaxed);
        }
        if let Some(caller) = self.callers.get_mut(&origin.caller) {
            caller.running -= 1;
        }
        self.forget_if_idle(&origin.caller);
        self.grant_permits();
    }

    /// Grants all free permits to queued calls, in order.
    fn grant_permits(&mut self) {
        while self.all.has_free_slot()
            && let Some((name, ticket)) = self.next_runnable()
        {
            // Round-robin: a caller that was served goes to the end.
            if let Some(entry) = self.remove_call(&name, ticket) {
                self.start_run(&name, &entry.script_queue);
                // The run counts from now on, however late its task wakes up.
                entry.decision.send(Ok(Instant::now())).ok();
            }
            if let Some(place) = self
                .waiting_callers
                .iter()
                .position(|waiting| *waiting == name)
            {
                self.waiting_callers.remove(place);
                self.waiting_callers.push_back(name);
            }
        }
    }

    /// Returns the first queued call that may run.
    fn next_runnable(&self) -> Option<(Arc<str>, u64)> {
        self.waiting_callers.iter().find_map(|name| {
            let caller = self.callers.get(name)?;
            if caller.running >= caller.limit {
                return None;
            }
            let entry = caller
                .waiting
                .iter()
                .find(|entry| entry.script_queue.has_free_slot())?;
            Some((Arc::clone(name), entry.ticket))
        })
    }

    /// Drops the entry of a caller with neither running nor queued calls.
    fn forget_if_idle(&mut self, name: &Arc<str>) {
        let is_idle = |caller: &CallerQueue| caller.running == 0 && caller.waiting.is_empty();
        if self.callers.get(name).is_some_and(is_idle) {
            self.callers.remove(name);
        }
    }
}

impl Drop for RunPermit {
    fn drop(&mut self) {
        let took = self.since.elapsed();
        let mut state = lock(&self.origin.queue.0);
        for script_queue in [&self.origin.script_queue, &state.all] {
            script_queue.record_run_time(took);
        }
        state.end_run(&self.origin);
    }
}

impl Drop for QueuedCall {
    fn drop(&mut self) {
        let mut state = lock(&self.origin.queue.0);
        if state
            .remove_call(&self.origin.caller, self.ticket)
            .is_some()
        {
            return;
        }
        // The permit was granted, but its call is gone.
        if let Ok(Ok(_)) = self.decision.try_recv() {
            state.end_run(&self.origin);
        }
    }
}

#[cfg(test)]
mod tests;
