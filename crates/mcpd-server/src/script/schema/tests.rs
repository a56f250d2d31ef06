//! Accepted schemas, and faults of values.

use serde_json::json;

use super::*;
use crate::message::raw::raw;

#[track_caller]
fn check_unusable(schema: &Value, reason: &str) {
    let refused = Schema::compile(schema).expect_err("the schema can't be used");
    assert!(refused.contains(reason), "{refused}");
}

#[track_caller]
fn check(schema: &Value, value: &Value, faults: &[&str]) {
    let schema = Schema::compile(schema).expect("the schema is one");
    let told = schema.check(value).err().unwrap_or_default();
    assert_eq!(told.lines().collect::<Vec<_>>(), faults);
}

#[test]
fn reference_never_leaves_the_schema() {
    for elsewhere in [
        "http://127.0.0.1:9/schema.json",
        "https://example.com/schema.json",
        "file:///etc/passwd",
        "other.json",
        "#/$defs/missing",
    ] {
        check_unusable(
            &json!({"type": "object", "properties": {"a": {"$ref": elsewhere}}}),
            "",
        );
    }
    let inside = json!({"$ref": "#/$defs/word", "$defs": {"word": {"type": "string"}}});
    check(&inside, &json!("a"), &[]);
    check(&inside, &json!(1), &[r#"1 is not of type "string""#]);
}

#[test]
fn circular_references_end() {
    let circle = json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}});
    if let Ok(schema) = Schema::compile(&circle) {
        schema.check(&json!(1)).ok();
    }
    let tree = json!({"type": "object", "properties": {"next": {"$ref": "#"}}, "additionalProperties": false});
    check(&tree, &json!({"next": {"next": {"next": {}}}}), &[]);
    check(
        &tree,
        &json!({"next": {"next": 1}}),
        &[r#"`next/next`: 1 is not of type "object""#],
    );
}

#[test]
fn invalid_schema_is_rejected() {
    check_unusable(&json!({"type": "text"}), "");
    check_unusable(&json!({"minimum": "one"}), "");
    check_unusable(&json!({"$schema": "https://example.com/my-dialect"}), "");
}

#[test]
fn dialect_follows_the_schema() {
    let draft7 = json!({"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}]});
    check(&draft7, &json!([1]), &[r#"`0`: 1 is not of type "string""#]);
}

#[test]
fn format_is_an_annotation_only() {
    let date = json!({"type": "string", "format": "date"});
    check(&date, &json!("tomorrow"), &[]);
}

#[test]
fn pattern_is_matched_in_linear_time() {
    check_unusable(&json!({"pattern": "(a)\\1"}), "");
    check_unusable(&json!({"pattern": "(?=a)"}), "");
    let explosive = Schema::compile(&json!({"pattern": "^(a+)+$"})).unwrap();
    let told = explosive
        .check(&json!("a".repeat(100_000) + "b"))
        .unwrap_err();
    assert!(told.ends_with(r#"aaa… does not match "^(a+)+$""#), "{told}");
}

#[test]
fn schema_size_is_bounded() {
    let deep = (0..MAX_DEPTH).fold(json!({}), |schema, _| json!({"not": schema}));
    check_unusable(&deep, "nested more than");
    let wide: Vec<_> = (0..=MAX_OBJECTS).map(|_| json!({})).collect();
    check_unusable(&json!({"anyOf": wide}), "objects, more than");
    check_unusable(&json!({"description": "a".repeat(MAX_BYTES)}), "bytes");
    check_unusable(&json!({"pattern": "(a{1000}){1000}"}), "a{1000}");
}

#[test]
fn faults_are_few_and_short() {
    let schema = Schema::compile(&json!({"items": {"type": "integer"}})).unwrap();
    let told = schema
        .check(&json!(vec!["a".repeat(1 << 14); 100]))
        .unwrap_err();
    assert_eq!(told.lines().count(), MAX_TOLD);
    assert!(told.len() < MAX_TOLD * 200, "{}", told.len());
}

#[test]
fn absent_arguments_are_an_empty_object() {
    let schema = Schema::compile(&json!({"type": "object", "required": ["a"]})).unwrap();
    let null = RawValue::from_string("null".to_owned()).unwrap();
    for arguments in [None, Some(&*null)] {
        let told = schema.check_arguments(arguments).unwrap_err();
        assert_eq!(told, "option `a`: expected a value, got nothing");
    }
}

#[test]
fn faults_in_arguments_read_like_those_of_options() {
    let inner = json!({"type": "object", "required": ["b"], "additionalProperties": false});
    let schema = json!({"properties": {"a": inner, "n": {"minimum": 1}}, "minProperties": 1, "additionalProperties": false});
    let schema = Schema::compile(&schema).unwrap();
    let check = |arguments: Value, faults: &[&str]| {
        let told = schema.check_arguments(Some(&raw(&arguments))).unwrap_err();
        assert_eq!(told.lines().collect::<Vec<_>>(), faults);
    };
    check(
        json!({"a": {}}),
        &["option `a/b`: expected a value, got nothing"],
    );
    check(
        json!({"a": [1]}),
        &["option `a`: expected an object, got [1]"],
    );
    check(
        json!({"x": 1, "y": 2}),
        &[
            "option `x`: expected a declared option, got an unknown name",
            "option `y`: expected a declared option, got an unknown name",
        ],
    );
    check(
        json!({"n": 0}),
        &["option `n`: 0 is less than the minimum of 1"],
    );
    check(json!({}), &["arguments: {} has less than 1 property"]);
}

/// Builds a chain of schemas, each made by `link` from a reference to the next.
fn chain(links: usize, link: impl Fn(Value) -> Value, last: Value) -> Value {
    let definitions = (0..links).map(|number| {
        let next = json!({"$ref": format!("#/$defs/{}", number + 1)});
        (number.to_string(), link(next))
    });
    let last = [(links.to_string(), last)];
    let definitions: serde_json::Map<_, _> = definitions.chain(last).collect();
    json!({"$defs": definitions, "$ref": "#/$defs/0"})
}

fn nest(depth: usize, innermost: Value) -> Value {
    (0..depth).fold(innermost, |value, _| json!([value]))
}

#[test]
fn references_that_multiply_a_schema_are_rejected() {
    let twice = |next: Value| json!({"allOf": [next, next]});
    check_unusable(&chain(30, twice, json!({})), "more than 10000 schemas");
    check(&chain(8, twice, json!({"type": "array"})), &json!([]), &[]);
}

#[test]
fn validation_steps_are_bounded() {
    let tree = json!({"anyOf": [
        {"type": "array", "items": {"$ref": "#"}, "minItems": 0},
        {"type": "array", "items": {"$ref": "#"}, "maxItems": 99},
    ]});
    check(&tree, &nest(8, json!([])), &[]);
    check(&tree, &nest(100, json!(1)), &[TOO_MUCH]);
    let wide = json!({"items": {"allOf": vec![json!({"minLength": 1}); 100]}});
    check(&wide, &json!(vec!["a"; 1000]), &[]);
    check(&wide, &json!(vec!["a"; 10_000]), &[TOO_MUCH]);
    let twice = json!({"items": {"anyOf": [{"type": "string"}, {"type": "integer"}]}});
    check(&twice, &json!(vec![1; 300_000]), &[]);
}

#[test]
fn validation_depth_is_bounded() {
    let same = |next: Value| next;
    let again = json!({"items": {"$ref": "#"}});
    check(&chain(5, same, again.clone()), &nest(60, json!([])), &[]);
    check(&chain(100, same, again), &nest(120, json!([])), &[TOO_MUCH]);
}

#[test]
fn references_are_followed_everywhere() {
    let twice = |name: &str| json!({"allOf": [{"$ref": name}, {"$ref": name}]});
    let named: serde_json::Map<_, _> = (0..20)
        .map(|number: usize| {
            let mut schema = twice(&format!("#a{}", number + 1));
            schema["$anchor"] = json!(format!("a{number}"));
            (number.to_string(), schema)
        })
        .chain([("last".to_owned(), json!({"$anchor": "a20"}))])
        .collect();
    check_unusable(
        &json!({"$id": "https://example.com/tool", "$ref": "#a0", "$defs": named}),
        "more than 10000 schemas",
    );
    let metaschema = json!({"$ref": "https://json-schema.org/draft/2020-12/schema"});
    check(
        &metaschema,
        &json!({"properties": {"a": {"type": "string"}}}),
        &[],
    );
}
