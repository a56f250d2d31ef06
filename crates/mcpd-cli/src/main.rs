//! The `mcpd` binary: parse, run, exit code. The libraries do everything else.

#![forbid(unsafe_code)]

mod args;
mod candidates;
mod client;
mod command;
mod exit_code;
mod logging;
mod output;
mod reload;

use std::io::{self, Write as _};
use std::process;

use mcpd_service::stderr;

use args::CommandLine;
use exit_code::ExitCode;

#[global_allocator]
static ALLOCATOR: mcpd_exec::memory::Allocator = mcpd_exec::memory::Allocator;

fn main() -> process::ExitCode {
    mcpd_exec::prepare_signals();
    if mcpd_exec::run_watchdog() {
        return ExitCode::Success.into();
    }
    // A shell that completes a line takes the answer from stdout.
    clap_complete::CompleteEnv::with_factory(args::definition)
        .var(args::COMPLETE)
        .complete();
    mcpd_exec::memory::prepare();
    stderr::report_panics();
    let _flush = stderr::flush_on_drop();
    let code = CommandLine::parse(std::env::args_os())
        .map_err(anyhow::Error::from)
        .and_then(|line| command::run(&line))
        .or_else(|error| explain(&error.downcast()?))
        .unwrap_or_else(|error: anyhow::Error| {
            output::error(&format!("failed to {error:#}"));
            ExitCode::Failure
        });
    code.into()
}

/// Prints help or a usage error. The parser reports both as errors; help and
/// version exit with success.
fn explain(usage: &clap::Error) -> anyhow::Result<ExitCode> {
    if usage.use_stderr() {
        output::note_styled(&usage.render().ansi().to_string());
        return Ok(ExitCode::Failure);
    }
    output::unless_closed(usage.print().and_then(|()| io::stdout().flush()))?;
    Ok(ExitCode::Success)
}
