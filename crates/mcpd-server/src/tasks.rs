//! Calls that go on in the background, as the tasks of MCP. Whatever is promised of one is in the database before
//! anybody is told; here is only what matters while it runs. What a client wants of a task is written down too, and
//! done by the server that runs it, whichever was asked.

use std::collections::BTreeMap;
use std::future::ready;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use mcpd_protocol::jsonrpc::ErrorObject;
use mcpd_protocol::{
    ClientCapabilities, CreateTaskResult, DetailedTask, InputResponses, Interactive,
    ProtocolVersion, TASKS_EXTENSION, Task, TaskStatus, Wire,
};
use mcpd_scriptspec::TaskSupport;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::Server;
use crate::context::{Context, SideStream};
use crate::interaction::{self, Brought};
use crate::output::replace_nul;
use crate::principal::Principal;
use crate::sync::lock;
use crate::tool::{Called, Ended, Run, Tool};

mod heard;
mod life;
#[cfg(feature = "database")]
mod runner;
#[cfg(feature = "database")]
mod store;
#[cfg(not(feature = "database"))]
#[path = "tasks/store/absent.rs"]
mod store;
mod stored;

use heard::Heard;
use life::Life;
pub(crate) use store::Store;
pub(crate) use stored::{StoredTask, Wish};

/// How long a call is waited for that may become a task. Most are over by then, and nobody has to ask after them.
const PATIENCE: Duration = Duration::from_millis(500);
/// How long a task can be asked for after its run must have ended.
const KEPT: Duration = Duration::from_secs(60 * 60);
/// How long a run may take whose tool has no limit of its own.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);
/// How often clients are to ask after a task.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How often the database is asked whether another server was told something about our tasks.
const LOOK: Duration = Duration::from_secs(1);

/// The tasks of one server, and those of others in the same database.
#[derive(Debug)]
pub(crate) struct Tasks {
    store: Store,
    state: Mutex<State>,
    /// Something may be wanted of our tasks.
    wished: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Those that run here.
    live: BTreeMap<String, Live>,
    /// Somebody looks after what is wanted of them.
    is_attended: bool,
}

/// The ends of a task that others hold.
#[derive(Debug)]
struct Live {
    cancel: CancellationToken,
    answers: mpsc::Sender<InputResponses>,
    heard: Arc<Mutex<Heard>>,
}

/// A call that is or may become a task.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) tool: Arc<Tool>,
    pub(crate) arguments: Option<Box<RawValue>>,
    /// Whose side stream is that of the request: a task has one of its own.
    pub(crate) context: Context,
}

/// A call with its run, and what that says.
struct Started {
    server: Server,
    call: Call,
    side: SideStream,
    messages: mpsc::Receiver<Bytes>,
    run: Run,
}

impl Tasks {
    #[cfg(feature = "database")]
    pub(crate) fn new(store: Store) -> Self {
        Self {
            store,
            state: Mutex::default(),
            wished: Notify::new(),
        }
    }

    /// Answers a call with its result if there is one soon, with the questions it asks soon, or else with a task.
    /// Where none can be made the caller waits, as if it knew of no tasks.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends a call that has not become a task.
    pub(crate) async fn call(
        self: Arc<Self>,
        server: Server,
        call: Call,
        brought: Brought,
        support: TaskSupport,
    ) -> Ended {
        let (side, messages) = heard::side();
        let run = match call.run(&server, brought, &side) {
            Called::Refused(ended) => return *ended,
            Called::Started(run) => run,
        };
        let mut started = Started {
            server,
            call,
            side,
            messages,
            run,
        };
        match support {
            // One for which there is no room is no task either.
            TaskSupport::Required => {
                if let Some(ended) = (&mut started.run).now_or_never() {
                    started.run = Box::pin(ready(Ok(ended?)));
                }
            }
            _ => {
                if let Ok(ended) = tokio::time::timeout(PATIENCE, &mut started.run).await {
                    started.tell();
                    return ended;
                }
            }
        }
        match self.begin(started).await? {
            Ok(task) => Ok(Interactive::Task(task)),
            Err(refused) => refused.wait().await,
        }
    }

    /// Makes a task of a call at once.
    ///
    /// # Errors
    ///
    /// Why there is none, for the caller.
    pub(crate) async fn start(
        self: &Arc<Self>,
        server: Server,
        call: Call,
    ) -> Result<Task, ErrorObject> {
        let (side, messages) = heard::side();
        let run = call.run(&server, Brought::default(), &side).into_run();
        match self
            .begin(Started {
                server,
                call,
                side,
                messages,
                run,
            })
            .await?
        {
            Ok(created) => Ok(created.task),
            Err(_) => Err(ErrorObject::internal_error(
                "there are too many runs in the background, or they can't be written down",
            )),
        }
    }

    /// Makes a task of a call, or gives it back.
    async fn begin(
        self: &Arc<Self>,
        started: Started,
    ) -> Result<Result<CreateTaskResult, Started>, ErrorObject> {
        let Call { tool, context, .. } = &started.call;
        let (owner, tool) = (context.principal.name(), tool.path().as_str());
        let stored = self.store.new_task(owner, tool, started.call.lifetime());
        let task = task(&stored);
        let life = Life::new(self, stored, started);
        let (sender, begun) = oneshot::channel();
        // On its own: if the client hangs up now, there must be no task that nobody runs.
        tokio::spawn(async move {
            match life.add().await {
                Ok(life) => {
                    sender.send(Ok(task.into())).ok();
                    life.live().await;
                }
                Err(refused) => drop(sender.send(Err(refused))),
            }
        });
        begun
            .await
            .map_err(|_| ErrorObject::internal_error("the request failed inside of the server"))
    }

    /// Everything about the task `id`, if it is the principal's.
    ///
    /// # Errors
    ///
    /// The database can't be read.
    pub(crate) async fn get(
        &self,
        id: &str,
        principal: &Principal,
    ) -> Result<Option<DetailedTask>, ErrorObject> {
        let stored = self.stored(id, principal).await?;
        stored.map(|stored| self.detailed(stored)).transpose()
    }

    /// The task `id` as it is stored, if it is the principal's.
    ///
    /// # Errors
    ///
    /// The database can't be read.
    pub(crate) async fn stored(
        &self,
        id: &str,
        principal: &Principal,
    ) -> Result<Option<StoredTask>, ErrorObject> {
        let stored = self.store.task(id, principal.name()).await;
        stored.map_err(|error| unavailable(&error))
    }

    /// All tasks of the principal, the newest first.
    ///
    /// # Errors
    ///
    /// The database can't be read.
    pub(crate) async fn all(&self, principal: &Principal) -> Result<Vec<StoredTask>, ErrorObject> {
        let all = self.store.tasks(principal.name()).await;
        all.map_err(|error| unavailable(&error))
    }

    /// Hands answers to the task. Those to no open question are ignored.
    ///
    /// # Errors
    ///
    /// When there is no such task, an answer is none, or the database can't be written.
    pub(crate) async fn answer(
        &self,
        id: &str,
        principal: &Principal,
        responses: InputResponses,
    ) -> Result<(), ErrorObject> {
        let asked = self.get(id, principal).await?.ok_or_else(unknown)?;
        let open = asked.input_requests.unwrap_or_default();
        for (key, response) in &responses {
            if let Some(question) = open.get(key) {
                interaction::check_response(key, response, Some(question.method))?;
            }
        }
        let answered = self.store.answer(id, responses).await;
        answered.map_err(|error| unavailable(&error))?;
        self.wished.notify_one();
        Ok(())
    }

    /// Wishes the task to end.
    ///
    /// # Errors
    ///
    /// When there is no such task, or the database can't be written.
    pub(crate) async fn cancel(&self, id: &str, principal: &Principal) -> Result<(), ErrorObject> {
        self.stored(id, principal).await?.ok_or_else(unknown)?;
        let cancelled = self.store.cancel(id).await;
        cancelled.map_err(|error| unavailable(&error))?;
        self.wished.notify_one();
        Ok(())
    }

    /// What the run of a task has said so far, if it runs here.
    pub(crate) fn said(&self, id: &str) -> Option<String> {
        let state = lock(&self.state);
        let heard = lock(&state.live.get(id)?.heard);
        Some(heard.lines())
    }

    /// What the run of a task last said of its progress, if it runs here.
    pub(crate) fn progress(&self, id: &str) -> Option<String> {
        let state = lock(&self.state);
        let heard = lock(&state.live.get(id)?.heard);
        heard.progress().map(str::to_owned)
    }

    fn detailed(&self, stored: StoredTask) -> Result<DetailedTask, ErrorObject> {
        let mut detailed = DetailedTask::from(task(&stored));
        detailed.task.status_message = self.progress(&stored.id);
        let Some(detail) = stored.detail else {
            return Ok(detailed);
        };
        match stored.status {
            TaskStatus::Completed => detailed.result = Some(detail),
            TaskStatus::Failed => {
                let mut error: ErrorObject = read(&detail)?;
                let message = replace_nul(&error.message).into_owned();
                error.message = message.clone().into();
                detailed.task.status_message = Some(message);
                detailed.error = Some(error);
            }
            TaskStatus::InputRequired => detailed.input_requests = Some(read(&detail)?),
            TaskStatus::Working | TaskStatus::Cancelled => {}
        }
        Ok(detailed)
    }

    /// Sees to it that wishes are heard, as long as there is anything to wish. Must be called on a tokio runtime.
    fn attend(self: &Arc<Self>) {
        if !std::mem::replace(&mut lock(&self.state).is_attended, true) {
            tokio::spawn(attend(Arc::clone(self)));
        }
    }

    fn fulfil(&self, id: &str, wish: Wish) {
        let state = lock(&self.state);
        match (state.live.get(id), wish) {
            (Some(live), Wish::Cancel) => live.cancel.cancel(),
            // There is room: a task that waits has fetched all earlier ones.
            (Some(live), Wish::Answers(answers)) => drop(live.answers.try_send(answers)),
            (None, _) => {}
        }
    }
}

async fn attend(tasks: Arc<Tasks>) {
    let is_needed = || {
        let mut state = lock(&tasks.state);
        state.is_attended = !state.live.is_empty();
        state.is_attended
    };
    while is_needed() {
        tokio::time::timeout(LOOK, tasks.wished.notified())
            .await
            .ok();
        match tasks.store.wishes().await {
            Ok(wishes) => wishes
                .into_iter()
                .for_each(|(id, wish)| tasks.fulfil(&id, wish)),
            Err(error) => tracing::warn!("failed to read what is wanted of tasks: {error}"),
        }
    }
}

impl Call {
    /// Starts the run.
    fn run(&self, server: &Server, brought: Brought, side: &SideStream) -> Called {
        let context = Context {
            // What it comes to is told in the words of whoever asks.
            version: ProtocolVersion::LATEST,
            // Nobody can be asked but through the task.
            session: None,
            side: side.clone(),
            ..self.context.clone()
        };
        let arguments = self.arguments.as_deref();
        self.tool.call(server, arguments, brought, &context)
    }

    /// How long its task is kept.
    fn lifetime(&self) -> Duration {
        let longest = self.tool.longest_run().unwrap_or(LONGEST);
        longest.saturating_add(KEPT)
    }
}

impl Started {
    /// Starts the run again, with answers.
    fn again(&mut self, brought: Brought) {
        self.run = self.call.run(&self.server, brought, &self.side).into_run();
    }

    /// Waits for the end, and tells the caller meanwhile what there is to tell.
    async fn wait(mut self) -> Ended {
        loop {
            tokio::select! {
                biased;
                Some(message) = self.messages.recv() => {
                    heard::pass_on(&message, &self.call.context.side);
                }
                ended = &mut self.run => {
                    self.tell();
                    return ended;
                }
            }
        }
    }

    /// Tells the caller what there is to tell by now.
    fn tell(&mut self) {
        while let Ok(message) = self.messages.try_recv() {
            heard::pass_on(&message, &self.call.context.side);
        }
    }
}

/// What a client declares that knows tasks.
pub(crate) fn capability() -> ClientCapabilities {
    ClientCapabilities::of_extension(TASKS_EXTENSION)
}

/// Whether the client of a request knows tasks. On the stateful wire there are none, whatever it declares.
pub(crate) fn is_known_to(context: &Context) -> bool {
    context.version.wire() == Wire::Stateless && context.capabilities.covers(&capability())
}

/// The error about a task that is not there, or not the caller's.
pub(crate) fn unknown() -> ErrorObject {
    ErrorObject::invalid_params("there is no such task, or its time has come")
}

/// What is told of a task wherever there is talk of it.
pub(crate) fn task(stored: &StoredTask) -> Task {
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
    task.poll_interval_ms = u64::try_from(POLL_INTERVAL.as_millis()).ok();
    task
}

fn read<'a, T: Deserialize<'a>>(detail: &'a RawValue) -> Result<T, ErrorObject> {
    serde_json::from_str(detail.get()).map_err(|error| unavailable(&error))
}

fn unavailable(error: &dyn std::error::Error) -> ErrorObject {
    tracing::error!("failed to use the database of tasks: {error}");
    ErrorObject::internal_error("the tasks can't be read or written now; the server's log says why")
}
