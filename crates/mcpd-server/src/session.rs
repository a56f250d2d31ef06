//! What a client of the stateful wire has said of itself, and what it wants to hear. The stateless wire
//! has no such thing: every request there says everything anew.

use std::sync::{Arc, Mutex};

use mcpd_protocol::{ClientCapabilities, Implementation, LoggingLevel, ProtocolVersion};

use tokio_util::sync::CancellationToken;

use crate::principal::Principal;
use crate::questions::Questions;
use crate::subscribers::{Filter, Subscribers, Subscription};
use crate::sync::lock;

/// What a client says in `initialize`.
#[derive(Debug)]
pub(crate) struct Introduction {
    /// The negotiated revision.
    pub(crate) version: ProtocolVersion,
    pub(crate) capabilities: ClientCapabilities,
    pub(crate) client: Option<Implementation>,
    /// It was said, and not supposed.
    pub(crate) is_given: bool,
    /// It was promised in return that the client hears when a list changes.
    pub(crate) hears_of_lists: bool,
}

/// One `initialize` and what followed.
#[derive(Debug)]
pub(crate) struct Session {
    /// The negotiated revision.
    pub(crate) version: ProtocolVersion,
    /// What the client offers.
    pub(crate) capabilities: Arc<ClientCapabilities>,
    /// Who the client says it is.
    pub(crate) client: Option<Arc<Implementation>>,
    /// It began with `initialize`. Otherwise it may be over after one request.
    pub(crate) introduced: bool,
    /// What it is called over HTTP.
    #[cfg(feature = "http")]
    pub(crate) id: Option<String>,
    /// What it has been asked.
    pub(crate) questions: Questions,
    /// Events for this client, fetched by whoever can send to it.
    pub(crate) subscription: Arc<Subscription>,
    log_level: Mutex<Option<LoggingLevel>>,
    ended: CancellationToken,
}

impl Introduction {
    /// A client that said nothing but, perhaps, a revision.
    pub(crate) fn none(version: ProtocolVersion) -> Self {
        Self {
            version,
            capabilities: ClientCapabilities::default(),
            client: None,
            is_given: false,
            hears_of_lists: false,
        }
    }
}

impl Session {
    /// A session that hears of every list change, if that was promised.
    pub(crate) fn new(
        introduction: Introduction,
        owner: &Principal,
        subscribers: &Arc<Subscribers>,
    ) -> Self {
        let lists = Filter {
            tools: introduction.hears_of_lists,
            prompts: introduction.hears_of_lists,
            resources: introduction.hears_of_lists,
            ..Filter::default()
        };
        Self {
            version: introduction.version,
            capabilities: Arc::new(introduction.capabilities),
            client: introduction.client.map(Arc::new),
            introduced: introduction.is_given,
            #[cfg(feature = "http")]
            id: None,
            questions: Questions::default(),
            subscription: Arc::new(subscribers.subscribe(owner.shared_name(), lists)),
            log_level: Mutex::new(None),
            ended: CancellationToken::new(),
        }
    }

    /// Cancelled when the session is over: ended by its client, replaced, or forgotten.
    pub(crate) fn ended(&self) -> CancellationToken {
        self.ended.clone()
    }

    /// Ends the session, and whatever only tells it of changes.
    pub(crate) fn end(&self) {
        self.ended.cancel();
    }

    /// The least level this client wants to see. Nothing is sent until it has asked.
    pub(crate) fn log_level(&self) -> Option<LoggingLevel> {
        *lock(&self.log_level)
    }

    pub(crate) fn set_log_level(&self, level: LoggingLevel) {
        *lock(&self.log_level) = Some(level);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.end();
    }
}
