//! Comments of usage and mise.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| mcpd_fuzz::read("a", &mcpd_fuzz::lines("#USAGE ", text)));
