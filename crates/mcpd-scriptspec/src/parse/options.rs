//! Parser of the options object: the declared inputs of a script.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::value::RawValue;

use super::{
    HelpStream, Report, delivery,
    metadata::{MAX_DESCRIPTION, MAX_NAME},
    value_type::{self, TypeFields},
};
use crate::{
    header,
    invocation::{alias, is_variable},
    json::{Duplicate, Kind, Member, Span, Value},
    portable::names::{is_portable, portable_name},
    rules::Code,
    spec::{ScriptOption, ScriptSpec, ValueType},
    text,
    value::{self, MismatchKind, Strings},
};

/// Fields of an option, and of a property of an object: the last five belong to options alone.
pub(super) const FIELDS: &[&str] = &[
    "title",
    "description",
    "required",
    "value_type",
    "size",
    "items",
    "properties",
    "pattern",
    "format",
    "examples",
    "secret",
    "default_value",
    "header",
    "argument",
    "variable",
    "env",
];
pub(super) const OPTION_ONLY: usize = 5;

pub(super) fn read<'a>(output: &HelpStream<'a>, spec: &mut ScriptSpec, report: &mut Report<'_>) {
    let HelpStream::Json(document) = output else {
        return;
    };
    let root = document.root;
    if root.kind() != Kind::Object {
        let message = format!("the options are {}, expected an object", root.kind().name());
        report.fault(Code::OptionsNotObject, root.span(), message);
        return;
    }
    let members = &document.members;
    let fields_of = |option: &Member<'a>| option.value.members();
    let fields_of_all: Vec<_> = members.iter().flat_map(fields_of).collect();
    let starts: BTreeSet<_> = members.iter().map(|member| member.key_span.start).collect();
    let is_option = |duplicate: &&Duplicate<'_>| starts.contains(&duplicate.span.start);
    let (options, fields): (Vec<_>, Vec<_>) = document.duplicates.iter().partition(is_option);
    for Duplicate { key, span } in options {
        let message = format!("duplicate option {}", text::name(key));
        report.fault(Code::DuplicateOption, span.clone(), message);
    }
    report.duplicates(fields);
    let names: Vec<_> = members
        .iter()
        .filter(|member| check_name(member, report))
        .collect();
    check_variables(names.iter().copied(), report);
    check_headers(&fields_of_all, report);
    delivery::check(&fields_of_all, report);
    let options = members
        .iter()
        .filter_map(|member| option(member, Scope::Option, report));
    // Options are large, so the capacity is exact.
    spec.options.reserve_exact(members.len());
    spec.options.extend(options);
    if spec.declared_schema.is_some() && !names.is_empty() {
        report.fault(
            Code::ConflictingFields,
            root.span(),
            "options beside an `input_schema`",
        );
    }
}

/// Checks that a variable can carry the name.
fn check_name(member: &Member<'_>, report: &mut Report<'_>) -> bool {
    let Member { key, key_span, .. } = member;
    if !is_variable(key) {
        let message = format!("{} cannot be part of a variable name", text::name(key));
        report
            .fault(Code::InvalidOptionName, key_span.clone(), message)
            .help("the name must not be empty or contain `=` or control characters");
        return false;
    }
    check_portable(member, report);
    true
}

/// Reports a name that lists show in another spelling.
fn check_portable(member: &Member<'_>, report: &mut Report<'_>) {
    let Member { key, key_span, .. } = member;
    if report.check_visible(key, key, key_span.clone()) && !is_portable(key) {
        report_unportable(key, &portable_name(key), key_span.clone(), report);
    }
}

/// Reports that lists show `name` as `spelling`.
pub(super) fn report_unportable(name: &str, spelling: &str, span: Span, report: &mut Report<'_>) {
    let message = format!(
        "some models refuse the name {}, so it is listed as {}",
        text::name(name),
        text::name(spelling)
    );
    report
        .fault(Code::UnportableOptionName, span, message)
        .help("use at most 64 of the characters `A-Z a-z 0-9 _ . -`");
}

/// Checks that every option has a variable of its own that a shell can read.
pub(super) fn check_variables<'m, 'a: 'm>(
    names: impl IntoIterator<Item = &'m Member<'a>>,
    report: &mut Report<'_>,
) {
    let mut taken: BTreeMap<String, &str> = BTreeMap::new();
    for Member { key, key_span, .. } in names {
        let variable = alias(key).unwrap_or_else(|| key.to_string());
        if let Some(other) = taken.get(&variable)
            && *other != key
        {
            let message = format!("two options have the variable `MCPD_OPT_{variable}`");
            report
                .fault(Code::AmbiguousOptionVariable, key_span.clone(), message)
                .help(format!(
                    "rename {} or {}",
                    text::name(key),
                    text::name(other)
                ));
        }
        taken.insert(variable, key);
    }
}

/// Reports duplicate headers: "MUST be case-insensitively unique among all `x-mcp-header`
/// values" -- 2026-07-28/server/tools#x-mcp-header
fn check_headers(fields: &[Member<'_>], report: &mut Report<'_>) {
    let mut taken = BTreeSet::new();
    for header in fields.iter().filter(|field| field.key == "header") {
        // Other types are a fault of their own.
        let Some(name) = header.value.string() else {
            continue;
        };
        if !taken.insert(name.to_lowercase()) {
            report.fault(
                Code::InvalidHeader,
                header.value.span(),
                "two options with this header",
            );
        }
    }
}

/// Position of an option.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// Among the options of the script.
    Option,
    /// Among the properties of an object, which exist only as parts of its value.
    Property,
}

/// Fields of one option, in the order of their checks.
#[derive(Default)]
struct Fields<'a> {
    title: Option<String>,
    description: Option<Member<'a>>,
    /// `None` if the declared value is invalid.
    required: Option<bool>,
    value_type: TypeFields<'a>,
    default_value: Option<Member<'a>>,
    /// The default is `null`: it is absent, and meant to be.
    has_no_default: bool,
    examples: Option<Member<'a>>,
    header: Option<Member<'a>>,
    argument: Option<Member<'a>>,
    variable: Option<Member<'a>>,
    env: Option<Member<'a>>,
}

pub(super) fn option(
    member: &Member<'_>,
    scope: Scope,
    report: &mut Report<'_>,
) -> Option<ScriptOption> {
    let name = text::name(&member.key);
    if member.value.kind() != Kind::Object {
        let message = format!(
            "option {name} is {}, expected an object",
            member.value.kind().name()
        );
        report
            .fault(Code::OptionNotObject, member.value.span(), message)
            .help(r#"write `{"required": true, "value_type": "string"}`"#);
        return None;
    }
    if scope == Scope::Property {
        check_portable(member, report);
    }
    let fields = fields(member.value, scope, report);
    let description = description(&fields, member, report);
    check_default(&fields, member, scope, report);
    let value_type = value_type::read(&fields.value_type, report)?;
    remark_on_any_type(&value_type, member, report);
    let default_value = fields.default_value.as_ref().and_then(|default| {
        let codes = [Code::DefaultTypeMismatch, Code::DefaultOutOfBounds];
        example("the default", default.value, &value_type, codes, report)
    });
    let examples = fields.examples.as_ref();
    // A secret part makes the whole value of the option secret.
    let secret = holds_secret(member.value);
    Some(ScriptOption {
        name: member.key.clone().into_owned(),
        title: fields.title,
        description,
        required: fields.required.unwrap_or_default(),
        default_value,
        examples: examples
            .map(|field| examples_of(field, &value_type, report))
            .unwrap_or_default(),
        header: fields
            .header
            .as_ref()
            .and_then(|field| header(field, &value_type, secret, report)),
        argument: fields
            .argument
            .as_ref()
            .and_then(|field| delivery::argument(field, &value_type, secret, report)),
        variable: fields
            .variable
            .as_ref()
            .and_then(|field| delivery::variable(field, report)),
        env: fields
            .env
            .as_ref()
            .and_then(|field| delivery::env(field, report)),
        secret,
        value_type,
    })
}

/// Reads the description, and reports its absence.
fn description(
    fields: &Fields<'_>,
    option: &Member<'_>,
    report: &mut Report<'_>,
) -> Option<String> {
    let field = fields.description.as_ref();
    let description = field.and_then(|field| report.text(field, MAX_DESCRIPTION));
    let is_blank = |text: &String| text.trim().is_empty();
    if field.is_none() || description.as_ref().is_some_and(is_blank) {
        let message = format!("option {} has no description", text::name(&option.key));
        report.fault(Code::UndescribedOption, option.key_span.clone(), message);
    }
    description
}

/// Reports an option without a type, which some schema converters reject.
fn remark_on_any_type(value_type: &ValueType, member: &Member<'_>, report: &mut Report<'_>) {
    if matches!(value_type, ValueType::Any { .. }) {
        let message = format!("option {} has no type", text::name(&member.key));
        report
            .fault(Code::UntypedOption, member.key_span.clone(), message)
            .help(r#"add a type, such as `"value_type": "string"`"#);
    }
}

/// Returns whether a value of this definition is a secret, or contains one.
fn holds_secret(definition: Value<'_>) -> bool {
    definition.members().any(|field| match &*field.key {
        "secret" => field.value.text() == "true",
        "items" => holds_secret(field.value),
        "properties" => {
            let mut properties = field.value.members();
            properties.any(|property| holds_secret(property.value))
        }
        _ => false,
    })
}

fn fields<'a>(definition: Value<'a>, scope: Scope, report: &mut Report<'_>) -> Fields<'a> {
    let known = match scope {
        Scope::Option => FIELDS,
        Scope::Property => &FIELDS[..FIELDS.len() - OPTION_ONLY],
    };
    let mut fields = Fields {
        required: Some(false),
        ..Fields::default()
    };
    for member in report.fields(definition, known) {
        match &*member.key {
            "title" => fields.title = report.text(&member, MAX_NAME),
            "description" => fields.description = Some(member),
            "required" => fields.required = report.boolean(&member),
            "secret" => drop(report.boolean(&member)),
            "default_value" if member.value.kind() == Kind::Null => fields.has_no_default = true,
            "default_value" => fields.default_value = Some(member),
            "examples" => fields.examples = Some(member),
            "header" => fields.header = Some(member),
            "argument" => fields.argument = Some(member),
            "variable" => fields.variable = Some(member),
            "env" => fields.env = Some(member),
            _ => fields.value_type.insert(member),
        }
    }
    fields
}

/// Reports an optional option without a default, and a required one with a default.
fn check_default(fields: &Fields<'_>, option: &Member<'_>, scope: Scope, report: &mut Report<'_>) {
    let name = text::name(&option.key);
    match &fields.default_value {
        Some(default) if fields.required == Some(true) => {
            let message = format!("the required option {name} has a default");
            report
                .fault(Code::RequiredWithDefault, default.key_span.clone(), message)
                .help(r#"remove the default, or `"required": true`"#);
        }
        // Optional words are common on command lines.
        None if fields.required == Some(false)
            && !fields.has_no_default
            && scope == Scope::Option
            && fields.argument.is_none() =>
        {
            let message = format!("option {name} is neither required nor has a default");
            report
                .fault(
                    Code::OptionalWithoutDefault,
                    option.key_span.clone(),
                    message,
                )
                .help(r#"add a `default_value`, or `"required": true`"#);
        }
        _ => {}
    }
}

/// Reads an example: a value that a caller could send, in the form that the script would get.
fn example(
    what: &str,
    value: Value<'_>,
    value_type: &ValueType,
    [type_mismatch, out_of_bounds]: [Code; 2],
    report: &mut Report<'_>,
) -> Option<Box<RawValue>> {
    match value::accept(value_type, value, Strings::Kept) {
        Ok(accepted) => RawValue::from_string(accepted.json.into_owned()).ok(),
        Err(mismatch) => {
            let code = match mismatch.kind {
                MismatchKind::Type => type_mismatch,
                MismatchKind::Bounds => out_of_bounds,
            };
            let place = if mismatch.path.is_empty() { "" } else { " at " };
            let message = format!(
                "{what}{place}{} is {}, expected {}",
                mismatch.path, mismatch.got, mismatch.expected
            );
            report.fault(code, value.span(), message);
            None
        }
    }
}

fn examples_of(
    field: &Member<'_>,
    value_type: &ValueType,
    report: &mut Report<'_>,
) -> Vec<Box<RawValue>> {
    if field.value.kind() != Kind::Array {
        report.mismatch("examples", field.value, "an array");
    }
    let elements = field.value.elements();
    let codes = [Code::ExampleMismatch; 2];
    elements
        .filter_map(|element| example("the example", element, value_type, codes, report))
        .collect()
}

/// The constraints of 2026-07-28/server/tools#x-mcp-header; clients drop a tool that violates one.
fn header(
    field: &Member<'_>,
    value_type: &ValueType,
    is_secret: bool,
    report: &mut Report<'_>,
) -> Option<String> {
    let name = report.string("header", field.value)?;
    let is_primitive = matches!(
        value_type,
        ValueType::String { .. }
            | ValueType::Integer { .. }
            | ValueType::Boolean
            | ValueType::Enum { .. }
    );
    let message = if !header::is_name(&name) {
        header::BAD_NAME
    } else if !is_primitive {
        "only strings, integers, booleans and enums can be repeated in a header"
    } else if is_secret {
        "the header would repeat a secret, which every proxy may log"
    } else {
        return Some(name.into_owned());
    };
    report.fault(Code::InvalidHeader, field.value.span(), message);
    None
}
