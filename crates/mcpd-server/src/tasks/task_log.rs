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

use crate::context::SideStream;
use crate::outbox::Outbox;

/// Maximum size of the kept log, in bytes.
const MAX_BYTES: usize = 64 * 1024;

/// Last messages of a run.
#[derive(Debug, Default)]
pub(super) struct Heard {
    progress: Option<String>,
    lines: VecDeque<String>,
    bytes: usize,
    /// Number of dropped lines.
    left_out: u64,
}

/// Creates a side stream that subscribes to everything, and its receiver.
pub(super) fn side() -> (SideStream, mpsc::Receiver<Bytes>) {
    let (outbox, messages) = Outbox::new();
    let token = ProgressToken::from(RequestId::from(0));
    let level = Some(LoggingLevel::Debug);
    let side = SideStream::new(outbox, ProtocolVersion::LATEST, level, Some(token));
    (side, messages)
}

/// Decoded message of a run.
enum Said {
    Log(LoggingMessageNotificationParams),
    Progress(ProgressNotificationParams),
}

impl Said {
    fn read(message: &[u8]) -> Option<Self> {
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
pub(super) fn pass_on(message: &[u8], side: &SideStream) {
    match Said::read(message) {
        Some(Said::Log(log)) => {
            let logger = log.logger.as_deref().unwrap_or_default();
            side.log_with(log.level, logger, &text(&log), log.meta.as_ref());
        }
        Some(Said::Progress(said)) => {
            let message = said.message.as_deref();
            side.progress_with(said.progress, said.total, message, said.meta.as_ref());
        }
        None => {}
    }
}

fn text(log: &LoggingMessageNotificationParams) -> String {
    match log.data.as_str() {
        Some(text) => text.to_owned(),
        None => log.data.to_string(),
    }
}

impl Heard {
    /// Records a message.
    pub(super) fn save(&mut self, message: &[u8]) {
        match Said::read(message) {
            Some(Said::Log(log)) => self.line(text(&log)),
            Some(Said::Progress(said)) => self.progress = Some(progress(said)),
            None => {}
        }
    }

    fn line(&mut self, line: String) {
        self.bytes += line.len() + 1;
        self.lines.push_back(line);
        while self.bytes > MAX_BYTES && self.lines.len() > 1 {
            let forgotten = self.lines.pop_front().unwrap_or_default();
            self.bytes -= forgotten.len() + 1;
            self.left_out += 1;
        }
    }

    /// Last progress message.
    pub(super) fn progress(&self) -> Option<&str> {
        self.progress.as_deref()
    }

    /// Last lines of the log, after a note on the number of dropped ones.
    pub(super) fn lines(&self) -> String {
        let lines = self.lines.iter().map(String::as_str);
        let lines = lines.collect::<Vec<_>>().join("\n");
        match self.left_out {
            0 => lines,
            left_out => format!("[… {left_out} lines]\n{lines}"),
        }
    }
}

/// Formats progress as the message of the run, or else as its numbers.
fn progress(said: ProgressNotificationParams) -> String {
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
    fn the_last_lines_are_remembered_and_the_others_counted() {
        let (side, mut messages) = side();
        let mut heard = Heard::default();
        let long = "x".repeat(MAX_BYTES / 2 - 1);
        for line in ["first", &long, &long] {
            side.log(LoggingLevel::Debug, "tool", line);
            heard.save(&messages.try_recv().unwrap());
        }
        assert_eq!(heard.lines(), format!("[… 1 lines]\n{long}\n{long}"));
    }

    #[test]
    fn progress_is_told_in_words_or_else_in_numbers() {
        let (side, mut messages) = side();
        let mut heard = Heard::default();
        let mut check = |total, message, expected| {
            side.advance(1.0, total, message, &mcpd_protocol::meta::Meta::new());
            heard.save(&messages.try_recv().unwrap());
            assert_eq!(heard.progress(), Some(expected));
        };
        check(None, None, "1");
        check(Some(4.0), None, "2/4");
        check(Some(4.0), Some("nearly"), "nearly");
    }
}
