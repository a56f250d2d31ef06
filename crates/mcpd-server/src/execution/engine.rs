//! Parts of a server that all calls share: processes, limits, records, and what is kept between
//! calls.

use std::sync::Arc;

use mcpd_exec::Executor;
use tokio_util::sync::DropGuard;

use crate::client::subscribers::Subscribers;
use crate::execution::archive::Archive;
use crate::execution::seal::Seal;
use crate::limits::admission::Admission;
use crate::observe::Observers;
use crate::observe::missing_enforcement::MissingEnforcement;
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
    pub(crate) _stop_on_drop: DropGuard,
}

impl Engine {
    /// Creates the parts of a server that `stop` stops.
    pub(crate) fn new(
        executor: Executor,
        observers: Observers,
        subscribers: Arc<Subscribers>,
        seal: Seal,
        stop: DropGuard,
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
            _stop_on_drop: stop,
        }
    }
}
