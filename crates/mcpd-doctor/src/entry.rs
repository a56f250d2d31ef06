//! Servers in the configurations of clients: found, reached as an entry says, and shown.

use std::collections::BTreeMap;
use std::env;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use mcpd_clients::{Client, Connection, InstalledServer, Places, Platform, Scope, file};
use mcpd_server::policy::Environment;
use mcpd_upstream::{Address, Program, Upstream};

/// Parts of names of flags and variables with secrets.
const SECRET_NAMES: [&str; 5] = ["key", "token", "secret", "password", "auth"];

/// Servers in the files of a client, and why others can't be read.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Entries {
    /// The servers, each with the scope of its file.
    pub servers: Vec<(Scope, InstalledServer)>,
    /// Faults of files, each as a sentence.
    pub faults: Vec<String>,
}

/// Directories of this user, and the working directory as the project.
///
/// # Errors
///
/// There is no home directory, or no working directory.
pub fn places() -> anyhow::Result<Places> {
    let home = env::home_dir().context("find the home directory")?;
    let project = env::current_dir().context("find the working directory")?;
    let places = Places::new(Platform::current(), home);
    Ok(places
        .with_variables(own_environment())
        .with_project(project))
}

/// Environment of this process, as far as it is text.
#[must_use]
pub fn own_environment() -> BTreeMap<String, String> {
    let text = env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    text.collect()
}

/// Path of this program that survives an update: the one in `PATH`, if it leads here.
///
/// # Errors
///
/// The path of this program is unknown.
pub fn stable_program() -> anyhow::Result<PathBuf> {
    let own = env::current_exe().context("find the path of mcpd")?;
    let canonical = own.canonicalize().unwrap_or_else(|_| own.clone());
    let name = own.file_name().unwrap_or_default();
    let path = env::var_os("PATH").unwrap_or_default();
    let stable = env::split_paths(&path)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(name))
        .find(|file| file.canonicalize().is_ok_and(|file| file == canonical));
    Ok(stable.unwrap_or(own))
}

/// Directories of programs that a script may need: those of this shell, as desktops know none.
#[must_use]
pub fn search_path() -> String {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut known: Vec<PathBuf> = Vec::new();
    for directory in env::split_paths(&path) {
        if directory.is_absolute() && directory.is_dir() && !known.contains(&directory) {
            known.push(directory);
        }
    }
    let joined = env::join_paths(known).unwrap_or(path);
    joined.to_string_lossy().into_owned()
}

/// Servers in the files of a client, the user's first: a project is often written by others.
#[must_use]
pub fn of_client(client: &'static Client, places: &Places) -> Entries {
    let mut entries = Entries::default();
    let scopes = [Scope::User, Scope::Local, Scope::Project];
    let files = scopes.map(|scope| (scope, client.files(scope, places)));
    let files = files
        .into_iter()
        .flat_map(|(scope, files)| files.into_iter().map(move |file| (scope, file)));
    for (scope, file) in files {
        let read = file::read(file.path())
            .map_err(anyhow::Error::from)
            .and_then(|text| Ok(file.installed_servers(&text.unwrap_or_default())?));
        match read {
            Ok(servers) => {
                let servers = servers.into_iter().map(|server| (scope, server));
                entries.servers.extend(servers);
            }
            Err(error) => {
                let path = file.path().display();
                entries
                    .faults
                    .push(format!("failed to read `{path}`: {error:#}"));
            }
        }
    }
    entries
}

/// Finds a server of a client, with the scope of its file: others may have written that of a
/// project.
///
/// # Errors
///
/// There is none of that name, or a file can't be read.
pub fn find(client: &'static Client, name: &str) -> anyhow::Result<(Scope, Connection)> {
    let Entries { servers, faults } = of_client(client, &places()?);
    if let Some((scope, server)) = servers.iter().find(|(_, server)| server.name == name) {
        return Ok((*scope, server.connection.clone()));
    }
    let known: Vec<_> = servers.iter().map(|(_, server)| &*server.name).collect();
    let hint = match (&known[..], &faults[..]) {
        ([], []) => "it has none".to_owned(),
        ([], faults) => faults.join("; "),
        (known, _) => format!("it has `{}`", known.join("`, `")),
    };
    bail!("find the server `{name}` of {}: {hint}", client.title())
}

/// Reaches a server as an entry says, in the environment of these variables. Messages call it
/// `name`.
///
/// # Errors
///
/// The entry has an unknown form, or a header needs a variable that is not there.
pub fn upstream(
    name: &str,
    connection: &Connection,
    variables: &BTreeMap<String, String>,
) -> anyhow::Result<Upstream> {
    match &connection.resolve(variables) {
        Connection::Stdio { command, args, .. } => {
            let environment = connection.environment(variables);
            Ok(program(name, command, args, environment))
        }
        Connection::Http {
            url,
            headers,
            token_variable,
            ..
        } => {
            let mut address = Address::new(url)?;
            for (header, value) in headers {
                if value.contains("${") {
                    bail!(
                        "use the header `{header}` of the entry: `{value}` is not known here; set the variable, or use the URL with `--token-env`"
                    );
                }
                address = address.header(header, value)?;
            }
            if let Some(token) = token_variable.as_ref().and_then(|name| variables.get(name)) {
                address = address.token(token);
            }
            Ok(Upstream::http(name, address))
        }
        _ => bail!("use the entry: it has an unknown form"),
    }
}

/// Server that is started in this environment alone, as clients start theirs.
pub fn program(
    name: &str,
    command: &str,
    args: &[String],
    environment: BTreeMap<String, String>,
) -> Upstream {
    let nothing = Environment::of_this_process().drop("*");
    let environment = environment
        .into_iter()
        .fold(nothing, |all, (name, value)| all.set(name, value));
    let program = Program::new(command).args(args).environment(environment);
    Upstream::stdio(name, program)
}

/// Returns whether a text can be the name of a variable.
#[must_use]
pub fn is_variable_name(name: &str) -> bool {
    let is_word = |char: char| char.is_ascii_alphanumeric() || char == '_';
    name.starts_with(|char: char| char.is_ascii_alphabetic() || char == '_')
        && name.chars().all(is_word)
}

/// Returns whether a flag or a variable of this name has a secret, most likely.
#[must_use]
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_lowercase();
    SECRET_NAMES.iter().any(|part| name.contains(part))
}

/// Describes where an entry leads, without what may be a secret.
#[must_use]
pub fn describe(connection: &Connection) -> String {
    match connection {
        Connection::Stdio { command, args, .. } => {
            let words = without_secrets(args);
            let words = std::iter::once(command.as_str()).chain(words.iter().map(String::as_str));
            // Words from files have no NUL, which is the only unquotable character.
            shlex::try_join(words).unwrap_or_default()
        }
        Connection::Http { url, .. } => mcpd_config::shown_url(url),
        _ => "an entry of unknown form".to_owned(),
    }
}

/// Arguments without the values of flags such as `--api-key`.
fn without_secrets(args: &[String]) -> Vec<String> {
    let mut shown = Vec::new();
    let mut hides_next = false;
    for arg in args {
        let is_flag = arg.starts_with('-');
        let text = match arg.split_once('=') {
            Some((name, _)) if is_secret_name(name) => format!("{name}=[secret]"),
            _ if hides_next && !is_flag => "[secret]".to_owned(),
            _ if arg.contains("://") => mcpd_config::shown_url(arg),
            _ => arg.clone(),
        };
        hides_next = is_flag && !arg.contains('=') && is_secret_name(arg) && !arg.ends_with("-env");
        shown.push(text);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_among_arguments_are_hidden() {
        let args = [
            "-y",
            "server",
            "--api-key",
            "s1",
            "--token=s2",
            "--port",
            "1",
            "https://a:s3@b.example/x?k=s4",
        ];
        let shown = without_secrets(&args.map(str::to_owned)).join(" ");
        assert_eq!(
            shown,
            "-y server --api-key [secret] --token=[secret] --port 1 https://[secret]@b.example/x?[secret]"
        );
    }
}
