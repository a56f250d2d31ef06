//! Messages of a call that may become a task: kept until it is decided whether its caller or the
//! log of a task receives them. A tool cannot tell whether it runs in the background.

use std::collections::VecDeque;
use std::sync::Mutex;

use mcpd_protocol::method::ProgressNotificationParams;

use crate::client::outbox::{self, MAX_QUEUED_BYTES};
use crate::client::request::side_stream::{SideListener, SideMessage, SideStream, log_text};
use crate::support::sync::lock;

/// Maximum size of the kept log, in bytes.
const MAX_LOG_BYTES: usize = 64 * 1024;

/// Messages of one call.
#[derive(Debug, Default)]
pub(super) struct CallMessages(Mutex<Receiver>);

/// Receiver of the messages.
#[derive(Debug)]
enum Receiver {
    /// Kept messages and the space that they take up, bounded as the queue of a client; later
    /// messages are dropped.
    Undecided {
        kept: Vec<SideMessage>,
        space: u32,
    },
    Caller(SideStream),
    Task(TaskLog),
}

impl Default for Receiver {
    fn default() -> Self {
        Self::Undecided {
            kept: Vec::new(),
            space: 0,
        }
    }
}

/// Last messages of a run.
#[derive(Debug, Default)]
struct TaskLog {
    progress: Option<String>,
    lines: VecDeque<String>,
    bytes: usize,
    /// Number of dropped lines.
    dropped_lines: u64,
}

impl Receiver {
    fn receive(&mut self, message: SideMessage) {
        match self {
            Self::Undecided { kept, space } => {
                let needed = *space + outbox::cost(message.text_len());
                if needed <= MAX_QUEUED_BYTES {
                    *space = needed;
                    kept.push(message);
                } else {
                    tracing::debug!("message of a call dropped: too many at once");
                }
            }
            Self::Caller(side) => side.forward(&message),
            Self::Task(log) => log.record(message),
        }
    }
}

impl SideListener for CallMessages {
    fn receive(&self, message: SideMessage) {
        lock(&self.0).receive(message);
    }
}

impl CallMessages {
    /// Forwards the messages to the caller: the kept ones now, and later ones as they come.
    pub(super) fn forward_to(&self, side: &SideStream) {
        self.decide(Receiver::Caller(side.clone()));
    }

    /// Keeps the messages in the log of a task.
    pub(super) fn keep_in_log(&self) {
        self.decide(Receiver::Task(TaskLog::default()));
    }

    fn decide(&self, next: Receiver) {
        let mut receiver = lock(&self.0);
        if let Receiver::Undecided { kept, .. } = std::mem::replace(&mut *receiver, next) {
            kept.into_iter()
                .for_each(|message| receiver.receive(message));
        }
    }

    /// Last progress message of the task.
    pub(super) fn progress(&self) -> Option<String> {
        match &*lock(&self.0) {
            Receiver::Task(log) => log.progress().map(str::to_owned),
            Receiver::Undecided { .. } | Receiver::Caller(_) => None,
        }
    }

    /// Last lines of the task's log, after a note on the number of dropped ones.
    pub(super) fn text(&self) -> String {
        match &*lock(&self.0) {
            Receiver::Task(log) => log.text(),
            Receiver::Undecided { .. } | Receiver::Caller(_) => String::new(),
        }
    }
}

impl TaskLog {
    /// Records a message.
    fn record(&mut self, message: SideMessage) {
        match message {
            SideMessage::Log(log) => self.push_line(log_text(&log).into_owned()),
            SideMessage::Progress(progress) => self.progress = Some(progress_text(progress)),
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
    fn progress(&self) -> Option<&str> {
        self.progress.as_deref()
    }

    /// Last lines of the log, after a note on the number of dropped ones.
    fn text(&self) -> String {
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
    use std::sync::Arc;

    use bytes::Bytes;
    use mcpd_protocol::ProtocolVersion;
    use mcpd_protocol::method::LoggingLevel;

    use super::*;
    use crate::client::outbox::Outbox;

    fn new() -> (Arc<CallMessages>, SideStream) {
        let messages = Arc::<CallMessages>::default();
        (Arc::clone(&messages), SideStream::to(messages))
    }

    #[test]
    fn task_log_keeps_the_last_lines_and_counts_the_rest() {
        let (messages, side) = new();
        messages.keep_in_log();
        let long = "x".repeat(MAX_LOG_BYTES / 2 - 1);
        for line in ["first", &long, &long] {
            side.log(LoggingLevel::Debug, "tool", line);
        }
        assert_eq!(messages.text(), format!("[… 1 lines]\n{long}\n{long}"));
    }

    #[test]
    fn progress_is_told_in_words_or_else_in_numbers() {
        let (messages, side) = new();
        messages.keep_in_log();
        let check = |total, message, expected: &str| {
            side.advance(1.0, total, message, &mcpd_protocol::meta::Meta::new());
            assert_eq!(messages.progress().as_deref(), Some(expected));
        };
        check(None, None, "1");
        check(Some(4.0), None, "2/4");
        check(Some(4.0), Some("nearly"), "nearly");
    }

    #[test]
    fn kept_messages_reach_the_receiver_before_later_ones() {
        let (messages, side) = new();
        side.log(LoggingLevel::Info, "tool", "early");
        assert_eq!(messages.text(), "");
        messages.keep_in_log();
        side.log(LoggingLevel::Info, "tool", "late");
        assert_eq!(messages.text(), "early\nlate");

        let (messages, side) = new();
        let (outbox, mut sent) = Outbox::new();
        let level = Some(LoggingLevel::Info);
        let caller = SideStream::new(outbox, ProtocolVersion::LATEST, level, None);
        side.log(LoggingLevel::Info, "tool", "early");
        side.log(LoggingLevel::Debug, "tool", "not wanted");
        messages.forward_to(&caller);
        side.log(LoggingLevel::Info, "tool", "late");
        let mut has = |text: &str| {
            let message: Bytes = sent.try_recv().expect("a message");
            String::from_utf8_lossy(&message).contains(text)
        };
        assert!(has("early") && has("late"));
    }

    #[test]
    fn undecided_messages_are_bounded_in_number_and_size() {
        let (messages, side) = new();
        let most = MAX_QUEUED_BYTES / outbox::cost(0);
        for number in 0..=most {
            side.log(LoggingLevel::Info, "tool", &number.to_string());
        }
        messages.keep_in_log();
        assert!(messages.text().ends_with(&format!("\n{}", most - 1)));

        let (messages, side) = new();
        let half = "x".repeat(MAX_QUEUED_BYTES as usize / 2);
        for text in [&*half, "small", &half] {
            side.log(LoggingLevel::Info, "tool", text);
        }
        messages.keep_in_log();
        assert_eq!(messages.text(), "[… 1 lines]\nsmall");
    }
}
