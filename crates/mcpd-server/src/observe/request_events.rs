//! Request events: what an observer in the same process learns of each request that may run
//! something, as it happens. Nothing is made for them without an observer.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use mcpd_exec::{Line, Stream};
use mcpd_protocol::jsonrpc::ErrorObject;
use mcpd_protocol::{Implementation, Params};
use mcpd_scriptspec::{ScriptPath, ScriptSpec};
use serde_json::value::RawValue;

use super::RequestOrigin;
use super::audit::Arguments;
use super::audit::arguments::Recorder;
use super::operator::RequestCancel;
use crate::message::method::KnownMethod;
use crate::message::reply::MethodResult;
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
        /// Name or URI, and arguments, as a JSON object. Values of secret options are replaced,
        /// and values of more than 1 KiB are their length and hash.
        params: &'a RawValue,
        /// The parameters as they came, with all secrets.
        sent: &'a Params<'a>,
        /// Name of the caller.
        caller: &'a str,
        /// Name and version that the client claims.
        client: Option<&'a Implementation>,
        /// Handle that cancels the request.
        cancel: &'a RequestCancel,
    },
    /// A script has written a line to its standard error, without the newline.
    Line(&'a [u8]),
    /// The request has its response.
    #[non_exhaustive]
    Finished {
        /// The result as JSON, or the error, as the client gets it: nothing is redacted, so an
        /// output that repeats a secret has it here as well.
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
        method: Option<KnownMethod>,
        origin: RequestOrigin<'_>,
    ) -> Option<Arc<ObservedRequest>> {
        let observer = self.0.as_ref()?;
        let method = method.filter(|method| method.may_run_script())?.name();
        Some(Arc::new(ObservedRequest {
            observer: Arc::clone(observer),
            number: observer.next.fetch_add(1, Ordering::Relaxed),
            method,
            caller: origin.principal.shared_name().clone(),
            client: origin.client.cloned(),
            began: Instant::now(),
            cancel: RequestCancel::default(),
            progress: Mutex::default(),
        }))
    }
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
    progress: Mutex<Progress>,
}

#[derive(Default)]
struct Progress {
    path: Option<String>,
    spec: Option<Arc<ScriptSpec>>,
    is_started: bool,
    is_finished: bool,
}

impl ObservedRequest {
    fn send_event(&self, event: RequestEvent<'_>) {
        for callback in &self.observer.callbacks {
            callback(self.number, event);
        }
    }

    pub(crate) fn set_tool(&self, path: &ScriptPath, spec: Option<&Arc<ScriptSpec>>) {
        let mut progress = lock(&self.progress);
        progress.path = Some(path.to_string());
        progress.spec = spec.cloned();
    }

    /// Reports the start, once: the parameters of a request that waits for the catalog are set
    /// before and after.
    pub(crate) fn start(&self, sent: &Params<'_>) {
        let (path, spec) = {
            let mut progress = lock(&self.progress);
            if std::mem::replace(&mut progress.is_started, true) {
                return;
            }
            (progress.path.clone(), progress.spec.clone())
        };
        let recorder = Recorder {
            arguments: Arguments::Full,
            redactor: None,
        };
        let recorder = match path {
            Some(_) => recorder,
            None => recorder.for_unknown_tool(),
        };
        let params = recorder.params(sent, spec.as_deref(), false);
        self.send_event(RequestEvent::Started {
            method: self.method,
            path: path.as_deref(),
            params: &params,
            sent,
            caller: &self.caller,
            client: self.client.as_deref(),
            cancel: &self.cancel,
        });
    }

    /// Waits for `answer`; `None` if an operator cancels the request first.
    pub(crate) async fn unless_cancelled<T>(&self, answer: impl Future<Output = T>) -> Option<T> {
        self.cancel.unless_cancelled(answer).await
    }

    pub(crate) fn line(&self, line: &Line<'_>) {
        if line.stream == Stream::Stderr {
            self.send_event(RequestEvent::Line(line.bytes));
        }
    }

    pub(crate) fn finish(&self, result: &MethodResult) {
        {
            let mut progress = lock(&self.progress);
            progress.is_finished = true;
            // A request that failed before its start was not reported: it has no end either.
            if !progress.is_started {
                return;
            }
        }
        self.send_event(RequestEvent::Finished {
            outcome: result.as_deref(),
            duration: self.began.elapsed(),
        });
    }
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
