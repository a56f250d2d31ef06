//! Validation of arguments and results by JSON Schemas, which are compiled once, bounded, matched
//! in linear time, and without access to other documents.

use std::fmt::{self, Write as _};

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{JsonType, PatternOptions, ValidationError, Validator};
use mcpd_scriptspec::{ScriptSpec, excerpt};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::message::arguments::arguments_text;

use effort::Outline;

mod effort;
pub(crate) mod formats;
mod repair;

/// Bounds on a schema, so that no script makes every call slow.
const MAX_BYTES: usize = 64 * 1024;
/// A nested schema takes two levels: `properties` and the name.
const MAX_DEPTH: usize = 64;
const MAX_OBJECTS: usize = 1000;

/// Maximum compiled size of a pattern, in bytes.
const MAX_PATTERN: usize = 1 << 20;

/// Maximum number of faults in one report.
const MAX_TOLD: usize = 20;
/// Maximum number of characters of a quoted value, and of a message.
const MAX_VALUE: usize = 80;
const MAX_MESSAGE: usize = 400;

/// Fault of a value whose check would take too long.
const TOO_MUCH: &str = "too large or too deeply nested to be checked against the schema";

/// Compiled schema.
#[derive(Debug)]
pub(crate) struct Schema {
    validator: Validator,
    outline: Option<Outline>,
}

/// Schemas that a script declares. They are large, and most scripts have none.
#[derive(Debug, Default)]
pub(crate) struct Schemas {
    /// Schema of the arguments, in place of options.
    pub(crate) input: Option<Box<Schema>>,
    /// Schema of the structured content.
    pub(crate) output: Option<Box<Schema>>,
}

/// Unusable schema.
#[derive(Debug)]
pub(crate) struct Unusable {
    /// Field of the metadata.
    pub(crate) field: &'static str,
    /// Reason, as a fragment.
    pub(crate) reason: String,
}

impl Schemas {
    /// Compiles the schemas that `spec` declares.
    ///
    /// # Errors
    ///
    /// Returns the first unusable schema.
    pub(crate) fn of(spec: &ScriptSpec) -> Result<Self, Unusable> {
        let compile = |field, schema: &Option<Value>| {
            let boxed = |schema| Schema::compile(schema).map(Box::new);
            let compiled = schema.as_ref().map(boxed).transpose();
            compiled.map_err(|reason| Unusable { field, reason })
        };
        Ok(Self {
            input: compile("input_schema", &spec.declared_schema)?,
            output: compile("output_schema", &spec.output_schema)?,
        })
    }
}

impl Schema {
    /// Compiles a schema of the draft in its `$schema`, or of 2020-12.
    ///
    /// # Errors
    ///
    /// Returns the reason why it is unusable, as a fragment.
    pub(crate) fn compile(schema: &Value) -> Result<Self, String> {
        check_size(schema)?;
        // "Implementations MUST NOT automatically dereference `$ref` values that resolve to a
        // network URI" -- 2026-07-28/basic/index#json-schema-usage. Local files are out of reach
        // as well.
        let validator = jsonschema::options()
            .offline()
            .with_pattern_options(PatternOptions::regex().size_limit(MAX_PATTERN))
            .build(schema)
            .map_err(|error| format_message(&error))?;
        let outline = Outline::of(schema)?;
        Ok(Self { validator, outline })
    }

    /// Checks the arguments of a call; absent ones are an empty object. Returns the intended ones
    /// if they were sent in another form, as models do: `null` for an optional value, or the JSON
    /// of a value as a string.
    ///
    /// # Errors
    ///
    /// Returns the faults, one per line, in the words of faults of options.
    pub(crate) fn check_arguments(
        &self,
        arguments: Option<&RawValue>,
    ) -> Result<Option<Box<RawValue>>, String> {
        let value =
            serde_json::from_str(arguments_text(arguments)).map_err(|error| error.to_string())?;
        match (self.check_as(&value, format_option_fault), arguments) {
            (Ok(()), _) => Ok(None),
            (Err(faults), None) => Err(faults),
            (Err(faults), Some(arguments)) => self.repair(arguments).map(Some).ok_or(faults),
        }
    }

    /// Checks a value.
    ///
    /// # Errors
    ///
    /// Returns the faults, one per line.
    pub(crate) fn check(&self, value: &Value) -> Result<(), String> {
        self.check_as(value, |error| vec![format_fault_at(error)])
    }

    /// Returns whether a value can be checked in bounded time.
    fn admits(&self, value: &Value) -> bool {
        let outline = self.outline.as_ref();
        outline.is_none_or(|outline| outline.admits(value))
    }

    fn check_as(
        &self,
        value: &Value,
        format: impl Fn(&ValidationError<'_>) -> Vec<String>,
    ) -> Result<(), String> {
        if !self.admits(value) {
            return Err(TOO_MUCH.to_owned());
        }
        let faults: Vec<_> = self
            .validator
            .iter_errors(value)
            .flat_map(|error| format(&error))
            .take(MAX_TOLD)
            .collect();
        if faults.is_empty() {
            Ok(())
        } else {
            Err(faults.join("\n"))
        }
    }
}

/// Returns whether a schema declares the type `object` explicitly.
pub(crate) fn is_of_objects(schema: &RawValue) -> bool {
    #[derive(Deserialize)]
    struct Root {
        r#type: Option<String>,
    }
    serde_json::from_str::<Root>(schema.get())
        .is_ok_and(|root| root.r#type.as_deref() == Some("object"))
}

fn check_size(schema: &Value) -> Result<(), String> {
    let mut objects = 0;
    let is_shallow = measure(schema, MAX_DEPTH, &mut objects);
    if !is_shallow {
        Err(format!("nested more than {MAX_DEPTH} levels deep"))
    } else if objects > MAX_OBJECTS {
        Err(format!("{objects} objects, more than {MAX_OBJECTS}"))
    } else if schema.to_string().len() > MAX_BYTES {
        Err(format!("more than {MAX_BYTES} bytes"))
    } else {
        Ok(())
    }
}

/// Counts objects, and returns whether `value` has at most `depth` levels.
fn measure(value: &Value, depth: usize, objects: &mut usize) -> bool {
    match value {
        Value::Object(members) => {
            *objects += 1;
            depth > 0
                && members
                    .values()
                    .all(|value| measure(value, depth - 1, objects))
        }
        Value::Array(elements) => {
            depth > 0
                && elements
                    .iter()
                    .all(|value| measure(value, depth - 1, objects))
        }
        _ => true,
    }
}

/// Formats a fault with its place in the value.
fn format_fault_at(error: &ValidationError<'_>) -> String {
    match error.instance_path().as_str().trim_start_matches('/') {
        "" => format_message(error),
        path => format!("`{}`: {}", excerpt(path, MAX_VALUE), format_message(error)),
    }
}

/// Formats a fault in arguments: callers know their members as options.
fn format_option_fault(error: &ValidationError<'_>) -> Vec<String> {
    let path = error.instance_path().as_str().trim_start_matches('/');
    let missing = |name: &str| {
        let name = format!("{path}/{name}");
        option(
            name.trim_start_matches('/'),
            "expected a value, got nothing",
        )
    };
    let unknown = |name: &String| {
        let name = format!("{path}/{name}");
        let fault = "expected a declared option, got an unknown name";
        option(name.trim_start_matches('/'), fault)
    };
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            vec![missing(property.as_str().unwrap_or_default())]
        }
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            unexpected.iter().take(MAX_TOLD).map(unknown).collect()
        }
        ValidationErrorKind::Type {
            kind: TypeKind::Single(kind),
        } => {
            let article = match kind {
                JsonType::Array | JsonType::Integer | JsonType::Object => "an",
                _ => "a",
            };
            let got = shorten(error.instance(), MAX_VALUE);
            vec![option(
                path,
                &format!("expected {article} {kind}, got {got}"),
            )]
        }
        _ => vec![option(path, &format_message(error))],
    }
}

fn option(path: &str, fault: &str) -> String {
    match path {
        "" => format!("arguments: {fault}"),
        path => format!("option `{}`: {fault}", excerpt(path, MAX_VALUE)),
    }
}

/// Formats a fault with a bounded part of the value.
fn format_message(error: &ValidationError<'_>) -> String {
    let value = shorten(error.instance(), MAX_VALUE);
    shorten(&error.masked_with(value), MAX_MESSAGE)
}

fn shorten(value: &impl fmt::Display, max: usize) -> String {
    // Longest size in bytes, so that no more of a large value is written than could be quoted.
    let mut text = Limited::new(4 * max + 4);
    // An error means that the value is longer, which `excerpt` marks as well.
    write!(text, "{value}").ok();
    excerpt(&text.text, max)
}

/// Buffer that accepts a limited number of bytes.
struct Limited {
    text: String,
    room: usize,
}

impl Limited {
    fn new(room: usize) -> Self {
        Self {
            text: String::new(),
            room,
        }
    }
}

impl fmt::Write for Limited {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let taken = &text[..text.floor_char_boundary(self.room)];
        self.text.push_str(taken);
        self.room -= taken.len();
        if taken.len() == text.len() {
            Ok(())
        } else {
            Err(fmt::Error)
        }
    }
}

#[cfg(test)]
mod tests;
