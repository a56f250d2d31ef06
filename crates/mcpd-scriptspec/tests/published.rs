//! Published descriptions of dialects: the JSON Schema of sidecars, and the
//! examples of the documentation.

#![expect(clippy::unwrap_used, reason = "a panic is how a test reports")]

use std::{
    fs,
    path::{Path, PathBuf},
};

use mcpd_scriptspec::{Diagnostic, Dialect, Severity};
use serde_json::Value;

#[path = "corpus/case.rs"]
mod case;

use case::{Case, children};

/// A sidecar as an editor reads it; `None` if it has numbers that no `Value` holds.
fn sidecar(name: &str, text: &str) -> Option<Value> {
    let text = text.trim_start_matches('\u{feff}');
    if name.ends_with(".json") {
        serde_json::from_str(text).ok()
    } else {
        toml::from_str(text).ok()
    }
}

#[track_caller]
fn published_schema() -> jsonschema::Validator {
    let schema = repository().join("docs/schemas/sidecar.schema.json");
    let schema = serde_json::from_str(&fs::read_to_string(schema).unwrap()).unwrap();
    jsonschema::draft202012::meta::validate(&schema).unwrap();
    jsonschema::draft202012::new(&schema).unwrap()
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn valid_sidecar_fits_the_published_schema() {
    let schema = published_schema();
    let (mut good, mut bad) = (0, 0);
    for path in children(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dialects/sidecar")) {
        if path
            .extension()
            .is_some_and(|extension| extension == "snap")
        {
            continue;
        }
        let case = Case::read(&fs::read_to_string(&path).unwrap());
        let (name, source) = &case.file;
        let described = Dialect::Sidecar.read(name, source);
        let faults = &described[0].parsed.diagnostics;
        let is_strange =
            |fault: &Diagnostic| ["unknown-field", "null-field"].contains(&fault.code.as_str());
        let is_good = described[0].parsed.spec.is_some() && !faults.iter().any(is_strange);
        let text = String::from_utf8_lossy(source);
        let Some(value) = sidecar(name, &text) else {
            continue;
        };
        if is_good {
            good += 1;
            schema
                .validate(&value)
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        } else if !schema.is_valid(&value) {
            bad += 1;
        }
    }
    assert!(
        good >= 10 && bad >= 5,
        "{good} sidecars fit, {bad} do not: too few to tell"
    );
}

/// Examples of a page: fenced blocks with the name of a file behind the name of the language.
fn examples(page: &str) -> Vec<(&str, String)> {
    let mut examples = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let info = line.trim_start_matches('`');
        let fence = &line[..line.len() - info.len()];
        if fence.len() < 3 {
            continue;
        }
        let text: Vec<_> = lines.by_ref().take_while(|line| *line != fence).collect();
        if let Some((_, name)) = info.split_once(' ') {
            examples.push((name, text.join("\n") + "\n"));
        }
    }
    examples
}

#[test]
fn documentation_examples_have_no_faults() {
    let page = fs::read_to_string(repository().join("docs/dialects.md")).unwrap();
    let examples = examples(&page);
    assert!(
        examples.len() >= 4,
        "only {} examples were found",
        examples.len()
    );
    let schema = published_schema();
    for (name, text) in examples {
        let dialect = Dialect::of(name, text.as_bytes()).unwrap_or_else(|| panic!("{name}"));
        for described in dialect.read(name, text.as_bytes()) {
            // A scriptlet has no place to describe its conditions.
            let mut faults = described.parsed.diagnostics;
            faults.retain(|fault| fault.severity > Severity::Info);
            assert_eq!(faults, [], "{name}");
        }
        if dialect == Dialect::Sidecar {
            schema.validate(&sidecar(name, &text).unwrap()).unwrap();
        }
    }
}
