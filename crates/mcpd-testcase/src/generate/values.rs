//! Values of a schema: a plain one, and those at its boundaries or hostile to scripts. They fit
//! the types and bounds of the schema; what else a schema demands, a server checks.

use regex::Regex;
use serde_json::{Map, Number, Value, json};

/// Length of a long text whose schema has no maximum, in characters.
const LONG_TEXT: usize = 10_000;

/// Length of a long list whose schema has no maximum.
const LONG_LIST: usize = 1000;

/// Maximum number of values of one schema.
const MAX_VALUES: usize = 64;

/// Maximum depth of a generated value.
const MAX_DEPTH: usize = 6;

/// Texts that scripts often get wrong: words for a shell, for a command line, and of other
/// writing systems.
const HOSTILE_TEXTS: [&str; 26] = [
    " ",
    "-",
    "--help",
    "-rf",
    "a b",
    "'",
    "\"",
    "$(id)",
    "`id`",
    "; exit 3",
    "$HOME",
    "*",
    "\\",
    "%s%n",
    "line\nbreak",
    "\n",
    "tab\t",
    "é",
    "日本語",
    "🙂",
    "\u{202e}abc",
    "\u{0}",
    "../../etc/passwd",
    "null",
    "[]",
    "0",
];

/// Texts that patterns and formats often demand.
const WELL_FORMED_TEXTS: [&str; 14] = [
    "a",
    "A",
    "0",
    "1",
    "abc",
    "ABC",
    "123",
    "a1",
    "a-b",
    "2024-02-29",
    "23:59:59",
    "2024-02-29T23:59:59Z",
    "a@example.com",
    "https://example.com/",
];

/// Plain value of a schema, which a script expects most.
pub(super) fn plain_value(schema: &Value) -> Value {
    plain_value_within(schema, MAX_DEPTH)
}

/// Boundary and hostile values of a schema, the most revealing first, without duplicates.
pub(super) fn boundary_values(schema: &Value) -> Vec<Value> {
    boundary_values_within(schema, MAX_DEPTH)
}

fn plain_value_within(schema: &Value, depth: usize) -> Value {
    let example = || schema["examples"].get(0).or_else(|| schema["enum"].get(0));
    if let Some(value) = schema.get("const").or_else(|| schema.get("default")) {
        return value.clone();
    }
    if let Some(value) = example() {
        return value.clone();
    }
    if let Some(choice) = choices(schema).first() {
        return plain_value_within(choice, depth);
    }
    match types(schema)[..] {
        ["integer" | "number", ..] => clamp(schema, 1),
        ["boolean", ..] => json!(true),
        ["null", ..] => Value::Null,
        ["array", ..] if depth > 0 => {
            let item = plain_value_within(&schema["items"], depth - 1);
            let length = read_bound(schema, "minItems").unwrap_or(1);
            Value::Array(vec![item; length.min(LONG_LIST)])
        }
        ["array", ..] => json!([]),
        ["object", ..] => object(schema, false, depth),
        _ => plain_text(schema),
    }
}

fn plain_text(schema: &Value) -> Value {
    let texts = WELL_FORMED_TEXTS.into_iter().map(str::to_owned);
    let well_formed = texts.chain([repeat('a', text_bounds(schema).0)]);
    let pattern = pattern(schema);
    let fits = |text: &String| fits_text(schema, pattern.as_ref(), text);
    let text = well_formed.into_iter().find(fits);
    Value::from(text.unwrap_or_else(|| "abc".to_owned()))
}

fn boundary_values_within(schema: &Value, depth: usize) -> Vec<Value> {
    let mut values = Vec::new();
    for name in ["const", "default"] {
        values.extend(schema.get(name).cloned());
    }
    for name in ["enum", "examples"] {
        values.extend(schema[name].as_array().into_iter().flatten().cloned());
    }
    if schema.get("enum").is_none() && schema.get("const").is_none() {
        for choice in choices(schema) {
            values.extend(boundary_values_within(choice, depth));
        }
        for value_type in types(schema) {
            values.extend(values_of_type(value_type, schema, depth));
        }
    }
    let mut distinct: Vec<Value> = Vec::new();
    for value in values {
        if distinct.len() < MAX_VALUES && !distinct.contains(&value) {
            distinct.push(value);
        }
    }
    distinct
}

fn values_of_type(value_type: &str, schema: &Value, depth: usize) -> Vec<Value> {
    match value_type {
        "string" => texts(schema),
        "integer" => integers(schema),
        "number" => numbers(schema),
        "boolean" => vec![json!(true), json!(false)],
        "null" => vec![Value::Null],
        "array" if depth > 0 => lists(schema, depth - 1),
        "object" if depth > 0 => {
            let mut objects = vec![
                object(schema, false, depth - 1),
                object(schema, true, depth - 1),
            ];
            objects.extend(objects_with_boundaries(schema, depth - 1));
            objects
        }
        _ => Vec::new(),
    }
}

/// Types that a schema allows; of a schema that says nothing, one of each.
fn types(schema: &Value) -> Vec<&str> {
    match &schema["type"] {
        Value::String(only) => vec![only],
        Value::Array(types) => types.iter().filter_map(Value::as_str).collect(),
        _ if choices(schema).is_empty() => {
            vec!["string", "integer", "boolean", "array", "object", "null"]
        }
        _ => Vec::new(),
    }
}

fn choices(schema: &Value) -> Vec<&Value> {
    let lists = ["anyOf", "oneOf"].map(|key| schema[key].as_array());
    lists.into_iter().flatten().flatten().collect()
}

fn read_bound(schema: &Value, name: &str) -> Option<usize> {
    let bound = schema[name].as_u64()?;
    usize::try_from(bound).ok()
}

/// Smallest length of a text, and the largest one that is tried.
fn text_bounds(schema: &Value) -> (usize, usize) {
    let min = read_bound(schema, "minLength").unwrap_or(0);
    let max = read_bound(schema, "maxLength").unwrap_or(LONG_TEXT.max(min));
    (min.min(LONG_TEXT), max.min(LONG_TEXT))
}

fn pattern(schema: &Value) -> Option<Regex> {
    Regex::new(schema["pattern"].as_str()?).ok()
}

fn fits_text(schema: &Value, pattern: Option<&Regex>, text: &str) -> bool {
    let (min, max) = text_bounds(schema);
    (min..=max).contains(&text.chars().count())
        && pattern.is_none_or(|pattern| pattern.is_match(text))
}

fn repeat(char: char, count: usize) -> String {
    std::iter::repeat_n(char, count).collect()
}

fn texts(schema: &Value) -> Vec<Value> {
    let (min, max) = text_bounds(schema);
    let lengths = [min, max, min + 1, max.saturating_sub(1)];
    let bounds = lengths.map(|length| repeat('a', length));
    let wide = repeat('é', max);
    let hostile = HOSTILE_TEXTS.iter().chain(&WELL_FORMED_TEXTS);
    let hostile = hostile.map(|text| {
        // A short text becomes long enough without losing its sting.
        let missing = min.saturating_sub(text.chars().count());
        format!("{text}{}", repeat('a', missing))
    });
    let pattern = pattern(schema);
    let all = bounds.into_iter().chain(hostile).chain([wide]);
    all.filter(|text| fits_text(schema, pattern.as_ref(), text))
        .map(Value::from)
        .collect()
}

/// Returns whether a number is within the bounds of a schema.
fn fits_number(schema: &Value, number: f64) -> bool {
    let bound = |name: &str| schema[name].as_f64();
    let is_multiple = bound("multipleOf").is_none_or(|unit| number % unit == 0.0);
    is_multiple
        && bound("minimum").is_none_or(|min| number >= min)
        && bound("maximum").is_none_or(|max| number <= max)
        && bound("exclusiveMinimum").is_none_or(|min| number > min)
        && bound("exclusiveMaximum").is_none_or(|max| number < max)
}

fn integers(schema: &Value) -> Vec<Value> {
    let declared = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"];
    let declared = declared.iter().filter_map(|name| schema[*name].as_i64());
    let declared: Vec<_> = declared.collect();
    let near = |number: i64| [number, number.saturating_add(1), number.saturating_sub(1)];
    let unit = schema["multipleOf"].as_i64();
    let numbers = declared.into_iter().flat_map(near);
    let numbers = numbers.chain([0, 1, -1]).chain(unit).chain([
        2,
        10,
        255,
        256,
        i64::from(i32::MAX),
        i64::from(i32::MAX) + 1,
        i64::from(i32::MIN),
        1 << 53,
        i64::MAX,
        i64::MIN,
    ]);
    let fits = |number: &i64| fits_number(schema, *number as f64);
    numbers.filter(fits).map(Value::from).collect()
}

fn numbers(schema: &Value) -> Vec<Value> {
    let declared = ["minimum", "maximum"].iter();
    let declared = declared.filter_map(|name| schema[*name].as_f64());
    let numbers = declared.chain([0.0, 1.0, -1.0, 0.5, -0.5, 0.1, 1e-9, 1e15, -1e15, 1e300]);
    let numbers = numbers.filter(|number| fits_number(schema, *number));
    let numbers = numbers.filter_map(Number::from_f64).map(Value::Number);
    numbers.chain(integers(schema)).collect()
}

/// Integer near `wanted` within the bounds of a schema.
fn clamp(schema: &Value, wanted: i64) -> Value {
    let near = integers(schema);
    let exact = near.iter().find(|number| **number == wanted);
    exact.or(near.first()).cloned().unwrap_or(json!(wanted))
}

fn lists(schema: &Value, depth: usize) -> Vec<Value> {
    let min = read_bound(schema, "minItems").unwrap_or(0).min(LONG_LIST);
    let max = read_bound(schema, "maxItems").unwrap_or(LONG_LIST.max(min));
    let max = max.min(LONG_LIST);
    let plain = plain_value_within(&schema["items"], depth);
    let elements = boundary_values_within(&schema["items"], depth);
    let of_length = |length: usize| {
        let elements = elements.iter().cycle().take(length).cloned();
        let list: Vec<_> = elements.collect();
        Value::Array(list)
    };
    let same = |length: usize| Value::Array(vec![plain.clone(); length]);
    let mut lists: Vec<_> = [min, max, min + 1, max.saturating_sub(1)]
        .into_iter()
        .filter(|length| (min..=max).contains(length))
        .flat_map(|length| [same(length), of_length(length)])
        .collect();
    for element in elements {
        let mut list = vec![element];
        list.resize(min.max(1), plain.clone());
        if list.len() <= max {
            lists.push(Value::Array(list));
        }
    }
    lists
}

/// Object with its required properties, or with all.
fn object(schema: &Value, has_all: bool, depth: usize) -> Value {
    let required = schema["required"].as_array();
    let is_required =
        |name: &str| required.is_some_and(|names| names.iter().any(|one| one == name));
    let properties = schema["properties"].as_object().into_iter().flatten();
    let properties = properties
        .filter(|(name, _)| has_all || is_required(name))
        .map(|(name, schema)| {
            (
                name.clone(),
                plain_value_within(schema, depth.saturating_sub(1)),
            )
        });
    Value::Object(properties.collect())
}

fn objects_with_boundaries(schema: &Value, depth: usize) -> Vec<Value> {
    let Value::Object(base) = object(schema, false, depth) else {
        return Vec::new();
    };
    let properties = schema["properties"].as_object().into_iter().flatten();
    let objects = properties.flat_map(|(name, schema)| {
        let base = &base;
        let values = boundary_values_within(schema, depth).into_iter();
        values.map(move |value| {
            let mut object: Map<_, _> = base.clone();
            object.insert(name.clone(), value);
            Value::Object(object)
        })
    });
    objects.take(MAX_VALUES).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(schema: Value, first: &[Value]) {
        let values = boundary_values(&schema);
        assert_eq!(values[..first.len().min(values.len())], *first);
    }

    #[test]
    fn bounds_come_first() {
        check(
            json!({"type": "string", "minLength": 1, "maxLength": 3}),
            &[json!("a"), json!("aaa"), json!("aa")],
        );
        check(json!({"type": "string"}), &[json!("")]);
        check(
            json!({"type": "integer", "minimum": 3, "maximum": 5}),
            &[json!(3), json!(4), json!(5)],
        );
        check(
            json!({"type": "integer", "multipleOf": 7}),
            &[json!(0), json!(7)],
        );
        check(json!({"enum": ["x", "y"]}), &[json!("x"), json!("y")]);
        check(
            json!({"type": "array", "items": {"type": "boolean"}, "minItems": 1, "maxItems": 2}),
            &[json!([true]), json!([true, true]), json!([true, false])],
        );
        check(
            json!({"anyOf": [{"type": "null"}, {"type": "boolean"}]}),
            &[Value::Null, json!(true), json!(false)],
        );
    }

    #[test]
    fn text_matches_its_pattern() {
        let schema = json!({"type": "string", "pattern": "^[0-9]{4}-"});
        assert_eq!(plain_value(&schema), json!("2024-02-29"));
        let values = boundary_values(&schema);
        assert!(!values.is_empty());
        let fits = |value: &Value| value.as_str().is_some_and(|text| text.starts_with("2024-"));
        assert!(values.iter().all(fits), "{values:?}");
    }

    #[test]
    fn nested_schema_ends() {
        let mut schema = json!({"type": "string"});
        for _ in 0..20 {
            schema = json!({"type": "object", "properties": {"a": schema}, "required": ["a"]});
        }
        assert!(boundary_values(&schema).len() <= MAX_VALUES);
    }
}
