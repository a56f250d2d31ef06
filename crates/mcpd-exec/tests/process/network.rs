//! Network: without it, a confined process reaches no other by any kind of socket. Each attempt
//! is also made unconfined, where it arrives.

use std::io::Read as _;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};

use mcpd_exec::{Level, Network, Outcome, Sandbox};

use crate::support::{World, exit_code, is_root, landlock_is_older_than, levels, ms, skip};

/// Exit code of a script on a system without that kind of socket.
const UNKNOWN: i32 = 77;

/// Listener on this host, to be reached or not.
pub(crate) struct Host {
    pub(crate) tcp: TcpListener,
    /// This port over IPv6, where the system has that.
    tcp6: Option<TcpListener>,
    pub(crate) udp: UdpSocket,
    path: UnixListener,
    name: UnixListener,
    datagrams: UnixDatagram,
}

impl Host {
    pub(crate) fn new(world: &World) -> Self {
        let name = SocketAddr::from_abstract_name(name(world)).unwrap();
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = tcp.local_addr().unwrap().port();
        let host = Self {
            tcp,
            tcp6: TcpListener::bind(("::1", port)).ok(),
            udp: UdpSocket::bind("127.0.0.1:0").unwrap(),
            path: UnixListener::bind(world.directory().join("socket")).unwrap(),
            name: UnixListener::bind_addr(&name).unwrap(),
            datagrams: UnixDatagram::bind(world.directory().join("datagrams")).unwrap(),
        };
        for tcp in [Some(&host.tcp), host.tcp6.as_ref()].into_iter().flatten() {
            tcp.set_nonblocking(true).unwrap();
        }
        host.udp.set_nonblocking(true).unwrap();
        host.path.set_nonblocking(true).unwrap();
        host.name.set_nonblocking(true).unwrap();
        host.datagrams.set_nonblocking(true).unwrap();
        host
    }

    /// Returns whether a connection or message has arrived. On one machine that is immediate.
    pub(crate) fn was_reached(&self) -> bool {
        let tcp = [Some(&self.tcp), self.tcp6.as_ref()];
        let mut tcp = tcp.into_iter().flatten();
        tcp.any(|listener| listener.accept().is_ok())
            || self.udp.recv(&mut [0]).is_ok()
            || self.path.accept().is_ok()
            || self.name.accept().is_ok()
            || self.datagrams.recv(&mut [0]).is_ok()
    }
}

/// Returns the abstract name of the host's socket.
pub(crate) fn name(world: &World) -> String {
    format!("{}/abstract", world.directory().display())
}

/// Runs a Perl script that can find the host.
async fn run(world: &World, host: &Host, sandbox: Sandbox, body: &str) -> Outcome {
    let ports = [host.tcp.local_addr(), host.udp.local_addr()];
    let [tcp, udp] = ports.map(|address| address.unwrap().port().to_string());
    let script = format!(
        "use Socket; my ($tcp, $udp, $name) = @ARGV;
        sub any {{ my $s; socket($s, $_[0], $_[1], $_[2]) or ($!{{EAFNOSUPPORT}} ? exit {UNKNOWN} : die \"socket: $!\"); $s }}
        sub at {{ sockaddr_in($_[0], INADDR_LOOPBACK) }}
        {body}"
    );
    let command = world.perl(&script).args([&tcp, &udp, &name(world)]);
    world.run_in(sandbox, command).await
}

/// Checks an attempt that is refused without a network; unconfined it reaches the host if
/// `heard`.
async fn check(body: &str, heard: bool) {
    for level in levels().await {
        let world = World::new();
        let host = Host::new(&world);
        let sandbox = Sandbox::at(level).network(Network::Off);
        let outcome = run(&world, &host, sandbox, body).await;
        if level == Level::None && exit_code(&outcome) == Some(UNKNOWN) {
            return skip(&format!("no such socket: {body}"));
        }
        let is_open = level == Level::None;
        let reached = (outcome.success(), host.was_reached());
        let said = outcome.stderr.to_text_lossy();
        assert_eq!(
            reached,
            (is_open, is_open && heard),
            "at {level}: {body}: {said}"
        );
    }
}

const TCP: &str = "connect(any(AF_INET, SOCK_STREAM, 0), at($tcp)) or die $!";
const ABSTRACT: &str =
    "connect(any(AF_UNIX, SOCK_STREAM, 0), pack('Sa*', AF_UNIX, \"\\0$name\")) or die $!";
const PATH: &str = "connect(any(AF_UNIX, SOCK_STREAM, 0), sockaddr_un('socket')) or die $!";

#[tokio::test]
async fn tcp_is_refused_without_network() {
    check(TCP, true).await;
    check(
        "my $s = any(AF_INET, SOCK_STREAM, 0); bind($s, at(0)) or die $!; listen($s, 1) or die $!",
        false,
    )
    .await;
}

#[tokio::test]
async fn udp_is_refused_without_network() {
    check(
        "send(any(AF_INET, SOCK_DGRAM, 0), 'x', 0, at($udp)) or die $!",
        true,
    )
    .await;
    check("my $s = any(AF_INET, SOCK_DGRAM, 0); connect($s, at($udp)) or die $!; send($s, 'x', 0) or die $!", true).await;
}

#[tokio::test]
async fn local_sockets_are_refused_without_network() {
    check(ABSTRACT, true).await;
    check(PATH, true).await;
}

/// A socket of an unnamed pair can still send to the name of another process.
#[tokio::test]
async fn socket_of_a_pair_reaches_no_other_process() {
    for kind in ["SOCK_DGRAM", "SOCK_RAW", "SOCK_DGRAM | SOCK_NONBLOCK"] {
        let pair = format!("socketpair(my $a, my $b, AF_UNIX, {kind}, 0) or die $!;");
        let to = "sockaddr_un('datagrams')";
        check(&format!("{pair} send($a, 'x', 0, {to}) or die $!"), true).await;
        let connected = format!("{pair} connect($a, {to}) or die $!; send($a, 'x', 0) or die $!");
        check(&connected, true).await;
    }
}

#[tokio::test]
async fn rare_sockets_are_refused() {
    check("any(AF_INET6, SOCK_STREAM, 0)", false).await;
    check("any(16, SOCK_RAW, 0) # netlink", false).await;
    check("any(40, SOCK_STREAM, 0) # vsock", false).await;
    if is_root() {
        check("any(AF_INET, SOCK_RAW, 1)", false).await;
        check("any(17, SOCK_RAW, 0) # packet", false).await;
    } else {
        skip("raw and packet sockets, by an ordinary user");
    }
}

#[tokio::test]
async fn connected_pairs_are_allowed_without_network() {
    let body = "for my $kind (SOCK_STREAM, SOCK_SEQPACKET, SOCK_STREAM | SOCK_CLOEXEC) {
            socketpair(my $a, my $b, AF_UNIX, $kind, 0) or die $!;
            syswrite($a, 'x'); sysread($b, my $x, 1) == 1 or die $!;
        }";
    for level in levels().await {
        let world = World::new();
        let host = Host::new(&world);
        let sandbox = Sandbox::at(level).network(Network::Off);
        let outcome = run(&world, &host, sandbox, body).await;
        assert!(
            outcome.success(),
            "at {level}: {}",
            outcome.stderr.to_text_lossy()
        );
    }
}

#[tokio::test]
async fn servers_are_reached_with_network() {
    if landlock_is_older_than(6, "abstract sockets of others").await {
        return;
    }
    for level in levels().await {
        let world = World::new();
        let host = Host::new(&world);
        let body = format!(
            "my $s = any(AF_INET, SOCK_STREAM, 0); connect($s, at($tcp)) or die $!; syswrite($s, 'x'); {TCP}"
        );
        let sandbox = Sandbox::at(level).network(Network::Host);
        let outcome = run(&world, &host, sandbox, &body).await;
        assert!(
            outcome.success(),
            "at {level}: {}",
            outcome.stderr.to_text_lossy()
        );
        let (mut stream, _) = host.tcp.accept().unwrap();
        stream.set_read_timeout(Some(ms(10_000))).unwrap();
        let mut heard = [0];
        stream.read_exact(&mut heard).unwrap();
        assert_eq!(heard, *b"x");
    }
}

/// Bypassing a firewall, and using services of the host, is not the network.
#[tokio::test]
async fn local_services_are_out_of_reach_with_network() {
    if landlock_is_older_than(6, "abstract sockets of others").await {
        return;
    }
    let mut attempts = vec![ABSTRACT];
    if is_root() {
        attempts.push("any(17, SOCK_RAW, 0) # packet");
        attempts.push("any(AF_INET, SOCK_RAW, 1)");
    }
    for body in attempts {
        for level in levels().await {
            let world = World::new();
            let host = Host::new(&world);
            let sandbox = Sandbox::at(level).network(Network::Host);
            let outcome = run(&world, &host, sandbox, body).await;
            assert_eq!(
                outcome.success(),
                level == Level::None,
                "at {level}: {body}"
            );
        }
    }
}

/// Landlock covers paths of sockets only from version 9 on. At `strict` hidden sockets are
/// absent.
#[tokio::test]
async fn hidden_socket_is_out_of_reach_where_the_kernel_can() {
    if landlock_is_older_than(6, "abstract sockets of others").await {
        return;
    }
    for level in levels().await {
        let world = World::new();
        let host = Host::new(&world);
        let sandbox = Sandbox::at(level).network(Network::Host);
        let sandbox = sandbox.hide(world.directory().join("socket"));
        let outcome = run(&world, &host, sandbox, PATH).await;
        let is_kept = match level {
            Level::None => false,
            Level::Guarded => outcome.enforced.landlock >= Some(9),
            _ => true,
        };
        assert_eq!(outcome.success(), !is_kept, "at {level}");
    }
}
