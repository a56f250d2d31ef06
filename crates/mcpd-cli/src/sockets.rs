//! Listening sockets: those of a service manager, or those opened for `--listen`.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context as _, bail};
use mcpd_config::listening::{Http, ListenPlace};
use mcpd_server::transport::http::Listener;
use tokio::net::TcpListener;

use crate::service::{self, Passed};

#[cfg(unix)]
mod file;

/// A listening socket with its address.
#[derive(Debug)]
struct Socket {
    listener: Listener,
    address: Address,
}

/// Address of a socket, as clients reach it.
#[derive(Debug)]
pub(crate) enum Address {
    /// A network address.
    Network {
        address: SocketAddr,
        is_encrypted: bool,
    },
    /// A Unix domain socket: clients connect to it, and send `localhost` as the host.
    #[cfg(unix)]
    File(file::SocketFile),
}

impl Address {
    /// URL of the MCP endpoint at the address.
    pub(crate) fn url(&self) -> String {
        match self {
            Self::Network {
                address,
                is_encrypted: true,
            } => format!("https://{address}/mcp"),
            Self::Network { address, .. } => format!("http://{address}/mcp"),
            #[cfg(unix)]
            Self::File(_) => "http://localhost/mcp".to_owned(),
        }
    }

    /// Unix domain socket that clients connect to, instead of the host in the URL.
    pub(crate) fn file(&self) -> Option<&Path> {
        match self {
            Self::Network { .. } => None,
            #[cfg(unix)]
            Self::File(file) => Some(file.path()),
        }
    }
}

/// Opens the configured sockets, one at least. Those of a service manager take precedence.
pub(crate) async fn open(config: &Http) -> anyhow::Result<(Listener, Vec<Address>)> {
    let passed = service::sockets().context("use the sockets of the service manager")?;
    let mut sockets = Vec::new();
    if passed.is_empty() {
        for place in &config.places {
            sockets.push(listen(place).await?);
        }
    }
    for socket in passed {
        sockets.push(take_over(socket).context("use the sockets of the service manager")?);
    }
    let mut listeners = Vec::new();
    let mut addresses = Vec::new();
    for socket in sockets {
        let socket = add_tls(socket, config)?;
        listeners.push(socket.listener);
        addresses.push(socket.address);
    }
    let listener = listeners.into_iter().reduce(Listener::and);
    Ok((
        listener.context("listen: no address is configured")?,
        addresses,
    ))
}

/// Adds TLS to a network socket as `config` says: traffic between processes of one
/// machine can't be intercepted.
fn add_tls(socket: Socket, config: &Http) -> anyhow::Result<Socket> {
    let address = match socket.address {
        Address::Network { address, .. } => address,
        #[cfg(unix)]
        Address::File(_) => return Ok(socket),
    };
    config.check_exposure(address)?;
    let Some(certificates) = &config.certificates else {
        if !address.ip().is_loopback() {
            tracing::warn!(
                %address,
                "no TLS: tokens and results cross the network unencrypted; use --tls-certificate or a TLS proxy"
            );
        }
        return Ok(socket);
    };
    Ok(Socket {
        listener: socket.listener.with_tls(certificates.tls()),
        address: Address::Network {
            address,
            is_encrypted: true,
        },
    })
}

async fn listen(place: &ListenPlace) -> anyhow::Result<Socket> {
    match place {
        ListenPlace::Network(addresses) => listen_at(addresses).await,
        #[cfg(unix)]
        ListenPlace::File(path) => {
            let (listener, file) = file::listen(path)
                .await
                .with_context(|| format!("listen at `{}`", path.display()))?;
            Ok(Socket {
                listener: listener.into(),
                address: Address::File(file),
            })
        }
        #[cfg(not(unix))]
        ListenPlace::File(path) => bail!(
            "listen at `{}`: this system has no Unix sockets",
            path.display()
        ),
    }
}

async fn listen_at(addresses: &[SocketAddr]) -> anyhow::Result<Socket> {
    match TcpListener::bind(addresses).await {
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            let port = addresses.first().map_or(0, SocketAddr::port);
            bail!(
                "listen on port {port}: the port is in use, perhaps by another mcpd; stop that program or choose another port with `--port`"
            )
        }
        listener => network(listener.with_context(|| format!("listen on {addresses:?}"))?),
    }
}

fn take_over(socket: Passed) -> anyhow::Result<Socket> {
    match socket {
        Passed::Network(listener) => network(TcpListener::from_std(listener)?),
        #[cfg(unix)]
        Passed::File(listener) => {
            let file = file::SocketFile::of_passed_listener(&listener)?;
            Ok(Socket {
                listener: tokio::net::UnixListener::from_std(listener)?.into(),
                address: Address::File(file),
            })
        }
    }
}

fn network(listener: TcpListener) -> anyhow::Result<Socket> {
    let address = listener.local_addr().context("listen")?;
    Ok(Socket {
        listener: listener.into(),
        address: Address::Network {
            address,
            is_encrypted: false,
        },
    })
}
