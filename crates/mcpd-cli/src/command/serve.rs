//! `mcpd serve`: many clients over HTTP.

use std::convert::Infallible;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;

use anyhow::{Context as _, bail};
use mcpd_server::Server;
use mcpd_server::transport::http::{self, Auth};
use tokio::net::TcpListener;

use crate::args::{CommandLine, LogFormat, Logging, Serve};
use crate::config::{self, File, Http};
use crate::discovery::Discovery;
use crate::exit_code::ExitCode;
use crate::output;
use crate::render;
use crate::service::{self, State};
use crate::signals::{Reload, Termination};

/// Serves until the system asks mcpd to end.
pub(crate) async fn run(
    args: &Serve,
    logging: &Logging,
    line: &CommandLine,
    file: &File,
) -> anyhow::Result<ExitCode> {
    let (server, config) = config::http(args, file).await?;
    let mut termination = Termination::listen().context("listen for signals")?;
    let reload = Reload::listen().context("listen for signals")?;
    let listener = listen(&config).await?;
    let address = listener.local_addr().context("listen")?;
    let server = server.start()?;
    let auth = config.options.auth.clone();
    let mut served = pin!(http::serve(&server, listener, config.options));
    let announced = async {
        server.catalog_ready().await;
        let url = format!("http://{address}/mcp");
        let discovery = Discovery::new(&server, url.clone(), config.token_file.as_deref());
        let published = discovery.publish();
        if let Err(error) = &published {
            tracing::warn!(
                "programs that look for a server don't find this one: failed to {error:#}"
            );
        }
        announce(&server, &url, config.token_file.as_ref(), logging);
        service::tell(State::Ready);
        follow(reload, line, &auth).await
    };
    tokio::select! {
        served = &mut served => return Ok(served.map(|()| ExitCode::Success)?),
        never = announced => match never {},
        () = service::show_life() => {}
        () = termination.requested() => {}
    }
    service::tell(State::Stopping);
    tokio::select! {
        (served, ()) = async { tokio::join!(served, server.shutdown()) } => served?,
        () = termination.requested() => {}
    }
    Ok(ExitCode::Success)
}

/// Reads the configuration again whenever that is asked for. One that is wrong changes nothing.
async fn follow(mut reload: Reload, line: &CommandLine, auth: &Auth) -> Infallible {
    loop {
        reload.requested().await;
        service::tell(State::Reloading);
        match config::auth(line) {
            Ok(new) => {
                auth.replace(&new);
                tracing::info!("read who may come in again");
            }
            Err(error) => tracing::error!("who may come in stays as it is: failed to {error:#}"),
        }
        service::tell(State::Ready);
    }
}

/// The socket of a service manager, or one of our own.
async fn listen(config: &Http) -> anyhow::Result<TcpListener> {
    if let Some(listener) = service::listener().context("use the socket of the service manager")? {
        let address = listener
            .local_addr()
            .context("use the socket of the service manager")?;
        config.check_exposure(address)?;
        return Ok(listener);
    }
    match TcpListener::bind(&config.addresses[..]).await {
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            let port = config.addresses.first().map_or(0, SocketAddr::port);
            bail!(
                "listen on port {port}: another program does already, perhaps another mcpd; \
                 stop it, or choose another port with `--port`"
            )
        }
        listener => listener.with_context(|| format!("listen on {:?}", config.addresses)),
    }
}

/// Says where clients find the server and what they find there. What is faulty is in the log.
fn announce(server: &Server, url: &str, token_file: Option<&PathBuf>, logging: &Logging) {
    let catalog = server.catalog();
    let tools = catalog.tools().len();
    let shortfall = render::shortfall(&catalog);
    let token_file = token_file.map(|file| file.display().to_string());
    if logging.log_format == LogFormat::Json {
        tracing::info!(url, token_file, tools, shortfall, "listening");
        return;
    }
    if logging.quiet {
        return;
    }
    let token = token_file.map_or_else(|| "none is needed".to_owned(), |file| format!("in {file}"));
    let mut text = format!("mcpd listens on {url}\n  token: {token}\n  tools: {tools}\n");
    if let Some(shortfall) = shortfall {
        let roots: Vec<_> = server
            .roots()
            .iter()
            .map(|root| root.display().to_string())
            .collect();
        text += &format!(
            "  not served as it should be: {shortfall}; `mcpd check {}` says why\n",
            roots.join(" ")
        );
    }
    output::note(&text);
}
