//! One client on one ordered channel, such as a pipe: messages in, messages out. Decides the wire of
//! each message by itself; knows nothing of lines, files or sockets.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::future;
use mcpd_protocol::CancelledNotificationParams;
use mcpd_protocol::ProtocolVersion;
use mcpd_protocol::jsonrpc::{
    self, DecodeError, ErrorObject, Frame, Message, Notification, Request,
};
use mcpd_protocol::meta::RequestMeta;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio_util::sync::DropGuard;

use crate::Server;
use crate::catalog::ToolNames;
use crate::dispatch::{self, encode};
use crate::handler::{lifecycle, subscriptions};
use crate::inflight::Inflight;
use crate::session::{Introduction, Session};
use crate::sync::lock;
use crate::wire::{self, Face, StatelessEnvelope};

/// How many messages may wait for a client that reads slowly.
const OUTBOX_MESSAGES: usize = 256;

/// How many messages one batch may have.
const MAX_BATCH: usize = 50;

/// The revision of a client that never said `initialize`: a person with `echo`, most likely.
const UNANNOUNCED: ProtocolVersion = ProtocolVersion::LATEST_STATEFUL;

/// What becomes of a message that was received.
#[expect(
    clippy::exhaustive_enums,
    reason = "a message has an answer now, later or never"
)]
pub enum Reply {
    /// The answer.
    Ready(Bytes),
    /// The answer later; nothing if the client cancels meanwhile. Dropping it cancels the request.
    Pending(Pin<Box<dyn Future<Output = Option<Bytes>> + Send>>),
    /// The message wants no answer.
    Nothing,
}

/// One client. Dropping the connection cancels whatever it still waits for.
#[derive(Debug)]
pub struct Connection {
    server: Server,
    face: Face,
    inflight: Arc<Inflight>,
    session: Mutex<Option<Arc<Session>>>,
    _close_on_drop: DropGuard,
}

impl Connection {
    /// A client of `server`, and the messages for it beside the answers: log, progress, changes.
    ///
    /// Must be called on a tokio runtime, which then carries this connection's notifications.
    #[must_use]
    pub fn open(server: &Server, names: ToolNames) -> (Self, mpsc::Receiver<Bytes>) {
        let (outbox, messages) = mpsc::channel(OUTBOX_MESSAGES);
        let closing = server.stopping().child_token();
        let connection = Self {
            server: server.clone(),
            _close_on_drop: closing.clone().drop_guard(),
            face: Face {
                names,
                outbox,
                parameters: None,
                closing,
            },
            inflight: Arc::new(Inflight::default()),
            session: Mutex::new(None),
        };
        (connection, messages)
    }

    /// Takes one message, or one batch of them.
    pub fn receive(&self, message: &[u8]) -> Reply {
        match Frame::decode(message) {
            Ok(Frame::Single(message)) => self.message(message),
            Ok(Frame::Batch(elements)) => self.batch(&elements),
            Err(error) => refuse(&error),
        }
    }

    /// Ends what only the client could end, such as subscriptions; requests go on.
    pub fn close(&self) {
        self.face.closing.cancel();
    }

    /// Whether no request is open.
    pub(crate) fn is_idle(&self) -> bool {
        self.inflight.is_empty()
    }

    /// Waits until no request is open.
    ///
    /// # Cancel safety
    ///
    /// May be dropped and called again at any time.
    pub async fn idle(&self) {
        self.inflight.empty().await;
    }

    /// The sender of the messages that [`open`](Self::open) gave the receiver of.
    pub(crate) fn outbox(&self) -> &mpsc::Sender<Bytes> {
        &self.face.outbox
    }

    fn message(&self, message: Message<'_>) -> Reply {
        match message {
            Message::Request(request) => match self.request(&request) {
                Ok(reply) => reply,
                Err(error) => Reply::Ready(encode(&request.id, Err(error))),
            },
            Message::Notification(notification) => {
                self.notification(&notification);
                Reply::Nothing
            }
            Message::Response(response) => {
                if let Some(session) = &*lock(&self.session) {
                    session.questions.answered(response);
                }
                Reply::Nothing
            }
        }
    }

    fn request(&self, request: &Request<'_>) -> Result<Reply, ErrorObject> {
        let meta = RequestMeta::of_params(request.params)?;
        let context = if meta.is_stateless() {
            StatelessEnvelope::new(meta)?.context(&self.server, self.face.clone())?
        } else if request.method == "initialize" {
            return self.initialize(request).map(Reply::Ready);
        } else {
            wire::stateful_context(&self.server, &meta, self.session(), self.face.clone())?
        };
        dispatch::answer(&self.server, &self.inflight, request, context)
    }

    fn initialize(&self, request: &Request<'_>) -> Result<Bytes, ErrorObject> {
        let (introduction, result) = lifecycle::initialize(&self.server, request)?;
        self.begin_session(introduction);
        Ok(encode(&request.id, Ok(result)))
    }

    /// The session of this channel; a second `initialize` replaces it.
    fn begin_session(&self, introduction: Introduction) -> Arc<Session> {
        let session = Arc::new(Session::new(introduction, self.server.subscribers()));
        let forward = subscriptions::forward(&session, self.face.outbox.clone());
        tokio::spawn(self.face.closing.clone().run_until_cancelled_owned(forward));
        if let Some(replaced) = lock(&self.session).replace(Arc::clone(&session)) {
            replaced.end();
        }
        session
    }

    fn session(&self) -> Arc<Session> {
        let session = lock(&self.session).clone();
        session.unwrap_or_else(|| self.begin_session(Introduction::none(UNANNOUNCED)))
    }

    /// Notifications are never answered, and unknown ones are nobody's fault.
    fn notification(&self, notification: &Notification<'_>) {
        if notification.method == "notifications/cancelled"
            && let Ok(params) = notification.parse_params::<CancelledNotificationParams>()
        {
            self.inflight.cancel(&params.request_id);
        }
    }

    /// "Implementations MUST support receiving JSON-RPC batches" -- 2025-03-26/basic. No later revision
    /// has them.
    fn batch(&self, elements: &[&RawValue]) -> Reply {
        let version = lock(&self.session).as_ref().map(|session| session.version);
        if let Err(error) = check_batch(version, elements) {
            return error_without_id(&error);
        }
        let replies =
            elements
                .iter()
                .map(|element| match Message::decode(element.get().as_bytes()) {
                    Ok(Message::Request(request)) if request.method == "initialize" => {
                        Reply::Ready(encode(
                            &request.id,
                            Err(ErrorObject::invalid_request(
                                "`initialize` must not be part of a batch",
                            )),
                        ))
                    }
                    Ok(message) => self.message(message),
                    Err(error) => refuse(&error),
                });
        join(replies.collect())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.inflight.cancel_all();
    }
}

/// Whether `elements` may be a batch in `version`.
///
/// # Errors
///
/// `-32600` where the revision has none, or there are too many: each costs an answer.
pub(crate) fn check_batch(
    version: Option<ProtocolVersion>,
    elements: &[&RawValue],
) -> Result<(), ErrorObject> {
    if !version.is_some_and(ProtocolVersion::has_batches) {
        return Err(ErrorObject::invalid_request(
            "only revisions up to 2025-03-26 have batches; send one message at a time",
        ));
    }
    if elements.len() > MAX_BATCH {
        let refused = format!("a batch has {MAX_BATCH} messages at most; send the rest in another");
        return Err(ErrorObject::invalid_request(refused));
    }
    Ok(())
}

/// One array of all answers, as soon as all are there.
pub(crate) fn join(replies: Vec<Reply>) -> Reply {
    let wanted: Vec<_> = replies
        .into_iter()
        .filter_map(|reply| match reply {
            Reply::Ready(answer) => Some(future::Either::Left(future::ready(Some(answer)))),
            Reply::Pending(answer) => Some(future::Either::Right(answer)),
            Reply::Nothing => None,
        })
        .collect();
    if wanted.is_empty() {
        return Reply::Nothing;
    }
    Reply::Pending(Box::pin(async move {
        let answers: Vec<Bytes> = future::join_all(wanted)
            .await
            .into_iter()
            .flatten()
            .collect();
        (!answers.is_empty()).then(|| {
            [b"[", answers.join(&b","[..]).as_slice(), b"]"]
                .concat()
                .into()
        })
    }))
}

/// The answer to what is no message.
pub(crate) fn refuse(error: &DecodeError) -> Reply {
    Reply::Ready(jsonrpc::error_response(error.id.as_ref(), &error.error).into())
}

fn error_without_id(error: &ErrorObject) -> Reply {
    Reply::Ready(jsonrpc::error_response(None, error).into())
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
