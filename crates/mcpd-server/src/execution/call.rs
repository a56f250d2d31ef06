//! Call of a script for any method, from the check of capabilities and arguments through its runs
//! to the result. Contains the error messages of calls that did not run.

use std::borrow::Cow;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpd_exec::{Outcome, StartError};
use mcpd_protocol::Wire;
use mcpd_protocol::jsonrpc::{ErrorCode, ErrorObject};
use mcpd_protocol::method::{CallToolResult, Interactive};
use mcpd_scriptspec::ScriptPath;
use serde_json::value::RawValue;

use crate::client::request::context::Context;
use crate::execution::archive::CallArchive;
use crate::execution::client_directory;
use crate::execution::elsewhere::KeptAt;
use crate::execution::engine::Engine;
use crate::execution::input_rounds::{self, Binding, CallFailure, Resumption, RunResult};
use crate::execution::output;
use crate::execution::run::{self, Input, Purpose};
use crate::limits::rate_limit::retry_later_error;
use crate::limits::run_queue::{Busy, busy_error};
use crate::message::arguments::{INVALID_ARGUMENTS, describe_faults, invalid_arguments};
use crate::message::call::CallStart;
use crate::observe::ending::RunError;
use crate::remote::NotRun;
use crate::script::Script;
use crate::support::error_chain::chain;
use crate::support::random_id;
use crate::support::sync::lock;

/// Valid call: the client has the required capabilities, and the arguments are valid.
#[derive(Debug)]
pub(crate) struct ScriptCall {
    engine: Arc<Engine>,
    script: Arc<Script>,
    method: &'static str,
    /// Path or URI in the request.
    name: String,
    /// Unguessable.
    id: String,
    input: Input,
    context: Context,
    /// Where the outputs of the last run are, if that is not here.
    kept_at: Mutex<Option<KeptAt>>,
}

/// Reason for rejecting a call.
#[derive(Debug)]
pub(crate) enum CallRejection {
    /// The client lacks a capability.
    Capability(ErrorObject),
    /// The arguments are invalid.
    Arguments(String),
}

impl CallRejection {
    /// Returns the error for methods whose result cannot express it.
    pub(crate) fn into_error(self, wire: Wire) -> ErrorObject {
        match (self, wire) {
            (Self::Arguments(faults), _) => {
                ErrorObject::invalid_params(format!("{INVALID_ARGUMENTS}{faults}"))
            }
            (Self::Capability(error), Wire::Stateless) => error,
            // The stateful wire has no such code.
            (Self::Capability(mut error), Wire::Stateful) => {
                error.code = ErrorCode::INVALID_REQUEST;
                error
            }
        }
    }
}

impl ScriptCall {
    /// Checks everything that can be checked before a run.
    ///
    /// # Errors
    ///
    /// See [`CallRejection`].
    pub(crate) fn new(
        engine: &Arc<Engine>,
        script: &Arc<Script>,
        (method, name): (&'static str, &str),
        arguments: Option<&RawValue>,
        context: &Context,
    ) -> Result<Self, CallRejection> {
        if let Some(required) = &script.required {
            input_rounds::require_capabilities(&context.capabilities, required)
                .inspect_err(|_| context.record.set_outcome("missing-capability"))
                .map_err(CallRejection::Capability)?;
        }
        let script = &script.for_caller(&context.peer.principal);
        let arguments = accepted_arguments(script, arguments).map_err(CallRejection::Arguments)?;
        let invocation = script
            .spec
            .invocation_with_env(&|name| script.policy.variable(name), arguments.as_deref())
            .map_err(|faults| CallRejection::Arguments(describe_faults(&faults)))?;
        let id = random_id::new();
        context.record.set_call_id(&id);
        Ok(Self {
            engine: Arc::clone(engine),
            script: Arc::clone(script),
            method,
            name: name.to_owned(),
            id,
            input: Input::new(script, arguments.as_deref(), invocation),
            context: context.clone(),
            kept_at: Mutex::default(),
        })
    }

    /// Archive for long outputs of the script, as it runs for this request.
    fn archive(&self, script: &Script) -> CallArchive {
        let policy = &script.policy;
        CallArchive::new(&self.engine.archive, &self.context, policy, self.id.clone())
            .kept_at(lock(&self.kept_at).clone())
    }

    /// Runs the script until there is a result, which `interpret` extracts from its output.
    ///
    /// # Errors
    ///
    /// See [`CallFailure`].
    pub(crate) async fn run_to_result<R, F>(
        &self,
        resumption: Resumption,
        interpret: impl Fn(Arc<Script>, Outcome) -> F,
    ) -> Result<Interactive<R>, CallFailure>
    where
        F: Future<Output = RunResult<R>>,
    {
        let script = &self
            .script
            .for_request(&self.context)
            .await
            .map_err(CallFailure::NoResult)?;
        let purpose = Purpose {
            method: self.method,
            name: &self.name,
            call_id: &self.id,
        };
        let binding = Binding {
            principal: self.context.peer.principal.name(),
            method: self.method,
            name: &self.name,
            arguments: &self.input.stdin,
        };
        let run = async |round_input| {
            let (outcome, kept_at) = run::run_script(
                &self.engine,
                script,
                purpose,
                &self.input,
                &round_input,
                &self.context,
            )
            .await
            .map_err(|error| script.log_not_run(&error))?;
            *lock(&self.kept_at) = kept_at;
            Ok(interpret(Arc::clone(script), outcome).await)
        };
        input_rounds::run_rounds(&self.engine.seal, &self.context, binding, resumption, run).await
    }
}

/// Returns the arguments of a call as its script gets them: without ignored ones, and repaired for
/// a schema of the script's own.
///
/// # Errors
///
/// Returns the faults that the schema finds.
pub(crate) fn accepted_arguments<'a>(
    script: &Script,
    arguments: Option<&'a RawValue>,
) -> Result<Option<Cow<'a, RawValue>>, String> {
    let known = script.policy.drop_ignored(&script.spec, arguments);
    let arguments = known.map(Cow::Owned).or(arguments.map(Cow::Borrowed));
    let repaired = match &script.schemas.input {
        Some(schema) => schema.check_arguments(arguments.as_deref())?,
        None => None,
    };
    Ok(repaired.map(Cow::Owned).or(arguments))
}

/// Starts a call of a tool.
pub(crate) fn start_tool_call(
    engine: &Arc<Engine>,
    script: &Arc<Script>,
    arguments: Option<&RawValue>,
    resumption: Resumption,
    context: &Context,
) -> CallStart {
    let named = ("tools/call", script.path.as_str());
    match ScriptCall::new(engine, script, named, arguments, context) {
        Ok(call) => CallStart::Started(Box::pin(async move {
            let interpret = |script: Arc<Script>, outcome| {
                let archive = call.archive(&script);
                output::interpret(script, outcome, move |script, outcome| {
                    output::tool(script, outcome, &archive)
                })
            };
            match call.run_to_result(resumption, interpret).await {
                Ok(result) => Ok(result),
                Err(failure) => failure.into_tool_result().map(Interactive::from),
            }
        })),
        Err(CallRejection::Arguments(faults)) => {
            CallStart::reject(Ok(invalid_arguments(&faults).into()))
        }
        Err(CallRejection::Capability(error)) => CallStart::reject(match context.version.wire() {
            Wire::Stateless => Err(error),
            // The stateful wire has no such error; the model can at least report it to its user.
            Wire::Stateful => Ok(CallToolResult::error(error.message).into()),
        }),
    }
}

/// Logs why `name` did not run, unless the server is merely busy, and returns the failure for the
/// caller, which says whether a retry makes sense. `subject` names it to the caller, such as "The
/// command".
pub(crate) fn log_not_run(name: &ScriptPath, subject: &str, error: &RunError) -> CallFailure {
    let is_usual = match error {
        RunError::Busy(_) => true,
        RunError::Elsewhere(not_run) => not_run.is_usual(),
        _ => false,
    };
    if !is_usual {
        tracing::error!(tool = %name, "failed to {}", chain(error));
    }
    describe_not_run(subject, error)
}

/// Suggested retry delay for an executor that is shared with other users, and whose load is
/// unknown.
pub(crate) const SHARED_EXECUTOR_RETRY_DELAY: Duration = Duration::from_secs(1);

/// Returns the part of the failure that the caller may know.
pub(crate) fn describe_not_run(subject: &str, error: &RunError) -> CallFailure {
    CallFailure::NoResult(match error {
        RunError::Busy(busy) => return CallFailure::Error(busy_error(subject, *busy)),
        RunError::Start(StartError::Busy { queued, .. }) => {
            let busy = Busy::Server {
                waiting: *queued,
                wait: SHARED_EXECUTOR_RETRY_DELAY,
            };
            return CallFailure::Error(busy_error(subject, busy));
        }
        RunError::Start(StartError::Unenforceable { .. }) => format!(
            "{subject} was not run: this system cannot enforce its sandbox. The server's log has the details."
        ),
        RunError::Elsewhere(not_run) => return describe_not_run_elsewhere(subject, not_run),
        // As though it did not exist, which the next list will say.
        RunError::NotApproved(_) => format!("{subject} is not available any more."),
        RunError::Start(StartError::ShuttingDown) => "The server is shutting down.".to_owned(),
        _ => format!("{subject} could not be started. The reason is in the server's log."),
    })
}

/// Returns the part of a failure elsewhere that the caller may know.
fn describe_not_run_elsewhere(subject: &str, not_run: &NotRun) -> CallFailure {
    let retry_later = |reason: &str, milliseconds: u64| {
        let wait = Duration::from_millis(milliseconds);
        CallFailure::Error(retry_later_error(reason, wait))
    };
    CallFailure::NoResult(match not_run {
        NotRun::Busy { retry_after_ms } => {
            return retry_later("The servers for it are busy", *retry_after_ms);
        }
        NotRun::Unreachable { retry_after_ms } => {
            return retry_later("No server for it can be reached", *retry_after_ms);
        }
        NotRun::Draining => {
            let wait = SHARED_EXECUTOR_RETRY_DELAY;
            let reason = "The server for it is shutting down";
            return CallFailure::Error(retry_later_error(reason, wait));
        }
        NotRun::Lost { why } => {
            return CallFailure::Unknown(format!(
                "{subject} may have run: its end is not known, because {why}. Find out what it has done before you call it again."
            ));
        }
        NotRun::Arguments { faults } => format!("{INVALID_ARGUMENTS}{faults}"),
        NotRun::Denied { why } => format!("{subject} was not run: {why}."),
        NotRun::Level => format!(
            "{subject} was not run: no server can enforce its sandbox. The server's log has the details."
        ),
        NotRun::Digest => {
            let reason = format!("{subject} is not available any more.");
            return CallFailure::Replaced(reason);
        }
        NotRun::Unknown => format!("{subject} is not available any more."),
        _ => format!("{subject} could not be started. The reason is in the server's log."),
    })
}

impl Script {
    /// Returns the script as it runs for the request of `context`, with what that brings.
    ///
    /// # Errors
    ///
    /// The reason why a credential for its caller is missing, as a sentence.
    pub(crate) async fn for_request(
        self: &Arc<Self>,
        context: &Context,
    ) -> Result<Arc<Self>, String> {
        let peer = &context.peer;
        let script = match self.policy.client_directories() {
            Some(allowed) => {
                let directory = client_directory::of_client(context, allowed).await;
                let directory = directory.map_err(|why| {
                    tracing::warn!(tool = %self.path, principal = %peer.principal, "not run: {why}");
                    format!("The script `{}` was not run: {why}.", self.path)
                })?;
                &self.in_client_directory(directory)
            }
            None => self,
        };
        let with_secrets = script.with_secrets_of(&peer.principal, &peer.headers).await;
        with_secrets.map_err(|why| {
            tracing::error!(tool = %self.path, principal = %peer.principal, "not run: {why}");
            format!("The script `{}` was not run: {why}.", self.path)
        })
    }

    /// Logs why it did not run, and returns the failure for its caller.
    pub(crate) fn log_not_run(&self, error: &RunError) -> CallFailure {
        log_not_run(&self.path, &format!("The script `{}`", self.path), error)
    }
}
