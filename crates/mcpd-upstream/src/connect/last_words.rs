//! The last line that a server has printed on stderr: often the reason why it ended.

use std::time::Duration;

use tokio::sync::watch;

/// How long a server that has ended is listened to.
const BRIEFLY: Duration = Duration::from_millis(500);

/// The last line, and whether there may be another.
#[derive(Debug)]
pub(crate) struct LastWords(watch::Sender<Said>);

#[derive(Debug, Default)]
struct Said {
    line: String,
    is_speaking: bool,
}

/// A server that may say something. It says no more when this is dropped.
#[derive(Debug)]
pub(super) struct Speaking(watch::Sender<Said>);

impl LastWords {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::default())
    }

    pub(super) fn speaking(&self) -> Speaking {
        self.0.send_modify(|said| said.is_speaking = true);
        Speaking(self.0.clone())
    }

    /// What went wrong, and what the server said last.
    pub(crate) async fn after(self, fault: String) -> String {
        let mut said = self.0.subscribe();
        let silence = said.wait_for(|said| !said.is_speaking);
        // Whoever holds its stderr after its end has nothing to say about that.
        tokio::time::timeout(BRIEFLY, silence).await.ok();
        match self.0.borrow().line.as_str() {
            "" => fault,
            line => format!("{fault}; it last said: {line}"),
        }
    }
}

impl Speaking {
    pub(super) fn say(&self, line: String) {
        self.0.send_modify(|said| said.line = line);
    }
}

impl Drop for Speaking {
    fn drop(&mut self) {
        self.0.send_modify(|said| said.is_speaking = false);
    }
}
