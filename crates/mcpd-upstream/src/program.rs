//! Server started as a child process, spoken to over its stdin and stdout, as plain data.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use mcpd_server::policy::Environment;
use mcpd_server::source::Secrets;

/// Program that is an MCP server on its stdin and stdout.
///
/// It inherits the environment of an unconfined script: everything but mcpd's own settings and
/// secrets. It is not confined, and ends when its input does.
#[derive(Clone)]
#[must_use]
pub struct Program {
    pub(crate) program: OsString,
    pub(crate) arguments: Vec<String>,
    pub(crate) directory: Option<PathBuf>,
    pub(crate) environment: Environment,
    pub(crate) variables: BTreeMap<String, String>,
}

impl Program {
    /// Makes a program without arguments, looked up in `PATH` unless it is a path.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            arguments: Vec::new(),
            directory: None,
            environment: Environment::of_this_process(),
            variables: BTreeMap::new(),
        }
    }

    /// Adds arguments.
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets its working directory, by default that of this process.
    pub fn current_dir(mut self, directory: impl AsRef<Path>) -> Self {
        self.directory = Some(directory.as_ref().to_owned());
        self
    }

    /// Sets its base environment, by default that of this process.
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = environment;
        self
    }

    /// Sets a variable, inherited or not.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.variables.insert(name.into(), value.into());
        self
    }

    pub(crate) fn secrets(&self) -> Secrets {
        let variables = self.variables.iter();
        Secrets::new(variables.map(|(name, value)| (name.as_str(), value.as_str())))
    }
}

/// Shows no argument and no value: they may be secrets, and `Debug` output ends up in logs.
impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program")
            .field("program", &self.program)
            .field("arguments", &self.arguments.len())
            .field("directory", &self.directory)
            .field("variables", &self.variables.keys())
            .finish_non_exhaustive()
    }
}
