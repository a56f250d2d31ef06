//! Comments of argc.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| mcpd_fuzz::read("a", &format!("{text}\n# --argc-eval")));
