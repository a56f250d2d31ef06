//! Arguments as texts, as a command line or a form has them: `name=text`, made into JSON by the
//! types in the schema of a tool, and `name:=json`, taken as it is.
//!
//! ```
//! use mcpd_scriptspec::text_arguments::TextArguments;
//! use serde_json::json;
//!
//! let schema = json!({"properties": {
//!     "text": {"type": "string"},
//!     "times": {"type": "integer"},
//!     "to": {"type": "array", "items": {"type": "string"}},
//! }});
//! let words = ["text=1", "times=3", "to=ada"].map(str::to_owned);
//! let arguments = TextArguments::parse(&words)?;
//! assert_eq!(arguments.to_json(&schema)?.get(), r#"{"text":"1","times":3,"to":"ada"}"#);
//!
//! // A list is never guessed; this is what to write instead.
//! let lists: Vec<_> = arguments.lists(&schema).collect();
//! assert_eq!(lists, [("to", r#"to:=["ada"]"#.to_owned())]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use thiserror::Error;

/// Arguments by name.
#[derive(Debug)]
pub struct TextArguments<'a>(BTreeMap<&'a str, Given<'a>>);

/// Value of an argument.
#[derive(Debug)]
enum Given<'a> {
    Text(&'a str),
    Json(Box<RawValue>),
}

/// Fault of a word.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TextArgumentError {
    /// The word is no argument.
    #[error("read the argument `{0}`: expected NAME=TEXT or NAME:=JSON")]
    Syntax(String),
    /// The value behind `:=` is not JSON.
    #[error("read the argument `{0}` as JSON")]
    Json(String, #[source] serde_json::Error),
    /// Two words have the same name.
    #[error("read the arguments: `{0}` is given twice")]
    Twice(String),
}

impl<'a> TextArguments<'a> {
    /// Parses words of the form `name=text` or `name:=json`.
    ///
    /// # Errors
    ///
    /// A word has another form, or the name of an earlier one.
    pub fn parse(words: &'a [String]) -> Result<Self, TextArgumentError> {
        let mut arguments = BTreeMap::new();
        for word in words {
            let (name, given) = parse_word(word)?;
            if arguments.insert(name, given).is_some() {
                return Err(TextArgumentError::Twice(name.to_owned()));
            }
        }
        Ok(Self(arguments))
    }

    /// Returns the arguments as a JSON object, sorted by name. A text is a number or a boolean
    /// where the schema of the tool takes one and no text; digits stay as they are.
    ///
    /// # Errors
    ///
    /// None that is known: texts and JSON can be encoded.
    pub fn to_json(&self, schema: &Value) -> serde_json::Result<Box<RawValue>> {
        let properties = &schema["properties"];
        let mut object = BTreeMap::new();
        for (name, given) in &self.0 {
            let value = match given {
                Given::Json(value) => value.clone(),
                Given::Text(text) if is_wanted_as_json(text, &properties[*name]) => {
                    RawValue::from_string((*text).to_owned())?
                }
                Given::Text(text) => to_raw_value(text)?,
            };
            object.insert(name, value);
        }
        to_raw_value(&object)
    }

    /// Returns the arguments that are texts where the schema of the tool takes a list and no text,
    /// each with the word to write instead.
    pub fn lists(&self, schema: &Value) -> impl Iterator<Item = (&'a str, String)> {
        self.0.iter().filter_map(move |(&name, given)| {
            let schema = &schema["properties"][name];
            let Given::Text(text) = given else {
                return None;
            };
            let is_list = accepts_type(schema, "array") && !accepts_type(schema, "string");
            let list = list_of(text, &schema["items"]);
            let word = format!("{name}:={}", list.as_deref().unwrap_or("[…]"));
            is_list.then_some((name, word))
        })
    }
}

fn parse_word(word: &str) -> Result<(&str, Given<'_>), TextArgumentError> {
    let Some((name, text)) = word.split_once('=') else {
        return Err(TextArgumentError::Syntax(word.to_owned()));
    };
    Ok(match name.strip_suffix(':') {
        Some(name) => {
            let value = RawValue::from_string(text.to_owned());
            let value = value.map_err(|error| TextArgumentError::Json(name.to_owned(), error))?;
            (name, Given::Json(value))
        }
        None => (name, Given::Text(text)),
    })
}

/// The JSON list to write in place of `text`: `text` itself, or a list with it as its element;
/// none if `elements` rejects it.
fn list_of(text: &str, elements: &Value) -> Option<String> {
    match serde_json::from_str(text) {
        // The text is kept verbatim: a number may be too large to be parsed.
        Ok(Value::Array(list))
            if list
                .iter()
                .all(|element| has_allowed_type(element, elements)) =>
        {
            Some(text.to_owned())
        }
        Ok(element) if has_allowed_type(&element, elements) => Some(format!("[{text}]")),
        _ => {
            let element = Value::from(text);
            has_allowed_type(&element, elements).then(|| Value::from(vec![element]).to_string())
        }
    }
}

/// Returns whether `value` has a type that the schema allows.
fn has_allowed_type(value: &Value, schema: &Value) -> bool {
    let says_type = ["type", "anyOf", "oneOf"]
        .iter()
        .any(|key| schema.get(key).is_some());
    let value_type = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.as_f64().is_some_and(|number| number.fract() == 0.0) => {
            return !says_type || accepts_type(schema, "integer") || accepts_type(schema, "number");
        }
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    !says_type || accepts_type(schema, value_type)
}

/// Returns whether `text` is a number or boolean where the schema takes one and no text. With
/// spaces around it, it is text.
fn is_wanted_as_json(text: &str, schema: &Value) -> bool {
    if text.trim() != text {
        return false;
    }
    let is_wanted = match serde_json::from_str(text) {
        Ok(Value::Bool(_)) => accepts_type(schema, "boolean"),
        Ok(Value::Number(_)) => accepts_type(schema, "integer") || accepts_type(schema, "number"),
        _ => false,
    };
    is_wanted && !accepts_type(schema, "string")
}

/// Returns whether the schema accepts this type.
fn accepts_type(schema: &Value, value_type: &str) -> bool {
    match &schema["type"] {
        Value::String(only) => only == value_type,
        Value::Array(types) => types.iter().any(|one| one == value_type),
        _ => {
            let choices = ["anyOf", "oneOf"].map(|key| schema[key].as_array());
            let mut choices = choices.into_iter().flatten().flatten();
            choices.any(|choice| accepts_type(choice, value_type))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(arguments: &[&str], expected: &str) {
        check_with(&json!({}), arguments, expected);
    }

    /// `properties` are those of the tool's schema.
    #[track_caller]
    fn check_with(properties: &Value, arguments: &[&str], expected: &str) {
        let arguments: Vec<_> = arguments
            .iter()
            .map(|&argument| argument.to_owned())
            .collect();
        let schema = json!({"type": "object", "properties": properties});
        let read = match TextArguments::parse(&arguments) {
            Ok(arguments) => arguments.to_json(&schema).unwrap().get().to_owned(),
            Err(error) => {
                let source = error.source().map(|source| format!(": {source}"));
                format!("{error}{}", source.unwrap_or_default())
            }
        };
        assert_eq!(read, expected);
    }

    #[test]
    fn text_argument_is_converted_to_the_schema_type() {
        let properties = json!({
            "count": {"type": "integer"},
            "ratio": {"type": ["number", "null"]},
            "quiet": {"anyOf": [{"type": "boolean"}, {"type": "null"}]},
            "either": {"type": ["string", "integer"]},
            "list": {"type": "array"},
        });
        check_with(
            &properties,
            &[
                "count=3",
                "ratio=2.50",
                "quiet=true",
                "either=3",
                "list=[1]",
            ],
            r#"{"count":3,"either":"3","list":"[1]","quiet":true,"ratio":2.50}"#,
        );
        check_with(
            &properties,
            &["count=three", "quiet=yes", "ratio=true"],
            r#"{"count":"three","quiet":"yes","ratio":"true"}"#,
        );
        check_with(&properties, &["count= 3"], r#"{"count":" 3"}"#);
    }

    #[test]
    fn list_given_as_text_is_shown_as_json() {
        let schema = json!({"properties": {
            "list": {"type": "array"},
            "either": {"type": ["array", "string"]},
            "numbers": {"type": "array", "items": {"type": "integer"}},
            "texts": {"type": "array", "items": {"type": ["string", "null"]}},
        }});
        for (argument, expected) in [
            ("list=1", "list:=[1]"),
            ("list=[1]", "list:=[1]"),
            ("list=a", "list:=[\"a\"]"),
            (
                "numbers=98765432109876543210",
                "numbers:=[98765432109876543210]",
            ),
            (
                "numbers=[1, 98765432109876543210]",
                "numbers:=[1, 98765432109876543210]",
            ),
            ("numbers=1,2", "numbers:=[…]"),
            ("numbers=[1", "numbers:=[…]"),
            ("numbers=[1.5]", "numbers:=[…]"),
            ("texts=1", "texts:=[\"1\"]"),
            ("list:=1", ""),
            ("either=1", ""),
            ("other=1", ""),
        ] {
            let arguments = [argument.to_owned()];
            let arguments = TextArguments::parse(&arguments).unwrap();
            let lists: Vec<_> = arguments.lists(&schema).map(|(_, word)| word).collect();
            assert_eq!(lists.join(" "), expected, "{argument}");
        }
    }

    #[test]
    fn argument_syntax_distinguishes_text_and_json() {
        check(
            &["a=1", "b:=1.50", "c=", "d:=[\"x\"]"],
            r#"{"a":"1","b":1.50,"c":"","d":["x"]}"#,
        );
        check(&["a=b=c", "d:=\"e=f\""], r#"{"a":"b=c","d":"e=f"}"#);
    }

    #[test]
    fn argument_without_a_name_or_twice_is_refused() {
        check(
            &["World"],
            "read the argument `World`: expected NAME=TEXT or NAME:=JSON",
        );
        check(&["a=1", "a=2"], "read the arguments: `a` is given twice");
        check(
            &["a:=x"],
            "read the argument `a` as JSON: expected value at line 1 column 1",
        );
    }
}
