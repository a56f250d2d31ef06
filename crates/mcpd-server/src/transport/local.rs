//! Requests of a program to a server in its own process. They are sent and answered as those of any
//! other client, so that the program sees what a model will see.

use mcpd_protocol::jsonrpc::{self, ErrorObject, Message, Notification, RequestId};
use mcpd_protocol::method::{Interactive, LoggingLevel, TASKS_EXTENSION};
use mcpd_protocol::{ClientCapabilities, Method, ProtocolVersion, meta};
use serde::de::DeserializeOwned;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use crate::message::tool_names::ToolNames;
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

fn read<M, R>(answer: &[u8]) -> Result<Result<R, ErrorObject>, RequestError>
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
    match serde_json::from_str::<M::Result>(result.get()).map_err(RequestError::Result)? {
        Interactive::Complete(result) => Ok(Ok(result)),
        _ => Err(RequestError::AsksForInput),
    }
}

/// The `_meta` of a request of the program `name`, for progress and log messages from `level` on.
#[must_use]
pub fn envelope(name: &str, version: &str, level: LoggingLevel) -> Box<RawValue> {
    let meta = json!({
        meta::PROTOCOL_VERSION: ProtocolVersion::LATEST.as_str(),
        // A one-shot client waits for its calls, and its server has no tasks.
        meta::CLIENT_CAPABILITIES: ClientCapabilities::of_extension(TASKS_EXTENSION),
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
    use mcpd_protocol::method::{
        CallToolRequest, CallToolRequestParams, CallToolResult, LoggingMessageNotification,
    };

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
