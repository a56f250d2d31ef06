//! Reader of an audit log: iterates over the lines of all its files.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Take};
use std::path::{Path, PathBuf};

use same_file::Handle;

use crate::blocks::{Block, BlockReader, RawLine};
use crate::files::readable;

/// Size of the pieces that are read at once, in bytes. A reader may be kept for long.
const BLOCK_SIZE: u64 = 64 * 1024;

/// Lines of a log, the oldest first.
#[derive(Debug)]
pub struct Records {
    log: PathBuf,
    /// Files not read to their ends, and the newest.
    sources: VecDeque<LogFile>,
}

/// One file of a log.
#[derive(Debug)]
struct LogFile {
    handle: Handle,
    blocks: BlockReader,
    block: Block,
    /// Start of the next line in the block.
    start: usize,
    /// Offset of the next line in the file.
    offset: u64,
}

/// One line of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Line {
    /// Offset of the line in its file, in bytes.
    pub offset: u64,
    /// Text, with bytes that are not UTF-8 replaced, and without those beyond the first MiB.
    pub text: String,
    /// The line is complete. Only the last line of a log may be torn.
    pub is_whole: bool,
}

impl Line {
    pub(crate) fn new(line: RawLine<'_>) -> Self {
        Self {
            offset: line.offset,
            text: line.text().into_owned(),
            is_whole: line.is_whole,
        }
    }
}

impl Records {
    /// Opens the log in `file`, with the older files beside it.
    ///
    /// # Errors
    ///
    /// The log does not exist, or cannot be read.
    pub fn open(file: &Path) -> io::Result<Self> {
        let mut records = Self {
            log: file.to_owned(),
            sources: VecDeque::new(),
        };
        records.refresh()?;
        Ok(records)
    }

    /// Opens the log in `file` at its last lines, `count` at most. What is before them is not
    /// read, however long the log is.
    ///
    /// # Errors
    ///
    /// The log does not exist, or cannot be read.
    pub fn open_last(file: &Path, count: usize) -> io::Result<Self> {
        let mut records = Self::open(file)?;
        let mut wanted = count.max(1);
        let mut known = records.sources.len();
        while known > 0 && wanted > 0 {
            known -= 1;
            let source = &mut records.sources[known];
            let (start, found) = source.blocks.find_last_lines(wanted)?;
            source.skip_to(start)?;
            wanted -= found;
        }
        records.sources.drain(..known);
        if count == 0 {
            records.by_ref().try_for_each(|line| line.map(drop))?;
        }
        Ok(records)
    }

    /// Looks for lines written since; the iterator continues with them.
    ///
    /// # Errors
    ///
    /// The log is gone, or cannot be read.
    pub fn refresh(&mut self) -> io::Result<()> {
        let files = readable(&self.log)?;
        let sources = files.into_iter().map(|(_, file)| LogFile::new(file));
        let mut sources: VecDeque<LogFile> = sources.collect::<io::Result<_>>()?;
        if let Some(read) = self.sources.pop_back()
            && let Some(known) = sources
                .iter()
                .position(|source| source.handle == read.handle)
        {
            sources.drain(..known);
            sources[0].skip_to(read.offset)?;
        }
        self.sources = sources;
        Ok(())
    }
}

impl LogFile {
    fn new(file: Take<File>) -> io::Result<Self> {
        Ok(Self {
            handle: Handle::from_file(file.get_ref().try_clone()?)?,
            blocks: BlockReader::new(file, BLOCK_SIZE),
            block: Block::default(),
            start: 0,
            offset: 0,
        })
    }

    /// Skips everything before `offset`; nothing has been read yet.
    fn skip_to(&mut self, offset: u64) -> io::Result<()> {
        self.offset = offset;
        self.blocks.skip_to(offset)
    }

    fn next_line(&mut self) -> io::Result<Option<Line>> {
        loop {
            if let Some((line, next)) = self.block.line(self.start) {
                self.start = next;
                // A torn line is read again when it has its end.
                self.offset += if line.is_whole { line.length + 1 } else { 0 };
                return Ok(Some(Line::new(line)));
            }
            let next = self.blocks.next_block()?;
            let is_end = next.is_none();
            (self.block, self.start) = (next.unwrap_or_default(), 0);
            if is_end {
                return Ok(None);
            }
        }
    }
}

impl Iterator for Records {
    type Item = io::Result<Line>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.sources.front_mut()?.next_line() {
                Ok(None) if self.sources.len() == 1 => return None,
                Ok(None) => drop(self.sources.pop_front()),
                Ok(Some(line)) => return Some(Ok(line)),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// Finds the record whose hash begins with `hash` at an offset that a [`Line`] of the log in `file`
/// had. Reads one line of each file: a full file keeps its content and gets another name. `None`
/// if the file of the record is no longer kept.
///
/// # Errors
///
/// The log does not exist, or cannot be read.
pub fn find_record(file: &Path, offset: u64, hash: &str) -> io::Result<Option<String>> {
    let files = readable(file)?.into_iter();
    for (_, file) in files.filter(|(_, file)| file.limit() > offset) {
        let mut file = LogFile::new(file)?;
        file.skip_to(offset)?;
        let line = file.next_line()?.filter(|line| line.is_whole);
        if let Some(line) = line
            && let Some(found) = line.record()["hash"].as_str()
            && found.starts_with(hash)
        {
            return Ok(Some(line.text));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests;
