//! Cases made from calls, without the values of secret options.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::path::Path;

use mcpd_protocol::method::CallToolResult;
use mcpd_scriptspec::ScriptSpec;
use serde_json::{Map, Value};
use toml_edit::{ArrayOfTables, DocumentMut, Item, Table, Value as TomlValue, value};

use crate::case::TestFile;
use crate::ending::{Ending, Observed};
use crate::fault::Fault;
use crate::snapshot::{json_value, write_ending, write_output};

/// Value in place of a secret.
const SECRET: &str = "[secret]";

/// Call to be recorded.
#[derive(Debug, Clone)]
pub struct Recording {
    name: Option<String>,
    tool: Option<String>,
    arguments: Map<String, Value>,
    observed: Observed,
    secrets: Vec<String>,
}

impl Recording {
    /// Makes a recording of a call with these arguments.
    #[must_use]
    pub fn new(arguments: Map<String, Value>, result: &CallToolResult) -> Self {
        Self {
            name: None,
            tool: None,
            arguments,
            observed: Observed::of_result(result),
            secrets: Vec::new(),
        }
    }

    /// Names the case; a case without a name gets a number.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Names the tool, for a file with several.
    #[must_use]
    pub fn tool(mut self, tool: impl Into<String>) -> Self {
        self.tool = Some(tool.into());
        self
    }

    /// Replaces the values of secret options, in the arguments and wherever the output repeats
    /// them.
    #[must_use]
    pub fn without_secrets_of(mut self, spec: &ScriptSpec) -> Self {
        for option in spec.options.iter().filter(|option| option.secret) {
            if let Some(value) = self.arguments.get_mut(&option.name) {
                collect_secrets(&value.take(), &mut self.secrets);
                *value = Value::from(SECRET);
            }
        }
        // One secret may be a part of another.
        self.secrets
            .sort_unstable_by_key(|secret| Reverse(secret.len()));
        for secret in &self.secrets {
            self.observed.text = redact_text(&self.observed.text, secret);
            if let Some(json) = &mut self.observed.json {
                redact(json, secret);
            }
        }
        self
    }

    /// Returns why the call is no case, if it is none: only a finished or a refused one is.
    #[must_use]
    pub fn hindrance(&self) -> Option<&Ending> {
        let ending = &self.observed.ending;
        (!crate::snapshot::is_acceptable(ending)).then_some(ending)
    }

    fn table(self, names: &BTreeSet<&str>) -> Table {
        let mut table = Table::new();
        let numbered = || {
            let mut names_by_number = (1..).map(|number| format!("call {number}"));
            let free = names_by_number.find(|name| !names.contains(name.as_str()));
            free.unwrap_or_default()
        };
        let name = self.name.unwrap_or_else(numbered);
        table.insert("name", value(name));
        if let Some(tool) = self.tool {
            table.insert("tool", value(tool));
        }
        if !self.arguments.is_empty() {
            let arguments = json_value(&Value::Object(self.arguments));
            table.insert("arguments", Item::Value(arguments));
        }
        write_ending(&mut table, &self.observed.ending, false);
        write_output(&mut table, &self.observed);
        table
    }
}

/// Collects the texts and numbers of a secret value, whatever its form.
fn collect_secrets(value: &Value, secrets: &mut Vec<String>) {
    match value {
        Value::String(text) if text.is_empty() => {}
        Value::String(text) => secrets.push(text.clone()),
        Value::Number(number) => secrets.push(number.to_string()),
        Value::Array(list) => list
            .iter()
            .for_each(|value| collect_secrets(value, secrets)),
        Value::Object(object) => object
            .values()
            .for_each(|value| collect_secrets(value, secrets)),
        // Every output has these words.
        Value::Bool(_) | Value::Null => {}
    }
}

/// Replaces a secret in a text, also as JSON writes it.
fn redact_text(text: &str, secret: &str) -> String {
    let text = text.replace(secret, SECRET);
    let escaped = Value::from(secret).to_string();
    match escaped.trim_matches('"') {
        inner if inner == secret || inner.is_empty() => text,
        inner => text.replace(inner, SECRET),
    }
}

/// Replaces a secret in all keys and texts of a value.
fn redact(json: &mut Value, secret: &str) {
    match json {
        Value::String(text) => *text = redact_text(text, secret),
        Value::Array(list) => list.iter_mut().for_each(|value| redact(value, secret)),
        Value::Object(object) => {
            for (key, mut value) in std::mem::take(object) {
                redact(&mut value, secret);
                object.insert(redact_text(&key, secret), value);
            }
        }
        Value::Number(_) | Value::Bool(_) | Value::Null => {
            let written = json.to_string();
            if written == secret {
                *json = Value::from(SECRET);
            }
        }
    }
}

/// Appends a case to the text of the file with cases at `path`.
///
/// # Errors
///
/// The text is faulty, or has a case of this name.
pub fn append(path: &Path, text: &str, recording: Recording) -> Result<String, Fault> {
    let (file, mut faults) = TestFile::read(path, text);
    if !faults.is_empty() {
        return Err(faults.remove(0));
    }
    let names: BTreeSet<_> = file.cases.iter().map(|case| case.name.as_str()).collect();
    if let Some(name) = recording
        .name
        .as_deref()
        .filter(|name| names.contains(name))
    {
        let message = format!("there is a case with the name `{name}`; choose another");
        return Err(Fault::of_file(path, message));
    }
    let mut document: DocumentMut = text
        .parse()
        .map_err(|error| Fault::of_file(path, format!("not TOML: {error}")))?;
    let mut table = recording.table(&names);
    if !text.trim().is_empty() {
        table.decor_mut().set_prefix("\n");
    }
    let cases = document.entry("case");
    let cases = cases.or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()));
    if let Item::Value(TomlValue::Array(array)) = cases
        && array.is_empty()
    {
        *cases = Item::ArrayOfTables(ArrayOfTables::new());
    }
    match cases.as_array_of_tables_mut() {
        Some(tables) => tables.push(table),
        None => {
            let message = "`case` must be an array of tables: write `[[case]]`";
            return Err(Fault::of_file(path, message));
        }
    }
    Ok(document.to_string())
}

#[cfg(test)]
mod tests {
    use mcpd_scriptspec::{HelpOutput, parse};
    use serde_json::json;

    use super::*;

    fn recording(arguments: &Value, text: &str) -> Recording {
        let arguments = arguments.as_object().cloned().unwrap_or_default();
        Recording::new(arguments, &CallToolResult::text(text))
    }

    #[test]
    fn case_is_appended() {
        let path = Path::new("x.test.toml");
        let first = append(path, "", recording(&json!({"n": 1}), "one")).unwrap();
        assert_eq!(
            first,
            "[[case]]\nname = \"call 1\"\narguments = { n = 1 }\ntext = \"one\"\n"
        );
        let named = recording(&json!({}), r#"{"a": 1}"#).name("b").tool("t/x");
        let second = append(path, &format!("# Kept.\n{first}"), named.clone()).unwrap();
        assert_eq!(
            second,
            format!(
                "# Kept.\n{first}\n[[case]]\nname = \"b\"\ntool = \"t/x\"\njson = {{ a = 1 }}\n"
            )
        );
        let twice = append(path, &second, named).unwrap_err();
        assert_eq!(
            twice.message,
            "there is a case with the name `b`; choose another"
        );
        let (file, faults) = TestFile::read(path, &second);
        assert_eq!((file.cases.len(), faults.len()), (2, 0));
    }

    #[test]
    fn secret_is_in_no_case() {
        let parsed = parse(HelpOutput {
            stdout: br#"{"description": "x"}"#,
            stderr: br#"{"key": {"description": "k", "value_type": "string", "required": true, "secret": true}}"#,
        });
        let spec = parsed.spec.unwrap();
        let recording = recording(&json!({"key": "hunter2"}), "logged in with hunter2");
        let recording = recording.without_secrets_of(&spec);
        let text = append(Path::new("x.test.toml"), "", recording).unwrap();
        assert!(!text.contains("hunter2"), "{text}");
        assert!(text.contains("logged in with [secret]"), "{text}");
    }

    #[test]
    fn secret_is_left_out_in_every_form() {
        let parsed = parse(HelpOutput {
            stdout: br#"{"description": "x"}"#,
            stderr: br#"{"keys": {"description": "k", "value_type": "array", "items": {"value_type": "string"}, "required": true, "secret": true}}"#,
        });
        let spec = parsed.spec.unwrap();
        let arguments = json!({"keys": ["alpha", "alphabet", "a\"b"]});
        for output in [
            "alpha, alphabet and a\"b",
            r#"{"alphabet": [1, "alpha"], "x": "a\"b"}"#,
            r#"a line with {"x": "a\"b"}"#,
        ] {
            let recording = recording(&arguments, output).without_secrets_of(&spec);
            let text = append(Path::new("x.test.toml"), "", recording).unwrap();
            for part in ["alpha", "bet", "a\"b", "a\\\"b"] {
                assert!(!text.contains(part), "{part}: {text}");
            }
        }
    }
}
