//! Delivery of runs by a front: from a call to the one answer that it gets, whatever happens to
//! workers and connections meanwhile. A pure state machine: messages and the time go in, actions
//! come out.
//!
//! ```text
//!          no worker            refused, or nobody subscribes
//!   ┌──► waiting ───► sent ──────────────────┐
//!   │               │  │ accepted            ▼
//!   │               │  ▼               another worker
//! call              │ running ── lost ──► may be run again? ── no ──► lost
//!                   │  │                              └ yes ──► another worker
//!               end └──┤ end
//!                      ▼
//!                    ended
//! ```
//!
//! A run that was sent is sent again (retransmission) under the same identifier until it is
//! accepted; another attempt has another identifier. What is done when contact is lost is the
//! table in [`verdict`].

mod acks;
mod adoption;
mod attempt;
mod cancels;
mod events;
mod pings;
mod verdict;

use std::collections::BTreeMap;
use std::time::Duration;

use self::acks::Acks;
use self::attempt::{Attempt, Step};
use self::cancels::Cancels;
use self::pings::Pings;
pub(crate) use self::verdict::Rerun;
use self::verdict::{Judgement, MAX_RERUNS, is_replaced};
use crate::placement::{Chance, Choice, InFlight, Requirements, Search, label_set};
use crate::presence::{Moment, Presence};
use crate::wire::{Here, Refusal, RunId};

/// Time for which a call waits for a worker that can take it.
const MAX_WAIT: Duration = Duration::from_secs(5);
/// Time for which one waits whose version of the script is replaced everywhere.
const MAX_WAIT_FOR_VERSION: Duration = Duration::from_secs(1);
/// Interval at which a waiting call looks for a worker.
const RETRY: Duration = Duration::from_millis(250);
/// Number of workers that may refuse a call for lack of slots before its caller is told.
const MAX_BUSY: u32 = 3;

/// Number of a call within this front.
pub(crate) type CallId = u64;

/// A call to deliver.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    pub(crate) requirements: Requirements,
    /// Version of the script whose description the caller has seen.
    pub(crate) digest: String,
    pub(crate) rerun: Rerun,
}

/// Answer to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The end that was passed in last is that of this call.
    Ended,
    /// It may have been done, completely, in part, or not at all.
    Lost { node: String },
    /// Nothing was run: every worker that was asked is busy.
    Busy,
    /// Nothing was run: no worker could be asked.
    Unavailable,
    /// Nothing was run, for this reason, and no other worker can.
    Refused { reason: Refusal, text: String },
}

/// Something that the caller of the state machine has to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    /// Sends the run to the worker. `send` counts how often it was sent before.
    Run {
        call: CallId,
        run: RunId,
        node: String,
        epoch: u64,
        send: u8,
    },
    Ack {
        runs: Vec<RunId>,
        node: String,
    },
    Cancel {
        run: RunId,
        node: String,
    },
    Status {
        run: RunId,
        node: String,
    },
    /// Says that a run belongs to a task, and asks for its state.
    Keep {
        run: RunId,
        node: String,
    },
    Ping {
        node: String,
    },
    /// Answers the call; it is the last action for it.
    Finish {
        call: CallId,
        run: Option<RunId>,
        answer: Answer,
    },
    /// Records that the run is made again, because its worker `lost` was lost.
    Rerun {
        call: CallId,
        lost: String,
    },
}

/// Call that has no answer yet.
#[derive(Debug)]
struct Call {
    order: Order,
    next_run: RunId,
    current: Option<Attempt>,
    /// Workers that are not asked again.
    excluded: Vec<String>,
    since: Moment,
    retry_at: Moment,
    busy: u32,
    reruns: u32,
    /// Last refusal that another worker may answer differently.
    refusal: Option<(Refusal, String)>,
    /// Worker at which an earlier attempt was lost.
    lost: Option<String>,
}

impl Call {
    fn new(now: Moment, next_run: RunId, order: Order) -> Self {
        Self {
            order,
            next_run,
            current: None,
            excluded: Vec::new(),
            since: now,
            retry_at: now,
            busy: 0,
            reruns: 0,
            refusal: None,
            lost: None,
        }
    }
}

/// Catalogue of a worker, asked for a version of a script.
pub(crate) trait Catalogues {
    /// Returns whether the worker has the script in this version.
    fn has(&self, here: &Here, path: &str, digest: &str) -> bool;

    /// Returns whether the worker has the script in any version.
    fn has_any(&self, here: &Here, path: &str) -> bool;
}

/// State machine of all calls of a front.
#[derive(Debug)]
pub(crate) struct Delivery<C> {
    pub(crate) presence: Presence,
    pub(crate) catalogues: C,
    /// Messages can be sent. Without a connection nothing is placed, because nothing would be run.
    pub(crate) is_connected: bool,
    lease: Duration,
    calls: BTreeMap<CallId, Call>,
    by_run: BTreeMap<u128, CallId>,
    in_flight: InFlight,
    pings: Pings,
    acks: Acks,
    cancels: Cancels,
    chance: Chance,
    actions: Vec<Action>,
}

impl<C: Catalogues> Delivery<C> {
    pub(crate) fn new(now: Moment, lease: Duration, seed: u64, catalogues: C) -> Self {
        Self {
            presence: Presence::new(now),
            catalogues,
            is_connected: true,
            lease,
            calls: BTreeMap::new(),
            by_run: BTreeMap::new(),
            in_flight: InFlight::new(),
            pings: Pings::default(),
            acks: Acks::default(),
            cancels: Cancels::default(),
            chance: Chance::new(seed),
            actions: Vec::new(),
        }
    }

    /// Takes what is to be done, in this order.
    pub(crate) fn take_actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }

    /// Returns whether every call has its answer.
    #[cfg(test)]
    pub(crate) fn has_answered_all(&self) -> bool {
        self.calls.is_empty()
    }

    /// Returns the number of calls without an answer that no worker has been found for.
    pub(crate) fn waiting(&self) -> usize {
        let calls = self.calls.values();
        calls.filter(|call| call.current.is_none()).count()
    }

    /// Returns the number of calls without a worker, by the labels that they need.
    pub(crate) fn waiting_by_labels(&self) -> BTreeMap<String, u64> {
        let mut waiting = BTreeMap::new();
        for call in self.calls.values().filter(|call| call.current.is_none()) {
            *waiting
                .entry(label_set(&call.order.requirements.labels))
                .or_default() += 1;
        }
        waiting
    }

    /// Begins the delivery of a call. `id` are random bits.
    pub(crate) fn call(&mut self, now: Moment, call: CallId, id: u128, order: Order) {
        let run = RunId { id, attempt: 0 };
        self.by_run.insert(id, call);
        self.calls.insert(call, Call::new(now, run, order));
        self.place(now, call);
    }

    /// Ends the delivery of a call whose caller does not want it any more.
    pub(crate) fn hang_up(&mut self, now: Moment, call: CallId) {
        self.give_up_attempt(now, call);
        self.remove(call);
    }

    /// Records a heartbeat of any node. Returns whether a catalogue may be new.
    pub(crate) fn hear_here(&mut self, now: Moment, here: Here) -> bool {
        self.presence.hear(now, here)
    }

    /// Records that a worker has answered a ping.
    pub(crate) fn hear_pong(&mut self, now: Moment, node: &str, epoch: u64) {
        self.presence.hear_from(now, node, epoch);
    }

    /// Records that the server has no subscriber for a ping.
    pub(crate) fn miss_ping(&mut self, now: Moment, node: &str) {
        self.presence.miss(now, node);
    }

    /// Records that the server had no subscriber for the run that was sent as number `send`.
    pub(crate) fn miss_run(&mut self, now: Moment, run: RunId, send: u8) {
        let Some((call, attempt)) = self.current(run) else {
            return;
        };
        let node = attempt.node.clone();
        // An earlier message of this run may have arrived, and its answer may be lost.
        let is_certain = send == 0 && attempt.sends == 1 && !attempt.is_accepted;
        self.presence.miss(now, &node);
        if is_certain {
            self.exclude_and_place(now, call, node);
        }
    }

    /// Returns the call that the run is the current attempt of, if that is at this worker.
    pub(crate) fn call_of(&self, run: RunId, node: &str) -> Option<CallId> {
        let call = *self.by_run.get(&run.id)?;
        let attempt = self.calls.get(&call)?.current.as_ref()?;
        (attempt.run == run && attempt.node == node).then_some(call)
    }

    fn current(&mut self, run: RunId) -> Option<(CallId, &mut Attempt)> {
        let call = *self.by_run.get(&run.id)?;
        let attempt = self.calls.get_mut(&call)?.current.as_mut()?;
        (attempt.run == run).then_some((call, attempt))
    }

    fn exclude_and_place(&mut self, now: Moment, call: CallId, node: String) {
        self.drop_attempt(call);
        if let Some(state) = self.calls.get_mut(&call) {
            state.excluded.push(node);
        }
        self.place(now, call);
    }

    /// Sends the call to a worker, if there is one.
    fn place(&mut self, now: Moment, call: CallId) {
        let Some(state) = self.calls.get_mut(&call) else {
            return;
        };
        state.retry_at = now + RETRY;
        if !self.is_connected {
            return self.wait(now, call);
        }
        let (order, catalogues) = (&state.order, &self.catalogues);
        let has = |here: &Here| catalogues.has(here, &order.requirements.path, &order.digest);
        let search = Search {
            requirements: &order.requirements,
            has,
            excluded: &state.excluded,
            in_flight: &self.in_flight,
        };
        match search.choose(&self.presence.placeable(now), &mut self.chance) {
            Choice::Worker { node, epoch } => {
                let run = state.next_run;
                state.next_run = run.next();
                state.current = Some(Attempt::new(now, run, node.clone(), epoch));
                *self.in_flight.entry(node.clone()).or_default() += 1;
                let send = 0;
                self.actions.push(Action::Run {
                    call,
                    run,
                    node,
                    epoch,
                    send,
                });
            }
            Choice::Busy => self.finish(call, None, Answer::Busy),
            Choice::Nowhere => self.wait(now, call),
        }
    }

    /// Waits for a worker, unless it has for long enough.
    fn wait(&mut self, now: Moment, call: CallId) {
        let Some(state) = self.calls.get_mut(&call) else {
            return;
        };
        // A worker may have come back, and one that was busy is not asked again so soon.
        state.excluded.clear();
        let is_replaced = is_replaced(&self.catalogues, &self.presence, now, &state.order);
        let waited = now.saturating_sub(state.since);
        let answer = match (&state.lost, &state.refusal) {
            _ if state.busy > 0 => Answer::Busy,
            _ if is_replaced && state.lost.is_none() && waited >= MAX_WAIT_FOR_VERSION => {
                let (reason, text) = (Refusal::Digest, String::new());
                Answer::Refused { reason, text }
            }
            _ if waited < MAX_WAIT => return,
            (Some(node), _) => Answer::Lost { node: node.clone() },
            (
                None,
                Some((
                    reason
                    @ (Refusal::Digest | Refusal::Level | Refusal::Denied | Refusal::Version),
                    text,
                )),
            ) => {
                let (reason, text) = (*reason, text.clone());
                Answer::Refused { reason, text }
            }
            (None, _) => Answer::Unavailable,
        };
        self.finish(call, None, answer);
    }

    /// Advances by time alone: sends again, gives up, asks.
    pub(crate) fn tick(&mut self, now: Moment) {
        self.presence.forget_old(now);
        for call in self.calls.keys().copied().collect::<Vec<_>>() {
            self.advance(now, call);
        }
        self.send_acks();
        self.cancels.tick(now, &mut self.actions);
        self.pings.tick(now, &self.in_flight, &mut self.actions);
    }

    fn advance(&mut self, now: Moment, call: CallId) {
        let Some(state) = self.calls.get_mut(&call) else {
            return;
        };
        let Some(attempt) = &mut state.current else {
            if now >= state.retry_at {
                self.place(now, call);
            }
            return;
        };
        let is_away = self.presence.echo.is_away(now);
        let away_for = self.presence.echo.away_for(now);
        let contact = attempt.contact(now, &self.presence);
        let judgement = verdict::judge(state.order.rerun, contact, now, self.lease);
        match judgement {
            _ if is_away && away_for > self.lease + RETURN_MARGIN => return self.lose(now, call),
            _ if is_away => return,
            Judgement::Lost | Judgement::Rerun => return self.lose(now, call),
            Judgement::Wait => {}
        }
        let may_rerun = state.order.rerun == Rerun::ReadOnly;
        let step = attempt.step(now);
        let (run, node, epoch) = (attempt.run, attempt.node.clone(), attempt.epoch);
        let send = attempt.sends.saturating_sub(1);
        match step {
            Step::Nothing => {}
            Step::Resend => self.actions.push(Action::Run {
                call,
                run,
                node,
                epoch,
                send,
            }),
            Step::Withdraw if may_rerun => self.lose(now, call),
            // A worker that does not know it promises not to start it any more.
            Step::Withdraw | Step::AskStatus => self.actions.push(Action::Status { run, node }),
        }
    }

    /// Gives an attempt up: the run is made elsewhere, or its caller learns that it is lost.
    fn lose(&mut self, now: Moment, call: CallId) {
        let Some(state) = self.calls.get(&call) else {
            return;
        };
        let Some(attempt) = &state.current else {
            return;
        };
        let (run, node) = (attempt.run, attempt.node.clone());
        let is_away = self.presence.echo.is_away(now);
        if state.order.rerun == Rerun::Never || state.reruns >= MAX_RERUNS || is_away {
            self.give_up_attempt(now, call);
            return self.finish(call, Some(run), Answer::Lost { node });
        }
        self.rerun(now, call);
    }

    /// Makes the run again, on another worker if there is one.
    fn rerun(&mut self, now: Moment, call: CallId) {
        let Some(node) = self.give_up_attempt(now, call) else {
            return;
        };
        if let Some(state) = self.calls.get_mut(&call) {
            state.reruns += 1;
            state.lost = Some(node.clone());
            state.since = now;
            state.excluded = vec![node.clone()];
            let lost = node;
            self.actions.push(Action::Rerun { call, lost });
        }
        self.place(now, call);
    }

    /// Cancels the attempt of a call, whether or not its worker hears that. Returns the worker.
    fn give_up_attempt(&mut self, now: Moment, call: CallId) -> Option<String> {
        let attempt = self.drop_attempt(call)?;
        let node = attempt.node;
        self.cancels.add(now, attempt.run, node.clone());
        let run = attempt.run;
        self.actions.push(Action::Cancel {
            run,
            node: node.clone(),
        });
        Some(node)
    }

    fn drop_attempt(&mut self, call: CallId) -> Option<Attempt> {
        let attempt = self.calls.get_mut(&call)?.current.take()?;
        if let Some(count) = self.in_flight.get_mut(&attempt.node) {
            *count -= 1;
            if *count == 0 {
                self.in_flight.remove(&attempt.node);
            }
        }
        Some(attempt)
    }

    fn finish(&mut self, call: CallId, run: Option<RunId>, answer: Answer) {
        let lost = self.calls.get(&call).and_then(|call| call.lost.clone());
        // An earlier attempt may have been run, so "nothing was run" would be a lie.
        let answer = match lost.filter(|_| answer.says_nothing_ran()) {
            Some(node) => Answer::Lost { node },
            None => answer,
        };
        self.remove(call);
        self.actions.push(Action::Finish { call, run, answer });
    }

    fn remove(&mut self, call: CallId) {
        self.drop_attempt(call);
        if let Some(state) = self.calls.remove(&call) {
            self.by_run.remove(&state.next_run.id);
        }
    }
}

/// Time above the lease after which a front that is away gives up: the workers that it can't
/// reach have ended what they ran for it, or soon will.
const RETURN_MARGIN: Duration = Duration::from_secs(5);
