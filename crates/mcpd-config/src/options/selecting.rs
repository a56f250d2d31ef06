//! Options of the selection of tools.

use std::num::NonZeroUsize;

use anyhow::anyhow;
use clap::Args as ClapArgs;
use mcpd_server::policy::{PatternError, Selection};

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
        let parts = SelectionParts {
            tools: &self.tools,
            exclude: &self.exclude,
            tags: &self.tags,
            is_read_only: self.read_only,
            max_tools: self.max_tools,
        };
        parts.combine(String::as_str, |key, _, error| {
            anyhow!(error).context(format!("use `--{key}`"))
        })
    }
}

/// Parts of a selection, as flags or a `[profile.NAME]` have them.
pub(crate) struct SelectionParts<'a, P> {
    pub(crate) tools: &'a [P],
    pub(crate) exclude: &'a [P],
    pub(crate) tags: &'a [String],
    pub(crate) is_read_only: bool,
    pub(crate) max_tools: Option<NonZeroUsize>,
}

impl<P> SelectionParts<'_, P> {
    /// Combines the parts; `fault` describes a faulty pattern of the key `tools` or `exclude`.
    ///
    /// # Errors
    ///
    /// Fails if a pattern is invalid.
    pub(crate) fn combine(
        self,
        text: impl Fn(&P) -> &str,
        fault: impl Fn(&str, &P, PatternError) -> anyhow::Error,
    ) -> anyhow::Result<Selection> {
        let mut selection = Selection::default().read_only(self.is_read_only);
        for pattern in self.tools {
            let added = selection.only(text(pattern));
            selection = added.map_err(|error| fault("tools", pattern, error))?;
        }
        for pattern in self.exclude {
            let added = selection.except(text(pattern));
            selection = added.map_err(|error| fault("exclude", pattern, error))?;
        }
        selection = self.tags.iter().fold(selection, Selection::tag);
        Ok(match self.max_tools {
            Some(max_tools) => selection.max_tools(max_tools),
            None => selection,
        })
    }
}
