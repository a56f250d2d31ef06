//! One call of a script: arguments → run → result.

use std::sync::Arc;

use mcpd_exec::StartError;
use mcpd_protocol::jsonrpc::ErrorObject;
use mcpd_protocol::{CallToolResult, Interactive, Wire};
use serde_json::value::RawValue;

use crate::Server;
use crate::context::Context;
use crate::interaction::{self, Binding, Brought, Failure, Produced};
use crate::output;
use crate::run::{self, Input, Purpose, RunError};
use crate::tool::{Run, Script};

const METHOD: &str = "tools/call";

/// Checks the arguments and, if they are right, gives the future of the result.
pub(crate) fn start(
    server: &Server,
    script: &Arc<Script>,
    arguments: Option<&RawValue>,
    brought: Brought,
    context: &Context,
) -> Run {
    let now = |result| Box::pin(std::future::ready(result)) as Run;
    if let Err(error) = interaction::require(&context.capabilities, &script.required) {
        return now(match context.version.wire() {
            Wire::Stateless => Err(error),
            // That wire has no such error; the model can at least tell its user.
            Wire::Stateful => Ok(CallToolResult::error(error.message).into()),
        });
    }
    match script.spec.invocation(arguments) {
        Ok(invocation) => {
            let call = Call {
                server: server.clone(),
                script: Arc::clone(script),
                input: Input::from(invocation),
                context: context.clone(),
            };
            Box::pin(call.result(brought))
        }
        Err(faults) => {
            let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
            now(Ok(invalid_arguments(&lines.join("\n")).into()))
        }
    }
}

/// A call whose arguments are right.
struct Call {
    server: Server,
    script: Arc<Script>,
    input: Input,
    context: Context,
}

impl Call {
    async fn result(self, brought: Brought) -> Result<Interactive<CallToolResult>, ErrorObject> {
        let name = self.script.path.as_str();
        let binding = Binding::new(METHOD, name, &self.input.stdin);
        let run = async |answers| {
            let purpose = Purpose {
                method: METHOD,
                name,
            };
            match run::run(
                &self.server,
                &self.script,
                purpose,
                &self.input,
                &answers,
                &self.context,
            )
            .await
            {
                Ok(outcome) => output::tool_result(&self.script, &outcome).await,
                Err(error) => Produced::Complete(not_run(&self.script, &error)),
            }
        };
        match interaction::interact(&self.server, &self.context, binding, brought, run).await {
            Ok(result) => Ok(result),
            Err(Failure::Error(error)) => Err(error),
            Err(Failure::Unanswered(reason)) => Ok(CallToolResult::error(reason).into()),
        }
    }
}

/// The operator learns why and where; the model only that, and whether trying again makes sense.
fn not_run(script: &Script, error: &RunError) -> CallToolResult {
    tracing::error!(script = %script.path, "failed to {error}");
    CallToolResult::error(match error {
        RunError::Start(StartError::Busy { queued, .. }) => {
            format!(
                "The server is busy: {queued} calls are waiting already. Try again in a few seconds."
            )
        }
        RunError::Start(StartError::ShuttingDown) => "The server is shutting down.".to_owned(),
        _ => format!(
            "The script `{}` could not be started. The server's log says why.",
            script.path
        ),
    })
}

/// "Input validation errors" are results, so that the model can mend its call
/// -- 2026-07-28/server/tools#error-handling
pub(crate) fn invalid_arguments(faults: &str) -> CallToolResult {
    CallToolResult::error(format!("Invalid arguments: {faults}"))
}
