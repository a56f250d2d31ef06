//! Parts of a server that all calls share: processes, limits, records, and what is kept between
//! calls.

use std::sync::Arc;

use arc_swap::ArcSwap;
use mcpd_exec::Executor;
use mcpd_protocol::{Stamp, Wire};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::client::subscribers::Subscribers;
use crate::execution::approval::Approvals;
use crate::execution::archive::Archive;
use crate::execution::seal::Seal;
use crate::limits::admission::Admission;
use crate::message::identity::Identity;
use crate::observe::Observers;
use crate::observe::missing_enforcement::MissingEnforcement;
use crate::policy::Policy;
use crate::policy::selection::Selections;
use crate::support::private_dir::LazyDirectory;

/// Shared parts, held by the server and by each call that runs: dropping the last holder stops the
/// server.
#[derive(Debug)]
pub(crate) struct Engine {
    /// Executor of the scripts.
    pub(crate) executor: Executor,
    /// Admission control.
    pub(crate) admission: Admission,
    /// Reported gaps in the confinement.
    pub(crate) missing_enforcement: MissingEnforcement,
    /// Recipients of records.
    pub(crate) observers: Observers,
    /// Archive of outputs that were too long for their results.
    pub(crate) archive: Arc<Archive>,
    /// Directory of values for runs that are too large or too private for a variable.
    pub(crate) inputs: Arc<LazyDirectory>,
    /// Subscribers to changes.
    pub(crate) subscribers: Arc<Subscribers>,
    /// Seal of script state that clients carry.
    pub(crate) seal: Seal,
    /// Approvals of calls.
    pub(crate) approvals: Approvals,
    /// Identity towards clients.
    pub(crate) identity: ArcSwap<Identity>,
    /// Headers that some script gets, in lower case.
    pub(crate) secret_headers: ArcSwap<Vec<String>>,
    /// Selections that requests choose.
    pub(crate) selections: ArcSwap<Selections>,
    stateful: Arc<Stamp>,
    /// Cancelled when the server stops.
    pub(crate) stopping: CancellationToken,
    _stop_on_drop: DropGuard,
}

impl Engine {
    /// Creates the parts of a server that stops when `stopping` is cancelled.
    pub(crate) fn new(
        executor: Executor,
        observers: Observers,
        subscribers: Arc<Subscribers>,
        seal: Seal,
        identity: Identity,
        stopping: CancellationToken,
    ) -> Self {
        Self {
            admission: Admission::new(executor.concurrency()),
            executor,
            missing_enforcement: MissingEnforcement::default(),
            observers,
            archive: Arc::default(),
            inputs: Arc::new(LazyDirectory::new("mcpd-inputs-")),
            subscribers,
            seal,
            approvals: Approvals::default(),
            identity: ArcSwap::from_pointee(identity),
            secret_headers: ArcSwap::default(),
            selections: ArcSwap::default(),
            stateful: Arc::new(Stamp::Stateful),
            _stop_on_drop: stopping.clone().drop_guard(),
            stopping,
        }
    }

    /// Sets what requests may bring and choose, and which calls need approval.
    pub(crate) fn set_choices(&self, policy: &Policy, selections: Selections) {
        self.approvals.reload(policy);
        self.secret_headers.store(Arc::new(policy.secret_headers()));
        self.selections.store(Arc::new(selections));
    }

    /// Stamp on results of `wire`.
    pub(crate) fn stamp(&self, wire: Wire) -> Arc<Stamp> {
        match wire {
            Wire::Stateful => Arc::clone(&self.stateful),
            Wire::Stateless => Arc::clone(self.identity.load().stateless()),
        }
    }
}
