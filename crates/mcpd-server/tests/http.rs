//! Scripted HTTP: each file under `http/` holds the requests of a client, each snapshot beside it
//! the whole exchange. Cases that a script cannot express follow.

use std::num::NonZeroU32;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use mcpd_exec::{Command, Config, Executor, Limits};
use mcpd_server::endpoint::Endpoint;
use mcpd_server::policy::{Access, CallPattern, PatternError, Quota, RateLimit};
use mcpd_server::transport::http::{self, Auth, Listener, Options, Token};
use mcpd_server::{DEFAULT_KEEP, Policy, Principal, Server};
use tokio::io::{AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
#[cfg(unix)]
use tokio::net::{UnixListener, UnixStream};

#[cfg(unix)]
#[path = "http/resumption.rs"]
mod resumption;

/// Far longer than any step here; only a hang reaches it.
const HANG_TIMEOUT: Duration = Duration::from_secs(20);

/// Serves the scripts of these tests over HTTP in the background.
async fn serve() -> (Server, u16) {
    serve_scripts("scripts", None).await
}

/// Serves another directory of scripts, with results that show at most `capture` bytes of both
/// ends of an output.
async fn serve_scripts(scripts: &str, capture: Option<usize>) -> (Server, u16) {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut limits = Limits::default();
    limits.keep = DEFAULT_KEEP;
    if let Some(capture) = capture {
        (limits.capture_head, limits.capture_tail) = (capture, capture);
    }
    let server = Server::builder()
        .scripts(tests.join(scripts))
        .policy(Policy::default().limits(limits))
        .watch(false)
        .start()
        .expect("scripts");
    let port = listen(server.clone()).await;
    (server, port)
}

/// Serves HTTP in the background, and returns the port.
async fn listen(server: Server) -> u16 {
    listen_with(server, options()).await
}

fn options() -> Options {
    let guest = Principal::new("guest").with_access(guest_access().expect("patterns"));
    let mut options = Options::new(Auth::tokens([
        Token::new("secret", Principal::new("agent")),
        Token::new("of-guest", guest),
        Token::new("of-hasty", rate_limited_principal()),
    ]));
    options.max_message = 1 << 20;
    options.http_sse = true;
    options
}

/// Access to greet people whose names begin with an A, and to the tools below `math`.
fn guest_access() -> Result<Access, PatternError> {
    let greetings = CallPattern::default()
        .tool("greet")?
        .argument("name", "A*")?;
    let others = CallPattern::default().tool("math/**")?.tool("talk")?;
    Ok(Access::default()
        .allow_only([greetings, others])
        .deny(CallPattern::default().tool("talk")?))
}

/// Principal with a rate limit of one call in half an hour.
fn rate_limited_principal() -> Principal {
    let mut quota = Quota::default();
    quota.rate = RateLimit::new(1.0 / 1800.0, NonZeroU32::MIN);
    Principal::new("hasty").with_quota(quota)
}

async fn listen_with(server: Server, options: Options) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    tokio::spawn(async move {
        http::serve(&server, listener, options)
            .await
            .expect("serves");
    });
    port
}

#[test]
fn exchanges() {
    insta::glob!("http/**/*.txt", |path| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let script = std::fs::read_to_string(path).unwrap();
        let transcript = runtime.block_on(async {
            let scripts = comment_setting(&script, "scripts").unwrap_or("scripts");
            let capture =
                comment_setting(&script, "capture").map(|bytes| bytes.parse().expect("a number"));
            let (server, port) = serve_scripts(scripts, capture).await;
            server.catalog_ready().await;
            tokio::time::timeout(HANG_TIMEOUT, play(&server, port, &script)).await
        });
        insta::with_settings!({omit_expression => true, prepend_module_to_snapshot => false}, {
            insta::assert_snapshot!(transcript.expect("the exchange hangs"));
        });
    });
}

/// Returns a setting in the comments of a script or of one of its requests: `# NAME: VALUE`.
fn comment_setting<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut remarks = text.lines().filter_map(|line| line.strip_prefix("# "));
    remarks.find_map(|remark| remark.strip_prefix(name)?.strip_prefix(": "))
}

/// Sends the requests of `script`, which lines of `---` separate, and returns the transcript. At
/// the beginning, `# scripts: NAME` selects another directory of scripts than `scripts`, and `#
/// capture: NUMBER` limits results to that many bytes of both ends of an output. For one request,
/// `# hang up after: TEXT` disconnects once the response contains that text, `# hang up: once it
/// runs` once a script runs; `# still running: NUMBER` checks the number of running scripts
/// afterwards.
async fn play(server: &Server, port: u16, script: &str) -> String {
    let mut transcript = String::new();
    let mut session = String::new();
    let mut run = String::new();
    for request in script.split("---\n") {
        let message = request.replace("{session}", &session);
        let message = with_usual_headers(&message.replace("{run}", &run));
        let response = if let Some(text) = comment_setting(request, "hang up after") {
            let mut stream = send(port, &message).await;
            read_until(&mut stream, text).await
        } else if comment_setting(request, "hang up").is_some() {
            let _stream = send(port, &message).await;
            assert!(until(|| server.executor().running() > 0).await, "no script");
            String::new()
        } else {
            exchange(port, &message).await
        };
        if let Some(id) = header(&response, "mcp-session-id") {
            session = id.to_owned();
        }
        let mut shown = format_response(&response);
        if !session.is_empty() {
            shown = shown.replace(&session, "SESSION");
        }
        if let Some((_, rest)) = response.split_once("mcpd://runs/")
            && let Some(id) = rest.split('/').next()
        {
            run = id.to_owned();
            shown = shown.replace(&run, "RUN");
        }
        if let Some(id) = last_event(&shown) {
            let (stream, _) = id.split_once('-').expect("a stream and a number");
            shown = shown.replace(stream, "STREAM");
        }
        transcript.push_str(&format!("{}\n{shown}\n", request.trim_end()));
        if let Some(number) = comment_setting(request, "still running") {
            let number: usize = number.parse().expect("a number");
            assert!(
                until(|| server.executor().running() == number).await,
                "{transcript}"
            );
            // The number stays so.
            tokio::time::sleep(Duration::from_millis(100)).await;
            assert_eq!(server.executor().running(), number, "{transcript}");
        }
    }
    transcript
}

/// Returns the id of the last event in a formatted response.
fn last_event(shown: &str) -> Option<String> {
    let mut ids = shown.lines().filter_map(|line| line.strip_prefix("< id: "));
    ids.next_back().map(str::to_owned)
}

/// Adds the usual headers to a request, unless it sets them; `Name: -` omits a header.
fn with_usual_headers(request: &str) -> String {
    let lines: Vec<&str> = request
        .lines()
        .filter(|line| !line.starts_with('#'))
        .collect();
    let (head, body) = request
        .split_once("\n\n")
        .map_or((lines, ""), |(head, body)| {
            (
                head.lines().filter(|line| !line.starts_with('#')).collect(),
                body.trim_end(),
            )
        });
    let mut message = format!("{} HTTP/1.1\r\n", head[0]);
    let length = body.len().to_string();
    let defaults = [
        ("Host", "localhost"),
        ("Authorization", "Bearer secret"),
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("Content-Length", &length),
        ("Connection", "close"),
    ];
    let is_given = |name: &str| {
        head[1..].iter().any(|line| {
            line.to_lowercase()
                .starts_with(&format!("{}:", name.to_lowercase()))
        })
    };
    for (name, value) in defaults.iter().filter(|(name, _)| !is_given(name)) {
        message.push_str(&format!("{name}: {value}\r\n"));
    }
    for line in head[1..].iter().filter(|line| !line.ends_with(": -")) {
        message.push_str(&format!("{line}\r\n"));
    }
    format!("{message}\r\n{body}")
}

/// Sends a request on a new connection.
async fn send(port: u16, request: &str) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", port))
        .await
        .expect("the server listens");
    stream
        .write_all(request.as_bytes())
        .await
        .expect("the server reads");
    stream
}

async fn exchange(port: u16, request: &str) -> String {
    let mut stream = send(port, request).await;
    let mut response = Vec::new();
    stream.read_to_end(&mut response).await.expect("readable");
    String::from_utf8(response).expect("the server sends text")
}

/// Formats the stable parts of a response.
fn format_response(response: &str) -> String {
    let (head, body) = response.split_once("\r\n\r\n").unwrap_or(("nothing", ""));
    let mut shown = format!("< {}\n", head.lines().next().unwrap_or_default());
    for name in [
        "content-type",
        "www-authenticate",
        "allow",
        "mcp-session-id",
        "cache-control",
        "x-accel-buffering",
        "access-control-allow-origin",
        "access-control-allow-methods",
        "access-control-allow-headers",
        "access-control-expose-headers",
    ] {
        if let Some(value) = header(response, name) {
            shown.push_str(&format!("< {name}: {value}\n"));
        }
    }
    let body = if header(response, "transfer-encoding") == Some("chunked") {
        join_chunks(body)
    } else {
        body.to_owned()
    };
    for line in body
        .replace(env!("CARGO_PKG_VERSION"), "VERSION")
        .lines()
        .filter(|line| !line.is_empty())
    {
        shown.push_str(&format!("< {line}\n"));
    }
    shown
}

fn header<'a>(response: &'a str, name: &str) -> Option<&'a str> {
    let head = response.split("\r\n\r\n").next()?;
    head.lines()
        .filter_map(|line| line.split_once(": "))
        .find(|(n, _)| n.eq_ignore_ascii_case(name))
        .map(|(_, v)| v)
}

fn join_chunks(mut body: &str) -> String {
    let mut text = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).expect("a chunk size");
        // The last chunk may be cut off where the client has disconnected.
        let Some((chunk, rest)) = rest.split_at_checked(size) else {
            text.push_str(rest);
            break;
        };
        text.push_str(chunk);
        body = rest.trim_start_matches("\r\n");
        if size == 0 {
            break;
        }
    }
    text
}

async fn until(condition: impl Fn() -> bool) -> bool {
    let waiting = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(HANG_TIMEOUT, waiting).await.is_ok()
}

#[tokio::test]
async fn stopping_the_server_ends_runs_and_streams() {
    let (server, port) = serve().await;
    let head = "MCP-Protocol-Version: 2026-07-28\nMcp-Method: subscriptions/listen";
    let body = r#"{"jsonrpc":"2.0","id":"s","method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["mcpd://counter/state"]},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let request = with_usual_headers(&format!("POST /mcp\n{head}\n\n{body}"));
    let listening = tokio::spawn(async move { exchange(port, &request).await });
    let counter = with_usual_headers(
        "POST /mcp\nMCP-Protocol-Version: 2026-07-28\nMcp-Method: tools/call\nMcp-Name: counter\n\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"counter\",\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\"io.modelcontextprotocol/clientCapabilities\":{}}}}",
    );
    server.catalog_ready().await;
    exchange(port, &counter).await;
    server.shutdown().await;
    let response = tokio::time::timeout(HANG_TIMEOUT, listening)
        .await
        .expect("the stream ends")
        .unwrap();
    let events: Vec<_> = format_response(&response)
        .lines()
        .filter(|line| line.contains("data:"))
        .map(str::to_owned)
        .collect();
    insta::assert_snapshot!(events.join("\n"));
}

/// Reads from a stream until `text` has arrived.
async fn read_until(stream: &mut TcpStream, text: &str) -> String {
    let mut seen = Vec::new();
    let reading = async {
        while !String::from_utf8_lossy(&seen).contains(text) {
            assert_ne!(
                stream.read_buf(&mut seen).await.expect("readable"),
                0,
                "the stream ends"
            );
        }
    };
    tokio::time::timeout(HANG_TIMEOUT, reading)
        .await
        .expect("the stream is silent");
    String::from_utf8(seen).expect("text")
}

/// Opens the stream of 2024-11-05, and returns the path for its posts.
async fn open_sse(port: u16) -> (TcpStream, String) {
    let open = with_usual_headers("GET /sse\nConnection: keep-alive");
    let mut stream = send(port, &open).await;
    let opened = read_until(&mut stream, "\n\n\r\n").await;
    let address = opened.split("data: ").nth(1);
    let address = address.and_then(|rest| rest.lines().next());
    (stream, address.expect("an address").to_owned())
}

#[tokio::test]
async fn sse_paths_of_2024_11_05_are_one_connection() {
    let (server, port) = serve().await;
    let (mut stream, address) = open_sse(port).await;
    let post = async |body: &str| {
        exchange(
            port,
            &with_usual_headers(&format!("POST {address}\n\n{body}")),
        )
        .await
    };
    let accepted = post(r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"test","version":"0"}}}"#).await;
    assert!(accepted.starts_with("HTTP/1.1 202"), "{accepted}");
    read_until(&mut stream, "\"protocolVersion\":\"2024-11-05\"").await;
    post(r#"{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"info"}}"#).await;
    post(r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"wait"}}"#).await;
    read_until(&mut stream, "waiting").await;
    drop(stream);
    assert!(
        until(|| server.executor().running() == 0).await,
        "a run outlives its stream"
    );
    let refused = post(r#"{"jsonrpc":"2.0","id":4,"method":"ping"}"#).await;
    assert!(refused.starts_with("HTTP/1.1 404"), "{refused}");
}

#[tokio::test]
async fn message_to_an_open_stream_is_judged_by_the_current_rules() {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let server = Server::builder().scripts(scripts).watch(false);
    let server = server.start().expect("scripts");
    let tokens = |access| {
        Auth::tokens([Token::new(
            "secret",
            Principal::new("agent").with_access(access),
        )])
    };
    let (auth, mut options) = (tokens(Access::default()), options());
    options.auth = auth.clone();
    let port = listen_with(server.clone(), options).await;
    server.catalog_ready().await;
    let (mut stream, address) = open_sse(port).await;
    let greet = async |id| {
        let call = r#""method":"tools/call","params":{"name":"greet","arguments":{"name":"Ada"}}"#;
        let call = format!(r#"{{"jsonrpc":"2.0","id":{id},{call}}}"#);
        let request = with_usual_headers(&format!("POST {address}\n\n{call}"));
        let accepted = exchange(port, &request).await;
        assert!(accepted.starts_with("HTTP/1.1 202"), "{accepted}");
    };
    greet(1).await;
    read_until(&mut stream, "Hello, Ada!").await;
    let greetings = CallPattern::default().tool("greet").expect("a pattern");
    auth.replace(&tokens(Access::default().deny(greetings)));
    greet(2).await;
    read_until(&mut stream, "unknown tool `greet`").await;
}

#[tokio::test]
async fn sse_paths_of_2024_11_05_reject_requests_of_2026_07_28() {
    let (_server, port) = serve().await;
    let (mut stream, address) = open_sse(port).await;
    let request = stateless_request("tools/call", "talk", r#""name":"greet""#);
    let request = request.replace("POST /mcp", &format!("POST {address}"));
    let accepted = exchange(port, &request).await;
    assert!(accepted.starts_with("HTTP/1.1 202"), "{accepted}");
    let answer = read_until(&mut stream, "post to /mcp").await;
    assert!(answer.contains("-32600"), "{answer}");
}

/// Builds a raw request of the newest revision.
fn stateless_request(method: &str, name: &str, params: &str) -> String {
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/logLevel":"debug","progressToken":1}"#;
    with_usual_headers(&format!(
        "POST /mcp\nMCP-Protocol-Version: 2026-07-28\nMcp-Method: {method}\nMcp-Name: {name}\n\n{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{method}\",\"params\":{{{params},{meta}}}}}"
    ))
}

fn write_script(path: &Path, body: &str) {
    std::fs::write(path, body).expect("written");
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .expect("executable");
}

#[tokio::test]
async fn change_is_announced_once_on_each_wire() {
    let scripts = tempfile::tempdir().expect("a directory");
    let server = Server::builder()
        .scripts(scripts.path())
        .start()
        .expect("starts");
    let port = listen(server.clone()).await;
    server.catalog_ready().await;
    let initialize = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"0"}}}"#;
    let response = exchange(
        port,
        &with_usual_headers(&format!("POST /mcp\n\n{initialize}")),
    )
    .await;
    let session = header(&response, "mcp-session-id").expect("a session");
    let mut stateful = send(
        port,
        &with_usual_headers(&format!("GET /mcp\nMcp-Session-Id: {session}")),
    )
    .await;
    read_until(&mut stateful, "text/event-stream").await;
    let filter = r#""notifications":{"toolsListChanged":true,"promptsListChanged":true}"#;
    let mut listening = send(
        port,
        &stateless_request("subscriptions/listen", "-", filter),
    )
    .await;
    read_until(&mut listening, "acknowledged").await;

    let script = |kind: &str| format!("#!/bin/sh\necho '{{\"kind\": \"{kind}\"}}'\n");
    write_script(&scripts.path().join("a"), &script("tool"));
    for stream in [&mut stateful, &mut listening] {
        read_until(stream, "tools/list_changed").await;
    }
    write_script(&scripts.path().join("b"), &script("prompt"));
    for stream in [&mut stateful, &mut listening] {
        // A repeated notification of the first change would arrive before this one.
        let told = read_until(stream, "prompts/list_changed").await;
        assert!(!told.contains("tools/list_changed"), "{told}");
    }
}

/// HTTP/2 carries many requests on one connection, and each is cancelled separately.
#[tokio::test]
async fn http_2_request_is_cancelled_alone() {
    let (server, port) = serve().await;
    server.catalog_ready().await;
    let stream = TcpStream::connect(("127.0.0.1", port))
        .await
        .expect("the server listens");
    let (mut client, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .expect("HTTP/2 is spoken");
    tokio::spawn(connection);
    let mut call = |tool: &str| {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
        );
        let request = hyper::Request::post(format!("http://localhost:{port}/mcp"))
            .header("authorization", "Bearer secret")
            .header("content-type", "application/json")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/call")
            .header("mcp-name", tool)
            .body(Full::new(Bytes::from(body)))
            .expect("a request");
        client.send_request(request)
    };
    let waiting = tokio::spawn(call("wait"));
    assert!(
        until(|| server.executor().running() == 1).await,
        "the script starts"
    );
    waiting.abort();
    assert!(
        until(|| server.executor().running() == 0).await,
        "the script outlives its request"
    );
    let response = call("talk").await.expect("the connection lives");
    assert_eq!(response.version(), hyper::Version::HTTP_2);
    let body = response.into_body().collect().await.expect("a body");
    let body = String::from_utf8(body.to_bytes().to_vec()).expect("text");
    assert!(body.contains("done"), "{body}");
}

#[tokio::test]
async fn health_reports_the_first_scan_and_faults() {
    let scripts = tempfile::tempdir().expect("a directory");
    let slow = "#!/bin/sh\nwhile ! [ -e \"${0%/*}/.go\" ]; do sleep 0.01; done\necho '{}'\n";
    write_script(&scripts.path().join("slow"), slow);
    std::os::unix::fs::symlink("/bin/sh", scripts.path().join("outside")).expect("linked");
    let server = Server::builder()
        .scripts(scripts.path())
        .source(Endpoint::new(["/nowhere"], "/"))
        .watch(false)
        .start()
        .expect("starts");
    let port = listen(server.clone()).await;
    let health = async || exchange(port, &with_usual_headers("GET /health")).await;
    let ready = async || exchange(port, &with_usual_headers("GET /ready")).await;
    let starting = health().await;
    assert!(starting.starts_with("HTTP/1.1 200"), "{starting}");
    assert!(ready().await.starts_with("HTTP/1.1 503"));
    assert!(starting.ends_with(r#"{"status":"starting"}"#), "{starting}");
    std::fs::write(scripts.path().join(".go"), "").expect("written");
    server.catalog_ready().await;
    assert!(ready().await.starts_with("HTTP/1.1 200"));
    let health = health().await;
    let counts = r#""tools":1,"prompts":0,"resources":0,"faulty":0,"unusable":1,"conflicts":0"#;
    assert!(health.contains(counts), "{health}");
    let sources = r#""sources":1,"faultySources":1"#;
    assert!(health.contains(sources), "{health}");
}

/// Pipelined requests do not hide that a client is gone.
#[tokio::test]
async fn disconnect_with_unread_requests_ends_the_run() {
    let (server, port) = serve().await;
    server.catalog_ready().await;
    let wait = stateless_request("tools/call", "wait", "\"name\":\"wait\"");
    // Without events nothing is written that could fail.
    let requests = wait
        .replace(", text/event-stream", "")
        .replace("Connection: close\r\n", "")
        .repeat(3);
    let client = send(port, &requests).await;
    assert!(
        until(|| server.executor().running() == 1).await,
        "the script starts"
    );
    drop(client);
    assert!(
        until(|| server.executor().running() == 0).await,
        "the script outlives its caller"
    );
}

/// Serves the script at `file` and those beside it, after writing it.
async fn serve_script(file: &Path, body: &str, options: Options) -> (Server, u16) {
    write_script(file, body);
    let server = Server::builder()
        .scripts(file.parent().expect("a directory"))
        .watch(false)
        .start()
        .expect("starts");
    let port = listen_with(server.clone(), options).await;
    server.catalog_ready().await;
    (server, port)
}

/// Serves one script, `chatty`, whose log exceeds all buffers between it and a client that does
/// not read.
async fn serve_chatty(scripts: &Path, wall: Duration, options: Options) -> (Server, u16) {
    let body = "#!/bin/sh\n[ \"$1\" = --help ] && { echo '{}'; exit; }\nyes 'DEBUG a line that nobody will ever read' >&2\n";
    write_script(&scripts.join("chatty"), body);
    let mut limits = Limits::default();
    limits.wall = wall;
    limits.output_hard = u64::MAX;
    let server = Server::builder()
        .scripts(scripts)
        .policy(Policy::default().limits(limits))
        .watch(false)
        .start()
        .expect("starts");
    let port = listen_with(server.clone(), options).await;
    server.catalog_ready().await;
    (server, port)
}

/// Checks that the run ends for a client that calls `chatty` and reads nothing.
async fn check_unread_call(server: &Server, port: u16) {
    let call = stateless_request("tools/call", "chatty", "\"name\":\"chatty\"");
    let deaf = send(port, &call).await;
    assert!(
        until(|| server.executor().running() == 1).await,
        "the script starts"
    );
    assert!(
        until(|| server.executor().running() == 0).await,
        "the run goes on"
    );
    drop(deaf);
}

#[tokio::test]
async fn client_that_does_not_read_delays_its_own_run_until_the_limit() {
    let scripts = tempfile::tempdir().expect("a directory");
    let wall = Duration::from_secs(1);
    let (server, port) = serve_chatty(scripts.path(), wall, options()).await;
    check_unread_call(&server, port).await;
}

#[tokio::test]
async fn client_that_reads_nothing_is_disconnected() {
    let scripts = tempfile::tempdir().expect("a directory");
    let mut options = options();
    options.write_timeout = Duration::from_millis(100);
    let (server, port) = serve_chatty(scripts.path(), 2 * HANG_TIMEOUT, options).await;
    check_unread_call(&server, port).await;
}

/// Checks that a listener that reads nothing is disconnected once the buffers are full.
async fn check_unread_listener(server: &Server, uris: &[String], listener: &TcpStream) {
    let is_given_up = || {
        uris.iter()
            .for_each(|uri| server.notify_resource_updated(uri));
        // The peer of a closed connection refuses data.
        let written = listener.try_write(b"\n");
        written.is_err_and(|error| error.kind() != std::io::ErrorKind::WouldBlock)
    };
    assert!(until(is_given_up).await, "it goes on listening");
}

#[tokio::test]
async fn listener_that_reads_nothing_is_disconnected_on_either_wire() {
    let server = Server::builder().start().expect("starts");
    let mut options = options();
    options.write_timeout = Duration::from_millis(100);
    let port = listen_with(server.clone(), options).await;
    // A few dozen notifications of these exceed the buffers of a connection.
    let padding = "a".repeat(8000);
    let uris: Vec<_> = (0..32)
        .map(|number| format!("file:///{number}/{padding}"))
        .collect();
    let initialize = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"0"}}}"#;
    let response = exchange(
        port,
        &with_usual_headers(&format!("POST /mcp\n\n{initialize}")),
    )
    .await;
    let session = header(&response, "mcp-session-id").expect("a session");
    for uri in &uris {
        let subscribe = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{{"uri":"{uri}"}}}}"#
        );
        let post = format!("POST /mcp\nMcp-Session-Id: {session}\n\n{subscribe}");
        exchange(port, &with_usual_headers(&post)).await;
    }
    let get = with_usual_headers(&format!("GET /mcp\nMcp-Session-Id: {session}"));
    let filter = serde_json::json!({"resourceSubscriptions": uris});
    let listen = stateless_request(
        "subscriptions/listen",
        "-",
        &format!(r#""notifications":{filter}"#),
    );
    for request in [&get, &listen] {
        let mut deaf = send(port, request).await;
        read_until(&mut deaf, "text/event-stream").await;
        check_unread_listener(&server, &uris, &deaf).await;
    }
    // A client that reads gets them all the same, even from the abandoned session.
    let mut reader = send(port, &get).await;
    read_until(&mut reader, "text/event-stream").await;
    server.notify_resource_updated(&uris[0]);
    read_until(&mut reader, "resources/updated").await;
}

/// Small messages fit all the same.
#[tokio::test]
async fn memory_budget_bounds_large_messages() {
    let scripts = tempfile::tempdir().expect("a directory");
    let body = r#"#!/bin/sh
if [ "$1" = --help ]; then
  echo '{"description": "Waits"}'
  echo '{"text": {"required": true, "value_type": "string"}}' >&2
  exit
fi
exec sleep 60
"#;
    let mut options = options();
    options.max_message = 70 * 1024;
    let (server, port) = serve_script(&scripts.path().join("wait"), body, options).await;
    let text = "x".repeat(68 * 1024);
    let arguments = format!(r#""name":"wait","arguments":{{"text":"{text}"}}"#);
    let call = stateless_request("tools/call", "wait", &arguments);
    let mut calls = Vec::new();
    for _ in 0..17 {
        calls.push(send(port, &call).await);
    }
    // One of them is answered, in any order, and the others wait for their scripts.
    let answers = calls
        .iter_mut()
        .map(|call| Box::pin(read_until(call, "exhausted")));
    let (told, _, _) = futures_util::future::select_all(answers).await;
    assert!(
        told.starts_with("HTTP/1.1 429") && told.contains("retry-after: "),
        "{told}"
    );
    let ping = "POST /mcp\n\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}";
    let small = exchange(port, &with_usual_headers(ping)).await;
    assert!(small.starts_with("HTTP/1.1 200"), "{small}");
    drop(calls);
    assert!(until(|| server.executor().running() == 0).await);
    let _call = send(port, &call).await;
    assert!(until(|| server.executor().running() == 1).await);
}

/// Most clients send the whole request before they read a response.
#[tokio::test]
async fn body_too_large_is_413() {
    let (_server, port) = serve().await;
    let body = "x".repeat(32 * 1024 * 1024);
    for (token, status) in [("secret", "413"), ("wrong", "401")] {
        let post = format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut stream = send(port, &post).await;
        read_until(&mut stream, status).await;
    }
}

/// HTTP/2 clients grant a window for each response; a client that grants none is disconnected
/// although it answers pings.
#[tokio::test]
async fn http_2_client_without_a_window_is_disconnected() {
    let server = Server::builder().start().expect("starts");
    let mut options = options();
    options.write_timeout = Duration::from_millis(100);
    let port = listen_with(server, options).await;
    let stream = TcpStream::connect(("127.0.0.1", port)).await;
    let stream = TokioIo::new(stream.expect("the server listens"));
    let mut client = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
    let client = client.initial_stream_window_size(0).handshake(stream).await;
    let (mut client, connection) = client.expect("HTTP/2 is spoken");
    tokio::spawn(connection);
    let request = hyper::Request::get(format!("http://localhost:{port}/health"));
    let request = request.body(Full::new(Bytes::new())).expect("a request");
    let response = client.send_request(request).await.expect("a head");
    let body = tokio::time::timeout(HANG_TIMEOUT, response.into_body().collect());
    let body = body.await.expect("the answer is given up");
    assert!(body.is_err(), "{body:?}");
}

#[tokio::test]
async fn kept_client_metadata_is_bounded() {
    let (_server, port) = serve().await;
    let check = async |request: &str, expected: &str| {
        let response = exchange(port, request).await;
        assert!(response.contains(expected), "{response}");
    };
    let initialize = |size: usize| {
        let padding = "a".repeat(size);
        with_usual_headers(&format!(
            r#"POST /mcp

{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{{"experimental":{{"a":"{padding}"}}}},"clientInfo":{{"name":"{padding}","version":"0"}}}}}}"#
        ))
    };
    check(&initialize(8000), r#""result":{"#).await;
    let refusal = "`capabilities` and `clientInfo` may have at most 16384 bytes";
    check(&initialize(8192), refusal).await;

    let subscribe = |uri: &str| {
        with_usual_headers(&format!(
            r#"POST /mcp

{{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{{"uri":"{uri}"}}}}"#
        ))
    };
    let listen = |uri: &str| {
        let filter = format!(r#""notifications":{{"resourceSubscriptions":["a:b","{uri}"]}}"#);
        stateless_request("subscriptions/listen", "-", &filter)
    };
    let long = format!("file:///{}", "a".repeat(8184));
    check(&subscribe(&long), r#""result":{}"#).await;
    let too_long = format!("{long}a");
    let refusal = "may have at most 8192 bytes";
    check(&subscribe(&too_long), refusal).await;
    check(&listen(&too_long), refusal).await;
}

#[tokio::test]
async fn client_without_a_session_gets_its_response_after_a_notification() {
    let (_server, port) = serve().await;
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"talk","_meta":{"progressToken":7}}}"#;
    let response = exchange(port, &with_usual_headers(&format!("POST /mcp\n\n{body}"))).await;
    let shown = format_response(&response);
    assert!(
        shown.contains("notifications/progress") && shown.contains("\"text\":\"done\""),
        "{shown}"
    );
}

#[tokio::test]
async fn large_result_on_several_lines_is_one_event() {
    let scripts = tempfile::tempdir().expect("a directory");
    let script = r#"#!/bin/sh
if [ "$1" = --help ]; then
  echo '{"description": "Prints much.", "output": "json"}'
  exit 0
fi
echo 'INFO here it comes' >&2
printf '[\n'
printf '"%s",\n' $(seq 5000)
printf '0]\n'
"#;
    let (_server, port) = serve_script(&scripts.path().join("print"), script, options()).await;
    let response = exchange(
        port,
        &stateless_request("tools/call", "print", r#""name":"print""#),
    )
    .await;
    let events = join_chunks(response.split_once("\r\n\r\n").expect("a body").1);
    assert!(events.contains("here it comes"), "{events}");
    let answer = events.lines().rfind(|line| line.starts_with("data: "));
    let answer = answer.and_then(|line| line.strip_prefix("data: "));
    let answer: serde_json::Value = serde_json::from_str(answer.expect("an answer")).expect("JSON");
    assert_eq!(answer["result"]["structuredContent"][4999], "5000");
}

#[tokio::test]
async fn ended_session_ends_its_stream_and_runs() {
    let (server, port) = serve().await;
    let initialize = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"0"}}}"#;
    let response = exchange(
        port,
        &with_usual_headers(&format!("POST /mcp\n\n{initialize}")),
    )
    .await;
    let session = format!(
        "Mcp-Session-Id: {}",
        header(&response, "mcp-session-id").expect("a session")
    );
    let mut stream = TcpStream::connect(("127.0.0.1", port))
        .await
        .expect("the server listens");
    stream
        .write_all(with_usual_headers(&format!("GET /mcp\n{session}")).as_bytes())
        .await
        .expect("sent");
    read_until(&mut stream, "text/event-stream").await;
    server.catalog_ready().await;
    let post = |body: &str| with_usual_headers(&format!("POST /mcp\n{session}\n\n{body}"));
    let wait = |id| {
        let call = r#""method":"tools/call","params":{"name":"wait"}"#;
        post(&format!(r#"{{"jsonrpc":"2.0","id":{id},{call}}}"#))
    };
    let silent = wait(1);
    let silent = tokio::spawn(async move { exchange(port, &silent).await });
    assert!(
        until(|| server.executor().running() == 1).await,
        "the script starts"
    );
    let level = r#"{"jsonrpc":"2.0","id":0,"method":"logging/setLevel","params":{"level":"info"}}"#;
    exchange(port, &post(level)).await;
    let mut telling = send(port, &wait(2)).await;
    read_until(&mut telling, "waiting").await;
    exchange(
        port,
        &with_usual_headers(&format!("DELETE /mcp\n{session}")),
    )
    .await;
    let mut rest = Vec::new();
    let ended = tokio::time::timeout(HANG_TIMEOUT, stream.read_to_end(&mut rest)).await;
    assert!(ended.is_ok(), "the stream goes on");
    // A waiting request gets an error, and its status too if none was sent.
    let silent = tokio::time::timeout(HANG_TIMEOUT, silent).await;
    let silent = silent.expect("the call ends").expect("no panic");
    assert!(silent.starts_with("HTTP/1.1 404"), "{silent}");
    assert!(silent.contains(r#""id":1,"error":"#), "{silent}");
    read_until(&mut telling, r#""id":2,"error":"#).await;
    assert!(
        until(|| server.executor().running() == 0).await,
        "the run goes on"
    );
}

#[tokio::test]
async fn cancelled_call_gets_no_response() {
    let (server, port) = serve().await;
    server.catalog_ready().await;
    let initialize = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"0"}}}"#;
    let response = exchange(
        port,
        &with_usual_headers(&format!("POST /mcp\n\n{initialize}")),
    )
    .await;
    let session = header(&response, "mcp-session-id").expect("a session");
    let wait = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait"}}"#;
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    let post = |accept: &str, body: &str| {
        let headers = format!("Mcp-Session-Id: {session}\nAccept: {accept}");
        with_usual_headers(&format!("POST /mcp\n{headers}\n\n{body}"))
    };
    for (accept, expected) in [
        (
            "text/event-stream, */*",
            "< HTTP/1.1 200 OK\n< content-type: text/event-stream\n< cache-control: no-cache\n< x-accel-buffering: no\n",
        ),
        ("application/json", "< HTTP/1.1 202 Accepted\n"),
    ] {
        let wait = post(accept, wait);
        let waiting = tokio::spawn(async move { exchange(port, &wait).await });
        let is_running = || server.executor().running() == 1;
        assert!(until(is_running).await, "the script starts");
        exchange(port, &post(accept, cancel)).await;
        let cancelled = tokio::time::timeout(HANG_TIMEOUT, waiting).await;
        let cancelled = cancelled.expect("it ends").expect("no panic");
        assert_eq!(format_response(&cancelled), expected, "{accept}");
        assert!(
            until(|| server.executor().running() == 0).await,
            "it runs on"
        );
    }
}

#[tokio::test]
async fn session_in_use_is_not_evicted() {
    let (server, _) = serve().await;
    server.catalog_ready().await;
    let mut options = options();
    options.max_sessions = 16;
    let max_sessions = options.max_sessions;
    let port = listen_with(server.clone(), options).await;
    let initialize = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"0"}}}"#;
    let initialize = with_usual_headers(&format!("POST /mcp\n\n{initialize}"));
    let open = async || {
        let response = exchange(port, &initialize).await;
        let session = header(&response, "mcp-session-id").expect("a session");
        format!("Mcp-Session-Id: {session}")
    };
    let (streaming, calling) = (open().await, open().await);
    let get = with_usual_headers(&format!("GET /mcp\n{streaming}"));
    let mut stream = send(port, &get).await;
    read_until(&mut stream, "text/event-stream").await;
    let wait = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait"}}"#;
    let _call = send(
        port,
        &with_usual_headers(&format!("POST /mcp\n{calling}\n\n{wait}")),
    )
    .await;
    let is_running = || server.executor().running() == 1;
    assert!(until(is_running).await, "the script starts");
    for _ in 0..max_sessions {
        open().await;
    }
    let ping = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;
    for session in [streaming, calling] {
        let ping = with_usual_headers(&format!("POST /mcp\n{session}\n\n{ping}"));
        let answer = exchange(port, &ping).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    assert!(is_running());
}

/// Without a complete request no connection lasts, whatever it has sent before.
#[tokio::test]
async fn connection_without_a_complete_request_is_closed() {
    let (_server, port) = serve().await;
    let settings = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    let ping = "\0\0\x08\x06\0\0\0\0\0--------";
    let quiet = [
        ("", ""),
        ("P", ""),
        ("PRI * HTTP/2.0\r\n", ""),
        (settings, ""),
        (settings, ping),
        ("POST /mcp HTTP/1.1\r\nHost: localhost\r\n", "A: b\r\n"),
    ];
    let quiet = quiet.map(|(beginning, again)| {
        tokio::spawn(async move {
            let mut stream = send(port, beginning).await;
            let (mut reader, mut writer) = stream.split();
            let mut received = Vec::new();
            tokio::select! {
                _ = reader.read_to_end(&mut received) => {}
                () = repeat(&mut writer, again) => {}
            }
        })
    });
    for quiet in quiet {
        tokio::time::timeout(HANG_TIMEOUT, quiet)
            .await
            .expect("it stays open")
            .expect("no panic");
    }
}

/// Writes a text repeatedly until that fails.
async fn repeat(writer: &mut (impl AsyncWrite + Unpin), text: &str) {
    while writer.write_all(text.as_bytes()).await.is_ok() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[cfg(unix)]
#[tokio::test]
async fn unix_socket_is_served_beside_tcp() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("mcpd.sock");
    let in_network = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = in_network.local_addr().expect("bound");
    let in_files = UnixListener::bind(&path).expect("a free path");
    let server = Server::builder().start().expect("starts");
    // Until then its health check reports that it is starting.
    server.catalog_ready().await;
    let listener = Listener::from(in_network).and(in_files);
    let serving = server.clone();
    let served = tokio::spawn(async move { http::serve(&serving, listener, options()).await });
    let health = with_usual_headers("GET /health");
    let over_network = exchange(address.port(), &health).await;
    let mut stream = UnixStream::connect(&path).await.expect("it listens");
    stream.write_all(health.as_bytes()).await.expect("it reads");
    let mut over_files = String::new();
    stream.read_to_string(&mut over_files).await.expect("text");
    assert!(over_files.starts_with("HTTP/1.1 200"), "{over_files}");
    assert_eq!(format_response(&over_files), format_response(&over_network));
    server.shutdown().await;
    served.await.expect("no panic").expect("it ends well");
}

#[tokio::test]
async fn batch_is_bounded() {
    let (_server, port) = serve().await;
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let batch = |count: usize| {
        with_usual_headers(&format!("POST /mcp\n\n[{}]", vec![ping; count].join(",")))
    };
    assert!(exchange(port, &batch(50)).await.starts_with("HTTP/1.1 200"));
    let refused = exchange(port, &batch(51)).await;
    assert!(
        refused.starts_with("HTTP/1.1 400") && refused.contains("-32600"),
        "{refused}"
    );
}

/// Checks the response to a call that comes half an hour too soon.
#[track_caller]
fn check_rate_limited(response: &str, id: u8) {
    assert!(response.starts_with("HTTP/1.1 429 "), "{response}");
    let seconds = header(response, "retry-after").and_then(|wait| wait.parse().ok());
    let body = response.split("\r\n\r\n").nth(1).unwrap_or_default();
    let answer: serde_json::Value = serde_json::from_str(body).expect(response);
    assert_eq!(answer["id"], id);
    assert_eq!(answer["error"]["code"], 429);
    let milliseconds = answer["error"]["data"]["retryAfterMs"].as_u64();
    for wait in [seconds, milliseconds.map(|wait| wait / 1000)] {
        assert!(
            wait.is_some_and(|wait| (1700..=1800).contains(&wait)),
            "{response}"
        );
    }
}

#[tokio::test]
async fn rate_limit_rejects_with_retry_after() {
    let (server, port) = serve().await;
    server.catalog_ready().await;
    let post = async |message: &str| {
        let request = format!("POST /rpc\nAuthorization: Bearer of-hasty\n\n{message}");
        exchange(port, &with_usual_headers(&request)).await
    };
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"greet","arguments":{"name":"Ada"}}}"#;
    let served = post(call).await;
    assert!(served.contains("Hello"), "{served}");
    check_rate_limited(&post(call).await, 1);
    let read = r#"{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":"mcpd://counter/state"}}"#;
    check_rate_limited(&post(read).await, 2);
    let stateless = stateless_request(
        "tools/call",
        "greet",
        r#""name":"greet","arguments":{"name":"Ada"}"#,
    );
    let stateless = stateless.replace("Bearer secret", "Bearer of-hasty");
    check_rate_limited(&exchange(port, &stateless).await, 1);
    // A list is no call.
    let listed = post(r#"{"jsonrpc":"2.0","id":3,"method":"tools/list"}"#).await;
    assert!(listed.starts_with("HTTP/1.1 200 "), "{listed}");
}

#[cfg(unix)]
#[tokio::test]
async fn busy_shared_executor_rejects_with_retry_after() {
    let mut config = Config::default();
    (config.concurrency, config.queue) = (1, 0);
    let executor = Executor::new(config).expect("threads");
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let server = Server::builder()
        .scripts(scripts)
        .executor(executor.clone())
        .watch(false)
        .start()
        .expect("scripts");
    let port = listen(server.clone()).await;
    server.catalog_ready().await;
    let others = executor.clone();
    let other = tokio::spawn(async move { others.run(Command::new("sleep").arg("60")).await });
    assert!(until(|| executor.running() == 1).await, "nothing runs");

    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"greet","arguments":{"name":"Ada"}}}"#;
    let request = format!("POST /rpc\nAuthorization: Bearer secret\n\n{call}");
    let refused = exchange(port, &with_usual_headers(&request)).await;
    assert!(refused.starts_with("HTTP/1.1 429 "), "{refused}");
    assert!(refused.contains("\"retryAfterMs\":1"), "{refused}");
    assert!(header(&refused, "retry-after").is_some(), "{refused}");
    other.abort();
}
