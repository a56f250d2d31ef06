//! `mcpd serve`: many clients over HTTP; and `mcpd dev`, which shows its author what they do.

use std::future::pending;
use std::path::Path;
use std::pin::{Pin, pin};

use anyhow::Context as _;
use mcpd_author::session::Session;
use mcpd_config::discovery::{Discovery, Published};
use mcpd_config::listening::{Address, Metrics, Shortage, TlsCertificates};
use mcpd_config::{File, FrontNode, Started, token};
use mcpd_server::transport::http::{self, Listener, Options};
use mcpd_server::{Principal, Server, ServerBuilder};
use mcpd_service::manager::{self, ServiceState};
use mcpd_service::signals::{Reload, Termination};
use mcpd_telemetry::{FLUSH_TIMEOUT, Telemetry};
use tokio::sync::watch;

use self::console::ServedConsole;
use super::{describe_served_faults, dev, with_spans};
use crate::args::{Logging, Serve};
use crate::exit_code::ExitCode;
use crate::output;
use crate::reload::Reloading;

mod console;

/// Serves until the system asks mcpd to end, or the author whose session it is.
pub(crate) async fn run(
    args: &Serve,
    logging: &Logging,
    reloading: Reloading<'_>,
    session: Option<&Session>,
) -> anyhow::Result<ExitCode> {
    let spans = Telemetry::start("mcpd", env!("CARGO_PKG_VERSION"));
    let code = run_observed(args, logging, reloading, session, &spans).await;
    spans.shut_down(FLUSH_TIMEOUT).await;
    code
}

async fn run_observed(
    args: &Serve,
    logging: &Logging,
    reloading: Reloading<'_>,
    session: Option<&Session>,
    telemetry: &Telemetry,
) -> anyhow::Result<ExitCode> {
    let (server, mut config) = mcpd_config::server_for_http(args, reloading.file).await?;
    let mut termination = Termination::listen().context("listen for signals")?;
    let reload = Reload::listen().context("listen for signals")?;
    let (listener, addresses) = config.open().await?;
    let metrics = listen_for_metrics(args).await?;
    let metrics_url = metrics.as_ref().map(Metrics::url);
    let selected = mcpd_config::selected(reloading.file, &args.serving.selecting)?;
    let token_file = config.token_file.take();
    let token_file = token_file.as_deref();
    let place = (&addresses[0], token_file);
    let console = ServedConsole::prepare(args, session.is_some(), place, &reloading)?;
    let console = console.as_ref();
    config.options.console = console.map(ServedConsole::console);
    let server = console::observe(console, observe(server, session, telemetry)).start()?;
    let auth = config.options.auth.clone();
    let mut served = pin!(serve(&server, listener, config.options, metrics));
    let announced = async {
        server.catalog_ready().await;
        let published = publish(&server, &addresses[0], token_file);
        announce(
            &server,
            &selected,
            &addresses,
            (token_file, config.is_open),
            [metrics_url, console.map(|console| console.link(token_file))],
            reloading.file,
            logging,
        );
        mcpd_config::warn_of_unmatched(reloading.file, &args.serving.selecting, &server.catalog());
        log_shortage(config.shortage.as_ref());
        manager::report_state(ServiceState::Ready).await;
        let started = Started::new(args, &config.places, &config.front);
        let show = |in_force: &[_]| console::show_configuration(console, in_force);
        tokio::select! {
            never = reloading.follow(reload, &server, &auth, started, show) => never,
            never = config.front.share_events(&server) => never,
            never = if_any(published.as_ref().map(Published::restore_when_lost)) => never,
        }
    };
    let (leave, left) = watch::channel(false);
    let mut worked = pin!(mcpd_config::work(args, reloading.file, &server, left));
    let rotated = if_any(token_file.map(|file| token::follow(file, &auth)));
    let encrypted = if_any(config.certificates.map(TlsCertificates::follow));
    let developed =
        if_any(session.map(|session| dev::follow(session, &server, &addresses[0], token_file)));
    tokio::select! {
        served = &mut served => return Ok(served.map(|()| ExitCode::Success)?),
        worked = &mut worked => return worked.map(|()| ExitCode::Success),
        never = announced => match never {},
        never = rotated => match never {},
        never = console::follow(console, &server) => match never {},
        never = encrypted => match never.context("watch the TLS certificate")? {},
        () = developed => {}
        () = manager::ping_watchdog() => {}
        () = termination.wait() => {}
    }
    leave.send_replace(true);
    stop(&server, &config.front, (served, worked), &mut termination).await
}

/// Stops a server and leaves its cluster, and waits for what it runs for other fronts, and then for
/// its clients, until the system asks again.
async fn stop(
    server: &Server,
    front: &FrontNode,
    (served, worked): (
        Pin<&mut impl Future<Output = Result<(), mcpd_server::Error>>>,
        Pin<&mut impl Future<Output = anyhow::Result<()>>>,
    ),
    termination: &mut Termination,
) -> anyhow::Result<ExitCode> {
    manager::report_state(ServiceState::Stopping).await;
    front.begin_departure();
    let stopped = async {
        let mut served = served;
        tokio::select! {
            worked = worked => worked?,
            served = &mut served => return Ok(served?),
        }
        let (served, ()) = tokio::join!(served, server.shutdown());
        Ok(served?)
    };
    let stopped = tokio::select! {
        stopped = stopped => stopped,
        () = termination.wait() => Ok(()),
    };
    front.departed().await;
    stopped.map(|()| ExitCode::Success)
}

/// Opens the address of the metrics, if they have one of their own.
async fn listen_for_metrics(args: &Serve) -> anyhow::Result<Option<Metrics>> {
    Ok(match &args.metrics_listen {
        Some(address) => Some(Metrics::listen(address).await?),
        None => None,
    })
}

/// Adds the observers that this program has: spans, and the session of an author.
fn observe(
    server: ServerBuilder,
    session: Option<&Session>,
    telemetry: &Telemetry,
) -> ServerBuilder {
    let server = match session {
        Some(session) => session.observe(server),
        None => server,
    };
    with_spans(server, telemetry)
}

/// Logs what the machine lacks for many connections. Most machines have a shortage, and most
/// servers never notice it; `mcpd doctor` reports it.
fn log_shortage(shortage: Option<&Shortage>) {
    if let Some(shortage) = shortage {
        tracing::debug!("{shortage}");
    }
}

/// Waits for `future`; without one, waits forever.
async fn if_any<T>(future: Option<impl Future<Output = T>>) -> T {
    match future {
        Some(future) => future.await,
        None => pending().await,
    }
}

/// Publishes the server for discovery by programs until the returned guard is dropped.
fn publish(server: &Server, address: &Address, token_file: Option<&Path>) -> Option<Published> {
    let published = Discovery::new(server, address, token_file).publish();
    published
        .inspect_err(|error| {
            tracing::warn!("this server is missing from the discovery file: failed to {error:#}");
        })
        .ok()
}

/// Serves clients, and the metrics if they have an address of their own.
async fn serve(
    server: &Server,
    listener: Listener,
    options: Options,
    metrics: Option<Metrics>,
) -> Result<(), mcpd_server::Error> {
    let metrics = async {
        match metrics {
            Some(metrics) => metrics.serve(server).await,
            None => Ok(()),
        }
    };
    tokio::try_join!(http::serve(server, listener, options), metrics)?;
    Ok(())
}

/// Announces the addresses of the server and the part of its catalog that is selected. Faults are
/// in the log.
fn announce(
    server: &Server,
    selected: &Principal,
    addresses: &[Address],
    (token_file, is_open): (Option<&Path>, bool),
    [metrics, console]: [Option<String>; 2],
    file: &File,
    logging: &Logging,
) {
    let (all, catalog) = (server.catalog(), server.catalog_for(selected));
    let tools = catalog.tools().len();
    let prompts = catalog.prompts().len();
    let resources = catalog.resources().len();
    let templates = catalog.templates().len();
    let shortfall = mcpd_check::shortfall(&all);
    let token_file = token_file.map(|file| file.display().to_string());
    let mut text = String::new();
    for address in addresses {
        let url = address.url();
        let socket = address.file().map(|file| file.display().to_string());
        if logging.is_json() {
            tracing::info!(
                url,
                socket,
                token_file,
                metrics,
                tools,
                prompts,
                resources,
                templates,
                shortfall,
                "listening"
            );
        }
        let socket = socket.map(|socket| format!(", Unix socket {socket}"));
        text += &format!("mcpd listens on {url}{}\n", socket.unwrap_or_default());
    }
    if logging.quiet || logging.is_json() {
        return;
    }
    let token = match token_file {
        Some(file) => format!("in {file}"),
        None if is_open => "not required".to_owned(),
        None => "one of the configuration".to_owned(),
    };
    let metrics = metrics.map(|url| format!("  metrics: {url}\n"));
    let metrics = metrics.unwrap_or_default();
    let console = console.map(|link| format!("  console: {link}\n"));
    let console = console.unwrap_or_default();
    text += &format!("  token: {token}\n{console}{metrics}  tools: {tools}");
    if tools < all.tools().len() {
        text += &format!(" of {}", all.tools().len());
    }
    for (what, number) in [
        ("prompts", prompts),
        ("resources", resources),
        ("templates", templates),
    ] {
        if number > 0 {
            text += &format!(", {what}: {number}");
        }
    }
    text.push('\n');
    if let Some(remark) = describe_served_faults(server, file) {
        text += &format!("  {remark}\n");
    }
    output::note(&text);
}
