//! Raycast script commands: comments `@raycast.<key> <value>`, with arguments in JSON.
//!
//! A script gets its arguments as `$1`, `$2` and `$3`, and reads no flags. Keys about the display
//! of a command in Raycast are skipped.

use std::{borrow::Cow, collections::BTreeMap};

use super::draft::{Draft, Literal, Node, span_of};
use crate::{
    json::{self, Kind, Member, Span, Value},
    rules::Code,
    suggest::suggest,
};

/// Known keys: those with a meaning here, and those about the display in Raycast.
const KEYS: &[&str] = &[
    "title",
    "description",
    "argument1",
    "argument2",
    "argument3",
    "needsConfirmation",
    "packageName",
    "icon",
    "schemaVersion",
    "currentDirectoryPath",
    "mode",
    "iconDark",
    "refreshTime",
    "author",
    "authorURL",
];

/// Keys that may occur several times, for commands with several authors.
const REPEATABLE: &[&str] = &["author", "authorURL"];

/// Symbols in code after which a line may be text that looks like a comment.
const TEXT_OPENERS: &[&str] = &["`", "<<", "\"\"\"", "'''"];

pub(super) fn is_in(text: &[u8]) -> bool {
    // The part that was read of a large file may end inside a character.
    tags(&String::from_utf8_lossy(text)).next().is_some()
}

/// Tags of a file: those of the first comments with any, since programs that generate script
/// commands contain further ones.
fn tags(source: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut is_found = false;
    let header = source.lines().take_while(move |line| {
        let is_code = !line.trim().is_empty() && comment(line).is_none();
        is_found |= tag(line).is_some();
        let has_text = || TEXT_OPENERS.iter().any(|opener| line.contains(opener));
        !is_code || !is_found && !has_text()
    });
    header.filter_map(tag)
}

fn comment(line: &str) -> Option<&str> {
    let line = line.trim();
    let mut leaders = ["#", "//", "--"].iter();
    leaders.find_map(|leader| line.strip_prefix(leader))
}

/// The key and the value of a line.
fn tag(line: &str) -> Option<(&str, &str)> {
    let comment = comment(line)?;
    let tag = comment.trim_start().strip_prefix("@raycast.")?;
    let end = tag.find(char::is_whitespace).unwrap_or(tag.len());
    Some((&tag[..end], tag[end..].trim()))
}

pub(super) fn read(source: &str) -> Draft {
    let first_line = source.lines().next().map_or(0, str::len);
    let mut reader = RaycastReader {
        source,
        draft: Draft::new(0..first_line),
        arguments: Vec::new(),
    };
    let mut seen = BTreeMap::new();
    for (key, value) in tags(source) {
        match seen.insert(key, value) {
            Some(_) if REPEATABLE.contains(&key) => reader.field(key, value),
            // A repetition of the same value is harmless.
            Some(before) if before == value => {}
            Some(_) => {
                let message = format!("a second `{key}`");
                let span = reader.span(key);
                reader.draft.fault(Code::DuplicateKey, span, message);
            }
            None => reader.field(key, value),
        }
    }
    reader.finish()
}

struct RaycastReader<'a> {
    source: &'a str,
    draft: Draft,
    /// Number, place of the key, and option of each argument.
    arguments: Vec<(usize, Span, Node)>,
}

impl<'a> RaycastReader<'a> {
    fn field(&mut self, key: &'a str, value: &'a str) {
        let (key_span, span) = (self.span(key), self.span(value));
        let text = || Node::string(span.clone(), value);
        match key {
            "title" | "description" => self.draft.metadata.add(key, key_span, text()),
            "packageName" => {
                let tags = Node::new(span.clone(), Literal::Array(vec![text()]));
                self.draft.metadata.add("tags", key_span, tags);
            }
            "icon" if value.starts_with("https:") => {
                let mut icon = Node::object(span.clone());
                icon.add("src", span.clone(), text());
                let icons = Node::new(span.clone(), Literal::Array(vec![icon]));
                self.draft.metadata.add("icons", key_span, icons);
            }
            "needsConfirmation" => self.confirmation(key_span, value),
            "argument1" => self.argument(1, key_span, value),
            "argument2" => self.argument(2, key_span, value),
            "argument3" => self.argument(3, key_span, value),
            "schemaVersion" if value != "1" => {
                let message = format!("only version 1 of these tags is supported, not `{value}`");
                self.draft.fault(Code::SourceUnsupported, span, message);
            }
            "currentDirectoryPath" => {
                let message = "a script cannot choose the directory in which it runs";
                self.draft.fault(Code::SourceUnsupported, key_span, message);
            }
            _ if KEYS.contains(&key) => {}
            _ => {
                let message = format!("unknown tag `{key}`");
                let fault = self.draft.fault(Code::UnknownField, key_span, message);
                fault.help = suggest(key, KEYS.iter().copied())
                    .map(|near| format!("did you mean `{near}`?"));
            }
        }
    }

    fn confirmation(&mut self, key_span: Span, value: &str) {
        match value {
            "true" => {
                let mut annotations = Node::object(key_span.clone());
                let destructive = Node::boolean(self.span(value), true);
                annotations.add("destructive", key_span.clone(), destructive);
                self.draft
                    .metadata
                    .add("annotations", key_span, annotations);
            }
            // A command without confirmation may still be destructive.
            "false" => {}
            _ => {
                let message = "expected `true` or `false`";
                self.draft.fault(Code::FieldTypeMismatch, key_span, message);
            }
        }
    }

    fn argument(&mut self, place: usize, key_span: Span, value: &'a str) {
        let span = self.span(value);
        let text = without_trailing_comma(&self.source[..span.end]);
        match json::read(&text, span.start) {
            Ok(document) if document.root.kind() == Kind::Object => {
                for duplicate in &document.duplicates {
                    let message = format!("duplicate key `{}`", duplicate.key);
                    self.draft
                        .fault(Code::DuplicateKey, duplicate.span.clone(), message);
                }
                let mut argument = RaycastArgument::default();
                for member in &document.members {
                    argument.field(member, &mut self.draft);
                }
                let option = argument.option(&key_span, span, &mut self.draft);
                self.arguments.push((place, key_span, option));
            }
            Ok(_) => {
                let message = "an argument is a JSON object";
                self.draft.fault(Code::SourceSyntax, span, message).help =
                    Some(r#"write `{"type": "text", "placeholder": "query"}`"#.to_owned());
            }
            Err(error) => {
                self.draft
                    .fault(Code::SourceSyntax, error.span, error.message);
            }
        }
    }

    fn finish(mut self) -> Draft {
        self.arguments.sort_by_key(|(place, ..)| *place);
        let numbers: Vec<_> = self.arguments.iter().map(|(place, ..)| *place).collect();
        for (place, key_span, option) in self.arguments {
            if (1..place).any(|before| !numbers.contains(&before)) {
                let message = format!("`argument{place}` without the preceding arguments");
                self.draft
                    .fault(Code::SourceSyntax, key_span.clone(), message);
            }
            self.draft
                .options
                .add(format!("argument{place}"), key_span, option);
        }
        self.draft
    }

    fn span(&self, part: &str) -> Span {
        span_of(part, self.source)
    }
}

/// Blanks the comma before the last brace, which Raycast's own JSON parser accepts. The length
/// stays the same, so spans hold.
fn without_trailing_comma(text: &str) -> Cow<'_, str> {
    let Some(before) = text.strip_suffix('}') else {
        return text.into();
    };
    match before.trim_end().strip_suffix(',') {
        Some(members) if members.contains(':') => {
            let mut blanked = text.to_owned();
            blanked.replace_range(members.len()..=members.len(), " ");
            blanked.into()
        }
        _ => text.into(),
    }
}

/// The JSON of an argument.
#[derive(Default)]
struct RaycastArgument<'a> {
    value_type: Option<Value<'a>>,
    placeholder: Option<Value<'a>>,
    data: Option<Value<'a>>,
    is_optional: bool,
    is_percent_encoded: bool,
    is_secure: bool,
}

const FIELDS: &[&str] = &[
    "type",
    "placeholder",
    "optional",
    "percentEncoded",
    "data",
    "secure",
];

impl<'a> RaycastArgument<'a> {
    fn field(&mut self, member: &Member<'a>, draft: &mut Draft) {
        let value = member.value;
        let boolean = |draft: &mut Draft| {
            if value.boolean().is_none() {
                mismatch(draft, value, "a boolean");
            }
            value.boolean().unwrap_or_default()
        };
        match &*member.key {
            "type" => self.value_type = Some(value),
            "placeholder" => self.placeholder = Some(value),
            "data" => self.data = Some(value),
            "optional" => self.is_optional = boolean(draft),
            "percentEncoded" => self.is_percent_encoded = boolean(draft),
            "secure" => self.is_secure = boolean(draft),
            key => {
                let message = format!("unknown field `{key}`");
                let fault = draft.fault(Code::UnknownField, member.key_span.clone(), message);
                fault.help = suggest(key, FIELDS.iter().copied())
                    .map(|near| format!("did you mean `{near}`?"));
            }
        }
    }

    fn option(self, key_span: &Span, span: Span, draft: &mut Draft) -> Node {
        let mut option = Node::object(span.clone());
        let mut add = |key: &str, value: Node| option.add(key, key_span.clone(), value);
        let argument = if self.is_percent_encoded {
            "plain-percent-encoded"
        } else {
            "plain"
        };
        add("argument", Node::string(span.clone(), argument));
        add("required", Node::boolean(span.clone(), !self.is_optional));
        if self.is_optional {
            add("default_value", Node::string(span.clone(), ""));
        }
        let name = self.value_type.and_then(|value| string(draft, value));
        let is_secret = self.is_secure || name.as_deref() == Some("password");
        if is_secret {
            add("secret", Node::boolean(span.clone(), true));
        }
        let mut description = self
            .placeholder
            .and_then(|value| string(draft, value))
            .unwrap_or_default();
        let mut value_type = Node::string(span.clone(), "string");
        match (name.as_deref(), self.value_type) {
            (Some("dropdown"), Some(at)) => {
                if let Some(choices) = self.choices(at.span(), draft) {
                    description += &choices.meanings();
                    value_type = choices.value_type(self.is_optional);
                }
            }
            // Arguments without a type are texts, as in older versions.
            (Some("text" | "password"), _) | (None, _) => {
                if !self.is_optional {
                    let mut size = Node::object(span.clone());
                    let min = Node::new(span.clone(), Literal::Number("1".to_owned()));
                    size.add("min", span.clone(), min);
                    add("size", size);
                }
            }
            (Some(other), at) => {
                let at = at.map_or(span.clone(), |value| value.span());
                let message = format!("unknown type `{other}`");
                let fault = draft.fault(Code::UnknownValueType, at, message);
                fault.help = Some("types are text, password, dropdown".to_owned());
            }
        }
        add("value_type", value_type);
        if !description.is_empty() {
            let at = self.placeholder.map_or(span, |value| value.span());
            add("description", Node::string(at, description.trim()));
        }
        option
    }

    fn choices(&self, type_span: Span, draft: &mut Draft) -> Option<Dropdown> {
        let Some(data) = self.data.filter(|data| data.kind() == Kind::Array) else {
            let span = self.data.map_or(type_span, |data| data.span());
            let message = "a dropdown requires `data`, an array of choices";
            let fault = draft.fault(Code::SourceSyntax, span, message);
            fault.help = Some(r#"add `"data": [{"title": "Red", "value": "red"}]`"#.to_owned());
            return None;
        };
        let choices = data.elements().filter_map(|choice| {
            let field = |name| choice.members().find(|member| member.key == name);
            let Some(value) = field("value") else {
                mismatch(draft, choice, "an object with a `value`");
                return None;
            };
            let text = string(draft, value.value)?;
            let title = field("title").and_then(|title| string(draft, title.value));
            Some((Node::string(value.value.span(), text), title))
        });
        Some(Dropdown {
            choices: choices.collect(),
            span: data.span(),
        })
    }
}

/// The choices of a dropdown, and their titles.
struct Dropdown {
    span: Span,
    choices: Vec<(Node, Option<String>)>,
}

impl Dropdown {
    /// Describes the values whose titles differ from them.
    fn meanings(&self) -> String {
        let meanings: Vec<_> = self
            .choices
            .iter()
            .filter_map(|(value, title)| match (&value.value, title) {
                (Literal::String(value), Some(title)) if value != title => {
                    Some(format!("`{value}`: {title}"))
                }
                _ => None,
            })
            .collect();
        match meanings.as_slice() {
            [] => String::new(),
            meanings => format!(" ({})", meanings.join(", ")),
        }
    }

    fn value_type(self, is_optional: bool) -> Node {
        let mut values: Vec<_> = self.choices.into_iter().map(|(value, _)| value).collect();
        let is_empty =
            |value: &Node| matches!(&value.value, Literal::String(text) if text.is_empty());
        if is_optional && !values.is_empty() && !values.iter().any(is_empty) {
            values.push(Node::string(self.span.clone(), ""));
        }
        let mut value_type = Node::object(self.span.clone());
        let values = Node::new(self.span.clone(), Literal::Array(values));
        value_type.add("enum", self.span, values);
        value_type
    }
}

fn string(draft: &mut Draft, value: Value<'_>) -> Option<String> {
    if value.string().is_none() {
        mismatch(draft, value, "a string");
    }
    value.string().map(Cow::into_owned)
}

fn mismatch(draft: &mut Draft, value: Value<'_>, expected: &str) {
    let message = format!("{} where {expected} is expected", value.kind().name());
    draft.fault(Code::FieldTypeMismatch, value.span(), message);
}
