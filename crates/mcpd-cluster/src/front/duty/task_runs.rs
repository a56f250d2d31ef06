//! Duty of a front towards its tasks, whose runs have a location before they are sent, and outlive
//! it; and towards other fronts, which continue with its tasks when it says good-bye or is missed.

use bytes::Bytes;
use mcpd_server::tasks::TaskKey;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::{Call, Duty, News, Sending};
use crate::delivery::CallId;
use crate::node::Incoming;
use crate::tasks::{Location, SharedTasks};
use crate::wire::{self, Control, Frame, Here, Kind, Pong};

impl Duty {
    /// Adds the store of tasks, and what tells the key of this front from another.
    pub(in super::super) fn with_tasks(self, tasks: Option<SharedTasks>, key_mark: String) -> Self {
        Self {
            tasks,
            key_mark,
            ..self
        }
    }

    /// Says whether a worker of the same name runs in this process.
    pub(in super::super) fn beside_worker(self, is_worker: bool) -> Self {
        Self { is_worker, ..self }
    }

    /// Reports a worker of the same name, once, unless it is this process's own.
    pub(super) fn report_namesake(&mut self, here: &Here) {
        let is_foreign = here.kind == Kind::Worker && !self.is_worker;
        if is_foreign && !std::mem::replace(&mut self.has_namesake, true) {
            tracing::warn!(
                node = here.node,
                "a worker has the name of this front, and its scripts are not served; change one \
                 of them (`--node`)"
            );
        }
    }

    /// Reports a front that can't open what this one seals, once.
    pub(super) fn compare_keys(&mut self, here: &Here) {
        let is_other = here.kind == Kind::Front && here.key != self.key_mark;
        if is_other && !self.key_mark.is_empty() && self.strangers.insert(here.node.clone()) {
            tracing::warn!(
                front = here.node,
                "this front has another state key: sessions, questions and tasks do not continue \
                 there; give all fronts the same `state_key_file`"
            );
        } else if !is_other {
            self.strangers.remove(&here.node);
        }
    }

    /// Says good-bye: workers end what no task needs, and other fronts continue with the tasks, if
    /// this process stops.
    pub(in super::super) async fn leave(mut self, is_final: bool) {
        self.delivery.send_acks();
        self.act();
        for worker in self.delivery.workers_in_use() {
            self.node.send_control(worker, wire::Request::Leave, None);
        }
        if is_final {
            self.announce_as(true);
        }
        self.node.flush().await;
    }

    /// Returns whether no call is open.
    pub(in super::super) fn is_idle(&self) -> bool {
        self.calls.is_empty()
    }

    /// Answers a node that asks whether this one is there.
    pub(in super::super) fn answer_ping(&self, message: &Incoming) {
        let control = Frame::<Control>::decode(&message.payload);
        let is_ping = control.is_ok_and(|frame| frame.head.request == wire::Request::Ping);
        let Some(reply) = message.reply.as_ref().filter(|_| is_ping) else {
            return;
        };
        let pong = Pong {
            v: wire::PROTOCOL_VERSION,
            node: self.node.name.clone(),
            epoch: self.node.epoch,
            runner: self.runner(),
        };
        self.node
            .send_frame(reply, None, &Frame::new(pong, Bytes::new()));
    }

    pub(super) fn runner(&self) -> String {
        let tasks = self.tasks.as_ref();
        tasks.map_or_else(String::new, |tasks| tasks.runner_name().to_owned())
    }

    /// Returns the call with this id of the server.
    pub(super) fn find_call(&mut self, run: &str) -> Option<(CallId, &mut Call)> {
        let mut calls = self.calls.iter_mut();
        let found = calls.find(|(_, call)| call.request.run == run);
        found.map(|(id, call)| (*id, call))
    }

    /// Ties a call to a task. Returns where its run is.
    pub(super) fn keep(&mut self, run: &str, task: TaskKey) -> Option<Location> {
        let (id, call) = self.find_call(run)?;
        call.request.task = Some(task);
        let location = self.delivery.keep(id);
        if let (Some((run, ..)), Some(call)) = (&location, self.calls.get_mut(&id)) {
            // The task is stored with it.
            call.recorded = Some((*run, true));
        }
        Some(match location {
            Some((run, node, epoch)) => Location::Worker { node, epoch, run },
            None => Location::Unsent,
        })
    }

    /// Sends a run whose task says where it will be.
    pub(super) fn send_recorded(&mut self, sending: Sending, recorded: Result<(), String>) {
        match recorded {
            Ok(()) => {
                let call = self.calls.get_mut(&sending.call);
                if let Some(call) = call.filter(|call| call.recorded == Some((sending.run, false)))
                {
                    call.recorded = Some((sending.run, true));
                    self.send_run(sending);
                }
            }
            // Never sent, so its worker does not know it, and another attempt follows.
            Err(error) => {
                tracing::warn!(%error, "failed to record where the run of a task is");
            }
        }
    }
}

/// Records where the run of a task will be.
pub(super) fn record(
    aside: &mut JoinSet<()>,
    tasks: SharedTasks,
    task: TaskKey,
    sending: Sending,
    news: mpsc::UnboundedSender<News>,
) {
    let location = Location::Worker {
        node: sending.worker.clone(),
        epoch: sending.epoch,
        run: sending.run,
    };
    aside.spawn(async move {
        let recorded = tasks.locate(&task, &location).await;
        // Without the front's task there is no front.
        news.send(News::Recorded { sending, recorded }).ok();
    });
}
