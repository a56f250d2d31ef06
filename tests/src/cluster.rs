//! Cluster of processes on this machine: a NATS server, workers, fronts, and a balancer in front of
//! these.

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::binary::binary;
use crate::client::Client;
use crate::daemon::Daemon;
use crate::nats::Nats;
use crate::round_robin::RoundRobin;
use crate::sandbox::Sandbox;
use crate::wait::eventually;

/// Worker process. It is killed on drop.
#[derive(Debug)]
pub struct Worker(Child);

impl Worker {
    /// Starts `mcpd worker` under this name, with further arguments. Its scripts have the name in
    /// `NODE`.
    ///
    /// # Panics
    ///
    /// Panics if it does not start.
    #[must_use]
    #[track_caller]
    pub fn start(sandbox: &Sandbox, nats: &Nats, name: &str, arguments: &[&str]) -> Self {
        Self::of(binary(), sandbox, nats, name, arguments)
    }

    /// Starts a worker of another program, which is an mcpd as well.
    ///
    /// # Panics
    ///
    /// Panics if it does not start.
    #[must_use]
    #[track_caller]
    pub fn of(
        program: &Path,
        sandbox: &Sandbox,
        nats: &Nats,
        name: &str,
        arguments: &[&str],
    ) -> Self {
        let mut command = sandbox.program(program);
        command.args(["worker", "--cluster", &nats.url(), "--node", name]);
        command.args(arguments);
        command
            .env("NODE", name)
            .env("PYTHONDONTWRITEBYTECODE", "1");
        command.stdin(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().expect("mcpd starts"))
    }

    /// Sends it a signal.
    ///
    /// # Panics
    ///
    /// Panics if it has ended already.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).expect("it runs");
    }

    /// Waits for its end, and returns its exit code.
    ///
    /// # Panics
    ///
    /// Panics if it goes on.
    #[track_caller]
    pub fn wait(&mut self) -> Option<i32> {
        let ended = || self.0.try_wait().expect("a child of this process");
        eventually("the end of the worker", ended).code()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Two fronts behind balancers, and one worker.
#[derive(Debug)]
#[non_exhaustive]
pub struct TwoFronts {
    /// Balancer with affinity of sessions.
    pub balancer: RoundRobin,
    /// Balancer that knows nothing of sessions.
    pub blind: RoundRobin,
    /// Fronts `front-1` and `front-2`.
    pub fronts: [Daemon; 2],
    /// Worker `w1`.
    pub worker: Worker,
    /// NATS server.
    pub nats: Nats,
}

impl TwoFronts {
    /// Starts a cluster whose worker has these arguments, and waits until both fronts list tools;
    /// `None`, loudly, without a NATS server.
    ///
    /// # Panics
    ///
    /// Panics if a process does not start.
    #[must_use]
    #[track_caller]
    pub fn start(sandbox: &Sandbox, worker: &[&str], front: &[&str]) -> Option<Self> {
        let nats = Nats::start(sandbox)?;
        let worker = Worker::start(sandbox, &nats, "w1", worker);
        let key = sandbox.path().join("state.key");
        fs::write(&key, [7; 32]).expect("the sandbox is writable");
        let key = key.to_str().expect("paths of tests are UTF-8");
        let fronts = ["front-1", "front-2"].map(|name| {
            let url = nats.url();
            let node = ["--cluster", &url, "--node", name, "--state-key-file", key];
            let daemon = Daemon::front(sandbox, &[&node, front].concat());
            wait_for_tools(&daemon.client(), 1..);
            daemon
        });
        let backends = [
            ("front-1", fronts[0].address()),
            ("front-2", fronts[1].address()),
        ];
        Some(Self {
            balancer: RoundRobin::start(&backends, true),
            blind: RoundRobin::start(&backends, false),
            fronts,
            worker,
            nats,
        })
    }

    /// Makes a client of the balancer, with the token that both fronts take.
    #[must_use]
    pub fn client(&self) -> Client {
        Client::new(&self.balancer.address(), self.fronts[0].token())
    }
}

/// Waits until a server lists so many tools.
///
/// # Panics
///
/// Panics if it does not.
#[track_caller]
pub fn wait_for_tools(client: &Client, number: impl std::ops::RangeBounds<usize>) {
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    eventually("the tools of the workers", || {
        let (_, body) = client.post(&list).ok()?;
        let answer: Value = serde_json::from_str(&body).ok()?;
        let tools = answer["result"]["tools"].as_array()?;
        number.contains(&tools.len()).then_some(())
    });
}
