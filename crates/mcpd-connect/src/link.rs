//! Way of a request to the server, with everything that may be repeated safely:
//!
//! ```text
//!        ┌──────── pause (back-off) ◄── connection refused, or 503: for a bounded time
//!        ▼
//! ──► send ──► 401, or 403 for lack of a scope ──► refresh or log in, twice at most ──► send
//!        │
//!        ├───► 404 in a session ──► open the session again, once ──► send
//!        ▼
//!     response
//! ```
//!
//! A request that the server may have executed is never sent again.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use mcpd_protocol::jsonrpc::ErrorObject;
use reqwest::header::RETRY_AFTER;
use reqwest::{Response, StatusCode};
use tokio::time::{Instant, sleep, timeout};

use crate::answer::{AnswerReader, Role};
use crate::backoff::Backoff;
use crate::error::chain;
use crate::http::{HttpClient, Outgoing};
use crate::login::{Authorizer, Challenge};
use crate::output::Output;
use crate::parameters::ToolParameters;
use crate::refusal::Refusal;
use crate::session::{Opened, Session};

/// Maximum number of times that one request asks for another token.
const MAX_AUTHORIZATIONS: usize = 2;
/// Longest time in `Retry-After`. It is far beyond the time of retries.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// Reason why a request has no answer, in the form of its answer.
#[derive(Debug)]
pub(crate) struct Failure(pub(crate) ErrorObject);

impl Failure {
    pub(crate) fn new(text: String) -> Self {
        Self(ErrorObject::internal_error(text))
    }
}

/// Response of the server.
#[derive(Debug)]
pub(crate) enum Reply {
    Success(Response),
    Refusal(Refusal),
}

/// Server, and the state of the conversation with it.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) http: HttpClient,
    pub(crate) authorizer: Option<Authorizer>,
    pub(crate) session: Session,
    pub(crate) parameters: ToolParameters,
    pub(crate) output: Output,
    pub(crate) retry_time: Duration,
    pub(crate) max_message: usize,
    pub(crate) is_down: AtomicBool,
}

impl Link {
    /// Returns the URL of the server, for messages.
    pub(crate) fn place(&self) -> String {
        self.http.target.place()
    }

    /// Sends a request within the current session, which is opened again if the server has lost
    /// it.
    pub(crate) async fn send_in_session(&self, outgoing: &Outgoing) -> Result<Reply, Failure> {
        let mut is_renewed = false;
        loop {
            let opened = self.session.current();
            let headers = opened.headers();
            let reply = self.send(&outgoing.clone().with(headers)).await?;
            match reply {
                Reply::Refusal(refusal)
                    if opened.id.is_some() && !is_renewed && refusal.is_of_session() =>
                {
                    self.renew(&opened).await?;
                    is_renewed = true;
                }
                reply => return Ok(reply),
            }
        }
    }

    /// Sends a request.
    pub(crate) async fn send(&self, outgoing: &Outgoing) -> Result<Reply, Failure> {
        let deadline = Instant::now() + self.retry_time;
        let mut backoff = Backoff::new();
        let mut authorizations = 0;
        loop {
            let token = match &self.authorizer {
                Some(authorizer) => authorizer.token().await,
                None => None,
            };
            let (reason, pause) = match self.http.send(outgoing, token.as_ref()).await {
                Err(fault) if !fault.is_outage => return Err(self.unreachable(&fault.reason)),
                Err(fault) => (fault.reason, None),
                Ok(response) if response.status() == StatusCode::SERVICE_UNAVAILABLE => {
                    let pause = retry_after(&response);
                    if Instant::now() + pause.unwrap_or_default() >= deadline {
                        return Ok(Reply::Refusal(Refusal::read(response).await));
                    }
                    ("HTTP 503".to_owned(), pause)
                }
                Ok(response) => {
                    self.report_recovery();
                    let challenge = Challenge::of(&response);
                    if let (Some(challenge), Some(authorizer)) = (challenge, &self.authorizer)
                        && authorizations < MAX_AUTHORIZATIONS
                    {
                        drop(response);
                        let authorized =
                            authorizer.authorize(&challenge, token.as_ref(), authorizations);
                        let authorized = authorized.await;
                        authorized.map_err(|error| {
                            Failure::new(format!("failed to {}", chain(&error)))
                        })?;
                        authorizations += 1;
                        continue;
                    }
                    return Ok(match response.status().is_success() {
                        true => Reply::Success(response),
                        false => Reply::Refusal(Refusal::read(response).await),
                    });
                }
            };
            let rest = deadline.saturating_duration_since(Instant::now());
            let pause = pause.unwrap_or_else(|| backoff.next_pause()).min(rest);
            if rest.is_zero() {
                return Err(self.unreachable(&format!(
                    "{reason}; tried for {} s",
                    self.retry_time.as_secs()
                )));
            }
            self.report_outage(&reason);
            pause_unless_cancelled(outgoing, pause).await?;
        }
    }

    /// Opens the session again with the client's own introduction. The client learns nothing of
    /// it.
    pub(crate) async fn renew(&self, lost: &Opened) -> Result<(), Failure> {
        let _guard = self.session.renewal.lock().await;
        if self.session.current().generation != lost.generation {
            return Ok(());
        }
        let introduction = self.session.introduction();
        let Some(initialize) = introduction.initialize else {
            return Err(self.session_failure("the server has lost the session"));
        };
        tracing::info!("`{}` has lost the session; opening a new one", self.place());
        let response = match self.send(&Outgoing::post(initialize)).await? {
            Reply::Success(response) => response,
            Reply::Refusal(refusal) => return Err(Failure(refusal.into_error(&self.place()))),
        };
        let mut reader = AnswerReader::new(self, None, Role::Renewal);
        let opened = reader.read_introduction(response).await?;
        if opened.version != lost.version {
            return Err(
                self.session_failure("the server was replaced by one of another protocol version")
            );
        }
        if let Some(initialized) = introduction.initialized {
            let outgoing = Outgoing::post(initialized).with(opened.headers());
            if let Reply::Refusal(refusal) = self.send(&outgoing).await? {
                return Err(Failure(refusal.into_error(&self.place())));
            }
        }
        self.session.open(opened.id, opened.version);
        self.session.announce();
        Ok(())
    }

    /// Makes the failure of a session that can't be continued.
    fn session_failure(&self, what: &str) -> Failure {
        Failure::new(format!(
            "failed to continue with `{}`: {what}; restart the client",
            self.place()
        ))
    }

    fn unreachable(&self, reason: &str) -> Failure {
        Failure::new(format!(
            "failed to reach `{}`: {reason}; check that the server runs, and its URL",
            self.place()
        ))
    }

    fn report_outage(&self, reason: &str) {
        if !self.is_down.swap(true, Relaxed) {
            tracing::warn!(
                "failed to reach `{}`: {reason}; trying again for {} s",
                self.place(),
                self.retry_time.as_secs()
            );
        }
    }

    fn report_recovery(&self) {
        if self.is_down.swap(false, Relaxed) {
            tracing::info!("`{}` answers again", self.place());
        }
    }
}

/// Waits before the next attempt. A cancelled request must not be sent when the server is back.
async fn pause_unless_cancelled(outgoing: &Outgoing, pause: Duration) -> Result<(), Failure> {
    let Some(cancelled) = &outgoing.cancelled else {
        sleep(pause).await;
        return Ok(());
    };
    match timeout(pause, cancelled.cancelled()).await {
        Ok(()) => Err(Failure::new("the request was cancelled".to_owned())),
        Err(_) => Ok(()),
    }
}

/// Returns the time in `Retry-After`, if it is in seconds.
fn retry_after(response: &Response) -> Option<Duration> {
    let value = response.headers().get(RETRY_AFTER)?.to_str().ok()?;
    let seconds: u64 = value.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).min(MAX_RETRY_AFTER))
}
