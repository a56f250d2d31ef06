//! Admission over the network: every pair of `Host` and `Origin`, and every wrong way to present a
//! token. A tool that counts its runs shows whether a call was executed.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use mcpd_tests::{Daemon, Sandbox};

use crate::call;

/// Time limit that only a hang exceeds.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// Starts a server that also answers to a configured host name and to pages of one origin.
fn start(sandbox: &Sandbox) -> Daemon {
    let names = [
        "--allow-host",
        "tools.example",
        "--allow-origin",
        "https://app.example",
    ];
    Daemon::start(sandbox, &names)
}

/// Calls the counter with these headers in place of the usual host, origin and authorization.
/// Returns the status.
fn send(daemon: &Daemon, target: &str, headers: &[(&str, &str)]) -> u16 {
    let body = call("count", serde_json::json!({})).to_string();
    let headers: String = headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    let mut stream = TcpStream::connect(daemon.address()).unwrap();
    stream.set_read_timeout(Some(READ_TIMEOUT)).unwrap();
    let request = format!(
        "POST {target} HTTP/1.1\r\n{headers}Content-Type: application/json\r\nConnection: close\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

/// Hosts, each with whether it is accepted; `PORT` stands for the server's port.
const HOSTS: [(&str, bool); 40] = [
    ("localhost:PORT", true),
    ("localhost", true),
    ("LOCALHOST:PORT", true),
    ("localhost.", true),
    ("localhost.:PORT", true),
    ("127.0.0.1:PORT", true),
    ("127.0.0.1", true),
    ("127.9.8.7:PORT", true),
    ("[::1]:PORT", true),
    ("[::1]", true),
    ("[0:0:0:0:0:0:0:1]:PORT", true),
    ("tools.example", true),
    ("Tools.Example:PORT", true),
    ("tools.example.", true),
    ("evil.example", false),
    ("evil.example:PORT", false),
    ("localhost.evil.example", false),
    ("evil.localhost", false),
    ("xlocalhost", false),
    ("localhostx", false),
    ("127.0.0.1.evil.example", false),
    ("127.0.0.1.nip.io", false),
    ("tools.example.evil", false),
    ("x.tools.example", false),
    ("0.0.0.0", false),
    ("0.0.0.0:PORT", false),
    ("[::]", false),
    ("[::ffff:192.0.2.1]", false),
    ("192.0.2.1", false),
    ("10.0.0.1:PORT", false),
    ("169.254.169.254", false),
    ("2130706433", false),
    ("0x7f.1", false),
    ("127.1", false),
    ("localhost:x", false),
    ("localhost@evil.example", false),
    ("evil.example@localhost", false),
    ("localhost, evil.example", false),
    ("", false),
    (":PORT", false),
];

/// Origins, each with whether it may call. `OWN` stands for the host over plain HTTP.
const ORIGINS: [(Option<&str>, bool); 20] = [
    (None, true),
    (Some("OWN"), true),
    (Some("https://app.example"), true),
    (Some("HTTPS://App.Example"), true),
    (Some("null"), false),
    (Some(""), false),
    (Some("*"), false),
    (Some("http://evil.example"), false),
    (Some("http://evil.example:PORT"), false),
    (Some("http://app.example"), false),
    (Some("https://app.example:444"), false),
    (Some("https://app.example.evil"), false),
    (Some("https://x.app.example"), false),
    (Some("https://app.example@evil.example"), false),
    (Some("https://app.example https://evil.example"), false),
    (Some("http://localhost:1"), false),
    (Some("http://127.0.0.1.nip.io:PORT"), false),
    (Some("file://"), false),
    (Some("chrome-extension://abcdefghijklmnop"), false),
    (Some("app.example"), false),
];

#[test]
fn unknown_host_or_origin_executes_nothing() {
    let sandbox = Sandbox::new().with_counter("count");
    let daemon = start(&sandbox);
    let (_, port) = daemon.address().rsplit_once(':').unwrap();
    let token = format!("Bearer {}", daemon.token().unwrap());
    let mut allowed = 0;
    for (host, host_is_allowed) in HOSTS {
        let host = host.replace("PORT", port);
        for (origin, origin_is_allowed) in ORIGINS {
            let origin = origin.map(|origin| {
                let origin = origin.replace("OWN", &format!("http://{host}"));
                origin.replace("PORT", port)
            });
            let mut headers = vec![("Host", &*host), ("Authorization", &*token)];
            headers.extend(origin.as_deref().map(|origin| ("Origin", origin)));
            let status = send(&daemon, "/mcp", &headers);
            if host_is_allowed && origin_is_allowed {
                assert_eq!(status, 200, "{host:?} {origin:?}");
                allowed += 1;
            } else {
                assert!(matches!(status, 400 | 403), "{host:?} {origin:?}: {status}");
            }
        }
    }
    assert_eq!(sandbox.runs(), allowed);
}

#[test]
fn wrong_token_executes_nothing() {
    let sandbox = Sandbox::new().with_counter("count");
    let daemon = start(&sandbox);
    let token = daemon.token().unwrap();
    let right = format!("Bearer {token}");
    // Wrong tokens are rate-limited, so a status of 429 is as good as 401; 200 never is.
    let check = |target: &str, values: &[&str]| {
        let mut headers = vec![("Host", daemon.address())];
        headers.extend(values.iter().map(|value| ("Authorization", *value)));
        let status = send(&daemon, target, &headers);
        assert!(matches!(status, 401 | 429), "{target} {values:?}: {status}");
    };
    check("/mcp", &[]);
    for wrong in [
        "",
        "Bearer",
        "Bearer ",
        token,
        &format!("Basic {token}"),
        &format!("Token {token}"),
        &format!("Bearer{token}"),
        &format!("Bearer {token}x"),
        &format!("Bearer x{token}"),
        &format!("Bearer {}", &token[1..]),
        &format!("Bearer {}", token.to_uppercase()),
        &format!("Bearer {token}, Bearer {token}"),
        &format!("Bearer {token} {token}"),
        &format!("Bearer \"{token}\""),
    ] {
        check("/mcp", &[wrong]);
    }
    check("/mcp", &[&right, &right]);
    check("/mcp", &[&right, "Bearer wrong"]);
    check("/mcp", &["Bearer wrong", &right]);
    for name in ["token", "access_token", "authorization", "api_key"] {
        check(&format!("/mcp?{name}={token}"), &[]);
        check(&format!("/rpc?{name}=Bearer%20{token}"), &[]);
    }
    assert_eq!(sandbox.runs(), 0);
    let headers = [("Host", daemon.address()), ("Authorization", &*right)];
    assert_eq!(send(&daemon, "/mcp", &headers), 200);
    assert_eq!(sandbox.runs(), 1);
}
