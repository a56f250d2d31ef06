//! Notifications of a server: progress and log messages are routed to their calls, and list
//! changes are noted. The server's own requests are refused.

#![expect(deprecated, reason = "rmcp marks so what 2026-07-28 has no longer")]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use mcpd_protocol::method::LoggingLevel;
use mcpd_server::source::Secrets;
use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ClientJsonRpcMessage, GetExtensions as _, GetMeta as _,
    Implementation, LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken,
    ServerJsonRpcMessage, ServerNotification,
};
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use crate::connect::HANDSHAKE;
use crate::conversion;
use crate::pending::Pending;
use crate::remarks::Remarks;

/// Maximum number of notifications queued for one caller; further ones are dropped.
const MAX_QUEUED_NOTIFICATIONS: usize = 64;

/// Notification about a call.
#[derive(Debug)]
pub(crate) enum CallNotification {
    Progress {
        progress: f64,
        total: Option<f64>,
        message: Option<String>,
    },
    Log {
        level: LoggingLevel,
        text: String,
    },
}

/// Receiver of a server's messages on one connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Listener {
    /// Redacted from every notification.
    secrets: Secrets,
    remarks: Remarks,
    /// Requests that the server has yet to answer.
    pub(crate) pending: Pending,
    calls: Arc<Mutex<Vec<Call>>>,
    /// Signals that one of its lists has changed.
    pub(crate) changed: Arc<Notify>,
    /// Cancelled when the server sends nothing any more.
    pub(crate) closed: CancellationToken,
    /// Signals that the server may be gone: a message could not be sent to it, or it has sent
    /// nothing since an overdue call was made.
    pub(crate) doubtful: Arc<Notify>,
    /// Number of messages received.
    received: Arc<AtomicU64>,
    /// A call is overdue, and no message has arrived since.
    is_overdue: Arc<AtomicBool>,
}

/// Progress token of a call, which rmcp chooses when it sends the call. It travels with the
/// request, as one of its extensions.
pub(crate) type Token = Arc<OnceLock<ProgressToken>>;

/// Call in progress.
#[derive(Debug)]
struct Call {
    token: Token,
    notifications: mpsc::Sender<CallNotification>,
}

/// Stream of notifications about one call, while this lives.
#[derive(Debug)]
pub(crate) struct CallNotifications {
    token: Token,
    notifications: mpsc::Receiver<CallNotification>,
    listener: Listener,
}

impl Listener {
    pub(crate) fn new(secrets: &Secrets, remarks: &Remarks) -> Self {
        Self {
            secrets: secrets.clone(),
            remarks: remarks.clone(),
            ..Self::default()
        }
    }

    /// Registers a call that has yet to be made, with the token of the returned stream.
    pub(crate) fn listen(&self) -> CallNotifications {
        let (sender, notifications) = mpsc::channel(MAX_QUEUED_NOTIFICATIONS);
        let token = Token::default();
        self.with_calls(|calls| {
            calls.push(Call {
                token: Arc::clone(&token),
                notifications: sender,
            });
        });
        CallNotifications {
            token,
            notifications,
            listener: self.clone(),
        }
    }

    /// Returns whether no call is in progress.
    pub(crate) fn is_idle(&self) -> bool {
        self.with_calls(|calls| calls.is_empty())
    }

    /// Returns the number of messages received so far.
    pub(crate) fn received_count(&self) -> u64 {
        self.received.load(Relaxed)
    }

    /// Records that a call is overdue, made when `received` messages had been received. Returns
    /// whether this is the first since the last message.
    pub(crate) fn record_overdue(&self, received: u64) -> bool {
        if self.received_count() == received {
            self.doubtful.notify_one();
        }
        !self.is_overdue.swap(true, Relaxed)
    }

    fn with_calls<T>(&self, use_them: impl FnOnce(&mut Vec<Call>) -> T) -> T {
        use_them(&mut self.calls.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Records an outgoing message: the token of a call, before any notification can refer to it,
    /// and the pending request.
    pub(crate) fn record_sent(&self, message: &ClientJsonRpcMessage) {
        self.pending.record_sent(message);
        let ClientJsonRpcMessage::Request(request) = message else {
            return;
        };
        let request = &request.request;
        let call = request.extensions().get::<Token>();
        if let (Some(call), Some(token)) = (call, request.get_meta().get_progress_token()) {
            // Each call is sent once.
            call.set(token).ok();
        }
    }

    /// Consumes a message meant for a call or for this listener, and returns any other.
    pub(crate) fn route(&self, message: ServerJsonRpcMessage) -> Option<ServerJsonRpcMessage> {
        self.received.fetch_add(1, Relaxed);
        self.is_overdue.store(false, Relaxed);
        let message = self.pending.record_received(message, &self.remarks)?;
        let ServerJsonRpcMessage::Notification(said) = message else {
            return Some(message);
        };
        match said.notification {
            ServerNotification::ProgressNotification(said) => self.progress(said.params),
            ServerNotification::LoggingMessageNotification(said) => self.log(&said.params),
            ServerNotification::ToolListChangedNotification(_)
            | ServerNotification::PromptListChangedNotification(_)
            | ServerNotification::ResourceListChangedNotification(_) => {
                self.changed.notify_one();
                return Some(ServerJsonRpcMessage::Notification(said));
            }
            _ => return Some(ServerJsonRpcMessage::Notification(said)),
        }
        None
    }

    fn progress(&self, said: ProgressNotificationParam) {
        let token = Some(&said.progress_token);
        self.with_calls(|calls| {
            if let Some(call) = calls.iter().find(|call| call.token.get() == token) {
                call.send(CallNotification::Progress {
                    progress: said.progress,
                    total: said.total,
                    message: said.message.map(|message| self.secrets.redact(message)),
                });
            }
        });
    }

    /// Routes a log message. It does not identify its call, so it is relayed only while a single
    /// call is in progress: no caller may learn what another does.
    fn log(&self, said: &LoggingMessageNotificationParam) {
        let text = match said.data.as_str() {
            Some(text) => text.to_owned(),
            None => said.data.to_string(),
        };
        let text = self.secrets.redact(text);
        let Ok(level) = conversion::convert(&said.level) else {
            return;
        };
        self.with_calls(|calls| {
            if let [call] = calls.as_slice() {
                call.send(CallNotification::Log { level, text });
            }
        });
    }
}

impl Call {
    fn send(&self, notification: CallNotification) {
        // A caller that falls behind loses notifications, not the result.
        self.notifications.try_send(notification).ok();
    }
}

impl CallNotifications {
    pub(crate) fn token(&self) -> Token {
        Arc::clone(&self.token)
    }

    /// Returns the next notification. Waits for ever if there is none.
    ///
    /// # Cancel safety
    ///
    /// No notification is lost.
    pub(crate) async fn next(&mut self) -> CallNotification {
        match self.notifications.recv().await {
            Some(notification) => notification,
            None => std::future::pending().await,
        }
    }
}

impl Drop for CallNotifications {
    fn drop(&mut self) {
        self.listener
            .with_calls(|calls| calls.retain(|call| !Arc::ptr_eq(&call.token, &self.token)));
    }
}

/// The defaults refuse sampling, decline every elicitation and list no roots. None of these
/// capabilities is declared, so a server has no reason to ask.
impl ClientHandler for Listener {
    fn get_info(&self) -> ClientConfig {
        let identity = Implementation::new("mcpd", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), identity).with_protocol_version(HANDSHAKE)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest, NumberOrString};
    use serde_json::json;

    use super::*;

    #[test]
    fn notification_is_routed_once_its_call_is_sent() {
        let listener = Listener::default();
        let mut notifications = listener.listen();
        assert!(!listener.is_idle());
        let mut request = ClientRequest::CallToolRequest(CallToolRequest::new(
            CallToolRequestParams::new("greet"),
        ));
        request.extensions_mut().insert(notifications.token());
        let token = ProgressToken(NumberOrString::Number(7));
        request.get_meta_mut().set_progress_token(token);
        let id = NumberOrString::Number(1);
        listener.record_sent(&ClientJsonRpcMessage::request(request, id));
        let params = json!({"progressToken": 7, "progress": 1});
        let said = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params});
        assert!(
            listener
                .route(serde_json::from_value(said).unwrap())
                .is_none()
        );
        assert!(matches!(
            notifications.next().now_or_never(),
            Some(CallNotification::Progress { .. })
        ));
        drop(notifications);
        assert!(listener.is_idle());
    }
}
