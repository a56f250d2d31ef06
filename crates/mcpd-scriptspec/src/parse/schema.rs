//! JSON Schemas that a script declares. Checked here is what can be said without compiling them: that they
//! describe an object, and where they put headers.

use super::{Report, options};
use crate::{
    diagnostic::{Location, Stream},
    header,
    json::{Member, Value},
    rules::Code,
};

const FIELDS: [&str; 2] = ["input_schema", "output_schema"];

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

/// Where the schemas of the metadata stand.
pub(super) fn places(metadata: Value<'_>) -> Vec<(&'static str, Location)> {
    let place = |member: Member<'_>| {
        let field = FIELDS.into_iter().find(|field| *field == member.key)?;
        let (stream, span) = (Stream::Stdout, member.value.span());
        Some((field, Location { stream, span }))
    };
    metadata.members().filter_map(place).collect()
}

fn check_properties(schema: Value<'_>, report: &mut Report<'_>) {
    let properties = schema
        .members()
        .filter(|keyword| keyword.key == "properties");
    let names: Vec<_> = properties
        .flat_map(|keyword| keyword.value.members())
        .collect();
    options::check_variables(&names, report);
    header::check(schema, &mut |span, message| {
        report.fault(Code::InvalidHeader, span, message);
    });
}
