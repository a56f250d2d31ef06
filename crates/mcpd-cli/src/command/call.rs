//! `mcpd call`: one call from the shell. The result goes to stdout, everything else to stderr.

use std::collections::BTreeMap;
use std::io;

use anyhow::{Context as _, bail};
use mcpd_config::File;
use mcpd_protocol::NotificationMethod as _;
use mcpd_protocol::content::ContentBlock;
use mcpd_protocol::jsonrpc::Notification;
use mcpd_protocol::meta::Meta;
use mcpd_protocol::method::{
    CallToolRequest, CallToolRequestParams, CallToolResult, LoggingLevel,
    LoggingMessageNotification, LoggingMessageNotificationParams, ProgressNotification,
    ProgressNotificationParams, Tool,
};
use mcpd_server::Principal;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::{find_tool, server_of, with_server};
use crate::args::{Call, Logging};
use crate::exit_code::ExitCode;
use crate::{client, output};

/// Separator in a note between the outcome of a run and the end of its stderr.
const STDERR_FOLLOWS: &str = " The end of its stderr:\n";

/// Calls the tool and prints its result.
pub(crate) async fn run(args: Call, logging: &Logging, file: &File) -> anyhow::Result<ExitCode> {
    let arguments = match &args.arguments {
        Some(json) => Arguments::Whole(read_json_arguments(json)?),
        None => Arguments::Pairs(parse_pairs(&args.pairs, parse_pair)?),
    };
    let level = log_level(logging);
    let tool = &args.tool;
    let limits = mcpd_config::limits(&args.limits);
    let server = server_of(&tool.place, &args.command, &args.enabling, limits, file).await?;
    with_server(server.only(&tool.tool), async |server| {
        let Some(tool) = find_tool(&server.catalog(), &args.tool) else {
            return Ok(ExitCode::Tool);
        };
        let name = tool.path().as_str();
        let given = arguments.for_tool(tool.definition())?;
        let mut params = CallToolRequestParams::new(name).with_arguments(given);
        params.meta = Some(client::envelope(level));
        let principal = Principal::local();
        match client::request::<CallToolRequest, _>(server, principal, &params, relay).await? {
            Ok(result) => {
                print(&result, args.json)?;
                if !args.json {
                    relay_notes(&result, logging.quiet);
                }
                note_rest(&result);
                if is_refused(&result) {
                    output::note(&arguments.hints(tool.definition()));
                }
                Ok(report_outcome(name, &result))
            }
            Err(error) => {
                output::error(&client::error_text(error));
                Ok(ExitCode::Tool)
            }
        }
    })
    .await
}

/// Arguments of a call, as given.
#[derive(Debug)]
enum Arguments<'a> {
    Whole(Box<RawValue>),
    Pairs(BTreeMap<&'a str, Given<'a>>),
}

/// Value of an argument.
#[derive(Debug)]
enum Given<'a> {
    Text(&'a str),
    Json(Box<RawValue>),
}

impl Arguments<'_> {
    /// Describes how to write lists, for arguments that were given as text
    /// where a list is expected.
    fn hints(&self, tool: &Tool) -> String {
        let Self::Pairs(pairs) = self else {
            return String::new();
        };
        let properties = properties(tool);
        let hints = pairs.iter().filter_map(|(name, given)| {
            let schema = &properties[*name];
            let Given::Text(text) = given else {
                return None;
            };
            let is_list = accepts_type(schema, "array") && !accepts_type(schema, "string");
            let list = list_of(text, &schema["items"]);
            let word = format!("{name}:={}", list.as_deref().unwrap_or("[…]"));
            is_list.then(|| {
                format!(
                    "`{name}` is an array; write {}\n",
                    output::shell_command([&*word])
                )
            })
        });
        hints.collect()
    }

    fn for_tool(&self, tool: &Tool) -> anyhow::Result<Box<RawValue>> {
        let pairs = match self {
            Self::Whole(arguments) => return Ok(arguments.clone()),
            Self::Pairs(pairs) => pairs,
        };
        let properties = properties(tool);
        let mut object = BTreeMap::new();
        for (name, given) in pairs {
            let value = match given {
                Given::Json(value) => value.clone(),
                Given::Text(text) if is_wanted_as_json(text, &properties[*name]) => {
                    RawValue::from_string((*text).to_owned())?
                }
                Given::Text(text) => to_raw_value(text)?,
            };
            object.insert(name, value);
        }
        to_raw_value(&object).context("encode the arguments")
    }
}

/// Schemas of a tool's arguments, by name.
fn properties(tool: &Tool) -> Value {
    let mut schema: Value = serde_json::from_str(tool.input_schema.get()).unwrap_or_default();
    schema["properties"].take()
}

/// The JSON list to write in place of `text`: `text` itself, or a list with it as its element;
/// none if `elements` rejects it.
fn list_of(text: &str, elements: &Value) -> Option<String> {
    match serde_json::from_str(text) {
        // The text is kept verbatim: a number may be too large to be parsed.
        Ok(Value::Array(list))
            if list
                .iter()
                .all(|element| has_allowed_type(element, elements)) =>
        {
            Some(text.to_owned())
        }
        Ok(element) if has_allowed_type(&element, elements) => Some(format!("[{text}]")),
        _ => {
            let element = Value::from(text);
            has_allowed_type(&element, elements).then(|| Value::from(vec![element]).to_string())
        }
    }
}

/// Returns whether `value` has a type that the schema allows.
fn has_allowed_type(value: &Value, schema: &Value) -> bool {
    let says_type = ["type", "anyOf", "oneOf"]
        .iter()
        .any(|key| schema.get(key).is_some());
    let value_type = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.as_f64().is_some_and(|number| number.fract() == 0.0) => {
            return !says_type || accepts_type(schema, "integer") || accepts_type(schema, "number");
        }
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    !says_type || accepts_type(schema, value_type)
}

/// Returns whether `text` is a number or boolean where the schema takes one and no text. With
/// spaces around it, it is text.
fn is_wanted_as_json(text: &str, schema: &Value) -> bool {
    if text.trim() != text {
        return false;
    }
    let is_wanted = match serde_json::from_str(text) {
        Ok(Value::Bool(_)) => accepts_type(schema, "boolean"),
        Ok(Value::Number(_)) => accepts_type(schema, "integer") || accepts_type(schema, "number"),
        _ => false,
    };
    is_wanted && !accepts_type(schema, "string")
}

/// Returns whether the schema accepts this type.
fn accepts_type(schema: &Value, value_type: &str) -> bool {
    match &schema["type"] {
        Value::String(only) => only == value_type,
        Value::Array(types) => types.iter().any(|one| one == value_type),
        _ => {
            let choices = ["anyOf", "oneOf"].map(|key| schema[key].as_array());
            let mut choices = choices.into_iter().flatten().flatten();
            choices.any(|choice| accepts_type(choice, value_type))
        }
    }
}

/// All arguments from one JSON text. They stay verbatim: numbers of any size, any order.
fn read_json_arguments(json: &str) -> anyhow::Result<Box<RawValue>> {
    let json = match json {
        "-" => io::read_to_string(io::stdin()).context("read the arguments from stdin")?,
        json => json.to_owned(),
    };
    let arguments = RawValue::from_string(json).context("read the arguments as JSON")?;
    if !arguments.get().starts_with('{') {
        bail!("read the arguments as JSON: expected an object");
    }
    Ok(arguments)
}

/// Arguments by name, each parsed by `pair`.
pub(super) fn parse_pairs<'a, T>(
    arguments: &'a [String],
    pair: impl Fn(&'a str) -> anyhow::Result<(&'a str, T)>,
) -> anyhow::Result<BTreeMap<&'a str, T>> {
    let mut pairs = BTreeMap::new();
    for argument in arguments {
        let (name, value) = pair(argument)?;
        if pairs.insert(name, value).is_some() {
            bail!("read the arguments: `{name}` is given twice");
        }
    }
    Ok(pairs)
}

/// Parses an argument `name=text` or `name:=json`.
fn parse_pair(argument: &str) -> anyhow::Result<(&str, Given<'_>)> {
    let Some((name, text)) = argument.split_once('=') else {
        bail!("read the argument `{argument}`: expected NAME=TEXT or NAME:=JSON");
    };
    Ok(match name.strip_suffix(':') {
        Some(name) => {
            let value = RawValue::from_string(text.to_owned());
            let value = value.with_context(|| format!("read the argument `{name}` as JSON"))?;
            (name, Given::Json(value))
        }
        None => (name, Given::Text(text)),
    })
}

/// Level of the script's log that is shown.
pub(super) fn log_level(logging: &Logging) -> LoggingLevel {
    match logging.verbose {
        _ if logging.quiet => LoggingLevel::Error,
        0 => LoggingLevel::Info,
        _ => LoggingLevel::Debug,
    }
}

/// Prints a line of the script's log in the format of scripts. The result contains its output.
pub(super) fn relay(message: &Notification<'_>) {
    if message.method == LoggingMessageNotification::NAME
        && let Ok(params) = message.parse_params::<LoggingMessageNotificationParams>()
        && is_its_own(params.meta.as_ref())
    {
        let level = serde_json::to_value(params.level).unwrap_or_default();
        let level = level.as_str().unwrap_or_default().to_uppercase();
        let text = params
            .data
            .as_str()
            .map_or_else(|| params.data.to_string(), str::to_owned);
        output::note(&format!("{level} {text}\n"));
    } else if message.method == ProgressNotification::NAME
        && let Ok(params) = message.parse_params::<ProgressNotificationParams>()
        && is_its_own(params.meta.as_ref())
    {
        let total = params
            .total
            .map(|total| format!("/{total}"))
            .unwrap_or_default();
        let text = params
            .message
            .map(|text| format!(" {text}"))
            .unwrap_or_default();
        output::note(&format!("PROGRESS {}{total}{text}\n", params.progress));
    }
}

/// Returns whether the script logged the message, rather than mcpd about the script.
fn is_its_own(meta: Option<&Meta>) -> bool {
    let is_said = |key| meta.is_some_and(|meta| meta.contains_key(key));
    !is_said("mcpd/stream") && !is_said("mcpd/heartbeat")
}

fn print(result: &CallToolResult, as_json: bool) -> anyhow::Result<()> {
    if as_json {
        return output::write_json(result);
    }
    let mut printed = result.content.iter().filter(|block| !is_note(block));
    printed.try_for_each(print_block)
}

/// Returns whether a block is a note of the server about the output. Notes go to stderr.
fn is_note(block: &ContentBlock) -> bool {
    let ContentBlock::Text(content) = block else {
        return false;
    };
    let meta = content.meta.as_ref();
    meta.is_some_and(|meta| meta.contains_key("mcpd/note"))
}

/// Prints the server's notes about a run to stderr, except a bare exit code, which
/// `report_outcome` prints. The end of the script's stderr is printed if it was not relayed and
/// there is no other content.
fn relay_notes(result: &CallToolResult, is_quiet: bool) {
    let is_alone = result.content.iter().all(is_note);
    for block in result.content.iter().filter(|block| is_note(block)) {
        let ContentBlock::Text(content) = block else {
            continue;
        };
        let (sentence, stderr) = match content.text.split_once(STDERR_FOLLOWS) {
            Some((sentence, stderr)) => (sentence, Some(stderr)),
            None => (&*content.text, None),
        };
        let is_known = sentence.contains(" failed with exit code ");
        let is_unwanted = is_quiet && is_success(result);
        if !(is_known || is_unwanted) {
            output::note(&format!("{sentence}\n"));
        }
        if let Some(stderr) = stderr.filter(|_| is_quiet && is_alone) {
            output::note(&format!("{stderr}\n"));
        }
    }
}

/// Prints one block of content: its text, or the whole block if it is not text.
pub(super) fn print_block(block: &ContentBlock) -> anyhow::Result<()> {
    match block {
        ContentBlock::Text(block) => output::write_text(&block.text),
        block => output::write_json(block),
    }
}

/// Notes on stderr how many bytes are missing from stdout. The archive ends with this command, so
/// the rest can't be read.
fn note_rest(result: &CallToolResult) {
    if let Some(output) = result.meta.other.get("mcpd/output") {
        let (omitted, total) = (&output["omittedBytes"], &output["totalBytes"]);
        output::note(&format!("{omitted} of {total} bytes omitted\n"));
    }
}

/// Returns whether nothing ran, because the arguments are invalid.
fn is_refused(result: &CallToolResult) -> bool {
    result.is_error == Some(true) && !result.meta.other.contains_key("mcpd/exit")
}

fn is_success(result: &CallToolResult) -> bool {
    result.is_error != Some(true)
}

/// Returns the exit code, and prints its reason to stderr: stdout is for the script's output.
fn report_outcome(name: &str, result: &CallToolResult) -> ExitCode {
    if is_success(result) {
        return ExitCode::Success;
    }
    let how = match result.meta.other.get("mcpd/exit") {
        Some(exit) => format!(
            ": exit code {} ({})",
            exit["code"],
            exit["name"].as_str().unwrap_or_default()
        ),
        None => String::new(),
    };
    output::error(&format!("`{name}` failed{how}"));
    ExitCode::Tool
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(arguments: &[&str], expected: &str) {
        check_with(&serde_json::json!({}), arguments, expected);
    }

    /// `properties` are those of the tool's schema.
    #[track_caller]
    fn check_with(properties: &Value, arguments: &[&str], expected: &str) {
        let arguments: Vec<_> = arguments
            .iter()
            .map(|&argument| argument.to_owned())
            .collect();
        let schema = serde_json::json!({"type": "object", "properties": properties});
        let tool = Tool::new("test", to_raw_value(&schema).unwrap());
        let object = parse_pairs(&arguments, parse_pair)
            .and_then(|pairs| Arguments::Pairs(pairs).for_tool(&tool));
        let read = object.map_or_else(
            |error| format!("{error:#}"),
            |object| object.get().to_owned(),
        );
        assert_eq!(read, expected);
    }

    #[test]
    fn text_argument_is_converted_to_the_schema_type() {
        let properties = serde_json::json!({
            "count": {"type": "integer"},
            "ratio": {"type": ["number", "null"]},
            "quiet": {"anyOf": [{"type": "boolean"}, {"type": "null"}]},
            "either": {"type": ["string", "integer"]},
            "list": {"type": "array"},
        });
        check_with(
            &properties,
            &[
                "count=3",
                "ratio=2.50",
                "quiet=true",
                "either=3",
                "list=[1]",
            ],
            r#"{"count":3,"either":"3","list":"[1]","quiet":true,"ratio":2.50}"#,
        );
        check_with(
            &properties,
            &["count=three", "quiet=yes", "ratio=true"],
            r#"{"count":"three","quiet":"yes","ratio":"true"}"#,
        );
        check_with(&properties, &["count= 3"], r#"{"count":" 3"}"#);
    }

    #[test]
    fn list_given_as_text_gets_a_json_hint() {
        let schema = serde_json::json!({"properties": {
            "list": {"type": "array"},
            "either": {"type": ["array", "string"]},
            "numbers": {"type": "array", "items": {"type": "integer"}},
            "texts": {"type": "array", "items": {"type": ["string", "null"]}},
        }});
        let tool = Tool::new("test", to_raw_value(&schema).unwrap());
        for (argument, expected) in [
            ("list=1", "`list` is an array; write 'list:=[1]'\n"),
            ("list=[1]", "`list` is an array; write 'list:=[1]'\n"),
            ("list=a", "`list` is an array; write 'list:=[\"a\"]'\n"),
            (
                "numbers=98765432109876543210",
                "`numbers` is an array; write 'numbers:=[98765432109876543210]'\n",
            ),
            (
                "numbers=[1, 98765432109876543210]",
                "`numbers` is an array; write 'numbers:=[1, 98765432109876543210]'\n",
            ),
            (
                "numbers=1,2",
                "`numbers` is an array; write 'numbers:=[…]'\n",
            ),
            (
                "numbers=[1",
                "`numbers` is an array; write 'numbers:=[…]'\n",
            ),
            (
                "numbers=[1.5]",
                "`numbers` is an array; write 'numbers:=[…]'\n",
            ),
            ("texts=1", "`texts` is an array; write 'texts:=[\"1\"]'\n"),
            ("list:=1", ""),
            ("either=1", ""),
            ("other=1", ""),
        ] {
            let arguments = [argument.to_owned()];
            let pairs = Arguments::Pairs(parse_pairs(&arguments, parse_pair).unwrap());
            assert_eq!(pairs.hints(&tool), expected, "{argument}");
        }
    }

    #[test]
    fn argument_syntax_distinguishes_text_and_json() {
        check(
            &["a=1", "b:=1.50", "c=", "d:=[\"x\"]"],
            r#"{"a":"1","b":1.50,"c":"","d":["x"]}"#,
        );
        check(&["a=b=c", "d:=\"e=f\""], r#"{"a":"b=c","d":"e=f"}"#);
    }

    #[test]
    fn argument_without_a_name_or_twice_is_refused() {
        check(
            &["World"],
            "read the argument `World`: expected NAME=TEXT or NAME:=JSON",
        );
        check(&["a=1", "a=2"], "read the arguments: `a` is given twice");
        check(
            &["a:=x"],
            "read the argument `a` as JSON: expected value at line 1 column 1",
        );
    }
}
