//! Options of the selection of tools.

use std::num::NonZeroUsize;

use anyhow::Context as _;
use clap::Args as ClapArgs;
use mcpd_server::policy::Selection;

use super::whole_number;

const SELECTION: &str = "Selection options";

/// Selection of the tools that are served.
#[derive(Debug, Clone, Default, ClapArgs)]
#[non_exhaustive]
pub struct Selecting {
    /// Serve only tools, prompts and resources whose paths match a pattern, such as `git/*`
    #[arg(
        long,
        value_name = "PATTERN",
        env = "MCPD_TOOLS",
        value_delimiter = ',',
        help_heading = SELECTION
    )]
    pub tools: Vec<String>,
    /// Leave out what matches a pattern.
    #[arg(
        long,
        value_name = "PATTERN",
        env = "MCPD_EXCLUDE",
        value_delimiter = ',',
        help_heading = SELECTION
    )]
    pub exclude: Vec<String>,
    /// Serve only tools with one of these tags.
    #[arg(
        long,
        value_name = "TAG",
        env = "MCPD_TAGS",
        value_delimiter = ',',
        help_heading = SELECTION
    )]
    pub tags: Vec<String>,
    /// Serve only tools that say they change nothing.
    #[arg(long, env = "MCPD_READ_ONLY", help_heading = SELECTION)]
    pub read_only: bool,
    /// Serve this many tools at most: those of the first pattern of `--tools`, then of the next
    #[arg(
        long,
        value_name = "NUMBER",
        env = "MCPD_MAX_TOOLS",
        value_parser = whole_number,
        help_heading = SELECTION
    )]
    pub max_tools: Option<NonZeroUsize>,
    /// Serve the selection `[profile.NAME]` of the configuration.
    #[arg(
        long,
        value_name = "NAME",
        env = "MCPD_PROFILE",
        help_heading = SELECTION
    )]
    pub profile: Option<String>,
}

impl Selecting {
    /// Selection of all flags but `--profile`.
    ///
    /// # Errors
    ///
    /// Fails if a pattern is invalid.
    pub(crate) fn selection(&self) -> anyhow::Result<Selection> {
        let mut selection = Selection::default().read_only(self.read_only);
        for pattern in &self.tools {
            selection = selection.only(pattern).context("use `--tools`")?;
        }
        for pattern in &self.exclude {
            selection = selection.except(pattern).context("use `--exclude`")?;
        }
        selection = self.tags.iter().fold(selection, Selection::tag);
        Ok(match self.max_tools {
            Some(max_tools) => selection.max_tools(max_tools),
            None => selection,
        })
    }
}
