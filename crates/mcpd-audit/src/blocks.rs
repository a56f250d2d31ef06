//! Blocks of lines: the files of a log are read in large pieces, which end where a line ends, and
//! several threads may look at one piece each.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Take};
use std::num::NonZero;
use std::path::Path;
use std::sync::Arc;
use std::{mem, thread};

use memchr::{memchr, memrchr, memrchr_iter};

use crate::chain::MAX_LINE_LENGTH;
use crate::files::readable;

/// Size of a block in bytes; one may be longer by the beginning of a line.
pub(crate) const BLOCK_SIZE: u64 = 2 * 1024 * 1024;

/// Size of the pieces in which the end of a file is read, in bytes.
const END_BLOCK_SIZE: u64 = 64 * 1024;

/// Maximum number of threads: more would wait for memory, and each needs two blocks of it.
const MAX_THREADS: usize = 8;

/// Whole lines of a file; the last block of a file may end within a line.
#[derive(Debug, Default)]
pub(crate) struct Block {
    bytes: Vec<u8>,
    /// Offset of the block in its file.
    offset: u64,
    /// Number of bytes of the first line, behind its maximum length, that were not kept.
    omitted: u64,
}

/// One line in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RawLine<'a> {
    /// Offset of the line in its file, in bytes.
    pub(crate) offset: u64,
    /// The line, without its end and what exceeds the maximum length.
    pub(crate) bytes: &'a [u8],
    /// Length of the whole line in bytes.
    pub(crate) length: u64,
    /// The line has its end.
    pub(crate) is_whole: bool,
}

impl<'a> RawLine<'a> {
    /// Returns the text, with bytes that are not UTF-8 replaced.
    pub(crate) fn text(&self) -> Cow<'a, str> {
        // Several times as fast as the search for what is to be replaced.
        match str::from_utf8(self.bytes) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => String::from_utf8_lossy(self.bytes),
        }
    }

    /// Returns whether the line is longer than a record may be.
    pub(crate) fn is_cut(&self) -> bool {
        self.length > self.bytes.len() as u64
    }
}

impl Block {
    /// Returns the line at `start`, and the start of the next.
    pub(crate) fn line(&self, start: usize) -> Option<(RawLine<'_>, usize)> {
        let rest = &self.bytes[start..];
        let omitted = if start == 0 { self.omitted } else { 0 };
        let end = memchr(b'\n', rest);
        let length = end.unwrap_or(rest.len());
        if length == 0 && end.is_none() {
            return None;
        }
        let maximum = usize::try_from(MAX_LINE_LENGTH).unwrap_or(usize::MAX);
        let line = RawLine {
            offset: self.offset + start as u64 + self.omitted - omitted,
            bytes: &rest[..length.min(maximum)],
            length: length as u64 + omitted,
            is_whole: end.is_some(),
        };
        Some((line, start + length + usize::from(line.is_whole)))
    }

    pub(crate) fn lines(&self) -> impl Iterator<Item = RawLine<'_>> {
        let mut start = 0;
        std::iter::from_fn(move || {
            let (line, next) = self.line(start)?;
            start = next;
            Some(line)
        })
    }
}

/// Reader of one file, block by block.
#[derive(Debug)]
pub(crate) struct BlockReader {
    file: Take<File>,
    /// Beginning of a line, read with the block before.
    rest: Vec<u8>,
    /// Offset of the next block.
    offset: u64,
    block_size: u64,
}

impl BlockReader {
    pub(crate) fn new(file: Take<File>, block_size: u64) -> Self {
        Self {
            file,
            rest: Vec::new(),
            offset: 0,
            block_size,
        }
    }

    /// Skips everything before `offset`; nothing has been read yet.
    pub(crate) fn skip_to(&mut self, offset: u64) -> io::Result<()> {
        self.file.get_mut().seek(SeekFrom::Start(offset))?;
        self.offset = offset;
        self.file
            .set_limit(self.file.limit().saturating_sub(offset));
        Ok(())
    }

    /// Reads the next block; `None` at the end of the file.
    pub(crate) fn next_block(&mut self) -> io::Result<Option<Block>> {
        let mut bytes = mem::take(&mut self.rest);
        let mut omitted = 0;
        loop {
            let known = bytes.len();
            let wanted = self.file.limit().min(self.block_size);
            bytes.reserve_exact(usize::try_from(wanted).unwrap_or_default());
            let read = self.file.by_ref().take(wanted).read_to_end(&mut bytes)?;
            if let Some(newline) = memrchr(b'\n', &bytes[known..]) {
                self.rest = bytes.split_off(known + newline + 1);
            } else if read > 0 {
                // A record is far shorter: of such a line no more is kept than is shown.
                let excess = (bytes.len() as u64).saturating_sub(MAX_LINE_LENGTH);
                omitted += excess;
                bytes.truncate(bytes.len() - usize::try_from(excess).unwrap_or_default());
                continue;
            }
            let block = Block {
                offset: self.offset,
                bytes,
                omitted,
            };
            self.offset += block.bytes.len() as u64 + omitted;
            return Ok((!block.bytes.is_empty()).then_some(block));
        }
    }

    /// Finds the last lines, at most `count` of them. Returns where they begin, and their number.
    /// Only the end of the file is read.
    pub(crate) fn find_last_lines(&self, count: usize) -> io::Result<(u64, usize)> {
        let length = self.file.limit();
        let (mut end, mut bytes, mut found) = (length, Vec::new(), 0);
        while end > 0 {
            let start = end.saturating_sub(self.block_size.min(END_BLOCK_SIZE));
            let mut file = self.file.get_ref();
            file.seek(SeekFrom::Start(start))?;
            bytes.clear();
            file.take(end - start).read_to_end(&mut bytes)?;
            for newline in memrchr_iter(b'\n', &bytes) {
                let next = start + newline as u64 + 1;
                // The last one ends a line, and begins none.
                found += usize::from(next < length);
                if found == count {
                    return Ok((next, found));
                }
            }
            end = start;
        }
        Ok((0, found + usize::from(length > 0)))
    }
}

/// Blocks of all files of a log, the oldest first.
#[derive(Debug)]
pub(crate) struct LogBlocks {
    files: VecDeque<(Arc<Path>, BlockReader)>,
    threads: usize,
}

/// A block, and the file that contains it.
pub(crate) type FileBlock = (Arc<Path>, Block);

impl LogBlocks {
    /// Opens the log in `file`, for as many threads as there are processors.
    pub(crate) fn open(file: &Path) -> io::Result<Self> {
        let threads = thread::available_parallelism().map_or(1, NonZero::get);
        Self::open_with(file, BLOCK_SIZE, threads.min(MAX_THREADS))
    }

    pub(crate) fn open_with(file: &Path, block_size: u64, threads: usize) -> io::Result<Self> {
        let files = readable(file)?.into_iter();
        let files = files.map(|(path, file)| (path.into(), BlockReader::new(file, block_size)));
        Ok(Self {
            files: files.collect(),
            threads,
        })
    }

    /// Reads the next blocks, one for each thread; none at the end of the log.
    pub(crate) fn next_batch(&mut self) -> io::Result<Vec<FileBlock>> {
        let mut batch = Vec::with_capacity(self.threads);
        while batch.len() < self.threads
            && let Some((path, file)) = self.files.front_mut()
        {
            match file.next_block()? {
                Some(block) => batch.push((Arc::clone(path), block)),
                None => drop(self.files.pop_front()),
            }
        }
        Ok(batch)
    }
}

/// Maps each block in a thread of its own. This thread does what there is to do `meanwhile`.
pub(crate) fn map_blocks<'b, T: Send, R>(
    blocks: &'b [FileBlock],
    map: impl Fn(&'b Block) -> T + Sync,
    meanwhile: impl FnOnce() -> R,
) -> (Vec<T>, R) {
    let map = &map;
    thread::scope(|scope| {
        let spawn = |(_, block): &'b FileBlock| scope.spawn(move || map(block));
        let threads: Vec<_> = blocks.iter().map(spawn).collect();
        let done = meanwhile();
        let results = threads.into_iter().map(|thread| match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        (results.collect(), done)
    })
}
