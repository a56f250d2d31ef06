//! Proxy of one run: accepts its connections, decides about each, and passes bytes on. It ends with
//! the run.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, lookup_host};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};

use super::destination::{check_target, permits};
use super::http::{self, BadRequest, HttpRequest};
use super::socks::{self, SocksRequest};
use super::target::{Host, Target};
use super::tunnel::{Traffic, tunnel};
use super::{Connection, ConnectionObserver, Destination, Verdict};

/// Connections of a run at the same time; further ones wait.
const CONCURRENT_CONNECTIONS: usize = 64;

/// Connections of a run in all; further ones are refused.
const MAX_CONNECTIONS: usize = 10_000;

/// Time for a client to say where to connect.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(30);

/// Time for a name to be resolved.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(10);

/// Time for one address of a destination to answer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Time after which a connection ends on which nothing moves.
const IDLE_TIMEOUT: Duration = Duration::from_secs(300);

/// Pause after a connection that can't be accepted, as without free descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// User that the password belongs to.
const USER: &str = "run";

/// Password without which a proxy serves no client. It keeps other users of the machine out, where
/// they can reach the proxy.
#[derive(Clone)]
pub(crate) struct Password(String);

impl Password {
    /// Makes a password of unguessable numbers.
    pub(crate) fn new(random: [u64; 2]) -> Self {
        Self(format!("{:016x}{:016x}", random[0], random[1]))
    }

    /// Returns whether these are the user and the password, in constant time.
    fn is(&self, user: &[u8], password: &[u8]) -> bool {
        let own = self.0.as_bytes();
        let differences = own.iter().zip(password).map(|(one, two)| one ^ two);
        let is_same = differences.fold(0, |all, one| all | one) == 0;
        user == USER.as_bytes() && own.len() == password.len() && is_same
    }

    /// Returns whether this is the value of `Proxy-Authorization` with the password.
    fn is_in(&self, header: Option<&[u8]>) -> bool {
        let scheme = header.and_then(|value| value.split_at_checked("Basic ".len()));
        let Some((_, encoded)) = scheme.filter(|(name, _)| name.eq_ignore_ascii_case(b"Basic "))
        else {
            return false;
        };
        let Ok(decoded) = BASE64_STANDARD.decode(encoded.trim_ascii()) else {
            return false;
        };
        let colon = decoded.iter().position(|byte| *byte == b':');
        colon.is_some_and(|at| self.is(&decoded[..at], &decoded[at + 1..]))
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password")
    }
}

/// Address of the proxy, as the run sees it.
#[derive(Debug, Clone)]
pub(crate) struct Gate {
    pub(crate) address: SocketAddr,
    pub(crate) password: Option<Password>,
}

/// Variables by which programs find a proxy. `ALL_PROXY` names an HTTP proxy too: some libraries
/// fail at its other schemes.
const PROXY_VARIABLES: [&str; 6] = [
    "HTTP_PROXY",
    "http_proxy",
    "HTTPS_PROXY",
    "https_proxy",
    "ALL_PROXY",
    "all_proxy",
];

/// Variables with hosts that programs reach without a proxy: none.
const NO_PROXY_VARIABLES: [&str; 2] = ["NO_PROXY", "no_proxy"];

impl Gate {
    /// Returns the variables that lead programs to the proxy.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (&'static str, String)> {
        let user = self.password.as_ref();
        let user = user.map(|password| format!("{USER}:{}@", password.0));
        let address = format!("http://{}{}", user.unwrap_or_default(), self.address);
        let named = PROXY_VARIABLES.map(|name| (name, address.clone()));
        let none = NO_PROXY_VARIABLES.map(|name| (name, String::new()));
        // Node reads the others only if this is set.
        let node = ("NODE_USE_ENV_PROXY", "1".to_owned());
        named.into_iter().chain(none).chain([node])
    }
}

/// Running proxy. Dropping it ends all its connections.
#[derive(Debug)]
pub(crate) struct Proxy(JoinHandle<()>);

impl Proxy {
    /// Serves the connections that arrive at `listener`.
    ///
    /// # Errors
    ///
    /// The runtime can't watch the listener.
    pub(crate) fn serve(
        listener: std::net::TcpListener,
        password: Option<Password>,
        destinations: Vec<Destination>,
        observer: Option<ConnectionObserver>,
    ) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let shared = Arc::new(Shared {
            password,
            destinations,
            observer,
            connections: AtomicUsize::new(0),
            idle: IDLE_TIMEOUT,
            look_up: look_up_by_system,
        });
        Ok(Self(tokio::spawn(accept_all(listener, shared))))
    }

    /// Ends all connections, and returns when all were reported.
    pub(crate) async fn end(mut self) {
        self.0.abort();
        // It was cancelled, which is an error to the runtime only.
        (&mut self.0).await.ok();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[derive(Debug)]
struct Shared {
    password: Option<Password>,
    destinations: Vec<Destination>,
    observer: Option<ConnectionObserver>,
    connections: AtomicUsize,
    idle: Duration,
    look_up: LookUp,
}

/// Resolver of a name, with a port.
type LookUp = fn(String, u16) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>>;

fn look_up_by_system(name: String, port: u16) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
    async move { Ok(lookup_host((name, port)).await?.collect()) }.boxed()
}

async fn accept_all(listener: TcpListener, shared: Arc<Shared>) {
    let slots = Arc::new(Semaphore::new(CONCURRENT_CONNECTIONS));
    let mut clients = JoinSet::new();
    loop {
        while clients.try_join_next().is_some() {}
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((client, _)) => {
                clients.spawn(serve_client(client, Arc::clone(&shared), slot));
            }
            Err(_) => sleep(ACCEPT_PAUSE).await,
        }
    }
}

/// Kind of a request, which decides how the client is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestKind {
    /// A tunnel of HTTP: success is announced.
    Tunnel,
    /// A plain request: the destination answers.
    Forward,
    Socks,
}

/// Request of a client that was understood.
struct Request {
    target: Target,
    kind: RequestKind,
    /// Bytes for the destination that were already read.
    early_bytes: Vec<u8>,
}

async fn serve_client(mut client: TcpStream, shared: Arc<Shared>, _slot: OwnedSemaphorePermit) {
    client.set_nodelay(true).ok();
    let received = timeout(HANDSHAKE_TIMEOUT, receive(&mut client, &shared)).await;
    let Ok(Ok(Some(request))) = received else {
        return;
    };
    let mut record = Record::new(&shared, request.target.to_string());
    let verdict = match connect(&shared, &request.target).await {
        Ok((mut server, address)) => {
            record.connection.address = Some(address);
            record.connection.verdict = Verdict::Allowed;
            let began = start_traffic(&mut client, &mut server, &request, &record.traffic).await;
            if began.is_ok() {
                tunnel(&mut client, &mut server, &record.traffic, shared.idle).await;
            }
            return;
        }
        Err(verdict) => verdict,
    };
    record.connection.verdict = verdict;
    // Reported before the client learns of it.
    drop(record);
    refuse(&mut client, &request, verdict).await.ok();
}

/// Reads the request of a client; `None` if it was answered already.
async fn receive(client: &mut TcpStream, shared: &Arc<Shared>) -> io::Result<Option<Request>> {
    let mut first = [0];
    if client.peek(&mut first).await? == 0 {
        return Ok(None);
    }
    if first == [socks::VERSION] {
        let password = shared.password.as_ref();
        let is_right = password.map(|own| |user: &[u8], given: &[u8]| own.is(user, given));
        return match socks::receive(client, is_right).await? {
            SocksRequest::Connect(target) => Ok(Some(Request {
                target,
                kind: RequestKind::Socks,
                early_bytes: Vec::new(),
            })),
            SocksRequest::Refused { target } => {
                report_malformed(shared, target);
                Ok(None)
            }
        };
    }
    receive_http(client, shared).await
}

async fn receive_http(client: &mut TcpStream, shared: &Arc<Shared>) -> io::Result<Option<Request>> {
    let is_authorized =
        |header: Option<&[u8]>| shared.password.as_ref().is_none_or(|own| own.is_in(header));
    let mut bytes = Vec::new();
    loop {
        if client.read_buf(&mut bytes).await? == 0 {
            return Ok(None);
        }
        let answer = match http::parse(&bytes, is_authorized) {
            Ok(None) => continue,
            Ok(Some(HttpRequest {
                target,
                is_tunnel,
                early_bytes,
            })) => {
                let kind = if is_tunnel {
                    RequestKind::Tunnel
                } else {
                    RequestKind::Forward
                };
                return Ok(Some(Request {
                    target,
                    kind,
                    early_bytes,
                }));
            }
            Err(BadRequest::Unauthorized) => http::authentication_required(),
            Err(BadRequest::Malformed { reason, target }) => {
                report_malformed(shared, target);
                let text = format!("the proxy of the sandbox can't serve this request: {reason}");
                http::refusal(Verdict::Malformed, &text)
            }
        };
        client.write_all(&answer).await?;
        return Ok(None);
    }
}

fn report_malformed(shared: &Arc<Shared>, target: String) {
    drop(Record::new(shared, target));
}

/// Connects to the first permitted address of a target that answers.
async fn connect(shared: &Shared, target: &Target) -> Result<(TcpStream, SocketAddr), Verdict> {
    if shared.connections.fetch_add(1, Relaxed) >= MAX_CONNECTIONS {
        return Err(Verdict::TooMany);
    }
    check_target(&shared.destinations, target)?;
    // The addresses that are checked are those that are connected: a second look-up could give
    // others (DNS rebinding).
    let found = resolve(target, shared.look_up).await;
    if found.is_empty() {
        return Err(Verdict::Unresolved);
    }
    let is_permitted = |address: &SocketAddr| permits(&shared.destinations, target, address.ip());
    let permitted: Vec<_> = found.into_iter().filter(is_permitted).collect();
    if permitted.is_empty() {
        return Err(Verdict::PrivateAddress);
    }
    for address in permitted {
        if let Ok(Ok(server)) = timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await {
            server.set_nodelay(true).ok();
            return Ok((server, address));
        }
    }
    Err(Verdict::Unreachable)
}

/// Returns the addresses of a target. An IPv4 address in the form of IPv6 is the IPv4 address.
async fn resolve(target: &Target, look_up: LookUp) -> Vec<SocketAddr> {
    let name = match &target.host {
        Host::Address(address) => return vec![SocketAddr::new(*address, target.port)],
        Host::Name(name) => name.clone(),
    };
    let found = timeout(RESOLVE_TIMEOUT, look_up(name, target.port)).await;
    let Ok(Ok(found)) = found else {
        return Vec::new();
    };
    let found = found.into_iter();
    found
        .map(|address| SocketAddr::new(address.ip().to_canonical(), target.port))
        .collect()
}

/// Tells the client that it is connected, and sends what it has sent early.
async fn start_traffic(
    client: &mut TcpStream,
    server: &mut TcpStream,
    request: &Request,
    traffic: &Traffic,
) -> io::Result<()> {
    match request.kind {
        RequestKind::Tunnel => client.write_all(http::ESTABLISHED).await?,
        RequestKind::Socks => client.write_all(&socks::reply(Verdict::Allowed)).await?,
        RequestKind::Forward => {}
    }
    server.write_all(&request.early_bytes).await?;
    traffic
        .sent
        .fetch_add(request.early_bytes.len() as u64, Relaxed);
    Ok(())
}

async fn refuse(client: &mut TcpStream, request: &Request, verdict: Verdict) -> io::Result<()> {
    if request.kind == RequestKind::Socks {
        return client.write_all(&socks::reply(verdict)).await;
    }
    let target = &request.target;
    let text = match verdict {
        Verdict::NotListed => {
            format!("`{target}` is not among the destinations that the sandbox allows")
        }
        Verdict::PrivateAddress => format!(
            "`{target}` leads to this machine or a private network, and the sandbox does not list that address"
        ),
        Verdict::TooMany => format!("the run has made more than {MAX_CONNECTIONS} connections"),
        Verdict::Unresolved => format!("the name of `{target}` has no address"),
        _ => format!("`{target}` is allowed, but it does not answer"),
    };
    client.write_all(&http::refusal(verdict, &text)).await
}

/// Report of one connection, made when it is dropped.
struct Record {
    connection: Connection,
    traffic: Traffic,
    start: Instant,
    shared: Arc<Shared>,
}

impl Record {
    fn new(shared: &Arc<Shared>, destination: String) -> Self {
        Self {
            connection: Connection {
                destination,
                address: None,
                verdict: Verdict::Malformed,
                sent: 0,
                received: 0,
                duration: Duration::ZERO,
            },
            traffic: Traffic::default(),
            start: Instant::now(),
            shared: Arc::clone(shared),
        }
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let Some(ConnectionObserver(observe)) = &self.shared.observer else {
            return;
        };
        let mut connection = self.connection.clone();
        connection.sent = self.traffic.sent.load(Relaxed);
        connection.received = self.traffic.received.load(Relaxed);
        connection.duration = self.start.elapsed();
        observe(connection);
    }
}

#[cfg(test)]
mod tests;
