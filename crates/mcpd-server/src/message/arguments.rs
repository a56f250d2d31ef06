//! Arguments of a call as text, and what a model reads of faults in them.

use mcpd_protocol::JsonObject;
use mcpd_protocol::method::CallToolResult;
use mcpd_scriptspec::ArgumentFault;
use serde_json::value::RawValue;

/// Prefix of messages about invalid arguments.
pub(crate) const INVALID_ARGUMENTS: &str = "Invalid arguments: ";

/// Hint beside an argument that a tool does not declare.
const UNKNOWN_ARGUMENT_HINT: &str = "(If the client adds this argument to every call by itself, the operator can have it dropped with `[arguments] ignore` in mcpd.toml.)";

/// Text of the arguments of a call; absent ones, and `null`, are an empty object.
pub(crate) fn arguments_text(arguments: Option<&RawValue>) -> &str {
    match arguments.map(RawValue::get) {
        None | Some("null") => "{}",
        Some(text) => text,
    }
}

/// Arguments of a method whose values are text only.
pub(crate) fn text_arguments(
    texts: impl IntoIterator<Item = (impl Into<String>, String)>,
) -> JsonObject {
    let texts = texts.into_iter();
    texts
        .map(|(name, text)| (name.into(), text.into()))
        .collect()
}

/// Formats faults, one per line.
pub(crate) fn describe_faults(faults: &[ArgumentFault]) -> String {
    let mut lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
    if faults.iter().any(ArgumentFault::is_unknown_name) {
        lines.push(UNKNOWN_ARGUMENT_HINT.to_owned());
    }
    lines.join("\n")
}

/// "Input validation errors" are results, so that the model can mend its call
/// -- 2026-07-28/server/tools#error-handling
pub(crate) fn invalid_arguments(faults: &str) -> CallToolResult {
    CallToolResult::error(format!("{INVALID_ARGUMENTS}{faults}"))
}
