//! Reference of `mcpd.toml` for people, `docs/configuration-reference.md`: made from the JSON
//! Schema, and from the command line where a key is a flag as well.

use std::fmt::Write as _;
use std::fs;

use clap::{Arg, CommandFactory as _, FromArgMatches as _, Parser};
use serde_json::Value;

use super::super::schema;
use super::docs;
use crate::file::File;
use crate::layers::{Combine as _, Layers};
use crate::options::{Logging, Serve};

const INTRODUCTION: &str = "\
# Configuration reference

Every key of `mcpd.toml`, table by table.
[Configuration](configuration.md) explains what they are for, and where the file is.
A key without a default is not set unless its description says otherwise.
A [reload](configuration.md#reload) of `mcpd serve` takes over changes of the keys and tables with the mark ↻; the others need a restart.

This page is made from the [JSON Schema](schemas/mcpd.schema.json) of the file: see [testing](testing.md#generated-pages).
`mcpd config schema` prints the schema of your mcpd.

## Values

| value | is |
|---|---|
| bytes | a number, or a text with a unit: `\"64 MiB\"`, with KiB, MiB, GiB or TiB |
| seconds | a number; fractions count |
| path | a text, relative to the directory of the file; `~/` is the home directory |
| pattern | a text: `*` stands for a part of a name, `**` for any number of names, `?` for one character, `[ab]` and `{add,sub}` for either of them; after a backslash each stands for itself |
| secret | a text, or the place of one: `{ file = \"…\" }`, `{ variable = \"…\" }`, `{ pass = true }`, `{ credential = \"…\" }`, `{ keyring = \"service/account\" }` or `{ command = [\"…\"] }` ([Environment and secrets](configuration.md#environment-and-secrets)) |
";

/// Page that explains a table.
fn explanation(table: &str) -> &'static str {
    match table {
        "" => "configuration.md",
        "root" => "discovery.md#what-is-looked-at",
        "probe" => "discovery.md#probes",
        "server" => "configuration.md#identity-of-the-server",
        "tls" => "service.md#tls",
        "log" => "configuration.md#log-and-metrics",
        "check" => "check.md#choosing-rules",
        "metrics" => "observability.md",
        "env" => "configuration.md#environment-and-secrets",
        "arguments" => "configuration.md#arguments-that-clients-add",
        "sandbox" => "configuration.md#sandboxes",
        "interpreter" => "configuration.md#interpreters",
        "tool" => "configuration.md#tools",
        "token" | "certificate" => "configuration.md#clients",
        "client" => "configuration.md#credentials-of-callers",
        "oauth" => "authorization.md#tokens-of-an-issuer",
        "profile" => "configuration.md#profiles",
        "rule" => "configuration.md#rules",
        "endpoint" => "endpoints.md#endpoints-of-others",
        "upstream" => "upstreams.md",
        "cluster" => "cluster.md",
        "search" => "search.md#configuration",
        "kit" => "kit.md#the-window",
        "run_command" => "run-command.md#configuration",
        "approval" => "approval.md",
        "audit" => "audit.md#configuration",
        "limits" => "configuration.md#limits",
        other => panic!("no page explains `{other}`"),
    }
}

/// Writes the page from the schema.
struct Page<'a> {
    schema: &'a Value,
    text: String,
}

impl Page<'_> {
    /// Schema behind a reference, or the schema itself.
    fn resolve<'s>(&'s self, schema: &'s Value) -> &'s Value {
        let reference = schema["$ref"].as_str();
        reference.map_or(schema, |reference| {
            self.schema.pointer(&reference[1..]).unwrap()
        })
    }

    /// Adds a table of keys, then the tables inside it. `name` is its key, `heading` its spelling
    /// in a file.
    fn add_table(&mut self, name: &str, heading: &str, table: &Value) {
        let table = self.resolve(table).clone();
        let required = table["required"].as_array().cloned().unwrap_or_default();
        let flags = flags(name);
        let column = if flags.is_empty() { "" } else { " flag |" };
        let line = if flags.is_empty() { "" } else { "---|" };
        let head =
            format!("\n| key | value | default | description |{column}\n|---|---|---|---|{line}\n");
        self.text += &head;
        let mut inner = Vec::new();
        for (key, property) in table["properties"].as_object().unwrap() {
            if name.is_empty() && self.is_table(property) {
                continue;
            }
            let default = match &property["default"] {
                _ if required.iter().any(|name| name == key) => "required".to_owned(),
                Value::Null => String::new(),
                value => format!("`{value}`"),
            };
            let (kind, details) = (self.kind(key, property), self.details(property));
            let description = property["description"].as_str().unwrap().replace('\n', " ");
            write!(
                self.text,
                "| `{key}`{} | {kind} | {default} | {description}{details} |",
                reload_mark(property)
            )
            .unwrap();
            if !flags.is_empty() {
                let flag = flags.iter().find(|(setting, _)| setting == key);
                let flag = flag.map_or("", |(_, flag)| flag);
                write!(self.text, " {flag} |").unwrap();
            }
            self.text += "\n";
            let items = self.resolve(&property["items"]);
            if items["properties"].is_object() {
                inner.push((format!("[[{heading}.{key}]]"), items.clone()));
            }
        }
        for (heading, table) in inner {
            write!(self.text, "\n### `{heading}`\n").unwrap();
            self.add_table(&heading, &heading, &table);
        }
    }

    /// Returns whether a key is a table, or an array of tables, of its own.
    fn is_table(&self, property: &Value) -> bool {
        let of = |schema: &Value| self.resolve(schema)["properties"].is_object();
        of(property)
            || of(&property["items"])
            || of(&property["additionalProperties"])
            || property["additionalProperties"]["type"] == "array"
    }

    /// Type of a value in words.
    fn kind(&self, key: &str, property: &Value) -> String {
        let target = property["$ref"]
            .as_str()
            .and_then(|name| name.rsplit('/').next());
        match target {
            Some("Seconds") => return "seconds".to_owned(),
            Some("Remember") => return "seconds, `never` or `session`".to_owned(),
            Some("Warm") => return "boolean, or array of modules".to_owned(),
            Some("Bytes" | "Size") => return "bytes".to_owned(),
            Some("Secret") => return "secret".to_owned(),
            Some("ProbeTable") => return "table, see [`[probe]`](#probe)".to_owned(),
            _ => {}
        }
        let schema = self.resolve(property);
        if let Some(choices) = schema["oneOf"].as_array() {
            let choices: Vec<_> = choices
                .iter()
                .map(|choice| format!("`{}`", choice["const"]))
                .collect();
            return choices.join(" or ");
        }
        let is_path = [
            "path", "write", "read", "hide", "workdir", "cgroup", "roots",
        ]
        .contains(&key)
            || key.ends_with("_file")
            || ["certificate", "key", "client_ca"].contains(&key);
        match schema["type"].as_str() {
            Some("array")
                if key == "icons" || self.resolve(&schema["items"])["properties"].is_object() =>
            {
                "array of tables".to_owned()
            }
            Some("array") => format!("array of {}", plural(&self.kind(key, &schema["items"]))),
            Some("object") => {
                format!(
                    "table of {}",
                    plural(&self.kind("", &schema["additionalProperties"]))
                )
            }
            Some("string") if schema["format"] == "uri" => "URL".to_owned(),
            Some("string") if is_path => "path".to_owned(),
            Some("string")
                if ["match", "tools", "allow", "deny", "include", "exclude"].contains(&key) =>
            {
                "pattern".to_owned()
            }
            Some("string") => "text".to_owned(),
            Some("integer") => "number".to_owned(),
            Some(other) => other.to_owned(),
            None => panic!("`{key}` has no type: {schema}"),
        }
    }

    /// Meaning of each choice of a value.
    fn details(&self, property: &Value) -> String {
        let items = self.resolve(&property["items"]);
        let schema = if items.is_object() {
            items
        } else {
            self.resolve(property)
        };
        let choices = schema["oneOf"].as_array().into_iter().flatten();
        choices.fold(String::new(), |mut details, choice| {
            let description = choice["description"].as_str().unwrap().replace('\n', " ");
            let description = description.trim_end_matches('.');
            write!(details, "<br>`{}`: {description}.", choice["const"]).unwrap();
            details
        })
    }
}

/// Mark of a key that a reload can change.
fn reload_mark(property: &Value) -> &'static str {
    match property["x-reload"] == true {
        true => " ↻",
        false => "",
    }
}

fn plural(kind: &str) -> String {
    match kind {
        "seconds" | "bytes" => kind.to_owned(),
        kind if kind.starts_with('`') || kind.starts_with("array") => {
            kind.replacen("array", "arrays", 1)
        }
        kind => format!("{kind}s"),
    }
}

/// Keys of a table that are flags as well, each with its flag and its variable.
fn flags(table: &str) -> Vec<(String, String)> {
    let command = Options::command();
    let matches = command.clone().get_matches_from(["mcpd", "DIR"]);
    let mut options = Options::from_arg_matches(&matches).unwrap();
    let file = File::default();
    let mut layers = Layers::new(&command, &matches, &file);
    options.serve.combine(&mut layers);
    options.logging.combine(&mut layers);
    let argument = |id: &str| command.get_arguments().find(|a| a.get_id() == id);
    let mut flags = Vec::new();
    for setting in layers.into_settings() {
        let (inside, key) = setting.key.rsplit_once('.').unwrap_or(("", setting.key));
        if inside == table {
            let argument = argument(setting.argument).expect(setting.argument);
            flags.push((key.to_owned(), spelling(argument)));
        }
    }
    if table.is_empty() {
        flags.push(("listen".to_owned(), "`--listen`, `--port`".to_owned()));
    }
    flags
}

/// Options of the settings that are flags as well.
#[derive(Debug, Parser)]
struct Options {
    #[command(flatten)]
    serve: Serve,
    #[command(flatten)]
    logging: Logging,
}

fn spelling(argument: &Arg) -> String {
    let name = argument
        .get_long()
        .map_or("DIR".to_owned(), |long| format!("--{long}"));
    match argument.get_env() {
        Some(variable) => format!("`{name}`, `{}`", variable.display()),
        None => format!("`{name}`"),
    }
}

fn page() -> String {
    let schema = schema();
    let mut page = Page {
        schema: &schema,
        text: INTRODUCTION.to_owned(),
    };
    page.text += "\n## Keys above all tables\n";
    page.add_table("", "", &schema);
    for (name, property) in schema["properties"].as_object().unwrap() {
        if !page.is_table(property) {
            continue;
        }
        let is_array = property["items"].is_object();
        let (heading, table) = match (&property["items"], &property["additionalProperties"]) {
            (items, _) if is_array => (format!("[[{name}]]"), items.clone()),
            (_, inner) if inner.is_object() && name != "interpreter" => {
                (format!("[{name}.NAME]"), inner.clone())
            }
            _ => (format!("[{name}]"), property.clone()),
        };
        let description = property["description"].as_str().unwrap().replace('\n', " ");
        let more = page.resolve(&table)["description"]
            .as_str()
            .filter(|more| *more != description);
        let more = more.map_or(String::new(), |more| format!("\n{more}"));
        let link = explanation(name);
        write!(
            page.text,
            "\n## `{heading}`\n\n{description}{}{more}\nSee [{link}]({link}).\n",
            reload_mark(property)
        )
        .unwrap();
        if name != "interpreter" {
            page.add_table(name, name, &table);
        }
    }
    page.text
}

#[test]
fn configuration_reference_is_made_from_the_schema() {
    let file = docs().join("configuration-reference.md");
    let made = page();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&file, &made).unwrap();
    }
    assert!(
        fs::read_to_string(&file).is_ok_and(|published| published == made),
        "docs/configuration-reference.md is old: set UPDATE_DOCS=1 and test again"
    );
}
