//! What is measured: a server, or nothing but a script.

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
use super::pipes::Pipes;
use super::sample::{Meter, Sample};
use crate::client::Client;
use crate::latency::Latency;
use crate::request::{Checker, Request};
use crate::server::Server;

/// How long a server may take to start, and an answer may take beyond the end of a round.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// More requests at a time are never made.
const MOST_AT_ONCE: usize = 1000;

/// What can be loaded. Its process is killed when it is dropped.
#[derive(Debug)]
pub(crate) enum Subject {
    /// mcpd over HTTP.
    Mcpd(Server),
    /// Another server over HTTP.
    Peer(Peer),
    /// Whatever server over stdio.
    Stdio(Pipes),
    /// Nothing but the start of a script.
    Bare(PathBuf),
}

/// A server that prints its address.
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
    /// When it doesn't say where it listens.
    pub(crate) async fn start(mut command: Command) -> anyhow::Result<Self> {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("{command:?}"))?;
        let mut stdout = BufReader::new(child.stdout.take().context("a pipe")?);
        let mut address = String::new();
        timeout(PATIENCE, stdout.read_line(&mut address)).await??;
        address.truncate(address.trim_end().len());
        Ok(Self { child, address })
    }
}

impl Subject {
    /// The number of its process, if there is one.
    pub(crate) fn process(&self) -> Option<u32> {
        match self {
            Self::Mcpd(server) => server.id().ok(),
            Self::Peer(peer) => peer.child.id(),
            Self::Stdio(pipes) => pipes.id(),
            Self::Bare(_) => None,
        }
    }

    /// Makes a request for so long, so many at a time, and checks every answer.
    ///
    /// # Errors
    ///
    /// When an answer is wrong or doesn't come.
    pub(crate) async fn load(
        &mut self,
        request: &Request,
        at_once: usize,
        time: Duration,
    ) -> anyhow::Result<Sample> {
        let load = async {
            match self {
                Self::Mcpd(_) | Self::Peer(_) => self.load_http(request, at_once, time).await,
                Self::Stdio(pipes) => pipes.load(request, at_once, time).await,
                Self::Bare(script) => bare::load(script, at_once, time),
            }
        };
        let sample = timeout(time + PATIENCE, load).await;
        sample.with_context(|| format!("no answer to {}", request.method))?
    }

    /// The same over HTTP, where several loads can go on at a time.
    ///
    /// # Errors
    ///
    /// When an answer is wrong, or it is no server over HTTP.
    pub(crate) async fn load_http(
        &self,
        request: &Request,
        at_once: usize,
        time: Duration,
    ) -> anyhow::Result<Sample> {
        let (clients, checker) = self.clients(request, at_once).await?;
        load(clients, checker, Meter::start(self.process())?, time).await
    }

    /// Makes a request once, and gives the answer.
    ///
    /// # Errors
    ///
    /// When none comes, or over HTTP there is no server.
    pub(crate) async fn exchange(&mut self, request: &Request) -> anyhow::Result<Vec<u8>> {
        let exchange = async {
            match self {
                Self::Stdio(pipes) => pipes.exchange(request, 1).await,
                _ => self.connect().await?.exchange(request, 1).await,
            }
        };
        timeout(PATIENCE, exchange).await?
    }

    /// A new connection.
    ///
    /// # Errors
    ///
    /// When it is no server over HTTP, or doesn't take it.
    pub(crate) async fn connect(&self) -> anyhow::Result<Client> {
        match self {
            Self::Mcpd(server) => Client::connect(server.address(), server.token()).await,
            Self::Peer(peer) => Client::connect(&peer.address, "").await,
            Self::Stdio(_) | Self::Bare(_) => anyhow::bail!("it has no address"),
        }
    }

    /// So many clients, each of which has been answered, and who checks what they get.
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

/// Has every client make one request after the other.
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
            // Numbers that no other client has.
            for number in (place as u64..).step_by(MOST_AT_ONCE) {
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
