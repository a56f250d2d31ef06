//! The `mcpd` binary: parse, run, exit code. Everything else it does is done by the libraries.

#![forbid(unsafe_code)]

mod args;
mod client;
mod client_profile;
mod command;
mod config;
mod directories;
mod discovery;
mod exit_code;
mod kit;
mod logging;
mod output;
mod private_file;
mod program;
mod render;
mod rules;
mod service;
mod signals;
mod suggest;
mod token;

use std::process;

use exit_code::ExitCode;

fn main() -> process::ExitCode {
    if mcpd_exec::run_watchdog() {
        return ExitCode::Success.into();
    }
    let code = match args::parse(std::env::args_os()) {
        Ok(args) => command::run(args).unwrap_or_else(|error| {
            output::error(&format!("failed to {error:#}"));
            ExitCode::Failure
        }),
        Err(error) => {
            // Help and version are errors to the parser, but not to us. Nobody is left to be told
            // if printing fails.
            error.print().ok();
            if error.use_stderr() {
                ExitCode::Failure
            } else {
                ExitCode::Success
            }
        }
    };
    code.into()
}
