//! Snapshots of every program under `corpus/`: its output and its faults, beside its text.
//!
//! The first line of a program is a comment that says what it shows; a second one, `' parameters:
//! {…}`, has the parameters that it is run with.

#![expect(clippy::unwrap_used, reason = "a panic is how a test reports")]

use std::fs;
use std::path::Path;

use mcpd_basic::{Limits, Parameters, RunError, compile};

#[track_caller]
fn check(path: &Path) {
    let source = fs::read_to_string(path).unwrap();
    let file = path.file_name().unwrap().to_str().unwrap();
    let mut shown = format!("{}\n", source.trim_end());
    match compile(&source) {
        Ok(program) => {
            let mut output = Vec::new();
            let ended = program.run(&parameters(&source), &mut output, limits());
            shown += &format!("-- output --\n{}", String::from_utf8(output).unwrap());
            match ended {
                Ok(()) => {}
                Err(RunError::Fault(fault)) => {
                    shown += &format!("-- fault --\n{}", fault.report(file));
                }
                Err(error) => shown += &format!("-- error --\n{error}\n"),
            }
        }
        Err(faults) => {
            shown += "-- faults --\n";
            for fault in faults {
                shown += &fault.report(file);
            }
        }
    }
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(path.parent().unwrap());
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(path.file_stem().unwrap().to_str().unwrap(), shown));
}

/// Returns small limits, so that endless programs end soon.
fn limits() -> Limits {
    let mut limits = Limits::default();
    limits.operations = 1_000_000;
    limits.value_bytes = 1 << 20;
    limits
}

fn parameters(source: &str) -> Parameters {
    let line = source.lines().nth(1).unwrap_or_default();
    match line.strip_prefix("' parameters: ") {
        Some(json) => serde_json::from_str(json).unwrap(),
        None => Parameters::new(),
    }
}

#[test]
fn programs_match_their_snapshots() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut paths: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "bas"))
        .collect();
    paths.sort();
    assert!(
        paths.len() >= 40,
        "only {} programs were found",
        paths.len()
    );
    for path in paths {
        check(&path);
    }
}
