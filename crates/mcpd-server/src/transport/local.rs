//! Requests of a program to a server in its own process. They are sent and answered as those of any
//! other client, so that the program sees what a model will see.

use mcpd_protocol::jsonrpc::{self, ErrorObject, Message, Notification, RequestId};
use mcpd_protocol::method::{
    CallToolRequest, CallToolRequestParams, CallToolResult, Interactive, LoggingLevel,
    TASKS_EXTENSION,
};
use mcpd_protocol::{ClientCapabilities, Method, ProtocolVersion, meta};
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use crate::message::tool_names::ToolNames;
use crate::policy::Approval;
use crate::policy::principal::Principal;
use crate::server::Server;
use crate::transport::connection::{Connection, Reply};

/// Reason why a request has no answer that its sender can read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The parameters can't be encoded.
    #[error("encode the request")]
    Encode(#[source] serde_json::Error),
    /// The server ended first.
    #[error("receive a response")]
    NoResponse,
    /// The answer is no response.
    #[error("read the response: the message is not a response")]
    NotAResponse,
    /// The result has another type.
    #[error("read the response")]
    Result(#[source] serde_json::Error),
    /// The answer of a person can't be encoded.
    #[error("encode the answer of a person")]
    Approval(#[source] serde_json::Error),
    /// The answer is a question.
    #[error("run the script: it asks for input, which this command cannot give")]
    AsksForInput,
}

/// Sends one request as `principal` and waits for its result, or the error that is its answer;
/// `notified` gets the notifications before it.
///
/// # Errors
///
/// There is no answer, or it is a question.
///
/// # Cancel safety
///
/// Dropping the future cancels the request and ends its script.
pub async fn request<M, R>(
    server: &Server,
    principal: Principal,
    params: &M::Params,
    notified: impl Fn(&Notification<'_>) + Send + Sync + 'static,
) -> Result<Result<R, ErrorObject>, RequestError>
where
    M: Method<Result = Interactive<R>>,
    R: DeserializeOwned,
{
    complete(exchange::<M, R>(server, principal, params, notified).await?)
}

/// Calls a tool as [`request`] does. If a person must [approve](Approval) the call, and `_meta`
/// says that one can, `approve` gets the question and returns whether the call may run.
///
/// # Errors
///
/// As [`request`].
///
/// # Cancel safety
///
/// As [`request`].
pub async fn call(
    server: &Server,
    principal: Principal,
    params: &CallToolRequestParams,
    notified: impl Fn(&Notification<'_>) + Clone + Send + Sync + 'static,
    approve: impl FnOnce(&str) -> bool,
) -> Result<Result<CallToolResult, ErrorObject>, RequestError> {
    let send = exchange::<CallToolRequest, CallToolResult>;
    let first = send(server, principal.clone(), params, notified.clone()).await?;
    let Ok(Interactive::InputRequired(asked)) = &first else {
        return complete(first);
    };
    let questions = asked.input_requests.as_ref();
    let Some(question) = questions.and_then(|all| all.get(Approval::QUESTION_KEY)) else {
        return complete(first);
    };
    let form = question.params.as_deref().map_or("{}", RawValue::get);
    let form: Value = serde_json::from_str(form).map_err(RequestError::Result)?;
    let is_approved = approve(form["message"].as_str().unwrap_or_default());
    let answer = json!({"action": if is_approved { "accept" } else { "decline" }});
    let answer = to_raw_value(&answer).map_err(RequestError::Approval)?;
    let mut params = params.clone();
    params.input_responses = Some([(Approval::QUESTION_KEY.to_owned(), answer)].into());
    params.request_state.clone_from(&asked.request_state);
    complete(exchange::<CallToolRequest, _>(server, principal, &params, notified).await?)
}

fn complete<R>(
    result: Result<Interactive<R>, ErrorObject>,
) -> Result<Result<R, ErrorObject>, RequestError> {
    match result {
        Ok(Interactive::Complete(result)) => Ok(Ok(result)),
        Ok(_) => Err(RequestError::AsksForInput),
        Err(error) => Ok(Err(error)),
    }
}

/// Sends one request, and returns its result or the questions in its place.
async fn exchange<M, R>(
    server: &Server,
    principal: Principal,
    params: &M::Params,
    notified: impl Fn(&Notification<'_>) + Send + Sync + 'static,
) -> Result<Result<Interactive<R>, ErrorObject>, RequestError>
where
    M: Method<Result = Interactive<R>>,
    R: DeserializeOwned,
{
    let heard = move |message: &[u8]| {
        if let Ok(Message::Notification(notification)) = Message::decode(message) {
            notified(&notification);
        }
    };
    let connection = Connection::open_with(principal, server, ToolNames::Path, heard);
    let id = RequestId::from(1);
    let message = jsonrpc::request(&id, M::NAME, params).map_err(RequestError::Encode)?;
    let answer = match connection.receive(&message) {
        Reply::Ready(answer) => Some(answer),
        Reply::Pending(answer) => answer.await,
        Reply::Nothing => None,
    };
    read::<M, R>(&answer.ok_or(RequestError::NoResponse)?)
}

fn read<M, R>(answer: &[u8]) -> Result<Result<Interactive<R>, ErrorObject>, RequestError>
where
    M: Method<Result = Interactive<R>>,
    R: DeserializeOwned,
{
    let Ok(Message::Response(response)) = Message::decode(answer) else {
        return Err(RequestError::NotAResponse);
    };
    let result = match response.outcome {
        Ok(result) => result,
        Err(error) => return Ok(Err(error)),
    };
    let result = serde_json::from_str::<M::Result>(result.get());
    result.map(Ok).map_err(RequestError::Result)
}

/// The `_meta` of a request of the program `name`, for progress and log messages from `level` on.
#[must_use]
pub fn envelope(name: &str, version: &str, level: LoggingLevel) -> Box<RawValue> {
    // A one-shot client waits for its calls, and its server has no tasks.
    let capabilities = ClientCapabilities::of_extension(TASKS_EXTENSION);
    envelope_with(name, version, level, &capabilities)
}

/// The `_meta` of [`envelope`] for a [`call`] that a person can approve.
#[must_use]
pub fn envelope_with_approval(name: &str, version: &str, level: LoggingLevel) -> Box<RawValue> {
    let mut capabilities = ClientCapabilities::of_extension(TASKS_EXTENSION);
    let elicitation = capabilities.elicitation.get_or_insert_default();
    elicitation.form.get_or_insert_default();
    envelope_with(name, version, level, &capabilities)
}

fn envelope_with(
    name: &str,
    version: &str,
    level: LoggingLevel,
    capabilities: &ClientCapabilities,
) -> Box<RawValue> {
    let meta = json!({
        meta::PROTOCOL_VERSION: ProtocolVersion::LATEST.as_str(),
        meta::CLIENT_CAPABILITIES: capabilities,
        meta::CLIENT_INFO: {"name": name, "version": version},
        meta::LOG_LEVEL: level,
        meta::PROGRESS_TOKEN: 1,
    });
    to_raw_value(&meta).expect("a JSON value has string keys only")
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use mcpd_protocol::NotificationMethod as _;
    use mcpd_protocol::method::LoggingMessageNotification;

    use super::*;

    const LOUD: &str = r#"#!/bin/sh
if [ "$1" = --help ]; then
  echo '{"description": "says much at once"}'
  exit 0
fi
seq 1 5000 >lines
cat lines >&2
"#;

    #[tokio::test]
    async fn simultaneous_notifications_are_all_delivered() {
        let root = tempfile::tempdir().unwrap();
        let script = root.path().join("loud");
        fs::write(&script, LOUD).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        let server = Server::builder().scripts(root.path()).watch(false);
        let server = server.start().unwrap();
        server.catalog_ready().await;
        let mut params = CallToolRequestParams::new("loud");
        params.meta = Some(envelope("test", "1.0", LoggingLevel::Info));
        let heard = Arc::new(AtomicUsize::new(0));
        let count = {
            let heard = Arc::clone(&heard);
            move |message: &Notification<'_>| {
                if message.method == LoggingMessageNotification::NAME {
                    heard.fetch_add(1, Ordering::Relaxed);
                }
            }
        };
        let call = request::<CallToolRequest, CallToolResult>;
        let answer = call(&server, Principal::local(), &params, count).await;
        answer.unwrap().unwrap();
        assert_eq!(heard.load(Ordering::Relaxed), 5000);
    }
}
