//! `mcpd call`: one call from the shell. The result goes to stdout, everything else to stderr.

mod show;

use std::io;

use anyhow::{Context as _, bail};
use mcpd_check::describe;
use mcpd_config::File;
use mcpd_protocol::content::ContentBlock;
use mcpd_protocol::jsonrpc::Notification;
use mcpd_protocol::method::{CallToolRequestParams, CallToolResult, LoggingLevel};
use mcpd_scriptspec::text_arguments::TextArguments;
use mcpd_server::Principal;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{find_tool, server_of, with_server};
use crate::args::{Call, Logging};
use crate::exit_code::ExitCode;
use crate::{client, output};

mod record;

/// Separator in a note between the outcome of a run and the end of its stderr.
const STDERR_FOLLOWS: &str = " The end of its stderr:\n";

/// Calls the tool and prints its result.
pub(crate) async fn run(args: Call, logging: &Logging, file: &File) -> anyhow::Result<ExitCode> {
    let arguments = match &args.arguments {
        Some(json) => Arguments::Whole(read_json_arguments(json)?),
        None => Arguments::Texts(TextArguments::parse(&args.pairs)?),
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
        let schema = serde_json::from_str(tool.definition().input_schema.get());
        let schema: Value = schema.unwrap_or_default();
        let given = arguments.for_tool(&schema)?;
        if args.show {
            return show::run(&tool, &given, args.json);
        }
        let mut params = CallToolRequestParams::new(name).with_arguments(given.clone());
        let needs_approval = server.needs_approval(&tool);
        params.meta = Some(match needs_approval && (args.yes || output::can_ask()) {
            true => client::envelope_with_approval(level),
            false => client::envelope(level),
        });
        let approve = |question: &str| {
            args.yes
                || output::ask(&format!("{question}\nApprove the call? [y/N] ")).unwrap_or_default()
        };
        match client::call(server, Principal::local(), &params, relay, approve).await? {
            Ok(result) => {
                print(&result, args.json, args.raw)?;
                if !args.json {
                    relay_notes(&result, logging.quiet);
                }
                note_rest(&result);
                if let Some(case) = &args.record {
                    record::record(case, &tool, &server.catalog(), &given, &result)?;
                }
                if is_refused(&result) && needs_approval && !args.yes && !output::can_ask() {
                    output::note("there is no terminal to ask at; `--yes` approves the call\n");
                } else if is_refused(&result) {
                    output::note(&arguments.hints(&schema));
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
    Texts(TextArguments<'a>),
}

impl Arguments<'_> {
    fn for_tool(&self, schema: &Value) -> anyhow::Result<Box<RawValue>> {
        match self {
            Self::Whole(arguments) => Ok(arguments.clone()),
            Self::Texts(texts) => texts.to_json(schema).context("encode the arguments"),
        }
    }

    /// Describes how to write lists, for arguments that were given as text where a list is
    /// expected.
    fn hints(&self, schema: &Value) -> String {
        let Self::Texts(texts) = self else {
            return String::new();
        };
        let hints = texts.lists(schema).map(|(name, word)| {
            let word = output::shell_command([&*word]);
            format!("`{name}` is an array; write {word}\n")
        });
        hints.collect()
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

/// Level of the script's log that is shown.
pub(super) fn log_level(logging: &Logging) -> LoggingLevel {
    match logging.verbose {
        _ if logging.quiet => LoggingLevel::Error,
        0 => LoggingLevel::Info,
        _ => LoggingLevel::Debug,
    }
}

/// Prints a line of the script's log. The result contains its output.
pub(super) fn relay(message: &Notification<'_>) {
    if let Some(line) = describe::log_line(message) {
        output::note_foreign(&line);
    }
}

fn print(result: &CallToolResult, as_json: bool, is_raw: bool) -> anyhow::Result<()> {
    if as_json {
        return output::write_json(result);
    }
    let mut printed = result.content.iter().filter(|block| !is_note(block));
    printed.try_for_each(|block| print_block(block, is_raw))
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
            output::note_foreign(&format!("{sentence}\n"));
        }
        if let Some(stderr) = stderr.filter(|_| is_quiet && is_alone) {
            output::note_foreign(&format!("{stderr}\n"));
        }
    }
}

/// Prints one block of content: its text, or the whole block if it is not text.
pub(super) fn print_block(block: &ContentBlock, is_raw: bool) -> anyhow::Result<()> {
    match block {
        ContentBlock::Text(block) => output::write_foreign(&block.text, is_raw),
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
