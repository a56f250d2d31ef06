//! Connecting to a server, in any revision that both sides speak.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{ClientJsonRpcMessage, ProtocolVersion};
use rmcp::service::{ClientInitializeError, RunningService, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::{IntoTransport, Transport};
use rmcp::{ClientLifecycleMode, ClientServiceExt as _, RoleClient};
use tokio::sync::Semaphore;

use self::reader::Reader;
use crate::conversion;
use crate::listener::Listener;
use crate::remarks::Remarks;
use crate::upstream::{Reach, Upstream};

mod http;
mod reader;
mod stderr_tail;
mod stdio;

pub(crate) use stderr_tail::StderrTail;

/// Time limit for a server to start and answer the greeting. Some servers are installed when they
/// are started.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(60);
/// Revision proposed to servers that expect a handshake.
pub(crate) const HANDSHAKE: ProtocolVersion = ProtocolVersion::V_2025_11_25;
/// Maximum size of a message from a server in bytes, equal to the limit for clients.
const MAX_MESSAGE: usize = mcpd_server::DEFAULT_MAX_MESSAGE;

/// Maximum number of answers that are being sent to a server that makes requests itself.
const MAX_UNSENT_ANSWERS: usize = 64;

/// Open connection. Dropping it closes it.
pub(crate) type Connection = RunningService<RoleClient, Listener>;

/// First message to a server, chosen from the outcome of earlier connections.
///
/// ```text
/// Discover ── the server ends, or answers neither it nor the handshake ─► Initialize, at once
/// Discover ── it answers only the handshake after it ─► Initialize, at the next connection
/// Discover ── a program answers nothing at all ─► Initialize, at the next connection
/// Initialize ── it does not accept that either ─► Discover, at the next connection
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Greeting {
    /// `server/discover`, then a handshake if the server does not know that method.
    #[default]
    Discover,
    /// Handshake of older revisions.
    Initialize,
}

impl Greeting {
    fn lifecycle(self) -> ClientLifecycleMode {
        match self {
            Self::Initialize => ClientLifecycleMode::Initialize,
            Self::Discover => ClientLifecycleMode::Auto {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
                legacy_version: None,
            },
        }
    }
}

/// Connects in the newest revision if the server speaks it, otherwise as the server expects.
/// Records the server's stderr in `stderr_tail` and the greeting it accepts in `greeting`.
///
/// # Errors
///
/// Returns the reason, as a fragment that follows the name of the server.
///
/// # Cancel safety
///
/// Dropping the future ends the program that was started.
pub(crate) async fn connect(
    upstream: &Upstream,
    remarks: &Remarks,
    stderr_tail: &StderrTail,
    greeting: &mut Greeting,
) -> Result<Connection, Failure> {
    let first = *greeting;
    let connected = async {
        let tried = try_connect(upstream, remarks, stderr_tail, first).await;
        if !matches!(tried, Err(ConnectFault::Older | ConnectFault::Ungreeted(_))) {
            return tried;
        }
        if first == Greeting::Initialize {
            *greeting = Greeting::Discover;
            return tried;
        }
        let tried = try_connect(upstream, remarks, stderr_tail, Greeting::Initialize).await;
        if tried.is_ok() {
            *greeting = Greeting::Initialize;
        }
        tried
    };
    let connected = tokio::time::timeout(CONNECT_TIMEOUT, connected).await;
    match connected {
        Ok(Ok(connection)) => {
            if connection.service().pending.has_skipped_discover() {
                *greeting = Greeting::Initialize;
            }
            Ok(connection)
        }
        Ok(Err(ConnectFault::Older)) => {
            let fault = "supports no protocol revision that mcpd supports";
            Err(Failure::Other(fault.to_owned()))
        }
        Ok(Err(ConnectFault::Unauthorized(fault))) => Err(Failure::Unauthorized(fault)),
        Ok(Err(ConnectFault::Ungreeted(fault) | ConnectFault::Unreachable(fault))) => {
            Err(Failure::Other(fault))
        }
        Err(_) => {
            // A program confused by the first message may never answer another.
            *greeting = match first {
                Greeting::Discover if upstream.is_program() => Greeting::Initialize,
                _ => Greeting::Discover,
            };
            let fault = format!("did not respond within {CONNECT_TIMEOUT:?}");
            Err(Failure::Other(fault))
        }
    }
}

/// Reason why there is no connection, as a fragment that follows the name of the server.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The server wants credentials, or others.
    Unauthorized(String),
    Other(String),
}

/// Reason why an attempt gave no connection.
#[derive(Debug)]
enum ConnectFault {
    /// The server speaks only revisions older than those offered.
    Older,
    /// The server was reached, and then ended or rejected the greeting. A fragment that follows
    /// its name.
    Ungreeted(String),
    /// The server was not reached. A fragment that follows its name.
    Unreachable(String),
    /// The server wants credentials, or others. A fragment that follows its name.
    Unauthorized(String),
}

/// Reaches the server, and opens a connection with this greeting.
async fn try_connect(
    upstream: &Upstream,
    remarks: &Remarks,
    stderr_tail: &StderrTail,
    greeting: Greeting,
) -> Result<Connection, ConnectFault> {
    let listener = Listener::new(&upstream.secrets, remarks);
    let reader = Reader {
        remarks: remarks.clone(),
        pending: listener.pending.clone(),
    };
    match &upstream.reach {
        Reach::Program(program) => {
            let server = stdio::start(upstream, program, reader, stderr_tail);
            let server = server.map_err(ConnectFault::Unreachable)?;
            open(listener, greeting, server).await
        }
        Reach::Address(address) => {
            let server = http::transport(address, reader, &listener);
            let server = server.map_err(ConnectFault::Unreachable)?;
            open(listener, greeting, server).await
        }
        #[cfg(test)]
        Reach::Memory(server) => open(listener, greeting, server.connect()).await,
    }
}

/// Opens a connection over `transport`.
async fn open<T, E, A>(
    listener: Listener,
    greeting: Greeting,
    transport: T,
) -> Result<Connection, ConnectFault>
where
    T: IntoTransport<RoleClient, E, A>,
    E: std::error::Error + Send + Sync + 'static,
{
    let transport = ListenerTransport {
        transport: transport.into_transport(),
        listener: listener.clone(),
        answer_permits: Arc::new(Semaphore::new(MAX_UNSENT_ANSWERS)),
    };
    let opened = listener.serve_with_lifecycle(transport, greeting.lifecycle());
    opened.await.map_err(ConnectFault::from)
}

impl From<ClientInitializeError> for ConnectFault {
    fn from(error: ClientInitializeError) -> Self {
        let ended = || Self::Ungreeted("exited before `initialize` was complete".to_owned());
        match error {
            ClientInitializeError::NoCompatibleProtocolVersion { .. } => Self::Older,
            ClientInitializeError::ConnectionClosed(_) => ended(),
            ClientInitializeError::LegacyFallbackFailed { fallback, .. } => (*fallback).into(),
            ClientInitializeError::TransportError { error, .. } => {
                let pipe = error.error.downcast_ref::<io::Error>();
                if pipe.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
                    return ended();
                }
                let why = format!("is unreachable: {}", conversion::chain(&*error.error));
                match http::is_unauthorized(&*error.error) {
                    true => Self::Unauthorized(why),
                    false => Self::Unreachable(why),
                }
            }
            error => Self::Ungreeted(format!(
                "failed to initialize: {}",
                conversion::chain(&error)
            )),
        }
    }
}

/// Transport that passes every message to the listener first. This keeps the order of arrival, so
/// that no progress is reported after the result, and needs no task per message of a talkative
/// server.
///
/// Backpressure: while [`MAX_UNSENT_ANSWERS`] answers to the server's own requests are unsent, no
/// further message is read from it.
struct ListenerTransport<T> {
    transport: T,
    listener: Listener,
    /// Permits for further answers to the server.
    answer_permits: Arc<Semaphore>,
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for ListenerTransport<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        let is_answer = matches!(
            message,
            ClientJsonRpcMessage::Response(_) | ClientJsonRpcMessage::Error(_)
        );
        // Taken without waiting: answers that are due already may exceed the limit, but then
        // nothing further is received that would need another.
        let permit = is_answer.then(|| Arc::clone(&self.answer_permits).try_acquire_owned().ok());
        self.listener.record_sent(&message);
        let sent = self.transport.send(message);
        async move {
            let sent = sent.await;
            drop(permit);
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            if let Some(error) = self.listener.pending.attribute_error() {
                return Some(error);
            }
            // The semaphore is never closed.
            drop(self.answer_permits.acquire().await);
            let Some(message) = self.transport.receive().await else {
                self.listener.closed.cancel();
                return None;
            };
            let left = self.listener.route(message);
            if left.is_some() {
                return left;
            }
        }
    }

    async fn close(&mut self) -> Result<(), T::Error> {
        self.transport.close().await
    }
}
