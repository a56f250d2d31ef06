//! Tools that start, follow and stop background runs, for clients that do not support tasks. Each
//! run is a task, visible both ways to clients that support tasks.

use std::fmt;
use std::sync::Arc;

use mcpd_protocol::jsonrpc::ErrorObject;
use mcpd_protocol::method::{CallToolResult, DetailedTask, TaskStatus};
use mcpd_protocol::{ClientCapabilities, JsonObject, Params};
use mcpd_scriptspec::ScriptSpec;
use schemars::JsonSchema;
use serde::de::{DeserializeOwned, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::catalog::Catalog;
use crate::catalog::call::CallContext;
use crate::catalog::tool::Tool;
use crate::client::request::context::Context;
use crate::database::rows::StoredTask;
use crate::execution::input_rounds;
use crate::message::raw::raw;
use crate::policy::secret_arguments::has_secrets;
use crate::tools::native::{IntoToolResult, Json, NativeToolDescription};
use crate::tools::tasks::{self, Tasks};

/// Name of the tool that starts others.
pub(crate) const START_TOOL: &str = "runs_start";

/// Describes the tools of a server whose background runs are `tasks`.
pub(crate) fn describe(tasks: Option<&Arc<Tasks>>) -> [NativeToolDescription; 5] {
    [
        tool(
            tasks,
            START_TOOL,
            "Starts a tool in the background and returns at once with the id of the run. For tools that take longer than a request may: follow the run with runs_status, and fetch its result with runs_output.",
            start,
        )
        .starting(started_call),
        tool(
            tasks,
            "runs_list",
            "Lists the background runs, newest first, with their ids and states.",
            list,
        ),
        tool(
            tasks,
            "runs_status",
            "Reports the state of a background run.",
            status,
        ),
        tool(
            tasks,
            "runs_output",
            "Returns the result of a finished background run, or its output so far.",
            output,
        ),
        tool(tasks, "runs_stop", "Stops a background run.", stop),
    ]
}

/// Describes a tool that needs the tasks of its server.
fn tool<A, F, R, T>(
    tasks: Option<&Arc<Tasks>>,
    name: &str,
    description: &str,
    function: F,
) -> NativeToolDescription
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
    F: Fn(Arc<Tasks>, A, CallContext) -> R + Send + Sync + 'static,
    R: Future<Output = Result<T, String>> + Send + 'static,
    T: IntoToolResult,
{
    let tasks = tasks.cloned();
    let function = move |arguments, context| {
        let run = tasks
            .clone()
            .map(|tasks| function(tasks, arguments, context));
        async move {
            match run {
                Some(run) => run.await,
                None => Err("This server has no database for background runs.".to_owned()),
            }
        }
    };
    NativeToolDescription::new(name.to_owned(), description.to_owned(), function)
}

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StartArguments {
    /// The name of the tool.
    #[serde(rename(serialize = "name"))]
    tool: String,
    /// The arguments of the tool.
    #[serde(default = "empty_arguments")]
    #[schemars(with = "JsonObject")]
    arguments: Box<RawValue>,
}

/// Reads the call that `runs_start` starts.
fn started_call(arguments: &RawValue) -> Option<(String, Box<RawValue>)> {
    let start: StartArguments = serde_json::from_str(arguments.get()).ok()?;
    Some((start.tool, start.arguments))
}

fn empty_arguments() -> Box<RawValue> {
    raw(&JsonObject::new())
}

/// Returns the names of the tools that a call of `tool` is to start, if it is the tool that starts
/// others and has arguments.
pub(crate) fn started_tools(tool: &Tool, arguments: Option<&RawValue>) -> Option<StartedTools> {
    let is_start = tool.path().as_str() == START_TOOL && tool.file().is_none();
    let arguments = arguments.filter(|_| is_start)?;
    Some(serde_json::from_str(arguments.get()).unwrap_or_default())
}

/// Error: the call names no tool to start.
#[derive(Debug)]
pub(crate) struct UnknownStartedTool;

impl StartedTools {
    /// Returns the spec that declares which arguments are secret.
    ///
    /// # Errors
    ///
    /// Fails if the tool to start is unknown, and thus which of its arguments are secret.
    pub(crate) fn secret_spec<'a>(
        &self,
        catalog: &'a Catalog,
    ) -> Result<Option<&'a Arc<ScriptSpec>>, UnknownStartedTool> {
        let tools: Option<Vec<_>> = self.0.iter().map(|name| find_tool(catalog, name)).collect();
        let tools = tools.filter(|tools| !tools.is_empty());
        let tools = tools.ok_or(UnknownStartedTool)?;
        let scripts = tools.into_iter().filter_map(|tool| tool.script());
        let specs: Vec<_> = scripts.map(|script| &script.spec).collect();
        let secretive = specs.iter().find(|spec| has_secrets(spec));
        Ok(secretive.or(specs.first()).copied())
    }
}

/// Names of the tools to start. A valid call has one; a rejected one is recorded as well.
#[derive(Debug, Default)]
pub(crate) struct StartedTools(Vec<String>);

impl<'de> Deserialize<'de> for StartedTools {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = StartedTools;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<StartedTools, A::Error> {
                let mut names = Vec::new();
                while let Some(key) = map.next_key::<String>()? {
                    let value: &RawValue = map.next_value()?;
                    if key == "tool" {
                        names.extend(serde_json::from_str::<String>(value.get()).ok());
                    }
                }
                Ok(StartedTools(names))
            }
        }

        deserializer.deserialize_map(Reader)
    }
}

/// Returns the tool called `name`, if it can be started by that name. The search for tools names
/// the tool behind it only in its arguments.
fn find_tool<'a>(catalog: &'a Catalog, name: &str) -> Option<&'a Arc<Tool>> {
    catalog.tool(name).filter(|tool| !tool.is_part_of_search())
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NoArguments {}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RunArguments {
    /// The id of the run.
    run: String,
}

/// Run in results for models.
#[derive(Debug, Serialize)]
struct RunStatus {
    run: String,
    tool: String,
    status: TaskStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    started: String,
    changed: String,
}

#[derive(Debug, Serialize)]
struct RunList {
    runs: Vec<RunStatus>,
}

impl RunStatus {
    fn new(stored: &StoredTask, tasks: &Tasks) -> Self {
        let task = tasks::public_fields(stored);
        Self {
            message: tasks.progress(&task.task_id),
            run: task.task_id,
            tool: stored.tool.clone(),
            status: task.status,
            started: task.created_at,
            changed: task.last_updated_at,
        }
    }
}

async fn start(
    tasks: Arc<Tasks>,
    start: StartArguments,
    context: CallContext,
) -> Result<Json<RunStatus>, String> {
    let (whole, catalog) = (context.whole_catalog(), context.catalog());
    let there = find_tool(&whole, &start.tool);
    // This call is the one of interest in the records, and only the started tool declares its
    // secrets.
    let record = &context.request().record;
    if let Some(tool) = there {
        record.set_tool(tool.path(), tool.script().map(|script| &script.spec));
        let asked = to_raw_value(&start).ok();
        record.set_params(&Params::read(asked.as_deref()).unwrap_or_default());
    }
    let tool = find_tool(&catalog, &start.tool).ok_or_else(|| {
        let is_there = there.is_some();
        record.set_outcome(if is_there { "denied" } else { "unknown-tool" });
        format!("There is no tool `{}`.", start.tool)
    })?;
    let restored = tool.restore_names(&start.arguments);
    let call = tasks::TaskCall {
        tool: Arc::clone(tool),
        arguments: Some(restored.unwrap_or(start.arguments)),
        context: Context {
            // No client waits for answers to questions.
            capabilities: Arc::new(ClientCapabilities::default()),
            ..context.request().clone()
        },
    };
    let task = tasks
        .start(context.host().clone(), call)
        .await
        .map_err(describe_error)?;
    find_run(&tasks, &task.task_id, &context).await.map(Json)
}

async fn list(
    tasks: Arc<Tasks>,
    _: NoArguments,
    context: CallContext,
) -> Result<Json<RunList>, String> {
    let all = tasks
        .list(&context.request().peer.principal)
        .await
        .map_err(describe_error)?;
    let runs = all.iter().map(|stored| RunStatus::new(stored, &tasks));
    Ok(Json(RunList {
        runs: runs.collect(),
    }))
}

async fn status(
    tasks: Arc<Tasks>,
    named: RunArguments,
    context: CallContext,
) -> Result<Json<RunStatus>, String> {
    find_run(&tasks, &named.run, &context).await.map(Json)
}

async fn output(
    tasks: Arc<Tasks>,
    named: RunArguments,
    context: CallContext,
) -> Result<CallToolResult, String> {
    let principal = &context.request().peer.principal;
    let task = tasks
        .get(&named.run, principal)
        .await
        .map_err(describe_error)?;
    let task = task.ok_or_else(|| unknown_run_message(&named.run))?;
    match task.task.status {
        TaskStatus::Completed => {
            task_result(&task).ok_or_else(|| "The stored result is unreadable.".to_owned())
        }
        TaskStatus::Failed => Err(task.error.map_or_else(String::new, describe_error)),
        TaskStatus::Cancelled => Err("The run was stopped.".to_owned()),
        TaskStatus::Working | TaskStatus::InputRequired => {
            let said = tasks.log_text(&named.run).unwrap_or_default();
            Ok(CallToolResult::text(match said.is_empty() {
                true => "The run is still going and has printed nothing so far.".to_owned(),
                false => format!("The run is still going. Its output so far:\n{said}"),
            }))
        }
    }
}

async fn stop(
    tasks: Arc<Tasks>,
    named: RunArguments,
    context: CallContext,
) -> Result<&'static str, String> {
    find_run(&tasks, &named.run, &context).await?;
    let stopped = tasks
        .cancel(&named.run, &context.request().peer.principal)
        .await;
    stopped.map_err(describe_error)?;
    Ok("The run will stop, unless it has already ended.")
}

fn task_result(task: &DetailedTask) -> Option<CallToolResult> {
    serde_json::from_str(task.result.as_ref()?.get()).ok()
}

async fn find_run(tasks: &Tasks, id: &str, context: &CallContext) -> Result<RunStatus, String> {
    let stored = tasks
        .stored_task(id, &context.request().peer.principal)
        .await;
    let stored = stored
        .map_err(describe_error)?
        .ok_or_else(|| unknown_run_message(id))?;
    Ok(RunStatus::new(&stored, tasks))
}

fn unknown_run_message(run: &str) -> String {
    format!("There is no run `{run}`, or it has expired; runs_list lists the current runs.")
}

/// Formats an error as a sentence.
fn describe_error(error: ErrorObject) -> String {
    format!(
        "It failed: {}.",
        input_rounds::message_without_capabilities(error)
    )
}
