//! Lines of standard output, written on a thread of their own: lines never interleave, each is
//! flushed, and a reader that stops reading holds up the senders (backpressure), nothing else.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use mcpd_protocol::jsonrpc::{self, ErrorObject, RequestId};
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// Maximum number of lines that wait for the thread. Each may be a large message.
const MAX_QUEUED_LINES: usize = 2;

/// Queue to the thread.
#[derive(Debug, Clone)]
pub(crate) struct Output {
    lines: Sender<Option<Vec<u8>>>,
    has_answered: Arc<AtomicBool>,
}

/// End of the thread.
#[derive(Debug)]
pub(crate) struct Writer {
    /// Cancelled when the reader of the output is gone.
    pub(crate) closed: CancellationToken,
    done: oneshot::Receiver<()>,
}

impl Output {
    /// Starts the thread.
    pub(crate) fn start(output: impl Write + Send + 'static) -> io::Result<(Self, Writer)> {
        let (lines, received) = mpsc::channel(MAX_QUEUED_LINES);
        let (finished, done) = oneshot::channel();
        let closed = CancellationToken::new();
        let close = closed.clone();
        let thread = std::thread::Builder::new().name("mcpd-output".to_owned());
        thread.spawn(move || {
            // Ends with an error if the reader has closed the pipe.
            if write_lines(output, received).is_err() {
                close.cancel();
            }
            finished.send(()).ok();
        })?;
        let output = Self {
            lines,
            has_answered: Arc::default(),
        };
        Ok((output, Writer { closed, done }))
    }

    /// Writes a message as one line. Its line breaks become spaces.
    pub(crate) async fn send(&self, mut message: Vec<u8>) {
        jsonrpc::one_line(&mut message);
        message.push(b'\n');
        self.has_answered.store(true, Relaxed);
        // Without a reader the bridge ends, and with it the sender.
        self.lines.send(Some(message)).await.ok();
    }

    /// Writes an error as the answer to a request.
    pub(crate) async fn send_error(&self, id: Option<&RequestId>, error: &ErrorObject) {
        self.send(jsonrpc::error_response(id, error)).await;
    }

    /// Returns whether anything has been sent.
    pub(crate) fn has_answered(&self) -> bool {
        self.has_answered.load(Relaxed)
    }

    /// Ends the thread after the lines sent so far.
    pub(crate) async fn close(&self, writer: Writer) {
        if self.lines.send(None).await.is_ok() {
            writer.done.await.ok();
        }
    }
}

fn write_lines(mut output: impl Write, mut lines: Receiver<Option<Vec<u8>>>) -> io::Result<()> {
    while let Some(Some(line)) = lines.blocking_recv() {
        output.write_all(&line)?;
        output.flush()?;
    }
    Ok(())
}
