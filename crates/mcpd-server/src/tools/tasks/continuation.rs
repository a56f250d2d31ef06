//! Continuation of tasks whose server is gone: what another server needs for it, sealed with the
//! key that these servers share, and the start of the life cycle there. Only a task whose run is
//! elsewhere can be continued, because the processes of a server end with it.

use std::collections::{BTreeMap, BTreeSet};
use std::future::{pending, ready};
use std::sync::{Arc, Weak};
use std::time::Duration;

use mcpd_protocol::jsonrpc::{ErrorObject, RequestId};
use mcpd_protocol::method::TaskStatus;
use mcpd_protocol::{ClientCapabilities, ProtocolVersion};
use mcpd_scriptspec::ScriptPath;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use tokio::time::{Instant, sleep, timeout_at};

use super::call_messages::CallMessages;
use super::lifecycle::TaskLifecycle;
use super::store::{StoredTask, TaskKey};
use super::{StartedCall, TaskCall, Tasks};
use crate::catalog::call::CallHost;
use crate::catalog::live::LiveCatalog;
use crate::catalog::tool::Tool;
use crate::client::request::context::Context;
use crate::client::request::side_stream::SideStream;
use crate::execution::engine::Engine;
use crate::execution::input_rounds::{CallFailure, Resumption};
use crate::execution::seal::Seal;
use crate::message::call::{CallEnding, CallFuture};
use crate::message::method::KnownMethod;
use crate::message::trace::TraceContext;
use crate::observe::audit::request_log::RequestRecord;
use crate::policy::principal::Principal;
use crate::remote::TaskRun;

/// Pause after a failure of the store.
const RETRY: Duration = Duration::from_secs(5);
/// Time for which a task waits until its tool is served here: a server may have just started.
const MAX_WAIT_FOR_TOOL: Duration = Duration::from_secs(30);

/// Data for the continuation of a task, beside what its store shows.
#[derive(Serialize, Deserialize)]
pub(super) struct Continuation {
    arguments: Option<Box<RawValue>>,
    capabilities: ClientCapabilities,
    trace: TraceContext,
    /// The run that goes on is approved, and so are those that follow.
    is_approved: bool,
    used_keys: BTreeSet<String>,
    /// Last questions. They are open until a run after them has a location.
    asking: Option<Asking>,
}

/// Open questions of a task.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Asking {
    /// Names that the script has given to its questions, by their keys.
    pub(super) names: BTreeMap<String, String>,
    /// State of the script, sealed for itself.
    pub(super) state: Option<String>,
}

/// Returns what a continuation is sealed for.
fn purpose(key: &TaskKey) -> Vec<u8> {
    let parts = ["mcpd task", &key.owner, &key.id];
    parts.join("\0").into_bytes()
}

impl Continuation {
    /// Returns what is needed for a call, if another server can continue with it.
    pub(super) fn of(
        call: &TaskCall,
        used_keys: &BTreeSet<String>,
        asking: Option<Asking>,
    ) -> Option<Self> {
        let context = &call.context;
        context.task_run.as_ref()?;
        Some(Self {
            arguments: call.arguments.clone(),
            capabilities: ClientCapabilities::clone(&context.capabilities),
            trace: context.trace.clone(),
            is_approved: context.approved.as_ref() == Some(call.tool.path()),
            used_keys: used_keys.clone(),
            asking,
        })
    }

    pub(super) fn seal(&self, seal: &Seal, key: &TaskKey) -> Option<String> {
        seal.close(&serde_json::to_vec(self).ok()?, &purpose(key))
    }

    fn open(seal: &Seal, task: &StoredTask) -> Option<Self> {
        let sealed = task.continuation.as_deref()?;
        let plain = seal.open(sealed, &purpose(&task.key()))?;
        serde_json::from_slice(&plain).ok()
    }
}

/// Continues with tasks of servers that are gone, until this one is gone as well.
pub(super) async fn adopt_tasks(
    tasks: Arc<Tasks>,
    (engine, catalog): (Weak<Engine>, Weak<LiveCatalog>),
) {
    loop {
        let adopted = tasks.store.adopt().await;
        let (Some(engine), Some(catalog)) = (engine.upgrade(), catalog.upgrade()) else {
            return;
        };
        match adopted {
            Ok(task) => {
                let host = CallHost { engine, catalog };
                tokio::spawn(continue_with(Arc::clone(&tasks), host, task));
            }
            Err(error) => {
                tracing::warn!("failed to look for tasks of servers that are gone: {error}");
                drop((engine, catalog));
                sleep(RETRY).await;
            }
        }
    }
}

/// Continues with one task to its end.
async fn continue_with(tasks: Arc<Tasks>, host: CallHost, task: StoredTask) {
    tracing::info!(
        task = task.id,
        tool = task.tool,
        "continuing with a task of a server that is gone"
    );
    let Some(continuation) = Continuation::open(&host.engine.seal, &task) else {
        let why = "the server that ran it is gone, and this one has another `state_key_file`";
        return fail(&tasks, &task, why).await;
    };
    let stopping = host.engine.stopping.clone();
    let found = stopping.run_until_cancelled(find_tool(&host.catalog, &task.tool));
    let Some(found) = found.await else {
        // The next server finds it.
        return;
    };
    let Some(tool) = found else {
        let why = "the server that ran it is gone, and the tool is not served any more";
        return fail(&tasks, &task, why).await;
    };
    let (used_keys, asking) = (continuation.used_keys.clone(), continuation.asking.clone());
    let asking = asking.filter(|_| task.location.is_none());
    let started = start(host, tool, &task, continuation, asking.is_some());
    started.call.context.record.commit_begin().await.ok();
    let lifecycle = TaskLifecycle::new(&tasks, task, started);
    lifecycle.continued(used_keys, asking).run_to_end().await;
}

/// Waits for the tool at a path, for a while.
async fn find_tool(catalog: &LiveCatalog, path: &str) -> Option<Arc<Tool>> {
    let deadline = Instant::now() + MAX_WAIT_FOR_TOOL;
    let mut published = catalog.publications();
    loop {
        published.borrow_and_update();
        if let Some(tool) = catalog.current().tool(path) {
            return Some(Arc::clone(tool));
        }
        timeout_at(deadline, published.changed()).await.ok()?.ok()?;
    }
}

/// Returns the context of the call: its caller was admitted by the server that began it.
fn context(
    host: &CallHost,
    tool: &Tool,
    task: &StoredTask,
    continuation: &Continuation,
    is_asking: bool,
) -> Context {
    let version = ProtocolVersion::LATEST;
    let engine = &host.engine;
    let mut context = Context::for_front(
        engine.stamp(version.wire()),
        Principal::unlimited(&task.owner),
        version,
        continuation.trace.clone(),
        engine.stopping.child_token(),
    );
    context.record = RequestRecord::new(
        &engine.observers,
        Some(KnownMethod::CallTool),
        &RequestId::from(&*task.id),
        context.origin(),
    );
    let spec = tool.script().map(|script| &script.spec);
    context.record.set_tool(tool.path(), spec);
    context.capabilities = Arc::new(continuation.capabilities.clone());
    // A run that was sent somewhere had its approval.
    let is_approved = continuation.is_approved || !is_asking;
    context.approved = is_approved.then(|| ScriptPath::clone(tool.path()));
    let task_run = TaskRun::of_task(task.key(), task.location.clone());
    context.task_run = Some(Arc::new(task_run));
    context
}

/// Starts the call again, in a state in which it waits for what goes on elsewhere.
fn start(
    host: CallHost,
    tool: Arc<Tool>,
    task: &StoredTask,
    continuation: Continuation,
    is_asking: bool,
) -> StartedCall {
    let messages = Arc::<CallMessages>::default();
    let side = SideStream::to(Arc::clone(&messages) as _);
    let context = context(&host, &tool, task, &continuation, is_asking);
    let call = TaskCall {
        tool,
        arguments: continuation.arguments,
        context,
    };
    let run: CallFuture = match &task.location {
        // It runs with the answers.
        _ if is_asking => Box::pin(pending()),
        Some(_) => {
            let started = call.run(&host, Resumption::default(), &side);
            started.into_run()
        }
        None => Box::pin(ready(lost())),
    };
    StartedCall {
        host,
        call,
        side,
        messages,
        run,
    }
}

/// Ending of a run that may be anywhere.
fn lost() -> CallEnding {
    let why = "The server that ran it is gone, and it is not known whether it was run. Find out what it has done before you call it again.";
    let failure = CallFailure::Unknown(why.to_owned());
    failure.into_tool_result().map(Into::into)
}

/// Ends a task that cannot be continued.
async fn fail(tasks: &Tasks, task: &StoredTask, why: &'static str) {
    tracing::warn!(task = task.id, "failed to continue with a task: {why}");
    let error = to_raw_value(&ErrorObject::internal_error(why));
    let ended = tasks
        .store
        .store_ending(task.key(), TaskStatus::Failed, error.ok());
    if let Err(error) = ended.await {
        tracing::error!(task = task.id, "failed to store the end of a task: {error}");
    }
}
