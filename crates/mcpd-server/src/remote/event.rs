//! Events that concern the subscribers of other fronts: their outlet here, which is lossy.

use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;

/// Maximum number of events that a receiver may be behind; of more, the oldest are lost.
const MAX_BEHIND: usize = 1024;

/// Change that happened on one front, and that subscribers of each may want to know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum SharedEvent {
    /// The content of a resource may have changed.
    ResourceUpdated {
        /// Its URI.
        uri: String,
    },
    /// A task has changed its state.
    TaskChanged {
        /// Its id.
        task: String,
    },
    /// A client has asked something of a task, which may run on another front.
    TaskRequested {
        /// Its id.
        task: String,
    },
    /// A client has answered a question, or cancelled a request, that this front does not know.
    ClientMessage {
        /// Name of its session.
        session: String,
        /// The message.
        message: String,
    },
    /// A client has ended its session.
    SessionEnded {
        /// Name of the session.
        session: String,
    },
}

/// Outlet of events, which costs nothing without a receiver.
#[derive(Debug)]
pub(crate) struct Outlet(broadcast::Sender<SharedEvent>);

impl Default for Outlet {
    fn default() -> Self {
        Self(broadcast::Sender::new(MAX_BEHIND))
    }
}

impl Outlet {
    /// Passes an event to the receivers.
    pub(crate) fn pass(&self, event: impl FnOnce() -> SharedEvent) {
        if self.0.receiver_count() > 0 {
            self.0.send(event()).ok();
        }
    }

    /// Returns a receiver of the events from now on.
    pub(crate) fn events(&self) -> SharedEvents {
        SharedEvents(self.0.subscribe())
    }
}

/// Receiver of the events of one server.
#[derive(Debug)]
pub struct SharedEvents(broadcast::Receiver<SharedEvent>);

impl SharedEvents {
    /// Waits for the next event; `None` if the server is gone. A receiver that falls far behind
    /// loses events.
    ///
    /// # Cancel safety
    ///
    /// No event is lost.
    pub async fn next(&mut self) -> Option<SharedEvent> {
        loop {
            match self.0.recv().await {
                Ok(event) => return Some(event),
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }
}
