//! What a scan finds wrong beyond what the words of a script's help say.

use std::path::Path;

use mcpd_exec::{Config, Executor};
use mcpd_server::catalog::scan::Scanner;
use mcpd_server::{Interpreters, Policy};

#[tokio::test]
async fn a_schema_that_needs_another_document_is_pointed_at() {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts-output");
    let executor = Executor::new(Config::default()).unwrap();
    let scan = Scanner::new(
        executor,
        Policy::default(),
        Interpreters::default(),
        vec![scripts],
    )
    .scan()
    .await;

    let faulty: Vec<_> = scan.faulty().collect();
    let [script] = &faulty[..] else {
        panic!("{faulty:?}");
    };
    let [fault] = &script.diagnostics[..] else {
        panic!("{:?}", script.diagnostics);
    };
    assert_eq!(script.path.as_str(), "faraway");
    assert_eq!(fault.code.as_str(), "invalid-schema");
    assert!(
        fault.message.starts_with("`input_schema`: "),
        "{}",
        fault.message
    );
    assert!(
        fault.message.contains("https://example.com/a.json"),
        "{}",
        fault.message
    );
    let schema = &script.help.stdout[fault.location.span.clone()];
    assert!(schema.starts_with(br#"{"type": "object""#) && schema.ends_with(br#".json"}}}"#));
}
