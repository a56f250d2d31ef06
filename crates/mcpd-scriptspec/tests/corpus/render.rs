//! Results as text that a reviewer can judge at a glance.

use std::{fmt::Write as _, ops::Range};

use mcpd_scriptspec::{ArgumentFault, Diagnostic, Invocation, ScriptSpec};
use serde_json::Value;

/// Maximum number of columns shown of a line.
const MAX_COLUMNS: usize = 100;

/// Renders a diagnostic with its line, and carets under its span.
#[track_caller]
pub(crate) fn diagnostic(diagnostic: &Diagnostic, stream: &[u8]) -> String {
    let Diagnostic {
        code,
        severity,
        message,
        location,
        help,
        ..
    } = diagnostic;
    let Range { start, end } = location.span;
    assert!(
        start <= end && end <= stream.len(),
        "{code}: the span is in the stream"
    );
    let is_line_end = |byte: &u8| *byte == b'\n';
    let line_start = stream[..start]
        .iter()
        .rposition(is_line_end)
        .map_or(0, |at| at + 1);
    let line_end = stream[start..]
        .iter()
        .position(is_line_end)
        .map_or(stream.len(), |at| start + at);
    let line = stream[..start]
        .iter()
        .filter(|byte| is_line_end(byte))
        .count()
        + 1;
    let column = characters(&stream[line_start..start]).len();
    let marked = characters(&stream[start..end.min(line_end).max(start)]).len();

    // A long line is cut to the part around the span.
    let skipped = if column < MAX_COLUMNS {
        0
    } else {
        column - MAX_COLUMNS / 2
    };
    let shown: String = characters(&stream[line_start..line_end])
        .iter()
        .skip(skipped)
        .take(MAX_COLUMNS)
        .collect();
    let place = column - skipped;
    let carets = "^".repeat(marked.clamp(1, MAX_COLUMNS - place));
    let indent = " ".repeat(place);
    let mut text = format!("{severity}[{code}]: {message}\n");
    writeln!(
        text,
        "  --> {} {line}:{} (bytes {start}..{end})",
        location.stream,
        column + 1
    )
    .unwrap();
    writeln!(text, "  | {shown}\n  | {indent}{carets}").unwrap();
    if let Some(help) = help {
        writeln!(text, "  = help: {help}").unwrap();
    }
    text
}

/// Characters that a terminal shows for bytes, one for each shown byte or character.
fn characters(bytes: &[u8]) -> Vec<char> {
    let visible = |char: char| {
        if char.is_control() || char == '\u{feff}' {
            '·'
        } else {
            char
        }
    };
    String::from_utf8_lossy(bytes)
        .chars()
        .map(visible)
        .collect()
}

/// Metadata beyond the defaults, one field a line.
pub(crate) fn metadata(spec: &ScriptSpec) -> String {
    let default = metadata_fields(&ScriptSpec::default());
    let fields = metadata_fields(spec).into_iter().zip(default);
    let mut text = "\n-- metadata --\n".to_owned();
    for ((name, value), _) in fields.filter(|(field, default)| field != default) {
        writeln!(text, "{name}: {value}").unwrap();
    }
    text
}

fn metadata_fields(spec: &ScriptSpec) -> Vec<(&'static str, String)> {
    vec![
        ("title", format!("{:?}", spec.title)),
        ("description", shorten(&format!("{:?}", spec.description))),
        ("version", format!("{:?}", spec.version)),
        ("state", format!("{:?}", spec.state)),
        ("role", format!("{:?}", spec.role)),
        ("output", format!("{:?}", spec.output)),
        (
            "output schema",
            format!("{:?}", spec.output_schema.as_ref().map(Value::to_string)),
        ),
        ("annotations", format!("{:?}", spec.annotations)),
        ("icons", format!("{:?}", spec.icons)),
        ("tags", format!("{:?}", spec.tags)),
        ("timeout", format!("{:?}", spec.timeout)),
        ("concurrency", format!("{:?}", spec.concurrency)),
        ("sandbox", format!("{:?}", spec.sandbox)),
        ("requires", format!("{:?}", spec.requires)),
        ("context", format!("{:?}", spec.context)),
        ("task", format!("{:?}", spec.task)),
        ("safety", format!("{:?}", spec.safety)),
        ("command", format!("{:?}", spec.command)),
        ("subcommand", format!("{:?}", spec.subcommand)),
        ("command line", format!("{:?}", spec.synopsis())),
        ("_meta", Value::Object(spec.meta.clone()).to_string()),
    ]
}

/// A schema with one property a line.
pub(crate) fn schema(schema: &Value) -> String {
    let mut text = "{\n".to_owned();
    let members = schema.as_object().unwrap();
    for (index, (key, value)) in members.iter().enumerate() {
        let comma = if index + 1 < members.len() { "," } else { "" };
        match value
            .as_object()
            .filter(|_| key == "properties")
            .filter(|options| !options.is_empty())
        {
            Some(options) => {
                let lines: Vec<_> = options
                    .iter()
                    .map(|(name, option)| format!("    {name:?}: {option}"))
                    .collect();
                write!(text, "  {key:?}: {{\n{}\n  }}{comma}\n", lines.join(",\n")).unwrap();
            }
            None => writeln!(text, "  {key:?}: {value}{comma}").unwrap(),
        }
    }
    text + "}"
}

/// A call with the script's input, or with the faults.
pub(crate) fn call(arguments: &str, outcome: &Result<Invocation, Vec<ArgumentFault>>) -> String {
    let mut text = format!("> {}\n", shorten(arguments));
    match outcome {
        Ok(invocation) => {
            let stdin = String::from_utf8(invocation.stdin.clone()).unwrap();
            writeln!(text, "  stdin {}", shorten(&stdin)).unwrap();
            for (name, value) in &invocation.env {
                writeln!(
                    text,
                    "  {name}={}",
                    shorten(
                        &value
                            .escape_debug()
                            .to_string()
                            .replace("\\\"", "\"")
                            .replace("\\'", "'")
                    )
                )
                .unwrap();
            }
            if !invocation.args.is_empty() {
                let args = Value::from(invocation.args.clone()).to_string();
                writeln!(text, "  args {}", shorten(&args)).unwrap();
            }
        }
        Err(faults) => {
            for fault in faults {
                writeln!(text, "  fault {}", shorten(&fault.to_string())).unwrap();
            }
        }
    }
    text
}

fn shorten(text: &str) -> String {
    let count = text.chars().count();
    if count <= 300 {
        return text.to_owned();
    }
    format!(
        "{}… ({count} characters)",
        text.chars().take(60).collect::<String>()
    )
}
