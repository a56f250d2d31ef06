//! `cargo xtask`: the packages of a release, and tasks that take too long for a test, or depend on
//! time, which a test must not.

#![cfg(target_os = "linux")]

use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
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
mod dist;
mod instructions;
mod interop;
mod latency;
mod layout;
mod process;
mod report;
mod request;
mod semver;
mod server;
mod siege;
mod soak;

/// Packages of mcpd, and long and heavy runs of it.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measure mcpd beside its peers, and report which bars it meets.
    Bench(bench::Options),
    /// Build mcpd and make its packages: archive, Debian package, Python wheel, npm packages, with
    /// their SHA-256 sums, the list of components (SBOM) and the licences of dependencies.
    Dist(dist::Options),
    /// Count the instructions and allocations of six paths, and compare them with those recorded.
    Instructions {
        /// Record the counts.
        #[arg(long)]
        record: bool,
    },
    /// Run foreign clients and frameworks against mcpd, and write the table of the outcomes.
    Interop(interop::Options),
    /// Compare the public interfaces of the libraries with those of the last release.
    Semver {
        /// Revision to compare with instead.
        #[arg(long, value_name = "REVISION")]
        since: Option<String>,
    },
    /// Thousands of attacking clients, one kind after the other, and one honest client meanwhile.
    Siege {
        /// Duration of each kind, in seconds.
        #[arg(long, default_value_t = 30)]
        seconds: u64,
    },
    /// Simulated production in fast motion: calls, cancelled calls, timeouts, crashes, floods,
    /// changed scripts and reloads.
    Soak {
        /// Duration in minutes.
        #[arg(long, default_value_t = 60)]
        minutes: u64,
        /// Calls per second.
        #[arg(long, default_value_t = 100)]
        rate: u32,
        /// Draw memory and latency by minutes into this file.
        #[arg(long, value_name = "FILE")]
        picture: Option<PathBuf>,
    },
}

/// Variable by which cargo has its programs, and all that these start, look for libraries in its
/// own directories first: some hundred system calls for each script of a server that passes its
/// environment on.
const LIBRARY_PATH: &str = "LD_LIBRARY_PATH";

/// Becomes this program without the variable of cargo. Returns the failure.
#[expect(clippy::disallowed_methods, reason = "it is this program")]
fn leave_cargo() -> std::io::Error {
    let program = std::env::current_exe().unwrap_or_else(|_| "/proc/self/exe".into());
    let mut command = std::process::Command::new(program);
    command.args(std::env::args_os().skip(1));
    command.env_remove(LIBRARY_PATH).exec()
}

fn main() -> ExitCode {
    let args = Args::parse();
    if std::env::var_os(LIBRARY_PATH).is_some() {
        report::line(format_args!("error: {}", leave_cargo()));
        return ExitCode::FAILURE;
    }
    let ended = match args.command {
        // A single thread leaves more of the machine to the measured server.
        Command::Bench(options) => {
            block_on(&mut Builder::new_current_thread(), bench::run(options))
        }
        Command::Dist(options) => dist::run(&options).map(|()| true),
        Command::Instructions { record } => instructions::run(record),
        Command::Interop(options) => interop::run(&options),
        Command::Semver { since } => semver::run(since.as_deref()),
        Command::Siege { seconds } => cores::share().map_err(Into::into).and_then(|()| {
            let siege = siege::run(Duration::from_secs(seconds));
            block_on(&mut Builder::new_multi_thread(), siege)
        }),
        Command::Soak {
            minutes,
            rate,
            picture,
        } => {
            let soak = soak::run(Duration::from_secs(60 * minutes), rate, picture);
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
        // Dropping the work kills every process it started.
        select! {
            ended = work => ended,
            _ = ctrl_c() => bail!("interrupted"),
            _ = end.recv() => bail!("terminated"),
        }
    })
}
