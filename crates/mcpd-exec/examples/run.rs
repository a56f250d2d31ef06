//! Runs a command at a level, and prints how it ended and what was not enforced:
//!
//! ```sh
//! cargo run -p mcpd-exec --example run -- strict sh -c 'id; ls /tmp; ps'
//! ```

use std::env;
use std::error::Error;
use std::io::{self, Write as _};
use std::process::ExitCode;

use mcpd_exec::{Command, Config, Executor, Level, Limits, Sandbox};

fn main() -> ExitCode {
    mcpd_exec::prepare_signals();
    if mcpd_exec::run_watchdog() {
        return ExitCode::SUCCESS;
    }
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The write has no other place to report to.
            writeln!(io::stderr(), "run: failed to {error}").ok();
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args_os().skip(1);
    let (Some(level), Some(program)) = (arguments.next(), arguments.next()) else {
        return Err("start without both a level and a program".into());
    };
    let level: Level = level.to_string_lossy().parse()?;
    let mut config = Config::default();
    config.reaper = true;
    config.watchdog = true;
    let executor = Executor::new(config)?;
    let mut limits = Limits::default();
    limits.keep = limits.output_hard;
    let command = Command::new(program).args(arguments).limits(limits);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let outcome = runtime.block_on(executor.run(command.sandbox(Sandbox::at(level))))?;

    match &outcome.stdout.file {
        Some(file) => io::stdout().write_all(&file.read()?)?,
        None => io::stdout().write_all(outcome.stdout.to_text_lossy().as_bytes())?,
    }
    let mut report = io::stderr().lock();
    report.write_all(outcome.stderr.to_text_lossy().as_bytes())?;
    writeln!(report, "{:?} at level {level}", outcome.ending)?;
    for missing in &outcome.enforced.missing {
        writeln!(report, "not enforced: {missing}")?;
    }
    Ok(())
}
