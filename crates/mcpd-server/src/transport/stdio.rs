//! Stdio transport: one client on a pair of pipes, one message per line. Two threads block on the
//! pipes so that nothing else has to; ready responses go out in as few writes as their requests
//! came in reads.
//!
//! ```text
//! Serving ──end of input──► first scan ──► Lingering ──idle, or linger over──► Flushing ──► over
//!    │                          │              │ (a request to stop waits)         │
//!    └──────────────────────────┴──output closed, server stops, stop requested─────┴────────► over
//! ```

use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use mcpd_protocol::jsonrpc::{self, ErrorObject};
use memchr::memchr;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::DEFAULT_WRITE_TIMEOUT;
use crate::client::outbox::Closed;
use crate::message::tool_names::ToolNames;
use crate::message::transport::Transport;
use crate::policy::principal::Principal;
use crate::server::Server;
use crate::server::error::Error;
use crate::transport::connection::Connection;

/// Maximum size of one read or write on a pipe, in bytes.
const CHUNK_SIZE: usize = 64 * 1024;

/// Options for serving a client on pipes.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// Principal of the client. [`Principal::local`].
    pub principal: Principal,
    /// Spelling of tool names in lists. Portable.
    pub names: ToolNames,
    /// Maximum length of a line, in bytes; a longer one is refused and skipped. 16 MiB.
    pub max_message: usize,
    /// Time for which requests may continue after the end of input, so that `echo '…' | mcpd
    /// stdio DIR` gets its response. Slower requests get an error, unless the client has a
    /// session: such a client leaves by closing the input, and would treat a response to an
    /// abandoned request as a fault of the server. 600 ms.
    pub linger: Duration,
    /// Time for which a client may leave written data unread before it is dropped; detected after
    /// twice that time at the latest. 60 s.
    pub write_timeout: Duration,
    /// Cancelled by [`serve`] at the end of input, before the last responses are written.
    pub input_ended: CancellationToken,
    /// Cancelled by the embedding program when nothing can read `output` any more: then nothing
    /// lingers.
    pub output_closed: CancellationToken,
    /// Cancelled by the embedding program to end the conversation. It takes effect after requests
    /// have lingered: that is short, and clients that have closed the input send a signal
    /// meanwhile.
    pub stop: CancellationToken,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            principal: Principal::local(),
            names: ToolNames::Portable,
            max_message: crate::DEFAULT_MAX_MESSAGE,
            linger: Duration::from_millis(600),
            write_timeout: DEFAULT_WRITE_TIMEOUT,
            input_ended: CancellationToken::new(),
            output_closed: CancellationToken::new(),
            stop: CancellationToken::new(),
        }
    }
}

/// Serves one client until it closes `input` or `output`, the server stops or [`Options::stop`]
/// is cancelled.
///
/// # Errors
///
/// Reading or writing fails for another reason than the client's exit, or the client does not
/// read.
///
/// # Cancel safety
///
/// Dropping the future cancels every open request. The thread that reads `input` ends with its
/// next message, or with the process; so does one that writes to a client that does not read.
pub async fn serve(
    server: &Server,
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    options: Options,
) -> Result<(), Error> {
    let (connection, messages) =
        Connection::open_over(Transport::Stdio, options.principal, server, options.names);
    let connection = Arc::new(connection);
    let guard = CloseOnDrop(Arc::clone(&connection));
    let (read_end, mut read_ended) = oneshot::channel();
    let (write_end, mut write_ended) = oneshot::channel();
    let progress = Arc::new(OutputProgress::default());
    let reader = LineReader {
        connection: Arc::downgrade(&connection),
        runtime: Handle::current(),
        max_message: options.max_message,
        progress: Arc::clone(&progress),
    };
    let output = ProgressWriter {
        output,
        progress: Arc::clone(&progress),
    };
    spawn("mcpd-stdin", move || read_end.send(reader.run(input)))?;
    spawn("mcpd-stdout", move || {
        write_end.send(write_all(messages, output))
    })?;

    let is_stopped = async {
        tokio::select! {
            () = server.engine().stopping.cancelled() => {}
            () = options.stop.cancelled() => {}
        }
    };
    let is_unread = async {
        progress.wait_until_stalled(options.write_timeout).await;
        Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "the client does not read its messages",
        ))
    };
    let ended = tokio::select! {
        ended = &mut read_ended => ended.unwrap_or(Ok(())),
        ended = &mut write_ended => return unless_gone(ended.unwrap_or(Ok(()))),
        () = options.output_closed.cancelled() => return Ok(()),
        unread = is_unread => return unless_gone(unread),
        () = is_stopped => return Ok(()),
    };
    options.input_ended.cancel();
    let final_phase = FinalPhase {
        server,
        connection,
        guard,
        progress,
        linger: options.linger,
        write_timeout: options.write_timeout,
        output_closed: options.output_closed,
        stop: options.stop,
    };
    final_phase.run(ended, write_ended).await
}

/// Last phase of a conversation, after the end of input.
struct FinalPhase<'a> {
    server: &'a Server,
    connection: Arc<Connection>,
    guard: CloseOnDrop,
    progress: Arc<OutputProgress>,
    linger: Duration,
    write_timeout: Duration,
    output_closed: CancellationToken,
    stop: CancellationToken,
}

impl FinalPhase<'_> {
    /// Writes the last responses, as long as something reads them.
    ///
    /// # Errors
    ///
    /// The error of the input, `ended`, or that of the output, unless the client is gone.
    async fn run(
        self,
        ended: io::Result<()>,
        mut write_ended: oneshot::Receiver<io::Result<()>>,
    ) -> Result<(), Error> {
        self.connection.close();
        let mut written = None;
        // Some responses wait for the catalog, which may take long.
        tokio::select! {
            () = self.connection.wait_until_idle() => {}
            () = self.server.catalog_ready() => {}
            ended = &mut write_ended => written = Some(ended),
            () = self.output_closed.cancelled() => return unless_gone(ended),
            () = self.server.engine().stopping.cancelled() => return Ok(()),
            () = self.stop.cancelled() => return Ok(()),
        }
        if written.is_none() {
            tokio::select! {
                () = self.connection.wait_until_idle() => {}
                () = tokio::time::sleep(self.linger) => {}
                ended = &mut write_ended => written = Some(ended),
                () = self.output_closed.cancelled() => return unless_gone(ended),
                () = self.server.engine().stopping.cancelled() => return Ok(()),
            }
        }
        self.abandon_requests().await;
        let Self {
            connection, guard, ..
        } = self;
        let last = async {
            // Dropping the connection closes its queue, and the writer ends when the queue is
            // written.
            drop((connection, guard));
            match written {
                Some(written) => written,
                None => write_ended.await,
            }
        };
        let written = tokio::select! {
            written = last => written.unwrap_or(Ok(())),
            () = self.progress.wait_until_quiet(self.linger) => Ok(()),
            () = self.progress.wait_until_stalled(self.write_timeout) => Ok(()),
            () = self.output_closed.cancelled() => Ok(()),
            () = self.server.engine().stopping.cancelled() => Ok(()),
            () = self.stop.cancelled() => Ok(()),
        };
        unless_gone(written.and(ended))
    }

    /// Ends the requests that are still open. A client with a session that has continued after
    /// its first response is a program that leaves by closing the input; some of these end with
    /// an exception when a response arrives after that.
    async fn abandon_requests(&self) {
        let is_leaving = self.connection.has_session() && self.progress.has_conversed();
        let open = match is_leaving {
            true => self.connection.abandon_requests(),
            false => self.connection.fail_requests(&too_late()).await,
        };
        if open > 0 {
            tracing::info!(
                requests = open,
                "input ended before these requests were answered; they were stopped"
            );
        }
    }
}

fn too_late() -> ErrorObject {
    ErrorObject::internal_error(
        "stopped because the input ended; keep it open until the response arrives",
    )
}

/// Guard that closes the connection when dropped: responses that wait for space hold the outbox,
/// too.
struct CloseOnDrop(Arc<Connection>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close_all();
    }
}

fn spawn<T>(name: &str, body: impl FnOnce() -> T + Send + 'static) -> Result<(), Error> {
    let thread = std::thread::Builder::new().name(name.to_owned());
    thread
        .spawn(move || {
            body();
        })
        .map(drop)
        .map_err(Error::Transport)
}

/// Reader thread: splits the input into lines and passes each to the connection.
struct LineReader {
    /// Weak: the thread may block on its input for ever, and must not keep the server alive.
    connection: Weak<Connection>,
    runtime: Handle,
    max_message: usize,
    progress: Arc<OutputProgress>,
}

impl LineReader {
    /// Reads until the input ends or the outbox is closed.
    fn run(self, input: impl Read) -> io::Result<()> {
        // The reader zeroes its buffer once, and not before every read.
        let mut input = BufReader::with_capacity(CHUNK_SIZE, input);
        let mut buffer = Vec::with_capacity(CHUNK_SIZE);
        let mut skipping = false;
        loop {
            let searched = buffer.len();
            if read_some(&mut input, &mut buffer)? == 0 {
                // A last line without a line end is still a message.
                let more = !buffer.is_empty() && !skipping;
                return if more { self.line(&buffer) } else { Ok(()) };
            }
            self.progress.note_read();
            let mut start = 0;
            while let Some(end) = memchr(b'\n', &buffer[start.max(searched)..]) {
                let end = start.max(searched) + end;
                if !std::mem::take(&mut skipping) {
                    self.line(&buffer[start..end])?;
                }
                start = end + 1;
            }
            buffer.drain(..start);
            if self.is_too_long(&buffer) {
                if !std::mem::replace(&mut skipping, true) {
                    self.answer(self.too_long())?;
                }
                buffer.clear();
            }
        }
    }

    fn is_too_long(&self, line: &[u8]) -> bool {
        line.len() > self.max_message
    }

    fn line(&self, line: &[u8]) -> io::Result<()> {
        // A line may exceed the limit with its last chunk, which contains the line end.
        if self.is_too_long(line) {
            return self.answer(self.too_long());
        }
        let line = line.trim_ascii();
        // Some shells begin piped text with a byte order mark, even on an empty line.
        if line.is_empty() || line == "\u{feff}".as_bytes() {
            return Ok(());
        }
        let Some(connection) = self.connection.upgrade() else {
            return Ok(());
        };
        self.runtime
            .block_on(connection.deliver(line))
            .or_else(broken_pipe)
    }

    fn answer(&self, answer: Bytes) -> io::Result<()> {
        let Some(connection) = self.connection.upgrade() else {
            return Ok(());
        };
        self.runtime
            .block_on(connection.outbox().send(answer))
            .or_else(broken_pipe)
    }

    fn too_long(&self) -> Bytes {
        let limit = self.max_message;
        let error = ErrorObject::parse_error(format!(
            "the line is longer than {limit} bytes; it was skipped"
        ));
        jsonrpc::error_response(None, &error).into()
    }
}

/// Appends the available bytes, at most a chunk; 0 at the end of input.
fn read_some(input: &mut impl BufRead, buffer: &mut Vec<u8>) -> io::Result<usize> {
    let read = loop {
        match input.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
            Ok(chunk) => {
                buffer.extend_from_slice(chunk);
                break chunk.len();
            }
        }
    };
    input.consume(read);
    Ok(read)
}

/// Writer thread: writes messages as they arrive, all queued ones at once.
fn write_all(mut messages: mpsc::Receiver<Bytes>, output: impl Write) -> io::Result<()> {
    let mut waiting = Vec::new();
    let mut output = BufWriter::with_capacity(CHUNK_SIZE, output);
    while messages.blocking_recv_many(&mut waiting, 256) > 0 {
        for message in waiting.drain(..) {
            output.write_all(&message)?;
            output.write_all(b"\n")?;
        }
        output.flush()?;
    }
    Ok(())
}

/// Progress of the output, and of the input as far as it depends on that.
#[derive(Debug, Default)]
struct OutputProgress {
    /// Number of starts and ends of writes: odd while a write is under way.
    writes: AtomicU64,
    has_conversed: AtomicBool,
}

impl OutputProgress {
    /// Records that something was read.
    fn note_read(&self) {
        if self.writes.load(Ordering::Relaxed) > 0 {
            self.has_conversed.store(true, Ordering::Relaxed);
        }
    }

    /// Returns whether the client has sent something after something was written to it. Input
    /// piped by a shell comes before.
    fn has_conversed(&self) -> bool {
        self.has_conversed.load(Ordering::Relaxed)
    }

    /// Waits until nothing was to be written for all of `time`.
    async fn wait_until_quiet(&self, time: Duration) {
        self.wait_unchanged(time, 0).await;
    }

    /// Waits until one write has taken all of `timeout`.
    async fn wait_until_stalled(&self, timeout: Duration) {
        self.wait_unchanged(timeout, 1).await;
    }

    /// Waits until the counter has kept its value, of this `parity`, for all of `time`.
    async fn wait_unchanged(&self, time: Duration, parity: u64) {
        let mut before = None;
        loop {
            let now = self.writes.load(Ordering::Relaxed);
            if before == Some(now) && now % 2 == parity {
                return;
            }
            before = Some(now);
            tokio::time::sleep(time).await;
        }
    }
}

/// Output that reports its progress.
struct ProgressWriter<W> {
    output: W,
    progress: Arc<OutputProgress>,
}

impl<W: Write> Write for ProgressWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.progress.writes.fetch_add(1, Ordering::Relaxed);
        // Each write is one chunk at most: a pipe may accept everything before any of it is read.
        let written = self.output.write(&bytes[..bytes.len().min(CHUNK_SIZE)]);
        self.progress.writes.fetch_add(1, Ordering::Relaxed);
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

fn broken_pipe(_: Closed) -> io::Result<()> {
    Err(io::ErrorKind::BrokenPipe.into())
}

/// Maps the end of a connection: a client that closes its end is the normal case.
fn unless_gone(ended: io::Result<()>) -> Result<(), Error> {
    match ended {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        ended => ended.map_err(Error::Transport),
    }
}
