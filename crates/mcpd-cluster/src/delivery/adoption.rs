//! Runs of tasks, which outlive their front: kept by their worker, left by one front, adopted by
//! another.

use super::attempt::Attempt;
use super::{Action, Call, CallId, Catalogues, Delivery, Order};
use crate::presence::Moment;
use crate::wire::RunId;

impl<C: Catalogues> Delivery<C> {
    /// Begins the delivery of a call whose run another front has sent to a worker.
    pub(crate) fn adopt(
        &mut self,
        now: Moment,
        call: CallId,
        (run, node, epoch): (RunId, String, u64),
        order: Order,
    ) {
        self.by_run.insert(run.id, call);
        let mut attempt = Attempt::new(now, run, node.clone(), epoch);
        // It may have been, and then it must not be sent anywhere else.
        attempt.is_accepted = true;
        *self.in_flight.entry(node.clone()).or_default() += 1;
        let mut state = Call::new(now, run.next(), order);
        state.current = Some(attempt);
        self.calls.insert(call, state);
        self.actions.push(Action::Keep { run, node });
    }

    /// Says that the run of a call belongs to a task. Returns where it is, if it is somewhere.
    pub(crate) fn keep(&mut self, call: CallId) -> Option<(RunId, String, u64)> {
        let attempt = self.calls.get(&call)?.current.as_ref()?;
        let (run, node) = (attempt.run, attempt.node.clone());
        self.actions.push(Action::Keep {
            run,
            node: node.clone(),
        });
        Some((run, node, attempt.epoch))
    }

    /// Ends the delivery of a call whose run goes on.
    pub(crate) fn leave(&mut self, call: CallId) {
        self.remove(call);
    }

    /// Returns the workers that have runs of this front.
    pub(crate) fn workers_in_use(&self) -> impl Iterator<Item = &String> {
        self.in_flight.keys()
    }
}
