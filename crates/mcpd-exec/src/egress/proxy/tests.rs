//! The proxy between a client and servers on this machine.

use std::net::Ipv4Addr;
use std::sync::Mutex;

use tokio::io::AsyncBufReadExt as _;
use tokio::io::BufReader;

use super::*;

/// Proxy with its reports, and a server that answers each line with itself.
struct World {
    proxy: SocketAddr,
    server: SocketAddr,
    reports: Arc<Mutex<Vec<Connection>>>,
    _task: JoinSet<()>,
}

impl World {
    async fn new(
        destinations: impl Fn(u16) -> Vec<String>,
        change: impl FnOnce(&mut Shared),
    ) -> Self {
        let any = (Ipv4Addr::LOCALHOST, 0);
        let echo = TcpListener::bind(any).await.unwrap();
        let server = echo.local_addr().unwrap();
        let listener = TcpListener::bind(any).await.unwrap();
        let proxy = listener.local_addr().unwrap();
        let reports = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&reports);
        let observe = move |connection| into.lock().unwrap().push(connection);
        let list = destinations(server.port());
        let mut shared = Shared {
            password: None,
            destinations: list.iter().map(|text| text.parse().unwrap()).collect(),
            observer: Some(ConnectionObserver(Arc::new(observe))),
            connections: AtomicUsize::new(0),
            idle: IDLE_TIMEOUT,
            look_up: look_up_by_system,
        };
        change(&mut shared);
        let mut task = JoinSet::new();
        task.spawn(accept_all(listener, Arc::new(shared)));
        task.spawn(async move {
            loop {
                let (stream, _) = echo.accept().await.unwrap();
                tokio::spawn(async move {
                    let mut stream = BufReader::new(stream);
                    let mut line = Vec::new();
                    while stream.read_until(b'\n', &mut line).await.unwrap_or(0) > 0 {
                        stream.write_all(&line).await.ok();
                        line.clear();
                    }
                });
            }
        });
        Self {
            proxy,
            server,
            reports,
            _task: task,
        }
    }

    /// Sends bytes, reads until the proxy or the server closes, and returns that.
    async fn ask(&self, bytes: impl AsRef<[u8]>) -> String {
        let mut client = TcpStream::connect(self.proxy).await.unwrap();
        client.write_all(bytes.as_ref()).await.unwrap();
        client.shutdown().await.unwrap();
        let mut answer = Vec::new();
        let read = client.read_to_end(&mut answer);
        timeout(Duration::from_secs(20), read)
            .await
            .unwrap()
            .unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// Takes the reports, when there are so many.
    async fn reports(&self, count: usize) -> Vec<Connection> {
        let all = async {
            while self.reports.lock().unwrap().len() < count {
                sleep(Duration::from_millis(2)).await;
            }
        };
        timeout(Duration::from_secs(20), all).await.unwrap();
        std::mem::take(&mut *self.reports.lock().unwrap())
    }
}

fn own_port(port: u16) -> Vec<String> {
    vec![format!("127.0.0.1:{port}")]
}

#[tokio::test]
async fn listed_address_is_connected_and_counted() {
    let world = World::new(own_port, |_| {}).await;
    let request = format!("CONNECT {} HTTP/1.1\r\n\r\nhello\n", world.server);
    let answer = world.ask(request).await;
    assert_eq!(answer, "HTTP/1.1 200 Connection established\r\n\r\nhello\n");
    let report = &world.reports(1).await[0];
    assert_eq!(report.verdict, Verdict::Allowed);
    assert_eq!(report.address, Some(world.server));
    assert_eq!((report.sent, report.received), (6, 6));
    assert_eq!(report.destination, world.server.to_string());
}

#[tokio::test]
async fn plain_request_reaches_its_host() {
    let world = World::new(own_port, |_| {}).await;
    let request = format!(
        "GET http://{}/path HTTP/1.1\r\nHost: evil.com\r\n\r\n",
        world.server
    );
    let answer = world.ask(request).await;
    let expected = format!(
        "GET /path HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
        world.server
    );
    assert_eq!(answer, expected);
    assert_eq!(world.reports(1).await[0].received as usize, expected.len());
}

#[tokio::test]
async fn socks_reaches_listed_names_and_addresses() {
    let list = |port| vec![format!("localhost:{port}")];
    let world = World::new(list, |_| {}).await;
    let port = world.server.port().to_be_bytes();
    let named = [
        b"\x05\x01\x00\x05\x01\x00\x03\x09localhost",
        &port[..],
        b"x\n",
    ]
    .concat();
    let answer = world.ask(named).await;
    assert!(
        answer.ends_with("x\n") && answer.starts_with("\x05\0\x05\0\0"),
        "{answer:?}"
    );
    let address = [b"\x05\x01\x00\x05\x01\x00\x01\x7f\x00\x00\x01", &port[..]].concat();
    let answer = world.ask(address).await;
    assert!(answer.starts_with("\x05\0\x05\x02\0"), "{answer:?}");
    let verdicts = world
        .reports(2)
        .await
        .into_iter()
        .map(|report| report.verdict);
    assert_eq!(
        verdicts.collect::<Vec<_>>(),
        [Verdict::Allowed, Verdict::NotListed]
    );
}

#[tokio::test]
async fn everything_else_is_refused_with_its_reason() {
    let list = |port| vec![format!("*:{port}"), "*.invalid:80".to_owned()];
    let world = World::new(list, |_| {}).await;
    let port = world.server.port();
    let cases = [
        (format!("localhost:{port}"), "403", Verdict::PrivateAddress),
        (format!("127.0.0.1:{port}"), "403", Verdict::NotListed),
        (
            format!("[::ffff:127.0.0.1]:{port}"),
            "403",
            Verdict::NotListed,
        ),
        (format!("[::1]:{port}"), "403", Verdict::NotListed),
        ("example.com:1".to_owned(), "403", Verdict::NotListed),
        (
            "no-such-host.invalid:80".to_owned(),
            "502",
            Verdict::Unresolved,
        ),
        ("a b:80".to_owned(), "400", Verdict::Malformed),
        (format!("127.1:{port}"), "400", Verdict::Malformed),
    ];
    for (target, status, verdict) in cases {
        let answer = world
            .ask(format!("CONNECT {target} HTTP/1.1\r\n\r\n"))
            .await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{target}: {answer}"
        );
        let report = &world.reports(1).await[0];
        assert_eq!((report.verdict, report.sent), (verdict, 0), "{target}");
        assert_eq!(report.address, None, "{target}");
    }
}

/// Answers with a listed address first, and then with another one of this machine.
fn rebind(_: String, port: u16) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
    let is_first = LOOK_UPS.fetch_add(1, Relaxed) == 0;
    let last = if is_first { 1 } else { 2 };
    async move { Ok(vec![(Ipv4Addr::new(127, 0, 0, last), port).into()]) }.boxed()
}

static LOOK_UPS: AtomicUsize = AtomicUsize::new(0);

#[tokio::test]
async fn address_that_was_checked_is_the_one_that_is_connected() {
    let list = |port| {
        vec![
            format!("rebinding.example:{port}"),
            format!("127.0.0.1:{port}"),
        ]
    };
    let world = World::new(list, |shared| shared.look_up = rebind).await;
    let port = world.server.port();
    let request = format!("CONNECT rebinding.example:{port} HTTP/1.1\r\n\r\nhello\n");
    let answer = world.ask(&request).await;
    assert!(answer.ends_with("\r\nhello\n"), "{answer}");
    assert_eq!(LOOK_UPS.load(Relaxed), 1);
    assert_eq!(world.reports(1).await[0].address, Some(world.server));
    // The next connection is checked anew.
    let answer = world.ask(&request).await;
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    assert_eq!(LOOK_UPS.load(Relaxed), 2);
    assert_eq!(world.reports(1).await[0].verdict, Verdict::PrivateAddress);
}

#[tokio::test]
async fn client_without_the_password_is_refused() {
    let password = Password::new([7, 8]);
    let world = World::new(own_port, |shared| shared.password = Some(password.clone())).await;
    let request = format!("CONNECT {} HTTP/1.1\r\n", world.server);
    let with = |user: &str| {
        let encoded = BASE64_STANDARD.encode(user);
        format!("{request}Proxy-Authorization: basic {encoded}\r\n\r\n")
    };
    let right = format!("run:{}", password.0);
    assert!(world.ask(with(&right)).await.starts_with("HTTP/1.1 200 "));
    for wrong in [
        "run:",
        "run",
        &right[..right.len() - 1],
        &format!("x{right}"),
    ] {
        assert!(
            world.ask(with(wrong)).await.starts_with("HTTP/1.1 407 "),
            "{wrong}"
        );
    }
    assert!(
        world
            .ask(format!("{request}\r\n"))
            .await
            .starts_with("HTTP/1.1 407 ")
    );
}

#[tokio::test]
async fn idle_connection_ends() {
    let world = World::new(own_port, |shared| shared.idle = Duration::from_millis(100)).await;
    let mut client = TcpStream::connect(world.proxy).await.unwrap();
    let request = format!("CONNECT {} HTTP/1.1\r\n\r\n", world.server);
    client.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let read = client.read_to_end(&mut answer);
    timeout(Duration::from_secs(20), read)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(answer, http::ESTABLISHED);
    assert_eq!(world.reports(1).await[0].verdict, Verdict::Allowed);
}

#[tokio::test]
async fn connection_beyond_the_limit_is_refused() {
    let used = AtomicUsize::new(MAX_CONNECTIONS);
    let world = World::new(own_port, |shared| shared.connections = used).await;
    let request = format!("CONNECT {} HTTP/1.1\r\n\r\n", world.server);
    assert!(world.ask(request).await.starts_with("HTTP/1.1 429 "));
    assert_eq!(world.reports(1).await[0].verdict, Verdict::TooMany);
}

#[tokio::test]
async fn variables_lead_to_the_proxy() {
    let address: SocketAddr = "127.0.0.1:3128".parse().unwrap();
    let mut gate = Gate {
        address,
        password: None,
    };
    let value = |gate: &Gate, name| {
        let mut variables = gate.variables();
        variables
            .find(|(own, _)| *own == name)
            .map(|(_, value)| value)
    };
    assert_eq!(
        value(&gate, "https_proxy").unwrap(),
        "http://127.0.0.1:3128"
    );
    assert_eq!(value(&gate, "NO_PROXY").unwrap(), "");
    gate.password = Some(Password::new([1, 2]));
    assert_eq!(
        value(&gate, "HTTP_PROXY").unwrap(),
        "http://run:00000000000000010000000000000002@127.0.0.1:3128"
    );
}
