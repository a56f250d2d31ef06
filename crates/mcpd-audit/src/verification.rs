//! Verification of the hash chain: each record is hashed, in several threads, and then compared
//! with the one before it, in order.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Serialize, Serializer};

use crate::blocks::{Block, FileBlock, LogBlocks, RawLine, map_blocks};
use crate::chain::{ChainPosition, FIRST_PREV_HASH, Link};

/// Maximum number of reported faults.
const MAX_FAULTS: usize = 100;

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
    verify_blocks(LogBlocks::open(file)?)
}

fn verify_blocks(mut log: LogBlocks) -> io::Result<Verified> {
    let mut verifier = Verifier::default();
    let mut blocks = log.next_batch()?;
    while !blocks.is_empty() {
        let (lines, next) = map_blocks(&blocks, read_lines, || log.next_batch());
        verifier.add(&blocks, lines);
        blocks = next?;
    }
    Ok(verifier.verified)
}

/// Line on its own, without a comparison to its neighbours.
#[derive(Debug)]
enum LineKind<'a> {
    Torn { bytes: u64 },
    Unreadable,
    Record(ChainPosition<'a>),
}

impl<'a> LineKind<'a> {
    fn of(line: RawLine<'a>) -> Self {
        if !line.is_whole {
            return Self::Torn { bytes: line.length };
        }
        // Altered or shortened text could pass for a valid record.
        let text = str::from_utf8(line.bytes).ok();
        let place = text
            .filter(|_| !line.is_cut())
            .and_then(ChainPosition::read);
        place.map_or(Self::Unreadable, Self::Record)
    }
}

fn read_lines(block: &Block) -> Vec<LineKind<'_>> {
    block.lines().map(LineKind::of).collect()
}

/// Verification of the blocks so far.
#[derive(Debug, Default)]
struct Verifier {
    verified: Verified,
    /// Last record, if the last line is one.
    before: Option<Link>,
    file: Option<Arc<Path>>,
    /// Number of lines of the file.
    lines: u64,
}

/// The record before another.
#[derive(Debug, Clone, Copy)]
struct Previous<'a> {
    seq: u64,
    hash: &'a str,
}

impl Verifier {
    /// Adds blocks with the lines that are in each.
    fn add(&mut self, blocks: &[FileBlock], lines: Vec<Vec<LineKind<'_>>>) {
        let before = self.before.take();
        let mut previous = before
            .as_ref()
            .map(|Link { seq, hash }| Previous { seq: *seq, hash });
        let mut last = None;
        for ((file, _), lines) in blocks.iter().zip(&lines) {
            if self
                .file
                .as_ref()
                .is_none_or(|known| !Arc::ptr_eq(known, file))
            {
                (self.file, self.lines) = (Some(Arc::clone(file)), 0);
            }
            for line in lines {
                self.lines += 1;
                let kind = match line {
                    LineKind::Torn { bytes } => Some(FaultKind::Torn { bytes: *bytes }),
                    LineKind::Unreadable => {
                        previous = None;
                        Some(FaultKind::Unreadable)
                    }
                    LineKind::Record(place) => {
                        last = Some(place);
                        self.verified.count(place);
                        fault(place, &mut previous)
                    }
                };
                if let Some(kind) = kind {
                    self.verified.add_fault(file, self.lines, kind);
                }
            }
        }
        if let Some(last) = last {
            self.verified.last = last.seq;
            self.verified.hash = last.hash.as_ref().to_owned();
        }
        self.before = previous.map(|Previous { seq, hash }| Link {
            seq,
            hash: hash.to_owned(),
        });
    }
}

impl Verified {
    fn count(&mut self, place: &ChainPosition<'_>) {
        if self.records == 0 {
            self.first = place.seq;
        }
        self.records += 1;
    }

    fn add_fault(&mut self, file: &Path, line: u64, kind: FaultKind) {
        if self.faults.len() < MAX_FAULTS {
            self.faults.push(LogFault {
                file: file.to_owned(),
                line,
                kind,
            });
        }
    }
}

/// Returns the fault of a record that comes after `previous`, and makes it the new one.
fn fault<'a>(
    place: &'a ChainPosition<'_>,
    previous: &mut Option<Previous<'a>>,
) -> Option<FaultKind> {
    let expected = match *previous {
        Some(previous) => previous,
        None if place.seq <= 1 => Previous {
            seq: 0,
            hash: FIRST_PREV_HASH,
        },
        // The record that this one followed is not kept any more.
        None => Previous {
            seq: place.seq - 1,
            hash: &place.prev,
        },
    };
    let next = expected.seq + 1;
    let kind = if !place.is_intact {
        Some(FaultKind::Changed)
    } else if place.follows(expected.seq, expected.hash) {
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
    *previous = Some(Previous {
        // In a changed record, the sequence number may be changed as well.
        seq: if place.is_intact { place.seq } else { next },
        hash: &place.hash,
    });
    kind
}

#[cfg(test)]
mod tests;
