//! Bridge between a client on two pipes and a server over HTTP, and its orderly end.

use std::io::{self, Read, Write};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use mcpd_protocol::jsonrpc::ErrorObject;
use reqwest::Method;
use tokio_util::sync::CancellationToken;

use crate::dispatch::Dispatcher;
use crate::http::{HttpClient, Outgoing};
use crate::link::Link;
use crate::login::Authorizer;
use crate::output::Output;
use crate::parameters::ToolParameters;
use crate::pending::Pending;
use crate::session::Session;
use crate::{Error, Login, Target, input, listener};

/// Time for open requests after a client that reads its answers has closed the input. Such a client
/// sends a signal after two seconds, and has abandoned these requests.
const LEAVE_TIMEOUT: Duration = Duration::from_millis(600);
/// Time for open requests after the end of piped input, beyond the time of retries.
const PIPED_TIMEOUT: Duration = Duration::from_secs(30);
/// Time limit for deleting the session at the end.
const DELETE_TIMEOUT: Duration = Duration::from_millis(700);
/// Time limit for the client to read the last lines.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(500);
const DEFAULT_RETRY_TIME: Duration = Duration::from_secs(30);
const DEFAULT_MAX_MESSAGE: usize = 256 << 20;

/// Reason for the end of a bridge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// The input has ended, and every message has been handled.
    Complete,
    /// The input has ended, and requests took too long.
    Abandoned,
    Shutdown,
}

/// Bridge from lines of JSON-RPC to a server over HTTP.
#[derive(Debug)]
pub struct Bridge {
    http: HttpClient,
    authorizer: Option<Authorizer>,
    retry_time: Duration,
    max_message: usize,
}

impl Bridge {
    /// Prepares a bridge. Nothing is sent before the first message.
    ///
    /// # Errors
    ///
    /// Fails if credentials would be sent in plain text to another machine, or the certificate
    /// authorities of the system can't be read.
    pub fn new(target: Target) -> Result<Self, Error> {
        Ok(Self {
            http: HttpClient::new(target)?,
            authorizer: None,
            retry_time: DEFAULT_RETRY_TIME,
            max_message: DEFAULT_MAX_MESSAGE,
        })
    }

    /// Uses a stored OAuth login, and logs in when the server asks for it. Without effect if the
    /// target has credentials already, or is a socket, whose metadata have no address.
    #[must_use]
    pub fn with_login(mut self, login: Login) -> Self {
        let target = &self.http.target;
        self.authorizer = match target.has_credentials() || target.socket.is_some() {
            true => None,
            false => Some(Authorizer::new(login, target)),
        };
        self
    }

    /// Sets the time for which a server that is down is tried again. Default: 30 seconds.
    #[must_use]
    pub fn with_retry_time(mut self, retry_time: Duration) -> Self {
        self.retry_time = retry_time;
        self
    }

    /// Sets the maximum size of a message, in bytes. Default: 256 MiB.
    #[must_use]
    pub fn with_max_message(mut self, max_message: usize) -> Self {
        self.max_message = max_message;
        self
    }

    /// Logs in now, if the server asks for it. Returns whether it did.
    ///
    /// # Errors
    ///
    /// Returns the reason why the login failed, or why the server can't be asked.
    ///
    /// # Cancel safety
    ///
    /// A login that is dropped leaves nothing behind.
    pub async fn log_in(&self) -> Result<bool, Error> {
        let place = self.http.target.place();
        let fault = |reason| Error::Login {
            place: place.clone(),
            reason,
        };
        let Some(authorizer) = &self.authorizer else {
            return Err(fault(
                "it is a socket, or there are other credentials".to_owned(),
            ));
        };
        let probe = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        let outgoing = Outgoing::post(probe.to_vec().into());
        let response = self.http.send(&outgoing, None).await;
        let response = response.map_err(|sent| fault(sent.reason))?;
        authorizer.log_in_if_asked(&response).await
    }

    /// Passes on messages until the input ends, the reader of `output` is gone, or `shutdown` is
    /// ready. Each line of `input` is a message, as is each line of `output`.
    ///
    /// After the end of the input, open requests are finished: for 0.6 seconds if the client has
    /// sent a message after its first answer, and else for 30 seconds beyond the time of retries.
    ///
    /// # Errors
    ///
    /// Fails if the system refuses a thread.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends all exchanges; the session is not deleted then.
    pub async fn run(
        self,
        input: impl Read + Send + 'static,
        output: impl Write + Send + 'static,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let mut shutdown = pin!(shutdown);
        let (output, writer) = Output::start(output)?;
        let retry_time = self.retry_time;
        let link = Arc::new(self.into_link(output));
        let input_ended = CancellationToken::new();
        // A client that sends a message after an answer is a program that reads answers, and not
        // a text that was piped.
        let is_interactive = Arc::new(AtomicBool::new(false));
        let on_line = {
            let (output, is_interactive) = (link.output.clone(), Arc::clone(&is_interactive));
            move || {
                if output.has_answered() {
                    is_interactive.store(true, Relaxed);
                }
            }
        };
        let lines = input::start(input, link.max_message, on_line, input_ended.clone())?;
        let dispatcher = Dispatcher::new(&link);
        let (pending, tasks) = (dispatcher.pending.clone(), dispatcher.tasks.clone());
        let stop = dispatcher.stop.clone();
        let _stop = stop.clone().drop_guard();
        let leave = async {
            input_ended.cancelled().await;
            let wait = match is_interactive.load(Relaxed) {
                true => LEAVE_TIMEOUT,
                false => retry_time.saturating_add(PIPED_TIMEOUT),
            };
            tokio::time::sleep(wait).await;
        };
        let ending = tokio::select! {
            () = dispatcher.run(lines) => Ending::Complete,
            () = leave => Ending::Abandoned,
            () = &mut shutdown => Ending::Shutdown,
            () = writer.closed.cancelled() => Ending::Shutdown,
            // It follows the session for ever.
            () = listener::listen(&link) => Ending::Shutdown,
        };
        stop.cancel();
        tasks.close();
        tasks.wait().await;
        if ending == Ending::Abandoned && !is_interactive.load(Relaxed) {
            link.refuse_abandoned(&pending).await;
        }
        let flush = async {
            let close = link.output.close(writer);
            match ending {
                // The client gets all answers, however slowly it reads them.
                Ending::Complete => tokio::select! {
                    () = close => {}
                    () = &mut shutdown => {}
                },
                _ => drop(tokio::time::timeout(FLUSH_TIMEOUT, close).await),
            }
        };
        // The limits run at the same time, because the client ends the process soon.
        tokio::join!(flush, link.delete_session());
        Ok(())
    }

    fn into_link(self, output: Output) -> Link {
        Link {
            http: self.http,
            authorizer: self.authorizer,
            session: Session::new(),
            parameters: ToolParameters::default(),
            output,
            retry_time: self.retry_time,
            max_message: self.max_message,
            is_down: AtomicBool::new(false),
        }
    }
}

impl Link {
    /// Answers the requests that are given up.
    async fn refuse_abandoned(&self, pending: &Pending) {
        let error = "the input has ended before the answer; keep it open to wait for it";
        let refuse = async {
            for id in pending.drain() {
                let error = ErrorObject::internal_error(error);
                self.output.send_error(Some(&id), &error).await;
            }
        };
        tokio::time::timeout(FLUSH_TIMEOUT, refuse).await.ok();
    }

    /// Deletes the session, if there is one. Many servers do not know this method, and the session
    /// ends anyway.
    async fn delete_session(&self) {
        let opened = self.session.current();
        if opened.id.is_none() {
            return;
        }
        let token = match &self.authorizer {
            // A refresh of the token would take too long.
            Some(authorizer) => authorizer.current_token().await,
            None => None,
        };
        let outgoing = Outgoing::bare(Method::DELETE).with(opened.headers());
        let deleted = self.http.send(&outgoing, token.as_ref());
        if let Ok(Err(fault)) = tokio::time::timeout(DELETE_TIMEOUT, deleted).await {
            tracing::debug!("failed to delete the session: {}", fault.reason);
        }
    }
}
