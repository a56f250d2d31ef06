//! Server of MCP as mcpd writes it to a client's file, and as it reads one from there.

use std::collections::BTreeMap;

use serde_json::Value;

/// Server to write to the file of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Server {
    /// Name of the entry.
    pub name: String,
    /// Way to reach the server.
    pub transport: Transport,
}

/// Way in which a client reaches a server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Transport {
    /// The client starts a program and talks to it over its standard input and output.
    #[non_exhaustive]
    Stdio {
        /// Program: an absolute path, as graphical clients have hardly any PATH.
        command: String,
        /// Arguments.
        args: Vec<String>,
        /// Variables with their values; not for secrets.
        env: BTreeMap<String, String>,
        /// Variables whose values the client takes from its own environment.
        pass_env: Vec<String>,
    },
    /// The client connects to a URL.
    #[non_exhaustive]
    Http {
        /// URL of the server.
        url: String,
        /// Variable of the client's environment that has the bearer token.
        token_variable: Option<String>,
    },
}

impl Server {
    /// Server that the client starts.
    pub fn stdio<I: IntoIterator<Item: Into<String>>>(
        name: impl Into<String>,
        command: impl Into<String>,
        args: I,
    ) -> Self {
        let transport = Transport::Stdio {
            command: command.into(),
            args: args.into_iter().map(Into::into).collect(),
            env: BTreeMap::new(),
            pass_env: Vec::new(),
        };
        Self {
            name: name.into(),
            transport,
        }
    }

    /// Server that the client connects to.
    pub fn http(name: impl Into<String>, url: impl Into<String>) -> Self {
        let transport = Transport::Http {
            url: url.into(),
            token_variable: None,
        };
        Self {
            name: name.into(),
            transport,
        }
    }

    /// Sets a variable of a server that the client starts.
    #[must_use]
    pub fn set_env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        if let Transport::Stdio { env, .. } = &mut self.transport {
            env.insert(name.into(), value.into());
        }
        self
    }

    /// Passes a variable of the client's environment to a server that the client starts.
    #[must_use]
    pub fn pass_env(mut self, name: impl Into<String>) -> Self {
        if let Transport::Stdio { pass_env, .. } = &mut self.transport {
            pass_env.push(name.into());
        }
        self
    }

    /// Sends the value of a variable as the bearer token to a server at a URL.
    #[must_use]
    pub fn send_token(mut self, variable: impl Into<String>) -> Self {
        if let Transport::Http { token_variable, .. } = &mut self.transport {
            *token_variable = Some(variable.into());
        }
        self
    }
}

/// Entry of a client's file.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct InstalledServer {
    /// Name of the entry.
    pub name: String,
    /// Way to reach the server.
    pub connection: Connection,
    /// The client uses it: it is not switched off in the file.
    pub is_enabled: bool,
    /// The entry as it is.
    pub entry: Value,
}

/// Way in which an entry of a client's file reaches its server. References to variables are left
/// as they are written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Connection {
    /// The client starts a program.
    #[non_exhaustive]
    Stdio {
        /// Program.
        command: String,
        /// Arguments.
        args: Vec<String>,
        /// Variables with their values.
        env: BTreeMap<String, String>,
        /// Variables whose values come from the client's environment.
        pass_env: Vec<String>,
    },
    /// The client connects to a URL.
    #[non_exhaustive]
    Http {
        /// URL of the server.
        url: String,
        /// Headers of each request.
        headers: BTreeMap<String, String>,
        /// Variable that has the bearer token, where the file names it outside the headers.
        token_variable: Option<String>,
    },
    /// The entry has a form that is not known.
    Unknown,
}

/// Difference between an entry and what an installation would write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Drift {
    /// There is no entry of that name.
    Missing,
    /// An installation would change nothing.
    Same,
    /// An installation would change the entry.
    Differs,
}

impl InstalledServer {
    /// Reads an entry in any of the forms that clients have.
    pub(crate) fn read(name: &str, entry: Value) -> Self {
        let url = ["url", "httpUrl", "serverUrl", "uri", "baseUrl"]
            .into_iter()
            .find_map(|key| entry.get(key)?.as_str());
        let connection = match (Self::words(&entry), url) {
            (Some((command, args)), _) => Connection::Stdio {
                command,
                args,
                env: first_object(&entry, &["env", "envs", "environment"]),
                pass_env: ["env_vars", "env_keys"]
                    .into_iter()
                    .find_map(|key| strings(entry.get(key)?))
                    .unwrap_or_default(),
            },
            (None, Some(url)) => Connection::Http {
                url: url.to_owned(),
                headers: first_object(
                    entry.get("requestOptions").unwrap_or(&entry),
                    &["headers", "http_headers"],
                ),
                token_variable: entry
                    .get("bearer_token_env_var")
                    .and_then(Value::as_str)
                    .map(str::to_owned),
            },
            (None, None) => Connection::Unknown,
        };
        let is_enabled = entry
            .get("enabled")
            .and_then(Value::as_bool)
            .unwrap_or(true)
            && !entry
                .get("disabled")
                .and_then(Value::as_bool)
                .unwrap_or(false);
        Self {
            name: name.to_owned(),
            connection,
            is_enabled,
            entry,
        }
    }

    /// Program and arguments.
    fn words(entry: &Value) -> Option<(String, Vec<String>)> {
        let mut words = match entry.get("command").or_else(|| entry.get("cmd"))? {
            Value::String(command) => vec![command.clone()],
            list => strings(list)?,
        };
        words.extend(entry.get("args").and_then(strings).unwrap_or_default());
        let mut words = words.into_iter();
        Some((words.next()?, words.collect()))
    }
}

fn strings(value: &Value) -> Option<Vec<String>> {
    value
        .as_array()?
        .iter()
        .map(|item| item.as_str().map(str::to_owned))
        .collect()
}

fn first_object(entry: &Value, keys: &[&str]) -> BTreeMap<String, String> {
    let object = keys.iter().find_map(|key| entry.get(key)?.as_object());
    let text = |value: &Value| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    };
    object
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.clone(), text(value)))
        .collect()
}
