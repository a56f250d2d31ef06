//! `mcpd compile`: tool definitions in files, converted for models and their APIs.

use std::collections::BTreeMap;

use mcpd_check::Finding;
use mcpd_config::{File, tolerate_faults};
use mcpd_scriptspec::{ScriptSpec, Severity};
use mcpd_server::Tool;
use serde_json::{Value, json};

use super::check::{self, examine};
use crate::args::{Compile, CompileFormat};
use crate::exit_code::ExitCode;
use crate::output;

/// Prints one object for one tool, and an array for any other number. Faults go to stderr.
pub(crate) async fn run(args: Compile, file: &File) -> anyhow::Result<ExitCode> {
    let (files, confinement) = (&args.files, &args.confinement);
    let examined = examine(files, confinement, file, false, tolerate_faults).await?;
    let Some(catalog) = examined else {
        return Ok(ExitCode::Interrupted);
    };
    let findings = Finding::all(&catalog);
    if !findings.is_empty() {
        let text = check::human(&findings, &catalog);
        output::note_styled(&text);
    }
    let mut named: BTreeMap<_, usize> = BTreeMap::new();
    for tool in catalog.tools() {
        *named.entry(tool.path().file_name()).or_default() += 1;
    }
    let mut definitions = Vec::new();
    for tool in catalog.tools() {
        let name = match tool.path().file_name() {
            name if named[name] == 1 => name,
            _ => tool.portable_name(),
        };
        if let Some(spec) = tool.spec() {
            definitions.push(definition(tool, name, spec, args.format)?);
        }
    }
    let failed = findings
        .iter()
        .any(|finding| finding.severity == Severity::Error);
    if definitions.is_empty() && !failed {
        output::error("no tools found in the given files");
        return Ok(ExitCode::Failure);
    }
    match (&definitions[..], args.files.len()) {
        ([one], 1) => output::write_json(one)?,
        ([], 1) => {}
        (several, _) => output::write_json(&several)?,
    }
    Ok(if failed {
        ExitCode::Failure
    } else {
        ExitCode::Success
    })
}

/// `name` is the tool's name in formats without naming rules of their own.
fn definition(
    tool: &Tool,
    name: &str,
    spec: &ScriptSpec,
    format: CompileFormat,
) -> anyhow::Result<Value> {
    Ok(match format {
        CompileFormat::Definition => spec.definition(name),
        CompileFormat::Mcp => {
            let mut listed = tool.definition().clone();
            tool.portable_name().clone_into(&mut listed.name);
            serde_json::to_value(listed)?
        }
        CompileFormat::Openai => json!({
            "type": "function",
            "function": {
                "name": tool.portable_name(),
                "description": spec.description.as_deref().unwrap_or_default(),
                "parameters": spec.input_schema(),
            },
        }),
    })
}
