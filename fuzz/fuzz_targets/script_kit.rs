//! Script Kit: literals and comments of TypeScript and JavaScript.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| mcpd_fuzz::read("a.ts", text));
