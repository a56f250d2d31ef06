//! Tool call as an event stream, `POST /events/TOOL`, for clients without MCP: `progress`,
//! `output`, `error` and `complete`, each with one JSON object.

use std::fmt;
use std::future::ready;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode};
use mcpd_protocol::jsonrpc::{
    ErrorObject, Message, Notification, Request as RpcRequest, RequestId,
};
use mcpd_protocol::method::LoggingLevel;
use mcpd_protocol::{ProtocolVersion, meta};
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::events::{self, Events};
use super::headers;
use super::ongoing;
use super::reply::{self, ResponseBody};
use super::router::{self, Client, Router};
use crate::execution::input_rounds;
use crate::limits::rate_limit;
use crate::message::raw::raw;
use crate::message::tool_names::ToolNames;
use crate::message::trace::TraceContext;
use crate::message::transport::Transport;
use crate::methods::dispatch::{CancellableAnswer, encode};
use crate::transport::connection::Connection;

/// Prefix of the paths.
pub(super) const PREFIX: &str = "/events/";

impl Router {
    /// Calls the tool named in the path, with the arguments in the body.
    pub(super) async fn call_with_events(
        &self,
        parts: &Parts,
        body: &mut Incoming,
        client: &Client<'_>,
    ) -> Response<ResponseBody> {
        if parts.method != Method::POST {
            return reply::not_allowed("POST");
        }
        let path = router::without_last_slash(parts.uri.path());
        let name = percent_decode_str(path.strip_prefix(PREFIX).unwrap_or_default());
        let name = name.decode_utf8_lossy().into_owned();
        let (body, reservation) = match self
            .body_reader
            .read(&client.principal, &parts.headers, body)
            .await
        {
            Ok(read) => read,
            Err(response) => return *response,
        };
        let Some(params) = call_params(&name, &body, &headers::trace(&parts.headers)) else {
            let reason = "the body must be a JSON object, the arguments of the tool";
            return reply::text(StatusCode::BAD_REQUEST, reason);
        };
        // With a complete catalog, unknown tools are refused at once.
        self.server.catalog_ready().await;
        let (connection, messages) = Connection::open_over(
            Transport::Http,
            client.principal.clone(),
            &self.server,
            ToolNames::Path,
        );
        let id = RequestId::from(1);
        let called = connection.request(
            &RpcRequest::new(id.clone(), "tools/call", Some(&params)),
            reservation,
            headers::secrets(&self.server, &parts.headers),
        );
        let answer: events::PendingResponse =
            match called.unwrap_or_else(|error| CancellableAnswer::Now(Err(error))) {
                CancellableAnswer::Now(Err(error)) => {
                    let refused = self.refusal(&error, &name, &connection, client);
                    return refused.unwrap_or_else(|| {
                        let answer = Box::pin(ready(Some(encode(&id, Err(error)))));
                        reply::events(Events::written_by(
                            |message| write(&message),
                            messages,
                            answer,
                        ))
                    });
                }
                CancellableAnswer::Now(result) => Box::pin(ready(Some(encode(&id, result)))),
                CancellableAnswer::Later(result) => {
                    let answer = async move {
                        // The connection carries the messages until the answer is there.
                        let _connection = connection;
                        Some(encode(&id, result.await?))
                    };
                    ongoing::run_attached(answer, client.peer, true)
                }
            };
        let events = Events::written_by(|message| write(&message), messages, answer);
        reply::events(events.probing(client.peer))
    }

    /// Returns the refusal of a rate-limited call, or of a tool that the client may not use.
    fn refusal(
        &self,
        error: &ErrorObject,
        name: &str,
        connection: &Connection,
        client: &Client<'_>,
    ) -> Option<Response<ResponseBody>> {
        if let Some(wait) = rate_limit::suggested_delay(error) {
            return Some(reply::too_many(&error.message, wait));
        }
        if let Some(scope) = connection.needed_scope() {
            let mut response =
                reply::text(StatusCode::FORBIDDEN, "the token lacks a required scope");
            self.guard.ask_for(scope, &mut response);
            return Some(response);
        }
        let catalog = self.server.catalog_for(&client.principal);
        let is_there = catalog.tool(name).is_some();
        (!is_there).then(|| reply::text(StatusCode::NOT_FOUND, "unknown tool"))
    }
}

/// Builds the equivalent parameters of `tools/call`, if `body` is an object.
fn call_params(name: &str, body: &[u8], trace: &TraceContext) -> Option<Box<RawValue>> {
    let body = match body.trim_ascii() {
        [] => b"{}",
        body => body,
    };
    let arguments: &RawValue = serde_json::from_slice(body).ok()?;
    if !arguments.get().starts_with('{') {
        return None;
    }
    let mut meta = json!({
        meta::PROTOCOL_VERSION: ProtocolVersion::LATEST.as_str(),
        meta::CLIENT_CAPABILITIES: {},
        meta::LOG_LEVEL: LoggingLevel::Debug,
        meta::PROGRESS_TOKEN: 1,
    });
    for (name, value) in trace.members() {
        meta[name] = json!(value);
    }
    let params = CallParams {
        name,
        arguments,
        meta,
    };
    to_raw_value(&params).ok()
}

#[derive(serde::Serialize)]
struct CallParams<'a> {
    name: &'a str,
    arguments: &'a RawValue,
    #[serde(rename = "_meta")]
    meta: Value,
}

/// Converts a message of MCP to events, or to none if it has no equivalent.
fn write(message: &[u8]) -> Option<Bytes> {
    match Message::decode(message).ok()? {
        Message::Notification(notification) => notification_event(&notification),
        Message::Response(response) => Some(match response.outcome {
            Ok(result) => completion_events(result),
            Err(error) => {
                let (code, wait) = (error.code, rate_limit::suggested_delay(&error));
                let mut failed = json!({"message": input_rounds::message_without_capabilities(error), "code": code});
                if let Some(wait) = wait {
                    failed["retryAfterMs"] = json!(wait.as_millis());
                }
                [event("error", &failed), event("complete", &json!({"success": false}))].concat()
            }
        }),
        Message::Request(_) => None,
    }
    .map(Bytes::from)
}

/// Members of a result that become events. The result itself is passed on unchanged.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResultMembers {
    #[serde(default)]
    is_error: bool,
    #[serde(default)]
    content: Vec<Block>,
}

#[derive(Deserialize)]
struct Block {
    text: Option<String>,
}

#[derive(serde::Serialize)]
struct Complete<'a> {
    success: bool,
    result: &'a RawValue,
}

fn completion_events(result: &RawValue) -> Vec<u8> {
    let failed = match serde_json::from_str(result.get()) {
        Ok(ResultMembers {
            is_error: false, ..
        }) => None,
        Ok(ResultMembers { content, .. }) => {
            let texts: Vec<_> = content.into_iter().filter_map(|block| block.text).collect();
            Some(texts.join("\n"))
        }
        Err(_) => Some("the result could not be read".to_owned()),
    };
    let success = failed.is_none();
    let complete = event("complete", &raw(&Complete { success, result }));
    match failed {
        None => complete,
        Some(message) => [event("error", &json!({"message": message})), complete].concat(),
    }
}

#[derive(Deserialize)]
struct ProgressParams {
    progress: f64,
    total: Option<f64>,
    message: Option<String>,
    #[serde(default, rename = "_meta")]
    meta: Value,
}

#[derive(Deserialize)]
struct LogParams {
    level: Value,
    data: Value,
    #[serde(default, rename = "_meta")]
    meta: Value,
}

fn notification_event(notification: &Notification<'_>) -> Option<Vec<u8>> {
    let params = notification.params?.get();
    match &*notification.method {
        "notifications/progress" => {
            let ProgressParams {
                progress,
                total,
                message,
                meta,
            } = serde_json::from_str(params).ok()?;
            // A printed line becomes an `output` event.
            if meta.get("mcpd/stream").is_some() {
                return None;
            }
            let mut data = json!({"message": message.unwrap_or_default()});
            if meta.get("mcpd/heartbeat").is_none() {
                data["progress"] = number(match total {
                    Some(total) if total > 0.0 => (progress / total * 100.0).round(),
                    _ => progress,
                });
            }
            Some(event("progress", &data))
        }
        "notifications/message" => {
            let LogParams { level, data, meta } = serde_json::from_str(params).ok()?;
            let data = match meta.get("mcpd/stream") {
                Some(stream) => json!({"text": data, "stream": stream}),
                None => json!({"text": data, "level": level}),
            };
            Some(event("output", &data))
        }
        _ => None,
    }
}

/// Formats whole numbers without a decimal point.
fn number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 9e15 {
        json!(value as i64)
    } else {
        json!(value)
    }
}

/// Formats one event. Messages are on one line each, and so is their content.
fn event(name: &str, data: &impl fmt::Display) -> Vec<u8> {
    format!("event: {name}\ndata: {data}\n\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(message: &Value, expected: &str) {
        let written = write(message.to_string().as_bytes()).unwrap_or_default();
        assert_eq!(String::from_utf8_lossy(&written), expected);
    }

    fn notification(method: &str, params: &Value) -> Value {
        json!({"jsonrpc": "2.0", "method": method, "params": params})
    }

    #[test]
    fn progress_with_total_is_a_percentage() {
        let progress = |params| notification("notifications/progress", &params);
        check(
            &progress(json!({"progressToken": 1, "progress": 3, "total": 6, "message": "working"})),
            "event: progress\ndata: {\"message\":\"working\",\"progress\":50}\n\n",
        );
        check(
            &progress(json!({"progressToken": 1, "progress": 2.5})),
            "event: progress\ndata: {\"message\":\"\",\"progress\":2.5}\n\n",
        );
        let alive = json!({"progressToken": 1, "progress": 1e-6, "message": "m", "_meta": {"mcpd/heartbeat": true}});
        check(
            &progress(alive),
            "event: progress\ndata: {\"message\":\"m\"}\n\n",
        );
        let printed = json!({"progressToken": 1, "progress": 1, "message": "m", "_meta": {"mcpd/stream": "stdout"}});
        check(&progress(printed), "");
    }

    #[test]
    fn printed_and_logged_lines_are_output_events() {
        let log = |params| notification("notifications/message", &params);
        check(
            &log(json!({"level": "warning", "data": "hot"})),
            "event: output\ndata: {\"text\":\"hot\",\"level\":\"warning\"}\n\n",
        );
        check(
            &log(json!({"level": "info", "data": "line", "_meta": {"mcpd/stream": "stdout"}})),
            "event: output\ndata: {\"text\":\"line\",\"stream\":\"stdout\"}\n\n",
        );
    }

    #[test]
    fn every_ending_has_a_complete_event() {
        let result =
            |failed: bool| json!({"content": [{"type": "text", "text": "t"}], "isError": failed});
        check(
            &json!({"jsonrpc": "2.0", "id": 1, "result": result(false)}),
            "event: complete\ndata: {\"success\":true,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"t\"}],\"isError\":false}}\n\n",
        );
        check(
            &json!({"jsonrpc": "2.0", "id": 1, "result": result(true)}),
            "event: error\ndata: {\"message\":\"t\"}\n\nevent: complete\ndata: {\"success\":false,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"t\"}],\"isError\":true}}\n\n",
        );
        check(
            &json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "no"}}),
            "event: error\ndata: {\"message\":\"no\",\"code\":-32603}\n\nevent: complete\ndata: {\"success\":false}\n\n",
        );
    }

    #[test]
    fn tool_that_needs_missing_capabilities_is_an_error_event() {
        let check = |required: Value, message: &str| {
            let error = json!({"code": -32021, "message": "no", "data": {"requiredCapabilities": required}});
            let expected = json!({"message": message, "code": -32021});
            check(
                &json!({"jsonrpc": "2.0", "id": 1, "error": error}),
                &format!(
                    "event: error\ndata: {expected}\n\nevent: complete\ndata: {{\"success\":false}}\n\n"
                ),
            );
        };
        let asks = "the tool asks for input, which this caller cannot give";
        check(json!({"elicitation": {}}), asks);
        check(json!({"sampling": {"tools": {}}}), asks);
        check(
            json!({"extensions": {"io.modelcontextprotocol/tasks": {}}}),
            "the tool runs only as a task",
        );
    }

    #[test]
    fn result_is_passed_on_byte_for_byte() {
        let written = |failed: bool, value: &str| {
            let result = format!(
                r#"{{"content":[{{"type":"text","text":"t"}}],"structuredContent":{value},"isError":{failed}}}"#
            );
            let written =
                write(format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#).as_bytes());
            String::from_utf8(written.unwrap().to_vec()).unwrap()
        };
        let exact = written(false, "[1.50,1e999]");
        assert!(exact.starts_with("event: complete\ndata: {\"success\":true,"));
        assert!(exact.contains(r#""structuredContent":[1.50,1e999]"#));
        let failed = written(true, "[1e999]");
        assert!(failed.starts_with("event: error\ndata: {\"message\":\"t\"}\n\n"));
        assert!(failed.contains(r#"{"success":false,"#));
    }

    #[test]
    fn arguments_are_an_object_and_keep_their_bytes() {
        let call = |body| call_params("a", body, &TraceContext::default());
        assert!(call(b"[]").is_none() && call(b"{").is_none());
        let sent = call(b" {\"n\": 1.50} ").unwrap();
        assert!(sent.get().contains("\"arguments\":{\"n\": 1.50}"));
        assert!(call(b"").unwrap().get().contains("\"arguments\":{}"));
    }
}
