//! Network of the simulation: one server in between, links that stall and break, processes that
//! stop. Messages between two nodes keep their order, unless delays are long.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::placement::Chance;
use crate::presence::Moment;
use crate::registry::RunRequest;
use crate::wire::{Event, Here, Request, RunId};

/// Number of a node: fronts first, then workers.
pub(super) type Node = usize;

/// Message to a node.
#[derive(Debug, Clone)]
pub(super) enum Message {
    Here(Here),
    Run {
        request: RunRequest,
        front: Node,
        call: u64,
        send: u8,
    },
    /// Event of a run. That of an end has the result in its body, if its worker still has it.
    Event {
        event: Event,
        has_result: bool,
    },
    Control {
        from: String,
        node: Node,
        request: Request,
    },
    Pong {
        node: String,
        epoch: u64,
        /// Name under which a front runs tasks.
        runner: String,
    },
    /// The server had no subscriber for a run.
    NoRun {
        run: RunId,
        send: u8,
    },
    NoPing {
        to: Node,
    },
    /// A front writes into the bucket where the run of a task will be, and then sends it.
    Record(Sending),
    /// A script of this worker has ended.
    ScriptEnd {
        run: RunId,
        is_cut: bool,
    },
}

/// Run of a task on its way into the bucket and then to its worker.
#[derive(Debug, Clone)]
pub(super) struct Sending {
    pub(super) call: u64,
    pub(super) run: RunId,
    /// Name and start of the worker.
    pub(super) worker: (String, u64),
    pub(super) send: u8,
    /// Start of the front.
    pub(super) epoch: u64,
    /// Time after which the front gives up writing.
    pub(super) until: Moment,
    pub(super) is_written: bool,
}

impl Message {
    /// Returns whether it is from the node itself, so that no link is in between.
    fn is_local(&self) -> bool {
        matches!(self, Self::ScriptEnd { .. } | Self::Record(_))
    }
}

/// Link between a node and the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Link {
    Up,
    /// Bytes wait until it is up again.
    Stalled,
    /// Closed, as both sides know. What the node sends waits, or is lost.
    Cut {
        keeps: bool,
    },
}

/// State of a node.
#[derive(Debug)]
pub(super) struct Port {
    pub(super) link: Link,
    pub(super) is_alive: bool,
    /// Stopped by a signal: nothing is handled until it goes on.
    pub(super) is_stopped: bool,
    /// Time since which messages can't pass.
    pub(super) cut_off_since: Option<Moment>,
    outgoing: Vec<(Node, Message)>,
    pub(super) incoming: Vec<Message>,
}

/// Network with its faults.
#[derive(Debug)]
pub(super) struct Network {
    pub(super) ports: Vec<Port>,
    pub(super) is_server_up: bool,
    /// Messages lost of 1000.
    pub(super) loss: usize,
    /// Largest delay in milliseconds.
    pub(super) delay: usize,
    keeps_order: bool,
    arrival: BTreeMap<(Node, Node), Moment>,
}

/// Fate of a message.
#[derive(Debug)]
pub(super) enum Fate {
    Arrives(Moment),
    Waits,
    Lost,
    /// The server answers that no node subscribes.
    NoSubscriber,
}

impl Network {
    pub(super) fn new(nodes: usize, loss: usize, delay: usize) -> Self {
        let port = || Port {
            link: Link::Up,
            is_alive: true,
            is_stopped: false,
            cut_off_since: None,
            outgoing: Vec::new(),
            incoming: Vec::new(),
        };
        Self {
            ports: std::iter::repeat_with(port).take(nodes).collect(),
            is_server_up: true,
            loss,
            delay,
            keeps_order: delay < 1000,
            arrival: BTreeMap::new(),
        }
    }

    /// Decides what becomes of a message.
    pub(super) fn send(
        &mut self,
        now: Moment,
        chance: &mut Chance,
        (from, to): (Node, Node),
        message: &Message,
    ) -> Fate {
        match self.ports[from].link {
            Link::Up if self.is_server_up => {}
            Link::Cut { keeps: false } => return Fate::Lost,
            Link::Up | Link::Stalled | Link::Cut { keeps: true } => {
                self.ports[from].outgoing.push((to, message.clone()));
                return Fate::Waits;
            }
        }
        if self.loss > 0 && chance.below(1000) < self.loss {
            return Fate::Lost;
        }
        if !self.ports[to].is_alive || matches!(self.ports[to].link, Link::Cut { .. }) {
            return Fate::NoSubscriber;
        }
        let most = if chance.below(8) == 0 { self.delay } else { 4 };
        let delay = 1 + chance.below(most);
        let earliest = self.arrival.entry((from, to)).or_default();
        let at = now + Duration::from_millis(delay as u64);
        // A client that changes the server of a cluster may overtake its own messages.
        let at = if self.keeps_order {
            at.max(*earliest)
        } else {
            at
        };
        *earliest = at;
        Fate::Arrives(at)
    }

    /// Returns whether a message that arrives is handled now; otherwise it is kept, or lost.
    pub(super) fn admit(&mut self, to: Node, message: &Message) -> bool {
        let port = &mut self.ports[to];
        if !port.is_alive {
            return false;
        }
        match port.link {
            _ if message.is_local() => {}
            Link::Cut { .. } => return false,
            Link::Stalled => {
                port.incoming.push(message.clone());
                return false;
            }
            Link::Up => {}
        }
        if port.is_stopped {
            port.incoming.push(message.clone());
            return false;
        }
        true
    }

    /// Changes a link. Returns what it lets pass: messages of the node, and those to it.
    pub(super) fn set_link(
        &mut self,
        now: Moment,
        node: Node,
        link: Link,
    ) -> (Vec<(Node, Message)>, Vec<Message>) {
        let is_up = link == Link::Up && self.is_server_up;
        let port = &mut self.ports[node];
        port.link = link;
        if !is_up {
            port.cut_off_since.get_or_insert(now);
            if matches!(link, Link::Cut { keeps: false }) {
                port.outgoing.clear();
            }
            if matches!(link, Link::Cut { .. }) {
                // Messages that the server had for it are gone with the connection.
                port.incoming.retain(Message::is_local);
            }
            return (Vec::new(), Vec::new());
        }
        port.cut_off_since = None;
        let incoming = match port.is_stopped {
            true => Vec::new(),
            false => std::mem::take(&mut port.incoming),
        };
        (std::mem::take(&mut port.outgoing), incoming)
    }

    /// Returns whether messages of a node pass at once.
    pub(super) fn is_up(&self, node: Node) -> bool {
        self.is_server_up && self.ports[node].link == Link::Up
    }

    /// The process is gone, and with it what it had to send.
    pub(super) fn kill(&mut self, node: Node) {
        let port = &mut self.ports[node];
        port.is_alive = false;
        port.is_stopped = false;
        port.outgoing.clear();
        port.incoming.clear();
    }
}
