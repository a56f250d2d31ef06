//! `mcpd stdio`: one client on the pipes that mcpd was started with.

use std::io;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use mcpd_config::File;
use mcpd_server::transport::stdio::{self, Options};
use mcpd_service::signals::Termination;
use mcpd_telemetry::{FLUSH_TIMEOUT, Telemetry};
use tokio_util::sync::CancellationToken;

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
    let (input, output) = take_pipes().context("take over stdin and stdout")?;
    let mut options = Options::default();
    watch_output(&output, &options.output_closed).context("watch stdout")?;
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
        mcpd_config::warn_of_unmatched(file, &server.catalog());
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

/// Cancels `closed` as soon as `output` has no reader. The waiting thread ends with the process.
#[cfg(unix)]
fn watch_output(output: &std::fs::File, closed: &CancellationToken) -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, poll};

    let (output, closed) = (output.try_clone()?, closed.clone());
    let watch = move || loop {
        // Without a flag, errors and hang-ups are still reported.
        let mut watched = [PollFd::new(&output, PollFlags::empty())];
        match poll(&mut watched, None) {
            Err(rustix::io::Errno::INTR) => {}
            // Without polling, a failed write detects the hang-up.
            Err(_) => return,
            Ok(_) => return closed.cancel(),
        }
    };
    let thread = std::thread::Builder::new().name("mcpd-output".to_owned());
    thread.spawn(watch).map(drop)
}

/// On other systems, a failed write detects the hang-up.
#[cfg(not(unix))]
fn watch_output(_: &io::Stdout, _: &CancellationToken) -> io::Result<()> {
    Ok(())
}

/// Moves the two pipes to private descriptors: output that a library prints by mistake goes to
/// stderr and can't corrupt the session, and no script inherits either pipe.
#[cfg(unix)]
fn take_pipes() -> io::Result<(std::fs::File, std::fs::File)> {
    use std::fs::File;
    use std::os::fd::AsFd as _;

    // Both copies are closed on exec.
    let input = io::stdin().as_fd().try_clone_to_owned()?;
    let output = io::stdout().as_fd().try_clone_to_owned()?;
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    rustix::stdio::dup2_stdout(io::stderr())?;
    Ok((input.into(), output.into()))
}

/// On other systems the pipes stay in place; scripts get pipes of their own in any case.
#[cfg(not(unix))]
fn take_pipes() -> io::Result<(io::Stdin, io::Stdout)> {
    Ok((io::stdin(), io::stdout()))
}
