//! Where commands find the scripts of one directory.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use mcpd_config::{Combine, Layers};

use super::{Confinement, Scanning};

/// One directory and the options for its scripts.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct OneDirectory {
    /// Directory with scripts.
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
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
    pub(crate) tool: String,
}
