//! HTTP server on a separate thread, for programs without an async runtime. It takes over nothing
//! of the process: no signals, no log, no settings.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::sync::oneshot;

use super::{Options, serve};
use crate::server::Server;
use crate::server::ServerBuilder;
use crate::server::Settings;
use crate::server::error::Error;

/// Time for which uninterruptible work may continue after the server has stopped.
const BLOCKING_TIMEOUT: Duration = Duration::from_secs(1);

/// Server on a separate thread. Dropped, it stops at once, without waiting.
///
/// ```
/// use std::time::Duration;
///
/// use mcpd_server::transport::http::{Auth, Background, Options, Token};
/// use mcpd_server::{Principal, Server};
///
/// # fn main() -> Result<(), mcpd_server::Error> {
/// let auth = Auth::tokens([Token::new("a secret", Principal::new("me"))]);
/// let server = Background::start(Server::builder(), "127.0.0.1:0", Options::new(auth))?;
/// println!("http://{}/mcp", server.address());
/// server.stop(Duration::from_secs(5))
/// # }
/// ```
#[derive(Debug)]
pub struct Background {
    server: Server,
    address: SocketAddr,
    /// Receives the deadline for open requests.
    stop: oneshot::Sender<Duration>,
    thread: JoinHandle<Result<(), Error>>,
}

impl Background {
    /// Starts `server` and serves it at `address`, such as `127.0.0.1:43210`; port 0 selects a
    /// free one.
    ///
    /// # Errors
    ///
    /// The address is not available, or an error of [`ServerBuilder::start`].
    pub fn start(
        server: ServerBuilder,
        address: impl ToSocketAddrs,
        options: Options,
    ) -> Result<Self, Error> {
        let listener = std::net::TcpListener::bind(address).map_err(Error::Transport)?;
        listener.set_nonblocking(true).map_err(Error::Transport)?;
        let address = listener.local_addr().map_err(Error::Transport)?;
        let (stop, stopped) = oneshot::channel();
        let (started, start) = mpsc::sync_channel(1);
        let run = move || {
            let runtime = Builder::new_current_thread().enable_all().build();
            let runtime = runtime.map_err(Error::Transport)?;
            let served = runtime.block_on(async {
                let listener = TcpListener::from_std(listener).map_err(Error::Transport)?;
                let server = server.start()?;
                // The starting thread waits for this message.
                started.send(server.clone()).ok();
                until_stopped(&server, listener, options, stopped).await
            });
            runtime.shutdown_timeout(BLOCKING_TIMEOUT);
            served
        };
        let thread = thread::Builder::new().name("mcpd".to_owned()).spawn(run);
        let thread = thread.map_err(Error::Transport)?;
        match start.recv() {
            Ok(server) => Ok(Self {
                server,
                address,
                stop,
                thread,
            }),
            Err(_) => Err(join_thread(thread).err().unwrap_or_else(panic_error)),
        }
    }

    /// Listening address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Server behind the transport.
    #[must_use]
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Applies `settings` from now on: see [`Server::reload`].
    ///
    /// # Errors
    ///
    /// See [`Server::reload`].
    pub fn reload(&self, settings: Settings) -> Result<(), Error> {
        self.server.reload(settings)
    }

    /// Stops: accepts no further connections, lets open requests end within `deadline` and at
    /// most three seconds, ends the scripts still running, and waits for all of that.
    ///
    /// # Errors
    ///
    /// The server had failed before.
    pub fn stop(self, deadline: Duration) -> Result<(), Error> {
        // An error means that the thread has ended already; its result says why.
        self.stop.send(deadline).ok();
        drop(self.server);
        join_thread(self.thread)
    }
}

async fn until_stopped(
    server: &Server,
    listener: TcpListener,
    options: Options,
    stopped: oneshot::Receiver<Duration>,
) -> Result<(), Error> {
    let mut served = std::pin::pin!(serve(server, listener, options));
    let deadline = tokio::select! {
        served = &mut served => return served,
        // A dropped sender means no deadline.
        deadline = stopped => deadline.unwrap_or_default(),
    };
    let end = async { tokio::join!(served, server.shutdown()).0 };
    match tokio::time::timeout(deadline, end).await {
        Ok(served) => served,
        Err(_) => Ok(()),
    }
}

fn join_thread(thread: JoinHandle<Result<(), Error>>) -> Result<(), Error> {
    thread.join().unwrap_or_else(|_| Err(panic_error()))
}

fn panic_error() -> Error {
    Error::Transport(std::io::Error::other("the server thread panicked"))
}
