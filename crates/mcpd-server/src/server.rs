//! The server: what is served and with what, fixed when it starts and cheap to share. It speaks to
//! nobody by itself; a [`Connection`](crate::Connection) or a transport does.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arc_swap::ArcSwap;
use mcpd_exec::Executor;
use mcpd_protocol::{ProtocolVersion, ServerCapabilities, Stamp, Wire};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::admission::Admission;
use crate::archive::Archive;
use crate::audit::Audit;
use crate::audit::trail::Auditor;
use crate::catalog::Catalog;
use crate::catalog::live::LiveCatalog;
use crate::handler::lifecycle;
use crate::metrics::Metrics;
use crate::principal::Principal;
use crate::private::Shared;
use crate::run::Gaps;
use crate::seal::Seal;
use crate::spans::Spans;
use crate::subscribers::{Event, Subscribers};
use crate::tasks::Tasks;

mod builder;
mod identity;
mod settings;

use identity::{BuiltWith, Identity};
use settings::Current;

pub use builder::ServerBuilder;
pub use settings::Settings;

/// How long scripts get to end by themselves when the server stops.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);

/// A running server. All clones are one server; it stops when the last is dropped, and a task that runs has one.
#[derive(Debug, Clone)]
pub struct Server {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    identity: ArcSwap<Identity>,
    built_with: BuiltWith,
    roots: Vec<PathBuf>,
    watching: bool,
    executor: Executor,
    probes: Executor,
    current: Mutex<Current>,
    admission: Admission,
    gaps: Gaps,
    metrics: Arc<Metrics>,
    spans: Spans,
    auditor: Option<Arc<Auditor>>,
    archive: Arc<Archive>,
    inputs: Arc<Shared>,
    catalog: Arc<LiveCatalog>,
    subscribers: Arc<Subscribers>,
    seal: Seal,
    tasks: Option<Arc<Tasks>>,
    stateful: Arc<Stamp>,
    stop: CancellationToken,
    _stop_on_drop: DropGuard,
}

impl Server {
    /// Starts to describe a server.
    pub fn builder() -> ServerBuilder {
        ServerBuilder::new()
    }

    /// Where runs find what is too large or too private for a variable.
    pub(crate) fn inputs(&self) -> &Arc<Shared> {
        &self.inner.inputs
    }

    /// What is served at this moment. Before the first scan that is only what is built in:
    /// see [`catalog_ready`](Self::catalog_ready).
    #[must_use]
    pub fn catalog(&self) -> Arc<Catalog> {
        self.inner.catalog.current()
    }

    /// The same for whoever must not keep the server from its end.
    pub(crate) fn live_catalog(&self) -> &Arc<LiveCatalog> {
        &self.inner.catalog
    }

    /// What of that `principal` may use.
    #[must_use]
    pub fn catalog_for(&self, principal: &Principal) -> Arc<Catalog> {
        let catalog = self.catalog();
        match principal.access() {
            Some(access) => catalog.view(access),
            None => catalog,
        }
    }

    /// Waits until the roots have been scanned once and all sources have said something, but no longer than
    /// [`FIRST_WAIT`](crate::source::FIRST_WAIT) for those.
    ///
    /// # Cancel safety
    ///
    /// May be dropped and called again at any time.
    pub async fn catalog_ready(&self) {
        self.inner.catalog.scanned().await;
    }

    /// Ends everything: scripts are asked to end and killed two seconds later if they don't, connections close.
    ///
    /// It waits for scripts alone; what native tools still do goes on until whoever [serves](crate::transport) has
    /// returned.
    ///
    /// # Cancel safety
    ///
    /// Once called, the server stops even if the future is dropped; scripts are then killed when their own time to end
    /// is over.
    pub async fn shutdown(&self) {
        self.shutdown_within(SHUTDOWN_GRACE).await;
    }

    /// Ends everything as [`shutdown`](Self::shutdown) does, with another time for scripts to end by themselves.
    ///
    /// # Cancel safety
    ///
    /// As of [`shutdown`](Self::shutdown).
    pub async fn shutdown_within(&self, grace: Duration) {
        self.inner.stop.cancel();
        self.inner.executor.shutdown(grace).await;
        // Not earlier: it kills at once, and may be the same executor.
        self.inner.probes.shutdown(Duration::ZERO).await;
    }

    /// Tells everybody who has subscribed to the resource at `uri` that it may be another: for native resources, whose
    /// changes only the program knows of.
    pub fn resource_updated(&self, uri: &str) {
        self.inner
            .subscribers
            .publish(&Event::ResourceUpdated(uri.to_owned()));
    }

    /// Tells everybody who listens that what there is to use may be another: for programs that let callers use more or
    /// less than before.
    pub fn access_changed(&self) {
        for event in [
            Event::ToolsChanged,
            Event::PromptsChanged,
            Event::ResourcesChanged,
        ] {
            self.inner.subscribers.publish(&event);
        }
    }

    /// What it can do for a client of the newest revision.
    #[must_use]
    pub fn capabilities(&self) -> ServerCapabilities {
        lifecycle::capabilities(self, ProtocolVersion::LATEST)
    }

    /// The directories scripts are served from.
    #[must_use]
    pub fn roots(&self) -> &[PathBuf] {
        &self.inner.roots
    }

    /// What runs the scripts.
    #[must_use]
    pub fn executor(&self) -> &Executor {
        &self.inner.executor
    }

    /// What callers have to get past.
    pub(crate) fn admission(&self) -> &Admission {
        &self.inner.admission
    }

    pub(crate) fn catalog_is_ready(&self) -> bool {
        self.inner.catalog.is_scanned()
    }

    /// Identity of the server as clients read it.
    pub(crate) fn identity(&self) -> Arc<Identity> {
        self.inner.identity.load_full()
    }

    pub(crate) fn is_watching(&self) -> bool {
        self.inner.watching
    }

    /// Outputs that were too long for their results.
    pub(crate) fn archive(&self) -> &Arc<Archive> {
        &self.inner.archive
    }

    /// The audit log, if there is one.
    #[must_use]
    pub fn audit(&self) -> Option<&Audit> {
        self.auditor().map(|auditor| &auditor.audit)
    }

    pub(crate) fn auditor(&self) -> Option<&Arc<Auditor>> {
        self.inner.auditor.as_ref()
    }

    /// What of confinement has been missed.
    pub(crate) fn gaps(&self) -> &Gaps {
        &self.inner.gaps
    }

    pub(crate) fn metrics(&self) -> &Arc<Metrics> {
        &self.inner.metrics
    }

    /// What makes the spans of requests and runs.
    pub(crate) fn spans(&self) -> &Spans {
        &self.inner.spans
    }

    /// What the server has done so far and does now, in the text format of Prometheus. The metrics are described in
    /// `docs/observability.md`.
    #[cfg(feature = "metrics")]
    #[must_use]
    pub fn metrics_text(&self) -> String {
        self.metrics().text(self)
    }

    pub(crate) fn subscribers(&self) -> &Arc<Subscribers> {
        &self.inner.subscribers
    }

    /// What closes the state that clients carry for scripts.
    pub(crate) fn seal(&self) -> &Seal {
        &self.inner.seal
    }

    /// The calls that go on in the background, if there may be any.
    pub(crate) fn tasks(&self) -> Option<&Arc<Tasks>> {
        self.inner.tasks.as_ref()
    }

    /// How results of `wire` are marked.
    pub(crate) fn stamp(&self, wire: Wire) -> Arc<Stamp> {
        match wire {
            Wire::Stateful => Arc::clone(&self.inner.stateful),
            Wire::Stateless => Arc::clone(self.inner.identity.load().stateless()),
        }
    }

    /// Cancelled when the server stops.
    pub(crate) fn stopping(&self) -> &CancellationToken {
        &self.inner.stop
    }
}
