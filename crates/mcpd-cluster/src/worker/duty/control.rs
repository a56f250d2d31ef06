//! Requests of fronts about a worker and its runs: their state, their outputs, and their end.

use std::time::Duration;

use bytes::Bytes;
use mcpd_server::remote::KeptOutput;

use super::{Duty, MAX_HOLD};
use crate::node::Incoming;
use crate::registry::Action;
use crate::transfer::{self, PART};
use crate::wire::{
    Control, Frame, FrameError, PROTOCOL_VERSION, PartRequest, Pong, Request, RunId, Stream,
};

impl Duty {
    /// Follows a request of a front about the worker or one of its runs.
    pub(super) fn hear_control(&mut self, message: &Incoming) -> Result<(), FrameError> {
        let Control { from, request, .. } = Frame::<Control>::decode(&message.payload)?.head;
        let now = self.node.now();
        self.registry.hear_front(now, &from);
        let reply = message.reply.as_ref().map(ToString::to_string);
        match request {
            Request::Ack { runs } => runs.iter().for_each(|run| self.hear_ack(*run)),
            Request::Keep { run, hold_s } => {
                if let Some(running) = self.runs.get(&run) {
                    running.lines.restart();
                }
                self.set_reply(run, reply);
                let hold = Duration::from_secs(hold_s).min(MAX_HOLD);
                self.registry.keep(now, run, &from, hold);
                self.answer_without_entry(run, message);
            }
            Request::Release { run } => {
                self.registry.release(run);
                self.drop_ended(run);
            }
            Request::Leave => self.registry.leave(&from),
            Request::Lines { run, bytes } => {
                if let Some(running) = self.runs.get(&run) {
                    running.lines.acknowledge(bytes);
                    self.send_lines(run);
                }
            }
            Request::Cancel { run } => {
                self.set_reply(run, reply);
                self.registry.cancel(now, run);
                self.answer_without_entry(run, message);
            }
            Request::Status { run } => {
                self.set_reply(run, reply);
                self.registry.status(now, run);
                self.answer_without_entry(run, message);
            }
            Request::Part(part) => self.send_part(part, reply),
            Request::Ping => self.send_pong(reply),
            Request::Drain => {
                self.drain();
                self.send_pong(reply);
            }
            Request::Other => {}
        }
        Ok(())
    }

    /// The front has the end of a run.
    fn hear_ack(&mut self, run: RunId) {
        self.registry.acknowledge(run);
        if !self.registry.is_kept(run) {
            self.drop_ended(run);
        }
    }

    /// Drops a run that has ended, with its outcome: that the registry remembers it is enough from
    /// now on.
    fn drop_ended(&mut self, run: RunId) {
        if self.registry.has_ended(run) {
            self.runs.remove(&run);
        }
    }

    fn send_pong(&self, reply: Option<String>) {
        let pong = Pong {
            v: PROTOCOL_VERSION,
            node: self.node.name.clone(),
            epoch: self.node.epoch,
            runner: String::new(),
        };
        if let Some(reply) = reply {
            let frame = Frame::new(pong, Bytes::new());
            self.node.send_frame(&reply, None, &frame);
        }
    }

    fn set_reply(&mut self, run: RunId, reply: Option<String>) {
        if let (Some(running), Some(reply)) = (self.runs.get_mut(&run), reply) {
            running.reply = reply;
        }
    }

    /// Answers for a run that has no entry with a subject to answer to: it was never here, or is
    /// acknowledged.
    fn answer_without_entry(&mut self, run: RunId, message: &Incoming) {
        if self.runs.contains_key(&run) {
            return;
        }
        for action in self.registry.take_actions() {
            match (action, &message.reply) {
                (Action::Say { run: said, word }, Some(reply)) if said == run => {
                    self.send_event(reply, run, word, Bytes::new());
                }
                (action, _) => self.follow(action),
            }
        }
    }

    /// Sends a part of an output.
    fn send_part(&self, part: PartRequest, reply: Option<String>) {
        let Some(reply) = reply else {
            return;
        };
        let stream = match part.stream {
            Stream::Stdout => mcpd_exec::Stream::Stdout,
            Stream::Stderr => mcpd_exec::Stream::Stderr,
            Stream::Input | Stream::Outcome => {
                let outcome = self.runs.get(&part.run).and_then(|one| one.ended.as_ref());
                let answer = transfer::part_of(outcome, part.offset, part.length);
                return self.node.send_frame(&reply, None, &answer);
            }
        };
        let (node, server) = (self.node.clone(), self.server.clone());
        tokio::spawn(async move {
            let name = node.name.clone();
            let output = KeptOutput::new(name, part.run.to_string(), stream, part.principal);
            let end = part.offset.saturating_add(part.length.min(PART));
            let answer = match server.read_kept(&output, part.offset..end).await {
                Ok(bytes) => transfer::part(bytes),
                Err(error) => transfer::missing(&error.to_string()),
            };
            node.send_frame(&reply, None, &answer);
        });
    }
}
