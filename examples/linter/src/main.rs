//! Checks the tools in files, and prints their faults as a compiler does: `linter FILE…`.

use std::path::Path;
use std::process::ExitCode;

use mcpd_check::{Finding, render};
use mcpd_scriptspec::{Dialect, Severity};

fn main() -> std::io::Result<ExitCode> {
    let mut has_error = false;
    for name in std::env::args().skip(1) {
        let text = std::fs::read(&name)?;
        // Other files describe themselves only when they are run with `--help`.
        let Some(dialect) = Dialect::of(&name, &text) else {
            println!("{name}: no description to read");
            continue;
        };
        let tools = dialect.read(&name, &text);
        let faults = tools.iter().flat_map(|tool| &tool.parsed.diagnostics);
        let findings: Vec<_> = faults
            .map(|fault| Finding::in_file(Path::new(&name), &text, fault))
            .collect();
        has_error |= findings
            .iter()
            .any(|finding| finding.severity == Severity::Error);
        print!("{}", render::human(&findings, tools.len(), 100));
    }
    Ok(if has_error {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}
