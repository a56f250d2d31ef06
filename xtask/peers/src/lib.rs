//! Code common to both peers: listening, and printing the address.

use std::error::Error;
use std::io::Write as _;
use std::net::Ipv4Addr;

use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

/// Error of an answer.
type Fault = Box<dyn Error + Send + Sync>;

/// Serves on a loopback address until it is killed, and prints the address first.
///
/// # Errors
///
/// Fails if it can't listen.
pub async fn serve<S, B>(service: S) -> std::io::Result<()>
where
    S: Service<Request<Incoming>, Response = Response<B>, Future: Send> + Clone + Send + 'static,
    S::Error: Into<Fault>,
    B: Body<Data: Send, Error: Into<Fault>> + Send + 'static,
{
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    writeln!(std::io::stdout(), "{}", listener.local_addr()?)?;
    loop {
        let (stream, _) = listener.accept().await?;
        // Without this, answers in several pieces wait for a delayed acknowledgement.
        stream.set_nodelay(true)?;
        let connection =
            http1::Builder::new().serve_connection(TokioIo::new(stream), service.clone());
        // A client that disconnects is no error.
        tokio::spawn(async { connection.await.ok() });
    }
}
