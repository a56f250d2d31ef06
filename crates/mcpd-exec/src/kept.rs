//! The beginning of a long output stream on disk. It is written beside the async workers, one piece at a time: a disk
//! that is slow slows the process, and takes no memory.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::mem;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::{JoinHandle, spawn_blocking};

use crate::capture::without_cut_end;

/// The beginning of an output stream, in a file that has no name: it is gone with the last clone, or with this process.
#[derive(Debug, Clone)]
pub struct Kept {
    file: Arc<Mutex<File>>,
    size: u64,
    omitted: u64,
}

impl Kept {
    /// How many bytes there are.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// How many bytes of the stream came after these.
    pub fn omitted(&self) -> u64 {
        self.omitted
    }

    /// The bytes, without a character at the end that lacks its last ones. Reads from disk, so it is not for an async
    /// worker.
    ///
    /// # Errors
    ///
    /// The file can't be read.
    pub fn read(&self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        // The position is that of all clones.
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.rewind()?;
        file.read_to_end(&mut bytes)?;
        if self.omitted > 0 {
            bytes.truncate(without_cut_end(&bytes).len());
        }
        Ok(bytes)
    }
}

/// The same file.
impl PartialEq for Kept {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.file, &other.file)
    }
}

impl Eq for Kept {}

/// A [`Kept`] in the making.
#[derive(Debug)]
pub(crate) struct Keeping {
    directory: Arc<Path>,
    limit: u64,
    size: u64,
    state: State,
}

#[derive(Debug)]
enum State {
    /// There is no file yet.
    Empty,
    /// All there is has been written.
    Written(File),
    Writing(JoinHandle<io::Result<File>>),
    /// The disk is full, or there is none.
    Failed,
}

impl Keeping {
    /// Keeps `limit` bytes in `directory`. Makes no file before there is something to write.
    pub(crate) fn new(directory: &Arc<Path>, limit: u64) -> Self {
        Self {
            directory: Arc::clone(directory),
            limit,
            size: 0,
            state: State::Empty,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.size == 0
    }

    pub(crate) fn is_writing(&self) -> bool {
        matches!(self.state, State::Writing(_))
    }

    /// Begins to write these pieces, as far as there is room. What was begun before must be [`written`](Self::written).
    pub(crate) fn write(&mut self, pieces: &[&[u8]]) {
        let room = self.limit - self.size;
        if room == 0 || pieces.iter().all(|piece| piece.is_empty()) {
            return;
        }
        let file = match mem::replace(&mut self.state, State::Failed) {
            State::Empty => None,
            State::Written(file) => Some(file),
            State::Writing(_) | State::Failed => return,
        };
        let mut bytes = pieces.concat();
        bytes.truncate(usize::try_from(room).unwrap_or(usize::MAX));
        self.size += bytes.len() as u64;
        let directory = Arc::clone(&self.directory);
        self.state = State::Writing(spawn_blocking(move || {
            let mut file = match file {
                Some(file) => file,
                None => tempfile::tempfile_in(directory)?,
            };
            file.write_all(&bytes)?;
            Ok(file)
        }));
    }

    /// Waits until everything is written. Cancel safe.
    pub(crate) async fn written(&mut self) {
        if let State::Writing(writing) = &mut self.state {
            self.state = match writing.await {
                Ok(Ok(file)) => State::Written(file),
                _ => State::Failed,
            };
        }
    }

    /// What there is of a stream of this length. `None` if nothing was written, or not everything could be.
    pub(crate) fn finish(self, total_bytes: u64) -> Option<Kept> {
        match self.state {
            State::Written(file) => Some(Kept {
                file: Arc::new(Mutex::new(file)),
                size: self.size,
                omitted: total_bytes - self.size,
            }),
            _ => None,
        }
    }
}
