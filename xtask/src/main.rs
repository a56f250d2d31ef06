//! `cargo xtask`: what takes too long for a test, and what depends on time, which a test must not.

#![cfg(target_os = "linux")]

use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};

mod client;
mod latency;
mod report;
mod server;
mod siege;
mod soak;

/// Long and heavy runs of mcpd.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Thousands of clients that mean no good, one kind after the other, and one honest client meanwhile.
    Siege {
        /// How long each kind goes on, in seconds.
        #[arg(long, default_value_t = 30)]
        seconds: u64,
    },
    /// Ordinary life in fast motion: calls, cancelled calls, time-outs, crashes, floods, changed scripts and reloads.
    Soak {
        /// How long it goes on, in minutes.
        #[arg(long, default_value_t = 60)]
        minutes: u64,
        /// Calls a second.
        #[arg(long, default_value_t = 100)]
        rate: u32,
    },
}

fn main() -> ExitCode {
    let args = Args::parse();
    let runtime = tokio::runtime::Runtime::new().map_err(anyhow::Error::from);
    let ended = runtime.and_then(|runtime| {
        runtime.block_on(async {
            match args.command {
                Command::Siege { seconds } => siege::run(Duration::from_secs(seconds)).await,
                Command::Soak { minutes, rate } => {
                    soak::run(Duration::from_secs(60 * minutes), rate).await
                }
            }
        })
    });
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            report::line(format_args!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}
