//! `cargo xtask`: what takes too long for a test, and what depends on time, which a test must not.

#![cfg(target_os = "linux")]

use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use clap::{Parser, Subcommand};
use tokio::runtime::Builder;
use tokio::select;
use tokio::signal::ctrl_c;
use tokio::signal::unix::{SignalKind, signal};

mod bench;
mod client;
mod cores;
mod instructions;
mod interop;
mod latency;
mod process;
mod report;
mod request;
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
    /// Measure mcpd beside its peers, and see which bars it meets.
    Bench(bench::Options),
    /// Count the instructions that a message takes, and compare them with those recorded.
    Instructions {
        /// Record them.
        #[arg(long)]
        record: bool,
    },
    /// Have clients and frameworks of others do what clients do, and write down what came of it.
    Interop(interop::Options),
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
    let ended = match args.command {
        // One thread leaves more of the machine to what is measured.
        Command::Bench(options) => {
            block_on(&mut Builder::new_current_thread(), bench::run(options))
        }
        Command::Instructions { record } => instructions::run(record),
        Command::Interop(options) => interop::run(&options),
        Command::Siege { seconds } => cores::share().map_err(Into::into).and_then(|()| {
            let siege = siege::run(Duration::from_secs(seconds));
            block_on(&mut Builder::new_multi_thread(), siege)
        }),
        Command::Soak { minutes, rate } => {
            let soak = soak::run(Duration::from_secs(60 * minutes), rate);
            block_on(&mut Builder::new_multi_thread(), soak)
        }
    };
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            report::line(format_args!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn block_on(
    runtime: &mut Builder,
    work: impl Future<Output = anyhow::Result<bool>>,
) -> anyhow::Result<bool> {
    runtime.enable_all().build()?.block_on(async {
        let mut end = signal(SignalKind::terminate())?;
        // Whatever was started is killed when it is dropped.
        select! {
            ended = work => ended,
            _ = ctrl_c() => bail!("interrupted"),
            _ = end.recv() => bail!("terminated"),
        }
    })
}
