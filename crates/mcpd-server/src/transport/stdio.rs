//! One client on a pair of pipes, one message a line. Two threads block on the pipes so that nothing
//! else has to; answers that are ready go out in as few writes as they came in reads.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use mcpd_protocol::jsonrpc::{self, ErrorObject};
use memchr::memchr;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use crate::catalog::ToolNames;
use crate::connection::{Connection, Reply};
use crate::inflight::MAX_OPEN;
use crate::{Error, Server};

/// How much is read from or written to a pipe at once.
const CHUNK: usize = 64 * 1024;

/// How a client on pipes is served.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// How lists spell the names of tools.
    pub names: ToolNames,
    /// The longest line that is read, in bytes; a longer one is refused and skipped.
    pub max_message: usize,
    /// How long requests may go on when the client has nothing more to say, so that
    /// `echo '…' | mcpd stdio DIR` gets its answer.
    pub linger: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            names: ToolNames::Portable,
            max_message: crate::DEFAULT_MAX_MESSAGE,
            linger: Duration::from_secs(2),
        }
    }
}

/// Serves one client until it closes `input` or `output`, or the server stops.
///
/// # Errors
///
/// When reading or writing fails for another reason than that the client is gone.
///
/// # Cancel safety
///
/// Dropping the future cancels every open request. The thread that reads `input` ends with its next
/// message, or with the process.
pub async fn serve(
    server: &Server,
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    options: Options,
) -> Result<(), Error> {
    let (connection, messages) = Connection::open(server, options.names);
    let connection = Arc::new(connection);
    let (read_end, read_ended) = oneshot::channel();
    let (write_end, mut write_ended) = oneshot::channel();
    let runtime = Handle::current();
    let reader = Reader {
        connection: connection.clone(),
        runtime,
        max_message: options.max_message,
        places: Arc::new(Semaphore::new(MAX_OPEN + 64)),
    };
    spawn("mcpd-stdin", move || read_end.send(reader.run(input)))?;
    spawn("mcpd-stdout", move || {
        write_end.send(write_all(messages, output))
    })?;

    tokio::select! {
        ended = read_ended => {
            connection.close();
            // The last answers, unless the client doesn't want them.
            tokio::select! {
                () = connection.idle() => {}
                () = tokio::time::sleep(options.linger) => {}
                _ = &mut write_ended => {}
            }
            if !connection.is_idle() {
                tracing::warn!("the input has ended; requests that are still open are cancelled");
            }
            drop(connection);
            // With the connection its queue ends, and the writer with it.
            tokio::time::timeout(options.linger, write_ended).await.ok();
            unless_gone(ended.unwrap_or(Ok(())))
        }
        ended = &mut write_ended => unless_gone(ended.unwrap_or(Ok(()))),
        () = server.stopping().cancelled() => Ok(()),
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
    connection: Arc<Connection>,
    runtime: Handle,
    max_message: usize,
    places: Arc<Semaphore>,
}

impl Reader {
    /// Reads until the input ends or nobody wants answers any more.
    fn run(self, mut input: impl Read) -> io::Result<()> {
        // Connections start tasks of their own.
        let _runtime = self.runtime.enter();
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
            if buffer.len() > self.max_message {
                if !std::mem::replace(&mut skipping, true) {
                    self.answer(self.too_long())?;
                }
                buffer.clear();
            }
        }
    }

    fn line(&self, line: &[u8]) -> io::Result<()> {
        let line = line.trim_ascii();
        if line.is_empty() {
            return Ok(());
        }
        match self.connection.receive(line) {
            Reply::Ready(answer) => self.answer(answer),
            Reply::Pending(mut answer) => {
                // Begun here, the script starts while the runtime is still waking up.
                if let Some(answer) = (&mut answer).now_or_never() {
                    return answer.map_or(Ok(()), |answer| self.answer(answer));
                }
                let outbox = self.connection.outbox().clone();
                let place = self.place();
                self.runtime.spawn(async move {
                    if let Some(answer) = answer.await {
                        // A closed outbox means the client is gone, and nobody misses the answer.
                        outbox.send(answer).await.ok();
                    }
                    drop(place);
                });
                Ok(())
            }
            Reply::Nothing => Ok(()),
        }
    }

    /// A place for an answer that is still to come. There are a few more of them than requests may be
    /// open, so only answers that nobody fetches make this wait.
    fn place(&self) -> Option<OwnedSemaphorePermit> {
        let places = Arc::clone(&self.places);
        match places.clone().try_acquire_owned() {
            Ok(place) => Some(place),
            Err(_) => self.runtime.block_on(places.acquire_owned()).ok(),
        }
    }

    /// Waits for room: a client that doesn't read its answers is not read from either.
    fn answer(&self, answer: Bytes) -> io::Result<()> {
        self.connection
            .outbox()
            .blocking_send(answer)
            .map_err(|_| io::ErrorKind::BrokenPipe.into())
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
fn read_some(input: &mut impl Read, buffer: &mut Vec<u8>) -> io::Result<usize> {
    let filled = buffer.len();
    buffer.resize(filled + CHUNK, 0);
    let read = loop {
        match input.read(&mut buffer[filled..]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => break read,
        }
    };
    buffer.truncate(filled + read.as_ref().copied().unwrap_or(0));
    read
}

/// Writes messages as they come, all that are waiting in one go.
fn write_all(mut messages: mpsc::Receiver<Bytes>, mut output: impl Write) -> io::Result<()> {
    let mut waiting = Vec::new();
    let mut lines = Vec::with_capacity(CHUNK);
    while messages.blocking_recv_many(&mut waiting, 256) > 0 {
        for message in waiting.drain(..) {
            lines.extend_from_slice(&message);
            lines.push(b'\n');
            if lines.len() >= CHUNK {
                output.write_all(&lines)?;
                lines.clear();
            }
        }
        output.write_all(&lines)?;
        output.flush()?;
        lines.clear();
    }
    Ok(())
}

/// That the client has closed its end is the ordinary way for a conversation to end.
fn unless_gone(ended: io::Result<()>) -> Result<(), Error> {
    match ended {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        ended => ended.map_err(Error::Transport),
    }
}
