//! `mcpd config`: what can be configured.

use crate::args::{Config, ConfigAction};
use crate::exit_code::ExitCode;
use crate::{config, output};

pub(crate) fn run(args: &Config) -> anyhow::Result<ExitCode> {
    match args.action {
        ConfigAction::Schema => output::write_json(&config::schema())?,
    }
    Ok(ExitCode::Success)
}
