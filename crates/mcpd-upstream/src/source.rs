//! Keeps up a connection with a server, and says what there is: what it lists, and what is wrong with it. A server that
//! is lost is tried again, less and less often; what it last listed stays listed.

#![expect(deprecated, reason = "rmcp marks so what 2026-07-28 has no longer")]

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

use crate::connect::{Connection, Greeting, LastWords, connect};
use crate::inventory::Inventory;
use crate::link::{Link, Open};
use crate::offer::Filling;
use crate::upstream::{Reach, Upstream};
use crate::words;

/// How long to wait before a lost server is tried again: at first, and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A connection of which there was use for so long was a good one.
const GOOD: Duration = Duration::from_secs(30);
/// Several changes often come at once.
const SETTLE: Duration = Duration::from_millis(200);
/// How long to wait before a stream of changes is asked for again.
const BETWEEN_STREAMS: Duration = Duration::from_secs(1);
/// How often a server that has nothing to do is asked whether it is there.
const ALIVE_INTERVAL: Duration = Duration::from_secs(30);
/// How long it may take for an answer that costs nothing.
const AT_ONCE: Duration = Duration::from_secs(10);

impl Source for Upstream {
    async fn run(self, publisher: Publisher) {
        self.secrets.warn_of_short(&self);
        let link = Arc::new(Link::new(&self));
        let mut inventory = Inventory::default();
        let mut greeting = Greeting::default();
        let mut pause = FIRST_PAUSE;
        loop {
            let last_words = LastWords::new();
            let connection = connect(&self, link.remarks(), &last_words, &mut greeting).await;
            let (fault, use_for) = match connection {
                Ok(connection) => serve(connection, &self, &link, &mut inventory, &publisher).await,
                Err(fault) => (fault, Duration::ZERO),
            };
            let fault = last_words.after(fault).await;
            publisher.fail(self.secrets.redact(fault));
            if use_for > GOOD {
                pause = FIRST_PAUSE;
            }
            sleep(pause).await;
            pause = LONGEST_PAUSE.min(pause * 2);
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

/// Serves what there is until the connection ends. Says why it did, in words that fit after the
/// name of the server, and for how long there was something to serve.
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
        open: Open {
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
    // It is gone before another one is started, unless it does not care.
    timeout(AT_ONCE, connection.cancel()).await.ok();
    (fault, use_for)
}

/// One connection, and what is done with it.
struct Session<'a> {
    upstream: &'a Upstream,
    link: &'a Arc<Link>,
    publisher: &'a Publisher,
    open: Open,
    /// When the server had said for the first time what it has.
    listed: OnceLock<Instant>,
}

impl Session<'_> {
    /// Offers what the server lists, and again whenever that changes.
    ///
    /// # Errors
    ///
    /// Why the connection is of no use any more.
    async fn follow(&self, inventory: &mut Inventory) -> Result<Infallible, String> {
        self.want_all_logs().await;
        // Before the first list, so that no change falls between the two.
        let mut changes = self.subscribe().await?;
        self.link.set(Some(self.open.clone()));
        self.offer(inventory).await?;
        self.listed.get_or_init(Instant::now);
        loop {
            tokio::select! {
                () = self.open.listener.changed.notified() => {
                    sleep(SETTLE).await;
                    self.offer(inventory).await?;
                }
                () = ended(&mut changes) => {
                    sleep(BETWEEN_STREAMS).await;
                    changes = self.subscribe().await?;
                    self.offer(inventory).await?;
                }
                () = self.open.listener.doubtful.notified() => self.check_alive().await?,
                () = sleep(ALIVE_INTERVAL) => {
                    if !inventory.faults.is_empty() {
                        // What it could not list it may by now.
                        self.offer(inventory).await?;
                    } else if self.open.listener.is_idle() {
                        // One that is busy may well have no time to say so.
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
        let filling = Filling {
            offer: &mut offer,
            upstream: self.upstream,
            link: self.link,
        };
        filling.add(inventory);
        self.publisher.publish(offer);
        Ok(())
    }

    /// Which of them a caller is told is decided here, for each caller.
    async fn want_all_logs(&self) {
        if self.is_stateful() && self.capabilities().logging.is_some() {
            let level = SetLevelRequestParams::new(LoggingLevel::Debug);
            // Without an answer it is as talkative as it likes.
            timeout(AT_ONCE, self.open.peer.set_level(level)).await.ok();
        }
    }

    /// Asks to be told of changes, where a server wants to be asked.
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
        match timeout(AT_ONCE, self.open.peer.listen(filter)).await {
            Ok(Ok(changes)) => Ok(Some(changes)),
            Ok(Err(ServiceError::McpError(error))) => {
                let error = self.upstream.secrets.redact(error.to_string());
                tracing::debug!(upstream = self.upstream.name, "can't be followed: {error}");
                Ok(None)
            }
            Ok(Err(error)) => Err(format!("can't be followed: {}", words::why(&error))),
            Err(_) => Err("does not say that it can be followed".to_owned()),
        }
    }

    /// Asks whether the server is there.
    async fn check_alive(&self) -> Result<(), String> {
        let listener = &self.open.listener;
        let heard = listener.heard();
        let question = if self.is_stateful() {
            ClientRequest::PingRequest(PingRequest::default())
        } else {
            // As rmcp knows it, it would wait over HTTP until every call has been answered.
            ClientRequest::CustomRequest(CustomRequest::new("server/discover", None))
        };
        match timeout(AT_ONCE, self.open.peer.send_request(question)).await {
            Ok(Ok(_) | Err(ServiceError::McpError(_))) => Ok(()),
            Ok(Err(error)) => Err(format!("can't be reached: {}", words::why(&error))),
            // It has others to answer first.
            Err(_) if !listener.is_idle() && listener.heard() != heard => Ok(()),
            Err(_) => Err(format!("has not answered within {AT_ONCE:?}")),
        }
    }

    fn capabilities(&self) -> ServerCapabilities {
        let server = self.open.peer.peer_info();
        server.map_or_else(Default::default, |server| server.capabilities.clone())
    }

    /// Whether the connection began with a handshake.
    fn is_stateful(&self) -> bool {
        let server = self.open.peer.peer_info();
        server.is_none_or(|server| server.protocol_version.has_initialize())
    }
}

/// Waits until nothing more is told. What is told meanwhile, the listener has heard already.
async fn ended(changes: &mut Option<Subscription>) {
    match changes {
        Some(changes) => while let Ok(Some(_)) = changes.next().await {},
        None => std::future::pending().await,
    }
}
