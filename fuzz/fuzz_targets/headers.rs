//! Headers that repeat the body agree with it or are refused; no value of either makes the check fall
//! over.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, &str, &str, &str)| {
    let (version, method, name, body) = input;
    mcpd_server::fuzzing::headers(version, method, name, body.as_bytes());
});
