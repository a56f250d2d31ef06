//! Whatever a file says of itself: it becomes specs or diagnostics whose places are in the file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mcpd_scriptspec::{Dialect, Severity};

/// The first byte of the input chooses one; each dialect has one that leads to it.
const FILES: &[&str] = &[
    "a.mcpd.toml",
    "a.mcpd.json",
    "a.py",
    "a.bas",
    "usage",
    "argc",
    "raycast",
    "a",
];

fuzz_target!(|input: (u8, &str)| {
    let (place, text) = input;
    let path = FILES[usize::from(place) % FILES.len()];
    let lines = |begin: &str| format!("{begin}{}", text.replace('\n', &format!("\n{begin}")));
    let text = match path {
        "a.py" => &format!("# /// mcpd\n{}\n# ///\n", lines("# ")),
        "usage" => &lines("#USAGE "),
        "argc" => &format!("{text}\n# --argc-eval"),
        "raycast" => &lines("# @raycast."),
        _ => text,
    };
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
});
