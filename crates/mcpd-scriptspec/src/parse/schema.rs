//! JSON Schemas that a script declares. Checked here is what can be said without compiling them: that they
//! describe an object, and where they put headers.

use std::collections::BTreeSet;

use super::{Report, options};
use crate::{
    json::{Member, Value},
    rules::Code,
};

/// The keyword that names a header.
const HEADER: &str = "x-mcp-header";

/// Reads `input_schema` or `output_schema`.
pub(super) fn read(member: &Member<'_>, report: &mut Report<'_>) -> Option<serde_json::Value> {
    let schema = report.object(member)?;
    let is_input = member.key == "input_schema";
    let wrong = |keyword: &str, is_right: fn(&serde_json::Value) -> bool| {
        schema.get(keyword).is_some_and(|value| !is_right(value))
    };
    let message = if is_input && schema.get("type").is_none_or(|kind| kind != "object") {
        r#"a schema of arguments says `"type": "object"`"#
    } else if wrong("properties", serde_json::Value::is_object) {
        "`properties` of a schema is an object"
    } else if wrong("required", serde_json::Value::is_array) {
        "`required` of a schema is an array"
    } else {
        if is_input {
            check_properties(member.value, report);
        }
        return Some(serde_json::Value::Object(schema));
    };
    report.fault(Code::InvalidSchema, member.value.span(), message);
    None
}

fn check_properties(schema: Value<'_>, report: &mut Report<'_>) {
    let properties = schema
        .members()
        .filter(|keyword| keyword.key == "properties");
    let names: Vec<_> = properties
        .flat_map(|keyword| keyword.value.members())
        .collect();
    options::check_variables(&names, report);
    check_headers(schema, Place::Root, &mut BTreeSet::new(), report);
}

/// Where a schema stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Root,
    /// Nothing but `properties` leads there.
    Property,
    Elsewhere,
}

/// The constraints of 2026-07-28/server/tools#x-mcp-header, of which one violation makes clients drop the tool.
fn check_headers(
    schema: Value<'_>,
    place: Place,
    taken: &mut BTreeSet<String>,
    report: &mut Report<'_>,
) {
    for keyword in schema.members() {
        match &*keyword.key {
            HEADER => {
                if let Some(message) = header_fault(&keyword, schema, place, taken) {
                    report.fault(Code::InvalidHeader, keyword.value.span(), message);
                }
            }
            "properties" => {
                let place = match place {
                    Place::Root | Place::Property => Place::Property,
                    Place::Elsewhere => Place::Elsewhere,
                };
                for property in keyword.value.members() {
                    check_headers(property.value, place, taken, report);
                }
            }
            // These hold values, not schemas.
            "const" | "default" | "enum" | "examples" => {}
            _ => check_headers(keyword.value, Place::Elsewhere, taken, report),
        }
    }
    for element in schema.elements() {
        check_headers(element, Place::Elsewhere, taken, report);
    }
}

fn header_fault(
    header: &Member<'_>,
    schema: Value<'_>,
    place: Place,
    taken: &mut BTreeSet<String>,
) -> Option<&'static str> {
    let name = header.value.string().unwrap_or_default();
    let mut types = schema.members().filter(|keyword| keyword.key == "type");
    let value_type = types.next().and_then(|keyword| keyword.value.string());
    if !options::is_header_name(&name) {
        Some(options::BAD_HEADER_NAME)
    } else if place != Place::Property {
        Some("only a property that `properties` alone lead to can be repeated in a header")
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
