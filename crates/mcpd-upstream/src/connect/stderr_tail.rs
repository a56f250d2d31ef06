//! Last line that a server has printed on stderr: often the reason why it ended.

use std::time::Duration;

use tokio::sync::watch;

/// Time limit for reading the stderr of a server that has ended.
const STDERR_TIMEOUT: Duration = Duration::from_millis(500);

/// Last line of stderr, and whether another may follow.
#[derive(Debug)]
pub(crate) struct StderrTail(watch::Sender<Tail>);

#[derive(Debug, Default)]
struct Tail {
    line: String,
    is_open: bool,
}

/// Writer's side of the last line. Dropping it marks the end of stderr.
#[derive(Debug)]
pub(super) struct StderrWriter(watch::Sender<Tail>);

impl StderrTail {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::default())
    }

    pub(super) fn writer(&self) -> StderrWriter {
        self.0.send_modify(|tail| tail.is_open = true);
        StderrWriter(self.0.clone())
    }

    /// Appends the server's last line to the fault.
    pub(crate) async fn after(self, fault: String) -> String {
        let mut tail = self.0.subscribe();
        let silence = tail.wait_for(|tail| !tail.is_open);
        // A process that keeps the stderr open after the server's end is not waited for.
        tokio::time::timeout(STDERR_TIMEOUT, silence).await.ok();
        match self.0.borrow().line.as_str() {
            "" => fault,
            line => format!("{fault}; last line of its stderr: {line}"),
        }
    }
}

impl StderrWriter {
    pub(super) fn set_line(&self, line: String) {
        self.0.send_modify(|tail| tail.line = line);
    }
}

impl Drop for StderrWriter {
    fn drop(&mut self) {
        self.0.send_modify(|tail| tail.is_open = false);
    }
}
