//! Nothing that a client makes up is accepted as state that it was given, or as a cursor.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|forged: &str| {
    assert!(
        !mcpd_server::fuzzing::state_opens(forged),
        "forged state opens"
    );
    mcpd_server::fuzzing::cursor(forged);
});
