//! Scriptlets of a Markdown file.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| mcpd_fuzz::read("scriptlets/a.md", text));
