//! World of the simulation: what happens when, the scripts, and their journal, which is the judge.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use super::network::{Link, Message, Node};
use super::task_store::Record;
use crate::delivery::{Answer, Order, Rerun};
use crate::presence::Moment;
use crate::wire::RunId;

/// Something that happens.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "a schedule has few at a time")]
pub(super) enum Happening {
    Tick(Node),
    Arrival(Node, Message),
    Call(u64),
    /// A call that goes on becomes a task.
    Keep(u64),
    HangUp(u64),
    Fault(Fault),
    /// The script of an entry of the journal ends by itself, or because it was killed.
    ScriptEnd {
        entry: usize,
        is_killed: bool,
    },
}

/// Fault, or its end.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fault {
    Kill(Node),
    Start(Node),
    /// A worker that has drained is started again.
    Restart(Node),
    Stop(Node),
    Continue(Node),
    Link(Node, Link),
    Server {
        is_up: bool,
    },
    /// A worker takes nothing new, ends when it is idle, and is started again later.
    Drain(Node),
    /// A worker has the other version of its scripts from now on.
    Update(Node),
    /// A front says good-bye and ends.
    Leave(Node),
}

/// Events in the order of their times.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    heap: BinaryHeap<Reverse<(Moment, usize)>>,
    /// Those that have not happened yet, by their numbers.
    items: Vec<Option<Happening>>,
}

impl Agenda {
    pub(super) fn add(&mut self, at: Moment, happening: Happening) {
        self.heap.push(Reverse((at, self.items.len())));
        self.items.push(Some(happening));
    }

    pub(super) fn next(&mut self) -> Option<(Moment, Happening)> {
        let Reverse((at, number)) = self.heap.pop()?;
        Some((at, self.items[number].take()?))
    }
}

/// Run of a script as it wrote it down itself.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) call: u64,
    pub(super) run: RunId,
    pub(super) worker: Node,
    /// Start of the worker.
    pub(super) epoch: u64,
    pub(super) end: Option<Moment>,
    pub(super) is_done: bool,
}

/// Answer that a caller gets, or that is written into the record of a task.
#[derive(Debug, Clone)]
pub(super) struct Ending {
    pub(super) at: Moment,
    pub(super) answer: Answer,
    pub(super) run: Option<RunId>,
    pub(super) is_ok: bool,
}

/// Call and its answer.
#[derive(Debug)]
pub(super) struct Told {
    /// Front that serves it, or runs its task.
    pub(super) front: Node,
    pub(super) order: Order,
    /// Schema that its caller has seen.
    pub(super) schema: &'static [u8],
    pub(super) lasts: Duration,
    /// Time of the call, if it could be made.
    pub(super) begun: Option<Moment>,
    /// It is a task from its beginning.
    pub(super) is_task: bool,
    /// Record of its task, as soon as it is one.
    pub(super) task: Option<Record>,
    /// Its caller has hung up, or its front was killed.
    pub(super) is_gone: bool,
    pub(super) ending: Option<Ending>,
}

impl Told {
    /// Returns whether its end is waited for.
    pub(super) fn is_open(&self) -> bool {
        self.begun.is_some() && self.ending.is_none() && !self.is_gone
    }
}

/// Faults of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weather {
    Any,
    /// Workers are killed, and nothing else happens.
    Kills,
    /// Workers are drained, and nothing else happens.
    Drains,
    /// Fronts stop, and nothing else happens.
    Leaves,
    /// One fault that no caller may notice.
    Mild,
    /// Nothing happens.
    Calm,
}

/// Checks what callers were told against the journal.
pub(super) fn judge(
    calls: &BTreeMap<u64, Told>,
    journal: &[Entry],
    weather: Weather,
) -> Result<(), String> {
    for (number, call) in calls {
        let runs = journal.iter().filter(|entry| entry.call == *number);
        let runs: Vec<_> = runs.collect();
        let fault = judge_runs(call, &runs).or_else(|| judge_ending(call, &runs, weather));
        if let Some(fault) = fault {
            return Err(format!("call {number} {fault}"));
        }
    }
    match weather {
        Weather::Calm => judge_homes(calls, journal),
        _ => Ok(()),
    }
}

/// Judges how often the script of a call was run. Returns what is wrong.
fn judge_runs(call: &Told, runs: &[&Entry]) -> Option<String> {
    // Each front that adopts a task may make its run again as often as the first one.
    let fronts = 1 + call.task.as_ref().map_or(0, |task| task.adoptions);
    let limit = match call.order.rerun {
        Rerun::Never => 1,
        Rerun::ReadOnly | Rerun::Idempotent => 3 * fronts,
    };
    if runs.len() > limit {
        let rerun = call.order.rerun;
        return Some(format!("({rerun:?}) was run {} times", runs.len()));
    }
    let is_running = runs.iter().any(|entry| entry.end.is_none());
    is_running.then(|| "still has a script that runs".to_owned())
}

/// Judges the answer of a call. Returns what is wrong.
fn judge_ending(call: &Told, runs: &[&Entry], weather: Weather) -> Option<String> {
    let Some(ending) = &call.ending else {
        return call.is_open().then(|| "waits for ever".to_owned());
    };
    let answer = &ending.answer;
    let fault = |text: &str| Some(format!("was told {answer:?}{text}"));
    let is_calm = matches!(weather, Weather::Mild | Weather::Calm);
    match answer {
        Answer::Ended if ending.is_ok => {
            let is_done = |entry: &&Entry| Some(entry.run) == ending.run && entry.is_done;
            let was_done = runs.iter().any(is_done);
            (!was_done).then(|| "was told ok, but is not done".to_owned())
        }
        Answer::Ended if is_calm => fault(" without a result"),
        Answer::Busy | Answer::Unavailable | Answer::Refused { .. } if !runs.is_empty() => {
            fault(", but was run")
        }
        Answer::Lost { .. } | Answer::Refused { .. } | Answer::Unavailable if is_calm => {
            fault(" without need")
        }
        Answer::Lost { .. } if weather == Weather::Drains => fault(" of a worker that drains"),
        // One that was never sent is lost, too, if its front stops just before.
        Answer::Lost { .. } if weather == Weather::Leaves && call.is_task && !runs.is_empty() => {
            fault(" with its front")
        }
        Answer::Lost { .. } if weather == Weather::Kills && call.order.rerun == Rerun::Never => {
            let ended = runs.iter().filter_map(|entry| entry.end).max();
            let is_late = |ended| ending.at > ended + Duration::from_secs(4);
            let was_late = ended.is_some_and(is_late);
            was_late.then(|| "waited longer than 4 s for its loss".to_owned())
        }
        _ => None,
    }
}

/// Checks that scripts with a home were run by one worker. A front may not know all workers in its
/// first seconds.
fn judge_homes(calls: &BTreeMap<u64, Told>, journal: &[Entry]) -> Result<(), String> {
    let mut homes = BTreeMap::new();
    for entry in journal {
        let call = &calls[&entry.call];
        let requirements = &call.order.requirements;
        if !requirements.home || call.begun.is_none_or(|at| at < Duration::from_secs(2)) {
            continue;
        }
        let key = (&requirements.path, &requirements.labels);
        if *homes.entry(key).or_insert(entry.worker) != entry.worker {
            return Err(format!("call {} was not run at its home", entry.call));
        }
    }
    Ok(())
}
