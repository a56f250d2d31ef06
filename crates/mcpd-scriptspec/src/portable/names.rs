//! Portable names of properties: spellings that every model provider
//! accepts, and the mapping back.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value, value::RawValue};

use super::for_each_subschema;
use crate::name::{fnv1a, transliterate};
use crate::text;

/// Maximum length of a portable name, in characters.
const MAX_LENGTH: usize = 64;

/// Maximum depth of renamed values: deeper ones stay unchanged.
const MAX_DEPTH: usize = 128;

/// Returns whether every model provider accepts the name of a property.
pub(crate) fn is_portable(name: &str) -> bool {
    (1..=MAX_LENGTH).contains(&name.len()) && name.chars().all(is_portable_char)
}

fn is_portable_char(char: char) -> bool {
    char.is_ascii_alphanumeric() || matches!(char, '_' | '.' | '-')
}

/// Returns the portable spelling of a name: letters of other scripts transliterated, `_` for every
/// other character, and a hash at the end of a name that is too long.
pub(crate) fn portable_name(name: &str) -> Cow<'_, str> {
    if is_portable(name) {
        return name.into();
    }
    let replaced = replace(name);
    if is_portable(&replaced) {
        replaced.into()
    } else {
        portable_hashed(name).into()
    }
}

/// Returns the portable spelling with a hash of the name at its end.
fn portable_hashed(name: &str) -> String {
    let suffix = format!("_{:08x}", fnv1a(name.as_bytes()));
    let mut replaced = replace(name);
    replaced.truncate(MAX_LENGTH - suffix.len());
    replaced + &suffix
}

fn replace(name: &str) -> String {
    transliterate(name).replace(|char| !is_portable_char(char), "_")
}

/// Portable spellings of those properties of one schema whose names a provider rejects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortableNames {
    portable: BTreeMap<String, String>,
    originals: BTreeMap<String, String>,
}

impl PortableNames {
    /// Returns the spellings for `schema`, or nothing if every name is portable.
    ///
    /// ```
    /// use mcpd_scriptspec::portable::PortableNames;
    /// use serde_json::json;
    /// use serde_json::value::RawValue;
    ///
    /// let schema = json!({"properties": {"größe": {"type": "number"}}, "required": ["größe"]});
    /// let names = PortableNames::of(&schema).expect("one name is not portable");
    ///
    /// let mut listed = schema.clone();
    /// names.rename(&mut listed);
    /// assert_eq!(listed["required"], json!(["grosse"]));
    ///
    /// let arguments = RawValue::from_string(r#"{"grosse": 1.50}"#.to_owned())?;
    /// assert_eq!(names.restore(&schema, &arguments).get(), r#"{"größe":1.50}"#);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[must_use]
    pub fn of(schema: &Value) -> Option<Self> {
        let mut all = BTreeSet::new();
        collect(schema, &mut all);
        let mut names = Self {
            portable: BTreeMap::new(),
            originals: BTreeMap::new(),
        };
        for name in all.iter().filter(|name| !is_portable(name)) {
            let is_free =
                |spelling: &str| !all.contains(spelling) && !names.originals.contains_key(spelling);
            let mut spelling = portable_name(name).into_owned();
            if !is_free(&spelling) {
                spelling = portable_hashed(name);
            }
            // A collision of two 32-bit hashes is left unhandled.
            if is_free(&spelling) {
                names.originals.insert(spelling.clone(), name.clone());
                names.portable.insert(name.clone(), spelling);
            }
        }
        (!names.portable.is_empty()).then_some(names)
    }

    /// Returns each name with its portable spelling.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let names = self.portable.iter();
        names.map(|(name, spelling)| (name.as_str(), spelling.as_str()))
    }

    /// Renames the properties of `schema`, and adds the original name to the description of each.
    pub fn rename(&self, schema: &mut Value) {
        let Value::Object(members) = schema else {
            return;
        };
        for keyword in ["properties", "dependentRequired", "dependentSchemas"] {
            if let Some(Value::Object(named)) = members.get_mut(keyword) {
                *named = self.rename_keys(std::mem::take(named), keyword == "properties");
            }
        }
        let required = members.get_mut("required").into_iter();
        let lists = required.flat_map(Value::as_array_mut).flatten();
        lists.for_each(|name| self.rename_text(name));
        if let Some(Value::Object(named)) = members.get_mut("dependentRequired") {
            let lists = named.values_mut().flat_map(Value::as_array_mut).flatten();
            lists.for_each(|name| self.rename_text(name));
        }
        for_each_subschema(members, |_, schema, _| self.rename(schema));
    }

    fn rename_keys(&self, named: Map<String, Value>, are_described: bool) -> Map<String, Value> {
        let rename = |(name, mut value): (String, Value)| match self.portable.get(&name) {
            Some(spelling) => {
                if are_described {
                    describe(&mut value, &name);
                }
                (spelling.clone(), value)
            }
            None => (name, value),
        };
        named.into_iter().map(rename).collect()
    }

    fn rename_text(&self, name: &mut Value) {
        let spelling = name.as_str().and_then(|name| self.portable.get(name));
        if let Some(spelling) = spelling {
            *name = spelling.as_str().into();
        }
    }

    /// Returns `arguments` with the original names of `schema`, each value in its original digits.
    /// A key is renamed only where the schema has a property of that name.
    #[must_use]
    pub fn restore(&self, schema: &Value, arguments: &RawValue) -> Box<RawValue> {
        let mut json = String::with_capacity(arguments.get().len());
        let restorer = Restorer {
            originals: &self.originals,
            root: schema,
        };
        restorer.write(arguments, &[schema], MAX_DEPTH, &mut json);
        RawValue::from_string(json).unwrap_or_else(|_| arguments.to_owned())
    }
}

/// Collects the names of all properties, anywhere in the schema.
fn collect(schema: &Value, names: &mut BTreeSet<String>) {
    // Only the traversal needs a mutable schema.
    let mut schema = schema.clone();
    collect_from(&mut schema, names);
}

fn collect_from(schema: &mut Value, names: &mut BTreeSet<String>) {
    let Value::Object(members) = schema else {
        return;
    };
    if let Some(Value::Object(properties)) = members.get("properties") {
        names.extend(properties.keys().cloned());
    }
    for_each_subschema(members, |_, schema, _| collect_from(schema, names));
}

/// Adds the original name of the property to its description.
fn describe(property: &mut Value, name: &str) {
    let Value::Object(members) = property else {
        return;
    };
    let called = format!("Called {}.", text::name(name));
    let description = match members.get("description").and_then(Value::as_str) {
        Some(text) if !text.trim().is_empty() => format!("{} {called}", with_full_stop(text)),
        _ => called,
    };
    members.insert("description".to_owned(), description.into());
}

fn with_full_stop(text: &str) -> String {
    let text = text.trim_end();
    let is_sentence = text.ends_with(|last: char| !last.is_alphanumeric());
    format!("{text}{}", if is_sentence { "" } else { "." })
}

/// Mapping back from portable names, guided by the schema.
struct Restorer<'s> {
    originals: &'s BTreeMap<String, String>,
    root: &'s Value,
}

impl<'s> Restorer<'s> {
    /// Writes `value`, to which each of `schemas` applies.
    fn write(&self, value: &RawValue, schemas: &[&'s Value], depth: usize, json: &mut String) {
        let text = value.get();
        if schemas.is_empty() || depth == 0 {
            return json.push_str(text);
        }
        let schemas = self.expand(schemas);
        if let Ok(Members(members)) = serde_json::from_str(text) {
            json.push('{');
            for (index, (key, value)) in members.iter().enumerate() {
                json.push_str(if index == 0 { "" } else { "," });
                let key = self.original(key, &schemas);
                *json += &Value::from(key).to_string();
                json.push(':');
                self.write(value, &of_member(key, &schemas), depth - 1, json);
            }
            json.push('}');
        } else if let Ok(elements) = serde_json::from_str::<Vec<&RawValue>>(text) {
            json.push('[');
            for (index, element) in elements.iter().enumerate() {
                json.push_str(if index == 0 { "" } else { "," });
                self.write(element, &of_element(index, &schemas), depth - 1, json);
            }
            json.push(']');
        } else {
            json.push_str(text);
        }
    }

    fn original<'k>(&self, key: &'k str, schemas: &[&Value]) -> &'k str
    where
        's: 'k,
    {
        let is_property = |name: &str| {
            let mut properties = schemas.iter().map(|schema| &schema["properties"]);
            properties.any(|properties| properties.get(name).is_some())
        };
        let original = self.originals.get(key).map(String::as_str);
        let original = original.filter(|original| !is_property(key) && is_property(original));
        original.unwrap_or(key)
    }

    /// The schemas with all others that apply to the same value.
    fn expand(&self, schemas: &[&'s Value]) -> Vec<&'s Value> {
        let mut all: Vec<&'s Value> = Vec::new();
        let mut open = schemas.to_vec();
        while let Some(schema) = open.pop() {
            if all.iter().any(|known| std::ptr::eq(*known, schema)) {
                continue;
            }
            all.push(schema);
            let lists = ["allOf", "anyOf", "oneOf"].map(|keyword| schema[keyword].as_array());
            open.extend(lists.into_iter().flatten().flatten());
            open.extend(
                ["if", "then", "else"]
                    .iter()
                    .filter_map(|keyword| schema.get(keyword)),
            );
            let dependent = schema["dependentSchemas"].as_object();
            open.extend(dependent.into_iter().flat_map(Map::values));
            open.extend(
                schema["$ref"]
                    .as_str()
                    .and_then(|reference| self.find(reference)),
            );
        }
        all
    }

    fn find(&self, reference: &str) -> Option<&'s Value> {
        let pointer = percent_decode_str(reference.strip_prefix('#')?).decode_utf8();
        self.root.pointer(&pointer.ok()?)
    }
}

/// Schemas of the member `key` of a value under `schemas`.
fn of_member<'s>(key: &str, schemas: &[&'s Value]) -> Vec<&'s Value> {
    let of_one = |schema: &&'s Value| {
        let property = schema.get("properties").and_then(|all| all.get(key));
        property.or_else(|| schema.get("additionalProperties"))
    };
    schemas.iter().filter_map(of_one).collect()
}

/// Schemas of an element of a value under `schemas`.
fn of_element<'s>(index: usize, schemas: &[&'s Value]) -> Vec<&'s Value> {
    let of_one = |schema: &&'s Value| {
        let first = schema.get("prefixItems").and_then(|all| all.get(index));
        first.or_else(|| schema.get("items"))
    };
    schemas.iter().filter_map(of_one).collect()
}

/// Members of an object in their order, including duplicate keys.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Reader)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(schema: &Value, sent: &str, passed_on: &str) {
        let names = PortableNames::of(schema).unwrap();
        let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        assert_eq!(names.restore(schema, &raw(sent)).get(), passed_on);
        assert_eq!(names.restore(schema, &raw(passed_on)).get(), passed_on);
    }

    #[test]
    fn name_is_spelled_in_portable_characters() {
        let long = "x".repeat(70);
        let schema = json!({"properties": {"a b": {}, "a_b": {}, "größe": {}, "": {}, long.clone(): {}, "a.b-c": {}}});
        let names = PortableNames::of(&schema).unwrap();
        let names: Vec<_> = names.iter().collect();
        let shortened = format!("{}_{:08x}", "x".repeat(55), fnv1a(long.as_bytes()));
        let expected = [
            ("", "_811c9dc5"),
            ("a b", &*format!("a_b_{:08x}", fnv1a(b"a b"))),
            ("größe", "grosse"),
            (&*long, &*shortened),
        ];
        let mut expected = expected.to_vec();
        expected.sort_unstable();
        assert_eq!(names, expected);
        assert_eq!(
            PortableNames::of(&json!({"properties": {"a.b-c_d": true}})),
            None
        );
    }

    #[test]
    fn renamed_schema_names_the_original() {
        let mut schema = json!({
            "properties": {
                "größe": {"type": "number", "description": "In cm"},
                "deep": {"items": {"properties": {"ä": {}}, "required": ["ä"]}},
            },
            "required": ["größe"],
            "dependentRequired": {"größe": ["deep", "größe"]},
            "default": {"größe": 1},
        });
        PortableNames::of(&schema).unwrap().rename(&mut schema);
        let expected = json!({
            "properties": {
                "grosse": {"type": "number", "description": "In cm. Called `größe`."},
                "deep": {"items": {"properties": {"a": {"description": "Called `ä`."}}, "required": ["a"]}},
            },
            "required": ["grosse"],
            "dependentRequired": {"grosse": ["deep", "grosse"]},
            "default": {"größe": 1},
        });
        assert_eq!(schema, expected);
    }

    #[test]
    fn arguments_are_restored_where_the_schema_leads() {
        let schema = json!({"properties": {
            "größe": {},
            "list": {"prefixItems": [{}], "items": {"properties": {"länge": {}}}},
            "map": {"additionalProperties": {"properties": {"ü x": {}}}},
            "free": {"type": "object"},
        }});
        check(
            &schema,
            r#"{"grosse": 1.10e2 , "x":[ 1 ]}"#,
            r#"{"größe":1.10e2,"x":[ 1 ]}"#,
        );
        check(
            &schema,
            r#"{"list":[{"lange":1},{"lange":2}]}"#,
            r#"{"list":[{"lange":1},{"länge":2}]}"#,
        );
        check(
            &schema,
            r#"{"map":{"lange":{"u_x":1}}}"#,
            r#"{"map":{"lange":{"ü x":1}}}"#,
        );
        check(
            &schema,
            r#"{"free":{"grosse":1}}"#,
            r#"{"free":{"grosse":1}}"#,
        );
        check(
            &schema,
            r#"{"grosse":1,"größe":2}"#,
            r#"{"größe":1,"größe":2}"#,
        );
        check(&schema, "null", "null");
    }

    #[test]
    fn arguments_are_restored_behind_alternatives_and_references() {
        let schema = json!({
            "allOf": [{"properties": {"größe": {"$ref": "#/$defs/tree"}}}],
            "$defs": {"tree": {"anyOf": [{"type": "null"}, {"properties": {"grün": {"$ref": "#/$defs/tree"}}}]}},
        });
        check(
            &schema,
            r#"{"grosse":{"grun":{"grun":null}}}"#,
            r#"{"größe":{"grün":{"grün":null}}}"#,
        );
        let deep = |levels: usize| {
            format!(
                "{{\"größe\":{}1{}}}",
                "{\"grün\":".repeat(levels),
                "}".repeat(levels)
            )
        };
        check(&schema, &deep(100), &deep(100));
    }
}
