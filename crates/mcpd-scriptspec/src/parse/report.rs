//! Collector of the faults in one output, and readers of simple fields with their common checks.

use std::borrow::Cow;

use crate::{
    diagnostic::{Diagnostic, Stream},
    edit::Repair,
    json::{Duplicate, Kind, Member, Span, Value},
    rules::Code,
    suggest::{suggest, suggest_only},
    text::{self, is_hidden},
    value,
};

/// Field whose `null` says that it is absent on purpose.
const MEANT_NULL: &str = "default_value";

pub(super) struct Report<'d> {
    stream: Stream,
    diagnostics: &'d mut Vec<Diagnostic>,
}

/// A fault just reported, for further details.
pub(super) struct FaultHandle<'d>(&'d mut Diagnostic);

impl FaultHandle<'_> {
    pub(super) fn help(self, help: impl Into<String>) {
        self.0.help = Some(help.into());
    }

    /// Sets how the fault is fixed in a file.
    pub(super) fn repair(self, repair: impl Into<Option<Repair>>) -> Self {
        self.0.repair = repair.into().map(Box::new);
        self
    }
}

impl<'d> Report<'d> {
    pub(super) fn new(stream: Stream, diagnostics: &'d mut Vec<Diagnostic>) -> Self {
        Self {
            stream,
            diagnostics,
        }
    }

    pub(super) fn stream(&self) -> Stream {
        self.stream
    }

    pub(super) fn fault(
        &mut self,
        code: Code,
        span: Span,
        message: impl Into<String>,
    ) -> FaultHandle<'_> {
        let diagnostic = Diagnostic::new(code, self.stream, span, message.into());
        FaultHandle(self.diagnostics.push_mut(diagnostic))
    }

    /// Reports a field whose value is not `expected`, such as `a string`.
    pub(super) fn mismatch(&mut self, name: &str, value: Value<'_>, expected: &str) {
        let message = format!(
            "`{name}` is {}, expected {expected}",
            value::describe(value)
        );
        self.fault(Code::FieldTypeMismatch, value.span(), message);
    }

    /// The members of an object with known fields, without unknown ones and `null`.
    pub(super) fn fields<'a>(
        &mut self,
        object: Value<'a>,
        known: &[&'static str],
    ) -> Vec<Member<'a>> {
        self.fields_or(object, known, |_| None)
    }

    /// The members of an object with known fields; `instead` gives the
    /// replacement for some unknown ones.
    pub(super) fn fields_or<'a>(
        &mut self,
        object: Value<'a>,
        known: &[&'static str],
        instead: impl Fn(&str) -> Option<&'static str>,
    ) -> Vec<Member<'a>> {
        let mut fields = Vec::new();
        for member in object.members() {
            if !known.contains(&&*member.key) {
                self.unknown_field(&member, known, instead(&member.key));
            } else if member.value.kind() == Kind::Null && member.key != MEANT_NULL {
                let message = format!("`{}` is `null`, which counts as absent", member.key);
                let key = member.key.clone().into_owned();
                self.fault(Code::NullField, member.value.span(), message)
                    .repair(Repair::RemoveMember { key })
                    .help("remove the field");
            } else {
                fields.push(member);
            }
        }
        fields
    }

    fn unknown_field(
        &mut self,
        member: &Member<'_>,
        known: &[&'static str],
        instead: Option<&str>,
    ) {
        let message = format!("unknown field {}", text::name(&member.key));
        let suggestion = suggest(&member.key, known.iter().copied());
        let respelt =
            suggest_only(&member.key, known.iter().copied()).filter(|_| instead.is_none());
        let repair = respelt.map(|name| Repair::respell(&member.key, name));
        let reported = self.fault(Code::UnknownField, member.key_span.clone(), message);
        reported.repair(repair).help(match (instead, suggestion) {
            (Some(instead), _) => instead.to_owned(),
            (None, Some(name)) => format!("did you mean `{name}`?"),
            (None, None) => format!("known fields: {}", known.join(", ")),
        });
    }

    pub(super) fn duplicates<'k, 'a: 'k>(
        &mut self,
        keys: impl IntoIterator<Item = &'k Duplicate<'a>>,
    ) {
        for Duplicate { key, span } in keys {
            let message = format!("duplicate key {}", text::name(key));
            self.fault(Code::DuplicateKey, span.clone(), message);
        }
    }

    pub(super) fn boolean(&mut self, member: &Member<'_>) -> Option<bool> {
        let boolean = member.value.boolean();
        if boolean.is_none() {
            self.mismatch(&member.key, member.value, "`true` or `false`");
        }
        boolean
    }

    /// Reads text of at most `max` characters, all of them visible.
    pub(super) fn text(&mut self, member: &Member<'_>, max: usize) -> Option<String> {
        let text = self.string(&member.key, member.value)?;
        let length = text.chars().count();
        if length > max {
            let message = format!(
                "`{}` has {length} characters, at most {max} are allowed",
                member.key
            );
            self.fault(Code::TextTooLong, member.value.span(), message);
        }
        Some(text.into_owned())
    }

    /// Reads a list of strings.
    pub(super) fn strings(&mut self, member: &Member<'_>) -> Vec<String> {
        if member.value.kind() != Kind::Array {
            self.mismatch(&member.key, member.value, "an array of strings");
        }
        let elements = member.value.elements();
        elements
            .filter_map(|element| self.string(&member.key, element).map(Cow::into_owned))
            .collect()
    }

    /// Reads one of a few words, and returns its value.
    pub(super) fn choice<T: Copy>(
        &mut self,
        member: &Member<'_>,
        choices: &[(&str, T)],
    ) -> Option<T> {
        let given = self.string(&member.key, member.value)?;
        let choice = choices.iter().find(|(word, _)| *word == given);
        if choice.is_none() {
            let message = format!("`{}` is {}", member.key, value::describe(member.value));
            let words: Vec<_> = choices
                .iter()
                .map(|(word, _)| format!("`{word}`"))
                .collect();
            let meant = suggest_only(&given, choices.iter().map(|(word, _)| *word));
            let repair = meant.map(|word| Repair::respell(&given, word));
            self.fault(Code::UnknownChoice, member.value.span(), message)
                .repair(repair)
                .help(format!("choose one of {}", words.join(", ")));
        }
        choice.map(|(_, meaning)| *meaning)
    }

    /// Reads a JSON object, which is passed on unchanged.
    pub(super) fn object(
        &mut self,
        member: &Member<'_>,
    ) -> Option<serde_json::Map<String, serde_json::Value>> {
        if member.value.kind() != Kind::Object {
            self.mismatch(&member.key, member.value, "an object");
            return None;
        }
        self.visible_inside(&member.key, member.value);
        let object = serde_json::from_str(member.value.text()).ok();
        if object.is_none() {
            self.mismatch(
                &member.key,
                member.value,
                "one whose numbers fit into a double",
            );
        }
        object
    }

    /// Reports hidden characters in every string of a value.
    fn visible_inside(&mut self, name: &str, value: Value<'_>) {
        if let Some(text) = value.string() {
            self.check_visible(name, &text, value.span());
        }
        for member in value.members() {
            self.check_visible(name, &member.key, member.key_span);
            self.visible_inside(name, member.value);
        }
        for element in value.elements() {
            self.visible_inside(name, element);
        }
    }

    /// Reads a string without hidden characters.
    pub(super) fn string<'a>(&mut self, name: &str, value: Value<'a>) -> Option<Cow<'a, str>> {
        let Some(text) = value.string() else {
            self.mismatch(name, value, "a string");
            return None;
        };
        self.check_visible(name, &text, value.span());
        Some(text)
    }

    /// Checks that `text`, at `span`, has no hidden characters.
    pub(super) fn check_visible(&mut self, name: &str, text: &str, span: Span) -> bool {
        let hidden = text.chars().find(|char| is_hidden(*char));
        if let Some(char) = hidden {
            let message = format!(
                "{} contains the hidden character U+{:04X}",
                text::name(name),
                u32::from(char)
            );
            self.fault(Code::HiddenCharacter, span, message);
        }
        hidden.is_none()
    }
}
