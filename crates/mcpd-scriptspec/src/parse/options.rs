//! The options object: what a script wants to be given.

use serde_json::value::RawValue;

use super::{Output, Report, metadata::MAX_DESCRIPTION};
use crate::{
    decimal::{self, Decimal},
    invocation::alias,
    json::{self, Kind, Member, Span, Value},
    rules::Code,
    spec::{Bounds, ScriptOption, ScriptSpec, ValueType},
    suggest::suggest,
    value::{self, MismatchKind, Strings},
};

const FIELDS: &[&str] = &[
    "description",
    "required",
    "value_type",
    "default_value",
    "size",
];

const TYPES: &[&str] = &["string", "integer", "float", "boolean", "any"];

pub(super) fn read(output: &Output<'_>, spec: &mut ScriptSpec, report: &mut Report<'_>) {
    let Output::Json(document) = output else {
        return;
    };
    let root = document.root;
    if root.kind() != Kind::Object {
        let message = format!("the options are {}, expected an object", root.kind().name());
        report.fault(Code::OptionsNotObject, root.span(), message);
        return;
    }
    let names: Vec<_> = root
        .members()
        .map(|member| (member.key, member.key_span))
        .collect();
    for span in &document.duplicates {
        let is_option = names.iter().any(|(_, name)| name == span);
        let code = if is_option {
            Code::DuplicateOption
        } else {
            Code::DuplicateKey
        };
        report.fault(
            code,
            span.clone(),
            "this key stands here for the second time".to_owned(),
        );
    }
    for (name, span) in &names {
        check_name(name, span, report);
    }
    check_variables(&names, report);
    spec.options = root
        .members()
        .filter_map(|member| option(&member, report))
        .collect();
}

fn check_name(name: &str, span: &Span, report: &mut Report<'_>) {
    if name.is_empty() {
        let message = "an option without a name".to_owned();
        report.fault(Code::InvalidOptionName, span.clone(), message);
        return;
    }
    if let Some(char) = name.chars().find(|char| *char == '=' || char.is_control()) {
        let message = format!(
            "an option name with the character `{}`",
            char.escape_debug()
        );
        report.fault(Code::InvalidOptionName, span.clone(), message);
        return;
    }
    report.visible(name, name, span.clone());
    let is_portable = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    if name.len() > 64 || !name.bytes().all(is_portable) {
        let message = format!(
            "some models refuse the option name `{}`",
            json::shorten(name, 64)
        );
        report
            .fault(Code::UnportableOptionName, span.clone(), message)
            .help("use at most 64 of the characters `A-Z a-z 0-9 _ . -`");
    }
}

/// Every option needs a variable that a shell can read, of its own.
fn check_variables(names: &[(std::borrow::Cow<'_, str>, Span)], report: &mut Report<'_>) {
    let mut taken = std::collections::BTreeMap::new();
    for (name, span) in names {
        let variable = alias(name).unwrap_or_else(|| name.to_string());
        let message = format!("`MCPD_OPT_{variable}` would be the variable of two options");
        if let Some(other) = taken.insert(variable, name)
            && other != name
        {
            report
                .fault(Code::AmbiguousOptionVariable, span.clone(), message)
                .help(format!("give `{name}` or `{other}` another name"));
        }
    }
}

/// The known fields of one option, in the order in which they are checked.
#[derive(Default)]
struct Fields<'a> {
    description: Option<String>,
    required: bool,
    value_type: Option<Member<'a>>,
    size: Option<Member<'a>>,
    default_value: Option<Member<'a>>,
}

fn option(member: &Member<'_>, report: &mut Report<'_>) -> Option<ScriptOption> {
    if member.value.kind() != Kind::Object {
        let message = format!(
            "option `{}` is {}, expected an object",
            member.key,
            member.value.kind().name()
        );
        report
            .fault(Code::OptionNotObject, member.value.span(), message)
            .help(r#"write `{"required": true, "value_type": "string"}`"#);
        return None;
    }
    let fields = fields(member.value, report);
    if fields
        .description
        .as_ref()
        .is_none_or(|text| text.trim().is_empty())
    {
        let message = format!("option `{}` has no description", member.key);
        report.fault(Code::UndescribedOption, member.key_span.clone(), message);
    }
    let value_type = value_type(&fields, report)?;
    let default_value = default_value(&fields, member, &value_type, report);
    Some(ScriptOption {
        name: member.key.clone().into_owned(),
        description: fields.description,
        required: fields.required,
        value_type,
        default_value,
    })
}

fn fields<'a>(definition: Value<'a>, report: &mut Report<'_>) -> Fields<'a> {
    let mut fields = Fields::default();
    for member in definition.members() {
        if !FIELDS.contains(&&*member.key) {
            report.unknown_field(&member, FIELDS);
            continue;
        }
        if report.is_null(&member) {
            continue;
        }
        match &*member.key {
            "description" => fields.description = report.text(&member, MAX_DESCRIPTION),
            "required" => fields.required = report.boolean(&member).unwrap_or_default(),
            "value_type" => fields.value_type = Some(member),
            "size" => fields.size = Some(member),
            _ => fields.default_value = Some(member),
        }
    }
    fields
}

fn value_type(fields: &Fields<'_>, report: &mut Report<'_>) -> Option<ValueType> {
    let bounds = |report: &mut Report<'_>, wanted| {
        fields
            .size
            .as_ref()
            .map_or_else(Bounds::default, |size| bounds(size, wanted, report))
    };
    let Some(member) = &fields.value_type else {
        unpublished(fields, "any", report);
        return Some(ValueType::Any {
            size: bounds(report, Wanted::Number),
        });
    };
    if member.value.kind() == Kind::Object {
        unpublished(fields, "enum", report);
        return enumeration(member.value, report);
    }
    let Some(name) = member.value.string() else {
        report.type_mismatch("value_type", member.value, r#"a string or `{"enum": […]}`"#);
        return None;
    };
    Some(match &*name {
        "string" => ValueType::String {
            size: bounds(report, Wanted::Count),
        },
        "integer" => ValueType::Integer {
            size: bounds(report, Wanted::Integer),
        },
        "float" => ValueType::Float {
            size: bounds(report, Wanted::Number),
        },
        "boolean" => {
            unpublished(fields, "boolean", report);
            ValueType::Boolean
        }
        "any" => {
            unpublished(fields, "any", report);
            ValueType::Any {
                size: bounds(report, Wanted::Number),
            }
        }
        other => {
            unknown_type(other, member.value.span(), report);
            return None;
        }
    })
}

fn unknown_type(name: &str, span: Span, report: &mut Report<'_>) {
    let meant = match name {
        "int" | "long" => Some("integer"),
        "number" | "double" | "decimal" => Some("float"),
        "str" | "text" => Some("string"),
        _ => suggest(name, TYPES.iter().copied()),
    };
    let message = format!("unknown value type `{}`", json::shorten(name, 64));
    report
        .fault(Code::UnknownValueType, span, message)
        .help(match meant {
            Some(name) => format!("did you mean `{name}`?"),
            None => format!(r#"known types: {}, {{"enum": […]}}"#, TYPES.join(", ")),
        });
}

/// Minds a size that cannot be published.
fn unpublished(fields: &Fields<'_>, name: &str, report: &mut Report<'_>) {
    if let Some(size) = &fields.size {
        let message = format!("`size` says nothing to callers about the type `{name}`");
        report.fault(Code::BoundsOnUnboundedType, size.key_span.clone(), message);
    }
}

fn enumeration(definition: Value<'_>, report: &mut Report<'_>) -> Option<ValueType> {
    let mut list = None;
    for member in definition.members() {
        if member.key == "enum" {
            list = Some(member.value);
        } else {
            report.unknown_field(&member, &["enum"]);
        }
    }
    let Some(list) = list.filter(|list| list.kind() == Kind::Array) else {
        let found = list.unwrap_or(definition);
        report.type_mismatch("value_type", found, r#"`{"enum": […]}`"#);
        return None;
    };
    let mut values: Vec<String> = Vec::new();
    for element in list.elements() {
        let Some(text) = element.string() else {
            report.type_mismatch("enum", element, "strings only");
            continue;
        };
        report.visible("enum", &text, element.span());
        if values.iter().any(|value| *value == text) {
            let message = format!("{} is listed twice", json::shorten(element.text(), 64));
            report.fault(Code::DuplicateEnumValue, element.span(), message);
        }
        values.push(text.into_owned());
    }
    if list.elements().next().is_none() {
        report.fault(
            Code::EmptyEnum,
            list.span(),
            "an enum without values".to_owned(),
        );
    }
    Some(ValueType::Enum { values })
}

/// What a bound may be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Count,
    Integer,
    Number,
}

fn bounds(size: &Member<'_>, wanted: Wanted, report: &mut Report<'_>) -> Bounds {
    let mut bounds = Bounds::default();
    if size.value.kind() != Kind::Object {
        report.type_mismatch("size", size.value, r#"`{"min": …, "max": …}`"#);
        return bounds;
    }
    for member in size.value.members() {
        if !["min", "max"].contains(&&*member.key) {
            report.unknown_field(&member, &["min", "max"]);
        } else if !report.is_null(&member) {
            let bound = bound(&member, wanted, report);
            if member.key == "min" {
                bounds.min = bound
            } else {
                bounds.max = bound
            }
        }
    }
    if let (Some(min), Some(max)) = (&bounds.min, &bounds.max)
        && min > max
    {
        let message = format!("the minimum {min} is above the maximum {max}");
        report.fault(Code::InvertedBounds, size.value.span(), message);
    }
    bounds
}

fn bound(member: &Member<'_>, wanted: Wanted, report: &mut Report<'_>) -> Option<Decimal> {
    let expected = match wanted {
        Wanted::Count => "a whole number from 0 on",
        Wanted::Integer => "a whole number",
        Wanted::Number => "a number",
    };
    let number = Decimal::parse(member.value.text());
    let bound = number.and_then(|number| {
        if wanted == Wanted::Number {
            return Some(number);
        }
        let is_negative = number.as_str().starts_with('-');
        if !number.parts().is_integer() || (wanted == Wanted::Count && is_negative) {
            return None;
        }
        // Clients that read a bound into an integer refuse `2.0`.
        Decimal::parse(&decimal::integer_text(number.as_str().into())?)
    });
    if bound.is_none() {
        let message = format!(
            "`{}` is {}, expected {expected}",
            member.key,
            value::describe(member.value)
        );
        report.fault(Code::FieldTypeMismatch, member.value.span(), message);
    }
    bound
}

fn default_value(
    fields: &Fields<'_>,
    option: &Member<'_>,
    value_type: &ValueType,
    report: &mut Report<'_>,
) -> Option<Box<RawValue>> {
    let Some(member) = &fields.default_value else {
        if !fields.required {
            let message = format!(
                "option `{}` is neither required nor has a default",
                option.key
            );
            report
                .fault(
                    Code::OptionalWithoutDefault,
                    option.key_span.clone(),
                    message,
                )
                .help("add a `default_value`, or `\"required\": true`");
        }
        return None;
    };
    if fields.required {
        let message = format!("the required option `{}` has a default", option.key);
        report
            .fault(Code::RequiredWithDefault, member.key_span.clone(), message)
            .help("remove the default, or `\"required\": true`");
    }
    if let Err(mismatch) = value::accept(value_type, member.value, Strings::Kept) {
        let code = match mismatch.kind {
            MismatchKind::Type => Code::DefaultTypeMismatch,
            MismatchKind::Bounds => Code::DefaultOutOfBounds,
        };
        let message = format!(
            "the default is {}, expected {}",
            mismatch.got, mismatch.expected
        );
        report.fault(code, member.value.span(), message);
        return None;
    }
    RawValue::from_string(member.value.text().to_owned()).ok()
}
