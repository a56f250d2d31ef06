//! Parser of value types: `value_type` with the fields that refine it.

use std::{borrow::Cow, collections::BTreeSet};

use super::{
    Report,
    options::{self, Scope},
};
use crate::{
    decimal::{self, Decimal},
    edit::Repair,
    json::{Kind, Member, Value},
    rules::Code,
    spec::{Bounds, Pattern, ScriptOption, ValueType},
    suggest::{suggest, suggest_only},
    text,
};

const TYPES: &[&str] = &[
    "string", "integer", "float", "boolean", "any", "array", "object",
];

/// Fields that define the type of a value.
#[derive(Default)]
pub(super) struct TypeFields<'a> {
    value_type: Option<Member<'a>>,
    size: Option<Member<'a>>,
    pattern: Option<Member<'a>>,
    format: Option<Member<'a>>,
    items: Option<Member<'a>>,
    properties: Option<Member<'a>>,
}

impl<'a> TypeFields<'a> {
    pub(super) const NAMES: &'static [&'static str] = &[
        "value_type",
        "size",
        "pattern",
        "format",
        "items",
        "properties",
    ];

    pub(super) fn insert(&mut self, member: Member<'a>) {
        let field = match &*member.key {
            "value_type" => &mut self.value_type,
            "size" => &mut self.size,
            "pattern" => &mut self.pattern,
            "format" => &mut self.format,
            "items" => &mut self.items,
            _ => &mut self.properties,
        };
        *field = Some(member);
    }
}

pub(super) fn read(fields: &TypeFields<'_>, report: &mut Report<'_>) -> Option<ValueType> {
    let name = name(fields, report)?;
    report_unused(fields, &name, report);
    let mut size = |wanted| {
        fields
            .size
            .as_ref()
            .map(|size| bounds(size, wanted, report))
            .unwrap_or_default()
    };
    Some(match &*name {
        "string" => ValueType::String {
            size: size(Wanted::Count),
            pattern: fields
                .pattern
                .as_ref()
                .and_then(|field| pattern(field, report)),
            format: fields
                .format
                .as_ref()
                .and_then(|field| report.text(field, 64)),
        },
        "integer" => ValueType::Integer {
            size: size(Wanted::Integer),
        },
        "float" => ValueType::Float {
            size: size(Wanted::Number),
        },
        "boolean" => ValueType::Boolean,
        "any" => ValueType::Any {
            size: size(Wanted::Number),
        },
        "enum" => {
            return fields
                .value_type
                .as_ref()
                .and_then(|field| enumeration(field.value, report));
        }
        "array" => ValueType::Array {
            size: size(Wanted::Count),
            items: match &fields.items {
                Some(field) => Some(Box::new(items(field, report)?)),
                None => None,
            },
        },
        "object" => ValueType::Object {
            properties: fields
                .properties
                .as_ref()
                .map(|field| properties(field, report)),
        },
        _ => {
            report_unknown_type(&name, fields, report);
            return None;
        }
    })
}

fn name<'a>(fields: &TypeFields<'a>, report: &mut Report<'_>) -> Option<Cow<'a, str>> {
    match &fields.value_type {
        None => Some("any".into()),
        Some(field) if field.value.kind() == Kind::Object => Some("enum".into()),
        Some(field) if field.value.kind() == Kind::String => field.value.string(),
        Some(field) => {
            report.mismatch("value_type", field.value, r#"a string or `{"enum": […]}`"#);
            None
        }
    }
}

/// Reports fields that refine another type than this one.
fn report_unused(fields: &TypeFields<'_>, name: &str, report: &mut Report<'_>) {
    if let Some(size) = &fields.size
        && matches!(name, "boolean" | "any" | "enum" | "object")
    {
        let message = format!("callers do not see `size` for the type `{name}`");
        report.fault(Code::BoundsOnUnboundedType, size.key_span.clone(), message);
    }
    let refinements = [
        (&fields.pattern, "string"),
        (&fields.format, "string"),
        (&fields.items, "array"),
        (&fields.properties, "object"),
    ];
    for (field, refined) in refinements {
        if let Some(field) = field
            && name != refined
            && (TYPES.contains(&name) || name == "enum")
        {
            let message = format!("`{}` has no effect on the type `{name}`", field.key);
            report
                .fault(Code::UnusedField, field.key_span.clone(), message)
                .help(format!("it applies to the type `{refined}`"));
        }
    }
}

fn report_unknown_type(name: &str, fields: &TypeFields<'_>, report: &mut Report<'_>) {
    let span = fields
        .value_type
        .as_ref()
        .map(|field| field.value.span())
        .unwrap_or_default();
    let meant = match name {
        "int" | "long" => Some("integer"),
        "number" | "double" | "decimal" => Some("float"),
        "str" | "text" => Some("string"),
        "list" => Some("array"),
        "dict" | "map" => Some("object"),
        _ => suggest(name, TYPES.iter().copied()),
    };
    let sole = suggest_only(name, TYPES.iter().copied());
    let is_certain = |meant: &&str| suggest(name, [*meant]).is_none() || sole == Some(*meant);
    let repair = meant
        .filter(is_certain)
        .map(|meant| Repair::respell(name, meant));
    let message = format!("unknown value type {}", text::name(name));
    report
        .fault(Code::UnknownValueType, span, message)
        .repair(repair)
        .help(match meant {
            Some(name) => format!("did you mean `{name}`?"),
            None => format!(r#"known types: {}, {{"enum": […]}}"#, TYPES.join(", ")),
        });
}

fn pattern(field: &Member<'_>, report: &mut Report<'_>) -> Option<Pattern> {
    let source = report.string("pattern", field.value)?;
    let pattern = Pattern::new(&source);
    if pattern.is_none() {
        let message = "expected a regular expression without look-around and back-references";
        report.fault(Code::InvalidPattern, field.value.span(), message);
    }
    pattern
}

fn items(field: &Member<'_>, report: &mut Report<'_>) -> Option<ValueType> {
    if field.value.kind() != Kind::Object {
        report.mismatch(
            "items",
            field.value,
            r#"an object such as `{"value_type": "string"}`"#,
        );
        return None;
    }
    let mut fields = TypeFields::default();
    let known = [TypeFields::NAMES, &["secret"]].concat();
    for member in report.fields(field.value, &known) {
        match &*member.key {
            // A secret property makes the whole option secret.
            "secret" => drop(report.boolean(&member)),
            _ => fields.insert(member),
        }
    }
    read(&fields, report)
}

fn properties(field: &Member<'_>, report: &mut Report<'_>) -> Vec<ScriptOption> {
    if field.value.kind() != Kind::Object {
        report.mismatch("properties", field.value, "an object of options");
    }
    let members = field.value.members();
    members
        .filter_map(|member| options::option(&member, Scope::Property, report))
        .collect()
}

fn enumeration(definition: Value<'_>, report: &mut Report<'_>) -> Option<ValueType> {
    let list = report
        .fields(definition, &["enum"])
        .into_iter()
        .next()
        .map(|member| member.value);
    let Some(list) = list.filter(|list| list.kind() == Kind::Array) else {
        report.mismatch(
            "value_type",
            list.unwrap_or(definition),
            r#"`{"enum": […]}`"#,
        );
        return None;
    };
    let mut values = Vec::new();
    let mut seen = BTreeSet::new();
    let mut is_whole = true;
    for element in list.elements() {
        let Some(text) = report.string("enum", element) else {
            is_whole = false;
            continue;
        };
        if !seen.insert(text.clone()) {
            let message = format!("{} is listed twice", text::name(&text));
            report
                .fault(Code::DuplicateEnumValue, element.span(), message)
                .repair(Repair::RemoveElement);
        }
        values.push(text.into_owned());
    }
    if list.elements().next().is_none() {
        report.fault(Code::EmptyEnum, list.span(), "an enum without values");
        is_whole = false;
    }
    // Without all of its values, the enum cannot check a default.
    is_whole.then_some(ValueType::Enum { values })
}

/// Kind of number that a bound must be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Count,
    Integer,
    Number,
}

fn bounds(size: &Member<'_>, wanted: Wanted, report: &mut Report<'_>) -> Bounds {
    let mut bounds = Bounds::default();
    if size.value.kind() != Kind::Object {
        report.mismatch("size", size.value, r#"`{"min": …, "max": …}`"#);
        return bounds;
    }
    for member in report.fields(size.value, &["min", "max"]) {
        let bound = bound(&member, wanted, report);
        if member.key == "min" {
            bounds.min = bound;
        } else {
            bounds.max = bound;
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
    let bound = Decimal::parse(member.value.text()).and_then(|number| {
        let is_negative = number.as_str().starts_with('-');
        match wanted {
            Wanted::Number => Some(number),
            Wanted::Count if is_negative => None,
            _ if !number.parts().is_integer() => None,
            // Clients that parse bounds as integers reject `2.0`.
            Wanted::Count | Wanted::Integer => {
                Decimal::parse(&decimal::integer_text(number.as_str().into())?)
            }
        }
    });
    if bound.is_none() {
        report.mismatch(&member.key, member.value, expected);
    }
    bound
}
