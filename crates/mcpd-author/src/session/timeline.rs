//! Timeline of a session: what happens, one line each, and the call that can be made again.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use mcpd_protocol::content::ContentBlock;
use mcpd_protocol::method::{CallToolRequest, CallToolRequestParams, CallToolResult};
use mcpd_protocol::{Method as _, Params};
use mcpd_server::RequestEvent;

use super::{Display, Sign, cut};

/// Lines of a result that are shown; the rest is counted.
const MAX_LINES: usize = 20;

/// Call that can be made again.
#[derive(Debug, Clone)]
pub(super) struct LastCall {
    /// Path of the tool.
    pub(super) tool: String,
    /// Parameters as the client sent them.
    pub(super) params: CallToolRequestParams,
}

/// Requests as shown so far.
#[derive(Debug)]
pub(super) struct Timeline {
    display: Display,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Names of running requests, by number.
    running: BTreeMap<u64, String>,
    last_call: Option<LastCall>,
}

impl Timeline {
    pub(super) fn new(display: Display) -> Self {
        Self {
            display,
            state: Mutex::default(),
        }
    }

    /// Shows an event of a request.
    pub(super) fn add(&self, number: u64, event: &RequestEvent<'_>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            RequestEvent::Started {
                method,
                path,
                params,
                sent,
                client,
                ..
            } => {
                let name = path.unwrap_or(method).to_owned();
                let client = client.map(|client| format!("  ({})", client.name));
                let client = client.unwrap_or_default();
                self.display.line(
                    Sign::Called,
                    &format!("{name} {}{client}", arguments(params.get())),
                );
                if *method == CallToolRequest::NAME
                    && let Some(params) = call_params(sent)
                {
                    state.last_call = Some(LastCall {
                        tool: name.clone(),
                        params,
                    });
                }
                state.running.insert(number, name);
            }
            RequestEvent::Line(bytes) => {
                let name = state.running.get(&number).map_or("", String::as_str);
                self.display.line(
                    Sign::Line,
                    &format!("{name}: {}", String::from_utf8_lossy(bytes)),
                );
            }
            RequestEvent::Finished {
                outcome, duration, ..
            } => {
                let name = state.running.remove(&number).unwrap_or_default();
                let (sign, text) = describe(*outcome);
                self.display.line(
                    sign,
                    &format!("{name} in {}{text}", milliseconds(*duration)),
                );
            }
            RequestEvent::Cancelled => {
                let name = state.running.remove(&number).unwrap_or_default();
                self.display
                    .line(Sign::Failed, &format!("{name}: cancelled"));
            }
            _ => {}
        }
    }

    /// Call of a tool that came last.
    pub(super) fn last_call(&self) -> Option<LastCall> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.last_call.clone()
    }
}

/// Parameters of a call in a form that can be sent again: without rounds of questions, which
/// belong to that call.
fn call_params(sent: &Params<'_>) -> Option<CallToolRequestParams> {
    let params: CallToolRequestParams = sent.parse().ok()?;
    let mut again = CallToolRequestParams::new(params.name);
    again.arguments = params.arguments;
    Some(again)
}

/// Arguments in the recorded parameters of a request.
fn arguments(params: &str) -> String {
    let params: serde_json::Value = serde_json::from_str(params).unwrap_or_default();
    match params.get("arguments") {
        Some(arguments) => arguments.to_string(),
        None => String::new(),
    }
}

fn milliseconds(duration: Duration) -> String {
    format!("{:.1} ms", duration.as_secs_f64() * 1000.0)
}

/// Sign and text of the end of a request; the text begins with its separator.
fn describe(outcome: Result<&[u8], &mcpd_protocol::jsonrpc::ErrorObject>) -> (Sign, String) {
    let result = match outcome {
        Ok(result) => result,
        Err(error) => return (Sign::Failed, format!(": {}", error.message)),
    };
    let Ok(result) = serde_json::from_slice::<CallToolResult>(result) else {
        return (Sign::Returned, format!(": {} bytes", result.len()));
    };
    let sign = match result.is_error {
        Some(true) => Sign::Failed,
        _ => Sign::Returned,
    };
    let blocks: Vec<_> = result.content.iter().map(describe_block).collect();
    match &blocks[..] {
        [] => (sign, ": nothing".to_owned()),
        [one] if !one.trim_end().contains('\n') => (sign, format!(": {}", one.trim_end())),
        _ => (sign, format!(":\n{}", indent(&blocks.join("\n")))),
    }
}

fn describe_block(block: &ContentBlock) -> Cow<'_, str> {
    match block {
        ContentBlock::Text(block) => Cow::Borrowed(&block.text),
        other => {
            let value = serde_json::to_value(other).unwrap_or_default();
            let kind = value["type"].as_str().unwrap_or("content");
            let media = value["mimeType"].as_str().unwrap_or_default();
            let bytes = value["data"].as_str().map_or(0, |data| data.len() / 4 * 3);
            Cow::Owned(format!("[{kind} {media}, about {bytes} bytes]"))
        }
    }
}

/// The first lines of a text, indented.
fn indent(text: &str) -> String {
    let lines: Vec<_> = text.trim_end().lines().collect();
    let shown = lines.iter().take(MAX_LINES);
    let mut shown: Vec<_> = shown.map(|line| format!("    {}", cut(line))).collect();
    if let Some(more) = lines.len().checked_sub(MAX_LINES).filter(|more| *more > 0) {
        shown.push(format!("    … and {more} more lines"));
    }
    shown.join("\n")
}

#[cfg(test)]
mod tests {
    use mcpd_protocol::jsonrpc::ErrorObject;

    use super::*;

    #[test]
    fn result_of_one_line_stands_in_the_line() {
        let result = br#"{"content": [{"type": "text", "text": "hello\n"}]}"#;
        assert_eq!(describe(Ok(result)), (Sign::Returned, ": hello".to_owned()));
    }

    #[test]
    fn long_result_is_cut() {
        let text = "line\\n".repeat(22);
        let result = format!(r#"{{"content": [{{"type": "text", "text": "{text}"}}]}}"#);
        let (_, shown) = describe(Ok(result.as_bytes()));
        assert!(shown.starts_with(":\n    line\n"), "{shown}");
        assert!(shown.ends_with("    … and 2 more lines"), "{shown}");
    }

    #[test]
    fn failure_and_image_are_described() {
        let result = br#"{"isError": true, "content": [{"type": "text", "text": "no"}]}"#;
        assert_eq!(describe(Ok(result)), (Sign::Failed, ": no".to_owned()));
        let error = ErrorObject::invalid_params("bad");
        assert_eq!(describe(Err(&error)), (Sign::Failed, ": bad".to_owned()));
        let result =
            br#"{"content": [{"type": "image", "mimeType": "image/png", "data": "AAAA"}]}"#;
        let image = ": [image image/png, about 3 bytes]".to_owned();
        assert_eq!(describe(Ok(result)), (Sign::Returned, image));
    }
}
