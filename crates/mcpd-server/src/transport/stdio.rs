//! One client on a pair of pipes, one message a line. Two threads block on the pipes so that nothing
//! else has to; answers that are ready go out in as few writes as they came in reads.

use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use mcpd_protocol::jsonrpc::{self, ErrorObject};
use memchr::memchr;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use super::DEFAULT_WRITE_TIMEOUT;
use crate::catalog::ToolNames;
use crate::connection::Connection;
use crate::outbox::Closed;
use crate::wire::Transport;
use crate::{Error, Principal, Server};

/// How much is read from or written to a pipe at once.
const CHUNK: usize = 64 * 1024;

/// How a client on pipes is served.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// Who the client is. [`Principal::local`].
    pub principal: Principal,
    /// How lists spell the names of tools. Portably.
    pub names: ToolNames,
    /// The longest line that is read, in bytes; a longer one is refused and skipped. 16 MiB.
    pub max_message: usize,
    /// How long requests may go on when the client has nothing more to say, so that
    /// `echo '…' | mcpd stdio DIR` gets its answer; what takes longer gets an error. 2 s.
    pub linger: Duration,
    /// How long a client may leave what is written to it unread before it is given up. It is noticed
    /// at the latest after twice that time. 60 s.
    pub write_timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            principal: Principal::local(),
            names: ToolNames::Portable,
            max_message: crate::DEFAULT_MAX_MESSAGE,
            linger: Duration::from_secs(2),
            write_timeout: DEFAULT_WRITE_TIMEOUT,
        }
    }
}

/// Serves one client until it closes `input` or `output`, or the server stops.
///
/// # Errors
///
/// When reading or writing fails for another reason than that the client is gone; also when it does not
/// read.
///
/// # Cancel safety
///
/// Dropping the future cancels every open request. The thread that reads `input` ends with its next
/// message, or with the process; so does one that writes to a client that doesn't read.
pub async fn serve(
    server: &Server,
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    options: Options,
) -> Result<(), Error> {
    let (connection, messages) =
        Connection::open_over(Transport::Stdio, options.principal, server, options.names);
    let connection = Arc::new(connection);
    let mut guard = HangUp(Some(Arc::clone(&connection)));
    let (read_end, read_ended) = oneshot::channel();
    let (write_end, mut write_ended) = oneshot::channel();
    let reader = Reader {
        connection: Arc::downgrade(&connection),
        runtime: Handle::current(),
        max_message: options.max_message,
    };
    let progress = Arc::new(Progress::default());
    let output = Watched {
        output,
        progress: Arc::clone(&progress),
    };
    spawn("mcpd-stdin", move || read_end.send(reader.run(input)))?;
    spawn("mcpd-stdout", move || {
        write_end.send(write_all(messages, output))
    })?;

    tokio::select! {
        ended = read_ended => {
            connection.close();
            // The last answers, unless the client doesn't want them. Some have to wait until there is a catalog.
            let linger = async {
                server.catalog_ready().await;
                tokio::time::sleep(options.linger).await;
            };
            let mut written = None;
            tokio::select! {
                () = connection.idle() => {}
                () = linger => {}
                ended = &mut write_ended => written = Some(ended),
                () = server.stopping().cancelled() => {}
            }
            let last = async {
                connection.give_up(&too_late()).await;
                // With the connection its queue ends, and the writer with it, as soon as all is read.
                drop((connection, guard.0.take()));
                match written {
                    Some(written) => written,
                    None => write_ended.await,
                }
            };
            let written = tokio::select! {
                written = last => written.unwrap_or(Ok(())),
                () = progress.rest(options.linger) => Ok(()),
                () = progress.stall(options.write_timeout) => Ok(()),
                () = server.stopping().cancelled() => Ok(()),
            };
            unless_gone(written.and(ended.unwrap_or(Ok(()))))
        }
        ended = &mut write_ended => unless_gone(ended.unwrap_or(Ok(()))),
        () = progress.stall(options.write_timeout) => {
            Err(Error::Transport(io::Error::new(io::ErrorKind::TimedOut, "the client does not read")))
        }
        () = server.stopping().cancelled() => Ok(()),
    }
}

fn too_late() -> ErrorObject {
    ErrorObject::internal_error(
        "stopped: the input has ended; keep it open until there is an answer",
    )
}

/// Hangs up when it is dropped: answers that wait for room hold the outbox, too.
struct HangUp(Option<Arc<Connection>>);

impl Drop for HangUp {
    fn drop(&mut self) {
        if let Some(connection) = &self.0 {
            connection.hang_up();
        }
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

/// Cuts the input into lines and hands each to the connection.
struct Reader {
    /// It may block for ever on its input, and must not keep the server with it.
    connection: Weak<Connection>,
    runtime: Handle,
    max_message: usize,
}

impl Reader {
    /// Reads until the input ends or nobody wants answers any more.
    fn run(self, input: impl Read) -> io::Result<()> {
        // It fills its memory with zeros once, and not before every read.
        let mut input = BufReader::with_capacity(CHUNK, input);
        let mut buffer = Vec::with_capacity(CHUNK);
        let mut skipping = false;
        loop {
            let searched = buffer.len();
            if read_some(&mut input, &mut buffer)? == 0 {
                // A last line without its end is still a message.
                let more = !buffer.is_empty() && !skipping;
                return if more { self.line(&buffer) } else { Ok(()) };
            }
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
        // The end of one may come with what makes it too long.
        if self.is_too_long(line) {
            return self.answer(self.too_long());
        }
        let line = line.trim_ascii();
        if line.is_empty() {
            return Ok(());
        }
        let Some(connection) = self.connection.upgrade() else {
            return Ok(());
        };
        self.runtime
            .block_on(connection.deliver(line))
            .or_else(gone)
    }

    fn answer(&self, answer: Bytes) -> io::Result<()> {
        let Some(connection) = self.connection.upgrade() else {
            return Ok(());
        };
        self.runtime
            .block_on(connection.outbox().send(answer))
            .or_else(gone)
    }

    fn too_long(&self) -> Bytes {
        let limit = self.max_message;
        let error = ErrorObject::parse_error(format!(
            "the line is longer than {limit} bytes; it was skipped"
        ));
        jsonrpc::error_response(None, &error).into()
    }
}

/// Appends what is there, at most a chunk; 0 is the end.
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

/// Writes messages as they come, all that are waiting in one go.
fn write_all(mut messages: mpsc::Receiver<Bytes>, output: impl Write) -> io::Result<()> {
    let mut waiting = Vec::new();
    let mut output = BufWriter::with_capacity(CHUNK, output);
    while messages.blocking_recv_many(&mut waiting, 256) > 0 {
        for message in waiting.drain(..) {
            output.write_all(&message)?;
            output.write_all(b"\n")?;
        }
        output.flush()?;
    }
    Ok(())
}

/// Whether what is written gets read: odd while a write is under way, another number after each.
#[derive(Debug, Default)]
struct Progress(AtomicU64);

impl Progress {
    /// Ends when nothing was to be written for all of `time`.
    async fn rest(&self, time: Duration) {
        self.stay(time, 0).await;
    }

    /// Ends when one write has taken all of `timeout`.
    async fn stall(&self, timeout: Duration) {
        self.stay(timeout, 1).await;
    }

    /// Ends when the number, modulo 2 this, has not changed for all of `time`.
    async fn stay(&self, time: Duration, parity: u64) {
        let mut before = None;
        loop {
            let now = self.0.load(Ordering::Relaxed);
            if before == Some(now) && now % 2 == parity {
                return;
            }
            before = Some(now);
            tokio::time::sleep(time).await;
        }
    }
}

/// An output that tells of its progress.
struct Watched<W> {
    output: W,
    progress: Arc<Progress>,
}

impl<W: Write> Write for Watched<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.progress.0.fetch_add(1, Ordering::Relaxed);
        // A part at a time: a pipe may take all before it says that anything was read.
        let written = self.output.write(&bytes[..bytes.len().min(CHUNK)]);
        self.progress.0.fetch_add(1, Ordering::Relaxed);
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

fn gone(_: Closed) -> io::Result<()> {
    Err(io::ErrorKind::BrokenPipe.into())
}

/// That the client has closed its end is the ordinary way for a conversation to end.
fn unless_gone(ended: io::Result<()>) -> Result<(), Error> {
    match ended {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        ended => ended.map_err(Error::Transport),
    }
}
