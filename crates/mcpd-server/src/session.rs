//! What a client of the stateful wire has said of itself, and what it wants to hear. The stateless wire
//! has no such thing: every request there says everything anew.

use std::sync::{Arc, Mutex};

use mcpd_protocol::LoggingLevel;
use mcpd_protocol::ProtocolVersion;

use crate::subscribers::{Filter, Subscribers, Subscription};
use crate::sync::lock;

/// One `initialize` and what followed.
#[derive(Debug)]
pub(crate) struct Session {
    /// The negotiated revision.
    pub(crate) version: ProtocolVersion,
    /// Events for this client, fetched by whoever can send to it.
    pub(crate) subscription: Subscription,
    log_level: Mutex<Option<LoggingLevel>>,
}

impl Session {
    /// A session at `version` that hears of every list change.
    pub(crate) fn new(version: ProtocolVersion, subscribers: &Arc<Subscribers>) -> Self {
        let lists = Filter {
            tools: true,
            resources: true,
            ..Filter::default()
        };
        Self {
            version,
            subscription: subscribers.subscribe(lists),
            log_level: Mutex::new(None),
        }
    }

    /// The least level this client wants to see. Nothing is sent until it has asked.
    pub(crate) fn log_level(&self) -> Option<LoggingLevel> {
        *lock(&self.log_level)
    }

    pub(crate) fn set_log_level(&self, level: LoggingLevel) {
        *lock(&self.log_level) = Some(level);
    }
}
