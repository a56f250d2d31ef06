//! List of the clients with tokens, for people and programs.

use std::fmt;
use std::path::{self, Path, PathBuf};

use serde_json::{Value, json};

use super::TokenTable;
use crate::file::File;
use crate::{AGENT, directories};

/// Clients with tokens: the one that mcpd makes one for, if the configuration accepts that, and
/// those of the tables, whose tokens themselves are stored nowhere.
#[derive(Debug)]
#[non_exhaustive]
pub struct TokenList {
    /// File of the token that mcpd makes; none if the configuration does not accept it.
    pub agent: Option<PathBuf>,
    /// Clients with tables of their own.
    pub tables: Vec<TokenTable>,
}

impl TokenList {
    /// Lists the clients of a configuration, with `token_file` as that of mcpd's own token.
    ///
    /// # Errors
    ///
    /// The place of that file is unknown.
    pub fn new(file: &File, token_file: Option<&Path>) -> anyhow::Result<Self> {
        let agent = file.accepts_agent_token();
        Ok(Self {
            agent: agent.then(|| agent_token(token_file)).transpose()?,
            tables: file.token_tables(),
        })
    }

    /// The list for programs.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let agent = self.agent.iter().map(
            |file| json!({"name": AGENT, "token_file": file, "exists": file.exists(), "tools": []}),
        );
        let tables = self.tables.iter().map(|table| {
            json!({"name": table.name, "sha256": table.sha256, "tools": table.tools, "profile": table.profile})
        });
        agent.chain(tables).collect()
    }
}

/// A line for each client.
impl fmt::Display for TokenList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.agent {
            let shown = file.display().to_string();
            let state = if file.exists() { "" } else { ", not made yet" };
            let file = shown.escape_debug();
            writeln!(
                f,
                "{AGENT}  all tools (the token that mcpd makes, in {file}{state})"
            )?;
        }
        for table in &self.tables {
            write!(f, "{}  ", table.name.escape_debug())?;
            match &table.tools[..] {
                [] => write!(f, "all tools")?,
                tools => write!(f, "{}", tools.join(", ").escape_debug())?,
            }
            if let Some(profile) = &table.profile {
                write!(f, ", profile {}", profile.escape_debug())?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

/// Returns the file of the token that mcpd makes.
///
/// # Errors
///
/// Its place is unknown.
pub fn agent_token(named: Option<&Path>) -> anyhow::Result<PathBuf> {
    match named {
        Some(file) => Ok(path::absolute(file)?),
        None => directories::token(),
    }
}
