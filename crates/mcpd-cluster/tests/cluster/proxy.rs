//! Proxy on loopback between a node and the NATS server: passes bytes, holds them back, or cuts
//! the connections.

use std::net::Ipv4Addr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Conduct of the proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Conduct {
    Pass,
    /// Bytes wait, and so do new connections.
    Stall,
    /// Connections are closed, and new ones as well.
    Cut,
}

/// Running proxy.
pub(crate) struct Proxy {
    port: u16,
    conduct: watch::Sender<Conduct>,
}

impl Proxy {
    /// Starts a proxy before the server at `target`.
    pub(crate) async fn start(target: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listener.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let (conduct, watched) = watch::channel(Conduct::Pass);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(serve(client, target, watched.clone()));
            }
        });
        Self { port, conduct }
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Changes the conduct for all connections.
    pub(crate) fn set(&self, conduct: Conduct) {
        self.conduct.send_replace(conduct);
    }

    /// Behaves so for a time.
    pub(crate) async fn misbehave(&self, conduct: Conduct, time: Duration) {
        self.set(conduct);
        tokio::time::sleep(time).await;
        self.set(Conduct::Pass);
    }
}

async fn serve(client: TcpStream, target: u16, mut conduct: watch::Receiver<Conduct>) {
    let mut before = conduct.clone();
    let is_open = before.wait_for(|conduct| *conduct != Conduct::Stall).await;
    if is_open.is_ok_and(|conduct| *conduct == Conduct::Cut) {
        return;
    }
    let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, target)).await else {
        return;
    };
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    tokio::select! {
        () = pump(from_client, to_server, conduct.clone()) => {}
        () = pump(from_server, to_client, conduct.clone()) => {}
        _ = conduct.wait_for(|conduct| *conduct == Conduct::Cut) => {}
    }
}

async fn pump(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut conduct: watch::Receiver<Conduct>,
) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let Ok(count @ 1..) = from.read(&mut buffer).await else {
            return;
        };
        if conduct
            .wait_for(|conduct| *conduct == Conduct::Pass)
            .await
            .is_err()
        {
            return;
        }
        if to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}
