//! Connection to one client over an ordered channel, such as a pipe: messages in, messages out.
//! Knows nothing of lines, files or sockets; the [exchange](super::exchange) decides the wire of
//! each message.

use std::fmt;
use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::future;
use mcpd_protocol::jsonrpc::{self, DecodeError, ErrorObject, Frame, Message, Request, RequestId};
use mcpd_protocol::meta::RequestMeta;
use mcpd_protocol::{Params, ProtocolVersion};
use serde_json::value::RawValue;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::DropGuard;

use crate::client::inflight::{Inflight, MAX_OPEN};
use crate::client::outbox::{Closed, Outbox};
use crate::client::request::context::PeerContext;
use crate::client::session::{Introduction, Session};
use crate::limits::memory_budget;
#[cfg(feature = "http")]
use crate::limits::memory_budget::SharedReservation;
use crate::message::tool_names::ToolNames;
use crate::message::trace::TraceContext;
use crate::message::transport::Transport;
use crate::methods::dispatch::{self, CancellableAnswer, encode};
use crate::methods::subscriptions;
use crate::policy::SecretHeaders;
use crate::policy::access::NeededScope;
use crate::policy::principal::Principal;
use crate::server::Server;
use crate::support::sync::lock;
use crate::transport::conversation::Conversation;
use crate::transport::exchange::{self, Channel, Exchange};

/// Revision assumed for a client that never sends `initialize`: most likely a person with `echo`.
const VERSION_WITHOUT_INITIALIZE: ProtocolVersion = ProtocolVersion::LATEST_STATEFUL;

/// Maximum number of answers on their way to the outbox. Slightly above the limit of open
/// requests, so that only answers that are never fetched use it up.
const MAX_PENDING_ANSWERS: usize = MAX_OPEN + 64;

/// Result of receiving one message.
#[expect(
    clippy::exhaustive_enums,
    reason = "a message has an answer now, later or never"
)]
pub enum Reply {
    /// Response, ready now.
    Ready(Bytes),
    /// Response to follow; `None` if the client cancels the request meanwhile. Dropping the
    /// future cancels the request.
    Pending(Pin<Box<dyn Future<Output = Option<Bytes>> + Send>>),
    /// The message expects no response.
    Nothing,
}

/// One client. Dropping the connection cancels its open requests.
#[derive(Debug)]
pub struct Connection {
    server: Server,
    peer: Arc<PeerContext>,
    inflight: Arc<Inflight>,
    conversation: Mutex<Option<Conversation>>,
    answer_slots: Arc<Semaphore>,
    is_introduced: AtomicBool,
    _close_on_drop: DropGuard,
}

impl Connection {
    /// Opens a connection to `server`. Returns it with the messages for the client beside the
    /// responses: log, progress, changes. Backpressure: a received message that is kept alive
    /// holds later ones back.
    ///
    /// Must be called on a tokio runtime, which then carries this connection's notifications.
    #[must_use]
    pub fn open(server: &Server, names: ToolNames) -> (Self, mpsc::Receiver<Bytes>) {
        Self::open_for(Principal::local(), server, names)
    }

    /// Opens a connection for `principal`, as identified by the embedding program.
    ///
    /// Must be called on a tokio runtime, which then carries this connection's notifications.
    #[must_use]
    pub fn open_for(
        principal: Principal,
        server: &Server,
        names: ToolNames,
    ) -> (Self, mpsc::Receiver<Bytes>) {
        Self::open_over(Transport::Channel, principal, server, names)
    }

    /// Opens a connection for requests of this program itself, whose directory is that of the
    /// client. It passes each message to `listener` as it is made, so that none is ever dropped.
    /// The sender of a message continues when `listener` returns.
    ///
    /// Must be called on a tokio runtime, which then carries this connection's notifications.
    #[must_use]
    pub fn open_with(
        principal: Principal,
        server: &Server,
        names: ToolNames,
        listener: impl Fn(&[u8]) + Send + Sync + 'static,
    ) -> Self {
        let outbox = Outbox::to(listener);
        Self::new(Transport::Local, principal, server, names, outbox)
    }

    /// Opens a connection that messages reach over `transport`.
    pub(crate) fn open_over(
        transport: Transport,
        principal: Principal,
        server: &Server,
        names: ToolNames,
    ) -> (Self, mpsc::Receiver<Bytes>) {
        let (outbox, messages) = Outbox::new();
        let connection = Self::new(transport, principal, server, names, outbox);
        (connection, messages)
    }

    fn new(
        transport: Transport,
        principal: Principal,
        server: &Server,
        names: ToolNames,
        outbox: Outbox,
    ) -> Self {
        let closing = server.engine().stopping.child_token();
        Self {
            server: server.clone(),
            _close_on_drop: closing.clone().drop_guard(),
            peer: Arc::new(PeerContext {
                transport,
                principal,
                reservation: None,
                needed_scope: NeededScope::default(),
                names,
                outbox,
                trace: TraceContext::default(),
                parameters: None,
                headers: SecretHeaders::default(),
                directory: own_directory(transport),
                closing,
            }),
            inflight: Arc::default(),
            conversation: Mutex::new(None),
            answer_slots: Arc::new(Semaphore::new(MAX_PENDING_ANSWERS)),
            is_introduced: AtomicBool::new(false),
        }
    }

    /// Scope that a request turned out to lack, if one did.
    #[cfg(feature = "http")]
    pub(crate) fn needed_scope(&self) -> Option<&str> {
        self.peer.needed_scope.get()
    }

    /// Receives one message, or one batch of them.
    ///
    /// Must be called on a tokio runtime.
    pub fn receive(&self, message: &[u8]) -> Reply {
        self.receive_with(message, &self.peer)
    }

    fn receive_with(&self, message: &[u8], peer: &Arc<PeerContext>) -> Reply {
        match Frame::decode(message) {
            Ok(Frame::Single(message)) => self.message(message, peer),
            Ok(Frame::Batch(elements)) => self.batch(&elements, peer),
            Err(error) => Reply::refuse(&error),
        }
    }

    /// Receives a message as [`receive`](Self::receive) does, and sends the response through the
    /// outbox. Applies backpressure: waits while the outbox is full, so a client that does not
    /// read is not read from.
    ///
    /// # Errors
    ///
    /// The outbox has no reader any more.
    pub(crate) async fn deliver(&self, message: &[u8]) -> Result<(), Closed> {
        self.deliver_with(message, &self.peer).await
    }

    /// Receives a message whose sender was authenticated again: the permissions may have changed
    /// since the connection was opened. It came with `headers` of its own.
    ///
    /// # Errors
    ///
    /// See [`deliver`](Self::deliver).
    #[cfg(feature = "http")]
    pub(crate) async fn deliver_from(
        &self,
        principal: &Principal,
        reservation: SharedReservation,
        headers: SecretHeaders,
        message: &[u8],
    ) -> Result<(), Closed> {
        let peer = Arc::new(PeerContext {
            principal: principal.clone(),
            reservation,
            headers,
            ..PeerContext::clone(&self.peer)
        });
        self.deliver_with(message, &peer).await
    }

    async fn deliver_with(&self, message: &[u8], peer: &Arc<PeerContext>) -> Result<(), Closed> {
        if self.peer.outbox.is_closed() {
            return Err(Closed);
        }
        let answer = match self.receive_with(message, peer) {
            Reply::Ready(answer) => return self.peer.outbox.send(answer).await,
            Reply::Pending(answer) => answer,
            Reply::Nothing => return Ok(()),
        };
        let slot = Arc::clone(&self.answer_slots).acquire_owned().await;
        // Not the connection: pending answers must not keep it alive after its client is gone.
        let outbox = self.peer.outbox.clone();
        tokio::spawn(async move {
            if let Some(answer) = answer.await {
                outbox.send(answer).await.ok();
            }
            drop(slot);
        });
        Ok(())
    }

    /// Ends long-lived requests that only the client could end, such as subscriptions; other
    /// requests continue.
    pub fn close(&self) {
        self.peer.closing.cancel();
    }

    /// Ends everything, even while other owners exist: no reader fetches responses any more.
    pub(crate) fn close_all(&self) {
        self.close();
        self.inflight.cancel_all();
        self.peer.outbox.close();
    }

    /// Ends the open requests with this error, and returns their number.
    pub(crate) async fn fail_requests(&self, error: &ErrorObject) -> usize {
        let open = self.inflight.cancel_all();
        for id in &open {
            let answer = jsonrpc::error_response(Some(id), error);
            self.peer.outbox.send(answer.into()).await.ok();
        }
        open.len()
    }

    /// Ends the open requests without a response, and returns their number.
    pub(crate) fn abandon_requests(&self) -> usize {
        self.inflight.cancel_all().len()
    }

    /// Returns whether the client has introduced itself, in `initialize` or with a stateless
    /// request.
    pub(crate) fn has_session(&self) -> bool {
        self.is_introduced.load(Ordering::Relaxed)
    }

    /// Waits until no request is open.
    ///
    /// # Cancel safety
    ///
    /// May be dropped and called again at any time.
    pub async fn wait_until_idle(&self) {
        self.inflight.wait_until_empty().await;
    }

    /// Principal of the client.
    #[cfg(feature = "http")]
    pub(crate) fn principal(&self) -> &Principal {
        &self.peer.principal
    }

    /// Sending end of the messages that [`open`](Self::open) returns.
    pub(crate) fn outbox(&self) -> &Outbox {
        &self.peer.outbox
    }

    fn message(&self, message: Message<'_>, peer: &Arc<PeerContext>) -> Reply {
        match message {
            Message::Request(request) => Reply::to(&request.id, self.request_with(&request, peer)),
            Message::Notification(notification) => {
                self.inflight.apply_notification(&notification);
                if let Some(conversation) = &*lock(&self.conversation) {
                    conversation.session.apply_notification(&notification);
                }
                Reply::Nothing
            }
            Message::Response(response) => {
                if let Some(conversation) = &*lock(&self.conversation) {
                    conversation.session.questions.accept_response(response);
                }
                Reply::Nothing
            }
        }
    }

    /// Begins a request, and keeps the memory reservation of its message as long as it runs.
    ///
    /// # Errors
    ///
    /// The request is malformed or cannot begin.
    #[cfg(feature = "http")]
    pub(crate) fn request(
        &self,
        request: &Request<'_>,
        reservation: SharedReservation,
        headers: SecretHeaders,
    ) -> Result<CancellableAnswer, ErrorObject> {
        let peer = Arc::new(PeerContext {
            reservation,
            headers,
            ..PeerContext::clone(&self.peer)
        });
        self.request_with(request, &peer)
    }

    fn request_with(
        &self,
        request: &Request<'_>,
        peer: &Arc<PeerContext>,
    ) -> Result<CancellableAnswer, ErrorObject> {
        let params = Params::read(request.params)?;
        match Exchange::of(request, &params, &**peer)? {
            Exchange::Stateless => {
                let context = exchange::open_stateless(
                    &self.server,
                    request,
                    &params,
                    &**peer,
                    Arc::clone(peer),
                )?;
                self.is_introduced.store(true, Ordering::Relaxed);
                dispatch::answer(&self.server, &self.inflight, request, &params, context)
            }
            Exchange::Initialize => {
                let (session, result) =
                    exchange::initialize(&self.server, &params, &peer.principal)?;
                self.is_introduced.store(true, Ordering::Relaxed);
                self.begin(session, peer);
                dispatch::answer_later(&self.inflight, &request.id, result)
            }
            Exchange::Stateful => {
                self.conversation(peer)
                    .request(&self.server, request, &params, Arc::clone(peer))
            }
        }
    }

    fn batch(&self, elements: &[&RawValue], peer: &Arc<PeerContext>) -> Reply {
        let conversation = self.conversation(peer);
        let replies = conversation.batch(&self.server, elements, peer);
        replies.unwrap_or_else(|error| Reply::Ready(jsonrpc::error_response(None, &error).into()))
    }

    /// Begins the conversation of this channel; a second `initialize` replaces it.
    fn begin(&self, session: Session, peer: &Arc<PeerContext>) -> Conversation {
        let conversation = Conversation::new(session, Arc::clone(&self.inflight));
        let forward = subscriptions::forward(
            Arc::clone(self.server.live_catalog()),
            &conversation.session,
            peer.principal.clone(),
            peer.outbox.clone(),
        );
        tokio::spawn(peer.closing.clone().run_until_cancelled_owned(forward));
        if let Some(replaced) = lock(&self.conversation).replace(conversation.clone()) {
            (conversation.session.questions).replace(&replaced.session.questions);
            replaced.session.end();
        }
        conversation
    }

    fn conversation(&self, peer: &Arc<PeerContext>) -> Conversation {
        let conversation = lock(&self.conversation).clone();
        conversation.unwrap_or_else(|| {
            let introduction = Introduction::none(VERSION_WITHOUT_INITIALIZE);
            let session = Session::new(
                introduction,
                &peer.principal,
                &self.server.engine().subscribers,
            );
            self.begin(session, peer)
        })
    }
}

/// Returns the directory of this process, if its client has started it there.
fn own_directory(transport: Transport) -> Option<Arc<Path>> {
    let directory = transport.shares_directory();
    let directory = directory.then(std::env::current_dir)?.ok()?;
    Some(directory.into())
}

/// Channel without an envelope of its own: a message says everything.
impl Channel for PeerContext {
    fn is_stateless(&self, meta: &RequestMeta<'_>) -> Result<bool, ErrorObject> {
        if !meta.is_stateless() {
            return Ok(false);
        }
        self.transport.check_stateless().map(|()| true)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.inflight.cancel_all();
    }
}

impl Reply {
    /// Wraps the answer to the request `id`.
    pub(crate) fn to(id: &RequestId, answer: Result<CancellableAnswer, ErrorObject>) -> Self {
        match answer.unwrap_or_else(|error| CancellableAnswer::Now(Err(error))) {
            CancellableAnswer::Now(result) => Self::Ready(encode(id, result)),
            CancellableAnswer::Later(result) => {
                let id = id.clone();
                Self::Pending(Box::pin(async move { Some(encode(&id, result.await?)) }))
            }
        }
    }

    /// Wraps the response to bytes that are not a message.
    pub(crate) fn refuse(error: &DecodeError) -> Self {
        if error.is_notification {
            tracing::debug!("notification ignored: {error}");
            return Self::Nothing;
        }
        Self::Ready(jsonrpc::error_response(error.id.as_ref(), &error.error).into())
    }

    /// Joins all responses of a batch into one array, once all are ready.
    pub(crate) fn all(replies: Vec<Self>) -> Self {
        let wanted: Vec<_> = replies
            .into_iter()
            .filter_map(|reply| match reply {
                Self::Ready(answer) => Some(future::Either::Left(future::ready(Some(answer)))),
                Self::Pending(answer) => Some(future::Either::Right(answer)),
                Self::Nothing => None,
            })
            .collect();
        if wanted.is_empty() {
            return Self::Nothing;
        }
        Self::Pending(Box::pin(async move {
            let answers: Vec<Bytes> = future::join_all(wanted)
                .await
                .into_iter()
                .flatten()
                .collect();
            (!answers.is_empty()).then(|| {
                let whole = [b"[", answers.join(&b","[..]).as_slice(), b"]"].concat();
                memory_budget::inherit_guards(answers, whole)
            })
        }))
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready(answer) => f.debug_tuple("Ready").field(answer).finish(),
            Self::Pending(_) => f.write_str("Pending"),
            Self::Nothing => f.write_str("Nothing"),
        }
    }
}
