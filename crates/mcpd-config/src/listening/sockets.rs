//! Listening sockets: those of a service manager, or those opened at the configured places.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context as _, bail};
use mcpd_server::transport::http::Listener;
use mcpd_service::manager::{self, PassedSocket};
#[cfg(unix)]
use mcpd_service::socket_file::{self, SocketFile};
use tokio::net::TcpListener;

use super::{Http, ListenPlace};

/// A listening socket with its address.
#[derive(Debug)]
struct Socket {
    listener: Listener,
    address: Address,
}

/// Address of a socket, as clients reach it.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "a socket is one or the other")]
pub enum Address {
    /// A network address.
    Network {
        /// Address with the port that the system has chosen, if none is configured.
        address: SocketAddr,
        /// TLS is on.
        is_encrypted: bool,
    },
    /// A Unix domain socket: clients connect to it, and send `localhost` as the host.
    #[cfg(unix)]
    File(SocketFile),
}

impl Address {
    /// URL of the MCP endpoint at the address.
    #[must_use]
    pub fn url(&self) -> String {
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
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::Network { .. } => None,
            #[cfg(unix)]
            Self::File(file) => Some(file.path()),
        }
    }
}

/// Opens the sockets of `config`, or takes those of a service manager.
pub(super) async fn open(config: &Http) -> anyhow::Result<(Listener, Vec<Address>)> {
    let passed = manager::sockets().context("use the sockets of the service manager")?;
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
            let (listener, file) = socket_file::listen(path)
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

fn take_over(socket: PassedSocket) -> anyhow::Result<Socket> {
    match socket {
        PassedSocket::Network(listener) => network(TcpListener::from_std(listener)?),
        #[cfg(unix)]
        PassedSocket::File(listener) => {
            let file = SocketFile::of_passed_listener(&listener)?;
            Ok(Socket {
                listener: tokio::net::UnixListener::from_std(listener)?.into(),
                address: Address::File(file),
            })
        }
        _ => bail!("the kind of a socket is unknown"),
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
