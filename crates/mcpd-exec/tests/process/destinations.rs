//! Network by destination: a run reaches what its sandbox lists, through its proxy, and nothing
//! else by any kind of socket. Each attempt past the proxy is also made unconfined, where it
//! arrives.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use mcpd_exec::egress::{Connection, Destination, Verdict};
use mcpd_exec::{Level, Outcome, Sandbox, StartError};

use crate::host::{again, is_again};
use crate::network::{Host, name};
use crate::support::{World, exit_code, is_root, landlock_is_older_than, levels, skip, within};

/// Exit code of a script on a system without that kind of socket.
const UNKNOWN: i32 = 77;

/// Perl that every script begins with.
pub(crate) const PRELUDE: &str = r#"
    use Socket qw(:all); use MIME::Base64;
    my ($allowed, $tcp, $udp, $name) = @ARGV;
    sub any { my $s; socket($s, $_[0], $_[1], $_[2]) or ($!{EAFNOSUPPORT} ? exit 77 : die "socket: $!"); $s }
    sub at { sockaddr_in($_[0], INADDR_LOOPBACK) }
    sub proxy {
        my ($user, $host, $port) = $ENV{HTTPS_PROXY} =~ m{^http://(?:(.+)@)?(.+):(\d+)$} or die 'no proxy';
        my $s = any(AF_INET, SOCK_STREAM, 6);
        connect($s, sockaddr_in($port, inet_aton($host))) or die "proxy: $!";
        ($s, $user ? 'Proxy-Authorization: Basic ' . encode_base64($user, '') . "\r\n" : '');
    }
    sub through {
        my ($s, $header) = proxy();
        syswrite($s, "CONNECT $_[0] HTTP/1.1\r\n$header\r\n");
        sysread($s, my $answer, 4096);
        $answer =~ m{^HTTP/1.1 200 } or die $answer;
        $s
    }
"#;

/// Server that answers one line on each connection with itself.
pub(crate) fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream: TcpStream = stream.unwrap();
            let mut bytes = [0; 1024];
            let length = stream.read(&mut bytes).unwrap_or(0);
            stream.write_all(&bytes[..length]).ok();
        }
    });
    address
}

pub(crate) fn only(list: &[String]) -> Vec<Destination> {
    list.iter().map(|text| text.parse().unwrap()).collect()
}

/// Runs a Perl script that may connect to one server of this machine, and returns the outcome with
/// its connections.
async fn run(
    world: &World,
    host: &Host,
    level: Level,
    allowed: SocketAddr,
    body: &str,
) -> (Outcome, Vec<Connection>) {
    let ports = [host.tcp.local_addr(), host.udp.local_addr()];
    let [tcp, udp] = ports.map(|address| address.unwrap().port().to_string());
    let command = world.perl(&format!("{PRELUDE}{body}"));
    let command = command.args([&allowed.port().to_string(), &tcp, &udp, &name(world)]);
    let reports = Arc::new(Mutex::new(Vec::new()));
    let into = Arc::clone(&reports);
    let command = command
        .env("NO_PROXY", "*")
        .env("http_proxy", "http://127.0.0.1:9")
        .on_connection(Arc::new(move |one| into.lock().unwrap().push(one)));
    let sandbox = Sandbox::at(level).destinations(only(&[allowed.to_string()]));
    let outcome = world.run_in(sandbox, command).await;
    let reports = reports.lock().unwrap().clone();
    (outcome, reports)
}

/// Returns the levels that confine.
async fn confined() -> Vec<Level> {
    let levels = levels().await.filter(|level| *level > Level::None);
    levels.collect()
}

#[tokio::test]
async fn listed_destination_is_reached_and_reported() {
    for level in confined().await {
        let world = World::new();
        let (host, server) = (Host::new(&world), echo());
        let body = r#"my $s = through("127.0.0.1:$allowed"); syswrite($s, "hello\n"); print <$s>"#;
        let (outcome, reports) = run(&world, &host, level, server, body).await;
        let said = outcome.stderr.to_text_lossy();
        assert_eq!(
            outcome.stdout.to_text_lossy(),
            "hello\n",
            "at {level}: {said}"
        );
        assert_eq!(reports.len(), 1, "at {level}: {reports:?}");
        let report = &reports[0];
        assert_eq!(report.verdict, Verdict::Allowed);
        assert_eq!(report.address, Some(server));
        assert_eq!((report.sent, report.received), (6, 6));
        world.nothing_left();
    }
}

/// The variables of a caller would lead past the proxy.
#[tokio::test]
async fn programs_are_led_to_the_proxy() {
    for level in confined().await {
        let world = World::new();
        let (host, server) = (Host::new(&world), echo());
        let body =
            r#"print join ' ', map { "$_=$ENV{$_}" } qw(http_proxy all_proxy NO_PROXY no_proxy)"#;
        let (outcome, _) = run(&world, &host, level, server, body).await;
        let expected =
            "http_proxy=http://127.0.0.1:3128 all_proxy=http://127.0.0.1:3128 NO_PROXY= no_proxy=";
        assert_eq!(outcome.stdout.to_text_lossy(), expected, "at {level}");
    }
}

#[tokio::test]
async fn proxy_refuses_what_is_not_listed() {
    let targets = [
        ("127.0.0.1:$tcp", Verdict::NotListed),
        ("localhost:$allowed", Verdict::NotListed),
        ("[::ffff:127.0.0.1]:$tcp", Verdict::NotListed),
        ("[::1]:$allowed", Verdict::NotListed),
        ("data.evil.example:$allowed", Verdict::NotListed),
        ("169.254.169.254:80", Verdict::NotListed),
        ("2130706433:$allowed", Verdict::Malformed),
    ];
    for level in confined().await {
        for (target, verdict) in targets {
            let world = World::new();
            let (host, server) = (Host::new(&world), echo());
            let body = format!("through(\"{target}\"); print 'through'");
            let (outcome, reports) = run(&world, &host, level, server, &body).await;
            assert_eq!(outcome.stdout.to_text_lossy(), "", "at {level}: {target}");
            let verdicts: Vec<_> = reports.iter().map(|report| report.verdict).collect();
            assert_eq!(verdicts, [verdict], "at {level}: {target}");
            assert!(!host.was_reached(), "at {level}: {target}");
        }
    }
}

/// Perl that makes a SOCKS request and prints the code of the answer.
const SOCKS: &str = r#"
    sub socks {
        my ($command, $host, $port) = @_;
        my ($s) = proxy();
        syswrite($s, "\x05\x01\x00");
        sysread($s, my $method, 2) == 2 or die 'no method';
        syswrite($s, pack('C4 C/a* n', 5, $command, 0, 3, $host, $port));
        sysread($s, my $answer, 256) or die 'no answer';
        print ord substr $answer, 1, 1;
    }
"#;

#[tokio::test]
async fn socks_reaches_no_more_than_a_tunnel() {
    let requests = [
        ("1, '127.0.0.1', $allowed", true),
        ("1, '127.0.0.1', $tcp", false),
        ("1, 'localhost', $allowed", false),
        ("1, 'data.evil.example', $allowed", false),
        ("2, '127.0.0.1', $allowed", false),
        ("3, '127.0.0.1', $udp", false),
    ];
    for level in confined().await {
        for (request, is_allowed) in requests {
            let world = World::new();
            let (host, server) = (Host::new(&world), echo());
            let body = format!("{SOCKS} socks({request})");
            let (outcome, _) = run(&world, &host, level, server, &body).await;
            let said = outcome.stdout.to_text_lossy();
            assert_eq!(
                said == "0",
                is_allowed,
                "at {level}: {request}: {outcome:?}"
            );
            assert!(!host.was_reached(), "at {level}: {request}");
        }
    }
}

/// Ways past the proxy, with the exit code if the script is not stopped.
const PAST_THE_PROXY: &[&str] = &[
    "connect(any(AF_INET, SOCK_STREAM, 0), at($tcp)) or die $!",
    "connect(any(AF_INET6, SOCK_STREAM, 0), pack_sockaddr_in6($tcp, inet_pton(AF_INET6, '::ffff:127.0.0.1'))) or die $!",
    "send(any(AF_INET, SOCK_DGRAM, 0), 'x', 0, at($udp)) or die $!",
    "my $s = any(AF_INET, SOCK_DGRAM, 0); connect($s, at($udp)) or die $!; send($s, 'x', 0) or die $!",
    "connect(any(AF_INET6, SOCK_STREAM, 0), pack_sockaddr_in6($tcp, IN6ADDR_LOOPBACK)) or exit 77; # IPv6",
    "send(any(AF_INET6, SOCK_DGRAM, 0), 'x', 0, pack_sockaddr_in6($udp, inet_pton(AF_INET6, '::ffff:127.0.0.1'))) or die $!",
    "my $q = pack('n6', 7, 0x100, 1, 0, 0, 0) . \"\\6secret\\4evil\\7example\\0\" . pack('n2', 16, 1); send(any(AF_INET, SOCK_DGRAM, 0), $q, 0, at($udp)) or die $!; # a query for a name that is a message",
    "my $code = system(qw(curl -s --noproxy * --max-time 2), \"http://127.0.0.1:$tcp/\") >> 8; exit($code == 28 ? 0 : $code == 7 ? 1 : 77) # a program that ignores the variables",
    "send(any(AF_INET, SOCK_STREAM, 0), 'x', 0x20000000, at($tcp)) or die $!; # with TCP Fast Open",
    "connect(any(AF_INET, SOCK_STREAM, 262), at($tcp)) or exit 77; # multipath TCP",
    "connect(any(AF_UNIX, SOCK_STREAM, 0), pack('Sa*', AF_UNIX, \"\\0$name\")) or die $!",
    "connect(any(AF_UNIX, SOCK_STREAM, 0), sockaddr_un('socket')) or die $!",
    "send(any(AF_UNIX, SOCK_DGRAM, 0), 'x', 0, sockaddr_un('datagrams')) or die $!",
    "socketpair(my $a, my $b, AF_UNIX, SOCK_DGRAM, 0) or die $!; send($a, 'x', 0, sockaddr_un('datagrams')) or die $!",
];

#[tokio::test]
async fn nothing_is_reached_past_the_proxy() {
    if landlock_is_older_than(6, "abstract sockets of others").await {
        return;
    }
    for body in PAST_THE_PROXY {
        for level in levels().await {
            let world = World::new();
            let (host, server) = (Host::new(&world), echo());
            let (outcome, reports) = run(&world, &host, level, server, body).await;
            if level == Level::None && exit_code(&outcome) == Some(UNKNOWN) {
                skip(&format!("no such socket: {body}"));
                break;
            }
            let reached = (outcome.success(), host.was_reached());
            let is_open = level == Level::None;
            let said = outcome.stderr.to_text_lossy();
            assert_eq!(reached, (is_open, is_open), "at {level}: {body}: {said}");
            assert_eq!(reports, [], "at {level}: {body}");
        }
    }
}

#[tokio::test]
async fn rare_sockets_are_refused_with_destinations() {
    let mut bodies = vec![
        "any(16, SOCK_RAW, 0) # netlink",
        "any(40, SOCK_STREAM, 0) # vsock",
    ];
    if is_root() {
        bodies.extend(["any(AF_INET, SOCK_RAW, 1)", "any(17, SOCK_RAW, 0) # packet"]);
    }
    for body in bodies {
        for level in confined().await {
            let world = World::new();
            let (host, server) = (Host::new(&world), echo());
            let (outcome, _) = run(&world, &host, level, server, body).await;
            assert!(!outcome.success(), "at {level}: {body}");
        }
    }
}

/// The listed server sends its clients elsewhere.
#[tokio::test]
async fn redirect_leads_nowhere_else() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = listener.local_addr().unwrap();
    for level in levels().await {
        let world = World::new();
        let host = Host::new(&world);
        let listener = listener.try_clone().unwrap();
        let elsewhere = host.tcp.local_addr().unwrap();
        let answer = format!(
            "HTTP/1.1 302 Found\r\nLocation: http://{elsewhere}/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        );
        let redirect = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            assert_ne!(stream.read(&mut [0; 4096]).unwrap(), 0);
            stream.write_all(answer.as_bytes()).unwrap();
        });
        let body = "alarm 5; exec qw(curl -sSL --max-time 3 -w), '%{http_code}', \"http://127.0.0.1:$allowed/\" or exit 77";
        let body = match level {
            Level::None => format!("delete @ENV{{qw(http_proxy NO_PROXY)}}; {body}"),
            _ => body.to_owned(),
        };
        let (outcome, reports) = run(&world, &host, level, server, &body).await;
        if exit_code(&outcome) == Some(UNKNOWN) {
            return skip("redirects, for lack of curl");
        }
        assert!(
            redirect.is_finished(),
            "at {level}: {}",
            outcome.stderr.to_text_lossy()
        );
        assert_eq!(host.was_reached(), level == Level::None, "at {level}");
        if level > Level::None {
            let said = outcome.stdout.to_text_lossy();
            assert!(said.ends_with("403"), "at {level}: {said}");
            // The first is reported when it ends, which may be later than the second.
            let has = |verdict| reports.iter().any(|report| report.verdict == verdict);
            let both = has(Verdict::Allowed) && has(Verdict::NotListed);
            assert!(both && reports.len() == 2, "at {level}: {reports:?}");
        }
    }
}

/// A run may serve itself: its loopback interface is its own.
#[tokio::test]
async fn own_servers_of_a_run_are_its_own() {
    let body = r#"
        my $l = any(AF_INET, SOCK_STREAM, 0);
        bind($l, sockaddr_in($allowed, INADDR_ANY)) && listen($l, 1) or die $!;
        connect(my $c = any(AF_INET, SOCK_STREAM, 0), at($allowed)) or die $!;
        accept(my $a, $l) or die $!; syswrite($c, 'own'); sysread($a, my $x, 3); print $x
    "#;
    for level in confined().await {
        let world = World::new();
        let (host, server) = (Host::new(&world), echo());
        let (outcome, _) = run(&world, &host, level, server, body).await;
        let said = outcome.stderr.to_text_lossy();
        assert_eq!(outcome.stdout.to_text_lossy(), "own", "at {level}: {said}");
    }
}

#[tokio::test]
async fn proxy_ends_with_a_run_that_is_dropped() {
    for level in confined().await {
        let world = World::new();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = listener.local_addr().unwrap();
        let body = format!("{PRELUDE} my $s = through('{server}'); syswrite($s, 'x'); sleep 60");
        let reports = Arc::new(Mutex::new(0));
        let into = Arc::clone(&reports);
        let command = world.perl(&body).current_dir(world.directory());
        let command = command.on_connection(Arc::new(move |_| *into.lock().unwrap() += 1));
        let sandbox = Sandbox::at(level).destinations(only(&[server.to_string()]));
        let run = world.executor.run(command.sandbox(sandbox));
        let connected = tokio::task::spawn_blocking(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.read_exact(&mut [0]).unwrap();
            stream
        });
        let mut stream = tokio::select! {
            ended = run => panic!("at {level}: {ended:?}"),
            connected = within(connected) => connected.unwrap(),
        };
        let rest = tokio::task::spawn_blocking(move || stream.read(&mut [0]).unwrap());
        assert_eq!(within(rest).await.unwrap(), 0, "at {level}");
        assert_eq!(*reports.lock().unwrap(), 1, "at {level}");
        world.nothing_left();
    }
}

/// Wrapper that starts a program where the kernel allows no network namespace.
const WITHOUT_NAMESPACE: [&str; 6] = [
    "unshare",
    "-r",
    "sh",
    "-c",
    "echo 0 > /proc/sys/user/max_net_namespaces && exec \"$@\"",
    "sh",
];

#[tokio::test]
async fn ports_are_limited_without_a_network_namespace() {
    if !is_again() {
        if landlock_is_older_than(4, "ports").await {
            return;
        }
        let itself = "destinations::ports_are_limited_without_a_network_namespace";
        return again(&WITHOUT_NAMESPACE, &[], itself);
    }
    let world = World::new();
    let (host, server) = (Host::new(&world), echo());
    let body = r#"my $s = through("127.0.0.1:$allowed"); syswrite($s, "hello\n"); print <$s>"#;
    let (outcome, reports) = run(&world, &host, Level::Guarded, server, body).await;
    let said = outcome.stderr.to_text_lossy();
    assert_eq!(outcome.stdout.to_text_lossy(), "hello\n", "{said}");
    assert_eq!(reports[0].verdict, Verdict::Allowed);
    let missing = outcome.enforced.missing.iter();
    let missing: Vec<_> = missing.map(|missing| &*missing.mechanism).collect();
    assert!(missing.contains(&"network namespace"), "{missing:?}");
    let listening = "listen(any(AF_INET, SOCK_STREAM, 0), 1) or die $!";
    for body in PAST_THE_PROXY.iter().chain([&listening]) {
        let (outcome, _) = run(&world, &host, Level::Guarded, server, body).await;
        assert!(!outcome.success() && !host.was_reached(), "{body}");
    }
    // Another process knows no password.
    let body = "my ($s) = proxy(); syswrite($s, \"CONNECT 127.0.0.1:$allowed HTTP/1.1\\r\\n\\r\\n\"); print <$s>";
    let (outcome, reports) = run(&world, &host, Level::Guarded, server, body).await;
    assert!(outcome.stdout.to_text_lossy().starts_with("HTTP/1.1 407 "));
    assert_eq!(reports, []);
}

#[tokio::test]
async fn strict_is_refused_without_a_network_namespace() {
    if !is_again() {
        let itself = "destinations::strict_is_refused_without_a_network_namespace";
        return again(&WITHOUT_NAMESPACE, &[], itself);
    }
    let world = World::new();
    let sandbox = Sandbox::strict().destinations(only(&["127.0.0.1:1".to_owned()]));
    let refused = world.executor.run(world.sh("true").sandbox(sandbox)).await;
    let Err(StartError::Unenforceable { missing, .. }) = refused else {
        panic!("{refused:?}");
    };
    let missing: Vec<_> = missing.iter().map(ToString::to_string).collect();
    assert!(
        missing.iter().any(|one| one.contains("namespace")),
        "{missing:?}"
    );
}
