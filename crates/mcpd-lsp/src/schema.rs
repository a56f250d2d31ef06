//! Lookup in a JSON Schema by the path of a value: its keys, choices and descriptions.

use serde_json::Value;

use crate::outline::Segment;

/// Maximum number of schemas that a value may have by references and alternatives.
const MAX_ALTERNATIVES: usize = 64;

/// A schema, with its definitions.
#[derive(Debug)]
pub(crate) struct Schema {
    root: Value,
}

/// A value that a schema lists.
#[derive(Debug, PartialEq)]
pub(crate) struct Choice<'a> {
    pub(crate) value: &'a Value,
    pub(crate) description: Option<&'a str>,
}

/// Listed values, each once.
#[derive(Debug, Default)]
struct Choices<'a>(Vec<Choice<'a>>);

impl<'a> Choices<'a> {
    fn add(&mut self, value: &'a Value, description: Option<&'a str>) {
        if !self.0.iter().any(|choice| choice.value == value) {
            self.0.push(Choice { value, description });
        }
    }
}

impl Schema {
    pub(crate) fn new(root: Value) -> Self {
        Self { root }
    }

    /// The schemas of the value at `path`: that of its key first, then those that it refers to.
    pub(crate) fn at(&self, path: &[Segment]) -> Vec<&Value> {
        let mut schemas = self.expand(vec![&self.root]);
        for segment in path {
            let inner = schemas.iter().filter_map(|schema| match segment {
                Segment::Key(key) => {
                    let named = schema["properties"].get(key);
                    named.or_else(|| {
                        Some(&schema["additionalProperties"]).filter(|it| it.is_object())
                    })
                }
                Segment::Index(_) => Some(&schema["items"]).filter(|items| items.is_object()),
            });
            schemas = self.expand(inner.collect());
        }
        schemas
    }

    /// Adds the schemas that these refer to.
    fn expand<'a>(&'a self, mut schemas: Vec<&'a Value>) -> Vec<&'a Value> {
        let mut next = 0;
        while next < schemas.len() && schemas.len() < MAX_ALTERNATIVES {
            let schema = schemas[next];
            let target = schema["$ref"]
                .as_str()
                .and_then(|target| target.strip_prefix('#'));
            schemas.extend(target.and_then(|pointer| self.root.pointer(pointer)));
            for alternatives in ["anyOf", "oneOf", "allOf"] {
                schemas.extend(schema[alternatives].as_array().into_iter().flatten());
            }
            next += 1;
        }
        schemas
    }

    /// The named keys of the object at `path`, in order.
    pub(crate) fn keys(&self, path: &[Segment]) -> Vec<&str> {
        let schemas = self.at(path).into_iter();
        let named = schemas.filter_map(|schema| schema["properties"].as_object());
        named
            .flat_map(|properties| properties.keys())
            .map(String::as_str)
            .collect()
    }

    /// The values that the schema lists for `path`, and its default.
    pub(crate) fn choices(&self, path: &[Segment]) -> Vec<Choice<'_>> {
        let schemas = self.at(path);
        let mut choices = Choices::default();
        for schema in &schemas {
            for value in schema["enum"].as_array().into_iter().flatten() {
                choices.add(value, None);
            }
            if let Some(value) = schema.get("const") {
                choices.add(value, schema["description"].as_str());
            }
            if schema["type"] == "boolean" {
                choices.add(&Value::Bool(true), None);
                choices.add(&Value::Bool(false), None);
            }
        }
        for schema in schemas {
            if let Some(value) = schema.get("default") {
                choices.add(value, None);
            }
        }
        choices.0
    }

    /// The description of the value at `path`: that of its key rather than of its type.
    pub(crate) fn description(&self, path: &[Segment]) -> Option<String> {
        let described = self
            .at(path)
            .into_iter()
            .filter(|schema| schema.get("const").is_none());
        let mut texts = described.filter_map(|schema| schema["description"].as_str());
        // The lines of the schema end where those of its source did.
        texts.next().map(|text| text.replace('\n', " "))
    }

    /// Returns whether the value at `path` is an object with keys.
    pub(crate) fn is_object(&self, path: &[Segment]) -> bool {
        self.at(path)
            .iter()
            .any(|schema| schema["type"] == "object")
    }

    /// Returns whether the value at `path` is an array of objects.
    pub(crate) fn is_array_of_objects(&self, path: &[Segment]) -> bool {
        let mut element = path.to_vec();
        element.push(Segment::Index(0));
        self.is_object(&element)
    }

    /// Names the types of the value at `path`, such as `integer or string`.
    pub(crate) fn types(&self, path: &[Segment]) -> String {
        let mut types: Vec<&str> = Vec::new();
        for schema in self.at(path) {
            let list = schema["type"].as_array().into_iter().flatten();
            for name in list.chain([&schema["type"]]).filter_map(Value::as_str) {
                if !types.contains(&name) {
                    types.push(name);
                }
            }
        }
        types.join(" or ")
    }

    /// The default of the value at `path`.
    pub(crate) fn default(&self, path: &[Segment]) -> Option<&Value> {
        self.at(path)
            .into_iter()
            .find_map(|schema| schema.get("default"))
    }
}
