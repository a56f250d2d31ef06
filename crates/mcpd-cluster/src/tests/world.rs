//! World of the simulation: what happens when, the scripts, and their journal, which is the judge.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use super::network::{Link, Message, Node};
use crate::delivery::{Answer, Catalogues, Rerun};
use crate::presence::Moment;
use crate::wire::{Here, RunId};

/// Every worker has everything.
#[derive(Debug)]
pub(super) struct Everything;

impl Catalogues for Everything {
    fn has(&self, _: &Here, _: &str, _: &str) -> bool {
        true
    }

    fn has_any(&self, _: &Here, _: &str) -> bool {
        true
    }
}

/// Something that happens.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "a schedule has few at a time")]
pub(super) enum Happening {
    Tick(Node),
    Arrival(Node, Message),
    Call(u64),
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
    Stop(Node),
    Continue(Node),
    Link(Node, Link),
    Server { is_up: bool },
}

/// Events in the order of their times.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    heap: BinaryHeap<Reverse<(Moment, usize)>>,
    items: BTreeMap<usize, Happening>,
    count: usize,
}

impl Agenda {
    pub(super) fn add(&mut self, at: Moment, happening: Happening) {
        self.count += 1;
        self.heap.push(Reverse((at, self.count)));
        self.items.insert(self.count, happening);
    }

    pub(super) fn next(&mut self) -> Option<(Moment, Happening)> {
        let Reverse((at, number)) = self.heap.pop()?;
        Some((at, self.items.remove(&number)?))
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

/// Call and its answer.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) front: Node,
    pub(super) rerun: Rerun,
    pub(super) lasts: Duration,
    pub(super) begun: bool,
    /// Its caller has hung up, or its front was killed.
    pub(super) is_gone: bool,
    pub(super) answer: Option<(Moment, Answer, Option<RunId>, bool)>,
}

/// Faults of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weather {
    Any,
    /// Workers are killed, and nothing else happens.
    Kills,
    /// One fault that no caller may notice.
    Mild,
}

/// Checks what callers were told against the journal.
pub(super) fn judge(
    calls: &BTreeMap<u64, Told>,
    journal: &[Entry],
    weather: Weather,
) -> Result<(), String> {
    for (number, call) in calls {
        let runs: Vec<_> = journal
            .iter()
            .filter(|entry| entry.call == *number)
            .collect();
        let limit = if call.rerun == Rerun::Never { 1 } else { 3 };
        if runs.len() > limit {
            return Err(format!(
                "call {number} ({:?}) was run {} times",
                call.rerun,
                runs.len()
            ));
        }
        for entry in &runs {
            if entry.end.is_none() {
                return Err(format!("a script of call {number} is still running"));
            }
        }
        let Some((at, answer, run, was_ok)) = &call.answer else {
            if call.is_gone || !call.begun {
                continue;
            }
            return Err(format!("call {number} waits for ever"));
        };
        match answer {
            Answer::Ended if *was_ok => {
                let is_done = |entry: &&&Entry| Some(entry.run) == *run && entry.is_done;
                if runs.iter().find(is_done).is_none() {
                    return Err(format!("call {number} was told ok, but is not done"));
                }
            }
            Answer::Busy | Answer::Unavailable | Answer::Refused { .. } if !runs.is_empty() => {
                return Err(format!("call {number} was told {answer:?}, but was run"));
            }
            Answer::Lost { .. } | Answer::Refused { .. } | Answer::Unavailable
                if weather == Weather::Mild =>
            {
                return Err(format!("call {number} was told {answer:?} without need"));
            }
            Answer::Lost { .. } if weather == Weather::Kills && call.rerun == Rerun::Never => {
                let ended = runs.iter().filter_map(|entry| entry.end).max();
                if ended.is_some_and(|ended| *at > ended + Duration::from_secs(4)) {
                    return Err(format!("call {number} waited longer than 4 s for its loss"));
                }
            }
            _ => {}
        }
    }
    Ok(())
}
