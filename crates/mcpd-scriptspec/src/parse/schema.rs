//! JSON Schemas that a script declares. Only checks without compilation are done here: that a
//! schema describes an object, and its headers.

use super::{Report, options};
use crate::{
    decimal::Decimal,
    diagnostic::{Location, Stream},
    header,
    json::{Kind, Member, Value},
    portable::{PortableNames, portable_schema},
    rules::Code,
    value,
};

const FIELDS: [&str; 2] = ["input_schema", "output_schema"];

/// Reads `input_schema` or `output_schema`.
pub(super) fn read(member: &Member<'_>, report: &mut Report<'_>) -> Option<serde_json::Value> {
    let schema = report.object(member)?;
    if let Some(number) = first_rounded(member.value) {
        let message = format!("{} would be rounded", value::describe(number));
        report
            .fault(Code::InvalidSchema, number.span(), message)
            .help("use a number that fits into a double");
        return None;
    }
    let is_input = member.key == "input_schema";
    let wrong = |keyword: &str, is_right: fn(&serde_json::Value) -> bool| {
        schema.get(keyword).is_some_and(|value| !is_right(value))
    };
    let message = if is_input && schema.get("type").is_none_or(|kind| kind != "object") {
        r#"a schema of arguments must have `"type": "object"`"#
    } else if wrong("properties", serde_json::Value::is_object) {
        "`properties` of a schema must be an object"
    } else if wrong("required", serde_json::Value::is_array) {
        "`required` of a schema must be an array"
    } else {
        if is_input {
            check_properties(member.value, report);
        }
        let schema = serde_json::Value::Object(schema);
        check_form(&schema, member.value, is_input, report);
        return Some(schema);
    };
    report.fault(Code::InvalidSchema, member.value.span(), message);
    None
}

/// Reports parts that lists show in another form.
fn check_form(
    schema: &serde_json::Value,
    declared: Value<'_>,
    is_input: bool,
    report: &mut Report<'_>,
) {
    let mut listed = schema.clone();
    for change in portable_schema(&mut listed) {
        let span = locate(declared, &change.pointer).span();
        report.fault(Code::UnportableSchema, span, change.to_string());
    }
    let names = PortableNames::of(&listed).filter(|_| is_input);
    for (name, spelling) in names.iter().flat_map(PortableNames::iter) {
        options::report_unportable(name, spelling, declared.span(), report);
    }
}

/// The value at a JSON pointer, or its last existing ancestor.
fn locate<'a>(value: Value<'a>, pointer: &str) -> Value<'a> {
    let steps = pointer.split('/').skip(1);
    steps.fold(value, |value, step| {
        let key = step.replace("~1", "/").replace("~0", "~");
        let member = value.members().find(|member| member.key == key);
        let element = || value.elements().nth(key.parse().ok()?);
        member
            .map(|member| member.value)
            .or_else(element)
            .unwrap_or(value)
    })
}

/// The first number that publication would change, because it is read as a double.
fn first_rounded(value: Value<'_>) -> Option<Value<'_>> {
    let is_exact = || {
        let published: serde_json::Number = serde_json::from_str(value.text()).ok()?;
        Some(Decimal::parse(&published.to_string())? == Decimal::parse(value.text())?)
    };
    if value.kind() == Kind::Number && is_exact() != Some(true) {
        return Some(value);
    }
    let inside = value.members().map(|member| member.value);
    inside.chain(value.elements()).find_map(first_rounded)
}

/// Places of the schemas in the metadata.
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
