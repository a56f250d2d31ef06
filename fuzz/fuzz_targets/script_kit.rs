//! Whatever a script or a Markdown file holds: it becomes tools or diagnostics whose places are in it, and code only with
//! variables for values.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mcpd_scriptspec::Dialect;

fuzz_target!(|text: &[u8]| {
    for path in ["a.ts", "scriptlets/a.md"] {
        let Some(dialect) = Dialect::of(path, text) else {
            continue;
        };
        for described in dialect.read(path, text) {
            for diagnostic in &described.parsed.diagnostics {
                let span = &diagnostic.location.span;
                assert!(span.start <= span.end && span.end <= text.len(), "{diagnostic:?}");
            }
            if let Some(spec) = described.parsed.spec {
                let _ = spec.input_schema();
            }
        }
    }
});
