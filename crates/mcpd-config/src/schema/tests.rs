//! Agreement of the schema, the published file, the program and the pages.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use jsonschema::Validator;
use serde_json::{Map, Value};

use super::schema;
use crate::tables::Tables;

mod reference;

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// Pages by name.
fn pages() -> BTreeMap<String, String> {
    let pages = fs::read_dir(docs()).unwrap().map(|entry| entry.unwrap());
    let is_page = |name: &String| name.ends_with(".md");
    pages
        .map(|entry| (entry.path(), entry.file_name().into_string().unwrap()))
        .filter(|(_, name)| is_page(name))
        .map(|(path, name)| (name, fs::read_to_string(path).unwrap()))
        .collect()
}

fn validator() -> Validator {
    jsonschema::validator_for(&schema()).unwrap()
}

/// Checks that the schema and the program judge a text alike.
#[track_caller]
fn check(text: &str, is_valid: bool) {
    let value: Value = toml::from_str(text).unwrap();
    assert_eq!(validator().is_valid(&value), is_valid, "the schema: {text}");
    let read = toml::from_str::<Tables>(text);
    assert_eq!(read.is_ok(), is_valid, "mcpd: {text}");
}

#[test]
fn published_schema_matches_the_types() {
    let file = docs().join("schemas/mcpd.schema.json");
    let made = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&file, &made).unwrap();
    }
    assert!(
        fs::read_to_string(&file).is_ok_and(|published| published == made),
        "docs/schemas/mcpd.schema.json is old: set UPDATE_DOCS=1 and test again"
    );
}

#[test]
fn schema_and_program_agree() {
    check("", true);
    check("[sandbox.x]\nmemory = \"64 MiB\"\ncpu = 0.5\n", true);
    check("[sandbox.x]\nmemory = 67108864\n", true);
    check("[sandbox.x]\nmemory = \"64 MB\"\n", false);
    check("[sandbox.x]\ncpu = 0\n", false);
    check("[sandbox.x]\nlevel = \"tight\"\n", false);
    check("[sandboxes.x]\n", false);
    check("[[tool]]\nsandbox = \"strict\"\n", false);
    check("[[tool]]\nmatch = \"*\"\nconcurrency = 0\n", false);
    check("max_message = \"1 KiB\"\n", true);
    check("max_message = 0\n", false);
    check("max_message = \"0 MiB\"\n", false);
    check("allow_hosts = [\"tools.example\"]\n", true);
    check("allow_hosts = [\"tools.example:80\"]\n", false);
    check("allow_origins = [\"https://app.example\"]\n", true);
    check("allow_origins = [\"app.example\"]\n", false);
    let secret = |value: &str| format!("[[tool]]\nmatch = \"*\"\nenv = {{ A = {value} }}\n");
    check(&secret("\"text\""), true);
    check(&secret("{ pass = true }"), true);
    check(&secret("{ pass = false }"), false);
    check(&secret("{ file = \"a\", pass = true }"), false);
    check(&secret("{ command = [] }"), false);
}

/// Tables by name, each with the schemas of its keys: `tool` is `[[tool]]`, `sandbox` is
/// `[sandbox.NAME]`, and the keys above all tables have the empty name.
fn tables(schema: &Value) -> BTreeMap<String, Map<String, Value>> {
    let mut tables = BTreeMap::new();
    let mut settings = Map::new();
    for (name, value) in schema["properties"].as_object().unwrap() {
        let value = &value["items"]
            .as_object()
            .or(value["additionalProperties"].as_object())
            .map_or_else(|| value.clone(), |inner| Value::Object(inner.clone()));
        let table = match value["$ref"].as_str() {
            Some(reference) => schema.pointer(&reference[1..]).unwrap(),
            None => value,
        };
        if let Some(keys) = table["properties"].as_object() {
            tables.insert(name.clone(), keys.clone());
        } else if !name.eq("interpreter") {
            settings.insert(name.clone(), table.clone());
        }
    }
    tables.insert(String::new(), settings);
    tables
}

#[test]
fn every_key_is_described() {
    let schema = schema();
    let mut described = tables(&schema);
    described.insert(
        String::new(),
        schema["properties"].as_object().unwrap().clone(),
    );
    for (table, keys) in described {
        for (key, value) in keys {
            let description = value["description"].as_str().unwrap_or_default();
            assert!(description.ends_with('.'), "[{table}] {key}: {value}");
        }
    }
}

/// First column of the table that follows.
fn keys_of_table(text: &str) -> BTreeSet<String> {
    let rows = text.lines().skip_while(|line| !line.starts_with('|'));
    let rows = rows.take_while(|line| line.starts_with('|')).skip(2);
    let first = |row: &str| row.split('`').nth(1).unwrap_or(row).to_owned();
    rows.map(first).collect()
}

/// A page that explains `[[tool]]` key by key has the mark `<!-- keys: tool -->` before its table.
/// The reference has all tables, so not every one needs a second explanation.
#[test]
fn pages_list_the_keys_of_every_table() {
    const MARK: &str = "\n<!-- keys:";
    let schema = schema();
    let known = tables(&schema);
    let mut marked = BTreeSet::new();
    for (page, text) in pages() {
        for part in text.split(MARK).skip(1) {
            let (table, rest) = part.split_once("-->").expect(&page);
            let table = table.trim();
            let keys: BTreeSet<_> = known[table].keys().cloned().collect();
            assert_eq!(keys_of_table(rest), keys, "`{table}` in {page}");
            assert!(
                marked.insert(table.to_owned()),
                "{page} has `{table}` again"
            );
        }
    }
    assert!(marked.len() > 5, "only {marked:?} were found");
}

#[test]
fn page_examples_are_valid() {
    let validator = validator();
    let mut examples = 0;
    // That page is about the configurations of other programs.
    for (page, text) in pages().into_iter().filter(|(page, _)| page != "clients.md") {
        for part in text.split("```toml\n").skip(1) {
            let example = part.split("```").next().unwrap();
            let value: Value = toml::from_str(example).expect(&page);
            let faults: Vec<_> = validator
                .iter_errors(&value)
                .map(|fault| fault.to_string())
                .collect();
            assert!(faults.is_empty(), "{page}: {faults:?}\n{example}");
            examples += 1;
        }
    }
    assert!(examples > 5, "only {examples} examples were found");
}
