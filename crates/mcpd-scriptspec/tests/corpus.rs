//! Translation snapshots: every case under `corpus/` shows a script's output beside its result.
//!
//! A case is a sentence, then sections `-- stdout --`, `-- stderr --` and `-- arguments --`
//! with one call a line. In a section `-- stdout escaped --`, `\xHH` is a byte and
//! `<<1000*text>>` is a repetition.

#![expect(clippy::unwrap_used, reason = "a panic is how a test reports")]

use std::{collections::BTreeSet, fmt::Write as _, fs, path::Path};

use mcpd_scriptspec::rules::RULES;
use mcpd_scriptspec::{Diagnostic, HelpOutput, Parsed, ScriptSpec, Severity, Stream, parse};
use serde_json::{Value, value::RawValue};

mod corpus {
    //! Reader of cases and renderer of results.
    pub(crate) mod case;
    pub(crate) mod render;
}

use corpus::{
    case::{Case, children},
    render,
};

#[track_caller]
fn check(path: &Path) -> Vec<Diagnostic> {
    let text = fs::read_to_string(path).unwrap();
    let case = Case::read(&text);
    let help = HelpOutput {
        stdout: &case.stdout,
        stderr: &case.stderr,
    };
    let Parsed {
        spec, diagnostics, ..
    } = parse(help);
    let failed = diagnostics
        .iter()
        .any(|diagnostic| diagnostic.severity == Severity::Error);
    assert_eq!(
        spec.is_none(),
        failed,
        "a spec is absent exactly when a diagnostic is an error"
    );

    let mut shown = format!("{}\n\n-- diagnostics --\n", text.trim_end());
    for diagnostic in &diagnostics {
        let stream = match diagnostic.location.stream {
            Stream::Stdout => &case.stdout,
            Stream::Stderr => &case.stderr,
            Stream::Source => panic!("{} is not about a file", diagnostic.code),
        };
        shown += &render::diagnostic(diagnostic, stream);
    }
    if let Some(spec) = &spec {
        shown += &render::metadata(spec);
        let schema = spec.input_schema();
        check_schema(spec, &schema);
        write!(shown, "\n-- schema --\n{}\n", render::schema(&schema)).unwrap();
        if !case.calls.is_empty() {
            shown += "\n-- calls --\n";
        }
        for call in &case.calls {
            shown += &check_call(spec, &schema, call);
        }
    } else {
        assert!(case.calls.is_empty(), "a faulty script cannot be called");
    }
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(path.parent().unwrap());
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(path.file_stem().unwrap().to_str().unwrap(), shown));
    diagnostics
}

/// Checks the schema with an independent validator: it is valid 2020-12, and each default is valid
/// under its own property.
#[track_caller]
fn check_schema(spec: &ScriptSpec, schema: &Value) {
    jsonschema::draft202012::meta::validate(schema).unwrap_or_else(|error| panic!("{error}"));
    for option in &spec.options {
        let property = &schema["properties"][&option.name];
        if let Some(default) = property.get("default") {
            let validator = jsonschema::draft202012::new(property).unwrap();
            assert!(
                validator.is_valid(default),
                "the default of `{}`",
                option.name
            );
        }
    }
}

/// Checks that the input of the script is valid under the published schema.
#[track_caller]
fn check_call(spec: &ScriptSpec, schema: &Value, call: &str) -> String {
    let arguments = RawValue::from_string(call.to_owned()).unwrap();
    let outcome = spec.invocation(Some(&arguments));
    // The validator cannot read numbers beyond a double, which this crate accepts. A schema of the
    // script's own is for the server to check.
    if spec.declared_schema.is_none()
        && let Ok(invocation) = &outcome
        && let Ok(stdin) = serde_json::from_slice::<Value>(&invocation.stdin)
    {
        assert!(
            jsonschema::draft202012::new(schema)
                .unwrap()
                .is_valid(&stdin),
            "{call}"
        );
    }
    render::call(call, &outcome)
}

#[test]
fn corpus_matches_its_snapshots() {
    let mut topics: Vec<_> = children(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus"));
    topics.retain(|path| path.is_dir());
    let mut found = BTreeSet::new();
    let mut cases = 0;
    for path in topics.iter().flat_map(|topic| children(topic)) {
        if path.extension().is_some_and(|extension| extension == "txt") {
            cases += 1;
            found.extend(check(&path).into_iter().map(|diagnostic| diagnostic.code));
        }
    }
    assert!(cases >= 60, "only {cases} cases were found");
    let missing: Vec<_> = RULES
        .iter()
        // The executor reports the codes below, and readers of files those of dialects.
        .filter(|rule| !rule.code.as_str().starts_with("source-") && rule.dialect.is_none())
        .filter(|rule| {
            !matches!(
                rule.code.as_str(),
                "help-failed"
                    | "help-killed"
                    | "help-timed-out"
                    | "help-too-large"
                    | "help-not-started"
                    | "file-too-large"
                    | "missing-interpreter"
                    | "forbidden-default"
            )
        })
        .filter(|rule| !found.contains(&rule.code))
        .map(|rule| rule.code.as_str())
        .collect();
    assert_eq!(missing, [""; 0], "rules that no case breaks");
}
