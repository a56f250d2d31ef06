//! Fronts that a worker runs scripts for. A receiver of NATS does not learn who has sent a message,
//! so the front that a run names is asked for it, on a subject that no other node may hear: another
//! sender gets no confirmation, and nothing is started.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::run::Report;
use crate::node::{Incoming, Node};
use crate::settings::Name;
use crate::transfer::RunHead;
use crate::wire::{Control, Frame, Part, PartRequest, Request, RunId, Stream};

/// Time limit for the confirmation of a run.
const CONFIRMATION_TIMEOUT: Duration = Duration::from_secs(3);
/// Number of runs that are being confirmed at a time.
const MAX_ASKED: usize = 256;

/// Judgement of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Accepted,
    /// Its front must confirm it first.
    ToConfirm,
    /// Its front is being asked, or too many are: the run will be sent again.
    Wait,
    Denied,
}

/// Fronts whose runs are accepted.
#[derive(Debug)]
pub(super) struct Acceptance {
    /// All, without it.
    fronts: Option<BTreeSet<Name>>,
    /// Runs that are being confirmed.
    asked: BTreeSet<RunId>,
}

impl Acceptance {
    pub(super) fn new(fronts: Option<BTreeSet<Name>>) -> Self {
        Self {
            fronts,
            asked: BTreeSet::new(),
        }
    }

    /// Judges a run that is not known yet.
    pub(super) fn judge(&mut self, run: RunId, front: &str) -> Verdict {
        let Some(fronts) = &self.fronts else {
            return Verdict::Accepted;
        };
        if !fronts.iter().any(|one| one.as_str() == front) {
            return Verdict::Denied;
        }
        if self.asked.len() >= MAX_ASKED || !self.asked.insert(run) {
            return Verdict::Wait;
        }
        Verdict::ToConfirm
    }

    /// Ends the confirmation of a run.
    pub(super) fn forget(&mut self, run: RunId) {
        self.asked.remove(&run);
    }
}

/// Returns the name of the front that a run says it is from.
pub(super) fn front_of(head: &RunHead) -> &str {
    head.front.split('.').next().unwrap_or_default()
}

/// Asks a front for a run, and reports whether it is its own.
pub(super) async fn confirm(
    node: Node,
    run: RunId,
    front: String,
    message: Incoming,
    reports: mpsc::UnboundedSender<Report>,
) {
    let part = PartRequest {
        run,
        stream: Stream::Input,
        offset: 0,
        length: 0,
        principal: String::new(),
    };
    let control = Control::new(&node.identity(), Request::Part(part));
    let question = Frame::new(control, Bytes::new());
    let answer = node.request::<_, Part>(node.subject("in", &front), &question);
    let answer = timeout(CONFIRMATION_TIMEOUT, answer).await;
    let is_confirmed = matches!(answer, Ok(Ok(Frame { head, .. })) if head.missing.is_none());
    let report = Report::Confirmed {
        run,
        message,
        is_confirmed,
    };
    // Without the worker's loop nothing is run either.
    reports.send(report).ok();
}
