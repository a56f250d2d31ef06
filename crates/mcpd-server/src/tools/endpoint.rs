//! Action endpoints: commands that read one request, `{"action": …}`, and answer with one object.
//! Serving: the requests and answers as data, for a program that is an endpoint;
//! [`Connection`](crate::Connection) calls the tools. Consuming: the endpoints of other programs,
//! as a [source](Endpoint).

use mcpd_protocol::content::ContentBlock;
use mcpd_protocol::method::CallToolResult;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::execution::output::is_note;
use crate::message::arguments::INVALID_ARGUMENTS;

mod client;
mod descriptor;
mod remote;
mod safety;
mod source;

pub use descriptor::{Descriptor, Origin};
pub use source::Endpoint;

/// Request to an endpoint.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Request {
    /// Lists the tools.
    ListTools,
    /// Describes one tool.
    #[non_exhaustive]
    DescribeTool {
        /// Name of the tool.
        tool: String,
    },
    /// Calls a tool.
    #[non_exhaustive]
    CallTool {
        /// Name of the tool.
        tool: String,
        /// Arguments: one JSON object, byte for byte as sent.
        arguments: Box<RawValue>,
    },
}

/// Request in JSON.
#[derive(Deserialize)]
struct RequestJson {
    action: String,
    tool: Option<String>,
    arguments: Option<Box<RawValue>>,
}

impl Request {
    /// Parses a request. A field that its action does not use is ignored; missing arguments are
    /// an empty object.
    ///
    /// # Errors
    ///
    /// The fault of the request, of [`Category::Usage`].
    pub fn read(text: &str) -> Result<Self, Fault> {
        if !text.trim_start().starts_with('{') {
            return Err(Fault::usage("the request is not a JSON object"));
        }
        let json: RequestJson = serde_json::from_str(text)
            .map_err(|error| Fault::usage(format!("invalid request: {error}")))?;
        let tool = || {
            let missing = || Fault::usage(format!("`{}` requires `tool`", json.action));
            json.tool.clone().ok_or_else(missing)
        };
        match json.action.as_str() {
            "list_tools" => Ok(Self::ListTools),
            "describe_tool" => Ok(Self::DescribeTool { tool: tool()? }),
            "call_tool" => Ok(Self::CallTool {
                tool: tool()?,
                arguments: object(json.arguments)?,
            }),
            other => Err(Fault::usage(format!(
                "unknown action `{}`; known actions are `list_tools`, `describe_tool` and `call_tool`",
                other.escape_debug()
            ))),
        }
    }
}

fn object(arguments: Option<Box<RawValue>>) -> Result<Box<RawValue>, Fault> {
    let none = || RawValue::from_string("{}".to_owned()).expect("it is JSON");
    let arguments = arguments.unwrap_or_else(none);
    if arguments.get().starts_with('{') {
        Ok(arguments)
    } else {
        Err(Fault::usage("`arguments` is not a JSON object"))
    }
}

/// Answer of an endpoint.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Answer {
    /// Answer to a request that was carried out.
    Result(Outcome),
    /// Answer to any other request.
    #[non_exhaustive]
    Error {
        /// Reason for the failure.
        error: Fault,
    },
}

/// Result of a request.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum Outcome {
    /// Result of `list_tools`.
    #[non_exhaustive]
    Tools {
        /// Tools, in the order of their paths.
        tools: Vec<Descriptor>,
    },
    /// Result of `describe_tool`.
    #[non_exhaustive]
    Tool {
        /// Description of the requested tool.
        tool: Box<Descriptor>,
    },
    /// Result of `call_tool`.
    #[non_exhaustive]
    Called {
        /// Path of the tool.
        tool: String,
        /// Result of the call.
        result: Returned,
    },
}

/// Result of a call.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum Returned {
    /// Output of a tool that prints.
    Printed(Printed),
    /// Result object of a tool behind another endpoint, unchanged.
    Object(Box<RawValue>),
}

/// Member of a result's `_meta` that marks its structured content as the result object of an
/// endpoint's tool.
const OWN_OBJECT: &str = "mcpd/own-object";

/// Output and exit code of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Printed {
    /// Output as a model would read it: content other than text is JSON on a separate line.
    pub stdout: String,
    /// Exit code; 0 for success.
    pub exit_code: i64,
}

/// Reason why a request failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct Fault {
    /// Program that reports the fault.
    pub name: String,
    /// Responsible party.
    pub category: Category,
    /// Message for people.
    pub message: String,
}

/// Party responsible for the failure of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Category {
    /// Caller.
    Usage,
    /// Tool: it gave no result.
    Pipeline,
    /// Endpoint.
    Fatal,
}

impl Fault {
    /// Creates a fault reported by mcpd.
    pub fn new(category: Category, message: impl Into<String>) -> Self {
        Self {
            name: "mcpd".to_owned(),
            category,
            message: message.into(),
        }
    }

    /// Creates a fault of the caller.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Category::Usage, message)
    }
}

impl Answer {
    /// Answers `list_tools`.
    #[must_use]
    pub fn tools(tools: Vec<Descriptor>) -> Self {
        Self::Result(Outcome::Tools { tools })
    }

    /// Answers `describe_tool`.
    #[must_use]
    pub fn tool(tool: Descriptor) -> Self {
        let tool = Box::new(tool);
        Self::Result(Outcome::Tool { tool })
    }

    /// Answers `call_tool`.
    ///
    /// # Errors
    ///
    /// The tool failed before it ran.
    pub fn call_result(tool: impl Into<String>, result: &CallToolResult) -> Result<Self, Fault> {
        Ok(Self::Result(Outcome::Called {
            tool: tool.into(),
            result: Returned::of(result)?,
        }))
    }
}

impl From<Fault> for Answer {
    fn from(error: Fault) -> Self {
        Self::Error { error }
    }
}

impl Returned {
    fn of(result: &CallToolResult) -> Result<Self, Fault> {
        let object = result.structured_content.as_ref();
        match object.filter(|_| result.meta.other.contains_key(OWN_OBJECT)) {
            Some(object) => Ok(Self::Object(object.clone())),
            None => Printed::of(result).map(Self::Printed),
        }
    }
}

impl Printed {
    fn of(result: &CallToolResult) -> Result<Self, Fault> {
        let text = |block: &ContentBlock| match block {
            ContentBlock::Text(block) => block.text.clone(),
            block => serde_json::to_string(block).unwrap_or_default(),
        };
        let has_failed = result.is_error == Some(true);
        let (notes, printed): (Vec<_>, Vec<_>) = result.content.iter().partition(|b| is_note(b));
        // A tool that failed without output is described by its note alone.
        let shown = if printed.is_empty() && has_failed {
            notes
        } else {
            printed
        };
        let stdout = shown.into_iter().map(text).collect::<Vec<_>>().join("\n");
        let exit_code = match result.meta.other.get("mcpd/exit") {
            Some(exit) => exit["code"].as_i64().unwrap_or(1),
            None if has_failed => {
                let category = match stdout.starts_with(INVALID_ARGUMENTS) {
                    true => Category::Usage,
                    false => Category::Pipeline,
                };
                return Err(Fault::new(category, stdout));
            }
            None => 0,
        };
        Ok(Self { stdout, exit_code })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(request: &str, expected: &str) {
        let read = Request::read(request).expect_err("it is refused");
        assert_eq!((read.category, &*read.message), (Category::Usage, expected));
    }

    #[test]
    fn request_that_is_not_an_object_is_refused() {
        check("", "the request is not a JSON object");
        check(
            "[\"list_tools\", null, null]",
            "the request is not a JSON object",
        );
        for arguments in ["[]", "\"{}\"", "1", "true"] {
            check(
                &format!(r#"{{"action": "call_tool", "tool": "a", "arguments": {arguments}}}"#),
                "`arguments` is not a JSON object",
            );
        }
    }

    #[test]
    fn incomplete_request_names_the_missing_field() {
        check(
            "{}",
            "invalid request: missing field `action` at line 1 column 2",
        );
        check(r#"{"action": "call_tool"}"#, "`call_tool` requires `tool`");
        check(
            r#"{"action": "tools/list"}"#,
            "unknown action `tools/list`; known actions are `list_tools`, `describe_tool` and `call_tool`",
        );
    }

    #[test]
    fn arguments_keep_their_bytes() {
        let request = r#" {"tool": "a", "arguments": {"n": 1.50, "b":9007199254740993}, "action": "call_tool", "id": 1}"#;
        let Ok(Request::CallTool { tool, arguments }) = Request::read(request) else {
            panic!("it is a call");
        };
        assert_eq!(tool, "a");
        assert_eq!(arguments.get(), r#"{"n": 1.50, "b":9007199254740993}"#);
    }

    #[test]
    fn failure_is_a_result_only_after_a_run() {
        let mut failed = CallToolResult::error("half\n");
        let exit = json!({"code": 4, "name": "not-found"});
        failed.meta.other.insert("mcpd/exit".to_owned(), exit);
        let printed = Printed::of(&failed).expect("it ran");
        assert_eq!((&*printed.stdout, printed.exit_code), ("half\n", 4));

        let category =
            |text| Printed::of(&CallToolResult::error(text)).map_err(|fault| fault.category);
        assert_eq!(category("Invalid arguments: x"), Err(Category::Usage));
        assert_eq!(category("The server is busy"), Err(Category::Pipeline));
    }
}
