//! Sidecars, in both of their formats.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    mcpd_fuzz::read("a.mcpd.toml", text);
    mcpd_fuzz::read("a.mcpd.json", text);
});
