//! One attempt to run something at one start of a worker: retransmission until it is accepted,
//! questions about its state afterwards.

use std::time::Duration;

use crate::presence::{Contact, Moment, Presence};
use crate::wire::RunId;

/// Time without `accepted` after which a run is sent again.
const RESEND: Duration = Duration::from_secs(1);
/// Number of times that a run is sent, the first time included.
const MAX_SENDS: u8 = 4;
/// Time after which a run counts as accepted, whatever was heard of it: its worker may have run it
/// and forgotten it by then.
const MAX_UNACCEPTED: Duration = Duration::from_secs(20);
/// Silence of a run after which its state is asked for.
const STATUS_INTERVAL: Duration = Duration::from_secs(5);

/// One attempt.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) run: RunId,
    pub(super) node: String,
    pub(super) epoch: u64,
    sent: Moment,
    pub(super) sends: u8,
    pub(super) is_accepted: bool,
    /// Last event of this run, or the time of its sending.
    pub(super) heard: Moment,
    next: Moment,
}

/// Next step of an attempt that nothing is wrong with so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Nothing,
    Resend,
    /// The worker must promise that it has not run it, and will not.
    Withdraw,
    AskStatus,
}

impl Attempt {
    /// Attempt that is sent at `now`.
    pub(super) fn new(now: Moment, run: RunId, node: String, epoch: u64) -> Self {
        Self {
            run,
            node,
            epoch,
            sent: now,
            sends: 1,
            is_accepted: false,
            heard: now,
            next: now + RESEND,
        }
    }

    /// Judges the contact with the worker. A worker that talks of other things only, and not of
    /// this run when it is asked, counts as silent.
    pub(super) fn contact(&self, now: Moment, presence: &Presence) -> Contact {
        let is_quiet = now.saturating_sub(self.heard) > 2 * STATUS_INTERVAL;
        let heard = (is_quiet || !self.is_accepted).then_some(self.heard);
        presence.contact(now, &self.node, self.epoch, heard)
    }

    /// Advances by time.
    pub(super) fn step(&mut self, now: Moment) -> Step {
        self.is_accepted |= now.saturating_sub(self.sent) >= MAX_UNACCEPTED;
        if self.is_accepted {
            let since = self.heard.max(self.next);
            if now.saturating_sub(since) < STATUS_INTERVAL {
                return Step::Nothing;
            }
            self.next = now;
            return Step::AskStatus;
        }
        if now < self.next {
            return Step::Nothing;
        }
        self.next = now + RESEND;
        if self.sends < MAX_SENDS {
            self.sends += 1;
            return Step::Resend;
        }
        Step::Withdraw
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_that_may_be_forgotten_is_not_sent_again() {
        let run = RunId { id: 1, attempt: 0 };
        let mut attempt = Attempt::new(Duration::ZERO, run, "w1".to_owned(), 1);
        // Its front was away meanwhile.
        assert_eq!(attempt.step(Duration::from_secs(70)), Step::AskStatus);
        assert!(attempt.is_accepted);
    }
}
