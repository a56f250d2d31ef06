//! Comments of Raycast.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| mcpd_fuzz::read("a", &mcpd_fuzz::lines("# @raycast.", text)));
