//! Servers of others that a command line names in place of a directory.

use std::collections::BTreeMap;
use std::env;
use std::path::Path;

use anyhow::{Context as _, bail};
use mcpd_clients::{Client, Connection, InstalledServer, Places, Platform, Scope, file};
use mcpd_server::Server;
use mcpd_server::policy::Environment;
use mcpd_upstream::{Address, Program, Upstream};

use super::Requested;
use crate::args::{Remote, ServerCommand};

/// Name of the one server, in messages about it.
const NAME: &str = "server";

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

/// Server of others at a place: a URL, an entry `CLIENT:NAME`, or `-` with a command; none if the
/// place is a directory.
pub(super) fn remote_source(
    place: &Path,
    remote: &Remote,
    command: &ServerCommand,
) -> anyhow::Result<Option<Upstream>> {
    let text = place.to_str().unwrap_or_default();
    match (text, &command.words[..]) {
        ("-", [program, arguments @ ..]) => {
            let program = Program::new(program).args(arguments);
            return Ok(Some(Upstream::stdio(NAME, program)));
        }
        ("-", []) => bail!("use the server `-`: add `--` and the command that starts it"),
        (_, [_, ..]) => bail!(
            "use the command behind `--`: it needs `-` in place of `{}`",
            place.display()
        ),
        _ => {}
    }
    if text.starts_with("http://") || text.starts_with("https://") {
        let mut address = Address::new(text)?;
        if let Some(variable) = &remote.token_env {
            let token = env::var(variable).with_context(|| format!("read {variable}"))?;
            address = address.token(token);
        }
        return Ok(Some(Upstream::http(NAME, address)));
    }
    let entry = text.split_once(':').filter(|_| !place.exists());
    match entry.and_then(|(client, name)| Some((Client::find(client)?, name))) {
        Some((client, name)) => {
            let installed = installed(client, name, &places()?)?;
            Ok(Some(upstream(&installed.connection, &own_environment())?))
        }
        None => Ok(None),
    }
}

/// A server with that source alone.
pub(super) fn server(source: Upstream) -> Requested {
    Requested {
        server: Server::builder().source(source.prefix("")).watch(false),
        is_remote: true,
    }
}

/// Directories of this user, and the working directory as the project.
pub(super) fn places() -> anyhow::Result<Places> {
    let home = env::home_dir().context("find the home directory")?;
    let project = env::current_dir().context("find the working directory")?;
    let places = Places::new(Platform::current(), home);
    Ok(places
        .with_variables(own_environment())
        .with_project(project))
}

/// Environment of this process, as far as it is text.
pub(super) fn own_environment() -> BTreeMap<String, String> {
    let text = env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    text.collect()
}

/// Environment in which the client starts a server.
pub(super) fn client_variables(
    client: &Client,
    connection: &Connection,
) -> BTreeMap<String, String> {
    let mut all = own_environment();
    if !client.is_graphical() {
        return all;
    }
    let passed = match connection {
        Connection::Stdio { pass_env, .. } => &pass_env[..],
        _ => &[],
    };
    all.retain(|name, _| {
        let name = name.as_str();
        DESKTOP_VARIABLES.contains(&name)
            || SYSTEM_VARIABLES.contains(&name)
            || passed.iter().any(|passed| passed == name)
    });
    all.insert("PATH".to_owned(), DESKTOP_PATH.to_owned());
    all
}

/// Servers in the files of a client, those of the project first, each with its scope.
pub(super) fn installed_servers(
    client: &'static Client,
    places: &Places,
) -> Vec<(Scope, InstalledServer)> {
    let scopes = [Scope::Local, Scope::Project, Scope::User];
    let files = scopes
        .iter()
        .filter_map(|scope| Some((*scope, client.file(*scope, places, "")?)));
    let servers = files.flat_map(|(scope, file)| {
        let text = file::read(file.path()).ok().flatten().unwrap_or_default();
        let servers = file.installed_servers(&text).unwrap_or_default();
        servers.into_iter().map(move |server| (scope, server))
    });
    servers.collect()
}

fn installed(
    client: &'static Client,
    name: &str,
    places: &Places,
) -> anyhow::Result<InstalledServer> {
    let mut servers = installed_servers(client, places);
    if let Some(place) = servers.iter().position(|(_, server)| server.name == name) {
        return Ok(servers.remove(place).1);
    }
    let known: Vec<_> = servers.iter().map(|(_, server)| &*server.name).collect();
    let hint = match known[..] {
        [] => "it has none".to_owned(),
        _ => format!("it has `{}`", known.join("`, `")),
    };
    bail!("find the server `{name}` of {}: {hint}", client.title())
}

/// Reaches a server as an entry says, with these variables in place of references, and for a
/// program as its environment.
pub(super) fn upstream(
    connection: &Connection,
    variables: &BTreeMap<String, String>,
) -> anyhow::Result<Upstream> {
    match connection {
        Connection::Stdio {
            command, args, env, ..
        } => {
            let mut environment = Environment::of_this_process().drop("*");
            for (name, value) in variables {
                environment = environment.set(name, value);
            }
            for (name, value) in env {
                environment = environment.set(name, resolve(value, variables));
            }
            let program = Program::new(resolve(command, variables));
            let args = args.iter().map(|arg| resolve(arg, variables));
            let program = program.args(args).environment(environment);
            Ok(Upstream::stdio(NAME, program))
        }
        Connection::Http {
            url,
            headers,
            token_variable,
            ..
        } => {
            let mut address = Address::new(&resolve(url, variables))?;
            for (header, value) in headers {
                address = address.header(header, &resolve(value, variables))?;
            }
            if let Some(token) = token_variable.as_ref().and_then(|name| variables.get(name)) {
                address = address.token(token);
            }
            Ok(Upstream::http(NAME, address))
        }
        _ => bail!("use the entry: it has an unknown form"),
    }
}

/// Puts variables in place of `${NAME}`, `${env:NAME}` and `{env:NAME}`.
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
        match variables.get(name).filter(|_| is_reference) {
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
