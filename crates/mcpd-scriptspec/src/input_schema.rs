//! A spec as a JSON Schema 2020-12 of its arguments, in declared order and in keywords that every client knows.

use serde_json::{Map, Value, json};

use crate::spec::{Bounds, ScriptOption, ScriptSpec, ValueType};

impl ScriptSpec {
    /// The schema of the arguments.
    ///
    /// Bounds and defaults that no double holds are published rounded, or not at all;
    /// [`invocation`](Self::invocation) checks and passes them exactly.
    #[must_use]
    pub fn input_schema(&self) -> Value {
        object_schema(&self.options)
    }
}

fn object_schema(options: &[ScriptOption]) -> Value {
    let properties: Map<_, _> = options
        .iter()
        .map(|option| (option.name.clone(), option_schema(option)))
        .collect();
    let required: Vec<_> = options
        .iter()
        .filter(|option| option.required)
        .map(|option| option.name.as_str())
        .collect();
    let mut schema = Map::new();
    schema.insert("type".to_owned(), json!("object"));
    schema.insert("properties".to_owned(), Value::Object(properties));
    if !required.is_empty() {
        schema.insert("required".to_owned(), json!(required));
    }
    schema.insert("additionalProperties".to_owned(), json!(false));
    Value::Object(schema)
}

fn option_schema(option: &ScriptOption) -> Value {
    let mut schema = type_schema(&option.value_type);
    if let Some(description) = &option.description {
        schema.insert("description".to_owned(), json!(description));
    }
    if let Some(default) = option
        .default_value
        .as_ref()
        .and_then(|json| published(json.get()))
    {
        schema.insert("default".to_owned(), default);
    }
    Value::Object(schema)
}

fn type_schema(value_type: &ValueType) -> Map<String, Value> {
    let mut schema = Map::new();
    let mut typed = |name: &str| schema.insert("type".to_owned(), json!(name));
    match value_type {
        ValueType::String { size } => {
            typed("string");
            publish(&mut schema, size, ["minLength", "maxLength"]);
        }
        ValueType::Integer { size } => {
            typed("integer");
            publish(&mut schema, size, ["minimum", "maximum"]);
        }
        ValueType::Float { size } => {
            typed("number");
            publish(&mut schema, size, ["minimum", "maximum"]);
        }
        ValueType::Boolean => {
            typed("boolean");
        }
        ValueType::Any { .. } => {}
        ValueType::Enum { values } => {
            typed("string");
            schema.insert("enum".to_owned(), json!(values));
        }
    }
    schema
}

fn publish(schema: &mut Map<String, Value>, size: &Bounds, [min, max]: [&str; 2]) {
    for (keyword, bound) in [(min, &size.min), (max, &size.max)] {
        if let Some(bound) = bound.as_ref().and_then(|bound| published(bound.as_str())) {
            schema.insert(keyword.to_owned(), bound);
        }
    }
}

/// JSON text as a value; what no double can hold is not published.
fn published(json: &str) -> Option<Value> {
    serde_json::from_str(json).ok()
}
