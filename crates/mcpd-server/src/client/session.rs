//! Session of a client on the stateful wire: its capabilities and the notifications it wants. The
//! stateless wire has no sessions; there each request carries all of this.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use mcpd_protocol::jsonrpc::Notification;
use mcpd_protocol::method::LoggingLevel;
use mcpd_protocol::{ClientCapabilities, Implementation, ProtocolVersion};
use tokio::sync::Mutex as AsyncMutex;
use tokio_util::sync::CancellationToken;

use crate::client::approvals::RememberedApprovals;
use crate::client::questions::Questions;
use crate::client::subscribers::{Filter, Subscribers, Subscription};
use crate::policy::principal::Principal;
use crate::support::sync::lock;

/// Content of `initialize`.
#[derive(Debug)]
pub(crate) struct Introduction {
    /// Negotiated revision.
    pub(crate) version: ProtocolVersion,
    pub(crate) capabilities: ClientCapabilities,
    pub(crate) client: Option<Implementation>,
    /// The client sent it; otherwise it is assumed.
    pub(crate) is_given: bool,
    /// The server has promised notifications of changed lists in return.
    pub(crate) has_list_changes: bool,
}

/// One `initialize` and the state that follows.
#[derive(Debug)]
pub(crate) struct Session {
    /// Negotiated revision.
    pub(crate) version: ProtocolVersion,
    /// Capabilities of the client.
    pub(crate) capabilities: Arc<ClientCapabilities>,
    /// Name and version that the client claims.
    pub(crate) client: Option<Arc<Implementation>>,
    /// The session began with `initialize`. Any other session may be over after one request.
    pub(crate) introduced: bool,
    /// The client was promised notifications of changed lists.
    #[cfg(feature = "http")]
    pub(crate) has_list_changes: bool,
    /// Session id over HTTP.
    #[cfg(feature = "http")]
    pub(crate) id: Option<String>,
    /// Open questions to the client.
    pub(crate) questions: Questions,
    /// Approvals of calls that count until the session ends.
    pub(crate) approvals: RememberedApprovals,
    /// Events for this client, fetched by the task that can send to it.
    pub(crate) subscription: Arc<Subscription>,
    /// First root of the client, and the number of changes before it was asked.
    pub(crate) roots: AsyncMutex<Option<(u64, Option<PathBuf>)>>,
    root_changes: AtomicU64,
    log_level: Mutex<Option<LoggingLevel>>,
    ended: CancellationToken,
}

impl Introduction {
    /// Describes a client that has sent at most a revision.
    pub(crate) fn none(version: ProtocolVersion) -> Self {
        Self {
            version,
            capabilities: ClientCapabilities::default(),
            client: None,
            is_given: false,
            has_list_changes: false,
        }
    }
}

impl Session {
    /// Creates a session, subscribed to list changes if `introduction` promised them.
    pub(crate) fn new(
        introduction: Introduction,
        owner: &Principal,
        subscribers: &Arc<Subscribers>,
    ) -> Self {
        let lists = Filter {
            tools: introduction.has_list_changes,
            prompts: introduction.has_list_changes,
            resources: introduction.has_list_changes,
            ..Filter::default()
        };
        Self {
            version: introduction.version,
            capabilities: Arc::new(introduction.capabilities),
            client: introduction.client.map(Arc::new),
            introduced: introduction.is_given,
            #[cfg(feature = "http")]
            has_list_changes: introduction.has_list_changes,
            #[cfg(feature = "http")]
            id: None,
            questions: Questions::default(),
            approvals: RememberedApprovals::default(),
            subscription: Arc::new(subscribers.subscribe(owner.shared_name(), lists)),
            roots: AsyncMutex::default(),
            root_changes: AtomicU64::new(0),
            log_level: Mutex::new(None),
            ended: CancellationToken::new(),
        }
    }

    /// Token that is cancelled at the end of the session: closed by its client, replaced or
    /// expired.
    pub(crate) fn end_token(&self) -> CancellationToken {
        self.ended.clone()
    }

    /// Ends the session and the tasks that only forward changes to it.
    pub(crate) fn end(&self) {
        self.ended.cancel();
    }

    /// Number of changes of its roots that the client has announced.
    pub(crate) fn root_changes(&self) -> u64 {
        self.root_changes.load(Ordering::Relaxed)
    }

    /// Takes note of a notification about the client itself.
    pub(crate) fn apply_notification(&self, notification: &Notification<'_>) {
        if notification.method == "notifications/roots/list_changed" {
            self.root_changes.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Lowest level this client wants to see. Nothing is sent before the client sets it.
    pub(crate) fn log_level(&self) -> Option<LoggingLevel> {
        *lock(&self.log_level)
    }

    pub(crate) fn set_log_level(&self, level: LoggingLevel) {
        *lock(&self.log_level) = Some(level);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.end();
    }
}
