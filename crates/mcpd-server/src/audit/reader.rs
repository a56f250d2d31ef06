//! Reads an audit log, line by line through all its files, and says whether anything in it is not as it was written.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Take};
use std::path::{Path, PathBuf};

use same_file::Handle;

use super::chain::{Link, MAX_LINE, Place};
use super::files::readable;

/// How many faults are told at most.
const MAX_FAULTS: usize = 100;

/// The lines of a log, the oldest first.
#[derive(Debug)]
pub struct Records {
    log: PathBuf,
    /// Those that are not read to their ends, and the newest.
    sources: VecDeque<Source>,
}

/// One file of a log.
#[derive(Debug)]
struct Source {
    path: PathBuf,
    handle: Handle,
    bytes: BufReader<Take<File>>,
    /// Where the next line begins.
    offset: u64,
    /// How many lines were read.
    lines: u64,
}

/// One line of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Line {
    /// The file it is in.
    pub file: PathBuf,
    /// Its number there, from 1 on.
    pub number: u64,
    /// What it says. What is not UTF-8 is replaced, and what is beyond the first MiB left out.
    pub text: String,
    /// Whether nothing of it was replaced or left out.
    pub is_verbatim: bool,
    /// How many bytes it has.
    pub length: u64,
    /// Whether it is whole. Only the last line of a log may be torn.
    pub is_whole: bool,
}

impl Records {
    /// The log in `file`, with the older files beside it.
    ///
    /// # Errors
    ///
    /// There is none, or it can't be read.
    pub fn open(file: &Path) -> io::Result<Self> {
        let mut records = Self {
            log: file.to_owned(),
            sources: VecDeque::new(),
        };
        records.refresh()?;
        Ok(records)
    }

    /// Looks for what was written since: the iterator goes on with it.
    ///
    /// # Errors
    ///
    /// The log is gone, or can't be read.
    pub fn refresh(&mut self) -> io::Result<()> {
        let files = readable(&self.log)?;
        let sources = files
            .into_iter()
            .map(|(path, file)| Source::new(path, file));
        let mut sources: VecDeque<Source> = sources.collect::<io::Result<_>>()?;
        if let Some(read) = self.sources.pop_back()
            && let Some(known) = sources
                .iter()
                .position(|source| source.handle == read.handle)
        {
            sources.drain(..known);
            sources[0].skip(&read)?;
        }
        self.sources = sources;
        Ok(())
    }
}

impl Source {
    fn new(path: PathBuf, file: Take<File>) -> io::Result<Self> {
        Ok(Self {
            path,
            handle: Handle::from_file(file.get_ref().try_clone()?)?,
            bytes: BufReader::new(file),
            offset: 0,
            lines: 0,
        })
    }

    /// Passes over what has been read of the same file.
    fn skip(&mut self, read: &Self) -> io::Result<()> {
        let file = self.bytes.get_mut();
        file.get_mut().seek(SeekFrom::Start(read.offset))?;
        file.set_limit(file.limit().saturating_sub(read.offset));
        self.offset = read.offset;
        self.lines = read.lines;
        Ok(())
    }

    fn line(&mut self) -> io::Result<Option<Line>> {
        let (bytes, mut is_whole) = self.part()?;
        let mut length = bytes.len() as u64;
        let mut last = length;
        // What is too long for a record is passed over.
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
            is_verbatim: matches!(text, Cow::Borrowed(_)) && length == bytes.len() as u64,
            text: text.into_owned(),
            length,
            is_whole,
        }))
    }

    /// What comes next, no more than may belong to a record, and whether its line ends there.
    fn part(&mut self) -> io::Result<(Vec<u8>, bool)> {
        let mut bytes = Vec::new();
        let mut bounded = (&mut self.bytes).take(MAX_LINE);
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

/// What came of verifying a log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verified {
    /// How many records there are.
    pub records: u64,
    /// The number of the first; those before it were in files that are no longer kept.
    pub first: u64,
    /// The number of the last.
    pub last: u64,
    /// The hash of the last. Who has noted it elsewhere can tell later whether the log up to it is still the same.
    pub hash: String,
    /// What is not as it was written, 100 faults at most.
    pub faults: Vec<Fault>,
}

/// A place where a log is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fault {
    /// The file.
    pub file: PathBuf,
    /// The number of the line.
    pub line: u64,
    /// What is wrong there.
    pub kind: FaultKind,
}

/// What can be wrong with a line of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultKind {
    /// It is the beginning of a record: its writer was killed. Whoever writes next removes it.
    #[non_exhaustive]
    Torn {
        /// How much of it there is.
        bytes: u64,
    },
    /// It is no record.
    Unreadable,
    /// It is a record that was changed.
    Changed,
    /// Records before it are gone.
    #[non_exhaustive]
    Missing {
        /// The number of the first of them.
        from: u64,
        /// The number of the last.
        to: u64,
    },
    /// It is a record that does not belong here.
    #[non_exhaustive]
    Misplaced {
        /// Its number.
        seq: u64,
    },
    /// It has followed another record than the one that is before it now.
    Unlinked,
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Torn { bytes } => write!(f, "the record is torn after {bytes} bytes"),
            Self::Unreadable => f.write_str("this is no record"),
            Self::Changed => f.write_str("the record was changed"),
            Self::Missing { from, to } if from == to => write!(f, "record {from} is missing"),
            Self::Missing { from, to } => write!(f, "records {from} to {to} are missing"),
            Self::Misplaced { seq } => write!(f, "record {seq} does not belong here"),
            Self::Unlinked => f.write_str("the record before this one was replaced"),
        }
    }
}

/// Checks every record of the log in `file`, and that they are all there, from the oldest file that is kept.
///
/// # Errors
///
/// There is no log, or it can't be read.
pub fn verify(file: &Path) -> io::Result<Verified> {
    let mut verified = Verified::default();
    let mut before = None;
    for line in Records::open(file)? {
        let line = line?;
        // What was replaced or left out could make it what it was.
        let place = Place::read(&line.text).filter(|_| line.is_verbatim);
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
            verified.faults.push(Fault {
                file: line.file,
                line: line.number,
                kind,
            });
        }
    }
    Ok(verified)
}

impl Verified {
    fn count(&mut self, place: &Place) {
        if self.records == 0 {
            self.first = place.seq;
        }
        self.records += 1;
        self.last = place.seq;
        self.hash.clone_from(&place.hash);
    }
}

/// What is wrong with a record after the one `before` it, which it then is itself.
fn fault(place: Place, before: &mut Option<Link>) -> Option<FaultKind> {
    let expected = match before.take() {
        Some(before) => before,
        None if place.seq <= 1 => Link::default(),
        // What it followed is not there any more.
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
    // The number of a record that was changed may be as well.
    let seq = if place.is_intact { place.seq } else { next };
    *before = Some(Link {
        seq,
        hash: place.hash,
    });
    kind
}

#[cfg(test)]
mod tests;
