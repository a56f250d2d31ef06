//! A description as a front end understood it: JSON that remembers where each part of it stands in the source.

use std::ops::Range;

use crate::{
    diagnostic::{Diagnostic, Location, Severity, Stream},
    json::{Kind, Member, Span, Value},
    parse::{HelpOutput, Parsed, parse},
    rules::Code,
    suggest::suggest,
    text,
};

/// What a text says of one tool, before it is checked.
#[derive(Debug)]
pub(super) struct Draft {
    /// An object of the fields that a script prints to stdout of `--help`.
    pub(super) metadata: Node,
    /// An object of the options that a script prints to stderr of `--help`.
    pub(super) options: Node,
    /// What the front end minds.
    pub(super) diagnostics: Vec<Diagnostic>,
    /// What the dialect has to say of an option that is neither required nor has a default.
    pub(super) optional: Optional,
}

/// How an option becomes one that calls may leave out, though it has no default.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum Optional {
    /// By what a script prints, too.
    #[default]
    AsPrinted,
    /// By words of its own: this is what could be written instead.
    InWords(&'static str),
    /// Only if that is said, so it is meant.
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
    /// As JSON writes it.
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
    /// An empty one, of the source at `span`.
    pub(super) fn new(span: Span) -> Self {
        Self {
            metadata: Node::object(span.clone()),
            options: Node::object(span),
            diagnostics: Vec::new(),
            optional: Optional::default(),
        }
    }

    /// Reports something that the checks to come can't know.
    pub(super) fn fault(
        &mut self,
        code: Code,
        span: Span,
        message: impl Into<String>,
    ) -> &mut Diagnostic {
        let diagnostic = Diagnostic::new(code, Stream::Source, span, message.into());
        self.diagnostics.push_mut(diagnostic)
    }

    /// What there is to say of a source that could not be read.
    pub(super) fn refuse(mut self) -> Parsed {
        sort(&mut self.diagnostics);
        Parsed {
            diagnostics: self.diagnostics,
            ..Parsed::default()
        }
    }

    /// Reports a key that its object already has, where the checks to come won't see both.
    pub(super) fn second_key(&mut self, key: &str, span: Span) {
        let message = format!(
            "the key {} stands here for the second time",
            text::name(key)
        );
        self.fault(Code::DuplicateKey, span, message);
    }

    /// Reports a field that nobody reads.
    pub(super) fn unknown_field(&mut self, field: &str, span: Span, known: &[&str]) {
        let message = format!("unknown field {}", text::name(field));
        let fault = self.fault(Code::UnknownField, span, message);
        fault.help = Some(match suggest(field, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("known fields: {}", known.join(", ")),
        });
    }

    /// Checks it as if a script had printed it; every diagnostic is about the source.
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
                // It speaks of `--help`.
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

    /// The first member of this name, to change it.
    pub(super) fn member_mut(&mut self, key: &str) -> Option<&mut Self> {
        let Literal::Object(entries) = &mut self.value else {
            return None;
        };
        let entry = entries.iter_mut().find(|entry| entry.key == key);
        entry.map(|entry| &mut entry.value)
    }

    /// Whether it is an object without members.
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

    /// The same with one more member, whose key stands where its value does.
    pub(super) fn with(mut self, key: impl Into<String>, value: Self) -> Self {
        self.add(key, value.span.clone(), value);
        self
    }

    /// Adds a member to an object; of another value it makes nothing.
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

/// JSON as it stands in the source.
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

/// The place of `part`, which is a slice of `source`.
pub(super) fn span_of(part: &str, source: &str) -> Span {
    let start = part.as_ptr().addr() - source.as_ptr().addr();
    start..start + part.len()
}

/// A node as JSON text, with the way back.
#[derive(Debug, Default)]
struct Written {
    text: String,
    /// What was written where, and what it was in the source; outer ones after inner ones.
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

    /// Makes of a place in this text the place in the source.
    fn relocate(&self, location: &mut Location) {
        location.stream = Stream::Source;
        location.span = self.source_of(&location.span);
    }

    /// The place in the source of the smallest part that covers `span`.
    fn source_of(&self, span: &Range<usize>) -> Span {
        // Whatever ends earlier does not cover it, and inner parts come before outer ones.
        let first = self
            .places
            .partition_point(|(place, _)| place.end < span.end);
        let mut ending_later = self.places[first..].iter();
        let smallest = ending_later.find(|(place, _)| place.start <= span.start);
        smallest.map_or(0..0, |(_, source)| source.clone())
    }
}
