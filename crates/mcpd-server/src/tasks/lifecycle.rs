//! Life cycle of one task, from its first database entry to its last.

use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt as _;
use mcpd_protocol::jsonrpc::ErrorObject;
use mcpd_protocol::{
    CallToolResult, InputRequests, InputRequiredResult, InputResponses, Interactive, TaskStatus,
    Wire,
};
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::heard::Heard;
use super::{Live, Started, StoredTask, Tasks, unavailable};
use crate::context;
use crate::dispatch::unless_panicked;
use crate::input_rounds::{MAX_ROUNDS, Resumption};
use crate::subscribers::Event;
use crate::sync::lock;

/// Maximum size of a stored result, in bytes.
const MAX_RESULT: usize = 4 << 20;
/// Retry interval while the end of a task cannot be stored.
const RETRY: Duration = Duration::from_secs(5);

/// Task that runs on this server.
pub(super) struct Life {
    tasks: Arc<Tasks>,
    stored: StoredTask,
    started: Started,
    heard: Arc<Mutex<Heard>>,
    answers: mpsc::Receiver<InputResponses>,
    cancel: CancellationToken,
    /// Keys of all questions it has asked.
    asked: BTreeSet<String>,
}

/// Ending of a task.
enum End {
    Completed(Box<RawValue>),
    Failed(ErrorObject),
    Cancelled,
}

impl Life {
    pub(super) fn new(tasks: &Arc<Tasks>, stored: StoredTask, started: Started) -> Self {
        let (sender, answers) = mpsc::channel(1);
        let live = Live {
            cancel: CancellationToken::new(),
            answers: sender,
            heard: Arc::default(),
        };
        let life = Self {
            tasks: Arc::clone(tasks),
            started,
            heard: Arc::clone(&live.heard),
            answers,
            cancel: live.cancel.clone(),
            asked: BTreeSet::new(),
            stored,
        };
        let id = life.stored.id.clone();
        lock(&tasks.state).live.insert(id, live);
        tasks.attend();
        life
    }

    /// Stores the task, so that the client may learn of it; returns the call if that fails.
    pub(super) async fn add(self) -> Result<Self, Started> {
        let reason = match self.tasks.store.add(self.stored.clone()).await {
            Ok(true) => return Ok(self),
            Ok(false) => "there are too many".to_owned(),
            Err(error) => error.to_string(),
        };
        tracing::warn!(tool = self.stored.tool, "failed to make a task: {reason}");
        lock(&self.tasks.state).live.remove(&self.stored.id);
        Err(self.started)
    }

    /// Runs to the end and stores the ending. A server that stops stores nothing: the next reader
    /// of the task finds that its server is gone.
    pub(super) async fn live(mut self) {
        let lifetime = self.stored.expires_at - self.stored.created_at;
        let expires = Instant::now() + Duration::from_millis(lifetime.unsigned_abs());
        let stopping = self.started.server.stopping().clone();
        let whole = stopping.run_until_cancelled(async {
            let cancel = self.cancel.clone();
            let end = cancel.run_until_cancelled(self.end()).await;
            // A run that is still going must not outlive the announcement of its end.
            self.started.run = Box::pin(pending());
            // An ending that the stop of the server caused is not stored.
            if !stopping.is_cancelled() {
                self.write_down(end.unwrap_or(End::Cancelled)).await;
            }
        });
        // The task can no longer be queried by then.
        let is_late = tokio::time::timeout_at(expires, whole).await.is_err();
        if stopping.is_cancelled() {
            self.record_end("the server stopped");
        } else if is_late {
            self.record_end("nobody can ask for its result any more");
        }
        lock(&self.tasks.state).live.remove(&self.stored.id);
        self.changed();
    }

    /// Runs, with answers in between, for a bounded number of rounds.
    async fn end(&mut self) -> End {
        for _ in 0..MAX_ROUNDS {
            let question = match self.ended().await {
                Ok(Interactive::Complete(result)) => return self.completed(result),
                Ok(Interactive::InputRequired(question)) => question,
                Ok(_) => return End::Failed(ErrorObject::internal_error("the tool has no result")),
                Err(error) => return End::Failed(error),
            };
            match self.ask(question).await {
                Ok(resumption) => self.started.again(resumption),
                Err(error) => return End::Failed(error),
            }
        }
        End::Failed(ErrorObject::internal_error(format!(
            "the tool asked more than {MAX_ROUNDS} times"
        )))
    }

    /// Waits for the end of one run, and records its messages.
    async fn ended(&mut self) -> Result<Interactive<CallToolResult>, ErrorObject> {
        let mut run = AssertUnwindSafe(&mut self.started.run).catch_unwind();
        loop {
            tokio::select! {
                biased;
                Some(message) = self.started.messages.recv() => lock(&self.heard).save(&message),
                ended = &mut run => {
                    while let Ok(message) = self.started.messages.try_recv() {
                        lock(&self.heard).save(&message);
                    }
                    return unless_panicked(ended);
                }
            }
        }
    }

    /// Asks questions, and waits for all answers.
    ///
    /// # Errors
    ///
    /// Fails if the questions cannot be stored.
    async fn ask(&mut self, question: InputRequiredResult) -> Result<Resumption, ErrorObject> {
        let mut names = BTreeMap::new();
        let mut questions = InputRequests::new();
        for (name, request) in question.input_requests.unwrap_or_default() {
            let key = self.unused(&name);
            questions.insert(key.clone(), request);
            names.insert(key, name);
        }
        let mut responses = InputResponses::new();
        // A script may request another round with its state alone.
        if !questions.is_empty() {
            let asked = self.tasks.store.ask(&self.stored.id, questions).await;
            asked.map_err(|error| unavailable(&error))?;
            self.changed();
            let answers = self.answers.recv().await.unwrap_or_default();
            self.changed();
            let named = |(key, answer)| Some((names.remove(&key)?, answer));
            responses = answers.into_iter().filter_map(named).collect();
        }
        Ok(Resumption {
            responses: Some(responses),
            state: question.request_state,
        })
    }

    /// Returns the key of a question, numbered if the name was used before.
    ///
    /// "Each request key in `inputRequests` MUST be unique over the lifetime of a single task."
    /// -- SEP-2663
    fn unused(&mut self, name: &str) -> String {
        let mut key = name.to_owned();
        let mut number = 1;
        while !self.asked.insert(key.clone()) {
            number += 1;
            key = format!("{name}#{number}");
        }
        key
    }

    /// Converts the result to the response that the request would have had.
    fn completed(&self, result: CallToolResult) -> End {
        let result = Interactive::from(result);
        self.started.call.context.record.set_result(&result);
        let stamp = self.started.server.stamp(Wire::Stateless);
        let encode = |result: Interactive<CallToolResult>| {
            let encoded = context::encode(&stamp, result)?;
            let text = String::from_utf8(encoded.into()).map_err(|_| not_encoded())?;
            RawValue::from_string(text).map_err(|_| not_encoded())
        };
        let kept = encode(result).and_then(|result| match result.get().len() {
            0..=MAX_RESULT => Ok(result),
            size => encode(CallToolResult::error(format!(
                "The call is over, but its result has {size} bytes: in the background {MAX_RESULT} are kept at most."
            )).into()),
        });
        kept.map_or_else(End::Failed, End::Completed)
    }

    /// Stores the ending, with retries at a fixed interval.
    async fn write_down(&mut self, end: End) {
        let (status, detail) = match end {
            End::Completed(result) => (TaskStatus::Completed, Some(result)),
            End::Failed(error) => {
                let detail = to_raw_value(&error).ok();
                self.started.call.context.record.finish(&Err(error));
                (TaskStatus::Failed, detail)
            }
            End::Cancelled => {
                self.record_end("it was cancelled");
                (TaskStatus::Cancelled, None)
            }
        };
        let id = &self.stored.id;
        while let Err(error) = self.tasks.store.end(id, status, detail.clone()).await {
            tracing::error!(
                task = id,
                "failed to write down the end of a task, and try again: {error}"
            );
            tokio::time::sleep(RETRY).await;
        }
    }

    /// Records an ending in the audit log that the tool did not cause.
    fn record_end(&self, reason: &'static str) {
        let record = &self.started.call.context.record;
        record.finish(&Err(ErrorObject::internal_error(reason)));
        record.set_outcome("cancelled");
    }

    fn changed(&self) {
        let event = Event::TaskChanged(self.stored.id.clone());
        self.started.server.subscribers().publish(&event);
    }
}

fn not_encoded() -> ErrorObject {
    ErrorObject::internal_error("the result could not be encoded")
}
