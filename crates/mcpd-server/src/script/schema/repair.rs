//! Repair of arguments as models send them, by the schema of the tool: `null` for an optional
//! value, and strings that are exactly the JSON of the expected value.
//!
//! Touches only what the schema rejects, and only if the schema accepts the whole afterwards. All
//! the rest stays byte for byte as it was sent, numbers included.

use std::borrow::Cow;
use std::collections::BTreeMap;

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;
use mcpd_scriptspec::members;
use serde_json::Value;
use serde_json::value::RawValue;

use super::Schema;

/// Maximum number of rounds: a repair may reveal another, as in a string inside a string.
const MAX_ROUNDS: usize = 4;
/// Maximum number of repairs in one round.
const MAX_PLACES: usize = 200;
/// Maximum depth of inspected alternatives.
const MAX_ALTERNATIVES: usize = 8;

/// Repairs by place, a JSON pointer.
type Repairs = BTreeMap<String, Repair>;

/// Repair of a rejected value.
enum Repair {
    /// Omits a `null`.
    Omit,
    /// Replaces a string by the value that it contains.
    Read(Box<RawValue>),
}

impl Schema {
    /// Returns the intended arguments, if these are rejected and those are accepted.
    pub(super) fn repair(&self, arguments: &RawValue) -> Option<Box<RawValue>> {
        let mut arguments = Cow::Borrowed(arguments);
        for _ in 0..MAX_ROUNDS {
            let value: Value = serde_json::from_str(arguments.get()).ok()?;
            if !self.admits(&value) {
                return None;
            }
            let mut repairs = Repairs::new();
            let mut errors = self.validator.iter_errors(&value).peekable();
            if errors.peek().is_none() {
                return Some(arguments.into_owned());
            }
            for error in errors {
                find_repairs(&error, MAX_ALTERNATIVES, &mut repairs);
            }
            if repairs.is_empty() {
                return None;
            }
            let repaired = rewrite(&arguments, "", &repairs)?;
            arguments = Cow::Owned(RawValue::from_string(repaired).ok()?);
        }
        None
    }
}

/// Collects possible repairs of an error, including those of alternatives.
fn find_repairs(error: &ValidationError<'_>, depth: usize, repairs: &mut Repairs) {
    let place = error.instance_path().as_str();
    if repairs.len() >= MAX_PLACES {
        return;
    }
    if !place.is_empty() && !repairs.contains_key(place) {
        let repair = match &**error.instance() {
            Value::Null => Some(Repair::Omit),
            Value::String(text) => parse_json_text(text).map(Repair::Read),
            _ => None,
        };
        repairs.extend(repair.map(|repair| (place.to_owned(), repair)));
    }
    let (ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context }) =
        error.kind()
    else {
        return;
    };
    if depth > 0 {
        for error in context.iter().flatten() {
            find_repairs(error, depth - 1, repairs);
        }
    }
}

/// Returns the number, boolean, array or object in a string.
fn parse_json_text(text: &str) -> Option<Box<RawValue>> {
    if !text.starts_with(|char: char| "-0123456789tf[{".contains(char)) {
        return None;
    }
    // Two readers could disagree on an object with a duplicate key.
    let is_object = text.starts_with('{');
    let value = RawValue::from_string(text.to_owned()).ok()?;
    (!is_object || members(Some(&value)).is_ok()).then_some(value)
}

/// Writes a value with the repairs below `place`, and the rest unchanged.
fn rewrite(value: &RawValue, place: &str, repairs: &Repairs) -> Option<String> {
    let below = format!("{place}/");
    let is_touched = repairs.range(below.clone()..).next();
    if is_touched.is_none_or(|(place, _)| !place.starts_with(&below)) {
        return Some(value.get().to_owned());
    }
    let mut parts = Vec::new();
    if value.get().trim_start().starts_with('[') {
        let elements: Vec<&RawValue> = serde_json::from_str(value.get()).ok()?;
        for (index, element) in elements.into_iter().enumerate() {
            let place = format!("{below}{index}");
            parts.push(match repairs.get(&place) {
                Some(Repair::Read(read)) => read.get().to_owned(),
                // An element cannot be omitted.
                Some(Repair::Omit) | None => rewrite(element, &place, repairs)?,
            });
        }
        return Some(format!("[{}]", parts.join(",")));
    }
    for (name, member) in members(Some(value)).ok()? {
        let place = format!("{below}{}", name.replace('~', "~0").replace('/', "~1"));
        let written = match repairs.get(&place) {
            Some(Repair::Omit) => continue,
            Some(Repair::Read(read)) => read.get().to_owned(),
            None => rewrite(member, &place, repairs)?,
        };
        parts.push(format!("{}:{written}", Value::from(name)));
    }
    Some(format!("{{{}}}", parts.join(",")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(arguments: &str, expected: Option<&str>) {
        let schema = json!({
            "type": "object",
            "properties": {
                "limit": {"type": "integer"},
                "deep": {"type": "boolean"},
                "tags": {"type": "array", "items": {"type": "integer"}},
                "where": {
                    "type": "object",
                    "properties": {"city": {"type": "string"}, "floor": {"type": "integer"}},
                    "required": ["city"],
                },
                "a/b": {"anyOf": [{"type": "integer"}, {"type": "array"}]},
                "note": {"type": "string"},
                "big": {},
            },
            "required": ["limit"],
            "additionalProperties": false,
        });
        let schema = Schema::compile(&schema).expect("it is valid");
        let arguments = RawValue::from_string(arguments.to_owned()).expect("it is JSON");
        let repaired = schema.repair(&arguments);
        assert_eq!(repaired.as_deref().map(RawValue::get), expected);
    }

    #[test]
    fn repair_omits_null_for_optional_values() {
        check(r#"{"limit": 5, "deep": null}"#, Some(r#"{"limit":5}"#));
        check(
            r#"{"limit": 5, "where": {"city": "Bern", "floor": null}}"#,
            Some(r#"{"limit":5,"where":{"city":"Bern"}}"#),
        );
        check(r#"{"limit": null}"#, None);
        check(r#"{"limit": 5, "where": {"city": null}}"#, None);
    }

    #[test]
    fn repair_parses_strings_where_the_schema_expects_their_value() {
        check(r#"{"limit": "5"}"#, Some(r#"{"limit":5}"#));
        check(
            r#"{"limit": 1, "deep": "true"}"#,
            Some(r#"{"limit":1,"deep":true}"#),
        );
        check(
            r#"{"limit": 1, "tags": "[1, 2]"}"#,
            Some(r#"{"limit":1,"tags":[1, 2]}"#),
        );
        check(
            r#"{"limit": 1, "tags": "[\"1\"]"}"#,
            Some(r#"{"limit":1,"tags":[1]}"#),
        );
        check(
            r#"{"limit": 1, "a/b": "7"}"#,
            Some(r#"{"limit":1,"a/b":7}"#),
        );
        for refused in [
            r#"{"limit": "five"}"#,
            r#"{"limit": " 5"}"#,
            r#"{"limit": "5.5"}"#,
            r#"{"limit": "\"5\""}"#,
            r#"{"limit": 1, "where": "{\"city\": \"a\", \"city\": \"b\"}"}"#,
            r#"{"limit": "5", "unknown": 1}"#,
        ] {
            check(refused, None);
        }
    }

    #[test]
    fn repair_leaves_accepted_values_unchanged() {
        check(
            r#"{"limit": "5", "note": "5", "big": 12345678901234567890123.10}"#,
            Some(r#"{"limit":5,"note":"5","big":12345678901234567890123.10}"#),
        );
    }
}
