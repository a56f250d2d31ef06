//! `mcpd install CLIENT --check`: prints what a trial of the entry finds.

use std::env;

use anyhow::Context as _;
use mcpd_clients::ConfigFile;
use mcpd_doctor::entry;
use mcpd_doctor::trial::{Launch, Trial};
use mcpd_exec::{Command, Ending};
use mcpd_service::signals::Termination;

use crate::exit_code::ExitCode;
use crate::output;

/// Starts the entry `name` of the file, lists its tools, and checks its scripts.
pub(super) async fn run(file: &ConfigFile, text: &str, name: &str) -> anyhow::Result<ExitCode> {
    let launch = Launch::of_entry(file, text, name, entry::own_environment())?;
    let mut termination = Termination::listen_at_terminal().context("listen for signals")?;
    let Some(trial) = launch.list_tools(termination.wait()).await? else {
        return Ok(ExitCode::Interrupted);
    };
    print(&trial)?;
    let own = env::current_exe().context("find the program of this process")?;
    let is_sound = match launch.script_check(&own) {
        Some(check) => check_scripts(check).await?,
        None => true,
    };
    Ok(match trial.is_usable && is_sound {
        true => ExitCode::Success,
        false => ExitCode::Failure,
    })
}

/// Prints the tools, or why the server can't be used.
fn print(trial: &Trial) -> anyhow::Result<()> {
    let faults = trial.faults.iter();
    let faults: String = faults.map(|fault| format!("\n  {fault}")).collect();
    if !trial.is_usable {
        super::super::report_unusable(&faults, trial.is_unauthorized);
        return Ok(());
    }
    if !faults.is_empty() {
        super::super::note_unusable_parts(&faults);
    }
    let names = trial.tools.iter().map(|name| format!("  {name}\n"));
    let names: String = names.collect();
    let count = trial.tools.len();
    let word = if count == 1 { "tool" } else { "tools" };
    output::write_text(&format!("{count} {word}\n{names}"))
}

/// Checks the scripts in the environment of the client.
async fn check_scripts(check: Command) -> anyhow::Result<bool> {
    let executor = mcpd_config::executor(None, None)?;
    let outcome = executor.run(check).await.context("check the scripts")?;
    output::write(&outcome.stdout.whole().unwrap_or_default())?;
    output::note(&String::from_utf8_lossy(&outcome.stderr.head));
    Ok(outcome.ending == Ending::Exited(0))
}
