//! Drafts: descriptions in the form of a front end, as JSON with the place of
//! every part in the source.

use std::ops::Range;

use crate::{
    diagnostic::{Diagnostic, Location, Severity, Stream},
    edit::Repair,
    json::{Kind, Member, Span, Value},
    parse::{HelpOutput, Parsed, parse},
    rules::Code,
    suggest::{suggest, suggest_only},
    text,
};

/// Description of one tool before it is checked.
#[derive(Debug)]
pub(super) struct Draft {
    /// Object with the fields that a script prints to stdout of `--help`.
    pub(super) metadata: Node,
    /// Object with the options that a script prints to stderr of `--help`.
    pub(super) options: Node,
    /// Faults found by the front end.
    pub(super) diagnostics: Vec<Diagnostic>,
    /// Declaration of optional options in this dialect.
    pub(super) optional: Optional,
}

/// Declaration of an option that is optional without a default.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum Optional {
    /// With the fields that scripts print.
    #[default]
    AsPrinted,
    /// With words of the dialect, which the help of a fault suggests.
    InWords(&'static str),
    /// Always explicit, so it is never a fault.
    OnPurpose,
}

/// A value and its place in the source.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) span: Span,
    pub(super) value: Literal,
}

/// A JSON value.
#[derive(Debug, Clone)]
pub(super) enum Literal {
    Null,
    Boolean(bool),
    /// A number in JSON format.
    Number(String),
    String(String),
    Array(Vec<Node>),
    Object(Vec<Entry>),
}

/// A member of an object.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) key_span: Span,
    pub(super) value: Node,
}

impl Draft {
    /// Creates an empty draft for the source at `span`.
    pub(super) fn new(span: Span) -> Self {
        Self {
            metadata: Node::object(span.clone()),
            options: Node::object(span),
            diagnostics: Vec::new(),
            optional: Optional::default(),
        }
    }

    /// Reports a fault that later checks cannot find.
    pub(super) fn fault(
        &mut self,
        code: Code,
        span: Span,
        message: impl Into<String>,
    ) -> &mut Diagnostic {
        let diagnostic = Diagnostic::new(code, Stream::Source, span, message.into());
        self.diagnostics.push_mut(diagnostic)
    }

    /// Returns the diagnostics of a source that could not be read.
    pub(super) fn refuse(mut self) -> Parsed {
        sort(&mut self.diagnostics);
        Parsed {
            diagnostics: self.diagnostics,
            ..Parsed::default()
        }
    }

    /// Reports a duplicate key of an object that later checks won't see.
    pub(super) fn second_key(&mut self, key: &str, span: Span) {
        let message = format!("duplicate key {}", text::name(key));
        self.fault(Code::DuplicateKey, span, message);
    }

    /// Reports an unknown field.
    pub(super) fn unknown_field(&mut self, field: &str, span: Span, known: &[&str]) {
        let message = format!("unknown field {}", text::name(field));
        let fault = self.fault(Code::UnknownField, span, message);
        let meant = suggest_only(field, known.iter().copied());
        fault.repair = meant.map(|near| Box::new(Repair::respell(field, near)));
        fault.help = Some(match suggest(field, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("known fields: {}", known.join(", ")),
        });
    }

    /// Checks the draft as if a script had printed it; diagnostics point into the source.
    pub(super) fn finish(self) -> Parsed {
        let (metadata, options) = (Written::new(&self.metadata), Written::new(&self.options));
        let parsed = parse(HelpOutput {
            stdout: metadata.text.as_bytes(),
            stderr: options.text.as_bytes(),
        });
        let optional = self.optional;
        let said = parsed.diagnostics.into_iter();
        let relocated = said.filter_map(|mut diagnostic| {
            let written = match diagnostic.location.stream {
                Stream::Stderr => &options,
                Stream::Stdout | Stream::Source => &metadata,
            };
            written.relocate(&mut diagnostic.location);
            if diagnostic.code == Code::NestingTooDeep {
                // Its help is about `--help`.
                diagnostic.help = None;
            }
            match optional {
                _ if diagnostic.code != Code::OptionalWithoutDefault => {}
                Optional::AsPrinted => {}
                Optional::InWords(help) => diagnostic.help = Some(help.to_owned()),
                Optional::OnPurpose => return None,
            }
            Some(diagnostic)
        });
        let mut schemas = parsed.schemas;
        for (_, location) in &mut schemas {
            metadata.relocate(location);
        }
        let mut diagnostics = self.diagnostics;
        diagnostics.extend(relocated);
        sort(&mut diagnostics);
        let failed = diagnostics
            .iter()
            .any(|diagnostic| diagnostic.severity == Severity::Error);
        Parsed {
            spec: parsed.spec.filter(|_| !failed),
            diagnostics,
            schemas,
        }
    }
}

fn sort(diagnostics: &mut [Diagnostic]) {
    diagnostics.sort_by_key(|diagnostic| {
        let span = &diagnostic.location.span;
        (span.start, span.end)
    });
}

impl Node {
    pub(super) fn new(span: Span, value: Literal) -> Self {
        Self { span, value }
    }

    pub(super) fn string(span: Span, text: impl Into<String>) -> Self {
        Self::new(span, Literal::String(text.into()))
    }

    pub(super) fn boolean(span: Span, value: bool) -> Self {
        Self::new(span, Literal::Boolean(value))
    }

    /// An object without members.
    pub(super) fn object(span: Span) -> Self {
        Self::new(span, Literal::Object(Vec::new()))
    }

    /// The text of a string.
    pub(super) fn text(&self) -> Option<&str> {
        match &self.value {
            Literal::String(text) => Some(text),
            _ => None,
        }
    }

    /// The first member of this name.
    pub(super) fn member(&self, key: &str) -> Option<&Self> {
        let Literal::Object(entries) = &self.value else {
            return None;
        };
        let entry = entries.iter().find(|entry| entry.key == key);
        entry.map(|entry| &entry.value)
    }

    /// The first member of this name, mutable.
    pub(super) fn member_mut(&mut self, key: &str) -> Option<&mut Self> {
        let Literal::Object(entries) = &mut self.value else {
            return None;
        };
        let entry = entries.iter_mut().find(|entry| entry.key == key);
        entry.map(|entry| &mut entry.value)
    }

    /// Returns whether the value is an object without members.
    pub(super) fn is_empty_object(&self) -> bool {
        matches!(&self.value, Literal::Object(entries) if entries.is_empty())
    }

    /// The members of an object; none of another value.
    pub(super) fn into_entries(self) -> Vec<Entry> {
        match self.value {
            Literal::Object(entries) => entries,
            _ => Vec::new(),
        }
    }

    /// Returns the object with one more member; the place of its key is that of its value.
    pub(super) fn with(mut self, key: impl Into<String>, value: Self) -> Self {
        self.add(key, value.span.clone(), value);
        self
    }

    /// Adds a member to an object; does nothing to another value.
    pub(super) fn add(&mut self, key: impl Into<String>, key_span: Span, value: Self) {
        if let Literal::Object(entries) = &mut self.value {
            entries.push(Entry {
                key: key.into(),
                key_span,
                value,
            });
        }
    }
}

/// Parsed JSON with its places in the source.
impl From<Value<'_>> for Node {
    fn from(value: Value<'_>) -> Self {
        let entry = |member: Member<'_>| Entry {
            key: member.key.into_owned(),
            key_span: member.key_span,
            value: member.value.into(),
        };
        let literal = match value.kind() {
            Kind::Null => Literal::Null,
            Kind::Boolean => Literal::Boolean(value.boolean().unwrap_or_default()),
            Kind::Number => Literal::Number(value.text().to_owned()),
            Kind::String => Literal::String(value.string().unwrap_or_default().into_owned()),
            Kind::Array => Literal::Array(value.elements().map(Self::from).collect()),
            Kind::Object => Literal::Object(value.members().map(entry).collect()),
        };
        Self::new(value.span(), literal)
    }
}

/// The place of `part`, a slice of `source`.
pub(super) fn span_of(part: &str, source: &str) -> Span {
    let start = part.as_ptr().addr() - source.as_ptr().addr();
    start..start + part.len()
}

/// JSON text of a node, with the mapping back to the source.
#[derive(Debug, Default)]
struct Written {
    text: String,
    /// Places of nodes in the text, and in the source; inner nodes before outer ones.
    places: Vec<(Range<usize>, Span)>,
}

impl Written {
    fn new(node: &Node) -> Self {
        let mut written = Self::default();
        written.write(node);
        written
    }

    fn write(&mut self, node: &Node) {
        let start = self.text.len();
        match &node.value {
            Literal::Null => self.text.push_str("null"),
            Literal::Boolean(value) => self.text.push_str(if *value { "true" } else { "false" }),
            Literal::Number(number) => self.text.push_str(number),
            Literal::String(text) => self.string(text),
            Literal::Array(items) => {
                self.text.push('[');
                for (place, item) in items.iter().enumerate() {
                    self.separate(place);
                    self.write(item);
                }
                self.text.push(']');
            }
            Literal::Object(entries) => {
                self.text.push('{');
                for (place, entry) in entries.iter().enumerate() {
                    self.separate(place);
                    let key = self.text.len();
                    self.string(&entry.key);
                    self.places
                        .push((key..self.text.len(), entry.key_span.clone()));
                    self.text.push(':');
                    self.write(&entry.value);
                }
                self.text.push('}');
            }
        }
        self.places
            .push((start..self.text.len(), node.span.clone()));
    }

    fn separate(&mut self, place: usize) {
        if place > 0 {
            self.text.push(',');
        }
    }

    fn string(&mut self, text: &str) {
        let quoted = serde_json::to_string(text).expect("a string is valid JSON");
        self.text.push_str(&quoted);
    }

    /// Replaces a place in this text by the place in the source.
    fn relocate(&self, location: &mut Location) {
        location.stream = Stream::Source;
        location.span = self.source_of(&location.span);
    }

    /// The place in the source of the smallest part that covers `span`.
    fn source_of(&self, span: &Range<usize>) -> Span {
        // Earlier ends cannot cover it, and inner parts come before outer ones.
        let first = self
            .places
            .partition_point(|(place, _)| place.end < span.end);
        let mut ending_later = self.places[first..].iter();
        let smallest = ending_later.find(|(place, _)| place.start <= span.start);
        smallest.map_or(0..0, |(_, source)| source.clone())
    }
}
