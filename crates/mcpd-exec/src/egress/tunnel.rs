//! Tunnel between two connections: bytes in both directions, counted, until both sides have closed
//! or nothing has moved for the idle timeout.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until};

/// Bytes that one direction holds at a time.
const BUFFER_SIZE: usize = 16 * 1024;

/// Bytes that went each way so far.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    pub(super) sent: AtomicU64,
    pub(super) received: AtomicU64,
}

/// Passes bytes on until both sides have closed, one has failed, or both were idle for `timeout`.
pub(super) async fn tunnel(
    client: &mut TcpStream,
    server: &mut TcpStream,
    traffic: &Traffic,
    timeout: Duration,
) {
    let idle = IdleTimer::new(timeout);
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    let both = async {
        tokio::try_join!(
            pump(from_client, to_server, &traffic.sent, &idle),
            pump(from_server, to_client, &traffic.received, &idle),
        )
    };
    tokio::select! {
        // A failure of one side ends the other as well.
        _ = both => {}
        () = idle.wait() => {}
    }
}

async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    count: &AtomicU64,
    idle: &IdleTimer,
) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER_SIZE];
    loop {
        let length = from.read(&mut buffer).await?;
        if length == 0 {
            return to.shutdown().await;
        }
        to.write_all(&buffer[..length]).await?;
        count.fetch_add(length as u64, Relaxed);
        idle.reset();
    }
}

/// Idle timeout over both directions.
struct IdleTimer {
    start: Instant,
    /// Milliseconds from the start to the last byte.
    last: AtomicU64,
    timeout: Duration,
}

impl IdleTimer {
    fn new(timeout: Duration) -> Self {
        Self {
            start: Instant::now(),
            last: AtomicU64::new(0),
            timeout,
        }
    }

    fn reset(&self) {
        let elapsed = self.start.elapsed().as_millis();
        self.last.store(elapsed as u64, Relaxed);
    }

    async fn wait(&self) {
        loop {
            let last = self.start + Duration::from_millis(self.last.load(Relaxed));
            let end = last + self.timeout;
            if end <= Instant::now() {
                return;
            }
            sleep_until(end).await;
        }
    }
}
