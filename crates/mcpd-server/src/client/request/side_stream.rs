//! Side stream of a request: log messages and progress that its sender wants meanwhile.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, Mutex};

use mcpd_protocol::ProtocolVersion;
use mcpd_protocol::jsonrpc::RequestId;
use mcpd_protocol::meta::{Meta, ProgressToken};
use mcpd_protocol::method::{
    LoggingLevel, LoggingMessageNotification, LoggingMessageNotificationParams,
    ProgressNotification, ProgressNotificationParams,
};

use crate::client::outbox::{Outbox, notify};
use crate::message::text::replace_nul;
use crate::support::sync::lock;

/// Message beside a result.
#[derive(Debug)]
pub(crate) enum SideMessage {
    Log(LoggingMessageNotificationParams),
    Progress(ProgressNotificationParams),
}

impl SideMessage {
    /// Size of its text, in bytes.
    pub(crate) fn text_len(&self) -> usize {
        match self {
            Self::Log(log) => log_text(log).len(),
            Self::Progress(progress) => progress.message.as_ref().map_or(0, String::len),
        }
    }
}

/// Part of this process that receives the messages of a run as values.
pub(crate) trait SideListener: fmt::Debug + Send + Sync {
    fn receive(&self, message: SideMessage);
}

/// Receiver of side messages.
#[derive(Debug, Clone)]
enum Receiver {
    Client(Outbox),
    Listener(Arc<dyn SideListener>),
}

impl Receiver {
    fn receive(&self, message: SideMessage) {
        match (self, message) {
            (Self::Client(outbox), SideMessage::Log(params)) => {
                notify::<LoggingMessageNotification>(outbox, &params);
            }
            (Self::Client(outbox), SideMessage::Progress(params)) => {
                notify::<ProgressNotification>(outbox, &params);
            }
            (Self::Listener(listener), message) => listener.receive(message),
        }
    }
}

/// Log messages and progress for the sender of the request. Never blocks: a client that does not
/// read loses messages, and the script loses no time.
#[derive(Debug, Clone)]
pub(crate) struct SideStream {
    receiver: Receiver,
    log_level: Option<LoggingLevel>,
    progress: Option<ProgressState>,
    with_progress_message: bool,
}

/// Progress token and last value sent: all runs of one request continue from there.
#[derive(Debug, Clone)]
struct ProgressState {
    token: ProgressToken,
    last: Arc<Mutex<f64>>,
}

impl SideStream {
    pub(crate) fn new(
        outbox: Outbox,
        version: ProtocolVersion,
        log_level: Option<LoggingLevel>,
        progress_token: Option<ProgressToken>,
    ) -> Self {
        let progress = progress_token.map(|token| ProgressState {
            token,
            last: Arc::new(Mutex::new(f64::NEG_INFINITY)),
        });
        Self {
            receiver: Receiver::Client(outbox),
            log_level,
            progress,
            with_progress_message: version.has_progress_message(),
        }
    }

    /// Creates a side stream to a listener that wants everything.
    pub(crate) fn to(listener: Arc<dyn SideListener>) -> Self {
        let progress = ProgressState {
            token: ProgressToken::from(RequestId::from(0)),
            last: Arc::new(Mutex::new(f64::NEG_INFINITY)),
        };
        Self {
            receiver: Receiver::Listener(listener),
            log_level: Some(LoggingLevel::Debug),
            progress: Some(progress),
            with_progress_message: true,
        }
    }

    /// Sends a message that another run has sent, with its `_meta`.
    pub(crate) fn forward(&self, message: &SideMessage) {
        match message {
            SideMessage::Log(log) => {
                let logger = log.logger.as_deref().unwrap_or_default();
                self.log_with(log.level, logger, &log_text(log), log.meta.as_ref());
            }
            SideMessage::Progress(progress) => {
                self.progress_to(
                    |_| progress.progress,
                    progress.total,
                    progress.message.as_deref(),
                    progress.meta.as_ref(),
                );
            }
        }
    }

    /// Returns whether the sender wants log messages or progress.
    pub(crate) fn is_wanted(&self) -> bool {
        self.log_level.is_some() || self.progress.is_some()
    }

    /// Lowest level the sender wants to see.
    pub(crate) fn log_level(&self) -> Option<LoggingLevel> {
        self.log_level
    }

    /// Returns whether the sender wants progress.
    pub(crate) fn wants_progress(&self) -> bool {
        self.progress.is_some()
    }

    /// Sends a log message, if this request wants messages of that level.
    pub(crate) fn log(&self, level: LoggingLevel, logger: &str, text: &str) {
        self.log_with(level, logger, text, None);
    }

    /// Sends a log message with `_meta`.
    pub(crate) fn log_with(
        &self,
        level: LoggingLevel,
        logger: &str,
        text: &str,
        meta: Option<&Meta>,
    ) {
        if self.log_level.is_some_and(|least| level >= least) {
            let mut params = LoggingMessageNotificationParams::new(level, &*replace_nul(text));
            params.logger = Some(logger.to_owned());
            params.meta = meta.cloned();
            self.receiver.receive(SideMessage::Log(params));
        }
    }

    /// Sends progress, if this request wants any. "The `progress` value MUST increase with each
    /// notification" -- 2026-07-28/basic/patterns/progress
    ///
    /// Returns false if it was not sent.
    pub(crate) fn progress(
        &self,
        progress: f64,
        total: Option<f64>,
        message: Option<&str>,
    ) -> bool {
        self.progress_to(|_| progress, total, message, None)
    }

    /// Sends progress increased by `step`, with `_meta`. Where floating point is too coarse for
    /// the step, takes the next higher number.
    pub(crate) fn advance(
        &self,
        step: f64,
        total: Option<f64>,
        message: Option<&str>,
        meta: &Meta,
    ) {
        let next = |last: f64| match last {
            f64::NEG_INFINITY => step,
            last => (last + step).max(last.next_up()),
        };
        self.progress_to(next, total, message, Some(meta));
    }

    /// Sends the progress that `next` computes from the last, if it is higher.
    fn progress_to(
        &self,
        next: impl FnOnce(f64) -> f64,
        total: Option<f64>,
        message: Option<&str>,
        meta: Option<&Meta>,
    ) -> bool {
        let Some(ProgressState { token, last }) = &self.progress else {
            return false;
        };
        // The lock is held until the notification is queued: another run may send progress at the
        // same time, and the order on the wire must be the order of the values.
        let mut last = lock(last);
        let progress = next(*last);
        if !progress.is_finite() || progress <= *last {
            return false;
        }
        *last = progress;
        let mut params = ProgressNotificationParams::new(token.clone(), progress);
        params.total = total;
        params.message = message
            .filter(|_| self.with_progress_message)
            .map(|message| replace_nul(message).into_owned());
        params.meta = meta.cloned();
        self.receiver.receive(SideMessage::Progress(params));
        true
    }
}

/// Text of a log message.
pub(crate) fn log_text(log: &LoggingMessageNotificationParams) -> Cow<'_, str> {
    match log.data.as_str() {
        Some(text) => text.into(),
        None => log.data.to_string().into(),
    }
}
