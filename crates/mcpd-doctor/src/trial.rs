//! Trial of an entry: starts exactly what the file of a client says, as the client would, and lists
//! the tools.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use mcpd_clients::{ConfigFile, Connection, Scope};
use mcpd_exec::Command;
use mcpd_server::Server;
use mcpd_upstream::Upstream;

use crate::entry;

/// Server of an entry, with the variables that its client starts it with.
#[derive(Debug, Clone)]
pub struct Launch {
    name: String,
    connection: Connection,
    variables: BTreeMap<String, String>,
}

/// Outcome of a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Trial {
    /// Names of the tools, in the order of the list.
    pub tools: Vec<String>,
    /// Reasons why the server, or a part of it, can't be used.
    pub faults: Vec<String>,
    /// The server offers something.
    pub is_usable: bool,
    /// The server asks for a token, or rejects the one of the entry.
    pub is_unauthorized: bool,
}

impl Launch {
    /// Reads the entry `name` in the text of a file. `own` are the variables of a shell: the client
    /// passes some of them.
    ///
    /// # Errors
    ///
    /// The text can't be read, or has no such entry.
    pub fn of_entry(
        file: &ConfigFile,
        text: &str,
        name: &str,
        own: BTreeMap<String, String>,
    ) -> anyhow::Result<Self> {
        let path = file.path().display();
        let servers = file
            .installed_servers(text)
            .with_context(|| format!("read `{path}`"))?;
        let server = servers.into_iter().find(|server| server.name == name);
        let Some(server) = server else {
            bail!("check `{name}`: it is not in `{path}`; install it first");
        };
        let shell_path = own.get("PATH").cloned();
        let mut variables = file.client().variables(&server.connection, own);
        if file.scope() == Scope::Project && file.client().has_shell_path() {
            variables.extend(shell_path.map(|path| ("PATH".to_owned(), path)));
        }
        Ok(Self {
            name: name.to_owned(),
            connection: server.connection,
            variables,
        })
    }

    /// Server of the entry, as a source of a server.
    ///
    /// # Errors
    ///
    /// The entry has an unknown form, or a header needs a variable that is not there.
    pub fn upstream(&self) -> anyhow::Result<Upstream> {
        entry::upstream(&self.name, &self.connection, &self.variables)
    }

    /// Starts the server and lists its tools; none if `interrupt` ends first. The server has ended
    /// when this returns.
    ///
    /// # Errors
    ///
    /// The entry can't be used as it is. A server that can't be started is a fault of the trial.
    pub async fn list_tools(
        &self,
        interrupt: impl Future<Output = ()>,
    ) -> anyhow::Result<Option<Trial>> {
        let source = self.upstream()?.prefix("");
        let server = Server::builder().source(source).watch(false).start()?;
        let is_ready = tokio::select! {
            biased;
            () = interrupt => false,
            () = server.catalog_ready() => true,
        };
        let trial = is_ready.then(|| Trial::of(&server));
        server.shutdown().await;
        Ok(trial)
    }

    /// Command that checks the scripts of an entry which starts `own`, this very program, in the
    /// environment of the client; none if the entry starts another program or serves no directory.
    #[must_use]
    pub fn script_check(&self, own: &Path) -> Option<Command> {
        let Connection::Stdio { command, args, .. } = self.connection.resolve(&self.variables)
        else {
            return None;
        };
        let environment = self.connection.environment(&self.variables);
        let program = program_at(&command, &environment).filter(|path| {
            let is_same = |own: PathBuf| path.canonicalize().is_ok_and(|path| path == own);
            own.canonicalize().is_ok_and(is_same)
        })?;
        let words = script_arguments(&args)?;
        let command = Command::new(program).arg("check").args(words).env_clear();
        let environment = environment.iter();
        Some(environment.fold(command, |command, (name, value)| command.env(name, value)))
    }
}

impl Trial {
    fn of(server: &Server) -> Self {
        let catalog = server.catalog();
        let tools = catalog.tools().iter();
        let offers = catalog.offers();
        let faults = offers.iter().flat_map(|offer| {
            let faults = offer.faults().iter();
            faults.map(|fault| format!("{} {fault}", offer.source()))
        });
        let faults: Vec<_> = faults.collect();
        let is_empty = catalog.tools().is_empty()
            && catalog.prompts().is_empty()
            && catalog.resources().is_empty()
            && catalog.templates().is_empty();
        Self {
            tools: tools.map(|tool| tool.path().to_string()).collect(),
            is_usable: faults.is_empty() || !is_empty,
            faults,
            is_unauthorized: offers.iter().any(|offer| offer.is_unauthorized()),
        }
    }
}

/// Path of the program of an entry, as its environment finds it.
fn program_at(command: &str, environment: &BTreeMap<String, String>) -> Option<PathBuf> {
    if Path::new(command).is_absolute() {
        return Some(PathBuf::from(command));
    }
    let directories = environment.get("PATH").map(String::as_str);
    let mut candidates =
        env::split_paths(directories.unwrap_or_default()).map(|directory| directory.join(command));
    candidates.find(|path| path.exists())
}

/// Arguments of an mcpd that serves over stdio which are for its scripts: the directories, and the
/// configuration. None if it serves no directory.
fn script_arguments(args: &[String]) -> Option<Vec<&str>> {
    let [verb, rest @ ..] = args else {
        return None;
    };
    let mut words: Vec<&str> = Vec::new();
    for (place, word) in rest.iter().enumerate() {
        let is_configuration = place > 0 && rest[place - 1] == "--config";
        if word == "--config" || is_configuration || Path::new(word).is_dir() {
            words.push(word);
        }
    }
    let has_directory = rest.iter().any(|word| Path::new(word).is_dir());
    (verb == "stdio" && has_directory).then_some(words)
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use mcpd_clients::{Client, Places, Platform};

    use super::*;

    fn launch(entry: &str) -> anyhow::Result<Launch> {
        let places = Places::new(Platform::Linux, "/home/ada");
        let cursor = Client::find("cursor").unwrap();
        let file = cursor.file(Scope::User, &places, "x").unwrap();
        let text = format!(r#"{{"mcpServers": {{"x": {entry}}}}}"#);
        Launch::of_entry(&file, &text, "x", BTreeMap::new())
    }

    #[tokio::test]
    async fn server_that_can_not_be_started_is_a_fault_of_the_trial() {
        let launch = launch(r#"{"command": "/gone/server"}"#).unwrap();
        let trial = launch.list_tools(pending()).await.unwrap().unwrap();
        assert!(!trial.is_usable && trial.tools.is_empty(), "{trial:?}");
        let faults = trial.faults.concat();
        assert!(faults.contains("/gone/server"), "{faults}");
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn trial_that_is_interrupted_has_no_outcome() {
        let launch = launch(r#"{"command": "/bin/cat"}"#).unwrap();
        assert_eq!(launch.list_tools(ready(())).await.unwrap(), None);
    }

    #[test]
    fn entry_that_is_not_there_is_an_error() {
        let places = Places::new(Platform::Linux, "/home/ada");
        let cursor = Client::find("cursor").unwrap();
        let file = cursor.file(Scope::User, &places, "x").unwrap();
        let error = Launch::of_entry(&file, "{}", "x", BTreeMap::new()).unwrap_err();
        assert!(error.to_string().contains("install it first"), "{error}");
    }

    #[test]
    fn scripts_are_checked_for_this_program_alone() {
        let directory = tempfile::tempdir().unwrap();
        let own = env::current_exe().unwrap();
        let entry = |program: &str| {
            let directory = directory.path();
            format!(r#"{{"command": {program:?}, "args": ["stdio", {directory:?}]}}"#)
        };
        let of_own = launch(&entry(own.to_str().unwrap())).unwrap();
        assert!(of_own.script_check(&own).is_some());
        let of_other = launch(&entry("/bin/sh")).unwrap();
        assert!(of_other.script_check(&own).is_none());
    }

    #[test]
    fn arguments_for_scripts_are_directories_and_the_configuration() {
        let args = ["stdio", "--timeout", "5", "--config", "/x.toml", "/"].map(str::to_owned);
        let words = script_arguments(&args);
        assert_eq!(words, Some(vec!["--config", "/x.toml", "/"]));
        assert_eq!(script_arguments(&args[..5]), None);
    }
}
