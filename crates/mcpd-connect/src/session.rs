//! State of a session, for revisions that have one: its id, its version, and the introduction of
//! the client, with which a session that the server has lost is opened again.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use reqwest::header::{HeaderMap, HeaderValue};
use tokio::sync::watch;

use crate::message::{SESSION, VERSION};

/// Open session, or none.
#[derive(Debug, Clone, Default)]
pub(crate) struct Opened {
    /// Counts the sessions; 0 before the first.
    pub(crate) generation: u64,
    pub(crate) id: Option<HeaderValue>,
    pub(crate) version: Option<HeaderValue>,
}

impl Opened {
    /// Returns the headers of a message in this session.
    pub(crate) fn headers(&self) -> HeaderMap {
        let headers = [(SESSION, &self.id), (VERSION, &self.version)];
        let headers = headers.into_iter();
        headers
            .filter_map(|(name, value)| Some((name, value.clone()?)))
            .collect()
    }
}

/// Messages with which the client has introduced itself.
#[derive(Debug, Clone, Default)]
pub(crate) struct Introduction {
    /// Request `initialize`.
    pub(crate) initialize: Option<Bytes>,
    /// Notification `notifications/initialized`.
    pub(crate) initialized: Option<Bytes>,
}

#[derive(Debug, Default)]
struct State {
    opened: Opened,
    introduction: Introduction,
}

/// Session of the bridge.
#[derive(Debug)]
pub(crate) struct Session {
    state: Mutex<State>,
    /// Held while the session is opened again, so that concurrent requests do so once.
    pub(crate) renewal: tokio::sync::Mutex<()>,
    /// Generation of the session that is complete, so that its stream can be opened.
    ready: watch::Sender<u64>,
}

impl Session {
    pub(crate) fn new() -> Self {
        Self {
            state: Mutex::default(),
            renewal: tokio::sync::Mutex::default(),
            ready: watch::Sender::new(0),
        }
    }

    pub(crate) fn current(&self) -> Opened {
        self.state().opened.clone()
    }

    pub(crate) fn introduction(&self) -> Introduction {
        self.state().introduction.clone()
    }

    /// Begins a session: the client has sent `initialize`.
    pub(crate) fn begin(&self, initialize: Bytes) {
        let mut state = self.state();
        state.introduction = Introduction {
            initialize: Some(initialize),
            initialized: None,
        };
        state.opened.id = None;
        state.opened.version = None;
    }

    /// Records `notifications/initialized`.
    pub(crate) fn confirm(&self, initialized: Bytes) {
        self.state().introduction.initialized = Some(initialized);
    }

    /// Records the answer to `initialize`.
    pub(crate) fn open(&self, id: Option<HeaderValue>, version: Option<HeaderValue>) {
        let mut state = self.state();
        state.opened = Opened {
            generation: state.opened.generation + 1,
            id,
            version,
        };
    }

    /// Lets the listener open the stream of this session.
    pub(crate) fn announce(&self) {
        let generation = self.current().generation;
        self.ready.send_replace(generation);
    }

    /// Follows the generation of the session that is complete.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.ready.subscribe()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
