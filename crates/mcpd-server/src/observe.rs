//! Records of what the server does: audit log, metrics and spans. Knows how a request arrived
//! ([`RequestOrigin`]), not how it is answered.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use mcpd_protocol::{Implementation, ProtocolVersion};

use crate::message::trace::TraceContext;
use crate::message::transport::Transport;
use crate::policy::principal::Principal;
use crate::policy::{Policy, Redactor};

pub(crate) mod approval;
pub mod audit;
pub(crate) mod ending;
#[cfg_attr(not(feature = "metrics"), path = "observe/metrics/absent.rs")]
pub(crate) mod metrics;
pub(crate) mod missing_enforcement;
pub mod operator;
pub(crate) mod request_events;
#[cfg_attr(not(feature = "otel"), path = "observe/spans/absent.rs")]
pub(crate) mod spans;

use audit::request_log::Auditor;
use metrics::Metrics;
use request_events::RequestObserver;
use spans::Spans;

/// Recipients of records.
#[derive(Debug, Clone)]
pub(crate) struct Observers {
    pub(crate) auditor: Option<Arc<Auditor>>,
    /// Secrets that must stay out of records.
    pub(crate) secrets: Arc<ArcSwapOption<Redactor>>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) spans: Spans,
    pub(crate) requests: RequestObserver,
}

impl Observers {
    /// Creates the observers of a server with `policy`, which has counted nothing yet.
    pub(crate) fn new(
        auditor: Option<Auditor>,
        policy: &Policy,
        spans: Spans,
        requests: RequestObserver,
    ) -> Self {
        Self {
            auditor: auditor.map(Arc::new),
            secrets: Arc::new(policy.secrets().map(Arc::new).into()),
            metrics: Arc::new(Metrics::new()),
            spans,
            requests,
        }
    }

    /// Keeps the secrets of `policy` out of records from now on.
    pub(crate) fn redact(&self, policy: &Policy) {
        self.secrets.store(policy.secrets().map(Arc::new));
    }
}

/// Arrival of a request: its sender and its way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestOrigin<'a> {
    pub(crate) version: ProtocolVersion,
    pub(crate) transport: Transport,
    pub(crate) principal: &'a Principal,
    /// Name and version that the client claims.
    pub(crate) client: Option<&'a Arc<Implementation>>,
    /// Id of the HTTP session.
    #[cfg(all(feature = "http", feature = "otel"))]
    pub(crate) session_id: Option<&'a str>,
    /// Trace that the request is part of.
    pub(crate) trace: &'a TraceContext,
}
