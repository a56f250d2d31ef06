//! A real browser: the web console, and DNS rebinding by a page of a foreign origin, at a name
//! that later resolves to the address of mcpd.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail where it stands")]

#[path = "console.rs"]
mod console;
#[path = "hostile.rs"]
mod hostile;
#[path = "records.rs"]
mod records;
#[path = "shots.rs"]
mod shots;

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use mcpd_tests::{Daemon, Sandbox, binary};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;

/// Host name of the page.
const NAME: &str = "evil.example";

/// Time limit of the browser for the whole test, on a busy machine.
const BROWSER_TIMEOUT: Duration = Duration::from_secs(120);

/// Exit code of `setup` if no browser is available. The reason is on stderr.
const SKIPPED: i32 = 77;

#[test]
fn dns_rebinding_page_reaches_nothing() {
    let Some(browser) = browser() else { return };
    // Without a token, only the checks of host and origin are in the way, and every caller is an
    // operator of the console.
    let (outcomes, runs) = visit(browser, &["--no-auth", "--console"]);
    insta::assert_snapshot!(outcomes, @r#"
    {
      "POST /mcp": 403,
      "POST /rpc": 403,
      "POST /api/mcp": 403,
      "POST /mcp, simple": 403,
      "POST /events/record": 403,
      "GET /health": 403,
      "GET /ready": 403,
      "GET /.well-known/oauth-protected-resource": 403,
      "GET /console": 403,
      "GET /console/app.js": 403,
      "GET console about": 403,
      "GET console catalog": 403,
      "GET console live": 403,
      "GET console runs": 403,
      "GET console server": 403,
      "GET console configuration": 403,
      "POST console session": 403,
      "POST console code": 403,
      "POST console api/cancel": 403,
      "POST localhost": "blocked",
      "POST localhost, simple": "unreadable",
      "POST 127.0.0.1": "blocked",
      "POST 127.0.0.1, simple": "unreadable",
      "WebSocket": "blocked"
    }
    "#);
    assert_eq!(runs, 0);
}

/// Serves the same page with a server that is configured for its name: shows that the attempts
/// refused in the other test work in principle.
#[test]
fn page_of_an_allowed_name_reaches_the_server() {
    let Some(browser) = browser() else { return };
    let (outcomes, runs) = visit(browser, &["--no-auth", "--console", "--allow-host", NAME]);
    insta::assert_snapshot!(outcomes, @r#"
    {
      "POST /mcp": 200,
      "POST /rpc": 200,
      "POST /api/mcp": 200,
      "POST /mcp, simple": 415,
      "POST /events/record": 200,
      "GET /health": 200,
      "GET /ready": 200,
      "GET /.well-known/oauth-protected-resource": 404,
      "GET /console": 200,
      "GET /console/app.js": 200,
      "GET console about": 200,
      "GET console catalog": 200,
      "GET console live": 200,
      "GET console runs": 200,
      "GET console server": 200,
      "GET console configuration": 200,
      "POST console session": 400,
      "POST console code": 400,
      "POST console api/cancel": 400,
      "POST localhost": "blocked",
      "POST localhost, simple": "unreadable",
      "POST 127.0.0.1": "blocked",
      "POST 127.0.0.1, simple": "unreadable",
      "WebSocket": "blocked"
    }
    "#);
    assert_eq!(runs, 4);
}

/// Returns the result of every attempt of the page, and the number of runs of its tool.
fn visit(browser: &Path, arguments: &[&str]) -> (String, usize) {
    let sandbox = Sandbox::new().with_counter("record");
    let daemon = Daemon::start(&sandbox, arguments);
    let (collector, outcomes) = collect();
    let (_, port) = daemon.address().rsplit_once(':').unwrap();
    let page = include_str!("page.html")
        .replace("MCPD_PORT", port)
        .replace("COLLECTOR", &collector);
    let rebound = serve_then_forward(page, daemon.address().to_owned());
    let _browser = Browser::open(browser, &sandbox, &format!("http://{NAME}:{rebound}/"));
    let outcomes: Value = outcomes.recv_timeout(BROWSER_TIMEOUT).unwrap_or_else(|_| {
        let log = fs::read_to_string(sandbox.path().join("browser.log"));
        panic!("the page tells nothing; the browser said: {log:?}")
    });
    (
        serde_json::to_string_pretty(&outcomes).unwrap(),
        sandbox.runs(),
    )
}

/// Serves the page, then forwards every other request to mcpd: this is what a browser sees of a
/// name whose address changes after the page was loaded. Returns the port.
fn serve_then_forward(page: String, server: String) -> u16 {
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{page}",
        page.len()
    );
    listen(move |mut stream| {
        let head = read_head(&mut stream)?;
        if head.starts_with(b"GET / ") {
            return stream.write_all(answer.as_bytes());
        }
        let mut server = TcpStream::connect(&server)?;
        server.write_all(&head)?;
        let (mut from, mut to) = (stream.try_clone()?, server.try_clone()?);
        thread::spawn(move || {
            io::copy(&mut from, &mut to).ok();
            to.shutdown(Shutdown::Write).ok();
        });
        io::copy(&mut server, &mut stream)?;
        Ok(())
    })
}

/// Listens for the results that the page reports. Returns the address to report to.
fn collect() -> (String, Receiver<Value>) {
    let (sender, receiver) = mpsc::channel();
    let port = listen(move |mut stream| {
        let mut request = read_head(&mut stream)?;
        stream.write_all(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")?;
        stream.shutdown(Shutdown::Write)?;
        stream.read_to_end(&mut request)?;
        let start = request.iter().position(|byte| *byte == b'{').unwrap_or(0);
        if let Ok(outcomes) = serde_json::from_slice(&request[start..]) {
            sender.send(outcomes).ok();
        }
        Ok(())
    });
    (format!("http://127.0.0.1:{port}/"), receiver)
}

/// Accepts connections as long as the test runs. Returns the port.
fn listen(serve: impl Fn(TcpStream) -> io::Result<()> + Clone + Send + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = serve.clone();
            // A connection that the browser aborts does not concern the test.
            thread::spawn(move || serve(stream).ok());
        }
    });
    port
}

/// Reads the head of a request, and the bytes that arrived with it.
fn read_head(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    let mut buffer = [0; 4096];
    while !head.windows(4).any(|window| window == b"\r\n\r\n") {
        let length = stream.read(&mut buffer)?;
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        head.extend_from_slice(&buffer[..length]);
    }
    Ok(head)
}

/// Browser with one page, and all its processes. They are killed on drop.
struct Browser(Child);

impl Browser {
    #[expect(clippy::disallowed_methods, reason = "a browser is no script of mcpd")]
    fn open(program: &Path, sandbox: &Sandbox, url: &str) -> Self {
        let log = fs::File::create(sandbox.path().join("browser.log")).unwrap();
        let mut command = Command::new(program);
        command
            .args([
                "--headless",
                // Chromium's own sandbox needs a user other than root.
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
                "--disable-sync",
                "--disable-background-networking",
                "--disable-component-update",
                "--no-first-run",
                "--no-proxy-server",
            ])
            .arg(format!("--host-resolver-rules=MAP {NAME} 127.0.0.1"))
            .arg(format!(
                "--user-data-dir={}",
                sandbox.path().join("profile").display()
            ))
            .arg(url)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .process_group(0);
        Self(command.spawn().expect("the browser starts"))
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        kill_process_group(Pid::from_child(&self.0), Signal::KILL).ok();
        self.0.wait().ok();
    }
}

/// Path of a Chromium, or `None` if `setup` reported that there is none. Set up once for all
/// tests.
fn browser() -> Option<&'static Path> {
    static BROWSER: OnceLock<Option<PathBuf>> = OnceLock::new();
    BROWSER.get_or_init(|| set_up("setup")).as_deref()
}

/// Runs a script beside this file, and returns the path that it prints; `None` if it reports that
/// something is missing.
#[expect(clippy::disallowed_methods, reason = "the setup is no script of mcpd")]
fn set_up(script: &str) -> Option<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("browser");
    let target = binary().ancestors().nth(2);
    let output = Command::new(here.join(script))
        .arg(target.expect("target/<profile>/mcpd").join("browser"))
        .stderr(Stdio::inherit())
        .output()
        .expect("the setup starts");
    match output.status.code() {
        Some(0) => Some(String::from_utf8(output.stdout).unwrap().trim().into()),
        Some(SKIPPED) => {
            assert!(
                std::env::var_os("CI").is_none(),
                "nothing is skipped where the project is checked for everyone"
            );
            None
        }
        _ => panic!("{script}: {}", output.status),
    }
}
