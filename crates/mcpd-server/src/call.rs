//! One call of a script, whatever the method: capabilities and arguments → runs → result. What a caller
//! reads when there was no run to read about, it reads from here.

use std::sync::Arc;
use std::time::Duration;

use mcpd_exec::{Outcome, StartError};
use mcpd_protocol::jsonrpc::{ErrorCode, ErrorObject};
use mcpd_protocol::{CallToolResult, Interactive, JsonObject, Wire};
use mcpd_scriptspec::{ArgumentFault, ScriptPath};
use serde_json::value::RawValue;

use crate::Server;
use crate::archive::Shelf;
use crate::context::Context;
use crate::error::chain;
use crate::id;
use crate::interaction::{self, Binding, Brought, Failure, Produced};
use crate::output;
use crate::quota;
use crate::run::{self, Input, Purpose, RunError};
use crate::tool::{Called, Script};
use crate::turns::Busy;

/// How a caller is told that its arguments are wrong.
pub(crate) const INVALID_ARGUMENTS: &str = "Invalid arguments: ";

/// A call that can be made: the client has what the script requires, and the arguments are right.
#[derive(Debug)]
pub(crate) struct Call {
    server: Server,
    script: Arc<Script>,
    method: &'static str,
    /// What the request names: a path or a URI.
    name: String,
    /// Nobody can guess it.
    id: String,
    input: Input,
    context: Context,
}

/// Why a call can't be made.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The client lacks a capability.
    Capability(ErrorObject),
    /// What is wrong with the arguments.
    Arguments(String),
}

impl Refusal {
    /// The error, where no result could say it.
    pub(crate) fn into_error(self, wire: Wire) -> ErrorObject {
        match (self, wire) {
            (Self::Arguments(faults), _) => {
                ErrorObject::invalid_params(format!("{INVALID_ARGUMENTS}{faults}"))
            }
            (Self::Capability(error), Wire::Stateless) => error,
            // That wire has no such code.
            (Self::Capability(mut error), Wire::Stateful) => {
                error.code = ErrorCode::INVALID_REQUEST;
                error
            }
        }
    }
}

/// Hint beside an argument that a tool doesn't know.
const UNKNOWN_NAME: &str = "(If the client adds such an argument to every call by itself, the operator can have it \
                            left out: `[arguments] ignore` in mcpd.toml.)";

/// The text of the arguments of a call. Absent ones, and `null`, are an empty object.
pub(crate) fn text_of(arguments: Option<&RawValue>) -> &str {
    match arguments.map(RawValue::get) {
        None | Some("null") => "{}",
        Some(text) => text,
    }
}

/// The arguments of a caller that can give nothing but text.
pub(crate) fn arguments(
    texts: impl IntoIterator<Item = (impl Into<String>, String)>,
) -> JsonObject {
    let texts = texts.into_iter();
    texts
        .map(|(name, text)| (name.into(), text.into()))
        .collect()
}

impl Call {
    /// Checks everything that can be checked before a run.
    ///
    /// # Errors
    ///
    /// See [`Refusal`].
    pub(crate) fn new(
        server: &Server,
        script: &Arc<Script>,
        (method, name): (&'static str, &str),
        arguments: Option<&RawValue>,
        context: &Context,
    ) -> Result<Self, Refusal> {
        if let Some(required) = &script.required {
            interaction::require(&context.capabilities, required)
                .inspect_err(|_| context.trail.ended_as("missing-capability"))
                .map_err(Refusal::Capability)?;
        }
        let known = script.terms.without_ignored(&script.spec, arguments);
        let arguments = known.as_deref().or(arguments);
        let repaired = match &script.schemas.input {
            Some(schema) => schema
                .check_arguments(arguments)
                .map_err(Refusal::Arguments)?,
            None => None,
        };
        let arguments = repaired.as_deref().or(arguments);
        let invocation = script
            .spec
            .invocation_in(&|name| script.terms.variable(name), arguments)
            .map_err(|faults| Refusal::Arguments(told(&faults)))?;
        let id = id::random();
        context.trail.has_id(&id);
        Ok(Self {
            server: server.clone(),
            script: Arc::clone(script),
            method,
            name: name.to_owned(),
            id,
            input: Input::new(script, invocation),
            context: context.clone(),
        })
    }

    /// Where long outputs of the script go.
    fn shelf(&self) -> Shelf {
        let terms = &self.script.terms;
        Shelf::new(&self.server, &self.context, terms, self.id.clone())
    }

    /// Runs the script until there is a result, which `interpret` finds in what it printed.
    ///
    /// # Errors
    ///
    /// See [`Failure`].
    pub(crate) async fn result<R, F>(
        &self,
        brought: Brought,
        interpret: impl Fn(Arc<Script>, Outcome) -> F,
    ) -> Result<Interactive<R>, Failure>
    where
        F: Future<Output = Produced<R>>,
    {
        let purpose = Purpose {
            method: self.method,
            name: &self.name,
            call_id: &self.id,
        };
        let binding = Binding {
            principal: self.context.principal.name(),
            method: self.method,
            name: &self.name,
            arguments: &self.input.stdin,
        };
        let run = async |answers| {
            let outcome = run::run(
                &self.server,
                &self.script,
                purpose,
                &self.input,
                &answers,
                &self.context,
            )
            .await
            .map_err(|error| self.script.not_run(&error))?;
            Ok(interpret(Arc::clone(&self.script), outcome).await)
        };
        interaction::interact(&self.server, &self.context, binding, brought, run).await
    }
}

/// Starts a call of a tool.
pub(crate) fn start(
    server: &Server,
    script: &Arc<Script>,
    arguments: Option<&RawValue>,
    brought: Brought,
    context: &Context,
) -> Called {
    let named = ("tools/call", script.path.as_str());
    match Call::new(server, script, named, arguments, context) {
        Ok(call) => Called::Started(Box::pin(tool_result(call, brought))),
        Err(Refusal::Arguments(faults)) => Called::refused(Ok(invalid_arguments(&faults).into())),
        Err(Refusal::Capability(error)) => Called::refused(match context.version.wire() {
            Wire::Stateless => Err(error),
            // That wire has no such error; the model can at least tell its user.
            Wire::Stateful => Ok(CallToolResult::error(error.message).into()),
        }),
    }
}

async fn tool_result(
    call: Call,
    brought: Brought,
) -> Result<Interactive<CallToolResult>, ErrorObject> {
    let shelf = call.shelf();
    let interpret = |script, outcome| output::tool_result(script, outcome, shelf.clone());
    match call.result(brought, interpret).await {
        Ok(result) => Ok(result),
        Err(failure) => failure.told_by_tool().map(Interactive::from),
    }
}

/// Why `name` did not run. The operator learns why and where, unless it is no more than that there is too much to do;
/// the caller only that, and whether trying again makes sense. `subject` is what the caller knows it as, such as
/// "The command".
pub(crate) fn not_run(name: &ScriptPath, subject: &str, error: &RunError) -> Failure {
    if !matches!(error, RunError::Busy(_)) {
        tracing::error!(tool = %name, "failed to {}", chain(error));
    }
    told_of(subject, error)
}

/// How long to wait for an executor that others use as well, of whose turns nothing is known.
const SHARED_WAIT: Duration = Duration::from_secs(1);

/// What the caller may know of that.
pub(crate) fn told_of(subject: &str, error: &RunError) -> Failure {
    Failure::NoResult(match error {
        RunError::Busy(busy) => return Failure::Error(busy_with(subject, *busy)),
        RunError::Start(StartError::Busy { queued, .. }) => {
            let busy = Busy::All {
                waiting: *queued,
                wait: SHARED_WAIT,
            };
            return Failure::Error(busy_with(subject, busy));
        }
        RunError::Start(StartError::Unenforceable { .. }) => format!(
            "{subject} can't be run safely here: this system lacks something that confines it. The log says what."
        ),
        RunError::Start(StartError::ShuttingDown) => "The server is shutting down.".to_owned(),
        _ => format!("{subject} could not be started. The log says why."),
    })
}

/// That there is too much to do already. It is no result: whoever made the call can wait, and no model needs to know.
pub(crate) fn busy_with(subject: &str, busy: Busy) -> ErrorObject {
    let (reason, wait) = match busy {
        Busy::Lane { waiting, wait } => {
            let reason = format!("{subject} is busy: {waiting} calls of it are waiting already");
            (reason, wait)
        }
        Busy::All { waiting, wait } => {
            let reason = format!("The server is busy: {waiting} calls are waiting already");
            (reason, wait)
        }
    };
    quota::try_again(&reason, wait)
}

impl Script {
    /// Why it did not run, for its caller.
    pub(crate) fn not_run(&self, error: &RunError) -> Failure {
        not_run(&self.path, &format!("The script `{}`", self.path), error)
    }
}

/// Every fault on a line of its own.
pub(crate) fn told(faults: &[ArgumentFault]) -> String {
    let mut lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
    if faults.iter().any(ArgumentFault::is_unknown_name) {
        lines.push(UNKNOWN_NAME.to_owned());
    }
    lines.join("\n")
}

/// "Input validation errors" are results, so that the model can mend its call
/// -- 2026-07-28/server/tools#error-handling
pub(crate) fn invalid_arguments(faults: &str) -> CallToolResult {
    CallToolResult::error(format!("{INVALID_ARGUMENTS}{faults}"))
}
