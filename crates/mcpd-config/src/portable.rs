//! Part of `mcpd.toml` that holds on every machine, for a bundle: no path, no secret and no comment
//! of this one. Variables take the place of secrets.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use anyhow::Context as _;
use mcpd_exec::Executor;
use toml_edit::{Array, ArrayOfTables, DocumentMut, InlineTable, Item, Table, Value};

use crate::file::File;
use crate::server::{environment, policy};
use crate::tables::ToolTable;
use crate::value::{Source, Spanned};

/// Keys that are taken over as they are.
const PLAIN: [&str; 10] = [
    "timeout",
    "concurrency",
    "page_size",
    "max_message",
    "tool_names",
    "floor",
    "server",
    "arguments",
    "probe",
    "search",
];

/// Keys without a meaning for what is packed, or whose effect is packed.
const SILENT: [&str; 3] = ["roots", "root", "check"];

/// Keys of a sandbox with paths or users.
const PLACES: [&str; 4] = ["write", "read", "hide", "run_as"];

/// Configuration for other machines.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Portable {
    document: DocumentMut,
    /// Secrets of tools, which each machine has to provide as variables.
    pub secrets: Vec<ProvidedSecret>,
    /// Keys that were left out, such as `sandbox.data.write`.
    pub left_out: Vec<String>,
}

/// Secret of some tools.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProvidedSecret {
    /// Variable that provides it.
    pub variable: String,
    /// Pattern of the tools.
    pub tools: String,
    /// Value on this machine.
    pub value: String,
}

/// Shows no value.
impl fmt::Debug for ProvidedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProvidedSecret")
            .field("variable", &self.variable)
            .field("tools", &self.tools)
            .finish_non_exhaustive()
    }
}

impl Portable {
    /// Text of the configuration.
    #[must_use]
    pub fn text(&self) -> String {
        self.document.to_string()
    }

    /// Text of a key of `[server]`.
    #[must_use]
    pub fn server(&self, key: &str) -> Option<&str> {
        self.document.get("server")?.get(key)?.as_str()
    }

    /// Sets a key of `[server]`.
    pub fn set_server(&mut self, key: &str, value: &str) {
        table_at(&mut self.document, "server").insert(key, toml_edit::value(value));
    }

    /// Passes variables to the scripts. An optional one counts as not set while it is empty.
    pub fn pass(&mut self, variable: &str, is_optional: bool) {
        let environment = table_at(&mut self.document, "env");
        push(environment, "pass", variable);
        if is_optional {
            push(environment, "optional", variable);
        }
    }

    /// Variables that `[env]` passes to the scripts by their full names.
    #[must_use]
    pub fn passed(&self) -> Vec<String> {
        let passed = self.document.get("env").and_then(|env| env.get("pass"));
        let passed = passed.and_then(Item::as_array).into_iter().flatten();
        let names = passed.filter_map(Value::as_str);
        let names = names.filter(|name| !name.ends_with('*'));
        names.map(str::to_owned).collect()
    }
}

impl File {
    /// Part of the configuration that holds on other machines. Programs that print secrets run
    /// with `executor`.
    ///
    /// # Errors
    ///
    /// A secret has no value on this machine.
    pub async fn portable(&self, executor: &Executor) -> anyhow::Result<Portable> {
        let written: DocumentMut = self.text().parse().context("read the configuration")?;
        let mut portable = Portable {
            document: DocumentMut::new(),
            secrets: Vec::new(),
            left_out: Vec::new(),
        };
        for (key, item) in written.iter() {
            let kept = match key {
                "env" => portable.environment(item),
                "interpreter" => portable.interpreters(item),
                "sandbox" => portable.sandboxes(item),
                "tool" => self.tools(item, &mut portable, executor).await?,
                _ if PLAIN.contains(&key) => copy(item),
                _ if SILENT.contains(&key) => continue,
                _ => {
                    portable.left_out.push(key.to_owned());
                    continue;
                }
            };
            portable.document.insert(key, kept);
        }
        portable.left_out.sort();
        Ok(portable)
    }

    /// Copies `[[tool]]`, with variables in place of secrets.
    async fn tools(
        &self,
        item: &Item,
        portable: &mut Portable,
        executor: &Executor,
    ) -> anyhow::Result<Item> {
        let written = item.clone().into_array_of_tables().unwrap_or_default();
        let mut variables: BTreeMap<String, &Source> = BTreeMap::new();
        let mut kept = ArrayOfTables::new();
        for (table, tool) in written.iter().zip(&self.tables.tool) {
            let mut copied = copy_table(table, &["env"]);
            let mut environment = Table::new();
            for (name, source) in &tool.env {
                let name = name.get_ref().as_str();
                let variable = free_variable(name, source.get_ref(), &mut variables);
                let mut reference = InlineTable::new();
                match variable == name {
                    true => reference.insert("pass", true.into()),
                    false => reference.insert("variable", variable.as_str().into()),
                };
                environment.insert(name, toml_edit::value(reference));
                let secret = self.secret(tool, name, variable, source, executor).await?;
                portable.secrets.push(secret);
            }
            if !environment.is_empty() {
                copied.insert("env", Item::Table(environment));
            }
            kept.push(copied);
        }
        Ok(Item::ArrayOfTables(kept))
    }

    async fn secret(
        &self,
        tool: &ToolTable,
        name: &str,
        variable: String,
        source: &Spanned<Source>,
        executor: &Executor,
    ) -> anyhow::Result<ProvidedSecret> {
        Ok(ProvidedSecret {
            variable,
            tools: tool.pattern.get_ref().clone(),
            value: environment::value(self, name, source, Some(executor)).await?,
        })
    }

    /// Files that are not for others: the configuration, the files of its secrets, and mcpd's own.
    #[must_use]
    pub fn private_files(&self) -> Vec<PathBuf> {
        policy::hidden_files(self)
    }
}

/// Variable for a secret: that of its source, or the one of its own name, unless another secret has
/// it.
fn free_variable<'a>(
    name: &str,
    source: &'a Source,
    taken: &mut BTreeMap<String, &'a Source>,
) -> String {
    let wanted = match source {
        Source::Variable(variable) => variable,
        _ => name,
    };
    let numbered = (2..).map(|number| format!("{wanted}_{number}"));
    let mut candidates = std::iter::once(wanted.to_owned()).chain(numbered);
    let is_free = |variable: &String| {
        let known = taken.get(variable);
        known.is_none_or(|known| is_same(wanted, known, source))
    };
    let free = candidates.find(is_free).unwrap_or_default();
    taken.insert(free.clone(), source);
    free
}

/// Returns whether two sources of the variable `name` have one value.
fn is_same(name: &str, a: &Source, b: &Source) -> bool {
    let own = |source: &Source| match source {
        Source::Pass => true,
        Source::Variable(variable) => variable == name,
        _ => false,
    };
    a == b || own(a) && own(b)
}

impl Portable {
    /// Copies `[env]`, without paths.
    fn environment(&mut self, item: &Item) -> Item {
        let mut table = as_table(item);
        if let Some(set) = table.remove("set") {
            let mut kept = Table::new();
            for (name, value) in as_table(&set).iter() {
                match value.as_str().is_some_and(is_local_path) {
                    true => self.left_out.push(format!("env.set.{name}")),
                    false => drop(kept.insert(name, copy(value))),
                }
            }
            table.insert("set", Item::Table(kept));
        }
        Item::Table(table)
    }

    /// Copies the interpreters that are found by their names.
    fn interpreters(&mut self, item: &Item) -> Item {
        let mut kept = Table::new();
        for (extension, words) in as_table(item).iter() {
            let mut texts = words.as_array().into_iter().flatten();
            let is_portable = |word: &Value| {
                let word = word.as_str().unwrap_or_default();
                !is_local_path(word) && !word.starts_with('.')
            };
            match texts.all(is_portable) {
                true => drop(kept.insert(extension, copy(words))),
                false => self.left_out.push(format!("interpreter.{extension}")),
            }
        }
        Item::Table(kept)
    }

    /// Copies the sandboxes, without their users and paths except those in the home directory.
    fn sandboxes(&mut self, item: &Item) -> Item {
        let mut kept = Table::new();
        kept.set_implicit(true);
        for (name, sandbox) in as_table(item).iter() {
            let mut table = as_table(sandbox);
            for key in PLACES {
                let Some(places) = table.remove(key) else {
                    continue;
                };
                let mut paths = places.as_array().into_iter().flatten();
                let is_portable = |path: &Value| {
                    let path = path.as_str().unwrap_or_default();
                    path.starts_with("~/") && !path.contains("..")
                };
                match places.is_array() && paths.all(is_portable) {
                    true => drop(table.insert(key, copy(&places))),
                    false => self.left_out.push(format!("sandbox.{name}.{key}")),
                }
            }
            kept.insert(name, Item::Table(table));
        }
        Item::Table(kept)
    }
}

/// Returns whether a text may be a path of this machine.
fn is_local_path(text: &str) -> bool {
    text.starts_with(['/', '~']) || text.contains(":\\") || text.contains("=/")
}

fn table_at<'a>(document: &'a mut DocumentMut, key: &str) -> &'a mut Table {
    let item = document.entry(key).or_insert(Item::Table(Table::new()));
    item.as_table_mut()
        .expect("every copied table has a header of its own")
}

fn push(table: &mut Table, key: &str, text: &str) {
    let item = table.entry(key).or_insert(toml_edit::value(Array::new()));
    if let Some(array) = item.as_array_mut()
        && !array.iter().any(|known| known.as_str() == Some(text))
    {
        array.push(text);
    }
}

/// Copy of a table, whether it has a header or is in braces.
fn as_table(item: &Item) -> Table {
    let table = item.clone().into_table().unwrap_or_default();
    copy_table(&table, &[])
}

fn copy_table(table: &Table, without: &[&str]) -> Table {
    let members = table.iter().filter(|(key, _)| !without.contains(key));
    members
        .map(|(key, item)| (key.to_owned(), copy(item)))
        .collect()
}

/// Copy without comments and spaces. Tables in braces at the top get headers.
fn copy(item: &Item) -> Item {
    match item {
        Item::None => Item::None,
        Item::Value(Value::InlineTable(_)) | Item::Table(_) => Item::Table(as_table(item)),
        Item::Value(value) => Item::Value(copy_value(value)),
        Item::ArrayOfTables(tables) => {
            Item::ArrayOfTables(tables.iter().map(|table| copy_table(table, &[])).collect())
        }
    }
}

fn copy_value(value: &Value) -> Value {
    match value {
        Value::Array(values) => Value::Array(values.iter().map(copy_value).collect()),
        Value::InlineTable(table) => table
            .iter()
            .map(|(key, value)| (key.to_owned(), copy_value(value)))
            .collect::<InlineTable>()
            .into(),
        other => {
            let mut copied = other.clone();
            copied.decor_mut().clear();
            copied
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    async fn portable(text: &str) -> Portable {
        let file = File::of_text(Path::new("mcpd.toml"), text.to_owned()).unwrap();
        let executor = crate::executor(None, None).unwrap();
        file.portable(&executor).await.unwrap()
    }

    #[tokio::test]
    async fn variables_take_the_place_of_secrets() {
        let portable = portable(
            r#"
            # made by ada
            [[tool]]
            match = "a"
            timeout = 5 # slow
            env = { KEY = "s3cret-a", PATH_LIKE = { variable = "PATH" } }
            [[tool]]
            match = "b"
            [tool.env]
            KEY = "s3cret-b"
            "#,
        )
        .await;
        let text = portable.text();
        let expected = r#"
[[tool]]
match = "a"
timeout = 5

[tool.env]
KEY = { pass = true }
PATH_LIKE = { variable = "PATH" }

[[tool]]
match = "b"

[tool.env]
KEY = { variable = "KEY_2" }
"#;
        assert_eq!(text.trim(), expected.trim());
        let secrets = portable.secrets.iter();
        let secrets: Vec<_> = secrets
            .map(|secret| (&*secret.variable, &*secret.tools))
            .collect();
        assert_eq!(secrets, [("KEY", "a"), ("PATH", "a"), ("KEY_2", "b")]);
        assert_eq!(portable.secrets[2].value, "s3cret-b");
        assert!(!format!("{portable:?}").contains("s3cret"));
    }

    #[tokio::test]
    async fn paths_and_callers_of_this_machine_are_left_out() {
        let mut portable = portable(
            r#"
            roots = ["/srv/tools"]
            timeout = 30
            token_file = "/etc/token"
            listen = ["127.0.0.1:1"]
            env = { pass = ["API_*", "REGION"], set = { A = "b", HOME_DIR = "/home/ada" } }
            [server]
            name = "reports"
            [interpreter]
            py = ["python3", "-u"]
            rb = ["/opt/ruby/bin/ruby"]
            [sandbox.data]
            level = "strict"
            write = ["/srv/data"]
            read = ["~/.config/tool"]
            [[rule]]
            deny = ["*"]
            "#,
        )
        .await;
        portable.set_server("version", "1.2.3");
        assert_eq!(portable.server("name"), Some("reports"));
        assert_eq!(portable.passed(), ["REGION"]);
        portable.pass("TOKEN", true);
        portable.pass("REGION", false);
        let expected = r#"
timeout = 30

[env]
pass = ["API_*", "REGION", "TOKEN"]
optional = ["TOKEN"]

[env.set]
A = "b"

[server]
name = "reports"
version = "1.2.3"

[interpreter]
py = ["python3", "-u"]

[sandbox.data]
level = "strict"
read = ["~/.config/tool"]
"#;
        assert_eq!(portable.text().trim(), expected.trim());
        let left_out = [
            "env.set.HOME_DIR",
            "interpreter.rb",
            "listen",
            "rule",
            "sandbox.data.write",
            "token_file",
        ];
        assert_eq!(portable.left_out, left_out);
        let path = Path::new("mcpd.toml");
        File::of_text(path, portable.text()).expect("it is a configuration");
    }
}
