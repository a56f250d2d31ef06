//! Generator of hostile and boundary arguments from the schema of a tool. The same schema and
//! seed give the same arguments on every machine.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use self::random::Random;
use self::values::{boundary_values, plain_value};

mod random;
mod shrink;
mod values;

pub(crate) use self::shrink::smaller_arguments;

/// Number of known arguments in a row after which there seem to be no others.
const MAX_ATTEMPTS: usize = 200;

/// Generator for one tool: first each option alone takes each of its boundary values, while the
/// others are plain or absent; then all options take random ones.
pub(crate) struct Generator {
    options: Vec<Property>,
    random: Random,
    planned: std::vec::IntoIter<Map<String, Value>>,
    /// Arguments that were returned, as JSON.
    made: BTreeSet<String>,
}

/// Option of a tool, with its values.
struct Property {
    name: String,
    is_required: bool,
    plain: Value,
    boundary: Vec<Value>,
}

impl Generator {
    /// Makes a generator for the input schema of the tool with this name.
    pub(crate) fn new(tool: &str, schema: &Value, seed: u64) -> Self {
        let required = schema["required"].as_array();
        let is_required =
            |name: &str| required.is_some_and(|names| names.iter().any(|one| one == name));
        let properties = schema["properties"].as_object().into_iter().flatten();
        let options: Vec<_> = properties
            .map(|(name, schema)| Property {
                is_required: is_required(name),
                name: name.clone(),
                plain: plain_value(schema),
                boundary: boundary_values(schema),
            })
            .collect();
        Self {
            planned: plan(&options).into_iter(),
            made: BTreeSet::new(),
            options,
            // Tools differ, and the order in which they are tested makes no difference.
            random: Random::new(seed, tool),
        }
    }

    fn random_arguments(&mut self) -> Map<String, Value> {
        let mut arguments = Map::new();
        for option in &self.options {
            if !option.is_required && self.random.below(2) == 0 {
                continue;
            }
            let index = self.random.below(option.boundary.len() + 1);
            let value = option.boundary.get(index).unwrap_or(&option.plain);
            arguments.insert(option.name.clone(), value.clone());
        }
        arguments
    }
}

impl Iterator for Generator {
    type Item = Map<String, Value>;

    /// Returns arguments that it has not returned before; none if it finds no more.
    fn next(&mut self) -> Option<Self::Item> {
        for _ in 0..MAX_ATTEMPTS {
            let planned = self.planned.next();
            let arguments = planned.unwrap_or_else(|| self.random_arguments());
            if self
                .made
                .insert(Value::Object(arguments.clone()).to_string())
            {
                return Some(arguments);
            }
        }
        None
    }
}

/// Arguments in which at most one option is not plain, ordered so that every option has its turn
/// early.
fn plan(options: &[Property]) -> Vec<Map<String, Value>> {
    let required: Map<_, _> = options
        .iter()
        .filter(|option| option.is_required)
        .map(|option| (option.name.clone(), option.plain.clone()))
        .collect();
    let most = options.iter().map(|option| option.boundary.len()).max();
    let mut planned = vec![required.clone()];
    for index in 0..most.unwrap_or_default() {
        for option in options {
            if let Some(value) = option.boundary.get(index) {
                let mut arguments = required.clone();
                arguments.insert(option.name.clone(), value.clone());
                planned.push(arguments);
            }
        }
    }
    planned
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "text": {"type": "string", "minLength": 2, "maxLength": 5},
                "count": {"type": "integer", "minimum": 1, "maximum": 9},
                "list": {"type": "array", "items": {"type": "integer"}, "maxItems": 3},
                "mode": {"enum": ["a", "b"]},
            },
            "required": ["text"],
            "additionalProperties": false,
        })
    }

    #[test]
    fn generated_arguments_fit_the_schema() {
        for arguments in Generator::new("x", &schema(), 0).take(500) {
            let text = arguments["text"].as_str().unwrap();
            assert!((2..=5).contains(&text.chars().count()), "{text:?}");
            if let Some(count) = arguments.get("count") {
                assert!((1..=9).contains(&count.as_i64().unwrap()), "{count}");
            }
            if let Some(list) = arguments.get("list") {
                assert!(list.as_array().unwrap().len() <= 3, "{list}");
            }
        }
    }

    #[test]
    fn bounds_of_each_option_come_early() {
        let all: Vec<_> = Generator::new("x", &schema(), 0).take(40).collect();
        for (name, value) in [
            ("text", json!("aa")),
            ("text", json!("aaaaa")),
            ("count", json!(1)),
            ("count", json!(9)),
            ("list", json!([])),
            ("mode", json!("b")),
        ] {
            let is_there = all
                .iter()
                .any(|arguments| arguments.get(name) == Some(&value));
            assert!(is_there, "{name} = {value}: {all:?}");
        }
    }

    #[test]
    fn seed_decides_everything() {
        let take = |tool: &str, seed| -> Vec<_> {
            Generator::new(tool, &schema(), seed)
                .skip(80)
                .take(20)
                .collect()
        };
        assert_eq!(take("x", 1), take("x", 1));
        assert_ne!(take("x", 1), take("x", 2));
        assert_ne!(take("x", 1), take("y", 1));
    }

    #[test]
    fn tool_without_options_is_called_once() {
        assert_eq!(
            Generator::new("x", &json!({"type": "object"}), 0).count(),
            1
        );
    }
}
