//! One schedule: calls and faults drawn from a seed, played until everything is over.

use std::collections::BTreeMap;
use std::time::Duration;

use super::network::{Fate, Link, Message, Network, Node};
use super::world::{Agenda, Entry, Everything, Fault, Happening, Told, Weather, judge};
use crate::delivery::{self, Answer, Delivery, Order, Rerun};
use crate::placement::{Chance, Requirements};
use crate::presence::Moment;
use crate::registry::{self, Limits, Registry, RunRequest};
use crate::wire::{Cut, Event, Here, Kind, Request, RunId, Word};

const TICK: Duration = Duration::from_millis(250);
const LEASE: Duration = Duration::from_secs(4);
/// Time in which calls and faults begin.
const BUSY_TIME: usize = 6_000;
/// Time after which nothing may be left to happen.
const HORIZON: Duration = Duration::from_secs(150);

/// Process of a node.
enum Process {
    Front(Box<Delivery<Everything>>),
    Worker(Registry),
}

struct Simulation {
    now: Moment,
    chance: Chance,
    agenda: Agenda,
    network: Network,
    fronts: usize,
    processes: Vec<Option<Process>>,
    /// Number of the start of each node.
    epochs: Vec<u64>,
    last_here: Vec<Moment>,
    calls: BTreeMap<u64, Told>,
    journal: Vec<Entry>,
    /// Outcomes that workers hold, and whether each is a success.
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
    let fronts = 1 + usize::from(chance.below(6) == 0);
    let workers = 1 + chance.below(3);
    let loss = [0, 0, 0, 20, 100][chance.below(5)];
    let delay = [5, 5, 300, 1500][chance.below(4)];
    let mut simulation = Simulation {
        now: Moment::ZERO,
        agenda: Agenda::default(),
        network: Network::new(fronts + workers, loss, delay),
        fronts,
        processes: (0..fronts + workers).map(|_| None).collect(),
        epochs: vec![0; fronts + workers],
        last_here: vec![Moment::ZERO; fronts + workers],
        calls: BTreeMap::new(),
        journal: Vec::new(),
        outcomes: BTreeMap::new(),
        pending: 0,
        fault: None,
        is_traced: std::env::var_os("MCPD_SIMULATION_SEED").is_some(),
        chance,
    };
    let weather = simulation.plan();
    let is_calm = loss == 0 && delay == 5;
    simulation.play()?;
    let weather = if is_calm { weather } else { Weather::Any };
    judge(&simulation.calls, &simulation.journal, weather)
}

impl Simulation {
    fn is_front(&self, node: Node) -> bool {
        node < self.fronts
    }

    fn name(&self, node: Node) -> String {
        match self.is_front(node) {
            true => format!("f{node}.{}", self.epochs[node]),
            false => format!("w{node}"),
        }
    }

    fn node_of(&self, name: &str) -> Option<Node> {
        let number: Node = name.get(1..)?.split('.').next()?.parse().ok()?;
        (self.name(number) == name).then_some(number)
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
            let at = millis(self.chance.below(BUSY_TIME));
            let reruns = [
                Rerun::Never,
                Rerun::Never,
                Rerun::ReadOnly,
                Rerun::Idempotent,
            ];
            let lasts = [50, 400, 2000, 400, 50, 12_000][self.chance.below(6)];
            let told = Told {
                front: self.chance.below(self.fronts),
                rerun: reruns[self.chance.below(4)],
                lasts: millis(1 + self.chance.below(lasts)),
                begun: false,
                is_gone: false,
                answer: None,
            };
            self.calls.insert(number, told);
            self.agenda.add(at, Happening::Call(number));
            self.pending += 1;
            if self.chance.below(10) == 0 {
                let at = at + millis(self.chance.below(2000));
                self.agenda.add(at, Happening::HangUp(number));
                self.pending += 1;
            }
        }
        let kind = self.chance.below(8);
        if kind == 7 {
            return self.plan_mild_fault();
        }
        for _ in 0..self.chance.below(5) {
            let kind = if kind == 6 {
                self.chance.below(6)
            } else {
                kind
            };
            self.plan_fault(kind);
        }
        if kind == 0 {
            Weather::Kills
        } else {
            Weather::Any
        }
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
            _ => (Fault::Kill(any), Fault::Start(any)),
        };
        self.pending += 1;
        self.agenda.add(at, Happening::Fault(begin));
        self.agenda.add(end, Happening::Fault(finish));
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
            && self.journal.iter().all(|entry| entry.end.is_some())
            && self
                .processes
                .iter()
                .flatten()
                .all(|process| match process {
                    Process::Front(front) => front.has_answered_all(),
                    Process::Worker(worker) => worker.active() == 0,
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
            Happening::HangUp(number) => {
                self.pending -= 1;
                let call = self.calls.get_mut(&number).expect("a call");
                if call.begun && call.answer.is_none() && !call.is_gone {
                    call.is_gone = true;
                    let (front, now) = (call.front, self.now);
                    if let Some(Process::Front(delivery)) = &mut self.processes[front] {
                        delivery.hang_up(now, number);
                    }
                    self.act(front);
                }
            }
            Happening::Fault(fault) => self.inject(fault),
            Happening::ScriptEnd { entry, is_killed } => self.end_script(entry, is_killed),
        }
    }

    fn call(&mut self, number: u64) {
        let id = u128::from(self.chance.next()) << 64 | u128::from(number);
        let call = self.calls.get_mut(&number).expect("a call");
        let front = call.front;
        if !self.network.ports[front].is_alive || self.network.ports[front].is_stopped {
            return;
        }
        call.begun = true;
        let order = Order {
            requirements: Requirements::default(),
            digest: String::new(),
            rerun: call.rerun,
        };
        if let Some(Process::Front(delivery)) = &mut self.processes[front] {
            delivery.call(self.now, number, id, order);
        }
        self.act(front);
    }

    fn inject(&mut self, fault: Fault) {
        if !matches!(
            fault,
            Fault::Kill(_) | Fault::Stop(_) | Fault::Server { is_up: false }
        ) && !matches!(fault, Fault::Link(_, Link::Stalled | Link::Cut { .. }))
        {
            self.pending -= 1;
        }
        match fault {
            Fault::Kill(node) => self.kill(node),
            Fault::Start(node) if !self.network.ports[node].is_alive => self.start(node),
            Fault::Start(_) => {}
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
            Process::Front(Box::new(Delivery::new(self.now, LEASE, seed, Everything)))
        } else {
            let limits = Limits {
                lease: LEASE,
                slots: 2,
            };
            Process::Worker(Registry::new(self.now, epoch, limits))
        };
        self.processes[node] = Some(process);
        self.announce(node);
    }

    fn kill(&mut self, node: Node) {
        self.network.kill(node);
        self.processes[node] = None;
        if self.is_front(node) {
            for call in self.calls.values_mut().filter(|call| call.front == node) {
                call.is_gone |= call.begun && call.answer.is_none();
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
            let end = Message::ScriptEnd {
                run: id,
                is_cut: is_killed,
            };
            self.agenda.add(self.now, Happening::Arrival(worker, end));
        }
    }

    fn announce(&mut self, node: Node) {
        self.last_here[node] = self.now;
        let kind = match self.is_front(node) {
            true => Kind::Front,
            false => Kind::Worker,
        };
        let mut here = Here::new(&self.name(node), self.epochs[node], kind);
        here.at_ms = self.now.as_millis() as u64;
        here.slots = 2;
        self.send(node, node, Message::Here(here.clone()));
        if kind == Kind::Worker {
            for front in 0..self.fronts {
                self.send(node, front, Message::Here(here.clone()));
            }
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
                    } => Message::NoPing {
                        node: self.name(to),
                    },
                    _ => return,
                };
                let at = self.now + millis(1);
                self.agenda.add(at, Happening::Arrival(from, answer));
            }
        }
    }

    fn tick(&mut self, node: Node) {
        if self.now - self.last_here[node] >= Duration::from_secs(1) {
            self.announce(node);
        }
        match &mut self.processes[node] {
            Some(Process::Front(delivery)) => delivery.tick(self.now),
            Some(Process::Worker(registry)) => {
                registry.tick(self.now);
                let cut_off = self.network.ports[node].cut_off_since;
                let limit = LEASE + Duration::from_secs(2);
                let is_long = cut_off.is_some_and(|since| self.now > since + limit);
                let mut entries = self.journal.iter();
                if is_long && entries.any(|run| run.worker == node && run.end.is_none()) {
                    self.fault = Some("a script outlives the lease of its worker".to_owned());
                }
            }
            None => {}
        }
        self.act(node);
    }

    fn handle(&mut self, node: Node, message: Message) {
        let now = self.now;
        match (&mut self.processes[node], message) {
            (Some(Process::Front(front)), Message::Here(here)) if here.kind == Kind::Front => {
                let is_own = here.epoch == self.epochs[node];
                let sent = Duration::from_millis(here.at_ms);
                front
                    .presence
                    .echo
                    .hear(now, if is_own { sent } else { Moment::ZERO });
            }
            (Some(Process::Front(front)), Message::Here(here)) => {
                front.hear_here(now, here);
            }
            (Some(Process::Front(front)), Message::Event(event)) => {
                front.hear_event(now, &event);
            }
            (Some(Process::Front(front)), Message::Pong { node, epoch }) => {
                front.hear_pong(now, &node, epoch);
            }
            (Some(Process::Front(front)), Message::NoRun { run, send }) => {
                front.miss_run(now, run, send);
            }
            (Some(Process::Front(front)), Message::NoPing { node }) => front.miss_ping(now, &node),
            (Some(Process::Worker(_)), message) => self.handle_at_worker(node, message),
            _ => {}
        }
        self.act(node);
    }

    fn handle_at_worker(&mut self, node: Node, message: Message) {
        let now = self.now;
        let (epoch, name) = (self.epochs[node], self.name(node));
        let Some(Process::Worker(worker)) = &mut self.processes[node] else {
            return;
        };
        match message {
            Message::Here(here) if here.epoch == epoch => {
                worker.echo.hear(now, Duration::from_millis(here.at_ms));
            }
            Message::Run { request, call, .. } => {
                let mut started = false;
                worker.request(now, &request, || {
                    started = true;
                    Ok(())
                });
                if started {
                    let entry = Entry {
                        call,
                        run: request.run,
                        worker: node,
                        epoch,
                        end: None,
                        is_done: false,
                    };
                    let is_killed = false;
                    let ends = now + self.calls[&call].lasts;
                    let happening = Happening::ScriptEnd {
                        entry: self.journal.len(),
                        is_killed,
                    };
                    self.journal.push(entry);
                    self.agenda.add(ends, happening);
                }
                self.act_of_worker(node, &request.front);
            }
            Message::Control {
                from,
                node: front,
                request,
            } => {
                worker.hear_front(now, &from);
                match request {
                    Request::Ack { run } => worker.acknowledge(run),
                    Request::Cancel { run } => worker.cancel(now, run),
                    Request::Status { run } => worker.status(now, run),
                    Request::Ping => self.send(node, front, Message::Pong { node: name, epoch }),
                    _ => {}
                }
                self.act_of_worker(node, &from);
            }
            Message::ScriptEnd { run, is_cut } => worker.end(now, run, is_cut),
            _ => {}
        }
    }

    fn act(&mut self, node: Node) {
        if self.is_front(node) {
            self.act_of_front(node);
        } else {
            self.act_of_worker(node, "");
        }
    }

    fn act_of_front(&mut self, node: Node) {
        let Some(Process::Front(front)) = &mut self.processes[node] else {
            return;
        };
        for action in front.take_actions() {
            self.act_one(node, action);
        }
    }

    fn act_one(&mut self, node: Node, action: delivery::Action) {
        let from = self.name(node);
        let control = |simulation: &mut Self, to: &str, request| {
            if let Some(to) = simulation.node_of(to) {
                let from = from.clone();
                simulation.send(
                    node,
                    to,
                    Message::Control {
                        from,
                        node,
                        request,
                    },
                );
            }
        };
        match action {
            delivery::Action::Run {
                call,
                run,
                node: to,
                epoch,
                send,
            } => {
                let request = RunRequest {
                    run,
                    epoch,
                    front: from,
                    hold: Duration::from_secs(60),
                    is_kept: false,
                };
                if let Some(to) = self.node_of(&to) {
                    self.send(
                        node,
                        to,
                        Message::Run {
                            request,
                            call,
                            send,
                        },
                    );
                }
            }
            delivery::Action::Ack { run, node: to } => control(self, &to, Request::Ack { run }),
            delivery::Action::Cancel { run, node: to } => {
                control(self, &to, Request::Cancel { run });
            }
            delivery::Action::Status { run, node: to } => {
                control(self, &to, Request::Status { run });
            }
            // No call of the simulation is a task.
            delivery::Action::Keep { .. } => {}
            delivery::Action::Ping { node: to } => control(self, &to, Request::Ping),
            delivery::Action::Rerun { .. } => {}
            delivery::Action::Finish { call, run, answer } => self.tell(call, run, answer),
        }
    }

    /// Takes the answer to a call.
    fn tell(&mut self, call: u64, run: Option<RunId>, answer: Answer) {
        let is_ok = run.is_some_and(|run| self.outcomes.get(&run) == Some(&true));
        let was_ok = answer == Answer::Ended && is_ok;
        if self.is_traced {
            println!("{:?} call {call} is told {answer:?}", self.now);
        }
        let told = self.calls.get_mut(&call).expect("a call");
        if told.answer.is_some() || told.is_gone {
            self.fault = Some(format!("call {call} was told twice"));
        }
        told.answer = Some((self.now, answer, run, was_ok));
    }

    fn act_of_worker(&mut self, node: Node, asker: &str) {
        let Some(Process::Worker(worker)) = &mut self.processes[node] else {
            return;
        };
        for action in worker.take_actions() {
            match action {
                registry::Action::Say { run, word } => self.say(node, run, word, asker),
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
                registry::Action::Start { .. } | registry::Action::Forget { .. } => {}
            }
        }
    }

    /// Sends an event to the front of a run, or to the one that asked about it.
    fn say(&mut self, node: Node, run: RunId, word: Word, asker: &str) {
        let call = (run.id & u128::from(u64::MAX)) as u64;
        let front = self.calls[&call].front;
        let front = self.node_of(asker).unwrap_or(front);
        if matches!(
            word,
            Word::End {
                cut: Some(Cut::Drain),
                ..
            }
        ) {
            self.fault = Some("no worker drains here".to_owned());
        }
        let event = Event::new(run, &self.name(node), self.epochs[node], word);
        self.send(node, front, Message::Event(event));
    }
}
