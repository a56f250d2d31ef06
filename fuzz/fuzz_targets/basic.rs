//! Whatever a BASIC program says of itself, looks like and does: it ends, and its faults are in it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mcpd_basic::{Limits, Parameters, RunError, compile};

fuzz_target!(|source: &str| {
    mcpd_fuzz::read("a.bas", source);
    let lines = source.split('\n').count();
    match compile(source) {
        Ok(program) => {
            let mut limits = Limits::default();
            limits.operations = 100_000;
            let parameters = Parameters::new();
            let ended = program.run(&parameters, &mut std::io::sink(), limits);
            if let Err(RunError::Fault(fault)) = ended {
                assert!((1..=lines).contains(&fault.line), "{fault:?}");
            }
        }
        Err(faults) => {
            for fault in faults {
                assert!((1..=lines).contains(&fault.line), "{fault:?}");
            }
        }
    }
});
