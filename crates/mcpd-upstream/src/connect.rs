//! From how a server is reached to a connection with it, opened in whatever revision both know.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use mcpd_scriptspec::excerpt;
use rmcp::model::{
    ClientJsonRpcMessage, ErrorData, ProtocolVersion, RequestId, ServerJsonRpcMessage,
};
use rmcp::service::{ClientInitializeError, RunningService, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::{IntoTransport, Transport};
use rmcp::{ClientLifecycleMode, ClientServiceExt as _, RoleClient};
use serde::Deserialize;
use serde::de::IgnoredAny;
use tokio::sync::Semaphore;

use crate::call::{MAX_EXCERPT, too_long_integer};
use crate::link::UNREADABLE;
use crate::listener::Listener;
use crate::upstream::{Reach, Upstream};
use crate::words;

mod http;
mod last_words;
mod stdio;

pub(crate) use last_words::LastWords;

/// How long a server may take to start and to introduce itself. Some are installed when they are started.
const PATIENCE: Duration = Duration::from_secs(60);
/// What servers are greeted in that expect a handshake.
pub(crate) const HANDSHAKE: ProtocolVersion = ProtocolVersion::V_2025_11_25;
/// The largest message a server may send, in bytes, as for clients.
const MAX_MESSAGE: usize = mcpd_server::DEFAULT_MAX_MESSAGE;

/// How many answers may be on their way to a server that has asked something.
const MOST_ANSWERS: usize = 64;

/// An open connection. Dropping it closes it.
pub(crate) type Connection = RunningService<RoleClient, Listener>;

/// Connects: in the newest revision with a server that knows it, and with any other as that expects. What it says on
/// stderr is noted in `last_words`.
///
/// # Errors
///
/// Why that failed, in words that fit after the name of the server.
///
/// # Cancel safety
///
/// Dropping the future ends the program that was started.
pub(crate) async fn connect(
    upstream: &Upstream,
    listener: &Listener,
    last_words: &LastWords,
) -> Result<Connection, String> {
    let newest = ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: None,
    };
    let connected = async {
        match try_connect(upstream, listener, last_words, newest).await {
            // It knows of the newest revision, but not how to speak it.
            Err(Fault::Older) => {
                let greeting = ClientLifecycleMode::Initialize;
                try_connect(upstream, listener, last_words, greeting).await
            }
            connected => connected,
        }
    };
    match tokio::time::timeout(PATIENCE, connected).await {
        Ok(Ok(connection)) => Ok(connection),
        Ok(Err(Fault::Older)) => Err("speaks no revision that is known here".to_owned()),
        Ok(Err(Fault::Other(fault))) => Err(fault),
        Err(_) => Err(format!("has not answered within {PATIENCE:?}")),
    }
}

/// Why there is no connection.
#[derive(Debug)]
enum Fault {
    /// The server speaks other revisions than were asked for.
    Older,
    /// In words that fit after the name of the server.
    Other(String),
}

/// Reaches the server, and opens a connection as `lifecycle` says.
async fn try_connect(
    upstream: &Upstream,
    listener: &Listener,
    last_words: &LastWords,
    lifecycle: ClientLifecycleMode,
) -> Result<Connection, Fault> {
    match &upstream.reach {
        Reach::Program(program) => {
            let server = stdio::start(upstream, program, last_words);
            open(listener, lifecycle, server.map_err(Fault::Other)?).await
        }
        Reach::Address(address) => {
            let server = http::transport(address, listener);
            open(listener, lifecycle, server.map_err(Fault::Other)?).await
        }
        #[cfg(test)]
        Reach::Memory(server) => open(listener, lifecycle, server.connect()).await,
    }
}

/// Opens a connection over `transport`.
async fn open<T, E, A>(
    listener: &Listener,
    lifecycle: ClientLifecycleMode,
    transport: T,
) -> Result<Connection, Fault>
where
    T: IntoTransport<RoleClient, E, A>,
    E: std::error::Error + Send + Sync + 'static,
{
    let transport = Tapped {
        transport: transport.into_transport(),
        listener: listener.clone(),
        room: Arc::new(Semaphore::new(MOST_ANSWERS)),
    };
    let opened = listener.clone().serve_with_lifecycle(transport, lifecycle);
    opened.await.map_err(Fault::from)
}

impl From<ClientInitializeError> for Fault {
    fn from(error: ClientInitializeError) -> Self {
        let ended = || Self::Other("ended before it had introduced itself".to_owned());
        match error {
            ClientInitializeError::NoCompatibleProtocolVersion { .. } => Self::Older,
            ClientInitializeError::ConnectionClosed(_) => ended(),
            ClientInitializeError::LegacyFallbackFailed { fallback, .. } => (*fallback).into(),
            ClientInitializeError::TransportError { error, .. } => {
                let pipe = error.error.downcast_ref::<io::Error>();
                if pipe.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
                    return ended();
                }
                let why = words::chain(&*error.error);
                Self::Other(format!("can't be reached: {why}"))
            }
            error => Self::Other(format!("could not be greeted: {}", words::chain(&error))),
        }
    }
}

/// The error that stands for an answer that can't be read, if this is one: whoever waits for it would wait in vain.
fn in_place_of(message: &str, why: impl fmt::Display) -> Option<ServerJsonRpcMessage> {
    #[derive(Deserialize)]
    struct Answer {
        id: RequestId,
        method: Option<IgnoredAny>,
    }
    let answer: Answer = serde_json::from_str(message).ok()?;
    let is_answer = answer.method.is_none();
    is_answer.then(|| ServerJsonRpcMessage::error(unreadable(why), Some(answer.id)))
}

/// The error that stands for a result with an integer that would be rounded: better none than one about another number.
fn in_place_of_rounded(message: &str) -> Option<ServerJsonRpcMessage> {
    let integer = excerpt(too_long_integer(message)?, MAX_EXCERPT);
    let why = format!("its integer `{integer}` has more than 64 bits, and would be rounded");
    in_place_of(message, why)
}

fn unreadable(why: impl fmt::Display) -> ErrorData {
    ErrorData::new(UNREADABLE, format!("the answer can't be read: {why}"), None)
}

/// A transport that lets the listener hear everything first: in the order it came, so that no progress is told after the
/// result, and without a task for each message of a server that has much to say. One that asks and asks, and reads no
/// answer, is heard no more until it does.
struct Tapped<T> {
    transport: T,
    listener: Listener,
    /// How many answers more may be on their way.
    room: Arc<Semaphore>,
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Tapped<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        let is_answer = matches!(
            message,
            ClientJsonRpcMessage::Response(_) | ClientJsonRpcMessage::Error(_)
        );
        let place = is_answer.then(|| Arc::clone(&self.room).try_acquire_owned().ok());
        Listener::sends(&message);
        let sent = self.transport.send(message);
        async move {
            let sent = sent.await;
            drop(place);
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            // It is never closed.
            drop(self.room.acquire().await);
            let Some(message) = self.transport.receive().await else {
                self.listener.closed.cancel();
                return None;
            };
            let left = self.listener.hear(message);
            if left.is_some() {
                return left;
            }
        }
    }

    async fn close(&mut self) -> Result<(), T::Error> {
        self.transport.close().await
    }
}
