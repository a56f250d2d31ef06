//! Form of an entry in a client's file: the names of its keys, and the settings it needs besides.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{Client, ClientError, Reference};
use crate::{Server, Transport};

/// Names of the keys of an entry.
#[derive(Debug)]
pub(super) struct Form {
    /// Has the name of the server in the entry, too.
    pub(super) has_name: bool,
    pub(super) stdio: StdioForm,
    pub(super) http: Option<HttpForm>,
    /// Settings that every entry needs, with the values of a new one.
    pub(super) defaults: &'static [(&'static str, Default)],
}

#[derive(Debug)]
pub(super) struct StdioForm {
    /// Value of `type`.
    pub(super) kind: Option<&'static str>,
    /// Key of the program; of the program and its arguments if `args` is empty.
    pub(super) command: &'static str,
    pub(super) args: &'static str,
    pub(super) env: &'static str,
    /// Key of the names of variables to pass, if they are no references among the others.
    pub(super) pass_env: Option<&'static str>,
}

#[derive(Debug)]
pub(super) struct HttpForm {
    /// Value of `type`.
    pub(super) kind: Option<&'static str>,
    pub(super) url: &'static str,
    pub(super) token: TokenForm,
}

/// Place of a bearer token.
#[derive(Debug, Clone, Copy)]
pub(super) enum TokenForm {
    /// `headers` of the entry.
    Header,
    /// `requestOptions.headers`.
    RequestOptions,
    /// A key that has the name of the variable.
    Variable(&'static str),
    /// `headers` with `${NAME}`, and a list of names that may be referred to.
    Listed(&'static str),
}

/// Value of a setting in a new entry.
#[derive(Debug, Clone, Copy)]
pub(super) enum Default {
    Bool(bool),
    Number(u64),
    Text(&'static str),
    /// `["*"]`.
    All,
}

/// Keys that belong to the server: an installation replaces them, and deletes those it does not
/// write.
const OWN_KEYS: [&str; 19] = [
    "name",
    "type",
    "command",
    "cmd",
    "args",
    "env",
    "envs",
    "environment",
    "env_vars",
    "env_keys",
    "url",
    "uri",
    "httpUrl",
    "serverUrl",
    "baseUrl",
    "headers",
    "http_headers",
    "requestOptions",
    "bearer_token_env_var",
];

impl Form {
    pub(super) fn render(&self, client: &Client, server: &Server) -> Result<Value, ClientError> {
        let mut entry = Map::new();
        if self.has_name {
            entry.insert("name".to_owned(), json!(server.name));
        }
        match &server.transport {
            Transport::Stdio {
                command,
                args,
                env,
                pass_env,
            } => {
                let kind = self.stdio.kind.map(|kind| ("type".to_owned(), json!(kind)));
                entry.extend(kind);
                self.stdio.render_words(&mut entry, command, args);
                self.stdio.render_env(&mut entry, client, env, pass_env)?;
            }
            Transport::Http {
                url,
                token_variable,
            } => {
                let form = self.http.as_ref().ok_or(ClientError::NoHttp {
                    client: client.title,
                })?;
                let kind = form.kind.map(|kind| ("type".to_owned(), json!(kind)));
                entry.extend(kind);
                entry.insert(form.url.to_owned(), json!(url));
                if let Some(variable) = token_variable {
                    form.render_token(&mut entry, client, variable)?;
                }
            }
        }
        for (key, default) in self.defaults {
            entry.insert((*key).to_owned(), default.value());
        }
        Ok(Value::Object(entry))
    }

    pub(super) fn update(&self, old: &Value, new: Value) -> Value {
        let (Value::Object(old), Value::Object(mut new)) = (old, new.clone()) else {
            return new;
        };
        let is_default = |key: &str| self.defaults.iter().any(|(name, _)| *name == key);
        let mut entry = Map::new();
        for (key, value) in old {
            let replacement = new.shift_remove(key);
            let is_own = OWN_KEYS.contains(&key.as_str()) && !is_default(key);
            match replacement {
                Some(replacement) if is_own => entry.insert(key.clone(), replacement),
                None if is_own => None,
                Some(_) | None => entry.insert(key.clone(), value.clone()),
            };
        }
        entry.extend(new);
        Value::Object(entry)
    }
}

impl StdioForm {
    fn render_words(&self, entry: &mut Map<String, Value>, command: &str, args: &[String]) {
        if self.args.is_empty() {
            let words: Vec<&str> = std::iter::once(command)
                .chain(args.iter().map(String::as_str))
                .collect();
            entry.insert(self.command.to_owned(), json!(words));
        } else {
            entry.insert(self.command.to_owned(), json!(command));
            entry.insert(self.args.to_owned(), json!(args));
        }
    }

    fn render_env(
        &self,
        entry: &mut Map<String, Value>,
        client: &Client,
        env: &BTreeMap<String, String>,
        pass_env: &[String],
    ) -> Result<(), ClientError> {
        let is_ignored = |name: &&String| client.ignored.contains(&name.as_str());
        let is_withheld =
            |name: &&String| is_ignored(name) || client.withheld.contains(&name.as_str());
        let mut lost = env
            .keys()
            .filter(is_ignored)
            .chain(pass_env.iter().filter(is_withheld));
        if let Some(variable) = lost.next() {
            return Err(ClientError::IgnoredVariable {
                client: client.title,
                variable: variable.clone(),
            });
        }
        let mut all: Map<String, Value> = env
            .iter()
            .map(|(name, value)| (name.clone(), json!(value)))
            .collect();
        if self.pass_env.is_none() {
            for variable in pass_env {
                let reference =
                    client
                        .reference
                        .to(variable)
                        .ok_or_else(|| ClientError::NoReference {
                            client: client.title,
                            variable: variable.clone(),
                        })?;
                all.insert(variable.clone(), json!(reference));
            }
        }
        if !all.is_empty() {
            entry.insert(self.env.to_owned(), Value::Object(all));
        }
        if let Some(key) = self.pass_env.filter(|_| !pass_env.is_empty()) {
            entry.insert(key.to_owned(), json!(pass_env));
        }
        Ok(())
    }
}

impl HttpForm {
    fn render_token(
        &self,
        entry: &mut Map<String, Value>,
        client: &Client,
        variable: &str,
    ) -> Result<(), ClientError> {
        let reference = match client.reference {
            Reference::Input => Some(format!("${{input:{}}}", input_id(variable))),
            reference => reference.to(variable),
        };
        let bearer = |reference: String| json!({ "Authorization": format!("Bearer {reference}") });
        let missing = || ClientError::NoReference {
            client: client.title,
            variable: variable.to_owned(),
        };
        match self.token {
            TokenForm::Header => {
                entry.insert("headers".to_owned(), bearer(reference.ok_or_else(missing)?));
            }
            TokenForm::RequestOptions => {
                let headers = bearer(reference.ok_or_else(missing)?);
                entry.insert("requestOptions".to_owned(), json!({ "headers": headers }));
            }
            TokenForm::Variable(key) => {
                entry.insert(key.to_owned(), json!(variable));
            }
            TokenForm::Listed(key) => {
                entry.insert("headers".to_owned(), bearer(format!("${{{variable}}}")));
                entry.insert(key.to_owned(), json!([variable]));
            }
        }
        Ok(())
    }
}

impl Default {
    fn value(self) -> Value {
        match self {
            Self::Bool(value) => json!(value),
            Self::Number(value) => json!(value),
            Self::Text(value) => json!(value),
            Self::All => json!(["*"]),
        }
    }
}

/// Name of the input that asks for the value of a variable: `mcpd-token` for `MCPD_TOKEN`.
pub(crate) fn input_id(variable: &str) -> String {
    variable.to_ascii_lowercase().replace('_', "-")
}
