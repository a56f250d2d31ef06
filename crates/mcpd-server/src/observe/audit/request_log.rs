//! Request log: collects the facts of a request on its way from the dispatcher to a run and back,
//! for its records in the audit log, for the metrics and for its span.
//!
//! ```text
//! new ─► set_tool ─► set_params ─► commit_begin ─► add_run … ─► set_result ─► finish ─► drop
//!                                  │                                                    │
//!   mode `require`: waits until    ┘ the record `begin` is written        record `end` ◄┘
//! ```

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime};

use mcpd_audit::{ConnectionDetails, RunDetails, Slot};
use mcpd_exec::Line;
use mcpd_exec::egress::Connection;
use mcpd_protocol::content::ContentBlock;
use mcpd_protocol::jsonrpc::{ErrorObject, RequestId};
use mcpd_protocol::method::{CallToolResult, Interactive, ReadResourceRequest};
use mcpd_protocol::{Implementation, Method as _, Params, ProtocolVersion};
use mcpd_scriptspec::{ScriptPath, ScriptSpec};
use serde_json::value::RawValue;

use super::arguments::{NamedItem, ParamsToRecord, Recorder};
use super::{Arguments, Audit, Mode, Options};
use crate::limits::run_queue::Busy;
use crate::message::arguments::INVALID_ARGUMENTS;
use crate::message::method::KnownMethod;
use crate::message::reply::{MethodResult, OTHER_METHOD};
use crate::message::transport::Transport;
use crate::observe::approval::ApprovalStep;
use crate::observe::metrics::Operation;
use crate::observe::request_events::{ObservedDetail, ObservedRequest};
use crate::observe::spans::RequestSpan;
use crate::observe::{Observers, RequestOrigin};
use crate::policy::Redactor;
use crate::policy::principal::Principal;
use crate::support::sync::lock;

mod record;
mod run;

/// Length from which on arguments are hashed after a call, on the blocking pool, in bytes. Those of
/// a call that was cancelled are hashed when its record is made.
const LONG_ARGUMENTS: usize = 256 * 1024;

/// An audit log, and what its records have in common.
#[derive(Debug)]
pub(crate) struct Auditor {
    pub(crate) audit: Audit,
    /// Name of this machine in records.
    node: Option<String>,
}

impl Auditor {
    /// Creates the auditor of `audit` on the machine `node`.
    pub(crate) fn new(audit: Audit, node: Option<String>) -> Self {
        Self { audit, node }
    }
}

/// Facts of one request, if it is recorded. All clones share them. The record is written when the
/// last clone is dropped, and with it all work for the request.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestRecord {
    request: Option<Arc<AuditedRequest>>,
    observed: Option<Arc<ObservedRequest>>,
    operation: Operation,
    span: RequestSpan,
}

struct AuditedRequest {
    auditor: Arc<Auditor>,
    /// Settings when the request began.
    options: Options,
    /// Finds the secrets known at that time.
    redactor: Option<Arc<Redactor>>,
    trace_id: Option<Arc<str>>,
    method: &'static str,
    began: SystemTime,
    began_at: Instant,
    transport: Transport,
    principal: Principal,
    client: Option<Arc<Implementation>>,
    version: ProtocolVersion,
    params: Mutex<RequestParams>,
    notes: Mutex<Notes>,
    /// End of the request, if its record is made later.
    ended_at: Option<Instant>,
    /// Reserved for the record of the end. Without a place that record is lost.
    slot: Option<Slot>,
}

/// Parameters of a request, as they are recorded.
#[derive(Default)]
struct RequestParams {
    recorded: Box<RawValue>,
    /// Long ones that are still to be recorded, and the item that they are for.
    sent: Option<(NamedItem, ParamsToRecord<'static>)>,
}

impl RequestParams {
    fn record(&mut self, recorder: Recorder<'_>) -> &RawValue {
        if let Some((item, sent)) = self.sent.take() {
            self.recorded = item.params(recorder, &sent);
        }
        &self.recorded
    }
}

/// Moment of a request that has a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    Begin,
    /// Its run is lost, and made again.
    RunLost,
    End,
}

#[derive(Default)]
struct Notes {
    item: NamedItem,
    call_id: Option<String>,
    /// Worker that was asked, id of the run there, and version of the script.
    worker: Option<String>,
    run_id: Option<String>,
    digest: Option<String>,
    approval: Option<&'static str>,
    run: Option<RunDetails>,
    connections: Vec<ConnectionDetails>,
    connections_omitted: u64,
    /// Outcome, set by the code that knows it best.
    outcome: Option<&'static str>,
    /// Success, or else the message for the caller. `None` means that the request was cancelled.
    answer: Option<Result<(), String>>,
    result_bytes: Option<u64>,
}

impl RequestRecord {
    /// Creates the notes of a request that has just arrived. Most methods have none for the audit
    /// log.
    pub(crate) fn new(
        observers: &Observers,
        method: Option<KnownMethod>,
        id: &RequestId,
        origin: RequestOrigin<'_>,
    ) -> Self {
        let name = method.map_or(OTHER_METHOD, KnownMethod::name);
        let span = observers.spans.start_request(name, id, origin);
        let (request, observed) = match method.filter(|method| method.may_run_script()) {
            Some(_) => {
                let redactor = observers.secrets.load_full();
                let trace = span.continue_trace(origin.trace.clone());
                let trace_id: Option<Arc<str>> = trace.id().map(Into::into);
                let request = Self::request(
                    observers.auditor.as_ref(),
                    name,
                    origin,
                    redactor.clone(),
                    trace_id.clone(),
                );
                let arguments = match &request {
                    Some(request) => request.options.arguments,
                    None => Arguments::Full,
                };
                let detail = ObservedDetail {
                    arguments,
                    redactor,
                    trace_id,
                };
                (request, observers.requests.observe(name, origin, detail))
            }
            None => (None, None),
        };
        Self {
            request,
            observed,
            operation: observers.metrics.start_operation(name),
            span,
        }
    }

    fn request(
        auditor: Option<&Arc<Auditor>>,
        method: &'static str,
        origin: RequestOrigin<'_>,
        redactor: Option<Arc<Redactor>>,
        trace_id: Option<Arc<str>>,
    ) -> Option<Arc<AuditedRequest>> {
        let auditor = auditor?;
        Some(Arc::new(AuditedRequest {
            slot: auditor.audit.reserve(),
            options: auditor.audit.options(),
            redactor,
            trace_id,
            auditor: Arc::clone(auditor),
            method,
            began: SystemTime::now(),
            began_at: Instant::now(),
            transport: origin.transport,
            principal: origin.principal.clone(),
            client: origin.client.cloned(),
            version: origin.version,
            params: Mutex::default(),
            notes: Mutex::default(),
            ended_at: None,
        }))
    }

    /// Span of the request.
    pub(crate) fn span(&self) -> &RequestSpan {
        &self.span
    }

    fn note(&self, note: impl FnOnce(&mut Notes)) {
        if let Some(request) = &self.request {
            note(&mut lock(&request.notes));
        }
    }

    /// Sets the tool, prompt or resource that the request names, and the spec of a script.
    pub(crate) fn set_tool(&self, path: &ScriptPath, spec: Option<&Arc<ScriptSpec>>) {
        self.operation.set_tool(path.as_str());
        self.span.set_tool(path);
        self.update_item(|item| item.set(path, spec));
    }

    /// Sets the known tool that the request names, when the arguments are for an unknown one.
    pub(crate) fn set_tool_for_unknown(&self, path: &ScriptPath) {
        self.set_tool(path, None);
        self.update_item(|item| item.is_for_unknown = true);
    }

    /// Marks the URI as made from a template: it contains arguments.
    pub(crate) fn mark_uri_as_made(&self) {
        self.update_item(|item| item.is_uri_made = true);
    }

    fn update_item(&self, update: impl Fn(&mut NamedItem)) {
        if let Some(observed) = &self.observed {
            observed.update_item(&update);
        }
        self.note(|notes| update(&mut notes.item));
    }

    /// Sets the parameters. The tool that they name must have been set before, if it is known.
    pub(crate) fn set_params(&self, params: &Params<'_>) {
        if let Some(observed) = &self.observed {
            observed.start(params);
        }
        let Some(request) = &self.request else {
            return;
        };
        let (recorder, sent) = (request.recorder(), ParamsToRecord::new(params));
        let is_long = sent.arguments_len() >= LONG_ARGUMENTS;
        let notes = lock(&request.notes);
        let params = match is_long && recorder.arguments != Arguments::None {
            false => RequestParams {
                recorded: notes.item.params(recorder, &sent),
                sent: None,
            },
            true => RequestParams {
                recorded: Box::default(),
                sent: Some((notes.item.clone(), sent.into_owned())),
            },
        };
        drop(notes);
        *lock(&request.params) = params;
    }

    /// Passes on a line of a run.
    pub(crate) fn pass_line(&self, line: &Line<'_>) {
        if let Some(observed) = &self.observed {
            observed.line(line);
        }
    }

    /// Waits for the answer of the request, unless an operator cancels it.
    pub(crate) async fn unless_cancelled(
        &self,
        answer: impl Future<Output = MethodResult>,
    ) -> MethodResult {
        let Some(observed) = &self.observed else {
            return answer.await;
        };
        observed.unless_cancelled(answer).await.unwrap_or_else(|| {
            self.set_outcome("cancelled");
            let reason = "an operator of the server has cancelled this request";
            Err(ErrorObject::internal_error(reason))
        })
    }

    /// Sets the call id that scripts receive.
    pub(crate) fn set_call_id(&self, call_id: &str) {
        self.note(|notes| notes.call_id = Some(call_id.to_owned()));
    }

    /// Sets the last step of the approval of the call; a refusal is its outcome.
    pub(crate) fn set_approval(&self, step: ApprovalStep) {
        self.note(|notes| {
            notes.approval = Some(step.name());
            if step.is_refusal() {
                notes.outcome = Some("no-approval");
            }
        });
    }

    /// Sets the outcome, of a request without a run or in place of its run's.
    pub(crate) fn set_outcome(&self, outcome: &'static str) {
        self.note(|notes| notes.outcome = Some(outcome));
    }

    /// Adds a connection of a run, unless there are many already.
    pub(crate) fn add_connection(&self, connection: &Connection) {
        /// Connections of a request that its record lists.
        const MAX_CONNECTIONS: usize = 100;
        let Some(request) = &self.request else {
            return;
        };
        let mut notes = lock(&request.notes);
        if notes.connections.len() >= MAX_CONNECTIONS {
            notes.connections_omitted += 1;
            return;
        }
        let mut details = ConnectionDetails::default();
        // The run has chosen this text, and may have put a secret into it.
        details.destination = request.recorder().message(&connection.destination);
        details.address = connection.address.map(|address| address.to_string());
        details.verdict = connection.verdict.as_str();
        details.sent_bytes = connection.sent;
        details.received_bytes = connection.received;
        notes.connections.push(details);
    }

    /// Sets the result of a tool.
    pub(crate) fn set_result(&self, result: &Interactive<CallToolResult>) {
        // A task sets its result when it is over.
        if matches!(result, Interactive::Task(_)) {
            return;
        }
        if let Interactive::Complete(result) = result
            && result.is_error == Some(true)
        {
            self.operation.mark_failed();
            self.span.mark_failed();
        }
        self.note(|notes| {
            notes.answer = Some(match result {
                Interactive::Complete(result) if result.is_error == Some(true) => Err(text(result)),
                _ => Ok(()),
            });
            if matches!(result, Interactive::InputRequired(_)) {
                notes.outcome = Some("input-required");
            }
        });
    }

    /// Waits until the request may be carried out: where records are required, until its `begin`
    /// record is written.
    ///
    /// # Errors
    ///
    /// The request cannot be recorded, and is refused.
    pub(crate) async fn commit_begin(&self) -> Result<(), ErrorObject> {
        let Some(request) = self
            .request
            .as_ref()
            .filter(|request| request.is_required())
        else {
            return Ok(());
        };
        let audit = &request.auditor.audit;
        if request.slot.is_some()
            && let commit = request.with_record(Moment::Begin, |record| audit.commit(record))
            && commit.await.is_ok()
        {
            return Ok(());
        }
        self.set_outcome("not-recorded");
        Err(ErrorObject::internal_error(
            "the request was refused because it cannot be recorded in the audit log; the reason is in the server's log",
        ))
    }

    /// Records long parameters on the blocking pool, and with them the request, if nothing else
    /// is to be done for it.
    fn record_long_params(&self) {
        let Some(request) = &self.request else {
            return;
        };
        if lock(&request.params).sent.is_none() {
            return;
        }
        let request = Arc::clone(request);
        tokio::task::spawn_blocking(move || {
            let ended_at = Instant::now();
            lock(&request.params).record(request.recorder());
            if let Some(mut request) = Arc::into_inner(request) {
                request.ended_at = Some(ended_at);
            }
        });
    }

    /// Sets the final result of the request.
    pub(crate) fn finish(&self, result: &MethodResult) {
        self.operation.finish(result);
        self.span.finish(result);
        self.note(|notes| match result {
            Ok(result) => {
                notes.result_bytes = Some(result.len() as u64);
                notes.answer.get_or_insert(Ok(()));
            }
            Err(error) => notes.answer = Some(Err(error.message.to_string())),
        });
        self.record_long_params();
        if let Some(observed) = &self.observed {
            let request = self.request.as_ref();
            observed.finish(
                result,
                request.and_then(|request| request.withheld_message()),
            );
        }
    }
}

impl AuditedRequest {
    fn recorder(&self) -> Recorder<'_> {
        Recorder {
            arguments: self.options.arguments,
            redactor: self.redactor.as_deref(),
        }
    }

    /// Returns whether the request is recorded. Reads of plain files are not. Refusals for
    /// overload are not, just as rate-limited calls are not, unless a `begin` record exists
    /// already.
    fn is_wanted(&self) -> bool {
        let notes = lock(&self.notes);
        let was_refused = notes.outcome == Some(Busy::NAME) && notes.run.is_none();
        (self.method != ReadResourceRequest::NAME || notes.item.path.is_some())
            && (!was_refused || self.options.mode == Mode::Require)
    }

    fn is_required(&self) -> bool {
        self.options.mode == Mode::Require && self.is_wanted()
    }
}

impl Drop for AuditedRequest {
    fn drop(&mut self) {
        if !self.is_wanted() {
            return;
        }
        match self.slot.take() {
            Some(slot) => self.with_record(Moment::End, |record| slot.record(record)),
            None => self.auditor.audit.count_lost(),
        }
    }
}

/// Returns the first text of a result.
fn text(result: &CallToolResult) -> String {
    let mut texts = result.content.iter().filter_map(|block| match block {
        ContentBlock::Text(block) => Some(block.text.clone()),
        _ => None,
    });
    texts.next().unwrap_or_default()
}

impl fmt::Debug for AuditedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuditedRequest")
            .field("method", &self.method)
            .finish_non_exhaustive()
    }
}
