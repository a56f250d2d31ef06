//! Client of a server in this process. It sends and receives what any other client does, so a call
//! from the shell shows what a model will see.

use std::borrow::Cow;

use anyhow::{Context as _, bail};
use mcpd_protocol::jsonrpc::{self, ErrorCode, ErrorObject, Message, Notification, RequestId};
use mcpd_protocol::method::{Interactive, LoggingLevel, TASKS_EXTENSION};
use mcpd_protocol::{ClientCapabilities, Method, ProtocolVersion, meta};
use mcpd_server::{Connection, Principal, Reply, Server, ToolNames};
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

/// Sends one request as `principal` and waits for its result; `notified` gets
/// the notifications before it.
pub(crate) async fn request<M, R>(
    server: &Server,
    principal: Principal,
    params: &M::Params,
    notified: impl Fn(&Notification<'_>) + Send + Sync + 'static,
) -> anyhow::Result<Result<R, ErrorObject>>
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
    let message =
        jsonrpc::request(&RequestId::from(1), M::NAME, params).context("encode the request")?;
    let answer = match connection.receive(&message) {
        Reply::Ready(answer) => Some(answer),
        Reply::Pending(answer) => answer.await,
        Reply::Nothing => None,
    };
    read::<M, R>(&answer.context("receive a response")?)
}

fn read<M, R>(answer: &[u8]) -> anyhow::Result<Result<R, ErrorObject>>
where
    M: Method<Result = Interactive<R>>,
    R: DeserializeOwned,
{
    let Ok(Message::Response(response)) = Message::decode(answer) else {
        bail!("read the response: the message is not a response");
    };
    let result = match response.outcome {
        Ok(result) => result,
        Err(error) => return Ok(Err(error)),
    };
    match serde_json::from_str::<M::Result>(result.get()).context("read the response")? {
        Interactive::Complete(result) => Ok(Ok(result)),
        _ => bail!("run the script: it asks for input, which this command cannot give"),
    }
}

/// Error text for people, who can't declare a capability.
pub(crate) fn error_text(error: ErrorObject) -> Cow<'static, str> {
    if error.code != ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY {
        return error.message;
    }
    let data = error.data.as_deref().map(RawValue::get);
    let data: Value = serde_json::from_str(data.unwrap_or_default()).unwrap_or_default();
    let missing = data["requiredCapabilities"].as_object();
    let missing = missing.into_iter().flat_map(Map::keys);
    let missing: Vec<_> = missing.map(|name| format!("`{name}`")).collect();
    let missing = missing.join(" and ");
    format!("the script requires {missing}, which this command does not support").into()
}

/// The `_meta` of a request for progress and log messages from `level` on.
pub(crate) fn envelope(level: LoggingLevel) -> Box<RawValue> {
    let meta = json!({
        meta::PROTOCOL_VERSION: ProtocolVersion::LATEST.as_str(),
        // A one-shot client waits for its calls, and its server has no tasks.
        meta::CLIENT_CAPABILITIES: ClientCapabilities::of_extension(TASKS_EXTENSION),
        meta::CLIENT_INFO: {"name": "mcpd", "version": env!("CARGO_PKG_VERSION")},
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
        params.meta = Some(envelope(LoggingLevel::Info));
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
