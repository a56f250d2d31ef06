//! JSON Schema 2020-12 of a spec's arguments, in declared order, with keywords
//! that every client supports.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Value, json, value::RawValue};

use crate::portable::names::is_portable;
use crate::spec::{Bounds, ScriptOption, ScriptSpec, ValueType};

impl ScriptSpec {
    /// Schema of the arguments: generated from the options, or the script's own.
    ///
    /// Bounds and defaults beyond the range of a double are published rounded, or left out;
    /// [`invocation`](Self::invocation) checks and passes them exactly.
    #[must_use]
    pub fn input_schema(&self) -> Value {
        json!(self.written_input_schema())
    }

    /// Returns whether the schema of the arguments, including defaults, is certainly
    /// [portable](crate::portable::portable_schema) as it is.
    #[must_use]
    pub fn has_portable_schema(&self) -> bool {
        self.declared_schema.is_none() && self.options.iter().all(has_portable_schema)
    }

    /// Schema of the arguments for serialization alone, without an intermediate value.
    #[must_use]
    pub fn written_input_schema(&self) -> impl Serialize {
        InputSchema(self)
    }
}

fn has_portable_schema(option: &ScriptOption) -> bool {
    let has_format = |value_type: &ValueType| {
        matches!(
            value_type,
            ValueType::String {
                format: Some(_),
                ..
            }
        )
    };
    let is_portable = is_portable(&option.name)
        && (option.default_value.is_none() || !has_format(&option.value_type));
    let mut value_type = &option.value_type;
    while let ValueType::Array {
        items: Some(items), ..
    } = value_type
    {
        value_type = items;
    }
    is_portable
        && match value_type {
            ValueType::Object {
                properties: Some(properties),
            } => properties.iter().all(has_portable_schema),
            _ => true,
        }
}

struct InputSchema<'a>(&'a ScriptSpec);

impl Serialize for InputSchema<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0.declared_schema {
            Some(schema) => schema.serialize(serializer),
            None => {
                let mut map = serializer.serialize_map(None)?;
                write_object(&mut map, &self.0.options)?;
                map.end()
            }
        }
    }
}

struct Properties<'a>(&'a [ScriptOption]);

impl Serialize for Properties<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let schemas = self.0.iter().map(OptionSchema);
        serializer.collect_map(schemas.map(|schema| (&schema.0.name, schema)))
    }
}

struct OptionSchema<'a>(&'a ScriptOption);

impl Serialize for OptionSchema<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let option = self.0;
        let mut map = serializer.serialize_map(None)?;
        write_type(&mut map, &option.value_type)?;
        if let Some(title) = &option.title {
            map.serialize_entry("title", title)?;
        }
        if let Some(description) = &option.description {
            map.serialize_entry("description", description)?;
        }
        // A client that fills in the default would override the variable, which takes precedence.
        let default = option.default_value.as_deref();
        let default = default.filter(|_| option.env.is_none());
        if let Some(default) = default.and_then(published_value) {
            map.serialize_entry("default", &default)?;
        }
        let examples = option.examples.iter();
        let examples: Vec<_> = examples
            .filter_map(|example| published_value(example))
            .collect();
        if !examples.is_empty() {
            map.serialize_entry("examples", &examples)?;
        }
        if let Some(header) = &option.header {
            map.serialize_entry("x-mcp-header", header)?;
        }
        map.end()
    }
}

struct TypeSchema<'a>(Option<&'a ValueType>);

impl Serialize for TypeSchema<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(value_type) = self.0 {
            write_type(&mut map, value_type)?;
        }
        map.end()
    }
}

fn write_object<M: SerializeMap>(map: &mut M, options: &[ScriptOption]) -> Result<(), M::Error> {
    map.serialize_entry("type", "object")?;
    map.serialize_entry("properties", &Properties(options))?;
    let required = options.iter().filter(|option| option.required);
    let required: Vec<_> = required.map(|option| &option.name).collect();
    if !required.is_empty() {
        map.serialize_entry("required", &required)?;
    }
    map.serialize_entry("additionalProperties", &false)
}

fn write_type<M: SerializeMap>(map: &mut M, value_type: &ValueType) -> Result<(), M::Error> {
    match value_type {
        ValueType::String {
            size,
            pattern,
            format,
        } => {
            write_bounded(map, "string", size, ["minLength", "maxLength"])?;
            if let Some(pattern) = pattern {
                map.serialize_entry("pattern", pattern.as_str())?;
            }
            if let Some(format) = format {
                map.serialize_entry("format", format)?;
            }
            Ok(())
        }
        ValueType::Integer { size } => write_bounded(map, "integer", size, ["minimum", "maximum"]),
        ValueType::Float { size } => write_bounded(map, "number", size, ["minimum", "maximum"]),
        ValueType::Boolean => map.serialize_entry("type", "boolean"),
        ValueType::Any { .. } => Ok(()),
        ValueType::Enum { values } => {
            map.serialize_entry("type", "string")?;
            map.serialize_entry("enum", values)
        }
        ValueType::Array { size, items } => {
            write_bounded(map, "array", size, ["minItems", "maxItems"])?;
            // Several clients reject an array without `items`, and an object without `properties`.
            map.serialize_entry("items", &TypeSchema(items.as_deref()))
        }
        ValueType::Object {
            properties: Some(properties),
        } => write_object(map, properties),
        ValueType::Object { properties: None } => {
            map.serialize_entry("type", "object")?;
            map.serialize_entry("properties", &Properties(&[]))
        }
    }
}

fn write_bounded<M: SerializeMap>(
    map: &mut M,
    name: &str,
    size: &Bounds,
    [min, max]: [&str; 2],
) -> Result<(), M::Error> {
    map.serialize_entry("type", name)?;
    for (keyword, bound) in [(min, &size.min), (max, &size.max)] {
        let bound = bound
            .as_ref()
            .map(|bound| serde_json::from_str(bound.as_str()));
        if let Some(Ok(bound)) = bound {
            map.serialize_entry::<_, Value>(keyword, &bound)?;
        }
    }
    Ok(())
}

/// JSON text as a value; a number beyond the range of a double is left out.
fn published_value(json: &RawValue) -> Option<Value> {
    serde_json::from_str(json.get()).ok()
}
