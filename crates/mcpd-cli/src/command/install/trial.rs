//! `mcpd install CLIENT --check`: starts exactly what the file says, as the client would.

use std::collections::BTreeMap;
use std::env;

use anyhow::{Context as _, bail};
use mcpd_clients::{Client, ConfigFile, Connection};
use mcpd_exec::{Command, Ending};
use mcpd_server::Server;
use mcpd_server::policy::Environment;
use mcpd_upstream::{Address, Program, Upstream};

use crate::command::{describe_faulty_sources, with_server};
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
    match server.connection {
        Connection::Stdio {
            command,
            args,
            env,
            pass_env,
            ..
        } => {
            let variables = variables(target.client(), env, &pass_env);
            let environment = variables.iter().fold(
                Environment::of_this_process().drop("*"),
                |environment, (name, value)| environment.set(name, value),
            );
            let program = Program::new(&command).args(&args).environment(environment);
            let listed = list_tools(Upstream::stdio(name, program)).await?;
            let checked = check_scripts(&command, &args, &variables).await?;
            Ok(if listed && checked {
                ExitCode::Success
            } else {
                ExitCode::Failure
            })
        }
        Connection::Http {
            url,
            headers,
            token_variable,
            ..
        } => {
            let mut address = Address::new(&url)?;
            for (header, value) in &headers {
                address = address.header(header, &with_variables(value))?;
            }
            if let Some(token) = token_variable.and_then(|name| env::var(name).ok()) {
                address = address.token(token);
            }
            let listed = list_tools(Upstream::http(name, address)).await?;
            Ok(if listed {
                ExitCode::Success
            } else {
                ExitCode::Failure
            })
        }
        _ => bail!("check `{name}`: its entry in `{path}` has an unknown form"),
    }
}

/// Environment in which the client starts a server.
fn variables(
    client: &Client,
    own: BTreeMap<String, String>,
    passed: &[String],
) -> BTreeMap<String, String> {
    let mut variables: BTreeMap<String, String> = if client.is_graphical() {
        let kept = DESKTOP_VARIABLES.iter().chain(&SYSTEM_VARIABLES);
        let kept = kept.filter_map(|name| Some(((*name).to_owned(), env::var(name).ok()?)));
        let path = ("PATH".to_owned(), DESKTOP_PATH.to_owned());
        kept.chain([path]).collect()
    } else {
        let all = env::vars_os();
        let text = all.filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        text.collect()
    };
    let passed = passed.iter();
    variables.extend(passed.filter_map(|name| Some((name.clone(), env::var(name).ok()?))));
    let own = own.into_iter();
    variables.extend(own.map(|(name, value)| (name, with_variables(&value))));
    variables
}

/// Puts variables of this process in place of `${NAME}`, `${env:NAME}` and `{env:NAME}`.
fn with_variables(text: &str) -> String {
    let mut result = String::new();
    let mut rest = text;
    while let Some(start) = rest.find('{') {
        let Some(length) = rest[start..].find('}') else {
            break;
        };
        let inner = &rest[start + 1..start + length];
        let name = inner.strip_prefix("env:").unwrap_or(inner);
        let before = &rest[..start];
        let (before, is_reference) = match before.strip_suffix('$') {
            Some(before) => (before, true),
            None => (before, inner.starts_with("env:")),
        };
        let value = env::var(name).ok().filter(|_| is_reference);
        match value {
            Some(value) => result += &format!("{before}{value}"),
            None => result += &rest[..=start + length],
        }
        rest = &rest[start + length + 1..];
    }
    result + rest
}

/// Connects to a server, and prints its tools. Returns whether it could.
async fn list_tools(upstream: Upstream) -> anyhow::Result<bool> {
    let server = Server::builder().source(upstream.prefix("")).watch(false);
    let mut is_reached = false;
    with_server(server, async |server| {
        let catalog = server.catalog();
        let faults = describe_faulty_sources(&catalog);
        is_reached = faults.is_empty();
        if is_reached {
            let tools = catalog.tools().iter();
            let names: Vec<_> = tools.map(|tool| format!("  {}\n", tool.path())).collect();
            let count = names.len();
            let word = if count == 1 { "tool" } else { "tools" };
            output::write_text(&format!("{count} {word}\n{}", names.concat()))?;
        } else {
            output::error(&format!("the client cannot use the server:{faults}"));
        }
        Ok(ExitCode::Success)
    })
    .await?;
    Ok(is_reached)
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
