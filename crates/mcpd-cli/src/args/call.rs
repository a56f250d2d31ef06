//! Arguments of `mcpd call`.

use clap::Args as ClapArgs;
use clap_complete::engine::ArgValueCompleter;
use mcpd_config::{Combine, Layers};

use super::{BESIDE_SCRIPTS, Enabling, OneTool, RunLimits, ServerCommand};
use crate::candidates;

#[derive(Debug, Clone, ClapArgs)]
#[command(after_help = "\
Examples:
  mcpd call ~/tools greet name=World
  mcpd call ~/tools math/calc operation=add a=1 b:=2.5
  mcpd call ~/tools text/count --arguments '{\"text\": \"one two\"}'
  mcpd call ~/tools greet --record name=World
  jq -n '{text: input}' essay.json | mcpd call ~/tools text/count --arguments -
  mcpd call --show ~/tools greet name=World

The result goes to stdout, log messages of the script to stderr.
The exit code is 5 if the tool fails.")]
#[command(mut_arg("enable", |enable| enable.help(BESIDE_SCRIPTS)))]
pub(crate) struct Call {
    #[command(flatten)]
    pub(crate) tool: OneTool,
    #[command(flatten)]
    pub(crate) enabling: Enabling,
    /// Arguments: NAME=TEXT or NAME:=JSON; TEXT is read as a number or a boolean where the tool
    /// expects one.
    #[arg(value_name = "NAME=VALUE", conflicts_with = "arguments", add = ArgValueCompleter::new(candidates::arguments))]
    pub(crate) pairs: Vec<String>,
    /// All arguments as one JSON object; `-` reads the object from stdin.
    #[arg(long, value_name = "OBJECT", allow_hyphen_values = true)]
    pub(crate) arguments: Option<String>,
    /// Append the call to the test cases beside the script, as a case with this name [default:
    /// a number]; values of secret options are left out.
    #[arg(long, value_name = "NAME", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub(crate) record: Option<String>,
    /// Print the MCP result as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Print control characters of the result to a terminal too.
    #[arg(long, conflicts_with = "json")]
    pub(crate) raw: bool,
    /// Print the command that the call would run, as a line for a shell, and run nothing;
    /// with --json as one object.
    #[arg(long)]
    pub(crate) show: bool,
    /// Approve the call without a question, if a person must approve it.
    #[arg(long, short = 'y')]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) limits: RunLimits,
    #[command(flatten)]
    pub(crate) command: ServerCommand,
}

impl Combine for Call {
    fn combine(&mut self, layers: &mut Layers<'_>) {
        self.tool.place.combine(layers);
        self.enabling.combine(layers);
        self.limits.combine(layers);
    }
}
