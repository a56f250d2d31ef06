//! Tool definitions as one client passes them to its model, with the parts that get lost.

use mcpd_server::{Catalog, ToolNames};
use serde::Serialize;
use serde_json::{Map, Value};

use super::{Effect, Profile, ProfileRule, Shape};

/// A client's view of the catalog.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct Forwarded {
    client: &'static str,
    #[serde(skip)]
    /// Name of the client, for people.
    pub name: &'static str,
    /// Remarks about the list as a whole.
    pub remarks: Vec<Remark>,
    /// The tools, as the model sees them.
    pub tools: Vec<ForwardedTool>,
}

/// A client's view of one tool.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ForwardedTool {
    /// Path of the tool.
    pub path: String,
    /// Name that the model sees.
    pub name: String,
    /// Schema of its arguments, as the model sees it.
    pub input_schema: Value,
    /// Remarks about this tool.
    pub remarks: Vec<Remark>,
}

/// A part that the client changes or rejects.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Remark {
    /// Subject of the remark, with its place if that is in the schema.
    pub what: String,
    /// Effect on the tool.
    pub effect: Effect,
    /// Reason, as a clause.
    pub why: &'static str,
}

impl Forwarded {
    /// All remarks, about the list and about tools.
    pub fn all_remarks(&self) -> impl Iterator<Item = &Remark> {
        let of_tools = self.tools.iter().flat_map(|tool| &tool.remarks);
        self.remarks.iter().chain(of_tools)
    }
}

/// Applies the client's rules to the tools, listed under such names.
#[must_use]
pub fn forward(profile: &Profile, catalog: &Catalog, names: ToolNames) -> Forwarded {
    let mut tools = Vec::new();
    for tool in catalog.tools() {
        let definition = tool.definition();
        let name = match names {
            ToolNames::Path => tool.path().as_str(),
            _ => tool.portable_name(),
        };
        let mut remarks = Vec::new();
        let name = profile.name_of(name, &mut remarks);
        let description = definition.description.as_deref().unwrap_or_default();
        profile.check_description(description, &mut remarks);
        let portable = tool.portable_input_schema();
        let schema = match names {
            ToolNames::Path => None,
            _ => portable,
        };
        let schema = schema.unwrap_or(&definition.input_schema);
        let mut schema = serde_json::from_str(schema.get()).unwrap_or_default();
        profile.pass(&mut schema, &mut remarks);
        tools.push(ForwardedTool {
            path: tool.path().to_string(),
            name,
            input_schema: schema,
            remarks,
        });
    }
    let mut remarks = Vec::new();
    if let Some(rule) = &profile.tools
        && tools.len() > rule.of
    {
        remarks.push(rule.breach(format!("{} tools", tools.len())));
    }
    Forwarded {
        client: profile.key,
        name: profile.name,
        remarks,
        tools,
    }
}

impl<T> ProfileRule<T> {
    fn breach(&self, what: String) -> Remark {
        Remark {
            what,
            effect: self.effect,
            why: self.why,
        }
    }
}

impl Profile {
    /// Name that the model sees.
    fn name_of(&self, name: &str, remarks: &mut Vec<Remark>) -> String {
        let is_allowed = self.characters.of;
        let mut name = format!("{}{name}", self.prefix);
        if !name.chars().all(is_allowed) {
            remarks.push(self.characters.breach(format!("the name `{name}`")));
            if self.characters.effect == Effect::Changed {
                name = name.replace(|char| !is_allowed(char), "_");
            }
        }
        let length = name.chars().count();
        if length > self.length.of {
            remarks.push(
                self.length
                    .breach(format!("the name, of {length} characters")),
            );
            if self.length.effect == Effect::Changed {
                name = (self.shorten)(&name);
            }
        }
        name
    }

    fn check_description(&self, description: &str, remarks: &mut Vec<Remark>) {
        let length = description.chars().count();
        if let Some(rule) = &self.description
            && length > rule.of
        {
            remarks.push(rule.breach(format!("the description, of {length} characters")));
        }
    }

    /// Removes what the client removes from the schema.
    fn pass(&self, schema: &mut Value, remarks: &mut Vec<Remark>) {
        let mut visit = |schema: &mut Map<String, Value>, place: &SchemaPlace| {
            for rule in self.schema {
                for part in rule.of.find(schema, place) {
                    if rule.effect == Effect::Changed {
                        // `remove` would change the order of the remaining entries.
                        schema.shift_remove(&part);
                    }
                    let what = format!("`{part}` at `{}`", place.pointer);
                    remarks.push(rule.breach(what));
                }
            }
        };
        let place = SchemaPlace {
            pointer: "#".to_owned(),
            depth: 0,
        };
        walk(schema, &place, &mut visit);
    }
}

/// Place of a schema within the whole one.
struct SchemaPlace {
    /// JSON pointer, as a URL fragment.
    pointer: String,
    /// Number of objects and arrays around the schema.
    depth: usize,
}

impl SchemaPlace {
    fn child(&self, keyword: &str, key: Option<&str>) -> Self {
        let mut pointer = format!("{}/{keyword}", self.pointer);
        if let Some(key) = key {
            pointer += &format!("/{}", key.replace('~', "~0").replace('/', "~1"));
        }
        let is_value = !matches!(
            keyword,
            "allOf" | "anyOf" | "oneOf" | "not" | "if" | "then" | "else"
        );
        Self {
            pointer,
            depth: self.depth + usize::from(is_value),
        }
    }
}

impl Shape {
    /// Finds parts of a schema with this shape; of keywords, their names.
    fn find(&self, schema: &Map<String, Value>, place: &SchemaPlace) -> Vec<String> {
        let is = |kind: &str| schema.get("type").is_some_and(|named| named == kind);
        let has = |keyword: &str| schema.contains_key(keyword);
        let keywords = |keywords: &[&str]| {
            let found = keywords.iter().filter(|keyword| has(keyword));
            found.map(|keyword| (*keyword).to_owned()).collect()
        };
        let if_so = |is_so: bool, what: &str| {
            if is_so {
                vec![what.to_owned()]
            } else {
                Vec::new()
            }
        };
        let properties = schema.get("properties").and_then(Value::as_object);
        let names = properties.into_iter().flat_map(Map::keys);
        match self {
            Self::Keyword(names) => keywords(names),
            Self::RootKeyword(names) if place.depth == 0 && place.pointer == "#" => keywords(names),
            Self::RootKeyword(_) => Vec::new(),
            Self::ArrayWithoutItems => if_so(is("array") && !has("items"), "array"),
            Self::ObjectWithoutProperties => if_so(is("object") && !has("properties"), "object"),
            Self::WithoutType => {
                const TYPED: [&str; 7] =
                    ["type", "anyOf", "oneOf", "allOf", "$ref", "enum", "const"];
                let is_property = place.pointer.contains("/properties/");
                if_so(
                    is_property && !TYPED.iter().any(|keyword| has(keyword)),
                    "any",
                )
            }
            Self::DeeperThan(most) => if_so(place.depth == most + 1, "type"),
            Self::OptionalProperty => {
                let required = schema.get("required").and_then(Value::as_array);
                let is_required = |name: &&String| {
                    required.is_some_and(|all| all.iter().any(|known| known == *name))
                };
                names.filter(|name| !is_required(name)).cloned().collect()
            }
            Self::PropertyName => {
                let fits = |name: &&String| {
                    (1..=64).contains(&name.len()) && name.chars().all(super::is_word_dash_or_dot)
                };
                names.filter(|name| !fits(name)).cloned().collect()
            }
        }
    }
}

/// Visits every schema in a schema, itself first. Values that only resemble a schema, such as a
/// default, are left out.
fn walk(
    schema: &mut Value,
    place: &SchemaPlace,
    visit: &mut impl FnMut(&mut Map<String, Value>, &SchemaPlace),
) {
    let Value::Object(object) = schema else {
        return;
    };
    visit(object, place);
    for (keyword, value) in object {
        match (keyword.as_str(), value) {
            (
                "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas",
                Value::Object(schemas),
            ) => {
                for (key, schema) in schemas {
                    walk(schema, &place.child(keyword, Some(key)), visit);
                }
            }
            ("allOf" | "anyOf" | "oneOf" | "prefixItems", Value::Array(schemas)) => {
                for (index, schema) in schemas.iter_mut().enumerate() {
                    walk(
                        schema,
                        &place.child(keyword, Some(&index.to_string())),
                        visit,
                    );
                }
            }
            (
                "items"
                | "contains"
                | "additionalProperties"
                | "unevaluatedProperties"
                | "unevaluatedItems"
                | "propertyNames"
                | "not"
                | "if"
                | "then"
                | "else",
                schema,
            ) => walk(schema, &place.child(keyword, None), visit),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::clients::PROFILES;

    fn profile(key: &str) -> &'static Profile {
        PROFILES.iter().find(|profile| profile.key == key).unwrap()
    }

    #[track_caller]
    fn check_name(client: &str, name: &str, expected: &str, breaches: usize) {
        let mut remarks = Vec::new();
        assert_eq!(profile(client).name_of(name, &mut remarks), expected);
        assert_eq!(remarks.len(), breaches, "{remarks:?}");
    }

    #[test]
    fn tool_name_is_changed_or_refused() {
        check_name("claude", "math_add", "math_add", 0);
        check_name("claude", "math.add", "math.add", 1);
        check_name("openai", &"x".repeat(65), &"x".repeat(65), 1);
        check_name("gemini", "math.add", "math.add", 0);
        check_name("gemini", "math/größe", "math_gr__e", 1);
        check_name("cursor", &"x".repeat(56), &"x".repeat(56), 0);
        check_name("cursor", &"x".repeat(57), &"x".repeat(57), 1);
        check_name("vscode", "math/add", "mcp_mcpd_math_add", 1);
    }

    #[test]
    fn long_tool_name_loses_its_middle_or_its_end() {
        let long = format!("{}-{}", "a".repeat(40), "b".repeat(40));
        let middle = format!("{}___{}", "a".repeat(28), "b".repeat(32));
        let end = format!("mcp_mcpd_{}-{}", "a".repeat(40), "b".repeat(14));
        check_name("gemini", &long, &middle, 1);
        check_name("vscode", &long, &end, 1);
    }

    #[track_caller]
    fn check_schema(client: &str, mut schema: Value, expected: &[&str]) {
        let mut remarks = Vec::new();
        profile(client).pass(&mut schema, &mut remarks);
        let found: Vec<_> = remarks.iter().map(|remark| remark.what.as_str()).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn schema_depth_is_counted() {
        let nested = |levels: usize| {
            let inner = json!({"type": "string"});
            (0..levels).fold(inner, |items, _| json!({"type": "array", "items": items}))
        };
        check_schema("openai", nested(10), &[]);
        let place = format!("`type` at `#{}`", "/items".repeat(11));
        check_schema("openai", nested(11), &[&place]);
    }

    #[test]
    fn property_without_a_type_is_refused() {
        let schema = json!({"properties": {
            "a": {"description": "Anything"},
            "b": {"type": "array", "items": {}},
            "c": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        }});
        let places = [
            "`any` at `#/properties/a`",
            "`any` at `#/properties/b/items`",
        ];
        check_schema("gemini", schema, &places);
    }

    #[test]
    fn keyword_inside_a_value_is_ignored() {
        let properties = json!({"type": "object", "properties": {"a~b/c": {"enum": [{"format": ""}]}, "format": {"type": "string"}}});
        check_schema("gemini", properties, &[]);
        let nested = json!({"properties": {"a~b/c": {"type": "string", "format": "date"}}});
        check_schema("gemini", nested, &["`format` at `#/properties/a~0b~1c`"]);
        let alternatives = json!({"properties": {"a": {"anyOf": []}}});
        check_schema("claude", alternatives, &[]);
    }
}
