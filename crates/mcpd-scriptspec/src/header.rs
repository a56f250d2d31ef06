//! Header parameters, which repeat arguments in HTTP headers: the constraints of
//! 2026-07-28/server/tools#x-mcp-header. Clients drop a tool that violates one.

use std::collections::BTreeSet;

use serde_json::value::RawValue;

use crate::json::{self, Member, Span, Value};

/// Schema keyword that names a header.
const KEYWORD: &str = "x-mcp-header";

pub(crate) const BAD_NAME: &str = "a header name has at least one of the characters `A-Z a-z 0-9 ! # $ % & ' * + - . ^ _ ` | ~` and no other";

pub(crate) fn is_name(name: &str) -> bool {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_token)
}

/// The first fault of the headers that a schema of arguments names
/// (`x-mcp-header`), as a fragment.
#[must_use]
pub fn header_fault(schema: &RawValue) -> Option<&'static str> {
    let document = json::read(schema.get(), 0).ok()?;
    let mut first = None;
    check(document.root, &mut |_, message| {
        first.get_or_insert(message);
    });
    first
}

/// Reports every fault of the headers in a schema, with its place.
pub(crate) fn check(schema: Value<'_>, told: &mut dyn FnMut(Span, &'static str)) {
    walk(schema, SchemaPosition::Root, &mut BTreeSet::new(), told);
}

/// Position of a schema in the whole one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SchemaPosition {
    Root,
    /// Reached through `properties` alone.
    Property,
    Elsewhere,
}

fn walk(
    schema: Value<'_>,
    place: SchemaPosition,
    taken: &mut BTreeSet<String>,
    told: &mut dyn FnMut(Span, &'static str),
) {
    for keyword in schema.members() {
        match &*keyword.key {
            KEYWORD => {
                if let Some(message) = keyword_fault(&keyword, schema, place, taken) {
                    told(keyword.value.span(), message);
                }
            }
            "properties" => {
                let place = match place {
                    SchemaPosition::Root | SchemaPosition::Property => SchemaPosition::Property,
                    SchemaPosition::Elsewhere => SchemaPosition::Elsewhere,
                };
                for property in keyword.value.members() {
                    walk(property.value, place, taken, told);
                }
            }
            // These keywords hold values, not schemas.
            "const" | "default" | "enum" | "examples" => {}
            _ => walk(keyword.value, SchemaPosition::Elsewhere, taken, told),
        }
    }
    for element in schema.elements() {
        walk(element, SchemaPosition::Elsewhere, taken, told);
    }
}

fn keyword_fault(
    header: &Member<'_>,
    schema: Value<'_>,
    place: SchemaPosition,
    taken: &mut BTreeSet<String>,
) -> Option<&'static str> {
    let name = header.value.string().unwrap_or_default();
    let mut types = schema.members().filter(|keyword| keyword.key == "type");
    let value_type = types.next().and_then(|keyword| keyword.value.string());
    if !is_name(&name) {
        Some(BAD_NAME)
    } else if place != SchemaPosition::Property {
        Some("only a property below nothing but `properties` can be repeated in a header")
    } else if !matches!(
        value_type.as_deref(),
        Some("string" | "integer" | "boolean")
    ) {
        Some("only a `string`, `integer` or `boolean` can be repeated in a header")
    } else if !taken.insert(name.to_lowercase()) {
        Some("two properties with this header")
    } else {
        None
    }
}
