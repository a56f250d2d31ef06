//! Arguments are refused in words, or become one JSON object and an environment that a system call can
//! express.
#![no_main]

use std::collections::BTreeMap;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use mcpd_scriptspec::{HelpOutput, ScriptSpec, parse};
use serde_json::value::RawValue;

static SPEC: LazyLock<ScriptSpec> = LazyLock::new(|| {
    let options = br#"{
        "text": {"required": false, "value_type": "string", "size": {"max": 20}, "default_value": ""},
        "whole": {"required": false, "value_type": "integer", "size": {"min": -5}, "default_value": 0},
        "real": {"required": false, "value_type": "float", "default_value": 0.5},
        "flag": {"required": false, "value_type": "boolean", "default_value": false},
        "one of": {"required": false, "value_type": {"enum": ["a", "b"]}, "default_value": "a"},
        "anything": {"required": false, "value_type": "any", "default_value": null}
    }"#;
    let stdout = br#"{"description": "takes everything"}"#;
    parse(HelpOutput {
        stdout,
        stderr: options,
    })
    .spec
    .expect("the spec is valid")
});

fuzz_target!(|text: &str| {
    let Ok(arguments) = RawValue::from_string(text.to_owned()) else {
        return;
    };
    match SPEC.invocation(Some(&arguments)) {
        Ok(invocation) => {
            // Numbers are passed on as they came, also those that no machine number can hold.
            serde_json::from_slice::<BTreeMap<String, Box<RawValue>>>(&invocation.stdin)
                .expect("a JSON object");
            for (name, value) in &invocation.env {
                assert!(!name.is_empty() && !name.contains(['=', '\0']) && !value.contains('\0'));
            }
        }
        Err(faults) => assert!(!faults.is_empty()),
    }
});
