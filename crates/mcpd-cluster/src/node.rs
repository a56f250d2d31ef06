//! Connection of a node with the NATS server: subjects, sending that never waits, requests with a
//! deadline. The only modules that know `async-nats` are this one and those below it.

pub(crate) mod bucket;
mod connect;
pub(crate) mod ping;
pub(crate) mod probe;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_nats::connection::State;
use async_nats::{Client, Message, RequestErrorKind, StatusCode, Subject, Subscriber};
use bytes::Bytes;
use futures_util::FutureExt as _;
use serde::Serialize;
use tokio::time::Instant;

use crate::error::Error;
use crate::presence::Moment;
use crate::settings::Settings;
use crate::wire::{Control, Frame, FrameError, Head, Here, Kind, Request, subject_prefix};

/// Time limit of one request, and the number of times that it is sent.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
const REQUEST_ATTEMPTS: u32 = 3;

/// Connection of one start of a node.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    client: Client,
    prefix: String,
    pub(crate) name: String,
    pub(crate) epoch: u64,
    started: Instant,
}

/// Message that has arrived.
#[derive(Debug, Clone)]
pub(crate) struct Incoming {
    pub(crate) subject: Subject,
    pub(crate) reply: Option<Subject>,
    pub(crate) payload: Bytes,
    /// The server says that there is no subscriber for what was sent.
    pub(crate) is_no_subscriber: bool,
}

impl From<Message> for Incoming {
    fn from(message: Message) -> Self {
        Self {
            is_no_subscriber: message.status == Some(StatusCode::NO_RESPONDERS),
            subject: message.subject,
            reply: message.reply,
            payload: message.payload,
        }
    }
}

/// Reason for which a request has no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    #[error("no such node is connected")]
    Absent,
    #[error("{0}")]
    Failed(String),
}

/// Returns the number of this start: greater than that of an earlier one.
fn new_epoch() -> u64 {
    clock_ms()
}

/// Returns the time on the clock of this machine, in milliseconds since 1970.
pub(crate) fn clock_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let millis = now.unwrap_or_default().as_millis();
    u64::try_from(millis).unwrap_or_default()
}

impl Node {
    /// Connects. Without a reachable server it connects later, in the background.
    ///
    /// # Errors
    ///
    /// Fails for settings that can never work.
    pub(crate) async fn connect(settings: &Settings) -> Result<Self, Error> {
        let client = connect::connect(settings).await?;
        Ok(Self {
            client,
            prefix: subject_prefix(settings.cluster.as_str()),
            name: settings.node.to_string(),
            epoch: new_epoch(),
            started: Instant::now(),
        })
    }

    /// Time since the connection was made.
    pub(crate) fn now(&self) -> Moment {
        self.started.elapsed()
    }

    /// Returns this start of the node, as it names itself in requests.
    pub(crate) fn identity(&self) -> String {
        format!("{}.{}", self.name, self.epoch)
    }

    pub(crate) fn subject(&self, kind: &str, node: &str) -> String {
        format!("{}.{kind}.{node}", self.prefix)
    }

    /// Subject that all nodes hear.
    pub(crate) fn subject_of_all(&self, kind: &str) -> String {
        format!("{}.{kind}", self.prefix)
    }

    /// Returns a subject that only this start of the node hears.
    pub(crate) fn inbox(&self, rest: &str) -> String {
        format!("_INBOX.{}.{}.{rest}", self.name, self.epoch)
    }

    /// Returns the part of a subject below [`inbox`](Self::inbox).
    pub(crate) fn below_inbox<'a>(&self, subject: &'a str) -> Option<&'a str> {
        subject
            .strip_prefix("_INBOX.")?
            .strip_prefix(&self.name)?
            .strip_prefix('.')?
            .strip_prefix(&self.epoch.to_string())?
            .strip_prefix('.')
    }

    /// Returns the kind of a subject of this cluster, such as `run`.
    pub(crate) fn kind<'a>(&self, subject: &'a str) -> Option<&'a str> {
        let rest = subject.strip_prefix(&*self.prefix)?.strip_prefix('.')?;
        rest.split('.').next()
    }

    pub(crate) async fn subscribe(&self, subject: String) -> Result<Subscriber, Error> {
        let subscribed = self.client.subscribe(subject).await;
        subscribed.map_err(|error| Error::Connect(error.to_string()))
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.client.connection_state() == State::Connected
    }

    /// Sends a message, or drops it: without a connection, and if too many wait already. Every
    /// message that matters is sent again until it is answered.
    pub(crate) fn send(&self, subject: &str, reply: Option<String>, payload: Bytes) {
        if !self.is_connected() {
            return;
        }
        let subject = subject.to_owned();
        let sent = match reply {
            Some(reply) => {
                let publish = self.client.publish_with_reply(subject, reply, payload);
                publish.now_or_never()
            }
            None => self.client.publish(subject, payload).now_or_never(),
        };
        match sent {
            Some(Ok(())) => {}
            // Such as one above the `max_payload` of the server.
            Some(Err(error)) => tracing::warn!(%error, "a message to the cluster was dropped"),
            None => tracing::debug!("a message to the cluster was dropped: too many wait"),
        }
    }

    /// Sends a frame, as [`send`](Self::send) does.
    pub(crate) fn send_frame<H: Serialize>(
        &self,
        subject: &str,
        reply: Option<String>,
        frame: &Frame<H>,
    ) {
        match frame.encode() {
            Ok(bytes) => self.send(subject, reply, bytes),
            Err(error) => tracing::warn!(subject, %error, "a message can't be sent"),
        }
    }

    /// Sends a request about runs, whose answer comes to `reply`, if it has one.
    pub(crate) fn send_control(&self, node: &str, request: Request, reply: Option<String>) {
        let control = Control::new(&self.identity(), request);
        let frame = Frame::new(control, Bytes::new());
        self.send_frame(&self.subject("ctl", node), reply, &frame);
    }

    /// Announces a node.
    pub(crate) fn announce(&self, mut here: Here) {
        here.at_ms = u64::try_from(self.now().as_millis()).unwrap_or(u64::MAX);
        here.clock_ms = clock_ms();
        let subject = self.subject("here", &self.name);
        self.send_frame(&subject, None, &Frame::new(here, Bytes::new()));
    }

    /// Presence of this node, with nothing more than its names.
    pub(crate) fn here(&self, kind: Kind) -> Here {
        let mut here = Here::new(&self.name, self.epoch, kind);
        here.version = env!("CARGO_PKG_VERSION").to_owned();
        here
    }

    /// Sends a request until it is answered.
    ///
    /// # Errors
    ///
    /// Fails without an answer, or with one that can't be read.
    pub(crate) async fn request<Q: Serialize, A: Head>(
        &self,
        subject: String,
        question: &Frame<Q>,
    ) -> Result<Frame<A>, RequestError> {
        let failed = |error: FrameError| RequestError::Failed(error.to_string());
        let payload = question.encode().map_err(failed)?;
        let mut last = RequestError::Absent;
        for _ in 0..REQUEST_ATTEMPTS {
            let request = self.client.request(subject.clone(), payload.clone());
            match tokio::time::timeout(REQUEST_TIMEOUT, request).await {
                Ok(Ok(answer)) => return Frame::decode(&answer.payload).map_err(failed),
                Ok(Err(error)) if error.kind() == RequestErrorKind::NoResponders => {
                    last = RequestError::Absent;
                }
                Ok(Err(error)) => last = RequestError::Failed(error.to_string()),
                Err(_) => last = RequestError::Failed("it does not answer".to_owned()),
            }
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
        Err(last)
    }

    /// Waits until everything that was sent has left this process, for a moment at most.
    pub(crate) async fn flush(&self) {
        let flush = self.client.flush();
        tokio::time::timeout(Duration::from_secs(1), flush)
            .await
            .ok();
    }
}
