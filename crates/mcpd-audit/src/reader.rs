//! Reader of an audit log: iterates over the lines of all its files, and verifies the hash chain.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Take};
use std::path::{Path, PathBuf};

use same_file::Handle;
use serde::{Serialize, Serializer};

use crate::chain::{ChainPosition, Link, MAX_LINE_LENGTH};
use crate::files::readable;

/// Maximum number of reported faults.
const MAX_FAULTS: usize = 100;

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
    path: PathBuf,
    handle: Handle,
    bytes: BufReader<Take<File>>,
    /// Offset of the next line.
    offset: u64,
    /// Number of lines read.
    lines: u64,
}

/// One line of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Line {
    /// File that contains the line.
    pub file: PathBuf,
    /// Line number in the file, from 1.
    pub number: u64,
    /// Offset of the line in the file, in bytes.
    pub offset: u64,
    /// Text, with bytes that are not UTF-8 replaced, and without those beyond the first MiB.
    pub text: String,
    /// Nothing in the text was replaced or omitted.
    pub is_verbatim: bool,
    /// Length in bytes.
    pub length: u64,
    /// The line is complete. Only the last line of a log may be torn.
    pub is_whole: bool,
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

    /// Looks for lines written since; the iterator continues with them.
    ///
    /// # Errors
    ///
    /// The log is gone, or cannot be read.
    pub fn refresh(&mut self) -> io::Result<()> {
        let files = readable(&self.log)?;
        let sources = files
            .into_iter()
            .map(|(path, file)| LogFile::new(path, file));
        let mut sources: VecDeque<LogFile> = sources.collect::<io::Result<_>>()?;
        if let Some(read) = self.sources.pop_back()
            && let Some(known) = sources
                .iter()
                .position(|source| source.handle == read.handle)
        {
            sources.drain(..known);
            sources[0].seek(read.offset)?;
            sources[0].lines = read.lines;
        }
        self.sources = sources;
        Ok(())
    }
}

impl LogFile {
    fn new(path: PathBuf, file: Take<File>) -> io::Result<Self> {
        Ok(Self {
            path,
            handle: Handle::from_file(file.get_ref().try_clone()?)?,
            bytes: BufReader::new(file),
            offset: 0,
            lines: 0,
        })
    }

    /// Skips the beginning of a file of which nothing was read yet.
    fn seek(&mut self, offset: u64) -> io::Result<()> {
        let file = self.bytes.get_mut();
        file.get_mut().seek(SeekFrom::Start(offset))?;
        file.set_limit(file.limit().saturating_sub(offset));
        self.offset = offset;
        Ok(())
    }

    fn line(&mut self) -> io::Result<Option<Line>> {
        let offset = self.offset;
        let (bytes, mut is_whole) = self.part()?;
        let mut length = bytes.len() as u64;
        let mut last = length;
        // The rest of a line that is too long for a record is skipped.
        while !is_whole && last > 0 {
            let part;
            (part, is_whole) = self.part()?;
            last = part.len() as u64;
            length += last;
        }
        if length == 0 && !is_whole {
            return Ok(None);
        }
        if is_whole {
            self.offset += length + 1;
            self.lines += 1;
        }
        let text = String::from_utf8_lossy(&bytes);
        Ok(Some(Line {
            file: self.path.clone(),
            number: self.lines + u64::from(!is_whole),
            offset,
            is_verbatim: matches!(text, Cow::Borrowed(_)) && length == bytes.len() as u64,
            text: text.into_owned(),
            length,
            is_whole,
        }))
    }

    /// Reads the next part of a line, no longer than a record may be. Returns whether the line
    /// ends there.
    fn part(&mut self) -> io::Result<(Vec<u8>, bool)> {
        let mut bytes = Vec::new();
        let mut bounded = (&mut self.bytes).take(MAX_LINE_LENGTH);
        bounded.read_until(b'\n', &mut bytes)?;
        let is_end = bytes.pop_if(|byte| *byte == b'\n').is_some();
        Ok((bytes, is_end))
    }
}

impl Iterator for Records {
    type Item = io::Result<Line>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.sources.front_mut()?.line() {
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
    for (path, file) in files.filter(|(_, file)| file.limit() > offset) {
        let mut file = LogFile::new(path, file)?;
        file.seek(offset)?;
        let line = file.line()?.filter(|line| line.is_whole);
        if let Some(line) = line
            && let Some(found) = line.record()["hash"].as_str()
            && found.starts_with(hash)
        {
            return Ok(Some(line.text));
        }
    }
    Ok(None)
}

/// Result of verifying a log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Verified {
    /// Number of records.
    pub records: u64,
    /// Sequence number of the first record; earlier ones were in files that are no longer kept.
    pub first: u64,
    /// Sequence number of the last record.
    pub last: u64,
    /// Hash of the last record. A copy kept elsewhere can later prove that the log up to it is
    /// unchanged.
    pub hash: String,
    /// Detected faults, 100 at most.
    pub faults: Vec<LogFault>,
}

/// A line for each fault, and then what there is.
impl fmt::Display for Verified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for fault in &self.faults {
            writeln!(f, "{}:{}: {}", fault.file.display(), fault.line, fault.kind)?;
        }
        let Self {
            records,
            first,
            last,
            hash,
            ..
        } = self;
        match records {
            0 => writeln!(f, "no records"),
            _ => writeln!(
                f,
                "{records} records, {first} to {last}\nhash of the last record: {hash}"
            ),
        }
    }
}

/// Fault in a log, with its location.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LogFault {
    /// File.
    pub file: PathBuf,
    /// Line number.
    pub line: u64,
    /// Kind of the fault.
    #[serde(rename = "fault")]
    pub kind: FaultKind,
}

/// Kind of fault in a line of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultKind {
    /// The line is the beginning of a record, whose writer was killed. The next writer removes
    /// it.
    #[non_exhaustive]
    Torn {
        /// Length of the fragment in bytes.
        bytes: u64,
    },
    /// The line is not a record.
    Unreadable,
    /// The record was changed.
    Changed,
    /// Records before this line are missing.
    #[non_exhaustive]
    Missing {
        /// Sequence number of the first missing record.
        from: u64,
        /// Sequence number of the last.
        to: u64,
    },
    /// The record does not belong here.
    #[non_exhaustive]
    Misplaced {
        /// Sequence number of the record.
        seq: u64,
    },
    /// The record was written after a different record than the one before it now.
    Unlinked,
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Torn { bytes } => {
                write!(f, "the record is incomplete: it ends after {bytes} bytes")
            }
            Self::Unreadable => f.write_str("not a record"),
            Self::Changed => f.write_str("the record was changed"),
            Self::Missing { from, to } if from == to => write!(f, "record {from} is missing"),
            Self::Missing { from, to } => write!(f, "records {from} to {to} are missing"),
            Self::Misplaced { seq } => write!(f, "record {seq} does not belong here"),
            Self::Unlinked => f.write_str("the record before this one was replaced"),
        }
    }
}

/// Serializes as the text of the fault.
impl Serialize for FaultKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Verifies every record of the log in `file`, and that none is missing, from the oldest file
/// that is kept.
///
/// # Errors
///
/// The log does not exist, or cannot be read.
pub fn verify(file: &Path) -> io::Result<Verified> {
    let mut verified = Verified::default();
    let mut before = None;
    for line in Records::open(file)? {
        let line = line?;
        // The altered or shortened text could pass for a valid record.
        let place = ChainPosition::read(&line.text).filter(|_| line.is_verbatim);
        let kind = match place {
            _ if !line.is_whole => Some(FaultKind::Torn { bytes: line.length }),
            None => {
                before = None;
                Some(FaultKind::Unreadable)
            }
            Some(place) => {
                verified.count(&place);
                fault(place, &mut before)
            }
        };
        if let Some(kind) = kind
            && verified.faults.len() < MAX_FAULTS
        {
            verified.faults.push(LogFault {
                file: line.file,
                line: line.number,
                kind,
            });
        }
    }
    Ok(verified)
}

impl Verified {
    fn count(&mut self, place: &ChainPosition) {
        if self.records == 0 {
            self.first = place.seq;
        }
        self.records += 1;
        self.last = place.seq;
        self.hash.clone_from(&place.hash);
    }
}

/// Returns the fault of a record that comes after `before`, and makes it the new `before`.
fn fault(place: ChainPosition, before: &mut Option<Link>) -> Option<FaultKind> {
    let expected = match before.take() {
        Some(before) => before,
        None if place.seq <= 1 => Link::default(),
        // The record that this one followed is not kept any more.
        None => Link {
            seq: place.seq - 1,
            hash: place.prev.clone(),
        },
    };
    let next = expected.seq + 1;
    let kind = if !place.is_intact {
        Some(FaultKind::Changed)
    } else if place.follows(&expected) {
        None
    } else if place.seq > next {
        Some(FaultKind::Missing {
            from: next,
            to: place.seq - 1,
        })
    } else if place.seq < next {
        Some(FaultKind::Misplaced { seq: place.seq })
    } else {
        Some(FaultKind::Unlinked)
    };
    // In a changed record, the sequence number may be changed as well.
    let seq = if place.is_intact { place.seq } else { next };
    *before = Some(Link {
        seq,
        hash: place.hash,
    });
    kind
}

#[cfg(test)]
mod tests;
