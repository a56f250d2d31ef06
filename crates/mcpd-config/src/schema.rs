//! JSON Schema of `mcpd.toml`, for editors and other programs. It is generated from the types that
//! read the file, so it cannot differ from them.

use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use serde_json::{Value, json};

use crate::tables::Tables;

/// Address of the newest published schema.
const ID: &str =
    "https://raw.githubusercontent.com/mcpd-project/mcpd/main/docs/schemas/mcpd.schema.json";

/// The schema, as published.
pub fn schema() -> Value {
    let settings = SchemaSettings::draft2020_12().with_transform(Tidy);
    let mut schema = settings.into_generator().into_root_schema_for::<Tables>();
    schema.insert("$id".to_owned(), json!(ID));
    schema.to_value()
}

/// Removes details of Rust that TOML lacks: absent values and the sizes of integers.
#[derive(Debug, Clone)]
struct Tidy;

impl Transform for Tidy {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        if let Some(Value::Array(types)) = schema.get_mut("type") {
            types.retain(|name| name != "null");
            if let [one] = &types[..] {
                let one = one.clone();
                schema.insert("type".to_owned(), one);
            }
        }
        if let Some(Value::Array(choices)) = schema.get_mut("anyOf") {
            choices.retain(|choice| choice["type"] != "null");
            if let [Value::Object(one)] = &choices[..] {
                let one = one.clone();
                schema.remove("anyOf");
                schema.ensure_object().extend(one);
            }
        }
        if schema.get("default").is_some_and(Value::is_null) {
            schema.remove("default");
        }
        let is_size = |format: &Value| {
            format
                .as_str()
                .is_some_and(|format| format.starts_with("uint"))
        };
        if schema.get("format").is_some_and(is_size) {
            schema.remove("format");
        }
    }
}

#[cfg(test)]
mod tests;
