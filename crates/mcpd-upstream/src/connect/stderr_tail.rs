//! Last line that a server has printed on stderr: often the reason why it ended.

use std::time::Duration;

use tokio::sync::watch;

/// Time limit for reading the stderr of a server that has ended.
const STDERR_TIMEOUT: Duration = Duration::from_millis(500);

/// Last line of stderr, and whether another may follow.
#[derive(Debug)]
pub(crate) struct StderrTail(watch::Sender<Said>);

#[derive(Debug, Default)]
struct Said {
    line: String,
    is_speaking: bool,
}

/// Writer's side of the last line. Dropping it marks the end of stderr.
#[derive(Debug)]
pub(super) struct StderrWriter(watch::Sender<Said>);

impl StderrTail {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::default())
    }

    pub(super) fn speaking(&self) -> StderrWriter {
        self.0.send_modify(|said| said.is_speaking = true);
        StderrWriter(self.0.clone())
    }

    /// Appends the server's last line to the fault.
    pub(crate) async fn after(self, fault: String) -> String {
        let mut said = self.0.subscribe();
        let silence = said.wait_for(|said| !said.is_speaking);
        // A process that keeps the stderr open after the server's end is not waited for.
        tokio::time::timeout(STDERR_TIMEOUT, silence).await.ok();
        match self.0.borrow().line.as_str() {
            "" => fault,
            line => format!("{fault}; it last said: {line}"),
        }
    }
}

impl StderrWriter {
    pub(super) fn say(&self, line: String) {
        self.0.send_modify(|said| said.line = line);
    }
}

impl Drop for StderrWriter {
    fn drop(&mut self) {
        self.0.send_modify(|said| said.is_speaking = false);
    }
}
