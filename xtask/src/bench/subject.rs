//! Subject of a measurement: a server, or a bare script.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::bare;
use super::cluster::{Cluster, RoundTrips};
use super::pipes::Pipes;
use super::sample::{Meter, Sample};
use crate::client::Client;
use crate::latency::Latency;
use crate::request::{Checker, Request};
use crate::server::Server;

/// Time limit for the start of a server, and for an answer beyond the end of a round.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);

/// Maximum number of concurrent requests.
const MAX_CONCURRENCY: usize = 1000;

/// Subject that can be loaded. Its process is killed on drop.
#[derive(Debug)]
pub(crate) enum Subject {
    /// mcpd over HTTP.
    Mcpd(Server),
    /// Front of a cluster over HTTP.
    Cluster(Box<Cluster>),
    /// Requests through a NATS server alone.
    RoundTrips(RoundTrips),
    /// Another server over HTTP.
    Peer(Peer),
    /// Any server over stdio.
    Stdio(Pipes),
    /// Bare start of a script.
    Bare(PathBuf),
}

/// Server that prints its address.
#[derive(Debug)]
pub(crate) struct Peer {
    child: Child,
    address: String,
}

impl Peer {
    /// Starts it.
    ///
    /// # Errors
    ///
    /// Fails if it doesn't print its address.
    pub(crate) async fn start(mut command: Command) -> anyhow::Result<Self> {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("{command:?}"))?;
        let mut stdout = BufReader::new(child.stdout.take().context("a pipe")?);
        let mut address = String::new();
        timeout(ANSWER_TIMEOUT, stdout.read_line(&mut address)).await??;
        address.truncate(address.trim_end().len());
        Ok(Self { child, address })
    }
}

impl Subject {
    /// Returns its process id, if it has a process.
    pub(crate) fn process(&self) -> Option<u32> {
        match self {
            Self::Mcpd(server) => server.id().ok(),
            Self::Cluster(cluster) => cluster.front().id().ok(),
            Self::Peer(peer) => peer.child.id(),
            Self::Stdio(pipes) => pipes.id(),
            Self::Bare(_) | Self::RoundTrips(_) => None,
        }
    }

    /// Returns the ids of all processes that work for its clients.
    fn processes(&self) -> Vec<u32> {
        match self {
            Self::Cluster(cluster) => cluster.processes(),
            _ => self.process().into_iter().collect(),
        }
    }

    /// Makes a request for `time`, `at_once` at a time, and checks every answer.
    ///
    /// # Errors
    ///
    /// Fails if an answer is wrong or missing.
    pub(crate) async fn load(
        &mut self,
        request: &Request,
        at_once: usize,
        time: Duration,
    ) -> anyhow::Result<Sample> {
        let load = async {
            match self {
                Self::Mcpd(_) | Self::Cluster(_) | Self::Peer(_) => {
                    self.load_http(request, at_once, time).await
                }
                Self::RoundTrips(round_trips) => round_trips.load(at_once, time).await,
                Self::Stdio(pipes) => pipes.load(request, at_once, time).await,
                Self::Bare(script) => bare::load(script, at_once, time),
            }
        };
        let sample = timeout(time + ANSWER_TIMEOUT, load).await;
        sample.with_context(|| format!("no answer to {}", request.method))?
    }

    /// Loads it over HTTP, where several loads can run concurrently.
    ///
    /// # Errors
    ///
    /// Fails if an answer is wrong, or it is not a server over HTTP.
    pub(crate) async fn load_http(
        &self,
        request: &Request,
        at_once: usize,
        time: Duration,
    ) -> anyhow::Result<Sample> {
        let (clients, checker) = self.clients(request, at_once).await?;
        load(clients, checker, Meter::start(self.processes())?, time).await
    }

    /// Makes a request once, and returns the answer.
    ///
    /// # Errors
    ///
    /// Fails if there is no answer, or over HTTP no server.
    pub(crate) async fn exchange(&mut self, request: &Request) -> anyhow::Result<Vec<u8>> {
        let exchange = async {
            match self {
                Self::Stdio(pipes) => pipes.exchange(request, 1).await,
                _ => self.connect().await?.exchange(request, 1).await,
            }
        };
        timeout(ANSWER_TIMEOUT, exchange).await?
    }

    /// Opens a connection.
    ///
    /// # Errors
    ///
    /// Fails if it is not a server over HTTP, or refuses the connection.
    pub(crate) async fn connect(&self) -> anyhow::Result<Client> {
        match self {
            Self::Mcpd(server) => Client::connect(server.address(), server.token()).await,
            Self::Cluster(cluster) => {
                let front = cluster.front();
                Client::connect(front.address(), front.token()).await
            }
            Self::Peer(peer) => Client::connect(&peer.address, "").await,
            Self::Stdio(_) | Self::Bare(_) | Self::RoundTrips(_) => {
                anyhow::bail!("it has no address")
            }
        }
    }

    /// Connects this number of clients, each of which has had an answer, and returns them with the
    /// checker of further answers.
    async fn clients(
        &self,
        request: &Request,
        number: usize,
    ) -> anyhow::Result<(Vec<Client>, Checker)> {
        let mut client = self.connect().await?;
        let first = client.exchange(request, Checker::FIRST).await?;
        let checker = Checker::learn(request, &first)?;
        let mut clients = vec![client];
        while clients.len() < number {
            let mut client = self.connect().await?;
            checker.check(0, &client.exchange(request, 0).await?)?;
            clients.push(client);
        }
        Ok((clients, checker))
    }
}

/// Lets every client make one request after the other.
async fn load(
    clients: Vec<Client>,
    checker: Checker,
    meter: Meter,
    time: Duration,
) -> anyhow::Result<Sample> {
    let checker = Arc::new(checker);
    let end = Instant::now() + time;
    let mut loads = JoinSet::new();
    for (place, mut client) in clients.into_iter().enumerate() {
        let checker = Arc::clone(&checker);
        loads.spawn(async move {
            let mut latency = Latency::default();
            // Ids that no other client uses.
            for number in (place as u64..).step_by(MAX_CONCURRENCY) {
                let begun = Instant::now();
                if begun >= end {
                    break;
                }
                let answer = client.exchange(checker.request(), number).await?;
                latency.record(begun.elapsed());
                checker.check(number, &answer)?;
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
