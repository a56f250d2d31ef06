//! Cancellations that no worker has confirmed yet: each is sent again a few times.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Action;
use crate::presence::Moment;
use crate::wire::RunId;

/// Interval at which a cancellation is sent again.
const RESEND: Duration = Duration::from_secs(1);
/// Number of times that one is sent again. A worker that can't be reached for longer ends the run
/// by its lease, or because it does not hear from the front.
const MAX_RESENDS: u8 = 15;

/// Cancellations on their way.
#[derive(Debug, Default)]
pub(super) struct Cancels(BTreeMap<RunId, Cancel>);

#[derive(Debug)]
struct Cancel {
    node: String,
    resends: u8,
    next: Moment,
}

impl Cancels {
    /// Adds one that has just been sent.
    pub(super) fn add(&mut self, now: Moment, run: RunId, node: String) {
        let next = now + RESEND;
        let resends = 0;
        self.0.insert(
            run,
            Cancel {
                node,
                resends,
                next,
            },
        );
    }

    /// The worker has said that the run is over.
    pub(super) fn finish(&mut self, run: RunId, node: &str) {
        if self.0.get(&run).is_some_and(|cancel| cancel.node == node) {
            self.0.remove(&run);
        }
    }

    pub(super) fn tick(&mut self, now: Moment, actions: &mut Vec<Action>) {
        self.0.retain(|_, cancel| cancel.resends < MAX_RESENDS);
        for (run, cancel) in &mut self.0 {
            if now >= cancel.next {
                cancel.next = now + RESEND;
                cancel.resends += 1;
                let node = cancel.node.clone();
                actions.push(Action::Cancel { run: *run, node });
            }
        }
    }
}
