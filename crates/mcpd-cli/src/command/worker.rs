//! `mcpd worker`: scripts of this machine for the servers of a cluster.

use std::future::pending;
use std::pin::pin;

use anyhow::Context as _;
use mcpd_config::File;
use mcpd_config::options::Selecting;
use mcpd_service::manager::{self, ServiceState};
use mcpd_service::signals::Termination;
use mcpd_telemetry::{FLUSH_TIMEOUT, Telemetry};

use super::with_spans;
use crate::args::Worker;
use crate::exit_code::ExitCode;

/// Runs scripts until the system asks mcpd to end, and then until none runs any more. A second
/// signal ends it at once.
pub(crate) async fn run(args: &Worker, file: &File) -> anyhow::Result<ExitCode> {
    let mut termination = Termination::listen().context("listen for signals")?;
    let (server, worker) = mcpd_config::server_for_worker(args, file).await?;
    let spans = Telemetry::start("mcpd", env!("CARGO_PKG_VERSION"));
    let server = with_spans(server, &spans).start()?;
    let ready = async {
        server.catalog_ready().await;
        mcpd_config::warn_of_unmatched(file, &Selecting::default(), &server.catalog());
        manager::report_state(ServiceState::Ready).await;
        pending().await
    };
    let (stop, stopped) = tokio::sync::oneshot::channel();
    let mut served = pin!(worker.serve(server.clone(), async {
        stopped.await.ok();
    }));
    tokio::select! {
        served = &mut served => {
            served?;
            return Ok(ExitCode::Success);
        }
        () = ready => {}
        () = manager::ping_watchdog() => {}
        () = termination.wait() => {}
    }
    tracing::info!("draining: this worker takes nothing new, and ends when nothing runs");
    manager::report_state(ServiceState::Stopping).await;
    stop.send(()).ok();
    tokio::select! {
        served = served => served?,
        () = termination.wait() => {}
    }
    server.shutdown().await;
    spans.shut_down(FLUSH_TIMEOUT).await;
    Ok(ExitCode::Success)
}
