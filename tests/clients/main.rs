//! Real clients against the built binary, over stdio and HTTP: rmcp in this process, and programs
//! on the official Python and TypeScript SDKs. Applications read what `mcpd install` writes.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod applications;
mod approval;
mod login;
mod programs;
mod rmcp;

use mcpd_tests::repository;

/// Returns the script directories to serve: the examples, and those made for these tests.
fn roots() -> [String; 2] {
    ["examples/scripts", "tests/clients/scripts"].map(|path| {
        let path = repository().join(path);
        path.to_str().expect("paths of tests are UTF-8").to_owned()
    })
}
