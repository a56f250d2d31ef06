//! Request events: what an observer in the same process learns of each request that may run
//! something, as it happens. They follow the rules of the audit log: arguments in its detail, and
//! no secrets. Nothing is made for them without an observer.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use mcpd_exec::{Line, Stream};
use mcpd_protocol::jsonrpc::ErrorObject;
use mcpd_protocol::{Implementation, Params};
use mcpd_scriptspec::ScriptSpec;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::RequestOrigin;
use super::audit::Arguments;
use super::audit::arguments::{NamedItem, ParamsToRecord, Recorder};
use super::operator::RequestCancel;
use crate::message::reply::MethodResult;
use crate::policy::Redactor;
use crate::policy::secret_arguments::{has_secrets, is_secret};
use crate::support::sync::lock;

/// Event in the life of a request: one `Started`, any number of lines, and one end. A request that
/// fails before its start has no events. No lock is held while the callback runs.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum RequestEvent<'a> {
    /// The request is understood, and its script may start.
    #[non_exhaustive]
    Started {
        /// Its method, such as `tools/call`.
        method: &'static str,
        /// Path of the tool, prompt or resource that it names, if that is known.
        path: Option<&'a str>,
        /// Name or URI, and arguments, as a JSON object: as the audit log records them, or in full
        /// if there is none. Secrets are replaced, and values of more than 1 KiB are their length
        /// and hash.
        params: &'a RawValue,
        /// The parameters as they came, with all secrets.
        sent: &'a Params<'a>,
        /// Name of the caller.
        caller: &'a str,
        /// Name and version that the client claims.
        client: Option<&'a Implementation>,
        /// Id of the trace that it is part of.
        trace_id: Option<&'a str>,
        /// Handle that cancels the request.
        cancel: &'a RequestCancel,
    },
    /// A script has written a line to its standard error: what a terminal would show of it, without
    /// the newline and without secrets.
    Line(&'a [u8]),
    /// The request has its response.
    #[non_exhaustive]
    Finished {
        /// The result as JSON, or the error, without secrets. Where the audit log does not record
        /// arguments in full, a failure without a run has only its outcome as the message, because
        /// a message may repeat an argument.
        outcome: Result<&'a [u8], &'a ErrorObject>,
        /// Time since the request was read.
        duration: Duration,
    },
    /// The client has cancelled the request, or gone away.
    Cancelled,
}

/// Callback for the events of all requests: the number of the request, and the event.
type Callback = dyn Fn(u64, RequestEvent<'_>) + Send + Sync;

/// Observers of requests, if the program has any.
#[derive(Clone, Default)]
pub(crate) struct RequestObserver(Option<Arc<Numbered>>);

struct Numbered {
    next: AtomicU64,
    callbacks: Vec<Arc<Callback>>,
}

impl RequestObserver {
    /// Adds an observer to the others.
    pub(crate) fn with(
        self,
        callback: impl Fn(u64, RequestEvent<'_>) + Send + Sync + 'static,
    ) -> Self {
        let others = self.0.iter().flat_map(|numbered| &numbered.callbacks);
        let mut callbacks: Vec<Arc<Callback>> = others.cloned().collect();
        callbacks.push(Arc::new(callback));
        Self(Some(Arc::new(Numbered {
            next: AtomicU64::new(1),
            callbacks,
        })))
    }

    /// Begins to observe a request, if it is observed.
    pub(crate) fn observe(
        &self,
        method: &'static str,
        origin: RequestOrigin<'_>,
        detail: ObservedDetail,
    ) -> Option<Arc<ObservedRequest>> {
        let observer = self.0.as_ref()?;
        Some(Arc::new(ObservedRequest {
            observer: Arc::clone(observer),
            number: observer.next.fetch_add(1, Ordering::Relaxed),
            method,
            caller: origin.principal.shared_name().clone(),
            client: origin.client.cloned(),
            began: Instant::now(),
            cancel: RequestCancel::default(),
            detail,
            own_secrets: OnceLock::new(),
            progress: Mutex::default(),
        }))
    }
}

/// Detail in which a request is observed.
pub(crate) struct ObservedDetail {
    pub(crate) arguments: Arguments,
    /// Finds the secrets that mcpd has been given.
    pub(crate) redactor: Option<Arc<Redactor>>,
    pub(crate) trace_id: Option<Arc<str>>,
}

/// Request that is observed.
pub(crate) struct ObservedRequest {
    observer: Arc<Numbered>,
    number: u64,
    method: &'static str,
    caller: Arc<str>,
    client: Option<Arc<Implementation>>,
    began: Instant,
    cancel: RequestCancel,
    detail: ObservedDetail,
    /// Finds the secrets among its arguments.
    own_secrets: OnceLock<Redactor>,
    progress: Mutex<Progress>,
}

#[derive(Default)]
struct Progress {
    item: NamedItem,
    is_started: bool,
    is_finished: bool,
    /// The last line was a part of a longer one.
    is_within_line: bool,
}

impl ObservedRequest {
    fn send_event(&self, event: RequestEvent<'_>) {
        for callback in &self.observer.callbacks {
            callback(self.number, event);
        }
    }

    pub(crate) fn update_item(&self, update: impl FnOnce(&mut NamedItem)) {
        update(&mut lock(&self.progress).item);
    }

    /// Reports the start, once: the parameters of a request that waits for the catalog are set
    /// before and after.
    pub(crate) fn start(&self, sent: &Params<'_>) {
        let recorder = Recorder {
            arguments: self.detail.arguments,
            redactor: self.detail.redactor.as_deref(),
        };
        let (path, params, own_secrets) = {
            let mut progress = lock(&self.progress);
            if std::mem::replace(&mut progress.is_started, true) {
                return;
            }
            let item = &progress.item;
            let own_secrets = item.spec.as_deref().and_then(|spec| secrets_in(sent, spec));
            let params = item.params(recorder, &ParamsToRecord::new(sent));
            (item.path.clone(), params, own_secrets)
        };
        if let Some(own_secrets) = own_secrets {
            self.own_secrets.set(own_secrets).ok();
        }
        self.send_event(RequestEvent::Started {
            method: self.method,
            path: path.as_deref(),
            params: &params,
            sent,
            caller: &self.caller,
            client: self.client.as_deref(),
            trace_id: self.detail.trace_id.as_deref(),
            cancel: &self.cancel,
        });
    }

    /// Waits for `answer`; `None` if an operator cancels the request first.
    pub(crate) async fn unless_cancelled<T>(&self, answer: impl Future<Output = T>) -> Option<T> {
        self.cancel.unless_cancelled(answer).await
    }

    pub(crate) fn line(&self, line: &Line<'_>) {
        if line.stream != Stream::Stderr {
            return;
        }
        let is_continued = {
            let mut progress = lock(&self.progress);
            std::mem::replace(&mut progress.is_within_line, line.continues)
        };
        // A secret that escape sequences interrupt becomes whole without them.
        let text = mcpd_exec::terminal_text(line.bytes);
        let text = self.redact(text, |redactor, text| {
            redactor.redact_piece(text, is_continued, line.continues)
        });
        self.send_event(RequestEvent::Line(&text));
    }

    /// Reports the end. `withheld` is the outcome of a failure whose message is not shown.
    pub(crate) fn finish(&self, result: &MethodResult, withheld: Option<&'static str>) {
        {
            let mut progress = lock(&self.progress);
            progress.is_finished = true;
            // A request that failed before its start was not reported: it has no end either.
            if !progress.is_started {
                return;
            }
        }
        let duration = self.began.elapsed();
        let finished = |outcome| RequestEvent::Finished { outcome, duration };
        match (result, withheld) {
            (_, Some(outcome)) => {
                self.send_event(finished(Err(&ErrorObject::internal_error(outcome))));
            }
            (Ok(result), None) => {
                let result = self.redact(Cow::Borrowed(result), Redactor::redact_json_text);
                self.send_event(finished(Ok(&result)));
            }
            (Err(error), None) => {
                let message = Cow::Borrowed(error.message.as_bytes());
                let message = self.redact(message, |redactor, text| {
                    redactor.redact_piece(text, false, false)
                });
                let mut error = error.clone();
                error.message = String::from_utf8_lossy(&message).into_owned().into();
                self.send_event(finished(Err(&error)));
            }
        }
    }

    /// Removes the secrets of the server, and those among the arguments.
    fn redact<'a>(
        &self,
        text: Cow<'a, [u8]>,
        redact: impl for<'b> Fn(&Redactor, &'b [u8]) -> Cow<'b, [u8]>,
    ) -> Cow<'a, [u8]> {
        let given = self.detail.redactor.as_deref();
        let redactors = given.into_iter().chain(self.own_secrets.get());
        redactors.fold(text, |text, redactor| match redact(redactor, &text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(redacted) => Cow::Owned(redacted),
        })
    }
}

/// Returns a redactor of the secrets among the arguments of a request.
fn secrets_in(sent: &Params<'_>, spec: &ScriptSpec) -> Option<Redactor> {
    #[derive(Default, Deserialize)]
    struct Sent {
        #[serde(default)]
        arguments: BTreeMap<String, Value>,
    }
    if !has_secrets(spec) {
        return None;
    }
    let Sent { arguments } = sent.parse().unwrap_or_default();
    let secrets = arguments.iter().filter(|(name, _)| is_secret(name, spec));
    let secrets: Vec<_> = secrets
        .map(|(name, value)| match value {
            Value::String(text) => (name.as_str(), text.clone()),
            value => (name.as_str(), value.to_string()),
        })
        .collect();
    Redactor::new(secrets.iter().map(|(name, text)| (*name, text.as_str())))
}

impl Drop for ObservedRequest {
    fn drop(&mut self) {
        let is_cancelled = {
            let progress = lock(&self.progress);
            progress.is_started && !progress.is_finished
        };
        if is_cancelled {
            self.send_event(RequestEvent::Cancelled);
        }
    }
}

impl fmt::Debug for RequestObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RequestObserver")
            .field(&self.0.is_some())
            .finish()
    }
}

impl fmt::Debug for ObservedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObservedRequest")
            .field("number", &self.number)
            .field("method", &self.method)
            .finish_non_exhaustive()
    }
}
