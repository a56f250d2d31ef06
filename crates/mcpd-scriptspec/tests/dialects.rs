//! Dialect snapshots: every case under `dialects/` shows a file that describes
//! itself beside its result.
//!
//! A case is a sentence, then a section `-- file NAME --` and perhaps `-- arguments --` with one
//! call of its first tool a line. In a section `-- file NAME escaped --`, `\xHH` is a byte and
//! `<<1000*text>>` is a repetition.

#![expect(clippy::unwrap_used, reason = "a panic is how a test reports")]

use std::{collections::BTreeSet, fmt::Write as _, fs, path::Path};

use mcpd_scriptspec::dialect::{Body, Condition, DescribedTool};
use mcpd_scriptspec::rules::RULES;
use mcpd_scriptspec::{Diagnostic, Dialect, Severity, Stream};
use serde_json::value::RawValue;

#[path = "corpus"]
mod corpus {
    //! Reader of cases and renderer of results.
    pub(crate) mod case;
    pub(crate) mod render;
}

use corpus::{
    case::{Case, children},
    render,
};

/// Minimum number of cases of each dialect.
const MIN_CASES: usize = 25;

#[track_caller]
fn check(path: &Path) -> Vec<Diagnostic> {
    let text = fs::read_to_string(path).unwrap();
    let case = Case::read(&text);
    let (name, source) = &case.file;
    let dialect = Dialect::of(name, source);
    let described = dialect.map(|dialect| dialect.read(name, source));

    let mut shown = format!("{}\n\n-- dialect: {dialect:?} --\n", text.trim_end());
    for described in described.iter().flatten() {
        shown += &tool(described, source);
    }
    let first = described.iter().flatten().next();
    if let Some(spec) = first.and_then(|first| first.parsed.spec.as_ref()) {
        for call in &case.calls {
            let arguments = RawValue::from_string(call.to_owned()).unwrap();
            shown += &render::call(call, &spec.invocation(Some(&arguments)));
        }
    }
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(path.parent().unwrap());
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(path.file_stem().unwrap().to_str().unwrap(), shown));
    let described = described.into_iter().flatten();
    described
        .flat_map(|described| described.parsed.diagnostics)
        .collect()
}

/// Renders one tool of a file, and checks its schema with an independent validator.
#[track_caller]
fn tool(described: &DescribedTool, source: &[u8]) -> String {
    let path = described.path.as_deref().unwrap_or("as the file");
    let mut shown = format!("\n-- tool: {path} --\n");
    for diagnostic in &described.parsed.diagnostics {
        assert_eq!(
            diagnostic.location.stream,
            Stream::Source,
            "{}",
            diagnostic.code
        );
        shown += &render::diagnostic(diagnostic, source);
    }
    let has_errors = described
        .parsed
        .diagnostics
        .iter()
        .any(|found| found.severity == Severity::Error);
    let is_served = !has_errors && described.body != Body::None;
    assert_eq!(described.parsed.spec.is_some(), is_served);
    if let Body::Code {
        extension,
        variants,
        ..
    } = &described.body
    {
        for variant in variants {
            let sign = |condition: &Condition| if condition.is_set { "" } else { "no " };
            let conditions = variant.conditions.iter();
            let under: Vec<_> = conditions
                .map(|condition| format!("{}{}", sign(condition), condition.option))
                .collect();
            let under = if under.is_empty() {
                String::new()
            } else {
                format!(" for {}", under.join(", "))
            };
            writeln!(
                shown,
                "code of .{extension}{under}:\n{}",
                variant.text.trim_end()
            )
            .unwrap();
        }
    }
    if let Some(spec) = &described.parsed.spec {
        shown += &render::metadata(spec);
        let schema = spec.input_schema();
        jsonschema::draft202012::meta::validate(&schema).unwrap();
        for option in &spec.options {
            let property = &schema["properties"][&option.name];
            let validator = jsonschema::draft202012::new(property).unwrap();
            let examples = property["examples"].as_array().into_iter().flatten();
            for value in property.get("default").into_iter().chain(examples) {
                assert!(validator.is_valid(value), "{value} for `{}`", option.name);
            }
        }
        writeln!(shown, "{}", render::schema(&schema)).unwrap();
    }
    shown
}

#[test]
fn dialects_match_their_snapshots() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dialects");
    let mut found = BTreeSet::new();
    for topic in children(&root) {
        let mut cases = children(&topic);
        cases.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
        assert!(
            cases.len() >= MIN_CASES,
            "only {} cases in {}",
            cases.len(),
            topic.display()
        );
        found.extend(
            cases
                .iter()
                .flat_map(|path| check(path))
                .map(|found| found.code),
        );
    }
    let of_dialects = |code: &str| code.starts_with("source-");
    let missing: Vec<_> = RULES
        .iter()
        .filter(|rule| rule.dialect.is_some() || of_dialects(rule.code.as_str()))
        .filter(|rule| !found.contains(&rule.code))
        .map(|rule| rule.code.as_str())
        .collect();
    assert_eq!(missing, [""; 0], "rules that no case breaks");
}
