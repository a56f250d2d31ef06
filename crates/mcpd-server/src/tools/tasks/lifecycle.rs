//! Life cycle of one task, from its first database entry to its last: independent of the connection
//! that started it.

use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use mcpd_protocol::Wire;
use mcpd_protocol::jsonrpc::ErrorObject;
use mcpd_protocol::method::{
    CallToolResult, InputRequests, InputRequiredResult, InputResponses, Interactive, TaskStatus,
};
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::continuation::{Asking, Continuation};
use super::{RunningTask, StartedCall, StoredTask, Tasks, database_error, store};
use crate::client::request::context;
use crate::client::subscribers::Event;
use crate::execution::input_rounds::{MAX_ROUNDS, Resumption};
use crate::message::reply::unless_panicked;
use crate::support::sync::lock;

/// Maximum size of a stored result, in bytes.
const MAX_RESULT_BYTES: usize = 4 << 20;
/// Retry interval while the end of a task cannot be stored.
const STORE_RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// Task that runs on this server.
pub(super) struct TaskLifecycle {
    tasks: Arc<Tasks>,
    stored: StoredTask,
    started: StartedCall,
    answers: mpsc::Receiver<InputResponses>,
    cancel: CancellationToken,
    /// Cancelled when this server stops, or another one continues with the task.
    leave: CancellationToken,
    /// Keys of all questions it has asked.
    used_keys: BTreeSet<String>,
    /// Open questions of a task that another server has begun.
    asking: Option<Asking>,
}

/// Ending of a task.
enum TaskEnding {
    Completed(Box<RawValue>),
    Failed(ErrorObject),
    Cancelled,
}

impl TaskLifecycle {
    pub(super) fn new(tasks: &Arc<Tasks>, stored: StoredTask, started: StartedCall) -> Self {
        let (sender, answers) = mpsc::channel(1);
        let live = RunningTask {
            owner: stored.owner.clone(),
            tool: stored.tool.clone(),
            created_at: stored.created_at,
            cancel: CancellationToken::new(),
            leave: started.host.engine.stopping.child_token(),
            answers: sender,
            messages: Arc::clone(&started.messages),
        };
        let task = Self {
            tasks: Arc::clone(tasks),
            started,
            answers,
            cancel: live.cancel.clone(),
            leave: live.leave.clone(),
            used_keys: BTreeSet::new(),
            asking: None,
            stored,
        };
        let id = task.stored.id.clone();
        lock(&tasks.state).running.insert(id, live);
        tasks.start_poller();
        task
    }

    /// Continues from what the server that is gone has stored.
    pub(super) fn continued(self, used_keys: BTreeSet<String>, asking: Option<Asking>) -> Self {
        self.started.messages.keep_in_log();
        Self {
            used_keys,
            asking,
            ..self
        }
    }

    /// Returns what another server needs to continue from here, if one can.
    fn continuation(&self, asking: Option<Asking>) -> Option<String> {
        let continuation = Continuation::of(&self.started.call, &self.used_keys, asking)?;
        continuation.seal(&self.started.host.engine.seal, &self.stored.key())
    }

    /// Stores the task, so that the client may learn of it; returns the call if that fails.
    pub(super) async fn store(mut self) -> Result<Self, StartedCall> {
        self.stored.continuation = self.continuation(None);
        let reason = match self.tasks.store.add(self.stored.clone()).await {
            Ok(true) => {
                self.started.messages.keep_in_log();
                return Ok(self);
            }
            Ok(false) => "too many tasks".to_owned(),
            Err(error) => error.to_string(),
        };
        tracing::warn!(tool = self.stored.tool, "failed to create a task: {reason}");
        lock(&self.tasks.state).running.remove(&self.stored.id);
        Err(self.started)
    }

    /// Runs to the end and stores the ending. A server that stops stores nothing: the next reader
    /// of the task finds that its server is gone.
    pub(super) async fn run_to_end(mut self) {
        let lifetime = self.stored.expires_at.saturating_sub(store::now()).max(0);
        let expires = Instant::now() + Duration::from_millis(lifetime.unsigned_abs());
        let leave = self.leave.clone();
        let whole = leave.run_until_cancelled(async {
            let cancel = self.cancel.clone();
            let end = cancel.run_until_cancelled(self.run_rounds()).await;
            // A run that is still going must not outlive the announcement of its end.
            self.started.run = Box::pin(pending());
            // An ending that the stop of the server caused is not stored.
            if !leave.is_cancelled() {
                self.store_ending(end.unwrap_or(TaskEnding::Cancelled))
                    .await;
            }
        });
        // The task can no longer be queried by then.
        let is_late = tokio::time::timeout_at(expires, whole).await.is_err();
        if leave.is_cancelled() {
            if let Some(task_run) = &self.started.call.context.task_run {
                // Another server continues with it.
                task_run.release();
            }
            self.record_end("the server stopped");
        } else if is_late {
            self.record_end("the task has expired");
        }
        lock(&self.tasks.state).running.remove(&self.stored.id);
        self.notify_subscribers();
    }

    /// Runs, with answers in between, for a bounded number of rounds.
    async fn run_rounds(&mut self) -> TaskEnding {
        if let Some(asking) = self.asking.take() {
            self.resume(asking).await;
        }
        for _ in 0..MAX_ROUNDS {
            let question = match self.finish_run().await {
                Ok(Interactive::Complete(result)) => return self.encode_result(result),
                Ok(Interactive::InputRequired(question)) => question,
                Ok(_) => {
                    return TaskEnding::Failed(ErrorObject::internal_error(
                        "the tool has no result",
                    ));
                }
                Err(error) => return TaskEnding::Failed(error),
            };
            match self.ask_client(question).await {
                Ok(asking) => self.resume(asking).await,
                Err(error) => return TaskEnding::Failed(error),
            }
        }
        TaskEnding::Failed(ErrorObject::internal_error(format!(
            "the tool asked for input more than {MAX_ROUNDS} times"
        )))
    }

    /// Waits for the end of one run.
    async fn finish_run(&mut self) -> Result<Interactive<CallToolResult>, ErrorObject> {
        let run = AssertUnwindSafe(&mut self.started.run).catch_unwind();
        unless_panicked(run.await)
    }

    /// Asks questions.
    ///
    /// # Errors
    ///
    /// Fails if the questions cannot be stored.
    async fn ask_client(&mut self, question: InputRequiredResult) -> Result<Asking, ErrorObject> {
        let mut asking = Asking {
            names: BTreeMap::new(),
            state: question.request_state,
        };
        let mut questions = InputRequests::new();
        for (name, request) in question.input_requests.unwrap_or_default() {
            let key = self.unique_key(&name);
            questions.insert(key.clone(), request);
            asking.names.insert(key, name);
        }
        // A script may request another round with its state alone.
        if !questions.is_empty() {
            let continuation = self.continuation(Some(asking.clone()));
            let store = &self.tasks.store;
            let key = self.stored.key();
            let asked = store.store_questions(key, questions, continuation).await;
            asked.map_err(|error| database_error(&error))?;
            self.notify_subscribers();
        }
        Ok(asking)
    }

    /// Waits for all answers, and runs again with them.
    async fn resume(&mut self, asking: Asking) {
        let Asking { mut names, state } = asking;
        let mut responses = InputResponses::new();
        if !names.is_empty() {
            let answers = self.answers.recv().await.unwrap_or_default();
            self.notify_subscribers();
            let named = |(key, answer)| Some((names.remove(&key)?, answer));
            responses = answers.into_iter().filter_map(named).collect();
        }
        self.started.restart(Resumption {
            responses: Some(responses),
            state,
        });
    }

    /// Returns the key of a question, numbered if the name was used before.
    ///
    /// "Each request key in `inputRequests` MUST be unique over the lifetime of a single task."
    /// -- SEP-2663
    fn unique_key(&mut self, name: &str) -> String {
        let mut key = name.to_owned();
        let mut number = 1;
        while !self.used_keys.insert(key.clone()) {
            number += 1;
            key = format!("{name}#{number}");
        }
        key
    }

    /// Converts the result to the response that the request would have had.
    fn encode_result(&self, result: CallToolResult) -> TaskEnding {
        let result = Interactive::from(result);
        self.started.call.context.record.set_result(&result);
        let stamp = self.started.host.engine.stamp(Wire::Stateless);
        let encode = |result: Interactive<CallToolResult>| {
            let encoded = context::encode(&stamp, result)?;
            let text = String::from_utf8(encoded.into()).map_err(|_| encoding_error())?;
            RawValue::from_string(text).map_err(|_| encoding_error())
        };
        let kept = encode(result).and_then(|result| match result.get().len() {
            0..=MAX_RESULT_BYTES => Ok(result),
            size => encode(CallToolResult::error(format!(
                "The call has ended, but its result of {size} bytes exceeds the limit of {MAX_RESULT_BYTES} bytes for tasks."
            )).into()),
        });
        kept.map_or_else(TaskEnding::Failed, TaskEnding::Completed)
    }

    /// Stores the ending, with retries at a fixed interval.
    async fn store_ending(&mut self, end: TaskEnding) {
        let (status, detail) = match end {
            TaskEnding::Completed(result) => (TaskStatus::Completed, Some(result)),
            TaskEnding::Failed(error) => {
                let detail = to_raw_value(&error).ok();
                self.started.call.context.record.finish(&Err(error));
                (TaskStatus::Failed, detail)
            }
            TaskEnding::Cancelled => {
                self.record_end("the call was cancelled");
                (TaskStatus::Cancelled, None)
            }
        };
        let store = &self.tasks.store;
        while let Err(error) = store
            .store_ending(self.stored.key(), status, detail.clone())
            .await
        {
            tracing::error!(
                task = self.stored.id,
                "failed to store the end of a task, will retry: {error}"
            );
            tokio::time::sleep(STORE_RETRY_INTERVAL).await;
        }
    }

    /// Records an ending in the audit log that the tool did not cause.
    fn record_end(&self, reason: &'static str) {
        let record = &self.started.call.context.record;
        record.finish(&Err(ErrorObject::internal_error(reason)));
        record.set_outcome("cancelled");
    }

    fn notify_subscribers(&self) {
        let event = Event::TaskChanged(self.stored.id.clone());
        self.started.host.engine.subscribers.publish(&event);
    }
}

fn encoding_error() -> ErrorObject {
    ErrorObject::internal_error("the result could not be encoded")
}
