//! Settings of an audit log, and the names of its files.

use std::iter;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use crate::files::numbered_path;

/// Maximum number of files named without a look at the directory.
const MAX_NAMED: u32 = 1024;

/// Settings of an audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Recorded part of the arguments, for the program that makes the records.
    pub arguments: Arguments,
    /// Handling of a call that cannot be recorded.
    pub mode: Mode,
    /// Size in bytes at which a file is full, and another one is begun.
    pub max_size: u64,
    /// Number of full files kept beside the newest.
    pub keep: NonZeroU32,
}

impl Default for Options {
    /// Arguments in full, unrecorded calls counted, and up to 9 files of 16 MiB.
    fn default() -> Self {
        Self {
            arguments: Arguments::Full,
            mode: Mode::BestEffort,
            max_size: 16 << 20,
            keep: NonZeroU32::new(8).expect("it is not zero"),
        }
    }
}

/// Recorded part of the arguments of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Arguments {
    /// Nothing.
    None,
    /// Names of the arguments.
    Names,
    /// Names, and the length and hash of each value.
    Hash,
    /// Everything but secrets; of a value over 1 KiB its length and hash.
    Full,
}

/// Handling of a call that cannot be recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mode {
    /// The call is refused. Nothing runs before a record of it is safely in the file.
    Require,
    /// The call runs, and the missing record is counted.
    BestEffort,
}

/// Paths of the newest file of the log at `log`, and of up to `keep` older ones; of very many,
/// the newest.
pub fn files(log: &Path, keep: NonZeroU32) -> impl Iterator<Item = PathBuf> {
    let older = (1..=keep.get().min(MAX_NAMED)).map(|number| numbered_path(log, number));
    iter::once(log.to_owned()).chain(older)
}
