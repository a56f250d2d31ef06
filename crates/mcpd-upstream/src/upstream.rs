//! Configuration of an upstream server: its name, how it is reached, and which of its tools are
//! served.

use std::fmt;
use std::time::Duration;

use globset::{Glob, GlobSet, GlobSetBuilder};
use mcpd_server::source::{Secrets, below};

use crate::address::Address;
use crate::program::Program;

/// Default time limit of a request.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// Error of an invalid tool pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PatternError {
    /// The pattern.
    pub pattern: String,
    /// Fault of the pattern.
    pub reason: String,
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "parse the pattern `{}`: {}", self.pattern, self.reason)
    }
}

impl std::error::Error for PatternError {}

/// Way to reach a server.
#[derive(Debug, Clone)]
pub(crate) enum Reach {
    Program(Program),
    Address(Address),
    /// Server in this process.
    #[cfg(test)]
    Memory(crate::tests::Server),
}

impl Reach {
    /// Returns the secrets that are passed to a server.
    fn secrets(&self) -> Secrets {
        match self {
            Self::Program(program) => program.secrets(),
            Self::Address(address) => address.secrets(),
            #[cfg(test)]
            Self::Memory(_) => Secrets::default(),
        }
    }
}

/// MCP server whose tools, resources and prompts are served here.
#[derive(Debug, Clone)]
#[must_use]
pub struct Upstream {
    pub(crate) name: String,
    pub(crate) reach: Reach,
    /// Redacted from everything it sends and everything said about it.
    pub(crate) secrets: Secrets,
    pub(crate) prefix: String,
    /// Patterns of the served tools; `None` means all.
    pub(crate) tools: Option<GlobSet>,
    pub(crate) timeout: Duration,
}

impl Upstream {
    /// Makes a server that is started as a program. People know it as `name`, and its tools and
    /// prompts are served below that path.
    pub fn stdio(name: impl Into<String>, program: Program) -> Self {
        Self::new(name.into(), Reach::Program(program))
    }

    /// Makes a server that runs elsewhere. People know it as `name`, and its tools and prompts are
    /// served below that path.
    pub fn http(name: impl Into<String>, address: Address) -> Self {
        Self::new(name.into(), Reach::Address(address))
    }

    pub(crate) fn new(name: String, reach: Reach) -> Self {
        Self {
            prefix: name.clone(),
            name,
            secrets: reach.secrets(),
            reach,
            tools: None,
            timeout: DEFAULT_TIMEOUT,
        }
    }

    /// Serves its tools and prompts below another path, such as `team/search`; with an empty one,
    /// under their own names.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Serves only the tools whose own names match one of these patterns, such as `read_*`. By
    /// default all are served.
    ///
    /// # Errors
    ///
    /// Fails if one of the patterns is invalid.
    pub fn tools(
        mut self,
        patterns: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<Self, PatternError> {
        let mut set = GlobSetBuilder::new();
        for pattern in patterns {
            let pattern = pattern.as_ref();
            let glob = Glob::new(pattern).map_err(|error| pattern_error(pattern, &error))?;
            set.add(glob);
        }
        let set = set.build().map_err(|error| pattern_error("", &error))?;
        self.tools = Some(set);
        Ok(self)
    }

    /// Sets the time limit of a request; 60 s by default.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Returns whether its tool `name` is served.
    pub(crate) fn serves_tool(&self, name: &str) -> bool {
        self.tools.as_ref().is_none_or(|tools| tools.is_match(name))
    }

    /// Returns whether each connection starts it anew.
    pub(crate) fn is_program(&self) -> bool {
        !matches!(self.reach, Reach::Address(_))
    }

    /// Returns the path here for its own name `name`.
    pub(crate) fn path(&self, name: &str) -> String {
        below(&self.prefix, name)
    }
}

fn pattern_error(pattern: &str, error: &globset::Error) -> PatternError {
    PatternError {
        pattern: pattern.to_owned(),
        reason: error.kind().to_string(),
    }
}

impl fmt::Display for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the upstream server `{}`", self.name)
    }
}
