//! Log and progress of background runs, received through a side stream as by any client, so that
//! a tool cannot tell whether it runs in the background.

use std::collections::VecDeque;

use bytes::Bytes;
use mcpd_protocol::jsonrpc::{Message, RequestId};
use mcpd_protocol::meta::ProgressToken;
use mcpd_protocol::{
    LoggingLevel, LoggingMessageNotification, LoggingMessageNotificationParams,
    NotificationMethod as _, ProgressNotification, ProgressNotificationParams, ProtocolVersion,
};
use tokio::sync::mpsc;

use crate::client::outbox::Outbox;
use crate::request::context::SideStream;

/// Maximum size of the kept log, in bytes.
const MAX_LOG_BYTES: usize = 64 * 1024;

/// Last messages of a run.
#[derive(Debug, Default)]
pub(super) struct TaskLog {
    progress: Option<String>,
    lines: VecDeque<String>,
    bytes: usize,
    /// Number of dropped lines.
    dropped_lines: u64,
}

/// Creates a side stream that subscribes to everything, and its receiver.
pub(super) fn new_side_stream() -> (SideStream, mpsc::Receiver<Bytes>) {
    let (outbox, messages) = Outbox::new();
    let token = ProgressToken::from(RequestId::from(0));
    let level = Some(LoggingLevel::Debug);
    let side = SideStream::new(outbox, ProtocolVersion::LATEST, level, Some(token));
    (side, messages)
}

/// Decoded message of a run.
enum TaskMessage {
    Log(LoggingMessageNotificationParams),
    Progress(ProgressNotificationParams),
}

impl TaskMessage {
    fn decode(message: &[u8]) -> Option<Self> {
        let Ok(Message::Notification(notification)) = Message::decode(message) else {
            return None;
        };
        match &*notification.method {
            LoggingMessageNotification::NAME => notification.parse_params().ok().map(Self::Log),
            ProgressNotification::NAME => notification.parse_params().ok().map(Self::Progress),
            _ => None,
        }
    }
}

/// Forwards a message to another side stream.
pub(super) fn forward(message: &[u8], side: &SideStream) {
    match TaskMessage::decode(message) {
        Some(TaskMessage::Log(log)) => {
            let logger = log.logger.as_deref().unwrap_or_default();
            side.log_with(log.level, logger, &log_text(&log), log.meta.as_ref());
        }
        Some(TaskMessage::Progress(said)) => {
            let message = said.message.as_deref();
            side.progress_with(said.progress, said.total, message, said.meta.as_ref());
        }
        None => {}
    }
}

fn log_text(log: &LoggingMessageNotificationParams) -> String {
    match log.data.as_str() {
        Some(text) => text.to_owned(),
        None => log.data.to_string(),
    }
}

impl TaskLog {
    /// Records a message.
    pub(super) fn record(&mut self, message: &[u8]) {
        match TaskMessage::decode(message) {
            Some(TaskMessage::Log(log)) => self.push_line(log_text(&log)),
            Some(TaskMessage::Progress(said)) => self.progress = Some(progress_text(said)),
            None => {}
        }
    }

    fn push_line(&mut self, line: String) {
        self.bytes += line.len() + 1;
        self.lines.push_back(line);
        while self.bytes > MAX_LOG_BYTES && self.lines.len() > 1 {
            let forgotten = self.lines.pop_front().unwrap_or_default();
            self.bytes -= forgotten.len() + 1;
            self.dropped_lines += 1;
        }
    }

    /// Last progress message.
    pub(super) fn progress(&self) -> Option<&str> {
        self.progress.as_deref()
    }

    /// Last lines of the log, after a note on the number of dropped ones.
    pub(super) fn text(&self) -> String {
        let lines = self.lines.iter().map(String::as_str);
        let lines = lines.collect::<Vec<_>>().join("\n");
        match self.dropped_lines {
            0 => lines,
            dropped_lines => format!("[… {dropped_lines} lines]\n{lines}"),
        }
    }
}

/// Formats progress as the message of the run, or else as its numbers.
fn progress_text(said: ProgressNotificationParams) -> String {
    match (said.message, said.total) {
        (Some(message), _) => message,
        (None, Some(total)) => format!("{}/{total}", said.progress),
        (None, None) => said.progress.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn task_log_keeps_the_last_lines_and_counts_the_rest() {
        let (side, mut messages) = new_side_stream();
        let mut log = TaskLog::default();
        let long = "x".repeat(MAX_LOG_BYTES / 2 - 1);
        for line in ["first", &long, &long] {
            side.log(LoggingLevel::Debug, "tool", line);
            log.record(&messages.try_recv().unwrap());
        }
        assert_eq!(log.text(), format!("[… 1 lines]\n{long}\n{long}"));
    }

    #[test]
    fn progress_is_told_in_words_or_else_in_numbers() {
        let (side, mut messages) = new_side_stream();
        let mut log = TaskLog::default();
        let mut check = |total, message, expected| {
            side.advance(1.0, total, message, &mcpd_protocol::meta::Meta::new());
            log.record(&messages.try_recv().unwrap());
            assert_eq!(log.progress(), Some(expected));
        };
        check(None, None, "1");
        check(Some(4.0), None, "2/4");
        check(Some(4.0), Some("nearly"), "nearly");
    }
}
