//! Description of one tool, assembled from the parts that its author wrote.

use std::collections::BTreeSet;

use super::fields::{FieldPosition, options};
use crate::{
    diagnostic::Diagnostic,
    dialect::draft::{Draft, Entry, Literal, Node, Optional},
    json::Span,
    parse::Parsed,
    rules::Code,
    spec::OutputFormat,
};

/// Words of Script Kit, and their fields.
const METADATA: &[(&str, &str)] = &[
    ("name", "title"),
    ("description", "description"),
    ("tags", "tags"),
    ("version", "version"),
];

/// Words of Script Kit about windows, keys and schedules, which have no meaning for callers.
const IGNORED: &[&str] = &[
    "alias",
    "author",
    "background",
    "cron",
    "enter",
    "exclude",
    "expand",
    "group",
    "hidden",
    "icon",
    "image",
    "index",
    "keyword",
    "log",
    "pass",
    "placeholder",
    "preview",
    "schedule",
    "shebang",
    "shortcode",
    "shortcut",
    "snippet",
    "system",
    "timeout",
    "trigger",
    "twitter",
    "type",
    "watch",
];

#[derive(Debug)]
pub(in crate::dialect) struct Description {
    draft: Draft,
    /// Place of the schema.
    schema: Option<Span>,
    output: Option<Node>,
}

impl Description {
    /// Creates the description of a tool at `span` of the source.
    pub(in crate::dialect) fn new(span: Span) -> Self {
        Self {
            draft: Draft {
                optional: Optional::InWords("add a `default`, or `required: true`"),
                ..Draft::new(span)
            },
            schema: None,
            output: None,
        }
    }

    pub(in crate::dialect) fn fault(
        &mut self,
        code: Code,
        span: Span,
        message: impl Into<String>,
    ) -> &mut Diagnostic {
        self.draft.fault(code, span, message)
    }

    /// Title of the tool.
    pub(in crate::dialect) fn title(&self) -> Option<&Node> {
        self.draft.metadata.member("title")
    }

    /// The inputs so far, with the fields of options.
    pub(in crate::dialect) fn options(&mut self) -> &mut Node {
        &mut self.draft.options
    }

    /// One of the inputs so far.
    pub(in crate::dialect) fn option(&self, name: &str) -> Option<&Node> {
        self.draft.options.member(name)
    }

    /// Reads `{ name: …, description: … }`.
    pub(in crate::dialect) fn metadata(&mut self, object: Node) {
        for Entry {
            key,
            key_span,
            value,
        } in object.into_entries()
        {
            let field = METADATA.iter().find(|(word, _)| *word == key);
            match field {
                Some((_, field)) => self.draft.metadata.add(*field, key_span, value),
                None if IGNORED.contains(&key.as_str()) => {}
                None => {
                    let mut known: Vec<_> = METADATA.iter().map(|(word, _)| *word).collect();
                    known.extend(IGNORED);
                    self.draft.unknown_field(&key, key_span, &known);
                }
            }
        }
    }

    /// Adds a field that applies only if no other part sets it.
    pub(in crate::dialect) fn add_field(&mut self, said: Entry) {
        if let Some((_, field)) = METADATA.iter().find(|(word, _)| *word == said.key)
            && self.draft.metadata.member(field).is_none()
        {
            self.draft.metadata.add(*field, said.key_span, said.value);
        }
    }

    /// Reads `{ input: { … }, output: { … } }`.
    pub(in crate::dialect) fn schema(&mut self, schema: Node) {
        let span = schema.span.clone();
        if self.schema.replace(span.clone()).is_some() {
            self.fault(Code::ConflictingFields, span, "a second schema");
            return;
        }
        let mut seen = BTreeSet::new();
        for Entry {
            key,
            key_span,
            value,
        } in schema.into_entries()
        {
            match key.as_str() {
                _ if !seen.insert(key.clone()) => self.draft.second_key(&key, key_span),
                "input" | "output" if !matches!(value.value, Literal::Object(_)) => {
                    let message = format!("`{key}` is not an object");
                    self.fault(Code::FieldTypeMismatch, value.span, message);
                }
                "input" => {
                    self.draft.options = options(value, FieldPosition::Input, &mut self.draft)
                }
                "output" => self.output = Some(value),
                _ => self
                    .draft
                    .unknown_field(&key, key_span, &["input", "output"]),
            }
        }
    }

    /// Checks the description. If a literal has faults, only these are reported:
    /// others may result from them.
    pub(in crate::dialect) fn finish(mut self, faults: Vec<Diagnostic>) -> Parsed {
        if !faults.is_empty() {
            self.draft.diagnostics = faults;
            return self.draft.refuse();
        }
        let output = self
            .output
            .take()
            .filter(|output| !output.is_empty_object());
        let mut parsed = self.draft.finish();
        if let Some(output) = output {
            let (schema, diagnostics) = output_schema(output);
            parsed.diagnostics.extend(diagnostics);
            parsed
                .diagnostics
                .sort_by_key(|diagnostic| diagnostic.location.span.start);
            parsed.spec = parsed.spec.zip(schema).map(|(mut spec, schema)| {
                spec.output = OutputFormat::Json;
                spec.output_schema = Some(schema);
                spec
            });
        }
        parsed
    }
}

/// Converts the fields of an output to a JSON Schema, by way of an option with these properties.
fn output_schema(fields: Node) -> (Option<serde_json::Value>, Vec<Diagnostic>) {
    let span = fields.span.clone();
    let mut draft = Draft::new(span.clone());
    let properties = options(fields, FieldPosition::Property, &mut draft);
    let output = Node::object(span.clone())
        .with("value_type", Node::string(span.clone(), "object"))
        .with("required", Node::boolean(span.clone(), true))
        .with("properties", properties);
    draft.options.add("output", span, output);
    let mut parsed = draft.finish();
    // Callers do not fill these fields.
    let for_callers = [Code::MissingDescription, Code::UndescribedOption];
    parsed
        .diagnostics
        .retain(|diagnostic| !for_callers.contains(&diagnostic.code));
    let schema = parsed.spec.map(|spec| {
        let mut schema = spec.input_schema()["properties"]["output"].take();
        open(&mut schema);
        schema
    });
    (schema, parsed.diagnostics)
}

/// Allows additional properties in the objects of a schema: output with more than
/// was declared breaks nothing.
fn open(schema: &mut serde_json::Value) {
    let Some(keywords) = schema.as_object_mut() else {
        return;
    };
    keywords.shift_remove("additionalProperties");
    if let Some(items) = keywords.get_mut("items") {
        open(items);
    }
    let properties = keywords
        .get_mut("properties")
        .and_then(|value| value.as_object_mut());
    properties
        .into_iter()
        .flat_map(|properties| properties.values_mut())
        .for_each(open);
}

/// Parses `Name: value`, at byte `start` of the source. With a word that Script Kit lacks, the
/// line is an ordinary comment.
pub(in crate::dialect) fn comment_line(line: &str, start: usize) -> Option<Entry> {
    let (word, rest) = line.split_once(':')?;
    let key = word.trim().to_ascii_lowercase();
    METADATA.iter().find(|(known, _)| *known == key)?;
    let key_start = start + word.len() - word.trim_start().len();
    let text = rest.trim();
    let value_start = start + line.len() - rest.trim_start().len();
    let span = value_start..value_start + text.len();
    let value = match key.as_str() {
        "tags" => tags(text, &span),
        _ => Node::string(span, text),
    };
    Some(Entry {
        key_span: key_start..key_start + key.len(),
        key,
        value,
    })
}

fn tags(text: &str, span: &Span) -> Node {
    let words = text.split(',').map(str::trim).filter(|tag| !tag.is_empty());
    let tags = words.map(|tag| Node::string(span.clone(), tag)).collect();
    Node::new(span.clone(), Literal::Array(tags))
}
