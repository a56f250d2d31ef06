//! Runs a command without network and for two seconds at most: `executor PROGRAM [ARGUMENT…]`.

use std::time::Duration;

use mcpd_exec::{Command, Config, Executor, Limits, Network, Sandbox};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // First in `main`: the watchdog is this program, started a second time.
    mcpd_exec::prepare_signals();
    if mcpd_exec::run_watchdog() {
        return Ok(());
    }
    let mut config = Config::default();
    config.watchdog = true;
    config.reaper = true;
    let executor = Executor::new(config)?;
    let mut limits = Limits::default();
    limits.wall = Duration::from_secs(2);
    let mut words = std::env::args().skip(1);
    let command = Command::new(words.next().ok_or("name a program")?)
        .args(words)
        .sandbox(Sandbox::guarded().network(Network::Off))
        .limits(limits);
    let outcome = executor
        .run_with(command, |line| {
            println!("{:?}: {}", line.stream, line.bytes.escape_ascii())
        })
        .await?;
    println!("{:?} after {:?}", outcome.ending, outcome.timing.wall);
    Ok(())
}
