//! Tasks of the simulation: their records in a bucket that all fronts share, the runs that a worker
//! keeps for them, and their adoption by another front.

use std::collections::BTreeMap;
use std::time::Duration;

use super::network::{Message, Node, Sending};
use super::simulation::{Front, Process, Simulation};
use super::world::{Ending, Happening};
use crate::presence::Moment;
use crate::tasks::roster::Judgement;
use crate::wire::{Request, RunId};

/// Interval at which fronts that may be gone are looked at, and all tasks.
const LOOK: Duration = Duration::from_millis(500);
const SCAN: Duration = Duration::from_secs(60);
/// Interval and limit of attempts to write into the bucket.
const WRITE_RETRY: Duration = Duration::from_millis(200);
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);
/// Time for which a worker keeps the run of a task.
pub(super) const TASK_HOLD: Duration = Duration::from_secs(3600);

/// Record of a task.
#[derive(Debug, Clone)]
pub(super) struct Record {
    /// Name of the front that runs it.
    pub(super) runner: String,
    /// Run, worker and its start, before anything is sent there.
    pub(super) location: Option<(RunId, String, u64)>,
    /// Number of fronts that have continued with it.
    pub(super) adoptions: usize,
}

impl Record {
    pub(super) fn new(runner: String, location: Option<(RunId, String, u64)>) -> Self {
        Self {
            runner,
            location,
            adoptions: 0,
        }
    }
}

/// Knowledge of a front about tasks.
#[derive(Debug, Default)]
pub(super) struct Duty {
    /// Attempt of each task that is in its record, or on the way there.
    recorded: BTreeMap<u64, (RunId, bool)>,
    /// Endings that are not in the bucket yet.
    pub(super) endings: BTreeMap<u64, Ending>,
    /// Runners that were asked whether they are there, by their fronts.
    pub(super) asked: BTreeMap<Node, String>,
    last_look: Moment,
    last_scan: Option<Moment>,
    is_doubtful: bool,
}

impl Simulation {
    fn front(&mut self, node: Node) -> Option<&mut Front> {
        match &mut self.processes[node] {
            Some(Process::Front(front)) => Some(front),
            _ => None,
        }
    }

    /// Returns whether the task of a call is run by this start of a front.
    fn is_runner(&self, node: Node, call: u64) -> bool {
        let task = self.calls[&call].task.as_ref();
        task.is_some_and(|task| task.runner == self.name(node))
    }

    /// Makes a task of a call that goes on.
    pub(super) fn keep(&mut self, call: u64) {
        let told = &self.calls[&call];
        let node = told.front;
        let can_be = told.is_open() && told.task.is_none() && self.network.is_up(node);
        if !can_be || self.network.ports[node].is_stopped {
            return;
        }
        let runner = self.name(node);
        let Some(front) = self.front(node) else {
            return;
        };
        let location = front.delivery.keep(call);
        if let Some((run, ..)) = &location {
            front.tasks.recorded.insert(call, (*run, true));
        }
        let told = self.calls.get_mut(&call).expect("a call");
        told.task = Some(Record::new(runner, location));
        self.act(node);
    }

    /// Sends the run of a task, as soon as its record says where it will be.
    pub(super) fn send_run_of_task(&mut self, node: Node, sending: Sending) {
        let Sending { call, run, .. } = sending;
        let Some(front) = self.front(node) else {
            return;
        };
        match front.tasks.recorded.get(&call).copied() {
            Some((recorded, true)) if recorded == run => self.send_run(node, &sending),
            Some((recorded, false)) if recorded == run => {}
            _ => {
                front.tasks.recorded.insert(call, (run, false));
                self.write_later(node, sending, Duration::from_millis(1));
            }
        }
    }

    fn write_later(&mut self, node: Node, sending: Sending, delay: Duration) {
        let arrival = Happening::Arrival(node, Message::Record(sending));
        self.agenda.add(self.now + delay, arrival);
    }

    /// Writes where the run of a task will be, and sends it when that is confirmed.
    pub(super) fn record(&mut self, node: Node, mut sending: Sending) {
        let call = sending.call;
        let is_current = sending.epoch == self.epochs[node];
        if !is_current || !self.is_runner(node, call) || self.calls[&call].ending.is_some() {
            return;
        }
        if sending.is_written {
            let Some(front) = self.front(node) else {
                return;
            };
            let (worker, _) = &sending.worker;
            let is_current = front.delivery.call_of(sending.run, worker) == Some(call);
            let recorded = front.tasks.recorded.get(&call);
            if is_current && recorded == Some(&(sending.run, false)) {
                front.tasks.recorded.insert(call, (sending.run, true));
                self.send_run(node, &sending);
            }
        } else if self.network.is_up(node) {
            let (worker, epoch) = sending.worker.clone();
            let told = self.calls.get_mut(&call).expect("a call");
            let task = told.task.as_mut().expect("it has a runner");
            task.location = Some((sending.run, worker, epoch));
            sending.is_written = true;
            let delay = Duration::from_millis(1 + self.chance.below(5) as u64);
            self.write_later(node, sending, delay);
        } else if self.now < sending.until {
            self.write_later(node, sending, WRITE_RETRY);
        }
    }

    /// Returns the attempt of a front as it is written and sent.
    pub(super) fn sending(
        &self,
        node: Node,
        (call, run): (u64, RunId),
        worker: (String, u64),
        send: u8,
    ) -> Sending {
        Sending {
            call,
            run,
            worker,
            send,
            epoch: self.epochs[node],
            until: self.now + WRITE_TIMEOUT,
            is_written: false,
        }
    }

    /// Does what a front owes its tasks and those of others, if it can reach the bucket.
    pub(super) fn tend_tasks(&mut self, node: Node) {
        let now = self.now;
        let Some(front) = self.front(node) else {
            return;
        };
        let trusted_from = front.delivery.presence.echo.trusted_from(now);
        front.roster.set_trust(trusted_from);
        if !self.network.is_up(node) || self.calls.values().all(|call| call.task.is_none()) {
            return;
        }
        self.leave_tasks_of_others(node);
        self.store_endings(node);
        let Some(front) = self.front(node) else {
            return;
        };
        if front.roster.is_trusting() && now >= front.tasks.last_look + LOOK {
            front.tasks.last_look = now;
            self.look_for_orphans(node);
        }
    }

    /// Leaves runs to the fronts that have adopted them.
    fn leave_tasks_of_others(&mut self, node: Node) {
        let others = self.calls.iter().filter(|(_, call)| call.task.is_some());
        let others = others.filter(|(number, _)| !self.is_runner(node, **number));
        for call in others.map(|(number, _)| *number).collect::<Vec<_>>() {
            if let Some(front) = self.front(node) {
                front.delivery.leave(call);
                front.tasks.recorded.remove(&call);
                front.tasks.endings.remove(&call);
            }
        }
    }

    /// Writes endings into the records of their tasks, and has the workers forget the runs.
    pub(super) fn store_endings(&mut self, node: Node) {
        if !self.network.is_up(node) {
            return;
        }
        let Some(front) = self.front(node) else {
            return;
        };
        for (call, ending) in std::mem::take(&mut front.tasks.endings) {
            if !self.is_runner(node, call) {
                continue;
            }
            let location = self.calls[&call]
                .task
                .as_ref()
                .and_then(|task| task.location.clone());
            self.tell(call, ending);
            if let Some((run, worker, _)) = location {
                self.control(node, &worker, Request::Release { run });
            }
        }
    }

    /// Looks for tasks whose fronts are gone, and continues with them.
    fn look_for_orphans(&mut self, node: Node) {
        let (now, own) = (self.now, self.name(node));
        let open = self.calls.iter().filter(|(_, call)| call.is_open());
        let open = open.filter_map(|(number, call)| Some((*number, &call.task.as_ref()?.runner)));
        let open = open.filter(|(_, runner)| **runner != own);
        let open: Vec<_> = open.map(|(call, runner)| (call, runner.clone())).collect();
        let Some(front) = self.front(node) else {
            return;
        };
        let last_scan = front.tasks.last_scan;
        let is_due = front.tasks.is_doubtful || last_scan.is_none_or(|last| now >= last + SCAN);
        if !is_due && !front.roster.has_suspects(now) {
            return;
        }
        front.tasks.is_doubtful = false;
        for (call, runner) in open {
            let Some(front) = self.front(node) else {
                return;
            };
            match front.roster.judge(now, &runner) {
                Judgement::There => {}
                Judgement::Unclear => {
                    front.tasks.is_doubtful = true;
                    self.ask(node, runner);
                }
                Judgement::Gone => {
                    front.tasks.is_doubtful = true;
                    self.adopt(node, call);
                }
            }
        }
        if let Some(front) = self.front(node)
            && !front.tasks.is_doubtful
        {
            front.roster.settle(now);
            front.tasks.last_scan = Some(now);
        }
    }

    /// Asks a front whether it is there.
    fn ask(&mut self, node: Node, runner: String) {
        let Some(to) = self.node_of(&runner) else {
            return;
        };
        let name = self.name(to);
        if let Some(front) = self.front(node) {
            front.tasks.asked.insert(to, runner);
        }
        self.control(node, &name, Request::Ping);
    }

    /// Becomes the runner of a task. The bucket decides between two fronts.
    fn adopt(&mut self, node: Node, call: u64) {
        let (now, runner) = (self.now, self.name(node));
        let id = self.draw_id(call);
        let told = self.calls.get_mut(&call).expect("a call");
        let task = told.task.as_mut().expect("a task");
        task.runner = runner;
        task.adoptions += 1;
        told.front = node;
        let (order, location) = (told.order.clone(), task.location.clone());
        if let Some(front) = self.front(node) {
            match location {
                Some(location) => front.delivery.adopt(now, call, location, order),
                None => front.delivery.call(now, call, id, order),
            }
        }
        self.act(node);
    }
}
