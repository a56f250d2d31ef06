//! Acknowledgements of ends, many in one message. They wait for one tick at most, and a worker
//! repeats an end only after 500 ms.

use std::collections::BTreeMap;

use super::{Action, Delivery};
use crate::wire::RunId;

/// Number of acknowledgements for one worker that are sent without waiting for more: until then the
/// worker keeps the outcomes.
const MAX_WAITING: usize = 32;

/// Acknowledgements that have not been sent.
#[derive(Debug, Default)]
pub(super) struct Acks(BTreeMap<String, Vec<RunId>>);

impl Acks {
    /// Adds one, and sends those of its worker if they are many.
    pub(super) fn add(&mut self, run: RunId, node: &str, actions: &mut Vec<Action>) {
        let Some(runs) = self.0.get_mut(node) else {
            self.0.insert(node.to_owned(), vec![run]);
            return;
        };
        runs.push(run);
        if runs.len() >= MAX_WAITING {
            self.send_of(node, actions);
        }
    }

    /// Sends those of one worker, at most [`MAX_WAITING`].
    pub(super) fn send_of(&mut self, node: &str, actions: &mut Vec<Action>) {
        if let Some((node, runs)) = self.0.remove_entry(node) {
            actions.push(Action::Ack { runs, node });
        }
    }

    /// Sends all.
    pub(super) fn send(&mut self, actions: &mut Vec<Action>) {
        for (node, runs) in std::mem::take(&mut self.0) {
            actions.push(Action::Ack { runs, node });
        }
    }
}

impl<C> Delivery<C> {
    /// Acknowledges the end of a run: at the next tick, or with enough others of its worker.
    pub(crate) fn acknowledge(&mut self, run: RunId, node: &str) {
        self.acks.add(run, node, &mut self.actions);
    }

    /// Sends every acknowledgement that waits.
    pub(crate) fn send_acks(&mut self) {
        self.acks.send(&mut self.actions);
    }
}
