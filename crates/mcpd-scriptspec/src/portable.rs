//! Portable schemas: JSON Schemas in the form that every known client and model provider accepts.
//!
//! One tool with a schema that a provider rejects can take all tools of all servers from a model.
//! Lists therefore show a schema in this form, and the author gets a report of the changes.

use std::fmt;

use serde_json::{Map, Value, json};

use crate::text::excerpt;

pub(crate) mod names;

pub use names::PortableNames;

/// Maximum length of a quoted value in a message, in characters.
const MAX_QUOTED: usize = 40;

/// Types of JSON Schema.
const TYPES: [&str; 7] = [
    "array", "boolean", "integer", "null", "number", "object", "string",
];

/// One difference between a declared schema and its listed form.
///
/// Displayed, it is a sentence: ``at `#/properties/model`: `true` is listed as `{}` ``.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SchemaChange {
    /// Place in the declared schema, as a JSON pointer in a fragment.
    pub pointer: String,
    /// Declared value, and its listed form.
    pub what: String,
}

impl fmt::Display for SchemaChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at `{}`: {}", excerpt(&self.pointer, 200), self.what)
    }
}

/// Gives `schema` the portable form, which accepts the same values, and returns the changes.
///
/// Schemas that are `true`, `false` or no schema at all become objects; an object gets
/// `properties` and an array `items`; tuples and exclusive bounds of older drafts are written as
/// in 2020-12. A `$schema` stays, as the official conformance suite requires.
///
/// ```
/// use mcpd_scriptspec::portable::portable_schema;
/// use serde_json::json;
///
/// let mut schema = json!({"type": "object", "properties": {"model": true}});
/// let changes = portable_schema(&mut schema);
/// assert_eq!(schema, json!({"type": "object", "properties": {"model": {}}}));
/// assert_eq!(changes[0].to_string(), "at `#/properties/model`: `true` is listed as `{}`");
/// ```
pub fn portable_schema(schema: &mut Value) -> Vec<SchemaChange> {
    let mut changes = Vec::new();
    normalize(schema, "#", &mut changes);
    changes
}

fn normalize(schema: &mut Value, pointer: &str, changes: &mut Vec<SchemaChange>) {
    let Value::Object(members) = schema else {
        let instead = match schema {
            Value::Bool(false) => json!({"not": {}}),
            _ => json!({}),
        };
        let told = excerpt(&schema.to_string(), MAX_QUOTED);
        changes.push(change(
            pointer,
            format!("`{told}` is listed as `{instead}`"),
        ));
        *schema = instead;
        return;
    };
    normalize_keywords(members, |what| changes.push(change(pointer, what)));
    for_each_subschema(members, |path, schema, may_be_boolean| {
        if !(may_be_boolean && schema.is_boolean()) {
            normalize(schema, &format!("{pointer}{path}"), changes);
        }
    });
}

fn change(pointer: &str, what: String) -> SchemaChange {
    SchemaChange {
        pointer: pointer.to_owned(),
        what,
    }
}

fn normalize_keywords(members: &mut Map<String, Value>, mut tell: impl FnMut(String)) {
    let is_known = |named: &Value| named.as_str().is_some_and(|name| TYPES.contains(&name));
    let is_type = |named: &Value| match named {
        Value::Array(names) => !names.is_empty() && names.iter().all(is_known),
        named => is_known(named),
    };
    remove_unless(members, "type", is_type, &mut tell);
    remove_unless(members, "required", Value::is_array, &mut tell);
    let is_object = names_type(members, "object");
    if members.get("properties").is_some_and(|it| !it.is_object()) {
        tell("`properties` is not an object and is listed as `{}`".to_owned());
        members.insert("properties".to_owned(), json!({}));
    } else if is_object && !members.contains_key("properties") {
        tell("an object without `properties` is listed with `{}`".to_owned());
        members.insert("properties".to_owned(), json!({}));
    }
    if members.get("items").is_some_and(Value::is_array) {
        tell("a list under `items` is listed as `prefixItems`".to_owned());
        replace_tuple(members);
    }
    if names_type(members, "array") && !members.contains_key("items") {
        tell("an array without `items` is listed with `{}`".to_owned());
        members.insert("items".to_owned(), json!({}));
    }
    for (exclusive, bound) in [
        ("exclusiveMinimum", "minimum"),
        ("exclusiveMaximum", "maximum"),
    ] {
        if let Some(Value::Bool(is_exclusive)) = members.get(exclusive).cloned() {
            tell(format!("`{exclusive}` is listed as a number, or not"));
            members.shift_remove(exclusive);
            if is_exclusive && let Some(limit) = members.shift_remove(bound) {
                members.insert(exclusive.to_owned(), limit);
            }
        }
    }
}

/// Removes a keyword whose value is meaningless.
fn remove_unless(
    members: &mut Map<String, Value>,
    keyword: &str,
    is_right: impl Fn(&Value) -> bool,
    tell: &mut impl FnMut(String),
) {
    if let Some(value) = members.get(keyword)
        && !is_right(value)
    {
        let value = excerpt(&value.to_string(), MAX_QUOTED);
        tell(format!(
            "`{keyword}` is not listed: `{value}` has no effect there"
        ));
        members.shift_remove(keyword);
    }
}

/// Rewrites the tuple of an older draft as in 2020-12.
fn replace_tuple(members: &mut Map<String, Value>) {
    let rest = members.shift_remove("additionalItems");
    let Some(tuple) = members.insert("items".to_owned(), rest.unwrap_or_else(|| json!({}))) else {
        return;
    };
    if tuple.as_array().is_some_and(|schemas| !schemas.is_empty()) {
        members.insert("prefixItems".to_owned(), tuple);
    }
}

fn names_type(members: &Map<String, Value>, name: &str) -> bool {
    match members.get("type") {
        Some(Value::Array(names)) => names.iter().any(|one| one == name),
        named => named.is_some_and(|one| one == name),
    }
}

/// Calls `visit` with each schema directly inside another: its path there, and whether
/// clients accept `true` and `false` in its place. Values that only resemble a schema, such
/// as a default, are left out.
fn for_each_subschema(
    members: &mut Map<String, Value>,
    mut visit: impl FnMut(&str, &mut Value, bool),
) {
    for (keyword, value) in members {
        match (keyword.as_str(), value) {
            (
                "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas",
                Value::Object(schemas),
            ) => {
                for (key, schema) in schemas {
                    let key = key.replace('~', "~0").replace('/', "~1");
                    visit(&format!("/{keyword}/{key}"), schema, false);
                }
            }
            ("allOf" | "anyOf" | "oneOf" | "prefixItems", Value::Array(schemas)) => {
                for (index, schema) in schemas.iter_mut().enumerate() {
                    visit(&format!("/{keyword}/{index}"), schema, false);
                }
            }
            ("items" | "contains" | "propertyNames" | "not" | "if" | "then" | "else", schema) => {
                visit(&format!("/{keyword}"), schema, false)
            }
            (
                "additionalProperties"
                | "unevaluatedProperties"
                | "unevaluatedItems"
                | "additionalItems",
                schema,
            ) => visit(&format!("/{keyword}"), schema, true),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(declared: Value, listed: &Value, changes: &[&str]) {
        let mut schema = declared;
        let found = portable_schema(&mut schema);
        assert_eq!(&schema, listed);
        let found: Vec<_> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found, changes);
        assert_eq!(portable_schema(&mut schema), []);
    }

    #[test]
    fn boolean_schema_becomes_an_object() {
        check(
            json!({"type": "object", "properties": {"a": true, "b/c": false, "d": null, "e": "string"}}),
            &json!({"type": "object", "properties": {"a": {}, "b/c": {"not": {}}, "d": {}, "e": {}}}),
            &[
                "at `#/properties/a`: `true` is listed as `{}`",
                r#"at `#/properties/b~1c`: `false` is listed as `{"not":{}}`"#,
                "at `#/properties/d`: `null` is listed as `{}`",
                r#"at `#/properties/e`: `"string"` is listed as `{}`"#,
            ],
        );
        check(
            json!({"anyOf": [true], "items": true, "$defs": {"x": {"not": false}}}),
            &json!({"anyOf": [{}], "items": {}, "$defs": {"x": {"not": {"not": {}}}}}),
            &[
                "at `#/anyOf/0`: `true` is listed as `{}`",
                "at `#/items`: `true` is listed as `{}`",
                r#"at `#/$defs/x/not`: `false` is listed as `{"not":{}}`"#,
            ],
        );
    }

    #[test]
    fn boolean_about_further_members_stays() {
        let schema = json!({"additionalProperties": false, "unevaluatedItems": true,
            "default": {"properties": true}, "enum": [{"items": true}], "const": {"type": "object"}});
        check(schema.clone(), &schema, &[]);
    }

    #[test]
    fn object_has_properties_and_array_has_items() {
        check(
            json!({"type": "object", "additionalProperties": {"type": ["array", "null"]}}),
            &json!({"type": "object", "properties": {},
                "additionalProperties": {"type": ["array", "null"], "items": {}}}),
            &[
                "at `#`: an object without `properties` is listed with `{}`",
                "at `#/additionalProperties`: an array without `items` is listed with `{}`",
            ],
        );
        check(
            json!({"type": "object", "properties": []}),
            &json!({"type": "object", "properties": {}}),
            &["at `#`: `properties` is not an object and is listed as `{}`"],
        );
    }

    #[test]
    fn older_drafts_are_written_as_the_newest() {
        check(
            json!({"items": [{"type": "string"}], "additionalItems": false}),
            &json!({"items": {"not": {}}, "prefixItems": [{"type": "string"}]}),
            &[
                "at `#`: a list under `items` is listed as `prefixItems`",
                r#"at `#/items`: `false` is listed as `{"not":{}}`"#,
            ],
        );
        check(
            json!({"minimum": 1, "exclusiveMinimum": true, "maximum": 2, "exclusiveMaximum": false}),
            &json!({"maximum": 2, "exclusiveMinimum": 1}),
            &[
                "at `#`: `exclusiveMinimum` is listed as a number, or not",
                "at `#`: `exclusiveMaximum` is listed as a number, or not",
            ],
        );
    }

    #[test]
    fn keyword_without_meaning_is_not_listed() {
        check(
            json!({"type": "any", "required": true}),
            &json!({}),
            &[
                r#"at `#`: `type` is not listed: `"any"` has no effect there"#,
                "at `#`: `required` is not listed: `true` has no effect there",
            ],
        );
    }

    #[test]
    fn named_draft_stays() {
        for draft in [
            "https://json-schema.org/draft/2020-12/schema",
            "http://json-schema.org/draft-07/schema#",
        ] {
            let named = json!({"$schema": draft, "type": "string"});
            check(named.clone(), &named, &[]);
        }
    }
}
