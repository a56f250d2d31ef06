//! Server: everything that is served, fixed at the start and cheap to share. It does no I/O with
//! clients itself; a [`Connection`](crate::Connection) or a transport does.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpd_exec::Executor;
use mcpd_protocol::jsonrpc::ErrorObject;

use crate::catalog::Catalog;
use crate::catalog::call::CallHost;
use crate::catalog::live::LiveCatalog;
use crate::catalog::source::Measurements;
use crate::catalog::tool::Tool;
use crate::client::subscribers::Event;
use crate::execution::engine::Engine;
use crate::observe::audit::Audit;
#[cfg(feature = "metrics")]
use crate::observe::metrics::Readings;
#[cfg(feature = "metrics")]
use crate::observe::operator::ServerNumbers;
use crate::policy::principal::Principal;
#[cfg(feature = "metrics")]
use crate::support::sync::lock;
use crate::tools::tasks::Tasks;
use crate::tools::tasks::store::BackgroundTask;

mod builder;
pub(crate) mod error;
mod for_front;
mod identity;
mod settings;

use identity::BuiltWith;
use settings::AppliedSettings;

pub use builder::ServerBuilder;
pub use settings::Settings;

/// Grace period of scripts when the server stops.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);

/// Running server, shared by all clones. It stops when the last clone is dropped; each running
/// task holds one.
#[derive(Debug, Clone)]
pub struct Server {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    built_with: BuiltWith,
    watching: bool,
    call_host: CallHost,
    probes: Executor,
    applied: Mutex<AppliedSettings>,
    tasks: Option<Arc<Tasks>>,
    #[cfg_attr(
        not(feature = "metrics"),
        expect(dead_code, reason = "nothing shows them")
    )]
    measurements: Measurements,
}

impl Server {
    /// Creates a builder.
    pub fn builder() -> ServerBuilder {
        ServerBuilder::new()
    }

    /// Parts that calls reach.
    pub(crate) fn call_host(&self) -> &CallHost {
        &self.inner.call_host
    }

    /// Parts that all calls share.
    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.inner.call_host.engine
    }

    /// Current catalog. Before the first scan it holds the built-in entries only: see
    /// [`catalog_ready`](Self::catalog_ready).
    #[must_use]
    pub fn catalog(&self) -> Arc<Catalog> {
        self.live_catalog().current()
    }

    /// Live catalog, for holders that must not keep the server running.
    pub(crate) fn live_catalog(&self) -> &Arc<LiveCatalog> {
        &self.inner.call_host.catalog
    }

    /// Part of the current catalog that `principal` may use.
    #[must_use]
    pub fn catalog_for(&self, principal: &Principal) -> Arc<Catalog> {
        self.live_catalog().visible_to(principal)
    }

    /// Returns whether a person must [approve](crate::policy::Approval) calls of `tool`.
    #[must_use]
    pub fn needs_approval(&self, tool: &Tool) -> bool {
        tool.needs_approval(&self.engine().approvals.rules())
    }

    /// Waits for the first scan of the roots and the first offer of all sources, up to
    /// [`FIRST_WAIT`](crate::source::FIRST_WAIT) for the latter.
    ///
    /// # Cancel safety
    ///
    /// May be dropped and called again at any time.
    pub async fn catalog_ready(&self) {
        self.live_catalog().wait_for_first_scan().await;
    }

    /// Stops the server: closes connections, and asks scripts to end, which are killed two
    /// seconds later.
    ///
    /// Waits for scripts only; native tools keep running until the function that
    /// [serves](crate::transport) has returned.
    ///
    /// # Cancel safety
    ///
    /// Once called, the server stops even if the future is dropped; scripts are then killed when
    /// their own grace period ends.
    pub async fn shutdown(&self) {
        self.shutdown_within(SHUTDOWN_GRACE).await;
    }

    /// Stops the server as [`shutdown`](Self::shutdown) does, with another grace period for
    /// scripts.
    ///
    /// # Cancel safety
    ///
    /// Like [`shutdown`](Self::shutdown).
    pub async fn shutdown_within(&self, grace: Duration) {
        self.engine().stopping.cancel();
        self.engine().executor.shutdown(grace).await;
        // Comes second, because it kills at once and may be the same executor.
        self.inner.probes.shutdown(Duration::ZERO).await;
    }

    /// Notifies the subscribers of the resource at `uri` that it may have changed: for native
    /// resources, whose changes only the program knows.
    pub fn notify_resource_updated(&self, uri: &str) {
        self.engine()
            .subscribers
            .publish(&Event::ResourceUpdated(uri.to_owned()));
    }

    /// Notifies all listeners that the lists may have changed: for programs that change the
    /// permissions of callers.
    pub fn notify_access_changed(&self) {
        for event in [
            Event::ToolsChanged,
            Event::PromptsChanged,
            Event::ResourcesChanged,
        ] {
            self.engine().subscribers.publish(&event);
        }
    }

    /// Directories of the served scripts.
    #[must_use]
    pub fn roots(&self) -> &[PathBuf] {
        self.live_catalog().roots()
    }

    /// Executor of the scripts.
    #[must_use]
    pub fn executor(&self) -> &Executor {
        &self.engine().executor
    }

    pub(crate) fn is_watching(&self) -> bool {
        self.inner.watching
    }

    /// Audit log, if there is one.
    #[must_use]
    pub fn audit(&self) -> Option<&Audit> {
        let auditor = self.engine().observers.auditor.as_ref();
        auditor.map(|auditor| &auditor.audit)
    }

    /// Metrics of the server in the text format of Prometheus, described in
    /// `docs/observability.md`.
    #[cfg(feature = "metrics")]
    #[must_use]
    pub fn metrics_text(&self) -> String {
        let catalog = self.catalog();
        let mut text = self.engine().observers.metrics.text(&Readings {
            running: self.executor().running(),
            queued: self.engine().admission.runs.waiting(),
            tools: catalog.tools().len(),
            faulty: catalog.scan().faulty().count(),
            lost_records: self.audit().map_or(0, Audit::lost_records),
        });
        for measured in lock(&self.inner.measurements).values() {
            text.push_str(measured);
        }
        text
    }

    /// Numbers of the server now.
    #[cfg(feature = "metrics")]
    #[must_use]
    pub fn numbers(&self) -> ServerNumbers {
        let mut numbers = self.engine().observers.metrics.numbers();
        let runs = &self.engine().admission.runs;
        numbers.running = self.executor().running();
        numbers.max_running = runs.limit();
        numbers.queued = runs.waiting();
        numbers.max_queued = runs.capacity();
        numbers
    }

    /// Names of the selections that are offered.
    #[must_use]
    pub fn selections(&self) -> Vec<String> {
        let selections = self.engine().selections.load();
        selections.names().map(str::to_owned).collect()
    }

    /// Returns a caller with access to the selection called `name` and nothing else, if there is
    /// one.
    #[must_use]
    pub fn caller_of_selection(&self, name: &str) -> Option<Principal> {
        let selections = self.engine().selections.load();
        selections.narrow_by_name(name, &Principal::new(name))
    }

    /// Lists the background calls that run here, of all callers.
    #[must_use]
    pub fn background_tasks(&self) -> Vec<BackgroundTask> {
        let tasks = self.tasks();
        tasks.map(|tasks| tasks.running()).unwrap_or_default()
    }

    /// Cancels the background call `id` of any caller, if it runs here. Returns what it was.
    ///
    /// # Errors
    ///
    /// The tasks can't be written.
    ///
    /// # Cancel safety
    ///
    /// May be dropped; the call may be cancelled then.
    pub async fn cancel_background_task(
        &self,
        id: &str,
    ) -> Result<Option<BackgroundTask>, ErrorObject> {
        match self.tasks() {
            Some(tasks) => tasks.cancel_any(id).await,
            None => Ok(None),
        }
    }

    /// Background calls, if they are enabled.
    pub(crate) fn tasks(&self) -> Option<&Arc<Tasks>> {
        self.inner.tasks.as_ref()
    }
}
