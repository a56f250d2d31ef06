//! A spec as a JSON Schema 2020-12 of its arguments, in declared order and in keywords that every client knows.

use serde_json::{Map, Value, json, value::RawValue};

use crate::spec::{Bounds, ScriptOption, ScriptSpec, ValueType};

impl ScriptSpec {
    /// The schema of the arguments: made of the options, or the script's own.
    ///
    /// Bounds and defaults that no double holds are published rounded, or not at all;
    /// [`invocation`](Self::invocation) checks and passes them exactly.
    #[must_use]
    pub fn input_schema(&self) -> Value {
        match &self.declared_schema {
            Some(schema) => schema.clone(),
            None => Value::Object(object_schema(&self.options)),
        }
    }
}

fn object_schema(options: &[ScriptOption]) -> Map<String, Value> {
    let properties: Map<_, _> = options
        .iter()
        .map(|option| (option.name.clone(), option_schema(option)))
        .collect();
    let required: Vec<_> = options
        .iter()
        .filter(|option| option.required)
        .map(|option| &option.name)
        .collect();
    let mut schema = typed("object");
    schema.insert("properties".to_owned(), Value::Object(properties));
    if !required.is_empty() {
        schema.insert("required".to_owned(), json!(required));
    }
    schema.insert("additionalProperties".to_owned(), json!(false));
    schema
}

fn option_schema(option: &ScriptOption) -> Value {
    let mut schema = type_schema(&option.value_type);
    let mut publish = |keyword: &str, value: Option<Value>| {
        if let Some(value) = value {
            schema.insert(keyword.to_owned(), value);
        }
    };
    publish("title", option.title.as_ref().map(|title| json!(title)));
    publish(
        "description",
        option
            .description
            .as_ref()
            .map(|description| json!(description)),
    );
    publish(
        "default",
        option.default_value.as_deref().and_then(published),
    );
    let examples: Vec<_> = option
        .examples
        .iter()
        .filter_map(|example| published(example))
        .collect();
    publish("examples", (!examples.is_empty()).then(|| json!(examples)));
    publish(
        "x-mcp-header",
        option.header.as_ref().map(|header| json!(header)),
    );
    Value::Object(schema)
}

fn type_schema(value_type: &ValueType) -> Map<String, Value> {
    match value_type {
        ValueType::String {
            size,
            pattern,
            format,
        } => {
            let mut schema = bounded("string", size, ["minLength", "maxLength"]);
            if let Some(pattern) = pattern {
                schema.insert("pattern".to_owned(), json!(pattern.as_str()));
            }
            if let Some(format) = format {
                schema.insert("format".to_owned(), json!(format));
            }
            schema
        }
        ValueType::Integer { size } => bounded("integer", size, ["minimum", "maximum"]),
        ValueType::Float { size } => bounded("number", size, ["minimum", "maximum"]),
        ValueType::Boolean => typed("boolean"),
        ValueType::Any { .. } => Map::new(),
        ValueType::Enum { values } => {
            let mut schema = typed("string");
            schema.insert("enum".to_owned(), json!(values));
            schema
        }
        ValueType::Array { size, items } => {
            let mut schema = bounded("array", size, ["minItems", "maxItems"]);
            // Several clients refuse an array without `items`, and an object without `properties`.
            let items = items.as_deref().map(type_schema).unwrap_or_default();
            schema.insert("items".to_owned(), Value::Object(items));
            schema
        }
        ValueType::Object {
            properties: Some(properties),
        } => object_schema(properties),
        ValueType::Object { properties: None } => {
            let mut schema = typed("object");
            schema.insert("properties".to_owned(), json!({}));
            schema
        }
    }
}

fn typed(name: &str) -> Map<String, Value> {
    Map::from_iter([("type".to_owned(), json!(name))])
}

fn bounded(name: &str, size: &Bounds, [min, max]: [&str; 2]) -> Map<String, Value> {
    let mut schema = typed(name);
    for (keyword, bound) in [(min, &size.min), (max, &size.max)] {
        let bound = bound
            .as_ref()
            .and_then(|bound| serde_json::from_str(bound.as_str()).ok());
        if let Some(bound) = bound {
            schema.insert(keyword.to_owned(), bound);
        }
    }
    schema
}

/// JSON text as a value; what no double can hold is not published.
fn published(json: &RawValue) -> Option<Value> {
    serde_json::from_str(json.get()).ok()
}
