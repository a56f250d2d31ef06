//! One schedule: calls and faults drawn from a seed, played until everything is over.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::network::{Fate, Link, Message, Network, Node, Sending};
use super::task_store::{Duty, Record, TASK_HOLD};
use super::versions::{self, CatalogueNumber, Known, PER_VERSION};
use super::world::{Agenda, Ending, Entry, Fault, Happening, Told, Weather, judge};
use crate::delivery::{self, Answer, Delivery, Order, Rerun};
use crate::placement::{Chance, Requirements};
use crate::presence::{HEARTBEAT, Moment};
use crate::registry::{self, Limits, Registry, RunRequest};
use crate::tasks::roster::Roster;
use crate::wire::{Cut, Event, Here, Kind, Request, RunId, Word};

const TICK: Duration = Duration::from_millis(250);
const LEASE: Duration = Duration::from_secs(4);
/// Time for which the runs of a draining worker may go on.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(4);
/// Time for which a draining worker stays at least, as fronts may not know of it yet.
const LINGER: Duration = Duration::from_secs(1);
/// Time for which a worker keeps what it knows of a run after its end.
const HOLD: Duration = Duration::from_secs(60);
/// Time in which calls and faults begin.
const BUSY_TIME: usize = 6_000;
/// Time after which nothing may be left to happen.
const HORIZON: Duration = Duration::from_secs(150);
/// Labels that workers may have.
const LABELS: [&str; 2] = ["eu", "gpu"];

/// Process of a node.
pub(super) enum Process {
    Front(Box<Front>),
    Worker(Box<Worker>),
}

pub(super) struct Front {
    pub(super) delivery: Delivery<Known>,
    pub(super) roster: Roster,
    pub(super) tasks: Duty,
    /// The event that is handled has the result of its run.
    has_result: bool,
}

pub(super) struct Worker {
    registry: Registry,
    draining_since: Option<Moment>,
    /// Fronts that hear of each run.
    replies: BTreeMap<RunId, Node>,
    /// Runs whose results are still there.
    results: BTreeSet<RunId>,
}

/// State that outlives a restart of a worker.
#[derive(Debug, Clone, Default)]
struct Machine {
    catalogue: CatalogueNumber,
    labels: Vec<String>,
}

pub(super) struct Simulation {
    pub(super) now: Moment,
    pub(super) chance: Chance,
    pub(super) agenda: Agenda,
    pub(super) network: Network,
    fronts: usize,
    pub(super) processes: Vec<Option<Process>>,
    machines: Vec<Machine>,
    /// Number of the start of each node.
    pub(super) epochs: Vec<u64>,
    last_here: Vec<Moment>,
    pub(super) calls: BTreeMap<u64, Told>,
    journal: Vec<Entry>,
    /// Outcomes of runs, and whether each is a success.
    outcomes: BTreeMap<RunId, bool>,
    /// Planned happenings that have not happened yet.
    pending: usize,
    fault: Option<String>,
    is_traced: bool,
}

fn millis(millis: usize) -> Duration {
    Duration::from_millis(millis as u64)
}

/// Plays the schedule of a seed.
pub(super) fn simulate(seed: u64) -> Result<(), String> {
    let mut chance = Chance::new(seed);
    for _ in 0..4 {
        chance.next();
    }
    let fronts = 1 + usize::from(chance.below(5) == 0);
    let nodes = fronts + 1 + chance.below(3);
    let loss = [0, 0, 0, 20, 100][chance.below(5)];
    let delay = [5, 5, 300, 1500][chance.below(4)];
    // Versions side by side, as in the middle of a roll-out.
    let has_two_versions = chance.below(5) == 0;
    let mut simulation = Simulation {
        now: Moment::ZERO,
        agenda: Agenda::default(),
        network: Network::new(nodes, loss, delay),
        fronts,
        processes: (0..nodes).map(|_| None).collect(),
        machines: Vec::new(),
        epochs: vec![0; nodes],
        last_here: vec![Moment::ZERO; nodes],
        calls: BTreeMap::new(),
        journal: Vec::new(),
        outcomes: BTreeMap::new(),
        pending: 0,
        fault: None,
        is_traced: std::env::var_os("MCPD_SIMULATION_SEED").is_some(),
        chance,
    };
    simulation.draw_machines(has_two_versions);
    let weather = simulation.plan();
    let is_calm = loss == 0 && delay == 5 && !has_two_versions;
    simulation.play()?;
    let weather = if is_calm { weather } else { Weather::Any };
    judge(&simulation.calls, &simulation.journal, weather)
}

impl Simulation {
    fn is_front(&self, node: Node) -> bool {
        node < self.fronts
    }

    /// Returns the name of a node, which is that of its present start for a front.
    pub(super) fn name(&self, node: Node) -> String {
        match self.is_front(node) {
            true => format!("f{node}.{}", self.epochs[node]),
            false => format!("w{node}"),
        }
    }

    pub(super) fn node_of(&self, name: &str) -> Option<Node> {
        name.get(1..)?.split('.').next()?.parse().ok()
    }

    /// Draws the scripts and the labels of every worker.
    fn draw_machines(&mut self, has_two_versions: bool) {
        for _ in 0..self.processes.len() {
            let version = match has_two_versions {
                true => self.chance.below(2) * PER_VERSION,
                false => 0,
            };
            // Most have all scripts.
            let catalogue = version + [0, 0, 1, 2][self.chance.below(4)];
            let labels = LABELS.map(str::to_owned).to_vec();
            let labels = self.draw_some(labels);
            self.machines.push(Machine { catalogue, labels });
        }
    }

    /// Draws some of these labels.
    fn draw_some(&mut self, mut labels: Vec<String>) -> Vec<String> {
        labels.retain(|_| self.chance.below(2) == 0);
        labels
    }

    /// Draws an order that one of the workers can follow, if that has the served version.
    fn draw_order(&mut self) -> Order {
        let worker = self.fronts + self.chance.below(self.processes.len() - self.fronts);
        let Machine { catalogue, labels } = self.machines[worker].clone();
        let scripts = &versions::catalogue(catalogue).scripts;
        let path = scripts.keys().nth(self.chance.below(scripts.len()));
        let reruns = [
            Rerun::Never,
            Rerun::Never,
            Rerun::ReadOnly,
            Rerun::Idempotent,
        ];
        Order {
            requirements: Requirements {
                path: path.expect("one of them").clone(),
                labels: self.draw_some(labels),
                home: self.chance.below(4) == 0,
            },
            digest: String::new(),
            rerun: reruns[self.chance.below(4)],
        }
    }

    /// Draws calls and faults. Returns what kind of faults they are.
    fn plan(&mut self) -> Weather {
        let nodes = self.processes.len();
        for node in 0..nodes {
            self.start(node);
            let first = millis(self.chance.below(250));
            self.agenda.add(first, Happening::Tick(node));
        }
        for number in 0..(2 + self.chance.below(5)) as u64 {
            self.plan_call(number);
        }
        let kind = self.chance.below(11);
        if kind == 10 {
            return self.plan_mild_fault();
        }
        let faults = self.chance.below(5);
        for _ in 0..faults {
            let kind = if kind == 9 {
                self.chance.below(9)
            } else {
                kind
            };
            self.plan_fault(kind);
        }
        match kind {
            _ if faults == 0 => Weather::Calm,
            0 => Weather::Kills,
            6 => Weather::Drains,
            8 => Weather::Leaves,
            _ => Weather::Any,
        }
    }

    fn plan_call(&mut self, number: u64) {
        let at = millis(self.chance.below(BUSY_TIME));
        let lasts = [50, 400, 2000, 400, 50, 12_000][self.chance.below(6)];
        let kind = self.chance.below(8);
        let told = Told {
            front: self.chance.below(self.fronts),
            order: self.draw_order(),
            schema: &[],
            lasts: millis(1 + self.chance.below(lasts)),
            begun: None,
            is_task: kind == 0,
            task: None,
            is_gone: false,
            ending: None,
        };
        self.calls.insert(number, told);
        self.agenda.add(at, Happening::Call(number));
        self.pending += 1;
        let later = at + millis(self.chance.below(2000));
        let then = match kind {
            1 => Happening::Keep(number),
            2 => Happening::HangUp(number),
            _ => return,
        };
        self.agenda.add(later, then);
        self.pending += 1;
    }

    /// Draws one fault that must not be noticed: the server restarts, or a node stops for a
    /// moment.
    fn plan_mild_fault(&mut self) -> Weather {
        let at = millis(500 + self.chance.below(BUSY_TIME));
        let any = self.chance.below(self.processes.len());
        let (lasts, begin, finish) = match self.chance.below(3) {
            0 => (
                2500,
                Fault::Server { is_up: false },
                Fault::Server { is_up: true },
            ),
            1 => (2500, Fault::Stop(any), Fault::Continue(any)),
            _ => (
                2000,
                Fault::Link(any, Link::Stalled),
                Fault::Link(any, Link::Up),
            ),
        };
        let end = at + millis(100 + self.chance.below(lasts));
        self.pending += 1;
        self.agenda.add(at, Happening::Fault(begin));
        self.agenda.add(end, Happening::Fault(finish));
        Weather::Mild
    }

    fn plan_fault(&mut self, kind: usize) {
        let at = millis(500 + self.chance.below(BUSY_TIME));
        let lasts = [300, 2000, 2000, 12_000][self.chance.below(4)];
        let end = at + millis(100 + self.chance.below(lasts));
        let any = self.chance.below(self.processes.len());
        let worker = self.fronts + self.chance.below(self.processes.len() - self.fronts);
        let keeps = self.chance.below(2) == 0;
        let (begin, finish) = match kind {
            0 => (Fault::Kill(worker), Fault::Start(worker)),
            1 => (Fault::Stop(any), Fault::Continue(any)),
            2 => (Fault::Link(any, Link::Stalled), Fault::Link(any, Link::Up)),
            3 => (
                Fault::Link(any, Link::Cut { keeps }),
                Fault::Link(any, Link::Up),
            ),
            4 => (
                Fault::Server { is_up: false },
                Fault::Server { is_up: true },
            ),
            5 => (Fault::Kill(any), Fault::Start(any)),
            // A worker that has drained is started again when it has ended.
            6 => return self.plan_single(at, Fault::Drain(worker)),
            7 => return self.plan_single(at, Fault::Update(worker)),
            _ => {
                let front = any % self.fronts;
                (Fault::Leave(front), Fault::Start(front))
            }
        };
        self.pending += 1;
        self.agenda.add(at, Happening::Fault(begin));
        self.agenda.add(end, Happening::Fault(finish));
    }

    /// Plans a fault that has no end.
    fn plan_single(&mut self, at: Moment, fault: Fault) {
        self.pending += 1;
        self.agenda.add(at, Happening::Fault(fault));
    }

    fn play(&mut self) -> Result<(), String> {
        while let Some((at, happening)) = self.agenda.next() {
            self.now = at;
            if self.is_traced
                && !matches!(
                    happening,
                    Happening::Tick(_)
                        | Happening::Arrival(_, Message::Here(_) | Message::Pong { .. })
                )
            {
                println!("{at:?} {happening:?}");
            }
            self.happen(happening);
            if let Some(fault) = self.fault.take() {
                return Err(format!("after {at:?}: {fault}"));
            }
            if at > HORIZON || self.is_over() {
                break;
            }
        }
        Ok(())
    }

    /// Returns whether nothing is left to happen.
    fn is_over(&self) -> bool {
        self.pending == 0
            && !self.calls.values().any(Told::is_open)
            && self.journal.iter().all(|entry| entry.end.is_some())
            && self
                .processes
                .iter()
                .flatten()
                .all(|process| match process {
                    Process::Front(front) => front.delivery.has_answered_all(),
                    Process::Worker(worker) => worker.registry.active() == 0,
                })
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Tick(node) => {
                self.agenda.add(self.now + TICK, Happening::Tick(node));
                if self.network.ports[node].is_alive && !self.network.ports[node].is_stopped {
                    self.tick(node);
                }
            }
            Happening::Arrival(node, message) => {
                if self.network.admit(node, &message) {
                    self.handle(node, message);
                }
            }
            Happening::Call(number) => {
                self.pending -= 1;
                self.call(number);
            }
            Happening::Keep(number) => {
                self.pending -= 1;
                self.keep(number);
            }
            Happening::HangUp(number) => {
                self.pending -= 1;
                self.hang_up(number);
            }
            Happening::Fault(fault) => self.inject(fault),
            Happening::ScriptEnd { entry, is_killed } => self.end_script(entry, is_killed),
        }
    }

    /// Draws an identifier, from which the call of a run can be told.
    pub(super) fn draw_id(&mut self, call: u64) -> u128 {
        u128::from(self.chance.next()) << 64 | u128::from(call)
    }

    fn call(&mut self, number: u64) {
        let (now, id) = (self.now, self.draw_id(number));
        let call = self.calls.get_mut(&number).expect("a call");
        let node = call.front;
        let is_there = self.network.ports[node].is_alive && !self.network.ports[node].is_stopped;
        if !is_there || (call.is_task && !self.network.is_up(node)) {
            return;
        }
        let runner = format!("f{node}.{}", self.epochs[node]);
        call.task = call.is_task.then(|| Record::new(runner, None));
        let Some(Process::Front(front)) = &mut self.processes[node] else {
            return;
        };
        let path = &call.order.requirements.path;
        let version = front.delivery.catalogues.version(path);
        call.schema = versions::schema(path, &version);
        call.order.digest = version.to_string();
        call.begun = Some(now);
        front.delivery.call(now, number, id, call.order.clone());
        self.act(node);
    }

    fn hang_up(&mut self, number: u64) {
        let call = self.calls.get_mut(&number).expect("a call");
        if !call.is_open() {
            return;
        }
        call.is_gone = true;
        let (node, now) = (call.front, self.now);
        if let Some(Process::Front(front)) = &mut self.processes[node] {
            front.delivery.hang_up(now, number);
        }
        self.act(node);
    }

    fn inject(&mut self, fault: Fault) {
        if !matches!(
            fault,
            Fault::Kill(_) | Fault::Stop(_) | Fault::Leave(_) | Fault::Server { is_up: false }
        ) && !matches!(
            fault,
            Fault::Restart(_) | Fault::Link(_, Link::Stalled | Link::Cut { .. })
        ) {
            self.pending -= 1;
        }
        match fault {
            Fault::Kill(node) => self.kill(node),
            Fault::Start(node) | Fault::Restart(node) => {
                if !self.network.ports[node].is_alive {
                    self.start(node);
                }
            }
            Fault::Stop(node) => self.network.ports[node].is_stopped = true,
            Fault::Continue(node) => {
                self.network.ports[node].is_stopped = false;
                // Its clock may ring before or after it reads what has come.
                if self.chance.below(2) == 0 && self.network.ports[node].is_alive {
                    self.tick(node);
                }
                self.flush(node, self.network.ports[node].link);
            }
            Fault::Link(node, link) => self.flush(node, link),
            Fault::Drain(node) => {
                if let Some(Process::Worker(worker)) = &mut self.processes[node] {
                    worker.registry.is_draining = true;
                    worker.draining_since.get_or_insert(self.now);
                    self.announce(node, false);
                }
            }
            Fault::Update(node) => {
                let catalogue = &mut self.machines[node].catalogue;
                *catalogue = (*catalogue + PER_VERSION) % (2 * PER_VERSION);
                if self.network.ports[node].is_alive {
                    self.announce(node, false);
                }
            }
            Fault::Leave(node) => self.leave(node),
            Fault::Server { is_up } => {
                self.network.is_server_up = is_up;
                for node in 0..self.processes.len() {
                    let link = match is_up {
                        true => Link::Up,
                        false => Link::Cut { keeps: true },
                    };
                    self.flush(node, link);
                }
            }
        }
    }

    /// Changes a link, and passes on what has waited for it.
    fn flush(&mut self, node: Node, link: Link) {
        let (outgoing, incoming) = self.network.set_link(self.now, node, link);
        for message in incoming {
            if self.network.admit(node, &message) {
                self.handle(node, message);
            }
        }
        for (to, message) in outgoing {
            self.send(node, to, message);
        }
    }

    fn start(&mut self, node: Node) {
        self.epochs[node] += 1;
        self.network.ports[node].is_alive = true;
        let epoch = self.epochs[node];
        let process = if self.is_front(node) {
            let seed = self.chance.next();
            Process::Front(Box::new(Front {
                delivery: Delivery::new(self.now, LEASE, seed, Known::default()),
                roster: Roster::default(),
                tasks: Duty::default(),
                has_result: false,
            }))
        } else {
            let limits = Limits {
                lease: LEASE,
                slots: 2,
            };
            Process::Worker(Box::new(Worker {
                registry: Registry::new(self.now, epoch, limits),
                draining_since: None,
                replies: BTreeMap::new(),
                results: BTreeSet::new(),
            }))
        };
        self.processes[node] = Some(process);
        self.announce(node, false);
    }

    /// Ends a front that says good-bye.
    fn leave(&mut self, node: Node) {
        let Some(Process::Front(front)) = &mut self.processes[node] else {
            return;
        };
        front.delivery.send_acks();
        let workers: Vec<_> = front.delivery.workers_in_use().cloned().collect();
        self.act(node);
        for worker in workers {
            self.control(node, &worker, Request::Leave);
        }
        self.announce(node, true);
        self.kill(node);
    }

    fn kill(&mut self, node: Node) {
        self.network.kill(node);
        self.processes[node] = None;
        if self.is_front(node) {
            let calls = self.calls.values_mut();
            for call in calls.filter(|call| call.front == node && call.task.is_none()) {
                call.is_gone |= call.is_open();
            }
            return;
        }
        // The watchdog of the worker ends its scripts.
        let soon = self.now + millis(1 + self.chance.below(100));
        for (entry, run) in self.journal.iter().enumerate() {
            if run.worker == node && run.end.is_none() {
                let is_killed = true;
                self.agenda
                    .add(soon, Happening::ScriptEnd { entry, is_killed });
            }
        }
    }

    fn end_script(&mut self, entry: usize, is_killed: bool) {
        let run = &mut self.journal[entry];
        if run.end.is_some() {
            return;
        }
        run.end = Some(self.now);
        run.is_done = !is_killed;
        let (id, worker) = (run.run, run.worker);
        if run.epoch == self.epochs[worker] && self.network.ports[worker].is_alive {
            self.outcomes.insert(id, !is_killed);
            if let Some(Process::Worker(process)) = &mut self.processes[worker] {
                process.results.insert(id);
            }
            let end = Message::ScriptEnd {
                run: id,
                is_cut: is_killed,
            };
            self.agenda.add(self.now, Happening::Arrival(worker, end));
        }
    }

    fn announce(&mut self, node: Node, leaving: bool) {
        self.last_here[node] = self.now;
        let (name, epoch) = (self.name(node), self.epochs[node]);
        let at_ms = self.now.as_millis() as u64;
        let here = match &self.processes[node] {
            Some(Process::Front(_)) => Here {
                at_ms,
                runner: name.clone(),
                leaving,
                ..Here::new(&name, epoch, Kind::Front)
            },
            Some(Process::Worker(worker)) => Here {
                at_ms,
                slots: 2,
                catalog: versions::catalogue(self.machines[node].catalogue)
                    .digest
                    .clone(),
                labels: self.machines[node].labels.clone(),
                draining: worker.registry.is_draining,
                ..Here::new(&name, epoch, Kind::Worker)
            },
            None => return,
        };
        self.send(node, node, Message::Here(here.clone()));
        for front in (0..self.fronts).filter(|front| *front != node) {
            self.send(node, front, Message::Here(here.clone()));
        }
    }

    /// Sends a request to a node.
    pub(super) fn control(&mut self, node: Node, to: &str, request: Request) {
        if let Some(to) = self.node_of(to) {
            let from = self.name(node);
            let control = Message::Control {
                from,
                node,
                request,
            };
            self.send(node, to, control);
        }
    }

    fn send(&mut self, from: Node, to: Node, message: Message) {
        match self
            .network
            .send(self.now, &mut self.chance, (from, to), &message)
        {
            Fate::Arrives(at) => self.agenda.add(at, Happening::Arrival(to, message)),
            Fate::Waits | Fate::Lost => {}
            Fate::NoSubscriber => {
                let answer = match message {
                    Message::Run { request, send, .. } => Message::NoRun {
                        run: request.run,
                        send,
                    },
                    Message::Control {
                        request: Request::Ping,
                        ..
                    } => Message::NoPing { to },
                    _ => return,
                };
                let at = self.now + millis(1);
                self.agenda.add(at, Happening::Arrival(from, answer));
            }
        }
    }

    fn tick(&mut self, node: Node) {
        let now = self.now;
        let is_due = now - self.last_here[node] >= HEARTBEAT;
        if is_due {
            self.announce(node, false);
        }
        let is_connected = !matches!(self.network.ports[node].link, Link::Cut { .. });
        match &mut self.processes[node] {
            Some(Process::Front(front)) => {
                front.delivery.is_connected = is_connected;
                front.delivery.tick(now);
                if is_due {
                    let delivery = &mut front.delivery;
                    delivery.catalogues.select(now, &delivery.presence);
                }
                self.act(node);
                self.tend_tasks(node);
            }
            Some(Process::Worker(worker)) => {
                worker.registry.tick(now);
                self.check_lease(node);
                self.act(node);
                self.tick_drain(node);
            }
            None => {}
        }
    }

    fn check_lease(&mut self, node: Node) {
        let cut_off = self.network.ports[node].cut_off_since;
        let limit = LEASE + Duration::from_secs(2);
        let is_long = cut_off.is_some_and(|since| self.now > since + limit);
        let mut entries = self.journal.iter();
        if is_long && entries.any(|run| run.worker == node && run.end.is_none()) {
            self.fault = Some("a script outlives the lease of its worker".to_owned());
        }
    }

    /// Ends a worker that has drained.
    fn tick_drain(&mut self, node: Node) {
        let (now, is_up) = (self.now, self.network.is_up(node));
        let Some(Process::Worker(worker)) = &mut self.processes[node] else {
            return;
        };
        let Some(since) = worker.draining_since else {
            return;
        };
        let is_late = now >= since + DRAIN_TIMEOUT;
        if is_late {
            worker.registry.cut_all(Cut::Drain);
        }
        let is_done = worker.registry.is_idle() || (is_late && worker.registry.active() == 0);
        if is_done && is_up && now >= since + LINGER {
            self.kill(node);
            let again = now + millis(200 + self.chance.below(4000));
            self.agenda
                .add(again, Happening::Fault(Fault::Restart(node)));
        } else {
            self.act(node);
        }
    }

    fn handle(&mut self, node: Node, message: Message) {
        match &self.processes[node] {
            Some(Process::Front(_)) => self.handle_at_front(node, message),
            Some(Process::Worker(_)) => self.handle_at_worker(node, message),
            None => return,
        }
        self.act(node);
    }

    fn handle_at_front(&mut self, node: Node, message: Message) {
        let (now, own) = (self.now, self.name(node));
        let Some(Process::Front(front)) = &mut self.processes[node] else {
            return;
        };
        match message {
            Message::Here(here) if here.kind == Kind::Front => {
                front.roster.hear(now, &here.runner, here.leaving);
                if here.node == own {
                    let sent = Duration::from_millis(here.at_ms);
                    front.delivery.presence.echo.hear(now, sent);
                }
            }
            Message::Here(here) => {
                let delivery = &mut front.delivery;
                if delivery.hear_here(now, here) {
                    delivery.catalogues.select(now, &delivery.presence);
                }
            }
            Message::Event { event, has_result } => {
                front.has_result = has_result;
                front.delivery.hear_event(now, &event);
            }
            Message::Pong { runner, .. } if !runner.is_empty() => {
                front.roster.hear(now, &runner, false);
            }
            Message::Pong { node, epoch, .. } => front.delivery.hear_pong(now, &node, epoch),
            Message::NoRun { run, send } => front.delivery.miss_run(now, run, send),
            Message::NoPing { to } if to < self.fronts => {
                if let Some(runner) = front.tasks.asked.get(&to) {
                    front.roster.miss(now, runner);
                }
            }
            Message::NoPing { to } => front.delivery.miss_ping(now, &format!("w{to}")),
            Message::Control {
                node: asker,
                request: Request::Ping,
                ..
            } => {
                let pong = Message::Pong {
                    epoch: self.epochs[node],
                    runner: own.clone(),
                    node: own,
                };
                self.send(node, asker, pong);
            }
            Message::Record(sending) => self.record(node, sending),
            _ => {}
        }
    }

    fn handle_at_worker(&mut self, node: Node, message: Message) {
        let (now, epoch) = (self.now, self.epochs[node]);
        let Some(Process::Worker(worker)) = &mut self.processes[node] else {
            return;
        };
        match message {
            Message::Here(here) if here.epoch == epoch => {
                let sent = Duration::from_millis(here.at_ms);
                worker.registry.echo.hear(now, sent);
            }
            Message::Run {
                request,
                front,
                call,
                ..
            } => {
                worker.replies.insert(request.run, front);
                let order = &self.calls[&call].order;
                let check = || versions::check(self.machines[node].catalogue, order);
                worker.registry.request(now, &request, check);
                self.start_runs(node, call);
            }
            Message::Control {
                from,
                node: front,
                request,
            } => self.follow(node, (front, &from), &request),
            Message::ScriptEnd { run, is_cut } => worker.registry.end(now, run, is_cut),
            _ => {}
        }
    }

    /// Follows a request of a front about runs of a worker.
    fn follow(&mut self, node: Node, (front, from): (Node, &str), request: &Request) {
        let (now, epoch, name) = (self.now, self.epochs[node], self.name(node));
        let Some(Process::Worker(worker)) = &mut self.processes[node] else {
            return;
        };
        let Worker {
            registry,
            replies,
            results,
            ..
        } = &mut **worker;
        registry.hear_front(now, from);
        match request {
            Request::Ack { runs } => {
                for run in runs {
                    registry.acknowledge(*run);
                    if !registry.is_kept(*run) {
                        results.remove(run);
                    }
                }
            }
            Request::Cancel { run } => {
                replies.insert(*run, front);
                registry.cancel(now, *run);
            }
            Request::Status { run } => {
                replies.insert(*run, front);
                registry.status(now, *run);
            }
            Request::Keep { run, hold_s } => {
                replies.insert(*run, front);
                registry.keep(now, *run, from, Duration::from_secs(*hold_s));
            }
            Request::Release { run } => {
                registry.release(*run);
                results.remove(run);
            }
            Request::Leave => registry.leave(from),
            Request::Ping => {
                let runner = String::new();
                let pong = Message::Pong {
                    node: name,
                    epoch,
                    runner,
                };
                self.send(node, front, pong);
            }
            _ => {}
        }
    }

    /// Starts the script that a worker has accepted.
    fn start_runs(&mut self, node: Node, call: u64) {
        let Some(Process::Worker(worker)) = &mut self.processes[node] else {
            return;
        };
        let actions = worker.registry.take_actions();
        for action in &actions {
            let registry::Action::Start { run } = action else {
                continue;
            };
            let told = &self.calls[&call];
            let Machine { catalogue, labels } = &self.machines[node];
            let requirements = &told.order.requirements;
            if versions::schema_at(*catalogue, &requirements.path) != Some(told.schema) {
                self.fault = Some(format!(
                    "call {call} was run with the schema of another version"
                ));
            }
            if !requirements
                .labels
                .iter()
                .all(|label| labels.contains(label))
            {
                self.fault = Some(format!(
                    "call {call} was run on a worker without its labels"
                ));
            }
            let entry = self.journal.len();
            self.journal.push(Entry {
                call,
                run: *run,
                worker: node,
                epoch: self.epochs[node],
                end: None,
                is_done: false,
            });
            let is_killed = false;
            let end = Happening::ScriptEnd { entry, is_killed };
            self.agenda.add(self.now + told.lasts, end);
        }
        self.act_of_worker(node, actions);
    }

    pub(super) fn act(&mut self, node: Node) {
        match &mut self.processes[node] {
            Some(Process::Front(front)) => {
                for action in front.delivery.take_actions() {
                    self.act_of_front(node, action);
                }
            }
            Some(Process::Worker(worker)) => {
                let actions = worker.registry.take_actions();
                self.act_of_worker(node, actions);
            }
            None => {}
        }
    }

    fn act_of_front(&mut self, node: Node, action: delivery::Action) {
        use delivery::Action;

        match action {
            Action::Run {
                call,
                run,
                node: to,
                epoch,
                send,
            } => {
                let sending = self.sending(node, (call, run), (to, epoch), send);
                match self.calls[&call].task {
                    Some(_) => self.send_run_of_task(node, sending),
                    None => self.send_run(node, &sending),
                }
            }
            Action::Ack { runs, node: to } => self.control(node, &to, Request::Ack { runs }),
            Action::Cancel { run, node: to } => self.control(node, &to, Request::Cancel { run }),
            Action::Status { run, node: to } => self.control(node, &to, Request::Status { run }),
            Action::Keep { run, node: to } => {
                let hold_s = TASK_HOLD.as_secs();
                self.control(node, &to, Request::Keep { run, hold_s });
            }
            Action::Ping { node: to } => self.control(node, &to, Request::Ping),
            Action::Rerun { .. } => {}
            Action::Finish { call, run, answer } => self.finish(node, call, run, answer),
        }
    }

    /// Sends a run to its worker.
    pub(super) fn send_run(&mut self, node: Node, sending: &Sending) {
        let Sending {
            call, run, send, ..
        } = *sending;
        let (worker, epoch) = &sending.worker;
        let is_kept = self.calls[&call].task.is_some();
        let request = RunRequest {
            run,
            epoch: *epoch,
            front: self.name(node),
            hold: if is_kept { TASK_HOLD } else { HOLD },
            is_kept,
        };
        let front = node;
        if let Some(to) = self.node_of(worker) {
            let message = Message::Run {
                request,
                front,
                call,
                send,
            };
            self.send(node, to, message);
        }
    }

    /// Takes the answer to a call, and passes it on: to its caller, or to the record of its task.
    fn finish(&mut self, node: Node, call: u64, run: Option<RunId>, answer: Answer) {
        let Some(Process::Front(front)) = &mut self.processes[node] else {
            return;
        };
        let has_ended = answer == Answer::Ended;
        let is_ok = has_ended && run.is_some_and(|run| self.outcomes.get(&run) == Some(&true));
        let told = &self.calls[&call];
        // A run that became a task later may have ended before its worker knew of that.
        if is_ok && !front.has_result && (told.is_task || told.task.is_none()) {
            self.fault = Some(format!("the result of call {call} is not there any more"));
        }
        let ending = Ending {
            at: self.now,
            answer,
            run,
            is_ok: is_ok && front.has_result,
        };
        if told.task.is_some() {
            front.tasks.endings.insert(call, ending);
            self.store_endings(node);
        } else {
            self.tell(call, ending);
        }
    }

    /// Takes the end of a call.
    pub(super) fn tell(&mut self, call: u64, ending: Ending) {
        if self.is_traced {
            println!("{:?} call {call} is told {:?}", self.now, ending.answer);
        }
        let told = self.calls.get_mut(&call).expect("a call");
        if told.ending.is_some() || told.is_gone {
            self.fault = Some(format!("call {call} was told twice"));
        }
        told.ending = Some(ending);
    }

    fn act_of_worker(&mut self, node: Node, actions: Vec<registry::Action>) {
        for action in actions {
            match action {
                registry::Action::Say { run, word } => self.say(node, run, word),
                registry::Action::End { run } => {
                    let at = self.now + millis(self.chance.below(200));
                    let mut entries = self.journal.iter();
                    let is_it = |entry: &Entry| entry.run == run && entry.worker == node;
                    if let Some(entry) = entries.position(is_it) {
                        let is_killed = true;
                        self.agenda
                            .add(at, Happening::ScriptEnd { entry, is_killed });
                    }
                }
                registry::Action::Forget { run } => {
                    if let Some(Process::Worker(worker)) = &mut self.processes[node] {
                        worker.replies.remove(&run);
                        worker.results.remove(&run);
                    }
                }
                registry::Action::Start { .. } => {}
            }
        }
    }

    /// Sends an event to the front that hears of a run.
    fn say(&mut self, node: Node, run: RunId, word: Word) {
        let Some(Process::Worker(worker)) = &self.processes[node] else {
            return;
        };
        let cut = match &word {
            Word::End { cut, .. } => *cut,
            _ => None,
        };
        if cut == Some(Cut::Drain) && worker.draining_since.is_none() {
            self.fault = Some("a worker that does not drain ends a run for that".to_owned());
        }
        let has_result = worker.results.contains(&run);
        let Some(front) = worker.replies.get(&run).copied() else {
            return;
        };
        let event = Event::new(run, &self.name(node), self.epochs[node], word);
        self.send(node, front, Message::Event { event, has_result });
    }
}
