//! Whatever a script prints: it becomes a spec or diagnostics whose places are in what it printed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mcpd_scriptspec::{HelpOutput, Stream, parse};

fuzz_target!(|input: (&[u8], &[u8])| {
    let (stdout, stderr) = input;
    let parsed = parse(HelpOutput { stdout, stderr });
    for diagnostic in &parsed.diagnostics {
        let text = match diagnostic.location.stream {
            Stream::Stdout => stdout,
            Stream::Stderr => stderr,
            Stream::Source => panic!("no file was read"),
        };
        assert!(diagnostic.location.span.end <= text.len(), "{diagnostic:?}");
        assert!(diagnostic.location.span.start <= diagnostic.location.span.end);
    }
    if let Some(spec) = parsed.spec {
        spec.input_schema();
    }
});
