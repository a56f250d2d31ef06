//! Parser of `--help` output. Parsing never fails: it returns a spec of the
//! understood parts, and diagnostics.

use crate::{
    diagnostic::{Diagnostic, Location, Severity, Stream},
    json::{self, Document, Kind, SyntaxErrorKind, Value},
    rules::Code,
    spec::{Role, ScriptSpec},
    text,
};

mod delivery;
mod metadata;
mod noise;
mod options;
mod report;
mod role;
mod schema;
mod template;
mod value_type;

pub(crate) use metadata::is_subcommand;

use report::Report;

/// Output of a script's `--help`.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::exhaustive_structs, reason = "a process has these two outputs")]
pub struct HelpOutput<'a> {
    /// The metadata.
    pub stdout: &'a [u8],
    /// The options, or nothing.
    pub stderr: &'a [u8],
}

/// Result of parsing: the spec, and all faults.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Parsed {
    /// Absent exactly if a diagnostic is an error.
    pub spec: Option<ScriptSpec>,
    /// Faults in the order of their places: stdout first.
    pub diagnostics: Vec<Diagnostic>,
    /// Places of `input_schema` and `output_schema`, if they exist.
    pub(crate) schemas: Vec<(&'static str, Location)>,
}

impl Parsed {
    /// Diagnostic of an unusable schema, which only its compiler can find: `field` is
    /// `input_schema` or `output_schema`, and `reason` a fragment.
    #[must_use]
    pub fn invalid_schema(&self, field: &str, reason: &str) -> Diagnostic {
        let declared = self.schemas.iter().find(|(name, _)| *name == field);
        let location = declared.map(|(_, location)| location.clone());
        let Location { stream, span } = location.unwrap_or(Location {
            stream: Stream::Stdout,
            span: 0..0,
        });
        let message = format!("`{field}`: {reason}");
        Diagnostic::new(Code::InvalidSchema, stream, span, message)
    }
}

/// Parses a script's description of itself.
///
/// ```
/// use mcpd_scriptspec::{HelpOutput, parse};
///
/// let parsed = parse(HelpOutput { stdout: br#"{"description": "Says hello"}"#, stderr: b"" });
/// assert_eq!(parsed.spec.unwrap().description.as_deref(), Some("Says hello"));
/// ```
#[must_use]
pub fn parse(help: HelpOutput<'_>) -> Parsed {
    let mut diagnostics = Vec::new();
    let mut schemas = Vec::new();
    let spec = read(help, &mut diagnostics, &mut schemas);
    diagnostics.sort_by_key(|diagnostic| {
        (
            diagnostic.location.stream,
            diagnostic.location.span.start,
            diagnostic.location.span.end,
        )
    });
    let failed = diagnostics
        .iter()
        .any(|diagnostic| diagnostic.severity == Severity::Error);
    Parsed {
        spec: (!failed).then_some(spec),
        diagnostics,
        schemas,
    }
}

fn read(
    help: HelpOutput<'_>,
    diagnostics: &mut Vec<Diagnostic>,
    schemas: &mut Vec<(&'static str, Location)>,
) -> ScriptSpec {
    let mut spec = ScriptSpec::default();
    let stdout = open(help.stdout, &mut Report::new(Stream::Stdout, diagnostics));
    let stderr = open(help.stderr, &mut Report::new(Stream::Stderr, diagnostics));
    let mut report = Report::new(Stream::Stdout, diagnostics);
    if are_swapped(&stdout, &stderr) {
        let message = "the options are on stdout and the metadata on stderr";
        report
            .fault(
                Code::SwappedStreams,
                0..help.stdout.trim_ascii_end().len(),
                message,
            )
            .help("print the metadata to stdout and the options to stderr");
        return spec;
    }
    metadata::read(&stdout, &stderr, &mut spec, &mut report);
    schemas.extend(stdout.root().into_iter().flat_map(schema::places));
    if matches!(stdout, HelpStream::Blank) && stderr.root().is_some_and(metadata::resembles) {
        return spec;
    }
    options::read(
        &stderr,
        &mut spec,
        &mut Report::new(Stream::Stderr, diagnostics),
    );
    role::check_options(
        &stderr,
        &spec,
        &mut Report::new(Stream::Stderr, diagnostics),
    );
    if let Some(root) = stdout.root()
        && let Some(field) = root.members().find(|member| member.key == "command_line")
    {
        let mut report = Report::new(Stream::Stdout, diagnostics);
        delivery::check_command_line(&field, &spec, &mut report);
        delivery::check_open_lists(&field, &spec, &mut report);
    }
    if let Some(root) = stdout.root()
        && matches!(
            spec.role,
            Role::Resource {
                is_template: true,
                ..
            }
        )
        && let Some(template) = root.members().find(|member| member.key == "uri_template")
    {
        role::check_variables(
            &template,
            &spec,
            &mut Report::new(Stream::Stdout, diagnostics),
        );
    }
    spec
}

/// One output of `--help`.
enum HelpStream<'a> {
    /// Nothing but whitespace.
    Blank,
    /// Not one JSON value; the fault has been reported.
    Faulty,
    Json(Document<'a>),
}

impl<'a> HelpStream<'a> {
    fn root(&self) -> Option<Value<'a>> {
        match self {
            Self::Json(document) => Some(document.root),
            Self::Blank | Self::Faulty => None,
        }
    }
}

fn open<'a>(bytes: &'a [u8], report: &mut Report<'_>) -> HelpStream<'a> {
    const BYTE_ORDER_MARK: &str = "\u{feff}";
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let (span, message) = text::not_utf8(bytes, error);
            report.fault(Code::HelpNotUtf8, span, message);
            return HelpStream::Faulty;
        }
    };
    let start = if text.starts_with(BYTE_ORDER_MARK) {
        BYTE_ORDER_MARK.len()
    } else {
        0
    };
    if start > 0 {
        report.fault(
            Code::ByteOrderMark,
            0..start,
            "a byte order mark before the JSON",
        );
    }
    if text[start..].trim().is_empty() {
        return HelpStream::Blank;
    }
    match json::read(text, start) {
        Ok(document) => HelpStream::Json(document),
        Err(_) if let Some(output) = read_among_noise(text, start, report) => output,
        Err(error) => {
            let code = match error.kind {
                SyntaxErrorKind::Grammar => Code::HelpNotJson,
                SyntaxErrorKind::TooDeep => Code::NestingTooDeep,
                SyntaxErrorKind::Trailing => Code::TextAfterJson,
            };
            let help = match report.stream() {
                Stream::Stdout if is_prose(&text[start..]) => {
                    "stdout of `--help` must be the metadata, one JSON object; if the script prints help for people, describe it in `NAME.mcpd.toml` beside it"
                }
                Stream::Stdout | Stream::Source => {
                    "stdout of `--help` must be the metadata, one JSON object and nothing else"
                }
                Stream::Stderr => {
                    "stderr of `--help` must be the options, one JSON object and nothing else, not even log lines"
                }
            };
            report.fault(code, error.span, error.message).help(help);
            HelpStream::Faulty
        }
    }
}

/// Reads the options from a stderr that the script's interpreter has written to as well.
fn read_among_noise<'a>(
    text: &'a str,
    start: usize,
    report: &mut Report<'_>,
) -> Option<HelpStream<'a>> {
    if report.stream() != Stream::Stderr {
        return None;
    }
    let (output, noise, message) = match noise::object_among_lines(text, start) {
        Some((document, noise)) => {
            let message = "stderr has other lines beside the options";
            (HelpStream::Json(document), noise, message)
        }
        None => {
            let noise = noise::runtime_noise(text, start)?;
            (
                HelpStream::Blank,
                noise,
                "stderr has messages of the interpreter instead of options",
            )
        }
    };
    let help = "keep other output of `--help` off stderr, for example by setting `LC_ALL=C` or silencing the warning";
    report.fault(Code::NoiseOnStderr, noise, message).help(help);
    Some(output)
}

/// Returns whether a text looks like prose rather than malformed JSON.
fn is_prose(text: &str) -> bool {
    text.trim_start().starts_with(char::is_alphabetic)
}

/// Returns whether each output plainly holds the content of the other.
fn are_swapped(stdout: &HelpStream<'_>, stderr: &HelpStream<'_>) -> bool {
    let (Some(stdout), Some(stderr)) = (stdout.root(), stderr.root()) else {
        return false;
    };
    let mut names = stdout.members().peekable();
    let are_options = names.peek().is_some()
        && names.all(|member| {
            member.value.kind() == Kind::Object && !metadata::FIELDS.contains(&&*member.key)
        });
    are_options && metadata::resembles(stderr)
}

#[cfg(test)]
mod tests;
