//! `mcpd stdio`: one client on the pipes that mcpd was started with.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use mcpd_config::File;
use mcpd_server::transport::stdio::{self, Options};
use mcpd_service::pipes;
use mcpd_service::signals::Termination;
use mcpd_telemetry::{FLUSH_TIMEOUT, Telemetry};

use super::{describe_served_faults, with_spans};
use crate::args::Stdio;
use crate::exit_code::ExitCode;

/// Grace period of scripts after their client has left. With the timeout for last answers it is
/// shorter than the two seconds after which the SDKs send a signal.
const LEAVE_GRACE: Duration = Duration::from_millis(700);

/// Timeout for all work after the client has left.
const LEAVE_TIMEOUT: Duration = Duration::from_millis(800);

/// Serves until the client hangs up or the system asks mcpd to end.
pub(crate) async fn run(args: Stdio, file: &File) -> anyhow::Result<ExitCode> {
    let (input, output) = pipes::take().context("take over stdin and stdout")?;
    let mut options = Options::default();
    let closed = options.output_closed.clone();
    pipes::watch_reader(&output, move || closed.cancel()).context("watch stdout")?;
    let mut termination = Termination::listen().context("listen for signals")?;
    let (server, principal) = mcpd_config::server_for_stdio(&args.serving, file).await?;
    let spans = Telemetry::start("mcpd", env!("CARGO_PKG_VERSION"));
    let server = with_spans(server, &spans).start()?;
    options.principal = principal;
    if let Some(max_message) = args.serving.max_message {
        options.max_message = max_message.get();
    }
    if let Some(names) = args.serving.tool_names {
        options.names = names.into();
    }
    let (stop, input_ended) = (options.stop.clone(), options.input_ended.clone());
    let looked_over = async {
        server.catalog_ready().await;
        if let Some(remark) = describe_served_faults(&server, file) {
            tracing::warn!("{remark}");
        }
        mcpd_config::warn_of_unmatched(file, &args.serving.selecting, &server.catalog());
        std::future::pending().await
    };
    let forward_signal = async {
        termination.wait().await;
        stop.cancel();
        std::future::pending().await
    };
    tokio::select! {
        biased;
        // First, so that warnings about the catalog are logged even if the client leaves at once.
        () = looked_over => {}
        () = forward_signal => {}
        served = stdio::serve(&server, input, output, options) => served?,
    }
    let is_asked = stop.is_cancelled() && !input_ended.is_cancelled();
    if is_asked {
        tokio::select! {
            () = server.shutdown() => {}
            () = termination.wait() => {}
        }
        spans.shut_down(FLUSH_TIMEOUT).await;
    } else {
        // Clients send a signal some time after they have closed the input: it must not shorten
        // the grace period of scripts.
        let deadline = Instant::now() + LEAVE_TIMEOUT;
        server.shutdown_within(LEAVE_GRACE).await;
        spans
            .shut_down(deadline.saturating_duration_since(Instant::now()))
            .await;
    }
    Ok(ExitCode::Success)
}
