//! Worker of a cluster: `worker DIRECTORY URL NODE [LEASE_SECONDS]`.

use std::time::Duration;

use mcpd_cluster::{Settings, Worker};
use mcpd_exec::{Config, Executor};
use mcpd_server::Server;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    // First of all: the watchdog, which ends scripts when this process is killed, is this program.
    mcpd_exec::prepare_signals();
    if mcpd_exec::run_watchdog() {
        return Ok(());
    }
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?
        .block_on(serve())
}

async fn serve() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let mut argument = || arguments.next().ok_or("worker DIRECTORY URL NODE [LEASE]");
    let (directory, url, node) = (argument()?, argument()?, argument()?);
    let mut settings = Settings::new(vec![url], node.parse()?);
    if let Ok(lease) = argument() {
        settings.lease = Duration::from_secs(lease.parse()?);
    }
    let mut config = Config::default();
    config.reaper = true;
    config.watchdog = true;
    let server = Server::builder()
        .scripts(directory)
        .executor(Executor::new(config)?)
        .start()?;
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    let stop = async move {
        // The end of the stream would mean the same.
        terminate.recv().await;
    };
    Worker::new(settings).serve(server, stop).await?;
    Ok(())
}
