//! Directory whose scripts a command uses.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use clap_complete::engine::ArgValueCompleter;
use mcpd_config::{Combine, Layers};

use super::{Confinement, Scanning};
use crate::candidates;

const REMOTE: &str = "Options for remote servers";

/// Options of a server that is no directory of scripts.
#[derive(Debug, Clone, Default, ClapArgs)]
pub(crate) struct Remote {
    /// Variable with the bearer token for a URL.
    #[arg(long, value_name = "NAME", help_heading = REMOTE)]
    pub(crate) token_env: Option<String>,
}

/// Command of a server, the last argument of all.
#[derive(Debug, Clone, Default, ClapArgs)]
pub(crate) struct ServerCommand {
    /// Program that speaks MCP over stdin and stdout, and its arguments, where DIR is `-`.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) words: Vec<String>,
}

/// One directory and the options for its scripts.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct OneDirectory {
    /// Directory with scripts; or a URL, an entry of a client such as `cursor:github`, or `-` for
    /// the server that COMMAND starts.
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    #[command(flatten)]
    pub(crate) remote: Remote,
    #[command(flatten)]
    pub(crate) scanning: Scanning,
    #[command(flatten)]
    pub(crate) confinement: Confinement,
}

impl Combine for OneDirectory {
    fn combine(&mut self, layers: &mut Layers<'_>) {
        self.scanning.combine(layers);
        self.confinement.combine(layers);
    }
}

/// One tool of one directory.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct OneTool {
    #[command(flatten)]
    pub(crate) place: OneDirectory,
    /// Tool name; `math/add`, `math_add` and `math.add` are the same tool.
    #[arg(add = ArgValueCompleter::new(candidates::tools))]
    pub(crate) tool: String,
}
