//! Reads a help text on stdin and prints what it says of the command line as JSON, with the faults
//! of its draft: what `xtask/adopt/score.py` compares with the parsers of programs.
//!
//! `ls --help | cargo run -p mcpd-scriptspec --example read_help`

#![expect(clippy::print_stdout, reason = "an example prints its result")]

use std::io::{self, Read as _};

use mcpd_scriptspec::adopt::{CommandLine, Form, Sidecar};
use mcpd_scriptspec::{Dialect, Severity};
use serde_json::json;

fn main() -> io::Result<()> {
    let mut text = Vec::new();
    io::stdin().read_to_end(&mut text)?;
    let read = CommandLine::read(Form::Help, &text);
    let draft = Sidecar::draft("program", &[], &read);
    let described = Dialect::Sidecar.read("program.mcpd.toml", draft.text.as_bytes());
    let diagnostics = described.iter().flat_map(|tool| &tool.parsed.diagnostics);
    let faults = diagnostics.filter(|fault| fault.severity > Severity::Info);
    let faults: Vec<_> = faults.map(|fault| &fault.message).collect();
    let flags = read.flags.iter().map(|flag| {
        json!({
            "spellings": flag.spellings,
            "negation": flag.negation,
            "has_value": flag.value.is_some(),
        })
    });
    let flags: Vec<_> = flags.collect();
    println!("{}", json!({"flags": flags, "faults": faults}));
    Ok(())
}
