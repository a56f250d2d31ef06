//! Dispatch of the client's messages: requests run concurrently within a limit, notifications and
//! responses go out one after the other, and nothing overtakes the introduction of the client.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mcpd_protocol::jsonrpc::{ErrorObject, Frame, Message, RequestId};
use reqwest::header::HeaderMap;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::answer::Role;
use crate::input::Line;
use crate::link::Link;
use crate::message::Facts;
use crate::pending::Pending;

/// Time limit for the acceptance of a message without an answer, besides that of retries.
const POST_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum number of requests that the server has at the same time. Further ones wait.
const MAX_CONCURRENT_REQUESTS: usize = 64;
/// Maximum number of requests that wait. Beyond it, standard input is not read.
const MAX_WAITING_REQUESTS: usize = 1024;
/// Maximum number of notifications and responses that wait.
const MAX_QUEUED_MESSAGES: usize = 64;

/// Notification or response on its way, and its headers if it belongs to no session.
type Posted = (Bytes, Option<HeaderMap>);

/// Dispatcher of one client.
#[derive(Debug)]
pub(crate) struct Dispatcher {
    link: Arc<Link>,
    pub(crate) pending: Pending,
    pub(crate) tasks: TaskTracker,
    /// Ends all tasks.
    pub(crate) stop: CancellationToken,
    outbox: Sender<Posted>,
    running: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
}

/// Message of the client, without a reference to its bytes.
enum Incoming {
    Request(RequestId, Facts, Role),
    Initialized,
    Notification(Facts),
    Response,
    Faulty(Option<RequestId>, ErrorObject),
    Ignored,
}

impl Dispatcher {
    pub(crate) fn new(link: &Arc<Link>) -> Self {
        let (outbox, posted) = mpsc::channel(MAX_QUEUED_MESSAGES);
        let dispatcher = Self {
            link: Arc::clone(link),
            pending: Pending::default(),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
            outbox,
            running: Arc::new(Semaphore::new(MAX_CONCURRENT_REQUESTS)),
            waiting: Arc::new(Semaphore::new(
                MAX_CONCURRENT_REQUESTS + MAX_WAITING_REQUESTS,
            )),
        };
        dispatcher.spawn(post_all(Arc::clone(link), posted));
        dispatcher
    }

    /// Dispatches all lines, and waits until each message has been handled.
    pub(crate) async fn run(self, mut lines: Receiver<Line>) {
        while let Some(line) = lines.recv().await {
            match line {
                Line::Text(text) => self.dispatch(text).await,
                Line::TooLong => {
                    let max_size = self.link.max_message;
                    let error = format!("a message has at most {max_size} bytes");
                    let error = ErrorObject::invalid_request(error);
                    self.link.output.send_error(None, &error).await;
                }
            }
        }
        let Self { outbox, tasks, .. } = self;
        drop(outbox);
        tasks.close();
        tasks.wait().await;
    }

    async fn dispatch(&self, text: Bytes) {
        match read(&text) {
            Incoming::Request(id, facts, role) => self.start_request(text, id, facts, role).await,
            Incoming::Initialized => {
                self.link.session.confirm(text.clone());
                // Requests that follow must not overtake it.
                post(&self.link, text, None).await;
                self.link.session.announce();
            }
            Incoming::Notification(facts) => {
                let is_forwarded = match &facts.cancelled {
                    Some(id) => self.cancel(id),
                    None => true,
                };
                if is_forwarded {
                    self.post_later(text, facts.stateless).await;
                }
            }
            Incoming::Response => self.post_later(text, None).await,
            Incoming::Faulty(id, error) => {
                self.link.output.send_error(id.as_ref(), &error).await;
            }
            Incoming::Ignored => {}
        }
    }

    async fn start_request(&self, text: Bytes, id: RequestId, mut facts: Facts, role: Role) {
        if let (Some(headers), Some(tool)) = (&mut facts.stateless, &facts.tool) {
            self.link.parameters.add_headers(tool, &text, headers);
        }
        let waiting = Arc::clone(&self.waiting).acquire_owned().await;
        let stop = self.stop.child_token();
        let request = self
            .pending
            .insert(id, facts.stateless.is_some(), stop.clone());
        if role == Role::Introduction {
            self.link.session.begin(text.clone());
        }
        let (link, pending, running) = (
            Arc::clone(&self.link),
            self.pending.clone(),
            Arc::clone(&self.running),
        );
        let exchange = self.tasks.spawn(async move {
            let work = async {
                let _running = running.acquire().await;
                link.exchange(&request, text, facts.stateless, role).await;
            };
            // Dropping the exchange closes its connection, which cancels a stateless request.
            tokio::select! {
                () = work => pending.remove(&request),
                () = request.cancellation_timeout() => pending.remove(&request),
                () = stop.cancelled() => {
                    if request.is_cancelled() {
                        pending.remove(&request);
                    }
                }
            }
            drop(waiting);
        });
        if role == Role::Introduction {
            // Messages that follow belong to its session. A panic is reported by its own thread.
            exchange.await.ok();
        }
    }

    /// Cancels a request. Returns whether the notification is for the server.
    fn cancel(&self, id: &RequestId) -> bool {
        match self.pending.get(id) {
            Some(request) => request.cancel(),
            // The answer may be on its way; a server without sessions knows no such message.
            None => self.link.session.current().generation > 0,
        }
    }

    async fn post_later(&self, text: Bytes, stateless: Option<HeaderMap>) {
        // The queue is read until the bridge ends.
        self.outbox.send((text, stateless)).await.ok();
    }

    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                () = work => {}
                () = stop.cancelled() => {}
            }
        });
    }
}

async fn post_all(link: Arc<Link>, mut posted: Receiver<Posted>) {
    while let Some((text, stateless)) = posted.recv().await {
        post(&link, text, stateless).await;
    }
}

/// Posts a message that gets no answer. Messages behind it wait, so a silent server is given up.
async fn post(link: &Link, text: Bytes, stateless: Option<HeaderMap>) {
    let limit = link.retry_time + POST_TIMEOUT;
    if timeout(limit, link.post(text, stateless)).await.is_err() {
        tracing::warn!("`{}` does not accept a message", link.place());
    }
}

fn read(text: &[u8]) -> Incoming {
    match Frame::decode(text) {
        Ok(Frame::Single(Message::Request(request))) => {
            let facts = Facts::read(&request.method, request.params);
            let role = match (&*request.method, &facts.stateless) {
                ("initialize", None) => Role::Introduction,
                ("tools/list", Some(_)) => Role::ToolList,
                _ => Role::Plain,
            };
            Incoming::Request(request.id, facts, role)
        }
        Ok(Frame::Single(Message::Notification(notification))) => match &*notification.method {
            "notifications/initialized" => Incoming::Initialized,
            method => Incoming::Notification(Facts::read(method, notification.params)),
        },
        Ok(Frame::Single(Message::Response(_))) => Incoming::Response,
        Ok(Frame::Batch(_)) => {
            let error = "batches exist only up to revision 2025-03-26; send one message at a time";
            Incoming::Faulty(None, ErrorObject::invalid_request(error))
        }
        Err(fault) if fault.is_notification => {
            tracing::warn!(
                "a notification of the client is faulty: {}",
                fault.error.message
            );
            Incoming::Ignored
        }
        Err(fault) => Incoming::Faulty(fault.id, fault.error),
    }
}
