//! Differences between what is approved and what is found, member by member.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Map, Value};

use super::{PinnedEntry, PinnedFile, PinnedScript, Pins};

/// Member of a definition that has the schema of the arguments.
const SCHEMA: &str = "inputSchema";

/// Member that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Difference {
    /// Name, such as `description` or ``default of `path` ``.
    pub member: String,
    /// Approved value, if there was one.
    pub before: Option<String>,
    /// Current value, if there is one.
    pub after: Option<String>,
}

/// Entry that is new, gone, or not as it is approved.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PinChange {
    /// The approved entry; none if it is new.
    pub before: Option<PinnedEntry>,
    /// The current entry; none if it is gone.
    pub after: Option<PinnedEntry>,
}

impl PinChange {
    /// Returns what differs; nothing for an entry that is new or gone.
    #[must_use]
    pub fn differences(&self) -> Vec<Difference> {
        match (&self.before, &self.after) {
            (Some(before), Some(after)) => before.differences(after),
            _ => Vec::new(),
        }
    }

    /// Returns the entry, before or after.
    #[must_use]
    pub fn entry(&self) -> Option<&PinnedEntry> {
        self.after.as_ref().or(self.before.as_ref())
    }
}

impl Pins {
    /// Returns the entries of `now` that differ from those approved. Only the roots and sources
    /// that are in `roots` are compared.
    #[must_use]
    pub fn changed_entries(&self, now: &Self, roots: &BTreeSet<String>) -> Vec<PinChange> {
        let of = |pins: &Self| -> BTreeMap<_, _> {
            let entries = pins.entries.iter().cloned();
            let entries = entries.filter(|entry| roots.contains(&entry.root));
            let key = |entry: &PinnedEntry| (entry.root.clone(), entry.path.clone(), entry.kind);
            entries.map(|entry| (key(&entry), entry)).collect()
        };
        let (mut before, mut after) = (of(self), of(now));
        let keys: BTreeSet<_> = before.keys().chain(after.keys()).cloned().collect();
        let changes = keys.iter().map(|key| PinChange {
            before: before.remove(key),
            after: after.remove(key),
        });
        changes
            .filter(|change| {
                change.before.is_none()
                    || change.after.is_none()
                    || !change.differences().is_empty()
            })
            .collect()
    }

    /// Returns the files of `now` that differ from those approved, each before and after.
    #[must_use]
    pub fn changed_files(
        &self,
        now: &Self,
        roots: &BTreeSet<String>,
    ) -> Vec<[Option<PinnedFile>; 2]> {
        let of = |pins: &Self| -> BTreeMap<_, _> {
            let files = pins.files.iter().cloned();
            let files = files.filter(|file| roots.contains(&file.root));
            files
                .map(|file| ((file.root.clone(), file.path.clone()), file))
                .collect()
        };
        let (mut before, mut after) = (of(self), of(now));
        let keys: BTreeSet<_> = before.keys().chain(after.keys()).cloned().collect();
        let changes = keys
            .iter()
            .map(|key| [before.remove(key), after.remove(key)]);
        changes.filter(|[before, after]| before != after).collect()
    }

    /// Approves an entry as it is after a change; one that is gone is forgotten.
    pub fn approve(&mut self, change: PinChange) {
        if let Some(before) = &change.before {
            self.entries.retain(|entry| entry.key() != before.key());
        }
        self.entries.extend(change.after);
        self.sort();
    }

    /// Approves a file likewise.
    pub fn approve_file(&mut self, [before, after]: [Option<PinnedFile>; 2]) {
        if let Some(before) = before {
            self.files
                .retain(|file| (&file.root, &file.path) != (&before.root, &before.path));
        }
        self.files.extend(after);
        self.sort();
    }
}

impl PinnedEntry {
    /// Returns how `now` differs from this approved entry.
    #[must_use]
    pub fn differences(&self, now: &Self) -> Vec<Difference> {
        let mut differences = Vec::new();
        let members: BTreeSet<_> = self
            .definition
            .keys()
            .chain(now.definition.keys())
            .collect();
        for name in members {
            let (before, after) = (self.definition.get(name), now.definition.get(name));
            if before == after {
                continue;
            }
            match (name.as_str(), before, after) {
                (SCHEMA, Some(before), Some(after)) => {
                    differences.extend(schema_differences(before, after));
                }
                _ if is_same_json(before, after) => {}
                _ => differences.push(difference(name, before, after)),
            }
        }
        if self.file != now.file {
            let (before, after) = (self.file.as_ref(), now.file.as_ref());
            differences.extend(script_differences(before, after));
        }
        differences
    }
}

fn difference(name: &str, before: Option<&String>, after: Option<&String>) -> Difference {
    let member = match name {
        SCHEMA => "schema",
        "outputSchema" => "output schema",
        "mimeType" => "media type",
        "uri" | "uriTemplate" => "URI",
        "_meta" => "metadata",
        name => name,
    };
    Difference {
        member: member.to_owned(),
        before: before.cloned(),
        after: after.cloned(),
    }
}

/// Returns whether both are the same JSON; the order of members does not count.
fn is_same_json(before: Option<&String>, after: Option<&String>) -> bool {
    let value = |text: Option<&String>| {
        let value = serde_json::from_str::<Value>(text?).ok()?;
        (value.is_object() || value.is_array()).then_some(value)
    };
    value(before).is_some_and(|before| Some(before) == value(after))
}

/// Returns how two schemas of arguments differ, argument by argument.
fn schema_differences(before: &str, after: &str) -> Vec<Difference> {
    let parse = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
    let (mut old, mut new) = (parse(before), parse(after));
    if old == new {
        return Vec::new();
    }
    let take = |schema: &mut Value| match schema.get_mut("properties").map(Value::take) {
        Some(Value::Object(properties)) => properties,
        _ => Map::new(),
    };
    let (mut old_arguments, mut new_arguments) = (take(&mut old), take(&mut new));
    let mut differences = Vec::new();
    let names = old_arguments.keys().chain(new_arguments.keys());
    let names: BTreeSet<_> = names.cloned().collect();
    for name in names {
        let before = old_arguments.remove(&name);
        let after = new_arguments.remove(&name);
        differences.extend(argument_differences(&name, before, after));
    }
    if old != new {
        let shown = |value: Value| (!value.is_null()).then(|| value.to_string());
        differences.push(Difference {
            member: "schema".to_owned(),
            before: shown(old),
            after: shown(new),
        });
    }
    differences
}

/// Returns how an argument differs, its default apart.
fn argument_differences(
    name: &str,
    before: Option<Value>,
    after: Option<Value>,
) -> Vec<Difference> {
    let split = |argument: Option<Value>| match argument {
        Some(Value::Object(mut argument)) => {
            let default = argument.shift_remove("default");
            (Some(Value::Object(argument)), default)
        }
        other => (other, None),
    };
    let ((before, old_default), (after, new_default)) = (split(before), split(after));
    let parts = [
        ("schema", before, after),
        ("default", old_default, new_default),
    ];
    let parts = parts.into_iter();
    let parts = parts.filter(|(_, before, after)| before != after);
    parts
        .map(|(what, before, after)| Difference {
            member: format!("{what} of `{name}`"),
            before: before.map(|value| value.to_string()),
            after: after.map(|value| value.to_string()),
        })
        .collect()
}

/// Returns how the file of a script differs.
fn script_differences(
    before: Option<&PinnedScript>,
    after: Option<&PinnedScript>,
) -> Vec<Difference> {
    type Member = (&'static str, fn(&PinnedScript) -> Option<&String>);
    const MEMBERS: [Member; 6] = [
        ("file", |file| Some(&file.path)),
        ("content", |file| Some(&file.sha256)),
        ("permissions", |file| Some(&file.mode)),
        ("interpreter", |file| file.interpreter.as_ref()),
        ("link target", |file| file.target.as_ref()),
        ("sidecar", |file| file.sidecar.as_ref()),
    ];
    let values = MEMBERS
        .iter()
        .map(|(name, value)| (*name, before.and_then(value), after.and_then(value)));
    let values = values.filter(|(_, before, after)| before != after);
    values
        .map(|(name, before, after)| difference(name, before, after))
        .collect()
}

impl PinnedScript {
    /// Returns the names of the members in which `now` differs.
    pub(super) fn changes(&self, now: &Self) -> Vec<String> {
        let differences = script_differences(Some(self), Some(now)).into_iter();
        differences.map(|difference| difference.member).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::pins::PinKind;

    fn entry(members: &[(&str, &str)]) -> PinnedEntry {
        let members = members.iter();
        let members = members.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        PinnedEntry {
            root: ".".to_owned(),
            path: "a".to_owned(),
            kind: PinKind::Tool,
            file: None,
            definition: members.collect(),
        }
    }

    #[track_caller]
    fn check(before: &[(&str, &str)], after: &[(&str, &str)], expected: &[&str]) {
        let found = entry(before).differences(&entry(after));
        let found: Vec<_> = found.iter().map(|one| one.member.as_str()).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn differences_name_arguments_and_defaults() {
        let schema = |argument: &str| {
            format!(r#"{{"type":"object","properties":{{"n":{argument},"m":{{}}}}}}"#)
        };
        let old = schema(r#"{"type":"string","default":"a"}"#);
        for (new, expected) in [
            (
                r#"{"type":"string","default":"b"}"#,
                &["default of `n`"][..],
            ),
            (r#"{"default":"a","type":"string"}"#, &[]),
            (r#"{"type":"string"}"#, &["default of `n`"]),
            (r#"{"type":"integer","default":"a"}"#, &["schema of `n`"]),
            (
                r#"{"type":"integer","default":1}"#,
                &["schema of `n`", "default of `n`"],
            ),
        ] {
            let new = schema(new);
            check(&[("inputSchema", &old)], &[("inputSchema", &new)], expected);
        }
        check(
            &[("inputSchema", r#"{"type":"object"}"#)],
            &[(
                "inputSchema",
                r#"{"type":"object","required":["n"],"properties":{"n":{}}}"#,
            )],
            &["schema of `n`", "schema"],
        );
    }

    #[test]
    fn differences_name_texts_and_ignore_the_order_of_members() {
        check(
            &[("description", "x"), ("annotations", r#"{"a":1,"b":2}"#)],
            &[("description", "y"), ("annotations", r#"{"b":2,"a":1}"#)],
            &["description"],
        );
        check(
            &[("description", "1")],
            &[("description", "1.0")],
            &["description"],
        );
        check(&[], &[("title", "x")], &["title"]);
    }

    #[test]
    fn approved_change_is_no_change_any_more() {
        let roots = BTreeSet::from([".".to_owned()]);
        let mut pins = Pins::default();
        pins.entries.push(entry(&[("description", "x")]));
        let mut now = pins.clone();
        now.entries[0] = entry(&[("description", "y")]);
        now.entries.push(PinnedEntry {
            path: "b".to_owned(),
            ..entry(&[])
        });
        let changes = pins.changed_entries(&now, &roots);
        assert_eq!(changes.len(), 2);
        for change in changes {
            pins.approve(change);
        }
        assert_eq!(pins, now);
        assert!(pins.changed_entries(&now, &roots).is_empty());
        let gone = pins.changed_entries(&Pins::default(), &roots);
        assert!(
            pins.changed_entries(&Pins::default(), &BTreeSet::new())
                .is_empty()
        );
        for change in gone {
            pins.approve(change);
        }
        assert!(pins.is_empty());
    }
}
