//! What a server says without being asked: progress and log messages for the calls they belong to, and changes. What
//! it asks is refused.

#![expect(deprecated, reason = "rmcp marks so what 2026-07-28 has no longer")]

use std::sync::{Arc, Mutex, PoisonError};

use mcpd_protocol::LoggingLevel;
use mcpd_server::source::Secrets;
use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, Implementation, LoggingMessageNotificationParam,
    ProgressNotificationParam, ProgressToken, ServerJsonRpcMessage, ServerNotification,
};
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use crate::connect::HANDSHAKE;
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
    calls: Arc<Mutex<Vec<Call>>>,
    /// Something that it lists is another now.
    pub(crate) changed: Arc<Notify>,
    /// It says nothing any more.
    pub(crate) closed: CancellationToken,
    /// It could not be told something.
    pub(crate) broken: Arc<Notify>,
}

/// A call that is being made.
#[derive(Debug)]
struct Call {
    token: ProgressToken,
    words: mpsc::Sender<Word>,
}

/// What is said about one call, while this lives.
#[derive(Debug)]
pub(crate) struct Words {
    token: ProgressToken,
    words: mpsc::Receiver<Word>,
    listener: Listener,
}

impl Listener {
    pub(crate) fn new(secrets: &Secrets) -> Self {
        Self {
            secrets: secrets.clone(),
            ..Self::default()
        }
    }

    /// Hears what is said about the call that has this token.
    pub(crate) fn listen(&self, token: ProgressToken) -> Words {
        let (sender, words) = mpsc::channel(WAITING);
        self.with_calls(|calls| {
            calls.push(Call {
                token: token.clone(),
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

    fn with_calls<T>(&self, use_them: impl FnOnce(&mut Vec<Call>) -> T) -> T {
        use_them(&mut self.calls.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes what a call or this listener wants to know, and gives back what is left to handle.
    pub(crate) fn hear(&self, message: ServerJsonRpcMessage) -> Option<ServerJsonRpcMessage> {
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
        self.with_calls(|calls| {
            if let Some(call) = calls.iter().find(|call| call.token == said.progress_token) {
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
            .with_calls(|calls| calls.retain(|call| call.token != self.token));
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
