//! What a server says without being asked: progress and log messages for the calls they belong to, and changes. What
//! it asks is refused.

#![expect(deprecated, reason = "rmcp marks so what 2026-07-28 has no longer")]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use mcpd_protocol::LoggingLevel;
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
use crate::pending::Pending;
use crate::remarks::Remarks;
use crate::words;

/// How many words of a server wait for one caller; what comes then is lost.
const WAITING: usize = 64;

/// What a server says about a call.
#[derive(Debug)]
pub(crate) enum Word {
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

/// Who listens to a server on one connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Listener {
    /// They are in no word.
    secrets: Secrets,
    remarks: Remarks,
    /// Requests that it has yet to answer.
    pub(crate) pending: Pending,
    calls: Arc<Mutex<Vec<Call>>>,
    /// Something that it lists is another now.
    pub(crate) changed: Arc<Notify>,
    /// It says nothing any more.
    pub(crate) closed: CancellationToken,
    /// It may be gone: it could not be told something, or has said nothing at all since a call was made that is overdue.
    pub(crate) doubtful: Arc<Notify>,
    /// How many messages have come.
    heard: Arc<AtomicU64>,
    /// A call was overdue, and no message has come since.
    is_overdue: Arc<AtomicBool>,
}

/// The token of a call, which rmcp chooses when it sends that. It travels with the request, as one of its extensions.
pub(crate) type Token = Arc<OnceLock<ProgressToken>>;

/// A call that is being made.
#[derive(Debug)]
struct Call {
    token: Token,
    words: mpsc::Sender<Word>,
}

/// What is said about one call, while this lives.
#[derive(Debug)]
pub(crate) struct Words {
    token: Token,
    words: mpsc::Receiver<Word>,
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

    /// Hears what is said about a call that has yet to be made, with the token of these words.
    pub(crate) fn listen(&self) -> Words {
        let (sender, words) = mpsc::channel(WAITING);
        let token = Token::default();
        self.with_calls(|calls| {
            calls.push(Call {
                token: Arc::clone(&token),
                words: sender,
            });
        });
        Words {
            token,
            words,
            listener: self.clone(),
        }
    }

    /// Whether nothing is being called.
    pub(crate) fn is_idle(&self) -> bool {
        self.with_calls(|calls| calls.is_empty())
    }

    /// How many messages have come so far.
    pub(crate) fn heard(&self) -> u64 {
        self.heard.load(Relaxed)
    }

    /// Notes that a call is overdue that was made when so many messages had come. Gives whether that is news.
    pub(crate) fn waits_in_vain(&self, heard: u64) -> bool {
        if self.heard() == heard {
            self.doubtful.notify_one();
        }
        !self.is_overdue.swap(true, Relaxed)
    }

    fn with_calls<T>(&self, use_them: impl FnOnce(&mut Vec<Call>) -> T) -> T {
        use_them(&mut self.calls.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Notes what is sent: the token of a call, before anything can be said about it, and what is
    /// to be answered.
    pub(crate) fn note_sent(&self, message: &ClientJsonRpcMessage) {
        self.pending.note_sent(message);
        let ClientJsonRpcMessage::Request(request) = message else {
            return;
        };
        let request = &request.request;
        let call = request.extensions().get::<Token>();
        if let (Some(call), Some(token)) = (call, request.get_meta().get_progress_token()) {
            // It is sent once.
            call.set(token).ok();
        }
    }

    /// Takes what a call or this listener wants to know, and gives back what is left to handle.
    pub(crate) fn hear(&self, message: ServerJsonRpcMessage) -> Option<ServerJsonRpcMessage> {
        self.heard.fetch_add(1, Relaxed);
        self.is_overdue.store(false, Relaxed);
        let message = self.pending.note_received(message, &self.remarks)?;
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
                call.tell(Word::Progress {
                    progress: said.progress,
                    total: said.total,
                    message: said.message.map(|message| self.secrets.redact(message)),
                });
            }
        });
    }

    /// A message says not which call it belongs to. So it is told only where there is no doubt: of two callers neither
    /// may learn what the other does.
    fn log(&self, said: &LoggingMessageNotificationParam) {
        let text = match said.data.as_str() {
            Some(text) => text.to_owned(),
            None => said.data.to_string(),
        };
        let text = self.secrets.redact(text);
        let Ok(level) = words::translated(&said.level) else {
            return;
        };
        self.with_calls(|calls| {
            if let [call] = calls.as_slice() {
                call.tell(Word::Log { level, text });
            }
        });
    }
}

impl Call {
    fn tell(&self, word: Word) {
        // Whoever does not keep up loses words, not the result.
        self.words.try_send(word).ok();
    }
}

impl Words {
    pub(crate) fn token(&self) -> Token {
        Arc::clone(&self.token)
    }

    /// The next word. Waits for ever if there is none.
    ///
    /// # Cancel safety
    ///
    /// No word is lost.
    pub(crate) async fn next(&mut self) -> Word {
        match self.words.recv().await {
            Some(word) => word,
            None => std::future::pending().await,
        }
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        self.listener
            .with_calls(|calls| calls.retain(|call| !Arc::ptr_eq(&call.token, &self.token)));
    }
}

/// As it comes, it knows no model, declines every elicitation and has no roots. None of that is declared, so a server has
/// no reason to ask.
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
    fn a_word_is_heard_as_soon_as_its_call_is_sent() {
        let listener = Listener::default();
        let mut words = listener.listen();
        assert!(!listener.is_idle());
        let mut request = ClientRequest::CallToolRequest(CallToolRequest::new(
            CallToolRequestParams::new("greet"),
        ));
        request.extensions_mut().insert(words.token());
        let token = ProgressToken(NumberOrString::Number(7));
        request.get_meta_mut().set_progress_token(token);
        let id = NumberOrString::Number(1);
        listener.note_sent(&ClientJsonRpcMessage::request(request, id));
        let params = json!({"progressToken": 7, "progress": 1});
        let said = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params});
        assert!(
            listener
                .hear(serde_json::from_value(said).unwrap())
                .is_none()
        );
        assert!(matches!(
            words.next().now_or_never(),
            Some(Word::Progress { .. })
        ));
        drop(words);
        assert!(listener.is_idle());
    }
}
