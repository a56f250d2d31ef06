//! What every front end promises, whatever it is given.

use mcpd_scriptspec::{Dialect, Severity};

/// Reads `text` as the file at `path`, and holds what comes of it to the promises: places are inside of the text, errors
/// and only errors leave no spec, and a spec gives a schema and a command line.
pub fn read(path: &str, text: &str) {
    let Some(dialect) = Dialect::of(path, text.as_bytes()) else {
        return;
    };
    for described in dialect.read(path, text.as_bytes()) {
        let mut has_errors = false;
        for diagnostic in &described.parsed.diagnostics {
            let span = diagnostic.location.span.clone();
            assert!(text.get(span).is_some(), "{diagnostic:?}");
            has_errors |= diagnostic.severity == Severity::Error;
        }
        assert_eq!(described.parsed.spec.is_none(), has_errors);
        if let Some(spec) = described.parsed.spec {
            let _ = spec.input_schema();
            let _ = spec.invocation(None);
        }
    }
}

/// `text` with `begin` before each of its lines.
#[must_use]
pub fn lines(begin: &str, text: &str) -> String {
    format!("{begin}{}", text.replace('\n', &format!("\n{begin}")))
}
