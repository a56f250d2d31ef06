//! Our ends of the pipes of a process: one writer and two readers that never wait for each other.

use std::path::Path;
use std::sync::Arc;
use std::{io, mem};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::capture::{Capture, Captured};
use crate::limits::Limits;
use crate::line::{Lines, OnLine, Stream};
use crate::os::{self, Output, Reader, Writer};
use crate::outcome::StdinReport;
use crate::spawner::Input;
use crate::spill::{SpillFile, SpillWriter};
use crate::terminal::TerminalCapture;

/// Maximum size of a pipe, in bytes. A user may have only some 64 MiB of them.
const MAX_PIPE_SIZE: usize = 256 * 1024;

/// Writer of the standard input.
#[derive(Debug)]
pub(crate) struct InputWriter {
    pipe: Option<Writer>,
    rest: bytes::Bytes,
    report: StdinReport,
}

impl InputWriter {
    /// Number of bytes left to write from which on a larger pipe is worth a system call.
    const LONG_REST: usize = 64 * 1024;

    pub(crate) fn new(input: Input) -> io::Result<Self> {
        let pipe = input.pipe.map(os::writer).transpose()?;
        // The thread that started the process has filled the pipe as far as it goes by itself.
        if let Some(pipe) = &pipe
            && input.rest.len() >= Self::LONG_REST
        {
            os::widen(pipe, MAX_PIPE_SIZE);
        }
        Ok(Self {
            pipe,
            rest: input.rest,
            report: input.report,
        })
    }

    /// Returns whether input is left to write and the other end is open.
    pub(crate) fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    /// Writes a part, and closes the pipe after the last one. Cancel safe.
    pub(crate) async fn write(&mut self) {
        let Some(pipe) = &mut self.pipe else { return };
        match pipe.write(&self.rest).await {
            Ok(written) if written > 0 => {
                self.report.written += written as u64;
                self.rest = self.rest.split_off(written);
                if self.rest.is_empty() {
                    self.pipe = None;
                }
            }
            // A process need not read its input.
            _ => {
                self.report.closed_early = true;
                self.pipe = None;
            }
        }
    }

    pub(crate) fn report(&self) -> StdinReport {
        StdinReport {
            closed_early: self.report.closed_early || self.is_open(),
            ..self.report
        }
    }
}

/// Reader of one output stream.
#[derive(Debug)]
pub(crate) struct OutputReader {
    pipe: Option<Reader>,
    buffer: Vec<u8>,
    /// The last read filled the buffer, so more is likely to follow.
    flooded: bool,
    capture: Capture,
    terminal: TerminalCapture,
    /// Spill file for what exceeds the capture, if one is wanted.
    spill: Option<SpillWriter>,
    lines: Lines,
}

impl OutputReader {
    /// Most processes write a line or two. For the others the buffer grows, and then the pipe
    /// with it.
    const INITIAL_BUFFER: usize = 4 * 1024;
    const MAX_BUFFER: usize = MAX_PIPE_SIZE;

    pub(crate) fn new(
        stream: Stream,
        output: Output,
        limits: &Limits,
        temporary: &Arc<Path>,
    ) -> io::Result<Self> {
        let spill = (limits.keep > 0).then(|| SpillWriter::new(temporary, limits.keep));
        let mut buffer = output.read;
        if output.pipe.is_some() {
            buffer.reserve(Self::INITIAL_BUFFER);
        }
        Ok(Self {
            pipe: output.pipe.map(os::reader).transpose()?,
            buffer,
            flooded: false,
            capture: Capture::new(limits),
            terminal: TerminalCapture::default(),
            spill,
            lines: Lines::new(stream, limits.line),
        })
    }

    /// Returns whether the pipe is open, or a write to the spill file is under way.
    pub(crate) fn is_open(&self) -> bool {
        self.pipe.is_some() || self.is_spilling()
    }

    /// Returns whether a write to the spill file is under way.
    pub(crate) fn is_spilling(&self) -> bool {
        self.spill.as_ref().is_some_and(SpillWriter::is_writing)
    }

    pub(crate) fn total_bytes(&self) -> u64 {
        self.capture.total_bytes()
    }

    /// Reads a part into the buffer, for [`take`](Self::take). Cancel safe.
    pub(crate) async fn read(&mut self) {
        if let Some(spill) = &mut self.spill
            && spill.is_writing()
        {
            // The end of a write is progress too, even if there is nothing to read. Reading only
            // after it is the backpressure of a slow disk.
            return spill.flush().await;
        }
        let Some(pipe) = &mut self.pipe else { return };
        if mem::take(&mut self.flooded) {
            // Yield first, or a flood would keep this worker busy for megabytes on end.
            tokio::task::yield_now().await;
        }
        if !matches!(pipe.read_buf(&mut self.buffer).await, Ok(1..)) {
            self.pipe = None;
        }
    }

    /// Captures what was read and delivers its lines.
    pub(crate) fn take(&mut self, on_line: Option<&mut OnLine<'_>>) {
        if self.buffer.is_empty() {
            return;
        }
        self.write_spill();
        self.terminal.push(&self.buffer, &self.capture);
        self.capture.push(&self.buffer);
        if let Some(on_line) = on_line {
            self.lines.push(&self.buffer, on_line);
        }
        self.flooded = self.pipe.is_some() && self.buffer.len() == self.buffer.capacity();
        self.buffer.clear();
        if self.flooded && self.buffer.capacity() < Self::MAX_BUFFER {
            self.buffer.reserve(4 * self.buffer.capacity());
            if let Some(pipe) = &self.pipe {
                os::widen(pipe, self.buffer.capacity());
            }
        }
    }

    /// Reads and takes what the pipe holds now, without waiting for more. It stops after as much
    /// as a pipe holds, since writers may go on.
    pub(crate) fn take_rest(&mut self, on_line: Option<&mut OnLine<'_>>) {
        while let Some(pipe) = &self.pipe
            && self.buffer.len() < Self::MAX_BUFFER
        {
            self.buffer.reserve(Self::INITIAL_BUFFER);
            match os::read_at_once(pipe, &mut self.buffer) {
                Ok(1..) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Ok(0) | Err(_) => self.pipe = None,
            }
        }
        self.take(on_line);
    }

    /// Abandons the spill file if the disk is still busy with it. Returns whether it was.
    pub(crate) fn abandon_spill(&mut self) -> bool {
        self.spill.take_if(|spill| spill.is_writing()).is_some()
    }

    /// Returns the pipe if it is still open.
    pub(crate) fn into_pipe(self) -> Option<Reader> {
        self.pipe
    }

    /// Writes what was read to the spill file, once the stream exceeds the capture.
    fn write_spill(&mut self) {
        let Some(spill) = &mut self.spill else {
            return;
        };
        if !spill.is_empty() {
            spill.write(&[&self.buffer]);
        } else if self.capture.is_exceeded_by(self.buffer.len()) {
            let [head, tail, rest] = self.capture.pieces();
            spill.write(&[head, tail, rest, &self.buffer]);
        }
    }

    pub(crate) fn finish(mut self, on_line: Option<&mut OnLine<'_>>) -> Captured {
        if let Some(on_line) = on_line {
            self.lines.finish(on_line);
        }
        let total_bytes = self.total_bytes();
        let file = self.spill.and_then(|spill| spill.finish(total_bytes));
        Captured {
            kept_bytes: file.as_ref().map_or(0, SpillFile::size),
            file,
            terminal: self.terminal.finish(&self.capture),
            ..self.capture.finish()
        }
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use rustix::pipe::{fcntl_getpipe_size, pipe};

    use super::*;

    /// Checks the size of the pipe for an input of which this many bytes are left to write.
    #[track_caller]
    fn check_pipe_size(rest: usize, expected: usize) {
        let (reader, writer) = pipe().unwrap();
        let input = Input {
            pipe: Some(writer),
            rest: vec![0; rest].into(),
            report: StdinReport::default(),
        };
        let _writer = InputWriter::new(input).unwrap();
        assert_eq!(fcntl_getpipe_size(&reader).unwrap(), expected);
    }

    #[tokio::test]
    async fn only_pipe_of_long_input_is_widened() {
        let (reader, _writer) = pipe().unwrap();
        check_pipe_size(1, fcntl_getpipe_size(&reader).unwrap());
        check_pipe_size(InputWriter::LONG_REST, MAX_PIPE_SIZE);
    }
}
