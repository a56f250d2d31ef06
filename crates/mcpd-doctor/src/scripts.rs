//! Scripts under the environment of each client: a desktop starts programs with hardly any `PATH`,
//! so an interpreter that the shell finds may be missing there.

use std::collections::BTreeMap;
use std::env;
use std::fmt::{self, Write as _};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use mcpd_check::rules::OVERLOOKED_FILE;
use mcpd_clients::{Client, Connection, Scope};
use mcpd_exec::{Command, Executor};
use serde::{Deserialize, Serialize};

use crate::entry;

/// Rules about a script that cannot be started.
const RULES: [&str; 2] = ["missing-interpreter", "help-not-started"];

/// Scripts to look at, and the configuration that holds for them.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Scripts {
    /// Directories of the scripts.
    pub directories: Vec<PathBuf>,
    /// Configuration that a flag names.
    pub configuration: Option<PathBuf>,
}

/// Start of the scripts by a client.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Surroundings {
    /// Title of the client, or the shell.
    pub name: &'static str,
    /// The `PATH`.
    pub path: String,
    /// Scripts that can't be started.
    pub faults: Vec<Fault>,
}

/// Script that cannot be started.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Fault {
    /// Code of the violated rule.
    #[serde(skip_serializing)]
    pub code: String,
    /// Description of the fault.
    pub message: String,
    /// The script.
    #[serde(skip_serializing)]
    pub file: Option<PathBuf>,
}

/// Files that begin with `#!` and can't be started from this shell.
pub(crate) async fn unstartable(
    executor: &Executor,
    program: &Path,
    scripts: &Scripts,
) -> anyhow::Result<Vec<PathBuf>> {
    let environment = entry::own_environment();
    let findings = findings(executor, program, scripts, &environment).await?;
    let is_meant = |fault: &Fault| fault.code == OVERLOOKED_FILE || RULES.contains(&&*fault.code);
    let files = findings.into_iter().filter(is_meant);
    Ok(files.filter_map(|fault| fault.file).collect())
}

/// Checks the scripts as this shell starts them, and as each found client does, or that one.
pub(crate) async fn check(
    executor: &Executor,
    program: &Path,
    scripts: &Scripts,
    only: Option<&'static Client>,
) -> anyhow::Result<Vec<Surroundings>> {
    for directory in &scripts.directories {
        let read = fs::read_dir(directory);
        read.with_context(|| format!("read the directory `{}`", directory.display()))?;
    }
    let places = entry::places()?;
    let path = env::var_os("PATH");
    let found = |client: &&Client| match only {
        Some(only) => std::ptr::eq(only, *client),
        None => client.detect(&places, path.as_deref()).is_some(),
    };
    let mut environments = vec![("this shell", entry::own_environment())];
    for client in Client::all().iter().filter(found) {
        let servers = entry::of_client(client, &places).servers;
        // The file of a project may set anything.
        let mut own = servers
            .into_iter()
            .filter(|(scope, _)| *scope == Scope::User);
        let own = own.find(|(_, server)| server.name == "mcpd");
        let own = own.map_or(Connection::Unknown, |(_, server)| server.connection);
        let variables = client.variables(&own, entry::own_environment());
        environments.push((client.title(), own.environment(&variables)));
    }
    let mut all = Vec::new();
    for (name, variables) in environments {
        all.push(Surroundings {
            name,
            path: variables.get("PATH").cloned().unwrap_or_default(),
            faults: faults(executor, program, scripts, &variables).await?,
        });
    }
    Ok(all)
}

/// Scripts that cannot be started in an environment.
async fn faults(
    executor: &Executor,
    program: &Path,
    scripts: &Scripts,
    variables: &BTreeMap<String, String>,
) -> anyhow::Result<Vec<Fault>> {
    let findings = findings(executor, program, scripts, variables).await?;
    let is_missing = |fault: &Fault| RULES.contains(&&*fault.code);
    Ok(findings.into_iter().filter(is_missing).collect())
}

/// Everything that `mcpd check` finds in an environment.
async fn findings(
    executor: &Executor,
    program: &Path,
    scripts: &Scripts,
    variables: &BTreeMap<String, String>,
) -> anyhow::Result<Vec<Fault>> {
    let mut command = Command::new(program).args(["check", "--format", "json"]);
    if let Some(file) = &scripts.configuration {
        command = command.arg("--config").arg(file);
    }
    let command = command.arg("--").args(&scripts.directories).env_clear();
    let command = variables
        .iter()
        .fold(command, |command, (name, value)| command.env(name, value));
    let outcome = executor.run(command).await.context("check the scripts")?;
    let printed = outcome.stdout.whole().unwrap_or_default();
    serde_json::from_slice(&printed).with_context(|| {
        let error = String::from_utf8_lossy(&outcome.stderr.head).into_owned();
        format!("check the scripts: {}", error.trim())
    })
}

impl Scripts {
    /// Scripts of directories, with the configuration that a flag names.
    #[must_use]
    pub fn new(directories: Vec<PathBuf>, configuration: Option<PathBuf>) -> Self {
        Self {
            directories,
            configuration,
        }
    }
}

impl Surroundings {
    pub(crate) fn write(&self, text: &mut String) -> fmt::Result {
        match &self.faults[..] {
            [] => writeln!(text, "  {}: every interpreter is found", self.name),
            faults => {
                writeln!(text, "  {} (PATH={})", self.name, self.path)?;
                for fault in faults {
                    writeln!(text, "    {}", fault.message)?;
                }
                Ok(())
            }
        }
    }
}
