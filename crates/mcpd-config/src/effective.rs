//! Effective configuration with its provenance: every setting, and every key
//! of the file and its tables.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

use anyhow::Context as _;
use reqwest::Url;
use serde::Serialize;
use serde_json::{Value, json};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::file::File;
use crate::layers::Setting;
use crate::listening;
use crate::options::Serve;
use crate::schema::schema;
use crate::variables::variable;

/// Placeholder for a secret.
const SECRET: &str = "[secret]";

/// A key with its effective value.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct Effective {
    /// The full key, such as `tool[0].match`.
    pub key: String,
    /// Effective value, without secrets.
    pub value: Value,
    /// Origin of the value.
    pub origin: Origin,
    /// A reload can change the value.
    #[serde(skip)]
    pub is_reloadable: bool,
}

/// Source of a value.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Origin {
    /// A flag, by its name.
    Flag(String),
    /// A variable, by its name.
    Variable(String),
    /// A file and the line in it.
    File(String, usize),
    /// No source sets the value.
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(name) | Self::Variable(name) => f.write_str(name),
            Self::File(path, line) => write!(f, "{path}:{line}"),
            Self::Default => f.write_str("default"),
        }
    }
}

/// All values of `mcpd serve` that are set or have a default: its combined options, and the
/// settings among them.
///
/// # Errors
///
/// A variable with an address is faulty.
pub fn effective(
    serve: &Serve,
    settings: Vec<Setting>,
    file: &File,
) -> anyhow::Result<Vec<Effective>> {
    let schema = Schema(&schema());
    let mut written = file_values(file, &schema)?;
    let mut all = Vec::new();
    for setting in settings {
        let place = written.iter().position(|entry| entry.key == setting.key);
        let mut in_file = place.map(|place| written.remove(place).origin);
        if setting.key == "roots" && in_file.is_none() {
            let first = written.iter().find(|entry| entry.key == "root[0].path");
            in_file = first.map(|entry| entry.origin.clone());
        }
        if let Some(value) = setting.value.or_else(|| schema.default(setting.key)) {
            let origin = setting.origin.or(in_file).unwrap_or(Origin::Default);
            all.push(schema.effective(setting.key.to_owned(), value, origin));
        }
    }
    if let Some(listen) = listen(serve, &schema)? {
        written.retain(|entry| entry.key != listen.key);
        all.push(listen);
    }
    all.extend(written);
    let known: BTreeSet<_> = all.iter().map(|entry| entry.key.clone()).collect();
    let defaults = schema.defaults().into_iter();
    all.extend(defaults.filter(|entry| !known.contains(&entry.key)));
    Ok(all)
}

/// Effective listen addresses, if flags or variables set them: several of each share this key.
fn listen(serve: &Serve, schema: &Schema<'_>) -> anyhow::Result<Option<Effective>> {
    let wanted = listening::requested_addresses(&serve.listen, serve.port, variable)?;
    let effective = |(addresses, origin): (Vec<String>, _)| {
        schema.effective("listen".to_owned(), json!(addresses), origin)
    };
    Ok(wanted.map(effective))
}

/// The schema, with references resolved.
struct Schema<'a>(&'a Value);

impl<'a> Schema<'a> {
    /// Default of a key such as `log.filter`.
    fn default(&self, key: &str) -> Option<Value> {
        let inner = |table, key| &self.resolve(table)["properties"][key];
        key.split('.').fold(self.0, inner).get("default").cloned()
    }

    /// Schema of a key in a table.
    fn inner(&self, table: &'a Value, key: &str) -> &'a Value {
        let table = self.resolve(table);
        match &table["properties"][key] {
            Value::Null => self.resolve(&table["additionalProperties"]),
            property => self.resolve(property),
        }
    }

    fn resolve(&self, schema: &'a Value) -> &'a Value {
        match schema["$ref"].as_str() {
            Some(reference) => self.0.pointer(&reference[1..]).unwrap_or(schema),
            None => schema,
        }
    }

    fn effective(&self, key: String, value: Value, origin: Origin) -> Effective {
        Effective {
            is_reloadable: self.is_reloadable(&key),
            key,
            value,
            origin,
        }
    }

    /// Returns whether a key such as `tool[0].match`, or a table that it is in, has the mark of
    /// those that a reload can change.
    fn is_reloadable(&self, key: &str) -> bool {
        let mut table = self.0;
        key.split('.').any(|part| {
            let (name, is_item) = match part.split_once('[') {
                Some((name, _)) => (name, true),
                None => (part, false),
            };
            let property = &self.resolve(table)["properties"][name];
            table = if is_item {
                &property["items"]
            } else {
                property
            };
            property["x-reload"] == true
        })
    }

    fn is_secret(&self, schema: &Value) -> bool {
        std::ptr::eq(schema, &raw const self.0["$defs"]["Secret"])
    }

    /// Defaults of all keys that every configuration has.
    fn defaults(&self) -> Vec<Effective> {
        let mut defaults = Vec::new();
        self.add_defaults("", self.0, &mut defaults);
        defaults
    }

    fn add_defaults(&self, prefix: &str, table: &'a Value, defaults: &mut Vec<Effective>) {
        for (key, property) in table["properties"].as_object().into_iter().flatten() {
            let key = format!("{prefix}{key}");
            if let Some(value) = property.get("default") {
                defaults.push(self.effective(key, value.clone(), Origin::Default));
            } else {
                self.add_defaults(&format!("{key}."), self.resolve(property), defaults);
            }
        }
    }
}

/// Values in the file, in its order.
fn file_values(file: &File, schema: &Schema<'_>) -> anyhow::Result<Vec<Effective>> {
    let table = DeTable::parse(file.text()).context("read the configuration")?;
    let mut entries = Vec::new();
    add_table("", table.get_ref(), schema, schema.0, &mut entries);
    entries.sort_by_key(|(place, ..)| place.start);
    let path = file
        .path()
        .map(|path| path.display().to_string())
        .unwrap_or_default();
    let entry = |(place, key, value): (Range<usize>, _, _)| {
        schema.effective(
            key,
            value,
            Origin::File(path.clone(), file.line(place.start)),
        )
    };
    Ok(entries.into_iter().map(entry).collect())
}

type Entries = Vec<(Range<usize>, String, Value)>;

fn add_table<'a>(
    prefix: &str,
    table: &DeTable<'_>,
    schema: &Schema<'a>,
    at: &'a Value,
    entries: &mut Entries,
) {
    for (key, value) in table {
        let inner = schema.inner(at, key.get_ref());
        let key = format!("{prefix}{}", key.get_ref());
        add(key, value, schema, inner, entries);
    }
}

fn add<'a>(
    key: String,
    value: &Spanned<DeValue<'_>>,
    schema: &Schema<'a>,
    at: &'a Value,
    entries: &mut Entries,
) {
    match value.get_ref() {
        DeValue::Table(table) => add_table(&format!("{key}."), table, schema, at, entries),
        DeValue::Array(array) if array.iter().any(|one| one.get_ref().is_table()) => {
            let at = schema.resolve(&at["items"]);
            for (place, one) in array.iter().enumerate() {
                add(format!("{key}[{place}]"), one, schema, at, entries);
            }
        }
        _ if schema.is_secret(at) => entries.push((value.span(), key, json!(SECRET))),
        DeValue::String(url) if at["format"] == "uri" => {
            entries.push((value.span(), key, json!(shown_url(url))));
        }
        plain => entries.push((value.span(), key, plain_value(plain))),
    }
}

/// URL without the parts that may be secret.
pub fn shown_url(text: &str) -> String {
    let url = Url::parse(text).ok();
    let Some(mut url) = url.filter(Url::has_host) else {
        return SECRET.to_owned();
    };
    let has_user = !url.username().is_empty() || url.password().is_some();
    let has_query = url.query().is_some() || url.fragment().is_some();
    if !has_user && !has_query {
        return text.to_owned();
    }
    // These setters fail only for a URL without a host.
    url.set_username("").ok();
    url.set_password(None).ok();
    url.set_query(None);
    url.set_fragment(None);
    let mut shown = url.to_string();
    if has_user {
        shown = shown.replacen("://", &format!("://{SECRET}@"), 1);
    }
    if has_query {
        shown += &format!("?{SECRET}");
    }
    shown
}

fn plain_value(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => json!(text),
        DeValue::Boolean(is_on) => json!(is_on),
        DeValue::Integer(number) => number.to_string().parse().unwrap_or(Value::Null),
        DeValue::Float(number) => number.to_string().parse().unwrap_or(Value::Null),
        DeValue::Array(array) => array.iter().map(|one| plain_value(one.get_ref())).collect(),
        DeValue::Datetime(time) => json!(time.to_string()),
        DeValue::Table(_) => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(url: &str, expected: &str) {
        assert_eq!(shown_url(url), expected);
    }

    #[test]
    fn url_secrets_are_hidden() {
        check("https://a.example", "https://a.example");
        check("http://[::1]:80/mcp", "http://[::1]:80/mcp");
        check(
            "https://a.example/mcp?key=s3cret",
            "https://a.example/mcp?[secret]",
        );
        check("https://a.example#s3cret", "https://a.example/?[secret]");
        check(
            "https://ada:s3cret@a.example:1/mcp",
            "https://[secret]@a.example:1/mcp",
        );
        check("https://s3cret@a.example/@", "https://[secret]@a.example/@");
        check("ada:s3cret@a.example", "[secret]");
        check("//ada:s3cret@a.example", "[secret]");
    }
}
