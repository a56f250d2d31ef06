//! Conversion of Script Kit's fields to the fields of options.

use std::collections::BTreeSet;

use crate::{
    dialect::draft::{Draft, Entry, Literal, Node},
    rules::Code,
    suggest::suggest,
    text,
};

/// Fields of an input. Elements of a list have the first few of them.
const FIELDS: &[&str] = &[
    "type",
    "min",
    "max",
    "items",
    "properties",
    "enum",
    "pattern",
    "required",
    "description",
    "example",
    "examples",
    "default",
];

const TYPES: &[&str] = &[
    "string", "number", "integer", "boolean", "array", "object", ANY,
];

/// Type of all values.
const ANY: &str = "any";

/// Position of a field.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::dialect) enum FieldPosition {
    /// Among the inputs.
    Input,
    /// Among the properties of an object.
    Property,
    /// The element type of a list.
    Element,
}

impl FieldPosition {
    /// Number of the fields that are valid here.
    fn fields(self) -> usize {
        match self {
            Self::Input => FIELDS.len(),
            Self::Property => FIELDS.len() - 1,
            Self::Element => 7,
        }
    }
}

/// Converts `{ name: { type: … } }` to `{ "name": { "value_type": … } }`. A value that is not an
/// object stays unchanged.
pub(in crate::dialect) fn options(fields: Node, place: FieldPosition, draft: &mut Draft) -> Node {
    let Literal::Object(entries) = fields.value else {
        return fields;
    };
    let mut options = Node::object(fields.span);
    for Entry {
        key,
        key_span,
        value,
    } in entries
    {
        options.add(key, key_span, definition(value, place, draft));
    }
    options
}

/// Converts one option. A value that is not an object stays unchanged.
fn definition(field: Node, place: FieldPosition, draft: &mut Draft) -> Node {
    if !matches!(field.value, Literal::Object(_)) {
        return field;
    }
    let mut option = Node::object(field.span.clone());
    let mut size: Option<Node> = None;
    let mut given = Types::default();
    for entry in known_fields(field, place, draft) {
        match entry.key.as_str() {
            "type" => given.declared = Some(entry),
            "enum" => given.values = Some(entry),
            "min" | "max" => {
                let size = size.get_or_insert_with(|| Node::object(entry.key_span.clone()));
                size.add(entry.key, entry.key_span, entry.value);
            }
            "items" => {
                given.implied = Some("array");
                let items = definition(of_elements(entry.value), FieldPosition::Element, draft);
                option.add("items", entry.key_span, items);
            }
            "properties" => {
                given.implied = Some("object");
                let properties = options(entry.value, FieldPosition::Property, draft);
                option.add("properties", entry.key_span, properties);
            }
            "example" => {
                let span = entry.value.span.clone();
                let examples = Node::new(span, Literal::Array(vec![entry.value]));
                option.add("examples", entry.key_span, examples);
            }
            "default" => option.add("default_value", entry.key_span, entry.value),
            _ => option.add(entry.key, entry.key_span, entry.value),
        }
    }
    if let Some(size) = size {
        option.add("size", size.span.clone(), size);
    }
    given.add_to(&mut option, draft);
    option
}

/// Converts the short form `items: "string"` to `items: { type: "string" }`.
fn of_elements(items: Node) -> Node {
    match items.value {
        Literal::String(_) => Node::object(items.span.clone()).with("type", items),
        _ => items,
    }
}

/// Returns the fields that are valid at their position; the others are reported.
fn known_fields(field: Node, place: FieldPosition, draft: &mut Draft) -> Vec<Entry> {
    let mut seen = BTreeSet::new();
    let mut known = field.into_entries();
    known.retain(|Entry { key, key_span, .. }| {
        let span = key_span.clone();
        match FIELDS.iter().position(|name| name == key) {
            _ if !seen.insert(key.clone()) => draft.second_key(key, span),
            Some(field) if field < place.fields() => return true,
            Some(_) => {
                let message = format!("`{key}` has no effect here");
                draft.fault(Code::UnusedField, span, message);
            }
            None => draft.unknown_field(key, span, &FIELDS[..place.fields()]),
        }
        false
    });
    known
}

/// Fields that determine the type of a value.
#[derive(Default)]
struct Types {
    declared: Option<Entry>,
    values: Option<Entry>,
    /// Type implied by fields that only one type has.
    implied: Option<&'static str>,
}

impl Types {
    fn add_to(self, option: &mut Node, draft: &mut Draft) {
        let span = option.span.clone();
        let declared = self.declared.as_ref();
        let name = declared.and_then(|entry| value_type(entry, draft));
        if let Some(Entry {
            key,
            key_span,
            value,
        }) = self.values
        {
            if let Some(name) = name.filter(|name| *name != "string") {
                let message = format!("`enum` lists strings, but the type is `{name}`");
                draft.fault(Code::ConflictingFields, key_span.clone(), message);
            }
            let choice = Node::object(value.span.clone()).with(key, value);
            option.add("value_type", key_span, choice);
            return;
        }
        let name = name.or(self.implied.filter(|_| declared.is_none()));
        if let Some(name) = name {
            let span = self.declared.map_or(span, |entry| entry.value.span);
            option.add("value_type", span.clone(), Node::string(span, name));
        }
    }
}

/// Converts the name of a type.
fn value_type(entry: &Entry, draft: &mut Draft) -> Option<&'static str> {
    let span = entry.value.span.clone();
    let Literal::String(name) = &entry.value.value else {
        draft.fault(Code::FieldTypeMismatch, span, "`type` is not a string");
        return None;
    };
    match TYPES.iter().find(|known| *known == name) {
        Some(&"number") => Some("float"),
        Some(&ANY) => None,
        Some(known) => Some(known),
        None => {
            let message = format!("unknown type {}", text::name(name));
            let fault = draft.fault(Code::UnknownValueType, span, message);
            fault.help = Some(match suggest(name, TYPES.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("types are {}", TYPES.join(", ")),
            });
            None
        }
    }
}
