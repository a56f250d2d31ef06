//! `mcpd install CLIENT --check`: starts exactly what the file says, as the client would.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use mcpd_clients::{ConfigFile, Connection, Scope};
use mcpd_exec::{Command, Ending};
use mcpd_upstream::Upstream;

use crate::command::{entry, target, with_server};
use crate::exit_code::ExitCode;
use crate::output;

/// Starts the entry `name` of the file, lists its tools, and checks its scripts.
pub(super) async fn run(file: &ConfigFile, text: &str, name: &str) -> anyhow::Result<ExitCode> {
    let path = file.path().display();
    let servers = file
        .installed_servers(text)
        .with_context(|| format!("read `{path}`"))?;
    let server = servers.into_iter().find(|server| server.name == name);
    let Some(server) = server else {
        bail!("check `{name}`: it is not in `{path}`; install it first");
    };
    let connection = &server.connection;
    let mut variables = file
        .client()
        .variables(connection, entry::own_environment());
    if file.scope() == Scope::Project && file.client().has_shell_path() {
        variables.extend(env::var("PATH").map(|path| ("PATH".to_owned(), path)));
    }
    let listed = list_tools(entry::upstream(name, connection, &variables)?).await?;
    let checked = match connection.resolve(&variables) {
        Connection::Stdio { command, args, .. } => {
            let environment = connection.environment(&variables);
            match own_program(&command, &environment) {
                Some(program) => check_scripts(&program, &args, &environment).await?,
                None => true,
            }
        }
        _ => true,
    };
    Ok(match listed && checked {
        true => ExitCode::Success,
        false => ExitCode::Failure,
    })
}

/// Path of the program of an entry, if it is this one.
fn own_program(command: &str, environment: &BTreeMap<String, String>) -> Option<PathBuf> {
    let own = env::current_exe().and_then(|own| own.canonicalize()).ok()?;
    let is_own = |path: &PathBuf| path.canonicalize().is_ok_and(|path| path == own);
    if Path::new(command).is_absolute() {
        return Some(PathBuf::from(command)).filter(is_own);
    }
    let directories = environment.get("PATH").map(String::as_str);
    let candidates =
        env::split_paths(directories.unwrap_or_default()).map(|directory| directory.join(command));
    candidates
        .into_iter()
        .find(|path| path.exists())
        .filter(is_own)
}

/// Connects to a server, and prints its tools. Returns whether it could.
async fn list_tools(upstream: Upstream) -> anyhow::Result<bool> {
    let code = with_server(target::server(upstream), async |server| {
        let catalog = server.catalog();
        let tools = catalog.tools().iter();
        let names: Vec<_> = tools.map(|tool| format!("  {}\n", tool.path())).collect();
        let count = names.len();
        let word = if count == 1 { "tool" } else { "tools" };
        output::write_text(&format!("{count} {word}\n{}", names.concat()))?;
        Ok(ExitCode::Success)
    });
    Ok(code.await? == ExitCode::Success)
}

/// Checks the scripts of an mcpd that serves over stdio, in the environment of the client.
async fn check_scripts(
    program: &Path,
    args: &[String],
    variables: &BTreeMap<String, String>,
) -> anyhow::Result<bool> {
    let [verb, rest @ ..] = args else {
        return Ok(true);
    };
    // Other options than these two kinds are not for scripts.
    let mut words: Vec<&str> = Vec::new();
    for (place, word) in rest.iter().enumerate() {
        let is_configuration = place > 0 && rest[place - 1] == "--config";
        if word == "--config" || is_configuration || Path::new(word).is_dir() {
            words.push(word);
        }
    }
    let has_directory = rest.iter().any(|word| Path::new(word).is_dir());
    if verb != "stdio" || !has_directory {
        return Ok(true);
    }
    let executor = mcpd_config::executor(None, None)?;
    let command = Command::new(program).arg("check").args(words).env_clear();
    let command = variables
        .iter()
        .fold(command, |command, (name, value)| command.env(name, value));
    let outcome = executor.run(command).await.context("check the scripts")?;
    output::write(&outcome.stdout.whole().unwrap_or_default())?;
    output::note(&String::from_utf8_lossy(&outcome.stderr.head));
    Ok(outcome.ending == Ending::Exited(0))
}
