//! Runs of a worker: which it knows, which it starts, and when it ends them by itself. A pure
//! state machine: messages and the time go in, actions come out.
//!
//! A run is known from its first message until `hold` after its end, so no message makes it run
//! twice. Its end is sent again with exponential backoff until the front acknowledges it. Its
//! lease is over when the worker has been cut off for too long, or its front has been silent.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::presence::{Echo, Moment};
use crate::wire::{Cut, Refusal, RunId, Word};

/// Silence of a front after which its runs are ended.
const FRONT_SILENCE: Duration = Duration::from_secs(15);
/// Pauses before an end that was not acknowledged is sent again; afterwards it can be asked for.
const END_PAUSES: [Duration; 7] = [
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
    Duration::from_secs(15),
    Duration::from_secs(30),
];
/// Time for which an id that was never run is remembered, so that a late message starts nothing.
const TOMBSTONE: Duration = Duration::from_secs(120);
/// Number of runs above the slots that wait here.
const MAX_WAITING: usize = 256;
/// Number of ids that are remembered after the end of their runs. The oldest go first, because
/// this is a bound on memory.
const MAX_REMEMBERED: usize = 100_000;

/// Something that the caller of the state machine has to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    /// Sends an event. That of an end has the stored outcome as its body, until a front has it.
    Say { run: RunId, word: Word },
    /// Starts the run that was passed in last.
    Start { run: RunId },
    /// Ends a run; [`Registry::end`] follows.
    End { run: RunId },
    /// Drops the outcome of a run.
    Forget { run: RunId },
}

/// Message that asks for a run.
#[derive(Debug, Clone)]
pub(crate) struct RunRequest {
    pub(crate) run: RunId,
    /// Start of the worker that is meant.
    pub(crate) epoch: u64,
    pub(crate) front: String,
    /// Time for which it is known after its end.
    pub(crate) hold: Duration,
    /// It belongs to a task.
    pub(crate) is_kept: bool,
}

/// State of a run.
#[derive(Debug)]
enum State {
    Running {
        /// It is being ended for this reason.
        cut: Option<Cut>,
    },
    Ended {
        cut: Option<Cut>,
        at: Moment,
        /// Time of the next retransmission, with the number of those before.
        resend: Option<(Moment, usize)>,
    },
    /// Never run, and never to be.
    Tombstone,
}

#[derive(Debug)]
struct Entry {
    front: String,
    hold: Duration,
    /// It belongs to a task: it outlives its front.
    is_kept: bool,
    state: State,
}

/// Limits of a worker.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Time of being cut off after which it ends its runs.
    pub(crate) lease: Duration,
    /// Number of runs at the same time.
    pub(crate) slots: usize,
}

/// State machine of the runs of a worker.
#[derive(Debug)]
pub(crate) struct Registry {
    pub(crate) echo: Echo,
    pub(crate) is_draining: bool,
    epoch: u64,
    limits: Limits,
    /// All runs that are known. They are many, so that nothing looks at each: the sets below name
    /// those that matter.
    runs: BTreeMap<RunId, Entry>,
    running: BTreeSet<RunId>,
    /// Runs that were started since the last tick: those that still run then are said to be
    /// accepted, so that a short run costs no message.
    started: Vec<RunId>,
    /// Runs whose ends are sent again.
    unheard: BTreeSet<RunId>,
    /// All others than those that run, by the time at which they are forgotten.
    by_expiry: BTreeSet<(Moment, RunId)>,
    /// Last sign of life of each front that has runs here.
    fronts: BTreeMap<String, Moment>,
    actions: Vec<Action>,
}

impl Registry {
    pub(crate) fn new(now: Moment, epoch: u64, limits: Limits) -> Self {
        Self {
            echo: Echo::new(now),
            is_draining: false,
            epoch,
            limits,
            runs: BTreeMap::new(),
            running: BTreeSet::new(),
            started: Vec::new(),
            unheard: BTreeSet::new(),
            by_expiry: BTreeSet::new(),
            fronts: BTreeMap::new(),
            actions: Vec::new(),
        }
    }

    /// Takes what is to be done, in this order.
    pub(crate) fn take_actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }

    /// Returns the number of runs that have not ended.
    pub(crate) fn active(&self) -> usize {
        self.running.len()
    }

    /// Returns whether no run is left that could have news for a front.
    pub(crate) fn is_idle(&self) -> bool {
        self.running.is_empty() && self.unheard.is_empty()
    }

    /// A front has sent something.
    pub(crate) fn hear_front(&mut self, now: Moment, front: &str) {
        if let Some(last) = self.fronts.get_mut(front) {
            *last = now;
        }
    }

    fn say(&mut self, run: RunId, word: Word) {
        self.actions.push(Action::Say { run, word });
    }

    /// Refuses a run. Another message with its id may be on its way still, and must not start it
    /// after the front was told that nothing was run.
    fn refuse(&mut self, now: Moment, run: RunId, reason: Refusal, text: &str) {
        if reason != Refusal::Epoch {
            self.bury(now, run);
        }
        let text = text.to_owned();
        self.say(run, Word::Refused { reason, text });
    }

    /// Handles a request for a run. `check` tells why the script can't be run here, if it can't.
    pub(crate) fn request(
        &mut self,
        now: Moment,
        request: &RunRequest,
        check: impl FnOnce() -> Result<(), (Refusal, String)>,
    ) {
        let run = request.run;
        self.hear_front(now, &request.front);
        if request.epoch != self.epoch {
            return self.refuse(now, run, Refusal::Epoch, "");
        }
        if self.runs.contains_key(&run) {
            return self.status(now, run);
        }
        if self.echo.is_away(now) {
            // It may have waited in a buffer for long, and its front may have given it up.
            return self.refuse(now, run, Refusal::Away, "");
        }
        if self.is_draining {
            return self.refuse(now, run, Refusal::Draining, "");
        }
        if self.active() >= self.limits.slots.saturating_add(MAX_WAITING) {
            return self.refuse(now, run, Refusal::Busy, "");
        }
        if let Err((reason, text)) = check() {
            return self.refuse(now, run, reason, &text);
        }
        self.make_room();
        let entry = Entry {
            front: request.front.clone(),
            hold: request.hold,
            is_kept: request.is_kept,
            state: State::Running { cut: None },
        };
        self.runs.insert(run, entry);
        self.running.insert(run);
        self.fronts.insert(request.front.clone(), now);
        self.started.push(run);
        self.actions.push(Action::Start { run });
    }

    fn make_room(&mut self) {
        if self.runs.len() >= MAX_REMEMBERED {
            self.forget_next();
        }
    }

    /// Forgets the run that is to be forgotten next, if any is.
    fn forget_next(&mut self) {
        if let Some((_, run)) = self.by_expiry.pop_first() {
            self.runs.remove(&run);
            self.unheard.remove(&run);
            self.actions.push(Action::Forget { run });
        }
    }

    /// Says what is known of a run. One that is not known will not be started any more.
    pub(crate) fn status(&mut self, now: Moment, run: RunId) {
        let word = match self.runs.get(&run).map(|entry| &entry.state) {
            Some(State::Running { .. }) => Word::Accepted,
            Some(State::Ended { cut, .. }) => Word::End {
                cut: *cut,
                size: None,
            },
            Some(State::Tombstone) => Word::Unknown,
            None => {
                self.bury(now, run);
                Word::Unknown
            }
        };
        self.say(run, word);
    }

    /// A front says that a run belongs to a task, and that it wants to hear of it from now on.
    pub(crate) fn keep(&mut self, now: Moment, run: RunId, front: &str, hold: Duration) {
        if let Some(entry) = self.runs.get_mut(&run)
            && !matches!(entry.state, State::Tombstone)
        {
            entry.is_kept = true;
            if let State::Ended { at, .. } = entry.state {
                self.by_expiry.remove(&(at.saturating_add(entry.hold), run));
                self.by_expiry.insert((at.saturating_add(hold), run));
            }
            entry.hold = hold;
            front.clone_into(&mut entry.front);
            self.fronts.insert(front.to_owned(), now);
        }
        self.status(now, run);
    }

    /// Returns whether the end of a run is kept although a front has it.
    pub(crate) fn is_kept(&self, run: RunId) -> bool {
        self.runs.get(&run).is_some_and(|entry| entry.is_kept)
    }

    /// Returns whether a run has ended.
    pub(crate) fn has_ended(&self, run: RunId) -> bool {
        let state = self.runs.get(&run).map(|entry| &entry.state);
        matches!(state, Some(State::Ended { .. }))
    }

    /// The end of the run of a task is stored.
    pub(crate) fn release(&mut self, run: RunId) {
        self.acknowledge(run);
        if let Some(entry) = self.runs.get_mut(&run) {
            entry.is_kept = false;
        }
    }

    /// A front stops. No caller waits for what runs for it, except for tasks.
    pub(crate) fn leave(&mut self, front: &str) {
        let left = self.running.iter().filter(|run| {
            let entry = &self.runs[run];
            entry.front == front && !entry.is_kept
        });
        for run in left.copied().collect::<Vec<_>>() {
            self.cut(run, Cut::Front);
        }
    }

    fn bury(&mut self, now: Moment, run: RunId) {
        self.make_room();
        let entry = Entry {
            front: String::new(),
            hold: Duration::ZERO,
            is_kept: false,
            state: State::Tombstone,
        };
        self.runs.insert(run, entry);
        self.by_expiry.insert((now + TOMBSTONE, run));
    }

    /// A front does not want a run any more.
    pub(crate) fn cancel(&mut self, now: Moment, run: RunId) {
        match self.runs.get_mut(&run).map(|entry| &mut entry.state) {
            Some(State::Running { .. }) => self.cut(run, Cut::Cancel),
            Some(State::Ended { .. } | State::Tombstone) | None => self.status(now, run),
        }
    }

    /// Ends a run that would have gone on.
    fn cut(&mut self, run: RunId, reason: Cut) {
        let entry = self.runs.get_mut(&run);
        if let Some(State::Running { cut }) = entry.map(|entry| &mut entry.state)
            && cut.is_none()
        {
            *cut = Some(reason);
            self.actions.push(Action::End { run });
        }
    }

    /// Ends every run.
    pub(crate) fn cut_all(&mut self, reason: Cut) {
        for run in self.running.iter().copied().collect::<Vec<_>>() {
            self.cut(run, reason);
        }
    }

    /// The front has the end of a run.
    pub(crate) fn acknowledge(&mut self, run: RunId) {
        let entry = self.runs.get_mut(&run);
        if let Some(State::Ended { resend, .. }) = entry.map(|entry| &mut entry.state) {
            *resend = None;
            self.unheard.remove(&run);
        }
    }

    /// A run has ended. One that ended by itself, although it was to be cut, has its own end.
    pub(crate) fn end(&mut self, now: Moment, run: RunId, is_cut: bool) {
        let Some(entry) = self.runs.get_mut(&run) else {
            return;
        };
        let State::Running { cut } = entry.state else {
            return;
        };
        let cut = cut.filter(|_| is_cut);
        entry.state = State::Ended {
            cut,
            at: now,
            resend: Some((now + END_PAUSES[0], 0)),
        };
        let expiry = now.saturating_add(entry.hold);
        self.running.remove(&run);
        self.unheard.insert(run);
        self.by_expiry.insert((expiry, run));
        self.say(run, Word::End { cut, size: None });
    }

    /// Advances by time alone.
    pub(crate) fn tick(&mut self, now: Moment) {
        if self.echo.away_for(now) >= self.limits.lease {
            self.cut_all(Cut::Lease);
        }
        self.say_accepted();
        self.end_orphans(now);
        self.send_ends_again(now);
        self.forget_old(now);
    }

    fn say_accepted(&mut self) {
        for run in std::mem::take(&mut self.started) {
            if self.running.contains(&run) {
                self.say(run, Word::Accepted);
            }
        }
    }

    fn send_ends_again(&mut self, now: Moment) {
        let mut resent = Vec::new();
        for run in &self.unheard {
            let entry = self.runs.get_mut(run).map(|entry| &mut entry.state);
            if let Some(State::Ended { cut, resend, .. }) = entry
                && let Some((at, count)) = *resend
                && now >= at
            {
                let pause = END_PAUSES.get(count + 1);
                *resend = pause.map(|pause| (now + *pause, count + 1));
                resent.push((*run, *cut, resend.is_some()));
            }
        }
        for (run, cut, is_sent_again) in resent {
            if !is_sent_again {
                self.unheard.remove(&run);
            }
            self.say(run, Word::End { cut, size: None });
        }
    }

    /// Ends the runs of silent fronts. While the worker is away, it can't hear any of them.
    fn end_orphans(&mut self, now: Moment) {
        if self.echo.trusted_from(now).is_none() {
            for last in self.fronts.values_mut() {
                *last = now.max(*last);
            }
            return;
        }
        let silent = |last: &Moment| now.saturating_sub(*last) >= FRONT_SILENCE;
        let orphans = self.running.iter().filter(|run| {
            let entry = &self.runs[run];
            let last = self.fronts.get(&entry.front);
            !entry.is_kept && last.is_some_and(silent)
        });
        for run in orphans.copied().collect::<Vec<_>>() {
            self.cut(run, Cut::Front);
        }
    }

    fn forget_old(&mut self, now: Moment) {
        while self.by_expiry.first().is_some_and(|(at, _)| now >= *at) {
            self.forget_next();
        }
        let (runs, running) = (&self.runs, &self.running);
        self.fronts
            .retain(|front, _| running.iter().any(|run| runs[run].front == *front));
    }
}
