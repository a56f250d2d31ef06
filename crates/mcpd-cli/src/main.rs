//! The `mcpd` binary: parse, run, exit code. Everything else it does is done by the libraries.

#![forbid(unsafe_code)]

mod args;
mod certificates;
mod client;
mod client_profile;
mod command;
mod config;
mod descriptors;
mod directories;
mod discovery;
mod exit_code;
mod kit;
mod logging;
mod metrics;
mod output;
mod private_file;
mod program;
mod reload;
mod render;
mod rules;
mod service;
mod signals;
mod sockets;
mod suggest;
mod telemetry;
mod token;

use std::process;

use args::CommandLine;
use exit_code::ExitCode;

fn main() -> process::ExitCode {
    mcpd_exec::prepare_signals();
    if mcpd_exec::run_watchdog() {
        return ExitCode::Success.into();
    }
    mcpd_exec::prepare_memory();
    let code = CommandLine::read(std::env::args_os())
        .map_err(anyhow::Error::from)
        .and_then(|line| command::run(&line))
        .unwrap_or_else(|error| match error.downcast::<clap::Error>() {
            Ok(usage) => explain(&usage),
            Err(error) => {
                output::error(&format!("failed to {error:#}"));
                ExitCode::Failure
            }
        });
    code.into()
}

/// Help and version are errors to the parser, but not to us.
fn explain(usage: &clap::Error) -> ExitCode {
    // Nobody is left to be told if printing fails.
    usage.print().ok();
    if usage.use_stderr() {
        ExitCode::Failure
    } else {
        ExitCode::Success
    }
}
