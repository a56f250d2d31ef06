//! `mcpd stdio`: one client on the pipes that mcpd was started with.

use std::io;

use anyhow::Context as _;
use mcpd_server::transport::stdio::{self, Options};

use super::remark_of;
use crate::args::Stdio;
use crate::config;
use crate::config::File;
use crate::exit_code::ExitCode;
use crate::signals::Termination;
use crate::telemetry::Telemetry;

/// Serves until the client hangs up or the system asks mcpd to end.
pub(crate) async fn run(args: Stdio, file: &File) -> anyhow::Result<ExitCode> {
    let (input, output) = take_pipes().context("take over stdin and stdout")?;
    let mut termination = Termination::listen().context("listen for signals")?;
    let (server, principal) = config::stdio(&args.serving, file).await?;
    let telemetry = Telemetry::start();
    let server = telemetry.observe(server).start()?;
    let mut options = Options::default();
    options.principal = principal;
    options.max_message = args.serving.max_message.get();
    if let Some(names) = args.serving.tool_names {
        options.names = names.into();
    }
    let looked_over = async {
        server.catalog_ready().await;
        if let Some(remark) = remark_of(&server, file) {
            tracing::warn!("{remark}");
        }
        config::warn_of_unmatched(file, &server.catalog());
        std::future::pending().await
    };
    tokio::select! {
        biased;
        // Before a client is gone that has asked for nothing else.
        () = looked_over => {}
        served = stdio::serve(&server, input, output, options) => served?,
        () = termination.requested() => {}
    }
    tokio::select! {
        () = server.shutdown() => {}
        () = termination.requested() => {}
    }
    telemetry.end().await;
    Ok(ExitCode::Success)
}

/// The two pipes under numbers that nobody else knows: what a library prints by mistake goes to stderr
/// and can't corrupt the session, and no script inherits either.
#[cfg(unix)]
fn take_pipes() -> io::Result<(std::fs::File, std::fs::File)> {
    use std::fs::File;
    use std::os::fd::AsFd as _;

    // Both copies are closed when a program is executed.
    let input = io::stdin().as_fd().try_clone_to_owned()?;
    let output = io::stdout().as_fd().try_clone_to_owned()?;
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    rustix::stdio::dup2_stdout(io::stderr())?;
    Ok((input.into(), output.into()))
}

/// Elsewhere the pipes stay where they are; scripts get pipes of their own in any case.
#[cfg(not(unix))]
fn take_pipes() -> io::Result<(io::Stdin, io::Stdout)> {
    Ok((io::stdin(), io::stdout()))
}
