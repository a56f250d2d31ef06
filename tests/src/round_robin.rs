//! Round-robin balancer for HTTP in front of several servers: each request goes to the next one.
//! With affinity, those with the id of a session go to the server whose name it begins with. A
//! request is sent once, and never again.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, RwLock, RwLockWriteGuard};
use std::thread;

use crate::wait::eventually;

/// Maximum size of the head of a request.
const MAX_HEAD: usize = 64 * 1024;

/// Running balancer. Its threads end with the process.
#[derive(Debug)]
pub struct RoundRobin {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    backends: RwLock<Vec<Arc<Backend>>>,
    has_affinity: bool,
    next: AtomicUsize,
}

/// Server behind the balancer.
#[derive(Debug)]
struct Backend {
    name: String,
    address: String,
    requests: AtomicUsize,
    /// Requests that have no whole answer yet.
    open: AtomicUsize,
}

impl RoundRobin {
    /// Starts a balancer in front of servers, each with its name and its address. With affinity it
    /// keeps sessions at the servers that they begin with.
    ///
    /// # Panics
    ///
    /// Panics without a free port.
    #[must_use]
    pub fn start(backends: &[(&str, &str)], has_affinity: bool) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("it is bound");
        let backends = backends
            .iter()
            .map(|(name, address)| Backend::new(name, address));
        let shared = Arc::new(Shared {
            backends: RwLock::new(backends.collect()),
            has_affinity,
            next: AtomicUsize::new(0),
        });
        let served = Arc::clone(&shared);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let shared = Arc::clone(&served);
                // A client or a server that hangs up ends its connection, and nothing else.
                thread::spawn(move || shared.serve(client).ok());
            }
        });
        Self { address, shared }
    }

    /// Returns host and port.
    #[must_use]
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Returns the URL of the MCP endpoint.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Returns the number of requests that each server has got.
    #[must_use]
    pub fn requests(&self) -> Vec<usize> {
        let requests = |backend: &Backend| backend.requests.load(Ordering::Relaxed);
        let backends = self.shared.backends();
        backends.iter().map(|backend| requests(backend)).collect()
    }

    /// Takes a server out: requests that come from now on go to others. Waits until those that it
    /// has are answered.
    ///
    /// # Panics
    ///
    /// Panics if they go on.
    #[track_caller]
    pub fn take_out(&self, name: &str) {
        let gone: Vec<_> = {
            let mut backends = self.shared.backends_mut();
            backends.extract_if(.., |one| one.name == name).collect()
        };
        eventually("the last answers", || {
            let mut gone = gone.iter();
            gone.all(|one| one.open.load(Ordering::SeqCst) == 0)
                .then_some(())
        });
    }

    /// Puts a server in.
    pub fn put_in(&self, name: &str, address: &str) {
        let backend = Backend::new(name, address);
        self.shared.backends_mut().push(backend);
    }
}

impl Backend {
    fn new(name: &str, address: &str) -> Arc<Self> {
        Arc::new(Self {
            name: name.to_owned(),
            address: address.to_owned(),
            requests: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
        })
    }
}

/// Request that a server has.
struct Open(Arc<Backend>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Shared {
    fn backends(&self) -> Vec<Arc<Backend>> {
        self.backends.read().expect("no panic").clone()
    }

    fn backends_mut(&self) -> RwLockWriteGuard<'_, Vec<Arc<Backend>>> {
        self.backends.write().expect("no panic")
    }

    /// Serves one request of a client.
    fn serve(&self, mut client: TcpStream) -> io::Result<()> {
        let Some((head, rest)) = read_head(&mut client)? else {
            return Ok(());
        };
        let backend = self.choose(&head);
        let _open = Open(Arc::clone(&backend));
        let Ok(mut server) = TcpStream::connect(&backend.address) else {
            return client.write_all(b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n");
        };
        server.write_all(only_request(&head).as_bytes())?;
        server.write_all(&rest)?;
        let (mut from_client, mut to_server) = (client.try_clone()?, server.try_clone()?);
        let request = thread::spawn(move || {
            io::copy(&mut from_client, &mut to_server).ok();
            // The client has hung up, and so does the balancer.
            to_server.shutdown(Shutdown::Both).ok();
        });
        io::copy(&mut server, &mut client).ok();
        client.shutdown(Shutdown::Both).ok();
        request.join().ok();
        Ok(())
    }

    /// Chooses a server, which has another open request from then on.
    fn choose(&self, head: &str) -> Arc<Backend> {
        // Until it is counted, the server is not taken out.
        let backends = self.backends.read().expect("no panic");
        let session = header(head, "mcp-session-id").filter(|_| self.has_affinity);
        let of_session = session.and_then(|session| {
            let owns = |backend: &&Arc<Backend>| session.starts_with(&format!("{}-", backend.name));
            let owners = backends.iter().filter(owns);
            owners.max_by_key(|backend| backend.name.len())
        });
        let chosen = of_session.unwrap_or_else(|| {
            let next = self.next.fetch_add(1, Ordering::Relaxed);
            &backends[next % backends.len()]
        });
        chosen.requests.fetch_add(1, Ordering::Relaxed);
        chosen.open.fetch_add(1, Ordering::SeqCst);
        Arc::clone(chosen)
    }
}

/// Reads the head of a request, and what has come of its body. `None` if there is no request.
fn read_head(client: &mut TcpStream) -> io::Result<Option<(String, Vec<u8>)>> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let rest = bytes.split_off(end + 4);
            return Ok(Some((String::from_utf8_lossy(&bytes).into_owned(), rest)));
        }
        match client.read(&mut buffer)? {
            0 => return Ok(None),
            _ if bytes.len() > MAX_HEAD => return Ok(None),
            count => bytes.extend_from_slice(&buffer[..count]),
        }
    }
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = head.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = lines.find(|(known, _)| known.eq_ignore_ascii_case(name))?;
    Some(value.trim())
}

/// Returns the head with the wish that the connection ends after this request, so that the next
/// one can go elsewhere.
fn only_request(head: &str) -> String {
    let lines = head.trim_end().split("\r\n");
    let is_kept = |line: &&str| {
        let name = line.split(':').next().unwrap_or_default();
        !name.eq_ignore_ascii_case("connection")
    };
    let lines: Vec<_> = lines.filter(is_kept).collect();
    format!("{}\r\nConnection: close\r\n\r\n", lines.join("\r\n"))
}
