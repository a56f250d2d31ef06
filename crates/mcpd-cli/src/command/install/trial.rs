//! `mcpd install CLIENT --check`: starts exactly what the file says, as the client would.

use std::collections::BTreeMap;

use anyhow::{Context as _, bail};
use mcpd_clients::{Client, ConfigFile, Connection};
use mcpd_exec::{Command, Ending};
use mcpd_upstream::Upstream;

use crate::command::{target, with_server};
use crate::exit_code::ExitCode;
use crate::output;

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

/// Starts the entry `name` of the file, lists its tools, and checks its scripts.
pub(super) async fn run(target: &ConfigFile, text: &str, name: &str) -> anyhow::Result<ExitCode> {
    let path = target.path().display();
    let servers = target
        .installed_servers(text)
        .with_context(|| format!("read `{path}`"))?;
    let server = servers.into_iter().find(|server| server.name == name);
    let Some(server) = server else {
        bail!("check `{name}`: it is not in `{path}`; install it first");
    };
    let variables = variables(target.client(), &server.connection);
    let listed = list_tools(target::upstream(&server.connection, &variables)?).await?;
    let checked = match &server.connection {
        Connection::Stdio {
            command, args, env, ..
        } => {
            let mut variables = variables;
            variables.extend(env.clone());
            check_scripts(command, args, &variables).await?
        }
        _ => true,
    };
    Ok(match listed && checked {
        true => ExitCode::Success,
        false => ExitCode::Failure,
    })
}

/// Environment in which the client starts a server.
fn variables(client: &Client, connection: &Connection) -> BTreeMap<String, String> {
    let mut all = target::own_environment();
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
    command: &str,
    args: &[String],
    variables: &BTreeMap<String, String>,
) -> anyhow::Result<bool> {
    let [verb, rest @ ..] = args else {
        return Ok(true);
    };
    if verb != "stdio" {
        return Ok(true);
    }
    let executor = mcpd_config::executor(None, None)?;
    let words = ["check"].into_iter().chain(rest.iter().map(String::as_str));
    let command = Command::new(command).args(words).env_clear();
    let command = variables
        .iter()
        .fold(command, |command, (name, value)| command.env(name, value));
    let outcome = executor.run(command).await.context("check the scripts")?;
    output::write(&outcome.stdout.whole().unwrap_or_default())?;
    Ok(outcome.ending == Ending::Exited(0))
}
