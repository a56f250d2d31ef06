//! Tools of an action endpoint as tools of this server: descriptors become definitions, and calls
//! become requests.

use std::sync::Arc;

use mcpd_protocol as protocol;
use mcpd_protocol::jsonrpc::ErrorObject;
use mcpd_protocol::method::CallToolResult;
use mcpd_scriptspec::{OutputFormat, PathError, ScriptPath};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::OWN_OBJECT;
use super::client::{EndpointAnswer, EndpointClient, EndpointRequest, NoAnswer};
use super::descriptor::{COMMAND, RESULT_SCHEMA, SAFETY};
use super::safety;
use crate::catalog::call::CallContext;
use crate::catalog::source::{Offer, below};
use crate::execution::input_rounds::CallFailure;
use crate::execution::output::exit_result;
use crate::execution::relay::ProgramKind;
use crate::execution::run::{self, Job};
use crate::message::arguments::invalid_arguments;
use crate::message::raw::raw;
use crate::policy::EffectivePolicy;
use crate::script::schema::Schema;

/// Descriptor from an endpoint. Only the name is required.
#[derive(Debug, Deserialize)]
struct RemoteDescriptor {
    name: String,
    description: Option<String>,
    command: Option<String>,
    safety: Option<String>,
    input_schema: Option<Value>,
    result_schema: Option<Value>,
}

/// Tool of an endpoint.
#[derive(Debug)]
struct EndpointTool {
    client: Arc<EndpointClient>,
    /// Name at the endpoint.
    name: String,
    path: ScriptPath,
    schema: Schema,
    policy: EffectivePolicy,
}

/// Result of an endpoint that runs commands, as mcpd's own does.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CommandResult {
    stdout: String,
    exit_code: f64,
}

/// Adds the tools of a list to `offer`, below `prefix`. An unusable entry is a fault; the others
/// are served.
pub(super) fn fill(offer: &mut Offer, client: &Arc<EndpointClient>, prefix: &str, list: &RawValue) {
    let entries: Vec<&RawValue> = match serde_json::from_str(list.get()) {
        Ok(entries) => entries,
        Err(_) => return offer.fault("sent a list of tools that is not an array"),
    };
    for entry in entries {
        match serde_json::from_str(entry.get()) {
            Ok(described) => add(offer, client, prefix, described),
            Err(error) => offer.fault(format!("has a tool with an invalid description: {error}")),
        }
    }
}

fn add(offer: &mut Offer, client: &Arc<EndpointClient>, prefix: &str, described: RemoteDescriptor) {
    let path = below(prefix, &described.name);
    let schema = described.input_schema.as_ref();
    let schema = schema.cloned().unwrap_or_else(|| json!({"type": "object"}));
    match EndpointTool::new(client, &described.name, &path, &schema) {
        Ok(tool) => {
            let tool = Arc::new(tool);
            offer.tool(
                &path,
                definition(described, &schema),
                move |arguments, context| {
                    let tool = Arc::clone(&tool);
                    async move { tool.call(&arguments, context).await }
                },
            );
        }
        Err(reason) => offer.unservable("tool", &path, &reason),
    }
}

fn definition(described: RemoteDescriptor, schema: &Value) -> protocol::method::Tool {
    let mut definition = protocol::method::Tool::new(described.name, raw(schema));
    definition.description = described.description;
    definition.annotations = described.safety.as_deref().and_then(safety::read);
    let members = [
        (COMMAND, described.command.map(Value::from)),
        (SAFETY, described.safety.map(Value::from)),
        (RESULT_SCHEMA, described.result_schema),
    ];
    let meta = definition.meta.get_or_insert_default();
    for (key, value) in members {
        if let Some(value) = value {
            meta.insert(key.to_owned(), value);
        }
    }
    definition
}

impl EndpointTool {
    fn new(
        client: &Arc<EndpointClient>,
        name: &str,
        path: &str,
        schema: &Value,
    ) -> Result<Self, String> {
        let path: ScriptPath = path.parse().map_err(|error: PathError| error.to_string())?;
        let wrong = |reason| format!("its `input_schema`: {reason}");
        Ok(Self {
            client: Arc::clone(client),
            name: name.to_owned(),
            schema: Schema::compile(schema).map_err(wrong)?,
            policy: client.policy_for(&path),
            path,
        })
    }

    /// Calls the tool. A failure is a result as well, because the model that wrote the call
    /// should read it.
    async fn call(
        &self,
        arguments: &RawValue,
        context: CallContext,
    ) -> Result<CallToolResult, ErrorObject> {
        let repaired = match self.schema.check_arguments(Some(arguments)) {
            Ok(repaired) => repaired,
            Err(faults) => return Ok(invalid_arguments(&faults)),
        };
        let arguments = repaired.as_deref().unwrap_or(arguments);
        let answer = self.ask(arguments, context).await;
        let readable = |text| self.policy.redact_for_terminal(text);
        answer.and_then(|answer| result(answer, readable)).or_else(|no_answer| {
            let NoAnswer { failure, reason } = no_answer;
            if let CallFailure::NoResult(_) = failure {
                tracing::warn!(tool = %self.path, "{} returned no result: {reason}", self.client.name);
            }
            failure.into_tool_result()
        })
    }

    async fn ask(
        &self,
        arguments: &RawValue,
        context: CallContext,
    ) -> Result<EndpointAnswer, NoAnswer> {
        let request = context.request();
        let message = EndpointRequest {
            action: "call_tool",
            tool: Some(&self.name),
            arguments: Some(arguments),
        };
        let command = self.client.command(&self.policy, &message);
        let job = Job {
            path: &self.path,
            policy: &self.policy,
            format: OutputFormat::Json,
            kind: Some(ProgramKind::Script),
            exit: None,
            version_check: None,
        };
        let ended = run::run(&context.host().engine, request, job, command).await;
        self.client.answer(&ended?)
    }
}

/// Converts the answer for the caller: the output of a command becomes text; any other object is
/// also passed on unchanged.
fn result(
    answer: EndpointAnswer,
    readable: impl FnOnce(String) -> String,
) -> Result<CallToolResult, NoAnswer> {
    let result = answer.result.filter(|result| result.get().starts_with('{'));
    let result = result.ok_or_else(|| NoAnswer::new("its `result` is not an object".to_owned()))?;
    if let Ok(CommandResult { stdout, exit_code }) = serde_json::from_str(result.get()) {
        return Ok(exit_result(readable(stdout), process_code(exit_code)));
    }
    let mut shown = CallToolResult::text(result.get());
    shown.structured_content = Some(result);
    let mark = (OWN_OBJECT.to_owned(), json!(true));
    shown.meta.other.extend([mark]);
    Ok(shown)
}

/// Converts an exit code to 32 bits, the size of a process's: a code of Windows may be written
/// without its sign. Every number but 0 stays a failure.
fn process_code(number: f64) -> i32 {
    match number as i64 as i32 {
        0 if number != 0.0 => -1,
        code => code,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(exit_code: &str, code: Option<i32>) {
        let answer =
            format!(r#"{{"type":"result","result":{{"stdout":"x","exit_code":{exit_code}}}}}"#);
        let answer = serde_json::from_str(&answer).unwrap();
        let shown = result(answer, |text| text).unwrap();
        assert_eq!(shown.is_error, Some(code.is_some()), "{exit_code}");
        assert!(shown.structured_content.is_none(), "{exit_code}");
        let exit = shown.meta.other.get("mcpd/exit");
        let exit = exit.map(|exit| exit["code"].clone());
        assert_eq!(exit, code.map(|code| json!(code)), "{exit_code}");
    }

    #[test]
    fn nonzero_exit_code_is_a_failure() {
        check("0", None);
        check("0.0", None);
        check("1", Some(1));
        check("1.0", Some(1));
        check("-1", Some(-1));
        check("3221225477", Some(-1_073_741_819));
        check("4294967296", Some(-1));
        check("0.5", Some(-1));
        check("1e300", Some(-1));
    }
}
