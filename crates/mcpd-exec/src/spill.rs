//! Spill file for the beginning of a long output stream. It is written by blocking tasks beside
//! the async workers, one piece at a time, with backpressure: a slow disk slows the process down
//! and takes no memory.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::mem;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::{JoinHandle, spawn_blocking};

use crate::capture::without_cut_end;
use crate::os;

/// Number of bytes of the longest character.
const MAX_CHAR: u64 = 4;

/// Beginning of an output stream, in a file without a name. It is gone with the last clone, or
/// with this process.
#[derive(Debug, Clone)]
pub struct SpillFile {
    file: Arc<Mutex<File>>,
    size: u64,
    omitted: u64,
}

impl SpillFile {
    /// Number of bytes in the file.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Number of bytes of the stream that follow those in the file.
    pub fn omitted_bytes(&self) -> u64 {
        self.omitted
    }

    /// Reads the bytes, without an incomplete character at the end. It reads from disk, so it
    /// must not be called on an async worker.
    ///
    /// # Errors
    ///
    /// The file can't be read.
    pub fn read(&self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        // All clones share the position in the file.
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.rewind()?;
        file.read_to_end(&mut bytes)?;
        if self.omitted > 0 {
            bytes.truncate(without_cut_end(&bytes).len());
        }
        Ok(bytes)
    }

    /// Reads those of the bytes that are in `range`, with as much memory as they need. It reads
    /// from disk, so it must not be called on an async worker.
    ///
    /// # Errors
    ///
    /// The file can't be read.
    pub fn read_range(&self, range: Range<u64>) -> io::Result<Vec<u8>> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let mut read = |range: Range<u64>| {
            let mut bytes = Vec::new();
            file.seek(SeekFrom::Start(range.start))?;
            let length = range.end.saturating_sub(range.start);
            (&*file).take(length).read_to_end(&mut bytes)?;
            io::Result::Ok(bytes)
        };
        let mut end = self.size;
        if self.omitted > 0 {
            // As much as an incomplete character and one before it can have.
            let last = read(end.saturating_sub(2 * MAX_CHAR)..end)?;
            end -= (last.len() - without_cut_end(&last).len()) as u64;
        }
        read(range.start..range.end.min(end))
    }
}

/// Two are equal if they share a file.
impl PartialEq for SpillFile {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.file, &other.file)
    }
}

impl Eq for SpillFile {}

/// A [`SpillFile`] that is being written.
#[derive(Debug)]
pub(crate) struct SpillWriter {
    directory: Arc<Path>,
    limit: u64,
    size: u64,
    state: SpillState,
}

#[derive(Debug)]
enum SpillState {
    /// No file was made yet.
    Empty,
    /// Everything so far is in the file.
    Written(File),
    Writing(JoinHandle<io::Result<File>>),
    /// The disk is full, or no file could be made.
    Failed,
}

impl SpillWriter {
    /// Prepares to keep `limit` bytes in `directory`. The file is made with the first write.
    pub(crate) fn new(directory: &Arc<Path>, limit: u64) -> Self {
        Self {
            directory: Arc::clone(directory),
            limit,
            size: 0,
            state: SpillState::Empty,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.size == 0
    }

    pub(crate) fn is_writing(&self) -> bool {
        matches!(self.state, SpillState::Writing(_))
    }

    /// Begins to write these pieces, up to the limit. A write that was begun before must be
    /// [flushed](Self::flush).
    pub(crate) fn write(&mut self, pieces: &[&[u8]]) {
        if matches!(self.state, SpillState::Empty) {
            // Exceeding the limit of the system by a byte would raise SIGXFSZ in this process.
            self.limit = self.limit.min(os::file_size_limit());
        }
        let room = self.limit - self.size;
        if room == 0 || pieces.iter().all(|piece| piece.is_empty()) {
            return;
        }
        let file = match mem::replace(&mut self.state, SpillState::Failed) {
            SpillState::Empty => None,
            SpillState::Written(file) => Some(file),
            SpillState::Writing(_) | SpillState::Failed => return,
        };
        let mut bytes = pieces.concat();
        bytes.truncate(usize::try_from(room).unwrap_or(usize::MAX));
        self.size += bytes.len() as u64;
        let directory = Arc::clone(&self.directory);
        self.state = SpillState::Writing(spawn_blocking(move || {
            let mut file = match file {
                Some(file) => file,
                None => tempfile::tempfile_in(directory)?,
            };
            file.write_all(&bytes)?;
            Ok(file)
        }));
    }

    /// Waits until everything is written. Cancel safe.
    pub(crate) async fn flush(&mut self) {
        if let SpillState::Writing(writing) = &mut self.state {
            self.state = match writing.await {
                Ok(Ok(file)) => SpillState::Written(file),
                _ => SpillState::Failed,
            };
        }
    }

    /// Returns the file of a stream of this length. `None` if nothing was written, or a write
    /// failed.
    pub(crate) fn finish(self, total_bytes: u64) -> Option<SpillFile> {
        match self.state {
            SpillState::Written(file) => Some(SpillFile {
                file: Arc::new(Mutex::new(file)),
                size: self.size,
                omitted: total_bytes - self.size,
            }),
            _ => None,
        }
    }
}
