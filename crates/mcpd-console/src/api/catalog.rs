//! Facts about tools and faults that MCP has no method for.

use mcpd_check::cost::ListCost;
use mcpd_check::{Finding, describe, shortfall};
use mcpd_server::{Catalog, Principal, Server, Tool};
use serde_json::{Value, json};

/// Describes the tools of a caller, and to operators everything that is wrong.
pub(super) fn describe(server: &Server, caller: &Principal, is_operator: bool) -> Value {
    let catalog = server.catalog_for(caller);
    let cost = ListCost::of(&catalog);
    let tokens: std::collections::BTreeMap<_, _> = (cost.tools.iter())
        .map(|tool| (tool.path.as_str(), tool.total))
        .collect();
    let tools = catalog.tools().iter().map(|tool| {
        let path = tool.path().as_str();
        let mut facts = json!({"path": path, "tokens": tokens.get(path)});
        if is_operator {
            add_facts(&mut facts, tool);
        }
        facts["app"] = tool.app().into();
        facts["approval"] = server.needs_approval(tool).into();
        facts["needsTask"] = tool.needs_task().into();
        facts
    });
    let mut body = json!({
        "tools": tools.collect::<Vec<_>>(),
        "skills": catalog.skills().iter().map(|skill| skill.definition()).collect::<Vec<_>>(),
        "tokens": cost.total,
    });
    if is_operator {
        let whole = server.catalog();
        body["faults"] = faults(&whole);
        body["shortfall"] = shortfall(&whole).into();
    }
    body
}

/// Lists the tools of a caller as MCP does, without their results.
pub(super) fn list(server: &Server, caller: &Principal) -> Value {
    let catalog = server.catalog_for(caller);
    let tools = catalog.tools().iter();
    let tools = tools.filter_map(|tool| serde_json::to_value(tool.definition()).ok());
    tools.collect()
}

/// Adds the file or the source of a tool, and its confinement and limits.
fn add_facts(facts: &mut Value, tool: &Tool) {
    facts["file"] = (tool.file().map(|file| file.display().to_string())).into();
    facts["source"] = tool.source().into();
    if let Some(policy) = tool.policy() {
        let text = describe::confinement(policy) + &describe::allowance(policy);
        let lines: Vec<_> = text.lines().map(str::to_owned).collect();
        facts["policy"] = (lines.into_iter())
            .chain(describe::limits(policy.limits()))
            .collect::<Vec<_>>()
            .into();
    }
}

/// Lists the faults, each with the line that it is in.
fn faults(catalog: &Catalog) -> Value {
    let findings = Finding::all(catalog);
    let faults = findings.iter().map(|finding| {
        let mut fault = serde_json::to_value(finding).unwrap_or_default();
        if let Some(place) = &finding.place {
            let before = &place.text[..place.span.start.min(place.text.len())];
            let start = before
                .iter()
                .rposition(|byte| *byte == b'\n')
                .map_or(0, |at| at + 1);
            let line = place.text[start..].split(|byte| *byte == b'\n').next();
            let line = line.unwrap_or_default();
            let line = String::from_utf8_lossy(&line[..line.len().min(500)]);
            fault["line"] = line.into();
        }
        fault["lastWords"] = finding.last_words.clone().into();
        fault
    });
    faults.collect()
}
