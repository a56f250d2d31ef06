//! Parser of the metadata object: the description of the script as a whole.

use std::{num::NonZeroU32, time::Duration};

use super::{HelpStream, Report, delivery, role, schema};
use crate::{
    edit::Repair,
    json::{Document, Kind, Member, Value},
    rules::Code,
    spec::{
        Annotations, Icon, NetworkRequest, OutputFormat, SandboxLevel, SandboxRequest, ScriptSpec,
        TaskSupport,
    },
    suggest::{suggest, suggest_only},
    text,
};

pub(super) const FIELDS: &[&str] = &[
    "title",
    "description",
    "version",
    "state",
    "kind",
    "uri",
    "uri_template",
    "mime_type",
    "input_schema",
    "output",
    "output_schema",
    "annotations",
    "icons",
    "tags",
    "timeout",
    "concurrency",
    "sandbox",
    "requires",
    "context",
    "task",
    "safety",
    "command",
    "subcommand",
    "command_line",
    "_meta",
];

/// Maximum lengths of texts, in characters.
pub(super) const MAX_NAME: usize = 256;
pub(super) const MAX_DESCRIPTION: usize = 16 * 1024;

pub(super) fn read(
    output: &HelpStream<'_>,
    stderr: &HelpStream<'_>,
    spec: &mut ScriptSpec,
    report: &mut Report<'_>,
) {
    match output {
        HelpStream::Json(document) if document.root.kind() == Kind::Object => {
            report.duplicates(&document.duplicates);
            fields(document.root, spec, report);
        }
        HelpStream::Json(Document { root, .. }) => {
            let message = format!("the metadata is {}, expected an object", root.kind().name());
            report.fault(Code::MetadataNotObject, root.span(), message);
        }
        HelpStream::Faulty => {}
        HelpStream::Blank => {
            let message = "stdout is empty, expected the metadata as a JSON object";
            let reported = report.fault(Code::MissingMetadata, 0..0, message);
            reported.help(if stderr.root().is_some_and(resembles) {
                "stderr has what looks like the metadata; print it to stdout"
            } else {
                r#"print at least `{"description": "…"}` to stdout, or describe it in `NAME.mcpd.toml` beside it"#
            });
        }
    }
}

/// Returns whether a value looks like metadata: it has a field of the
/// metadata that is not an option.
pub(super) fn resembles(value: Value<'_>) -> bool {
    value
        .members()
        .any(|member| FIELDS.contains(&&*member.key) && member.value.kind() != Kind::Object)
}

/// Returns the field of this format for a field of other formats.
fn elsewhere(field: &str) -> Option<&'static str> {
    match field {
        "args" | "arguments" | "inputs" | "options" | "parameters" | "params" | "properties" => {
            Some("print the options as a separate JSON object to stderr, or use `input_schema`")
        }
        "name" => Some("the name of the file is the name of the script"),
        _ => None,
    }
}

fn fields(root: Value<'_>, spec: &mut ScriptSpec, report: &mut Report<'_>) {
    let fields = report.fields_or(root, FIELDS, elsewhere);
    for member in &fields {
        field(member, spec, report);
    }
    spec.role = role::read(&fields, report);
    let output_schema = fields.iter().find(|member| member.key == "output_schema");
    if let Some(member) = output_schema.filter(|_| spec.output == OutputFormat::Text) {
        spec.output_schema = None;
        report
            .fault(
                Code::UnusedField,
                member.key_span.clone(),
                "`output_schema` does not apply to text",
            )
            .help(r#"add `"output": "json"`"#);
    }
    let is_blank = spec
        .description
        .as_ref()
        .is_some_and(|text| text.trim().is_empty());
    if is_blank || fields.iter().all(|member| member.key != "description") {
        let start = root.span().start;
        report
            .fault(
                Code::MissingDescription,
                start..start + 1,
                "the script has no description",
            )
            .help("describe in a sentence or two what the script does and when to use it");
    }
}

fn field(member: &Member<'_>, spec: &mut ScriptSpec, report: &mut Report<'_>) {
    const OUTPUTS: &[(&str, OutputFormat)] = &[
        ("text", OutputFormat::Text),
        ("json", OutputFormat::Json),
        ("mcp", OutputFormat::Mcp),
    ];
    const TASKS: &[(&str, TaskSupport)] = &[
        ("never", TaskSupport::Never),
        ("auto", TaskSupport::Auto),
        ("required", TaskSupport::Required),
    ];
    match &*member.key {
        "title" => spec.title = report.text(member, MAX_NAME),
        "description" => spec.description = report.text(member, MAX_DESCRIPTION),
        "version" => spec.version = report.text(member, MAX_NAME),
        "state" => spec.state = report.boolean(member).unwrap_or_default(),
        "input_schema" => spec.declared_schema = schema::read(member, report),
        "output" => spec.output = report.choice(member, OUTPUTS).unwrap_or_default(),
        "output_schema" => spec.output_schema = schema::read(member, report),
        "annotations" => spec.annotations = annotations(member, report),
        "icons" => spec.icons = icons(member, report),
        "tags" => spec.tags = report.strings(member),
        "timeout" => spec.timeout = timeout(member, report),
        "concurrency" => spec.concurrency = concurrency(member, report),
        "sandbox" => spec.sandbox = sandbox(member, report),
        "requires" => spec.requires = requires(member, report),
        "context" => spec.context = report.boolean(member).unwrap_or_default(),
        "task" => spec.task = report.choice(member, TASKS).unwrap_or_default(),
        "safety" => spec.safety = report.text(member, MAX_DESCRIPTION),
        "subcommand" => spec.subcommand = subcommand(member, report),
        "command_line" => spec.command_line = delivery::command_line(member, report),
        "command" => spec.command = report.text(member, MAX_DESCRIPTION),
        "_meta" => spec.meta = report.object(member).unwrap_or_default(),
        // The remaining fields make up the role.
        _ => {}
    }
}

fn sandbox(member: &Member<'_>, report: &mut Report<'_>) -> Option<SandboxRequest> {
    const LEVELS: &[(&str, SandboxLevel)] = &[
        ("guarded", SandboxLevel::Guarded),
        ("strict", SandboxLevel::Strict),
    ];
    const FIELDS: &[&str] = &["level", "write", "read", "hide", "network"];
    let mut wish = SandboxRequest {
        level: SandboxLevel::default(),
        write: Vec::new(),
        read: Vec::new(),
        hide: Vec::new(),
        network: NetworkRequest::default(),
    };
    match member.value.kind() {
        Kind::String => wish.level = report.choice(member, LEVELS)?,
        Kind::Object => {
            for member in report.fields(member.value, FIELDS) {
                match &*member.key {
                    "level" => wish.level = report.choice(&member, LEVELS)?,
                    "write" => wish.write = paths(&member, report),
                    "read" => wish.read = paths(&member, report),
                    "hide" => wish.hide = paths(&member, report),
                    _ => wish.network = network(&member, report)?,
                }
            }
        }
        _ => report.mismatch("sandbox", member.value, "a level or an object"),
    }
    Some(wish)
}

/// Reads `"host"`, `"off"`, or destinations. Their hosts are checked by the server, which serves no
/// others.
fn network(member: &Member<'_>, report: &mut Report<'_>) -> Option<NetworkRequest> {
    const NETWORKS: &[(&str, bool)] = &[("host", true), ("off", false)];
    if member.value.kind() != Kind::Array {
        return Some(match report.choice(member, NETWORKS)? {
            true => NetworkRequest::Host,
            false => NetworkRequest::Off,
        });
    }
    for element in member.value.elements() {
        if element.string().is_some_and(|text| !is_destination(&text)) {
            report.mismatch(
                &member.key,
                element,
                "`HOST:PORT`, as in `api.example.com:443`",
            );
        }
    }
    Some(NetworkRequest::Only(report.strings(member)))
}

/// Returns whether the text ends with a port, or `*` for all ports, after a host.
fn is_destination(text: &str) -> bool {
    let is_port = |port: &str| port == "*" || port.parse::<u16>().is_ok_and(|port| port > 0);
    let parts = text.rsplit_once(':');
    parts.is_some_and(|(host, port)| !host.is_empty() && !host.contains('@') && is_port(port))
}

fn paths(member: &Member<'_>, report: &mut Report<'_>) -> Vec<String> {
    for element in member.value.elements() {
        if element.string().is_some_and(|path| path.is_empty()) {
            report.mismatch(&member.key, element, "a path");
        }
    }
    report.strings(member)
}

fn subcommand(member: &Member<'_>, report: &mut Report<'_>) -> Vec<String> {
    for element in member.value.elements() {
        if element.string().is_some_and(|word| !is_subcommand(&word)) {
            report
                .fault(
                    Code::InvalidArgument,
                    element.span(),
                    "not a word that selects a command",
                )
                .help("the word must not be empty, begin with `-` or contain `/`");
        }
    }
    report.strings(member)
}

/// Returns whether a word can be a subcommand of a script: not a flag, and a possible tool name.
pub(crate) fn is_subcommand(word: &str) -> bool {
    let is_part = |char: char| char != '/' && !char.is_control();
    !word.starts_with('-') && !matches!(word, "" | "." | "..") && word.chars().all(is_part)
}

/// Reads the required capabilities of clients: known ones; an extension or
/// experiment follows a dot as its id.
fn requires(member: &Member<'_>, report: &mut Report<'_>) -> Vec<String> {
    const CAPABILITIES: [&str; 7] = [
        "elicitation",
        "elicitation.form",
        "elicitation.url",
        "roots",
        "sampling",
        "sampling.context",
        "sampling.tools",
    ];
    const NAMED: [&str; 2] = ["experimental.", "extensions."];
    let is_known = |name: &str| {
        let is_named = |kind: &str| name.strip_prefix(kind).is_some_and(|id| !id.is_empty());
        CAPABILITIES.contains(&name) || NAMED.into_iter().any(is_named)
    };
    for element in member.value.elements() {
        let Some(name) = element.string().filter(|name| !is_known(name)) else {
            continue;
        };
        let message = format!("unknown client capability {}", text::name(&name));
        let repair = suggest_only(&name, CAPABILITIES).map(|near| Repair::respell(&name, near));
        report
            .fault(Code::UnknownCapability, element.span(), message)
            .repair(repair)
            .help(match suggest(&name, CAPABILITIES) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!(
                    "known ones: {}, `extensions.` or `experimental.` and an id",
                    CAPABILITIES.join(", ")
                ),
            });
    }
    report.strings(member)
}

fn annotations(member: &Member<'_>, report: &mut Report<'_>) -> Annotations {
    let mut annotations = Annotations::default();
    if member.value.kind() != Kind::Object {
        report.mismatch("annotations", member.value, "an object");
    }
    for member in report.fields(
        member.value,
        &["read_only", "destructive", "idempotent", "open_world"],
    ) {
        let hint = match &*member.key {
            "read_only" => &mut annotations.read_only,
            "destructive" => &mut annotations.destructive,
            "idempotent" => &mut annotations.idempotent,
            _ => &mut annotations.open_world,
        };
        *hint = report.boolean(&member);
    }
    annotations
}

fn icons(member: &Member<'_>, report: &mut Report<'_>) -> Vec<Icon> {
    if member.value.kind() != Kind::Array {
        report.mismatch("icons", member.value, "an array of objects");
    }
    member
        .value
        .elements()
        .filter_map(|element| icon(element, report))
        .collect()
}

fn icon(value: Value<'_>, report: &mut Report<'_>) -> Option<Icon> {
    const THEMES: &[(&str, &str)] = &[("light", "light"), ("dark", "dark")];
    let mut icon = Icon {
        src: String::new(),
        mime_type: None,
        sizes: Vec::new(),
        theme: None,
    };
    for member in report.fields(value, &["src", "mime_type", "sizes", "theme"]) {
        match &*member.key {
            "src" => {
                icon.src = report.string("src", member.value)?.into_owned();
                if !["https:", "http:", "data:"]
                    .iter()
                    .any(|scheme| icon.src.starts_with(scheme))
                {
                    let message = "an icon is a URI that starts with `https:`, `http:` or `data:`";
                    report.fault(Code::InvalidUri, member.value.span(), message);
                }
            }
            "mime_type" => icon.mime_type = report.text(&member, MAX_NAME),
            "sizes" => icon.sizes = report.strings(&member),
            _ => icon.theme = report.choice(&member, THEMES).map(str::to_owned),
        }
    }
    if icon.src.is_empty() {
        report.mismatch("icons", value, r#"objects such as `{"src": "https://…"}`"#);
        return None;
    }
    Some(icon)
}

fn timeout(member: &Member<'_>, report: &mut Report<'_>) -> Option<Duration> {
    let seconds: Option<f64> = member.value.text().parse().ok();
    let timeout = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let timeout = timeout.filter(|timeout| !timeout.is_zero());
    if timeout.is_none() {
        let expected = match seconds {
            Some(seconds) if seconds >= 1.0 => "a number of seconds up to 1.8e19",
            _ => "a number of seconds above 0",
        };
        report.mismatch("timeout", member.value, expected);
    }
    timeout
}

fn concurrency(member: &Member<'_>, report: &mut Report<'_>) -> Option<NonZeroU32> {
    let concurrency = member.value.text().parse().ok();
    if concurrency.is_none() {
        let expected = format!("a whole number from 1 to {}", u32::MAX);
        report.mismatch("concurrency", member.value, &expected);
    }
    concurrency
}
