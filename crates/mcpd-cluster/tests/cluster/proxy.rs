//! Proxy on loopback between a node and the NATS server: passes bytes, delays them, holds them
//! back, or cuts the connections.

use std::net::Ipv4Addr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

/// Conduct of the proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Conduct {
    Pass,
    /// Bytes arrive later, in both directions.
    Delay(Duration),
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

/// Passes bytes in one direction, until one of the sides closes.
async fn pump(from: OwnedReadHalf, to: OwnedWriteHalf, conduct: watch::Receiver<Conduct>) {
    let (sender, receiver) = mpsc::channel(64);
    tokio::join!(receive(from, sender, conduct), pass_on(receiver, to));
}

/// Receives bytes, with the time at which they are to arrive.
async fn receive(
    mut from: OwnedReadHalf,
    sender: mpsc::Sender<(Instant, Vec<u8>)>,
    mut conduct: watch::Receiver<Conduct>,
) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        let passing = conduct.wait_for(|conduct| *conduct != Conduct::Stall).await;
        let delay = match passing.map(|conduct| *conduct) {
            Ok(Conduct::Pass) => Duration::ZERO,
            Ok(Conduct::Delay(delay)) => delay,
            Ok(Conduct::Stall | Conduct::Cut) | Err(_) => return,
        };
        let bytes = buffer[..count].to_vec();
        if sender.send((Instant::now() + delay, bytes)).await.is_err() {
            return;
        }
    }
}

async fn pass_on(mut receiver: mpsc::Receiver<(Instant, Vec<u8>)>, mut to: OwnedWriteHalf) {
    while let Some((at, bytes)) = receiver.recv().await {
        sleep_until(at).await;
        if to.write_all(&bytes).await.is_err() {
            return;
        }
    }
}
