//! Tasks of MCP: calls that run in the background and outlive the connection of their client.
//!
//! A task belongs to a principal, not to a connection. `create_task` spawns its
//! [life cycle](lifecycle) as a separate tokio task, which no connection owns. It runs until the
//! call ends, the task is cancelled or expires, or the server stops. The [database](store) has the
//! task before its client learns of it, and keeps its state and its result. A client that has
//! disconnected fetches the result by the id of the task: over any connection of the same
//! principal, also from another server with the same database. An unfinished task of a server that
//! has stopped counts as failed; a finished one keeps its result until it expires.
//!
//! This module holds only the state of a running task. Requests of clients to a task are stored as
//! well, and carried out by the server that runs it, whichever server received them.
//!
//! ```text
//! call ──► run for up to 500 ms ──► result or questions, without a task
//!              │ still running, or the tool requires a task
//!              ▼
//!          working ◄──── all answered ────┐
//!           │ │ └─────── asks ──────► input_required
//!           │ ├──► completed
//!           │ └──► failed
//!           └────► cancelled (from either state)
//! ```

use std::collections::BTreeMap;
use std::future::ready;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use futures_util::FutureExt as _;
use mcpd_protocol::jsonrpc::ErrorObject;
use mcpd_protocol::method::{
    CreateTaskResult, DetailedTask, InputResponses, Interactive, TASKS_EXTENSION, Task, TaskStatus,
};
use mcpd_protocol::{ClientCapabilities, ProtocolVersion, Wire};
use mcpd_scriptspec::TaskSupport;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::catalog::call::CallHost;
use crate::catalog::tool::Tool;
use crate::client::request::context::Context;
use crate::client::request::side_stream::SideStream;
use crate::execution::engine::Engine;
use crate::execution::input_rounds::{self, Resumption};
use crate::message::call::{CallEnding, CallFuture, CallStart};
use crate::message::text::replace_nul;
use crate::policy::principal::Principal;
use crate::support::sync::lock;

mod call_messages;
mod continuation;
mod lifecycle;
mod running;
#[cfg(feature = "database")]
mod server_registry;
mod sharing;
pub mod store;

use call_messages::CallMessages;
use lifecycle::TaskLifecycle;
use store::{Store, StoredTask, TaskKey, TaskRequest};

/// Time that a call may take before it becomes a task. Most calls end within it, and need no
/// polling.
const SYNCHRONOUS_WAIT: Duration = Duration::from_millis(500);
/// Time for which a task can be queried after its run must have ended.
const RESULT_LIFETIME: Duration = Duration::from_secs(60 * 60);
/// Time limit of a run whose tool has none.
const DEFAULT_MAX_RUN_TIME: Duration = Duration::from_secs(24 * 60 * 60);
/// Suggested interval between two queries of a client.
const CLIENT_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Interval at which the database is polled for requests that other servers received.
const REQUEST_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Tasks of this server, and those of other servers with the same database.
#[derive(Debug)]
pub(crate) struct Tasks {
    store: Arc<dyn Store>,
    state: Mutex<TasksState>,
    /// Signals that a request for one of these tasks may be in the database.
    requested: Notify,
    /// Engine of the server, which shares events with others.
    engine: OnceLock<Weak<Engine>>,
}

#[derive(Debug, Default)]
struct TasksState {
    /// Tasks that run on this server.
    running: BTreeMap<String, RunningTask>,
    /// Tells whether the request poller is running.
    is_polling: bool,
}

/// Handles to a running task.
#[derive(Debug)]
struct RunningTask {
    owner: String,
    tool: String,
    /// Milliseconds since 1970.
    created_at: i64,
    cancel: CancellationToken,
    /// Cancelled when this server stops, or another one continues with the task.
    leave: CancellationToken,
    answers: mpsc::Sender<InputResponses>,
    messages: Arc<CallMessages>,
}

/// Call that is or may become a task.
#[derive(Debug)]
pub(crate) struct TaskCall {
    pub(crate) tool: Arc<Tool>,
    pub(crate) arguments: Option<Box<RawValue>>,
    /// Context of the request, whose side stream is not that of the task.
    pub(crate) context: Context,
}

/// Call with its run and the messages of that.
struct StartedCall {
    host: CallHost,
    call: TaskCall,
    side: SideStream,
    messages: Arc<CallMessages>,
    run: CallFuture,
}

impl Tasks {
    pub(crate) fn new(store: impl Store) -> Self {
        Self {
            store: Arc::new(store),
            state: Mutex::default(),
            requested: Notify::new(),
            engine: OnceLock::new(),
        }
    }

    /// Answers a call with its result or its questions if these are ready soon, and otherwise
    /// with a task. If no task can be created, the caller waits as if it did not support tasks.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends a call that has not become a task.
    pub(crate) async fn call(
        self: Arc<Self>,
        host: CallHost,
        mut call: TaskCall,
        resumption: Resumption,
        support: TaskSupport,
    ) -> CallEnding {
        self.follow_run(&mut call);
        let messages = Arc::<CallMessages>::default();
        let side = SideStream::to(Arc::clone(&messages) as _);
        let run = match call.run(&host, resumption, &side) {
            CallStart::Refused(ended) => return *ended,
            CallStart::Started(run) => run,
        };
        let mut started = StartedCall {
            host,
            call,
            side,
            messages,
            run,
        };
        match support {
            // A call that a full queue rejects must not become a task.
            TaskSupport::Required => {
                if let Some(ended) = (&mut started.run).now_or_never() {
                    started.run = Box::pin(ready(Ok(ended?)));
                }
            }
            _ => {
                if let Ok(ended) = tokio::time::timeout(SYNCHRONOUS_WAIT, &mut started.run).await {
                    started.forward_messages();
                    return ended;
                }
            }
        }
        match self.create_task(started).await? {
            Ok(task) => Ok(Interactive::Task(task)),
            Err(refused) => refused.wait().await,
        }
    }

    /// Creates a task for a call at once.
    ///
    /// # Errors
    ///
    /// Returns the reason for the caller if there is none.
    pub(crate) async fn start(
        self: &Arc<Self>,
        host: CallHost,
        mut call: TaskCall,
    ) -> Result<Task, ErrorObject> {
        self.follow_run(&mut call);
        let messages = Arc::<CallMessages>::default();
        let side = SideStream::to(Arc::clone(&messages) as _);
        let run = call.run(&host, Resumption::default(), &side).into_run();
        match self
            .create_task(StartedCall {
                host,
                call,
                side,
                messages,
                run,
            })
            .await?
        {
            Ok(created) => Ok(created.task),
            Err(_) => Err(ErrorObject::internal_error(
                "too many background runs, or they cannot be stored",
            )),
        }
    }

    /// Creates a task for a call, or returns the call.
    async fn create_task(
        self: &Arc<Self>,
        started: StartedCall,
    ) -> Result<Result<CreateTaskResult, StartedCall>, ErrorObject> {
        let TaskCall { tool, context, .. } = &started.call;
        let (owner, tool) = (context.peer.principal.name(), tool.path().as_str());
        let lifetime = started.call.task_lifetime();
        let mut stored = store::new_task(self.store.runner(), owner, tool, lifetime);
        let task = public_fields(&stored);
        if let Some(task_run) = &context.task_run {
            stored.location = task_run.keep(stored.key()).await;
        }
        let lifecycle = TaskLifecycle::new(self, stored, started);
        let (sender, begun) = oneshot::channel();
        // Spawned, because a client that disconnects now must not leave a task that no server
        // runs.
        tokio::spawn(async move {
            match lifecycle.store().await {
                Ok(lifecycle) => {
                    sender.send(Ok(task.into())).ok();
                    lifecycle.run_to_end().await;
                }
                Err(refused) => drop(sender.send(Err(refused))),
            }
        });
        begun.await.map_err(|_| {
            ErrorObject::internal_error("internal error: the request handler panicked")
        })
    }

    /// Returns all details of the task `id`, if it is the principal's.
    ///
    /// # Errors
    ///
    /// Fails if the database is unreadable.
    pub(crate) async fn get(
        &self,
        id: &str,
        principal: &Principal,
    ) -> Result<Option<DetailedTask>, ErrorObject> {
        let stored = self.stored_task(id, principal).await?;
        stored.map(|stored| self.detailed_task(stored)).transpose()
    }

    /// Returns the stored task `id`, if it is the principal's.
    ///
    /// # Errors
    ///
    /// Fails if the database is unreadable.
    pub(crate) async fn stored_task(
        &self,
        id: &str,
        principal: &Principal,
    ) -> Result<Option<StoredTask>, ErrorObject> {
        let stored = self.store.task(TaskKey::new(id, principal.name())).await;
        stored.map_err(|error| database_error(&error))
    }

    /// Returns all tasks of the principal, the newest first.
    ///
    /// # Errors
    ///
    /// Fails if the database is unreadable.
    pub(crate) async fn list(&self, principal: &Principal) -> Result<Vec<StoredTask>, ErrorObject> {
        let all = self.store.tasks(principal.name()).await;
        all.map_err(|error| database_error(&error))
    }

    /// Stores answers for a task. Answers to no open question are ignored.
    ///
    /// # Errors
    ///
    /// Fails if the task is unknown, an answer is invalid, or the database cannot be written.
    pub(crate) async fn answer(
        &self,
        id: &str,
        principal: &Principal,
        responses: InputResponses,
    ) -> Result<(), ErrorObject> {
        let asked = self
            .get(id, principal)
            .await?
            .ok_or_else(unknown_task_error)?;
        let open = asked.input_requests.unwrap_or_default();
        for (key, response) in &responses {
            if let Some(question) = open.get(key) {
                input_rounds::check_response(key, response, Some(question.method))?;
            }
        }
        let key = TaskKey::new(id, principal.name());
        let answered = self.store.store_answers(key, responses).await;
        answered.map_err(|error| database_error(&error))?;
        self.announce_request(id);
        Ok(())
    }

    /// Stores a request to cancel a task.
    ///
    /// # Errors
    ///
    /// Fails if the task is unknown, or the database cannot be written.
    pub(crate) async fn cancel(&self, id: &str, principal: &Principal) -> Result<(), ErrorObject> {
        self.stored_task(id, principal)
            .await?
            .ok_or_else(unknown_task_error)?;
        let key = TaskKey::new(id, principal.name());
        let cancelled = self.store.request_cancel(key).await;
        cancelled.map_err(|error| database_error(&error))?;
        self.announce_request(id);
        Ok(())
    }

    /// Log of the run of a task so far, if it runs here.
    pub(crate) fn log_text(&self, id: &str) -> Option<String> {
        let state = lock(&self.state);
        Some(state.running.get(id)?.messages.text())
    }

    /// Last progress message of a task, if it runs here.
    pub(crate) fn progress(&self, id: &str) -> Option<String> {
        let state = lock(&self.state);
        state.running.get(id)?.messages.progress()
    }

    fn detailed_task(&self, stored: StoredTask) -> Result<DetailedTask, ErrorObject> {
        let mut detailed = DetailedTask::from(public_fields(&stored));
        detailed.task.status_message = self.progress(&stored.id);
        let Some(detail) = stored.detail else {
            return Ok(detailed);
        };
        match stored.status {
            TaskStatus::Completed => detailed.result = Some(detail),
            TaskStatus::Failed => {
                let mut error: ErrorObject = parse_detail(&detail)?;
                let message = replace_nul(&error.message).into_owned();
                error.message = message.clone().into();
                detailed.task.status_message = Some(message);
                detailed.error = Some(error);
            }
            TaskStatus::InputRequired => detailed.input_requests = Some(parse_detail(&detail)?),
            TaskStatus::Working | TaskStatus::Cancelled => {}
        }
        Ok(detailed)
    }

    /// Starts the poller of requests, which runs as long as there are tasks. Must be called on a
    /// tokio runtime.
    fn start_poller(self: &Arc<Self>) {
        if !std::mem::replace(&mut lock(&self.state).is_polling, true) {
            tokio::spawn(poll_requests(Arc::clone(self)));
        }
    }

    fn carry_out(&self, id: &str, request: TaskRequest) {
        let state = lock(&self.state);
        match (state.running.get(id), request) {
            (Some(live), TaskRequest::Cancel) => live.cancel.cancel(),
            (Some(live), TaskRequest::Leave) => live.leave.cancel(),
            // The channel has room: a waiting task has received all earlier answers.
            (Some(live), TaskRequest::Answers(answers)) => drop(live.answers.try_send(answers)),
            (None, _) => {}
        }
    }
}

async fn poll_requests(tasks: Arc<Tasks>) {
    let is_needed = || {
        let mut state = lock(&tasks.state);
        state.is_polling = !state.running.is_empty();
        state.is_polling
    };
    while is_needed() {
        tokio::time::timeout(REQUEST_POLL_INTERVAL, tasks.requested.notified())
            .await
            .ok();
        match tasks.store.take_requests().await {
            Ok(requests) => requests
                .into_iter()
                .for_each(|(id, request)| tasks.carry_out(&id, request)),
            Err(error) => tracing::warn!(
                "failed to read pending requests of tasks from the database: {error}"
            ),
        }
    }
}

impl TaskCall {
    /// Starts the run.
    fn run(&self, host: &CallHost, resumption: Resumption, side: &SideStream) -> CallStart {
        let context = Context {
            // Converted to the version of each client that queries the task.
            version: ProtocolVersion::LATEST,
            // Questions reach the client only through the task.
            session: None,
            side: side.clone(),
            ..self.context.clone()
        };
        let arguments = self.arguments.as_deref();
        self.tool.call(host, arguments, resumption, &context)
    }

    /// Time for which its task is kept.
    fn task_lifetime(&self) -> Duration {
        let longest = self.tool.max_run_time().unwrap_or(DEFAULT_MAX_RUN_TIME);
        longest.saturating_add(RESULT_LIFETIME)
    }
}

impl StartedCall {
    /// Restarts the run, with answers.
    fn restart(&mut self, resumption: Resumption) {
        self.run = self.call.run(&self.host, resumption, &self.side).into_run();
    }

    /// Waits for the end, and forwards messages to the caller in the meantime.
    async fn wait(self) -> CallEnding {
        self.forward_messages();
        self.run.await
    }

    /// Forwards the messages of the run to the caller.
    fn forward_messages(&self) {
        self.messages.forward_to(&self.call.context.side);
    }
}

/// Capability of clients that support tasks.
pub(crate) fn capability() -> ClientCapabilities {
    ClientCapabilities::of_extension(TASKS_EXTENSION)
}

/// Returns whether the client of a request supports tasks. The stateful wire has none, whatever
/// the client declares.
pub(crate) fn is_supported_by(context: &Context) -> bool {
    context.version.wire() == Wire::Stateless && context.capabilities.covers(&capability())
}

/// Error about a task that does not exist or is another principal's.
pub(crate) fn unknown_task_error() -> ErrorObject {
    ErrorObject::invalid_params("the task does not exist or has expired")
}

/// Public fields of a task in every response.
pub(crate) fn public_fields(stored: &StoredTask) -> Task {
    let time = |milliseconds| {
        let time = jiff::Timestamp::from_millisecond(milliseconds);
        time.unwrap_or_default().to_string()
    };
    let lifetime = stored.expires_at.saturating_sub(stored.created_at);
    let mut task = Task::new(
        &stored.id,
        stored.status,
        time(stored.created_at),
        time(stored.updated_at),
        u64::try_from(lifetime).ok(),
    );
    task.poll_interval_ms = u64::try_from(CLIENT_POLL_INTERVAL.as_millis()).ok();
    task
}

fn parse_detail<'a, T: Deserialize<'a>>(detail: &'a RawValue) -> Result<T, ErrorObject> {
    serde_json::from_str(detail.get()).map_err(|error| database_error(&error))
}

fn database_error(error: &dyn std::error::Error) -> ErrorObject {
    tracing::error!("failed to access the database of tasks: {error}");
    ErrorObject::internal_error(
        "tasks cannot be read or written at the moment; the reason is in the server's log",
    )
}
