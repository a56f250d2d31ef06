//! Changes between two catalogs, as their author sees them: one line for each entry that came, went
//! or changed, and the faults that are new.

use std::collections::{BTreeMap, BTreeSet};

use mcpd_check::{Finding, render};
use mcpd_server::Catalog;
use serde::Serialize;
use serde_json::{Map, Value};

use super::timeline::{self, Sign};
use crate::output;

/// Columns of a terminal whose width is unknown.
const DEFAULT_COLUMNS: usize = 100;

/// Shows how the tools, prompts and resources of `after` differ from those of `before`.
pub(super) fn show(before: &Catalog, after: &Catalog) {
    for (sign, text) in differences(&entries(before), &entries(after)) {
        timeline::line(sign, &text);
    }
}

/// Shows the faults of `after` that `before` does not have, or how many are left if some are gone.
pub(super) fn show_faults(before: Option<&Catalog>, after: &Catalog) {
    let old = before.map(Finding::all).unwrap_or_default();
    let before = old.len();
    let old: BTreeSet<_> = old.iter().map(identity).collect();
    let mut findings = Finding::all(after);
    let left = findings.len();
    findings.retain(|finding| !old.contains(&identity(finding)));
    if !findings.is_empty() {
        let columns = output::columns().unwrap_or(DEFAULT_COLUMNS);
        let scripts = after.scan().scripts.len();
        output::note_styled(&render::human(&findings, scripts, columns));
    } else if left < before {
        timeline::note(&match left {
            0 => "no fault is left".to_owned(),
            1 => "1 fault is left".to_owned(),
            _ => format!("{left} faults are left"),
        });
    }
}

/// What makes two findings the same, wherever they stand in a file.
fn identity(finding: &Finding<'_>) -> String {
    format!(
        "{:?} {:?} {} {}",
        finding.path, finding.file, finding.code, finding.message
    )
}

/// Entries by kind and name, as they are listed.
type Entries = BTreeMap<String, Value>;

fn entries(catalog: &Catalog) -> Entries {
    let tools = catalog.tools().iter();
    let tools = tools.map(|tool| entry("tool", tool.path().as_str(), tool.definition()));
    let prompts = catalog.prompts().iter();
    let prompts =
        prompts.map(|prompt| entry("prompt", prompt.path().as_str(), prompt.definition()));
    let resources = catalog.resources().iter();
    let resources = resources.map(|resource| {
        let definition = resource.definition();
        entry("resource", &definition.uri, definition)
    });
    let templates = catalog.templates().iter();
    let templates = templates.map(|template| {
        let definition = template.definition();
        entry("resource", &definition.uri_template, definition)
    });
    tools
        .chain(prompts)
        .chain(resources)
        .chain(templates)
        .collect()
}

fn entry(kind: &str, name: &str, definition: &impl Serialize) -> (String, Value) {
    let listed = serde_json::to_value(definition).unwrap_or_default();
    (format!("{kind} {name}"), listed)
}

fn differences(before: &Entries, after: &Entries) -> Vec<(Sign, String)> {
    let names: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    let compared = names.into_iter().filter_map(|name| {
        Some(match (before.get(name), after.get(name)) {
            (None, _) => (Sign::Added, name.clone()),
            (_, None) => (Sign::Removed, name.clone()),
            (Some(before), Some(after)) if before != after => {
                let members = changed_members(before, after).join(", ");
                (Sign::Changed, format!("{name}: {members}"))
            }
            _ => return None,
        })
    });
    compared.collect()
}

/// Names of the members that differ; arguments are named one by one.
fn changed_members(before: &Value, after: &Value) -> Vec<String> {
    let mut changed = Vec::new();
    for name in differing(before, after) {
        if name != "inputSchema" {
            changed.push(name);
            continue;
        }
        let schema = |tool: &Value| tool["inputSchema"].clone();
        let (before, after) = (schema(before), schema(after));
        let arguments = differing(&before["properties"], &after["properties"]);
        let others = differing(&before, &after).into_iter();
        changed.extend(arguments.iter().map(|name| format!("argument {name}")));
        changed.extend(others.filter(|name| name != "properties"));
    }
    changed
}

/// Members of two objects that differ, or that only one of them has.
fn differing(before: &Value, after: &Value) -> Vec<String> {
    let empty = Map::new();
    let members = |value: &Value| value.as_object().unwrap_or(&empty).clone();
    let (before, after) = (members(before), members(after));
    let names: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    let names = names.into_iter();
    let names = names.filter(|name| before.get(*name) != after.get(*name));
    names.cloned().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(before: &Value, after: &Value, expected: &[(Sign, &str)]) {
        let entries = |value: &Value| -> Entries {
            let members = value.as_object().unwrap().iter();
            members
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect()
        };
        let found = differences(&entries(before), &entries(after));
        let found: Vec<_> = found.iter().map(|(sign, text)| (*sign, &**text)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn entries_that_come_and_go_are_named() {
        check(
            &json!({"tool a": {}, "tool b": {}}),
            &json!({"tool b": {}, "tool c": {}}),
            &[(Sign::Removed, "tool a"), (Sign::Added, "tool c")],
        );
    }

    #[test]
    fn changed_entry_names_its_members_and_arguments() {
        let tool = |description: &str, arguments: &Value, required: &Value| {
            json!({"tool a": {
                "description": description,
                "inputSchema": {"properties": arguments, "required": required},
            }})
        };
        check(
            &tool("x", &json!({"n": {"type": "string"}, "m": {}}), &json!([])),
            &tool(
                "y",
                &json!({"n": {"type": "integer"}, "m": {}}),
                &json!(["n"]),
            ),
            &[(Sign::Changed, "tool a: description, argument n, required")],
        );
    }
}
