//! Servers started as child processes. Each leads a process group that ends with its connection:
//! first its input is closed, as the protocol specifies, then the group is killed.

use std::collections::VecDeque;
use std::io;
use std::process::Stdio;
use std::time::Duration;

use bytes::BytesMut;
use futures_util::StreamExt as _;
use mcpd_server::source::{NO_SOURCES, Secrets};
use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop};
use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader, Empty};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::time::{Interval, MissedTickBehavior};
use tokio_util::codec::{AnyDelimiterCodec, AnyDelimiterCodecError, Decoder, FramedRead};

use super::MAX_MESSAGE;
use super::reader::Reader;
use super::stderr_tail::{StderrTail, StderrWriter};
use crate::program::Program;
use crate::upstream::Upstream;

/// Time limit for a server to end after its input is closed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);
/// Interval of the search for orphans to reap.
const REAP_INTERVAL: Duration = Duration::from_secs(1);
/// Length of the examined beginning of a message that is too long, in bytes.
const MAX_EXAMINED_BYTES: usize = 1024;
/// Maximum length of a logged line of stderr, in bytes.
const MAX_LINE_BYTES: u64 = 1024;

/// Server process and the pipes to it.
pub(super) struct ChildServer {
    input: AsyncRwTransport<RoleClient, Empty, ChildStdin>,
    output: FramedRead<ChildStdout, Lines>,
    group: Group,
    reaping: Interval,
}

/// Decoder from lines to messages.
struct Lines {
    lines: AnyDelimiterCodec,
    reader: Reader,
    /// Messages of an array that are not delivered yet.
    waiting: VecDeque<RxJsonRpcMessage<RoleClient>>,
}

/// Process group of a server, until it has been ended.
struct Group(Option<Box<dyn ChildWrapper>>);

/// Starts `program`. Its stderr goes to the log.
///
/// # Errors
///
/// Returns the reason, as a fragment that follows the name of the server.
pub(super) fn start(
    upstream: &Upstream,
    program: &Program,
    reader: Reader,
    stderr_tail: &StderrTail,
) -> Result<ChildServer, String> {
    let failed = |error: io::Error| {
        format!(
            "failed to start with the command `{}`: {error}",
            program.program.display()
        )
    };
    let mut group = Group(Some(command(program).spawn().map_err(failed)?));
    let (stdin, stdout, stderr) = group
        .pipes()
        .ok_or_else(|| failed(io::Error::other("it has no pipes")))?;
    let (name, secrets) = (upstream.name.clone(), upstream.secrets.clone());
    let lines = Lines {
        lines: AnyDelimiterCodec::new_with_max_length(b"\n".into(), Vec::new(), MAX_MESSAGE),
        reader,
        waiting: VecDeque::new(),
    };
    tokio::spawn(relay(name, secrets, stderr, stderr_tail.writer()));
    let mut reaping = tokio::time::interval(REAP_INTERVAL);
    reaping.set_missed_tick_behavior(MissedTickBehavior::Delay);
    Ok(ChildServer {
        input: AsyncRwTransport::new(tokio::io::empty(), stdin),
        output: FramedRead::new(stdout, lines),
        group,
        reaping,
    })
}

fn command(program: &Program) -> CommandWrap {
    let mut command = CommandWrap::with_new(&program.program, |command| {
        command
            .args(&program.arguments)
            .env_clear()
            .envs(program.environment.variables())
            .envs(&program.variables)
            .env(NO_SOURCES, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(directory) = &program.directory {
            command.current_dir(directory);
        }
    });
    command.wrap(KillOnDrop);
    #[cfg(unix)]
    command.wrap(process_wrap::tokio::ProcessGroup::leader());
    #[cfg(windows)]
    command.wrap(process_wrap::tokio::JobObject);
    command
}

impl Group {
    fn pipes(&mut self) -> Option<(ChildStdin, ChildStdout, ChildStderr)> {
        let leader = self.0.as_mut()?;
        Some((
            leader.stdin().take()?,
            leader.stdout().take()?,
            leader.stderr().take()?,
        ))
    }

    /// Reaps members of the group that lost their parent and then ended. They fall to this process
    /// if it is the subreaper, which the executor makes it; outside this group they could not be
    /// attributed to the server.
    #[cfg(target_os = "linux")]
    fn reap_orphans(&self) {
        use nix::sys::wait::{Id, WaitPidFlag as Flag, waitid, waitpid};
        use nix::unistd::Pid;

        let leader = self.0.as_ref().and_then(|leader| leader.id());
        let Some(Ok(leader)) = leader.map(TryInto::try_into) else {
            return;
        };
        let leader = Pid::from_raw(leader);
        let look = Flag::WEXITED | Flag::WNOHANG | Flag::WNOWAIT;
        let dead = || waitid(Id::PGid(leader), look).ok()?.pid();
        // The leader is waited for elsewhere, and until then its id is not reused.
        while let Some(orphan) = dead().filter(|dead| *dead != leader) {
            if waitpid(orphan, Some(Flag::WNOHANG)).is_err() {
                return;
            }
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn reap_orphans(&self) {}

    /// Closes its input, waits for the leader within [`EXIT_TIMEOUT`], and kills the rest of the
    /// group.
    async fn end(&mut self, close_input: impl Future) {
        let Some(group) = &mut self.0 else { return };
        let ended = async {
            // Never completes while a write to a server that reads no more is pending.
            close_input.await;
            // Waits for the leader alone. An error means that it has not ended, which the kill
            // covers.
            group.inner_mut().wait().await.ok();
        };
        tokio::time::timeout(EXIT_TIMEOUT, ended).await.ok();
        // Kills what the leader left behind. The group id can't be reused in so short a time.
        group.start_kill().ok();
        tokio::time::timeout(EXIT_TIMEOUT, group.wait()).await.ok();
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = &mut self.0 {
            // The group may have ended already.
            group.start_kill().ok();
        }
    }
}

impl Decoder for Lines {
    type Item = RxJsonRpcMessage<RoleClient>;
    type Error = io::Error;

    fn decode(&mut self, output: &mut BytesMut) -> io::Result<Option<Self::Item>> {
        loop {
            if let Some(message) = self.waiting.pop_front() {
                return Ok(Some(message));
            }
            match self.lines.decode(output) {
                Ok(Some(line)) => self.read(&line),
                Ok(None) => return Ok(None),
                Err(AnyDelimiterCodecError::MaxChunkLengthExceeded) => self.skip_long(output),
                Err(AnyDelimiterCodecError::Io(error)) => return Err(error),
            }
        }
    }

    /// Decodes a last line without a line end.
    fn decode_eof(&mut self, output: &mut BytesMut) -> io::Result<Option<Self::Item>> {
        let message = self.decode(output)?;
        if message.is_none() && !output.is_empty() {
            self.read(&output.split());
            return Ok(self.waiting.pop_front());
        }
        Ok(message)
    }
}

impl Lines {
    fn read(&mut self, line: &[u8]) {
        let readings = self.reader.read(line, None).into_iter();
        self.waiting.extend(readings.map(|reading| reading.message));
    }

    /// Replaces an answer that is too long by an error, if its beginning contains the id. The rest
    /// of the line is discarded.
    fn skip_long(&mut self, line: &[u8]) {
        let fault = format!("it has more than {} MiB", MAX_MESSAGE >> 20);
        let beginning = &line[..MAX_EXAMINED_BYTES.min(line.len())];
        let error = self.reader.salvage_beginning(beginning, fault);
        self.waiting.extend(error);
    }
}

impl Transport<RoleClient> for ChildServer {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        self.input.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            tokio::select! {
                message = self.output.next() => return message?.ok(),
                _ = self.reaping.tick() => self.group.reap_orphans(),
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.group.end(self.input.close()).await;
        Ok(())
    }
}

/// Logs a server's stderr line by line, each long line cut, with secrets redacted.
async fn relay(name: String, secrets: Secrets, stderr: ChildStderr, stderr_tail: StderrWriter) {
    let mut stderr = BufReader::new(stderr);
    let mut line = Vec::new();
    // A read error ends the relay like the end of the stream.
    while let Ok(1..) = (&mut stderr)
        .take(MAX_LINE_BYTES)
        .read_until(b'\n', &mut line)
        .await
    {
        let is_whole = line.ends_with(b"\n");
        let text = secrets.redact_beginning(std::mem::take(&mut line));
        // Control characters would be obeyed by a terminal.
        let text = String::from_utf8_lossy(&text).replace(char::is_control, " ");
        let text = text.trim().to_owned();
        if !text.is_empty() {
            tracing::debug!(upstream = name, "{text}");
            stderr_tail.set_line(text);
        }
        if !is_whole && skip_line(&mut stderr).await.is_err() {
            return;
        }
    }
}

/// Skips to the end of the line.
async fn skip_line(stderr: &mut BufReader<ChildStderr>) -> io::Result<()> {
    loop {
        let buffer = stderr.fill_buf().await?;
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let length = end.map_or(buffer.len(), |end| end + 1);
        stderr.consume(length);
        if end.is_some() || length == 0 {
            return Ok(());
        }
    }
}
