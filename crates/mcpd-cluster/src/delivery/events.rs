//! Events of runs, and what each means for its call.

use super::{Answer, CallId, Catalogues, Delivery, MAX_BUSY};
use crate::delivery::verdict::{MAX_RERUNS, Rerun};
use crate::presence::Moment;
use crate::wire::{Cut, Event, Refusal, Word};

impl<C: Catalogues> Delivery<C> {
    /// Records an event of a run. An [`Answer::Ended`] among the actions that follow is that of
    /// this event.
    pub(crate) fn hear_event(&mut self, now: Moment, event: &Event) {
        let (run, node) = (event.run, &event.node);
        if let Word::End { size, .. } = &event.word {
            // Also for a run that no caller waits for: the worker repeats it until then.
            self.acknowledge(run, node);
            if size.is_some() {
                // It keeps much for this one.
                self.acks.send_of(node, &mut self.actions);
            }
        }
        if matches!(
            event.word,
            Word::End { .. } | Word::Unknown | Word::Refused { .. }
        ) {
            self.cancels.finish(run, node);
        }
        let Some((call, attempt)) = self.current(run) else {
            return;
        };
        if attempt.node != *node {
            tracing::warn!(%node, "an event of a run that is not there was ignored");
            return;
        }
        // Another start of the worker can't know whether the meant one has run it.
        let is_meant = attempt.epoch == event.epoch;
        if is_meant {
            attempt.heard = now;
        }
        self.presence.hear_from(now, node, event.epoch);
        if is_meant {
            self.apply(now, call, &event.word);
        }
    }

    fn apply(&mut self, now: Moment, call: CallId, word: &Word) {
        match word {
            Word::Accepted => {
                let state = self.calls.get_mut(&call);
                if let Some(attempt) = state.and_then(|state| state.current.as_mut()) {
                    attempt.is_accepted = true;
                }
            }
            Word::Lines { .. } | Word::Other => {}
            Word::Unknown => self.hear_unknown(now, call),
            Word::Refused { reason, text } => self.refuse(now, call, *reason, text),
            Word::End { cut, .. } => self.end(now, call, *cut),
        }
    }

    fn end(&mut self, now: Moment, call: CallId, cut: Option<Cut>) {
        let Some(state) = self.calls.get(&call) else {
            return;
        };
        let Some(attempt) = &state.current else {
            return;
        };
        let (run, node) = (attempt.run, attempt.node.clone());
        if matches!(cut, Some(Cut::Lease | Cut::Front)) {
            // Ended by the worker, so another run does not overlap with it.
            let may_rerun = state.order.rerun != Rerun::Never && state.reruns < MAX_RERUNS;
            if may_rerun {
                return self.rerun(now, call);
            }
            return self.finish(call, Some(run), Answer::Lost { node });
        }
        self.finish(call, Some(run), Answer::Ended);
    }

    /// The worker does not know the run, and will not start it any more.
    fn hear_unknown(&mut self, now: Moment, call: CallId) {
        let Some(attempt) = self.calls.get(&call).and_then(|call| call.current.as_ref()) else {
            return;
        };
        let node = attempt.node.clone();
        if attempt.is_accepted {
            self.lose(now, call);
        } else {
            self.exclude_and_place(now, call, node);
        }
    }

    fn refuse(&mut self, now: Moment, call: CallId, reason: Refusal, text: &str) {
        let Some(state) = self.calls.get_mut(&call) else {
            return;
        };
        let Some(node) = state.current.as_ref().map(|attempt| attempt.node.clone()) else {
            return;
        };
        match reason {
            // That is no promise: the judgement of its presence follows.
            Refusal::Epoch => return,
            Refusal::Invalid => {
                let (run, text) = (state.current.as_ref().map(|one| one.run), text.to_owned());
                return self.finish(call, run, Answer::Refused { reason, text });
            }
            Refusal::Busy => {
                state.busy += 1;
                if state.busy >= MAX_BUSY || state.order.requirements.home {
                    return self.finish(call, None, Answer::Busy);
                }
            }
            _ => state.refusal = Some((reason, text.to_owned())),
        }
        self.exclude_and_place(now, call, node);
    }
}
