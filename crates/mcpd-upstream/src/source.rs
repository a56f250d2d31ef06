//! Keeps a connection with a server alive and reports its lists and faults. A lost server is
//! reconnected with exponential backoff; what it last listed stays listed.

#![expect(deprecated, reason = "rmcp marks so what 2026-07-28 has no longer")]
//!
//! ```text
//!           ┌──────────── fails ────────────┐
//!           │                               ▼
//! ─► connect ── succeeds ─► serve ── ends ─► pause ─► connect …
//!
//! pause: 0.5 s, doubled each time up to 60 s; 0.5 s again after 30 s of service
//! ```

use std::convert::Infallible;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use mcpd_server::source::{Publisher, Source};
use rmcp::model::{
    ClientRequest, CustomRequest, LoggingLevel, PingRequest, ServerCapabilities,
    SetLevelRequestParams, SubscriptionFilter,
};
use rmcp::service::{ServiceError, Subscription};
use tokio::time::{Instant, sleep, timeout};

use crate::connect::{Connection, Failure, Greeting, StderrTail, connect};
use crate::conversion;
use crate::inventory::Inventory;
use crate::link::{Link, OpenConnection};
use crate::offer::OfferBuilder;
use crate::upstream::{Reach, Upstream};

/// Bounds of the pause before a lost server is tried again; it doubles from the first to the
/// longest.
const MIN_BACKOFF: Duration = Duration::from_millis(500);
const MAX_BACKOFF: Duration = Duration::from_secs(60);
/// Minimum lifetime of a connection that resets the backoff.
const BACKOFF_RESET_AFTER: Duration = Duration::from_secs(30);
/// Debounce of list changes, which often arrive several at once.
const CHANGE_DEBOUNCE: Duration = Duration::from_millis(200);
/// Pause before a change subscription is opened again.
const RESUBSCRIBE_INTERVAL: Duration = Duration::from_secs(1);
/// Interval of liveness checks of an idle server.
const ALIVE_INTERVAL: Duration = Duration::from_secs(30);
/// Time limit of a request that costs the server nothing.
const QUICK_ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

impl Source for Upstream {
    async fn run(self, publisher: Publisher) {
        self.secrets.warn_of_short(&self);
        let link = Arc::new(Link::new(&self));
        let mut inventory = Inventory::default();
        let mut greeting = Greeting::default();
        let mut pause = MIN_BACKOFF;
        loop {
            let stderr_tail = StderrTail::new();
            let connection = connect(&self, link.remarks(), &stderr_tail, &mut greeting).await;
            let (fault, use_for) = match connection {
                Ok(connection) => serve(connection, &self, &link, &mut inventory, &publisher).await,
                Err(Failure::Unauthorized(fault)) => {
                    publisher.fail_unauthorized(self.secrets.redact(fault));
                    sleep(pause).await;
                    pause = MAX_BACKOFF.min(pause * 2);
                    continue;
                }
                Err(Failure::Other(fault)) => (fault, Duration::ZERO),
            };
            let fault = stderr_tail.after(fault).await;
            publisher.fail(self.secrets.redact(fault));
            if use_for > BACKOFF_RESET_AFTER {
                pause = MIN_BACKOFF;
            }
            sleep(pause).await;
            pause = MAX_BACKOFF.min(pause * 2);
        }
    }

    fn fingerprint(&self) -> Option<u64> {
        let mut hasher = DefaultHasher::new();
        let tools = format!("{:?}", self.tools);
        (&self.name, &self.prefix, self.timeout, tools).hash(&mut hasher);
        match &self.reach {
            Reach::Program(program) => {
                let environment = format!("{:?}", program.environment);
                (&program.program, &program.arguments, &program.directory).hash(&mut hasher);
                (&program.variables, environment).hash(&mut hasher);
            }
            Reach::Address(address) => {
                (address.url.as_str(), &address.token).hash(&mut hasher);
                for (name, value) in &address.headers {
                    (name, value.as_bytes()).hash(&mut hasher);
                }
            }
            #[cfg(test)]
            Reach::Memory(_) => return None,
        }
        Some(hasher.finish())
    }
}

/// Serves the lists until the connection ends. Returns the reason, as a fragment that follows the
/// name of the server, and for how long the lists were served.
async fn serve(
    connection: Connection,
    upstream: &Upstream,
    link: &Arc<Link>,
    inventory: &mut Inventory,
    publisher: &Publisher,
) -> (String, Duration) {
    let session = Session {
        upstream,
        link,
        publisher,
        open: OpenConnection {
            peer: connection.peer().clone(),
            listener: connection.service().clone(),
        },
        listed: OnceLock::new(),
    };
    let fault = tokio::select! {
        () = session.open.listener.closed.cancelled() => "has ended".to_owned(),
        Err(fault) = session.follow(inventory) => fault,
    };
    let use_for = session
        .listed
        .get()
        .map_or(Duration::ZERO, Instant::elapsed);
    link.set(None);
    // The old process ends before another is started, unless it ignores the request.
    timeout(QUICK_ANSWER_TIMEOUT, connection.cancel())
        .await
        .ok();
    (fault, use_for)
}

/// Work on one connection.
struct Session<'a> {
    upstream: &'a Upstream,
    link: &'a Arc<Link>,
    publisher: &'a Publisher,
    open: OpenConnection,
    /// Time at which the server was first listed completely.
    listed: OnceLock<Instant>,
}

impl Session<'_> {
    /// Offers what the server lists, and again whenever that changes.
    ///
    /// # Errors
    ///
    /// Returns the reason why the connection is unusable.
    async fn follow(&self, inventory: &mut Inventory) -> Result<Infallible, String> {
        self.want_all_logs().await;
        // Subscribed before the first list, so that no change falls between the two.
        let mut changes = self.subscribe().await?;
        self.link.set(Some(self.open.clone()));
        self.offer(inventory).await?;
        self.listed.get_or_init(Instant::now);
        loop {
            tokio::select! {
                () = self.open.listener.changed.notified() => {
                    sleep(CHANGE_DEBOUNCE).await;
                    self.offer(inventory).await?;
                }
                () = wait_for_end(&mut changes) => {
                    sleep(RESUBSCRIBE_INTERVAL).await;
                    changes = self.subscribe().await?;
                    self.offer(inventory).await?;
                }
                () = self.open.listener.doubtful.notified() => self.check_alive().await?,
                () = sleep(ALIVE_INTERVAL) => {
                    if !inventory.faults.is_empty() {
                        // A list that failed before may succeed by now.
                        self.offer(inventory).await?;
                    } else if self.open.listener.is_idle() {
                        // A busy server may not get round to announcing changes.
                        self.check_alive().await?;
                    }
                }
            }
        }
    }

    async fn offer(&self, inventory: &mut Inventory) -> Result<(), String> {
        inventory
            .refresh(&self.open.peer, self.link.remarks())
            .await?;
        let mut offer = self.publisher.offer();
        let filling = OfferBuilder {
            offer: &mut offer,
            upstream: self.upstream,
            link: self.link,
        };
        filling.add(inventory);
        self.publisher.publish(offer);
        Ok(())
    }

    /// Requests logs of every level: this server filters them for each caller.
    async fn want_all_logs(&self) {
        if self.is_stateful() && self.capabilities().logging.is_some() {
            let level = SetLevelRequestParams::new(LoggingLevel::Debug);
            // Without an answer, the server keeps its own level.
            timeout(QUICK_ANSWER_TIMEOUT, self.open.peer.set_level(level))
                .await
                .ok();
        }
    }

    /// Opens a change subscription, if the server requires one.
    async fn subscribe(&self) -> Result<Option<Subscription>, String> {
        let has = self.capabilities();
        let wanted = |tells: Option<bool>| tells.filter(|tells| *tells);
        let mut filter = SubscriptionFilter::new();
        filter.tools_list_changed = wanted(has.tools.and_then(|tools| tools.list_changed));
        filter.prompts_list_changed = wanted(has.prompts.and_then(|prompts| prompts.list_changed));
        filter.resources_list_changed = wanted(has.resources.and_then(|all| all.list_changed));
        if self.is_stateful() || filter == SubscriptionFilter::new() {
            return Ok(None);
        }
        match timeout(QUICK_ANSWER_TIMEOUT, self.open.peer.listen(filter)).await {
            Ok(Ok(changes)) => Ok(Some(changes)),
            Ok(Err(ServiceError::McpError(error))) => {
                let error = self.upstream.secrets.redact(error.to_string());
                tracing::debug!(
                    upstream = self.upstream.name,
                    "does not accept subscriptions: {error}"
                );
                Ok(None)
            }
            Ok(Err(error)) => Err(format!(
                "does not accept subscriptions: {}",
                conversion::reason(&error)
            )),
            Err(_) => Err("did not confirm the subscription".to_owned()),
        }
    }

    /// Checks that the server is alive.
    async fn check_alive(&self) -> Result<(), String> {
        let listener = &self.open.listener;
        let received = listener.received_count();
        let question = if self.is_stateful() {
            ClientRequest::PingRequest(PingRequest::default())
        } else {
            // The typed request would wait over HTTP until every call has been answered.
            ClientRequest::CustomRequest(CustomRequest::new("server/discover", None))
        };
        match timeout(QUICK_ANSWER_TIMEOUT, self.open.peer.send_request(question)).await {
            Ok(Ok(_) | Err(ServiceError::McpError(_))) => Ok(()),
            Ok(Err(error)) => Err(format!("is unreachable: {}", conversion::reason(&error))),
            // The server has other requests to answer first.
            Err(_) if !listener.is_idle() && listener.received_count() != received => Ok(()),
            Err(_) => Err(format!("did not respond within {QUICK_ANSWER_TIMEOUT:?}")),
        }
    }

    fn capabilities(&self) -> ServerCapabilities {
        let server = self.open.peer.peer_info();
        server.map_or_else(Default::default, |server| server.capabilities.clone())
    }

    /// Returns whether the connection began with a handshake.
    fn is_stateful(&self) -> bool {
        let server = self.open.peer.peer_info();
        server.is_none_or(|server| server.protocol_version.has_initialize())
    }
}

/// Waits for the end of the subscription. The listener has handled its notifications already.
async fn wait_for_end(changes: &mut Option<Subscription>) {
    match changes {
        Some(changes) => while let Ok(Some(_)) = changes.next().await {},
        None => std::future::pending().await,
    }
}
