//! TOML as nodes, with the place of every part. Values that JSON lacks are faults.

use toml::{
    Spanned,
    de::{DeInteger, DeTable, DeValue},
};

use super::draft::{Draft, Entry, Literal, Node, Optional};
use crate::{edit::Edit, json::Span, rules::Code, text};

/// Reads the document `toml` as an object, in its order; reports a syntax error and returns
/// nothing. `place` maps places of `toml` to the source.
pub(super) fn read(toml: &str, place: impl Fn(Span) -> Span, draft: &mut Draft) -> Option<Node> {
    match DeTable::parse(toml) {
        Ok(table) => {
            draft.optional = Optional::InWords("add a `default_value`, or `required = true`");
            let span = place(table.span());
            let entries = TomlReader { place, draft }.entries(table.into_inner());
            Some(Node::new(span, Literal::Object(entries)))
        }
        Err(error) => {
            let span = error.span().map(|span| text::visible_span(toml, span));
            let span = place(span.unwrap_or(0..0));
            draft.fault(Code::SourceSyntax, span, error.message());
            None
        }
    }
}

struct TomlReader<'d, P> {
    place: P,
    draft: &'d mut Draft,
}

impl<P: Fn(Span) -> Span> TomlReader<'_, P> {
    fn entries(&mut self, table: DeTable<'_>) -> Vec<Entry> {
        let entries = table.into_iter().map(|(key, value)| Entry {
            key_span: (self.place)(key.span()),
            value: self.node(key.get_ref(), value),
            key: key.into_inner().into_owned(),
        });
        entries.collect()
    }

    /// Converts a value; `name` is that of the innermost field around it.
    fn node(&mut self, name: &str, value: Spanned<DeValue<'_>>) -> Node {
        let span = (self.place)(value.span());
        let literal = match value.into_inner() {
            DeValue::String(text) => Literal::String(text.into_owned()),
            DeValue::Boolean(value) => Literal::Boolean(value),
            DeValue::Integer(integer) => Literal::Number(self.number(name, &span, whole(&integer))),
            DeValue::Float(float) => {
                let number = float.as_str().trim_start_matches('+');
                let is_finite = number.ends_with(|last: char| last.is_ascii_digit());
                let number = is_finite.then(|| number.to_owned());
                Literal::Number(self.number(name, &span, number))
            }
            DeValue::Datetime(date) => {
                let message = format!("{} is a date, for which JSON has no type", text::name(name));
                let fault = self
                    .draft
                    .fault(Code::FieldTypeMismatch, span.clone(), message);
                fault.help = Some("put it in quotes".to_owned());
                fault.edits = vec![
                    Edit::new(span.start..span.start, "\""),
                    Edit::new(span.end..span.end, "\""),
                ];
                Literal::String(date.to_string())
            }
            DeValue::Array(items) => Literal::Array(
                items
                    .into_iter()
                    .map(|item| self.node(name, item))
                    .collect(),
            ),
            DeValue::Table(table) => Literal::Object(self.entries(table)),
        };
        Node::new(span, literal)
    }

    /// Replaces a number that JSON lacks, so that one mistake is one fault.
    fn number(&mut self, name: &str, span: &Span, number: Option<String>) -> String {
        number.unwrap_or_else(|| {
            let message = format!("{} is not a JSON number", text::name(name));
            self.draft
                .fault(Code::FieldTypeMismatch, span.clone(), message);
            "1".to_owned()
        })
    }
}

fn whole(integer: &DeInteger<'_>) -> Option<String> {
    match integer.radix() {
        10 => Some(integer.as_str().trim_start_matches('+').to_owned()),
        radix => u128::from_str_radix(integer.as_str(), radix)
            .ok()
            .map(|number| number.to_string()),
    }
}
