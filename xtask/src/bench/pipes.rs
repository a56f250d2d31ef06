//! Server over stdio.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde::Deserialize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::sample::{Meter, Sample};
use crate::latency::Latency;
use crate::request::{Checker, Request};

/// Capacity of a pipe, in bytes.
const PIPE: usize = 64 * 1024;

/// Server and its pipes. It is killed on drop.
#[derive(Debug)]
pub(crate) struct Pipes {
    child: Child,
    stdin: ChildStdin,
    stdout: ChildStdout,
    /// Bytes received.
    buffer: Vec<u8>,
}

/// Members of a message that identify its request.
#[derive(Deserialize)]
struct Envelope {
    /// `None` for a notification.
    id: Option<u64>,
}

impl Pipes {
    /// Starts a server.
    ///
    /// # Errors
    ///
    /// Fails if it doesn't start.
    pub(crate) fn start(command: &mut Command) -> anyhow::Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("{command:?}"))?;
        Ok(Self {
            stdin: child.stdin.take().context("a pipe")?,
            stdout: child.stdout.take().context("a pipe")?,
            child,
            buffer: Vec::new(),
        })
    }

    /// Returns its process id.
    pub(crate) fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Ends it by closing its input.
    ///
    /// # Errors
    ///
    /// Fails if it doesn't end by itself.
    pub(crate) async fn stop(self) -> anyhow::Result<()> {
        let Self {
            mut child, stdin, ..
        } = self;
        drop(stdin);
        child.wait().await?;
        Ok(())
    }

    /// Makes the request with this id, while there is no other, and returns the answer.
    ///
    /// # Errors
    ///
    /// Fails if the server has ended.
    pub(crate) async fn exchange(
        &mut self,
        request: &Request,
        number: u64,
    ) -> anyhow::Result<Vec<u8>> {
        self.stdin.write_all(&line(request, number)).await?;
        loop {
            let end = self.read_line().await?;
            let answer: Vec<u8> = self.buffer.drain(..=end).collect();
            let envelope: Envelope = serde_json::from_slice(&answer)?;
            if envelope.id == Some(number) {
                return Ok(answer.trim_ascii_end().to_vec());
            }
        }
    }

    /// Makes a request for `time`, `at_once` at a time, and checks every answer.
    ///
    /// # Errors
    ///
    /// Fails if an answer is wrong, or the server has ended.
    pub(crate) async fn load(
        &mut self,
        request: &Request,
        at_once: usize,
        time: Duration,
    ) -> anyhow::Result<Sample> {
        let first = line(request, Checker::FIRST);
        // All first requests are written before anything is read, so they must fit.
        ensure!(
            at_once == 1 || at_once * first.len() <= PIPE,
            "too much at a time"
        );
        let answer = self.exchange(request, Checker::FIRST).await?;
        let checker = Checker::learn(request, &answer)?;
        let mut latency = Latency::default();
        let mut waiting = BTreeMap::new();
        let mut outgoing = Vec::new();
        let meter = Meter::start(self.id().into_iter().collect())?;
        let end = Instant::now() + time;
        let mut numbers = 0..;
        let mut ask = |waiting: &mut BTreeMap<u64, Instant>, outgoing: &mut Vec<u8>| {
            let number = numbers.next().expect("it has no end");
            outgoing.extend(line(request, number));
            waiting.insert(number, Instant::now());
        };
        for _ in 0..at_once {
            ask(&mut waiting, &mut outgoing);
        }
        while !waiting.is_empty() {
            self.stdin.write_all(&outgoing).await?;
            outgoing.clear();
            self.read_line().await?;
            let mut start = 0;
            while let Some(length) = memchr::memchr(b'\n', &self.buffer[start..]) {
                let answer = self.buffer[start..start + length].trim_ascii_end();
                start += length + 1;
                let Envelope { id: Some(number) } = serde_json::from_slice(answer)? else {
                    continue;
                };
                let asked = waiting.remove(&number).context("nobody asked that")?;
                latency.record(asked.elapsed());
                checker.check(number, answer)?;
                if Instant::now() < end {
                    ask(&mut waiting, &mut outgoing);
                }
            }
            self.buffer.drain(..start);
        }
        meter.stop(latency)
    }

    /// Reads until there is a whole line, and returns the position of its end.
    async fn read_line(&mut self) -> anyhow::Result<usize> {
        let mut searched = 0;
        loop {
            if let Some(end) = memchr::memchr(b'\n', &self.buffer[searched..]) {
                return Ok(searched + end);
            }
            searched = self.buffer.len();
            self.buffer.reserve(PIPE);
            let count = self.stdout.read_buf(&mut self.buffer).await?;
            ensure!(count > 0, "the server has ended");
        }
    }
}

/// Returns the encoded request with this id.
fn line(request: &Request, number: u64) -> Vec<u8> {
    let mut line = request.message(number);
    line.push(b'\n');
    line
}
