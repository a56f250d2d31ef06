//! Arguments of `mcpd basic`.

use std::path::PathBuf;

use clap::Args as ClapArgs;

#[derive(Debug, Clone, ClapArgs)]
#[command(after_help = "\
Example:
  echo '{\"customer\": \"Ada\", \"amount\": 3}' | mcpd basic order.bas

Parameters are read from stdin as one JSON object. TALK and PRINT write to stdout, errors to stderr.
The exit code is 1 if the program is faulty or fails, and 2 if the parameters are invalid.")]
pub(crate) struct Basic {
    /// Program file.
    pub(crate) file: PathBuf,
    /// Number of operations after which the program is stopped as endless.
    #[arg(long, value_name = "NUMBER", default_value_t = mcpd_basic::Limits::default().operations)]
    pub(crate) max_operations: u64,
    /// Trust the parameters: they come from a call and have been validated.
    #[arg(long, hide = true)]
    pub(crate) checked: bool,
}
