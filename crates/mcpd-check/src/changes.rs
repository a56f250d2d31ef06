//! Differences between two catalogs, as clients see their entries.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use mcpd_server::Catalog;
use serde::Serialize;
use serde_json::{Map, Value};

/// A tool, prompt or resource that came, went or changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct EntryChange {
    /// Kind and name, such as `tool math/add`.
    pub entry: String,
    /// Definition before; none if the entry is new.
    pub before: Option<Value>,
    /// Definition after; none if the entry is gone.
    pub after: Option<Value>,
}

impl EntryChange {
    /// Differences of the tools, prompts and resources of `after` from those of `before`.
    #[must_use]
    pub fn between(before: &Catalog, after: &Catalog) -> Vec<Self> {
        differences(entries(before), entries(after))
    }

    /// Names of the members that differ between both definitions; arguments are named one by one.
    #[must_use]
    pub fn members(&self) -> Vec<String> {
        match (&self.before, &self.after) {
            (Some(before), Some(after)) => changed_members(before, after),
            _ => Vec::new(),
        }
    }
}

/// A line with the sign of the change, and the description of what is there now.
impl fmt::Display for EntryChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entry = &self.entry;
        match (&self.before, &self.after) {
            (_, None) => return writeln!(f, "- {entry}"),
            (None, _) => write!(f, "+ {entry}")?,
            _ => write!(f, "~ {entry}: {}", self.members().join(", "))?,
        }
        let after = self.after.as_ref();
        let description = after.and_then(|after| after["description"].as_str());
        for line in description
            .unwrap_or_default()
            .split('\n')
            .filter(|_| description.is_some())
        {
            write!(f, "\n    {line}")?;
        }
        writeln!(f)
    }
}

/// Definitions by kind and name.
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

fn differences(mut before: Entries, mut after: Entries) -> Vec<EntryChange> {
    let names: BTreeSet<_> = before.keys().chain(after.keys()).cloned().collect();
    let changes = names.into_iter().map(|entry| EntryChange {
        before: before.remove(&entry),
        after: after.remove(&entry),
        entry,
    });
    changes
        .filter(|change| change.before != change.after)
        .collect()
}

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
    fn check(before: &Value, after: &Value, expected: &[&str]) {
        let entries = |value: &Value| -> Entries {
            let members = value.as_object().unwrap().iter();
            members
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect()
        };
        let found = differences(entries(before), entries(after));
        let found = found.iter().map(|change| change.to_string());
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn entries_that_come_and_go_are_named() {
        check(
            &json!({"tool a": {}, "tool b": {}}),
            &json!({"tool b": {}, "tool c": {}}),
            &["- tool a\n", "+ tool c\n"],
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
            &["~ tool a: description, argument n, required\n    y\n"],
        );
    }
}
