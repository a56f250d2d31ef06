//! Launch of a server as its client does it: the variables that the client passes, and references
//! to variables in the entry.
//!
//! ```
//! use std::collections::BTreeMap;
//!
//! use mcpd_clients::{Client, Connection, Places, Platform, Scope};
//!
//! let cursor = Client::find("cursor").expect("a known client");
//! let places = Places::new(Platform::Linux, "/home/ada");
//! let file = cursor.file(Scope::User, &places, "").expect("it has such a file");
//! let servers = file.installed_servers(
//!     r#"{"mcpServers": {"db": {"command": "db", "env": {"KEY": "${env:DB_KEY}"}}}}"#,
//! )?;
//! let own = [("DB_KEY", "1"), ("HOME", "/home/ada"), ("LESS", "-R")];
//! let own: BTreeMap<_, _> = own.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
//! assert_eq!(servers[0].connection.environment(&own)["KEY"], "1");
//!
//! // A desktop starts the client, and does not pass what a shell has.
//! let started = cursor.variables(&servers[0].connection, own);
//! assert!(started.contains_key("HOME") && !started.contains_key("LESS"));
//! # Ok::<(), mcpd_clients::edit::EditError>(())
//! ```

use std::collections::BTreeMap;

use crate::{Client, Connection};

/// `PATH` of programs that a desktop starts.
const DESKTOP_PATH: &str = "/usr/bin:/bin:/usr/sbin:/sbin";

/// Variables that a desktop gives to every program.
const DESKTOP_VARIABLES: [&str; 7] = [
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "SHELL",
    "TMPDIR",
    "XDG_RUNTIME_DIR",
];

/// Variables that Windows programs cannot do without.
const SYSTEM_VARIABLES: [&str; 4] = ["SystemRoot", "APPDATA", "LOCALAPPDATA", "USERPROFILE"];

/// Name of the directory of a project, which a client of the family of Visual Studio Code has open.
const WORKSPACE_FOLDER: &str = "workspaceFolder";

impl Client {
    /// Variables that the client starts the server of an entry with, without those of the entry.
    /// `own` are those of a shell: a client in a terminal passes all of them.
    #[must_use]
    pub fn variables(
        &self,
        connection: &Connection,
        mut own: BTreeMap<String, String>,
    ) -> BTreeMap<String, String> {
        if !self.is_graphical() {
            return own;
        }
        let passed = match connection {
            Connection::Stdio { pass_env, .. } => &pass_env[..],
            _ => &[],
        };
        own.retain(|name, _| {
            let name = name.as_str();
            DESKTOP_VARIABLES.contains(&name)
                || SYSTEM_VARIABLES.contains(&name)
                || passed.iter().any(|passed| passed == name)
                || cfg!(windows) && name.eq_ignore_ascii_case("PATH")
        });
        if cfg!(unix) {
            own.insert("PATH".to_owned(), DESKTOP_PATH.to_owned());
        }
        own
    }
}

impl Connection {
    /// Environment of the program, which the client starts with these `variables`.
    #[must_use]
    pub fn environment(&self, variables: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let mut all = variables.clone();
        if let Self::Stdio { env, .. } = self {
            all.extend(resolve_values(env, variables));
        }
        all
    }

    /// The connection with these `variables` in place of references to them. References to other
    /// variables stay as they are.
    #[must_use]
    pub fn resolve(&self, variables: &BTreeMap<String, String>) -> Self {
        let mut resolved = self.clone();
        match &mut resolved {
            Self::Stdio {
                command, args, env, ..
            } => {
                *command = resolve(command, variables);
                for arg in args {
                    *arg = resolve(arg, variables);
                }
                *env = resolve_values(env, variables);
            }
            Self::Http { url, headers, .. } => {
                *url = resolve(url, variables);
                *headers = resolve_values(headers, variables);
            }
            Self::Unknown => {}
        }
        resolved
    }
}

fn resolve_values(
    values: &BTreeMap<String, String>,
    variables: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let values = values.iter();
    values
        .map(|(name, value)| (name.clone(), resolve(value, variables)))
        .collect()
}

/// Puts variables in place of `${NAME}`, `${env:NAME}` and `{env:NAME}`, and the working directory
/// in place of `${workspaceFolder}`.
fn resolve(text: &str, variables: &BTreeMap<String, String>) -> String {
    let mut result = String::new();
    let mut rest = text;
    while let Some(start) = rest.find('{') {
        let Some(length) = rest[start..].find('}') else {
            break;
        };
        let inner = &rest[start + 1..start + length];
        if inner.contains('{') {
            result += &rest[..=start];
            rest = &rest[start + 1..];
            continue;
        }
        let name = inner.strip_prefix("env:").unwrap_or(inner);
        let (before, is_reference) = match rest[..start].strip_suffix('$') {
            Some(before) => (before, true),
            None => (&rest[..start], inner.starts_with("env:")),
        };
        let project = (name == WORKSPACE_FOLDER).then(|| std::env::current_dir().ok());
        let project = project
            .flatten()
            .and_then(|directory| directory.into_os_string().into_string().ok());
        let value = project.as_ref().or_else(|| variables.get(name));
        match value.filter(|_| is_reference) {
            Some(value) => result += &format!("{before}{value}"),
            None => result += &rest[..=start + length],
        }
        rest = &rest[start + length + 1..];
    }
    result + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_resolved_in_each_form() {
        let variables = BTreeMap::from([("A".to_owned(), "1".to_owned())]);
        for (text, expected) in [
            ("x ${A} y", "x 1 y"),
            ("${env:A}{env:A}", "11"),
            ("{A} ${B} $A }{", "{A} ${B} $A }{"),
            ("Bearer ${input:token}", "Bearer ${input:token}"),
            ("{\"a\": ${A}}", "{\"a\": 1}"),
        ] {
            assert_eq!(resolve(text, &variables), expected, "{text}");
        }
    }
}
