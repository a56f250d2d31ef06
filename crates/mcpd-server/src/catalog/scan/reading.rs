//! Static reader of files that describe themselves: it never runs them. It blocks.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use mcpd_scriptspec::Dialect;
use mcpd_scriptspec::dialect::DescribedTool;
use memchr::memmem;

use super::image;
use crate::catalog::walk::Candidate;
use crate::support::regular_file;

/// Number of bytes that are read to determine the dialect of a file.
const MAX_HEAD: u64 = 64 << 10;
/// Size of the longest text that is read, in bytes.
pub(super) const MAX_SIZE: u64 = 1 << 20;

/// First bytes of a file whose first line names an interpreter.
const SHEBANG: &[u8] = b"#!";
/// Bytes that some editors put before that.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Findings in a file.
#[derive(Debug)]
pub(super) struct Reading {
    /// First line of the file if it names an interpreter, possibly behind a byte order mark.
    pub(super) shebang: Option<String>,
    /// Tells whether it begins like a program of some system, or with such a line.
    pub(super) is_program: bool,
    /// Tells whether it is a text with words of the contract with scripts.
    pub(super) mentions_mcpd: bool,
    /// `None` if it needs a probe.
    pub(super) description: Option<Description>,
}

/// Text that describes tools.
#[derive(Debug)]
pub(super) struct Description {
    pub(super) dialect: Dialect,
    /// The file itself, or its sidecar.
    pub(super) file: PathBuf,
    pub(super) text: Bytes,
    pub(super) tools: Vec<DescribedTool>,
}

/// Reason for which a file is not read.
#[derive(Debug)]
pub(super) enum Unreadable {
    TooLarge,
    Io(io::Error),
}

impl From<io::Error> for Unreadable {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Returns whether the first line of a file names an interpreter, if it is readable.
pub(super) fn has_shebang(file: &Path) -> bool {
    let mut head = [0; SHEBANG.len()];
    open(file).is_ok_and(|mut file| file.read_exact(&mut head).is_ok()) && head == SHEBANG
}

/// Reads the file, or its sidecar if it has one.
pub(super) fn read(candidate: &Candidate) -> Result<Reading, Unreadable> {
    let mut head = read_head(&candidate.file)?;
    // Behind a byte order mark the system sees no first line. It is recognized here, so that the
    // author gets this fault and not an error of the interpreter for the extension.
    let text = head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&head);
    let line = text.split(|byte| *byte == b'\n').next();
    let line = line.filter(|line| line.starts_with(SHEBANG));
    let shebang = line.map(|line| String::from_utf8_lossy(line).into_owned());
    let is_program = shebang.is_some() || image::is_program(&head, &candidate.file);
    let mentions_mcpd = mentions_mcpd(&head);
    let (name, file) = match &candidate.sidecar {
        Some(sidecar) => {
            head = read_whole(&sidecar.file)?;
            (sidecar_path(candidate, &sidecar.file), &sidecar.file)
        }
        None => (candidate.path.as_str().to_owned(), &candidate.file),
    };
    let description = match Dialect::of(&with_root_name(&candidate.root, &name), &head) {
        None => None,
        Some(dialect) => {
            let text = if head.len() as u64 == MAX_HEAD {
                read_whole(file)?
            } else {
                head
            };
            Some(Description {
                dialect,
                file: file.clone(),
                tools: dialect.read(&name, &text),
                text: text.into(),
            })
        }
    };
    Ok(Reading {
        shebang,
        is_program,
        mentions_mcpd,
        description,
    })
}

/// Returns whether a text has words of the contract with scripts. Compiled programs do not count:
/// mcpd itself is one.
fn mentions_mcpd(text: &[u8]) -> bool {
    let has = |words: &[u8]| memmem::find(text, words).is_some();
    let is_text = !text.contains(&0);
    // Metadata printed for `--help`: most programs have one of these words, few have both.
    let describes_itself = || {
        let quoted = [&b"\"description"[..], b"'description"];
        has(b"--help") && quoted.into_iter().any(has)
    };
    is_text && (has(b"MCPD_") || has(b"value_type") || describes_itself())
}

/// Returns the path `name` below `root` with the name of the root in front: it classifies its
/// contents as those of other directories do.
fn with_root_name(root: &Path, name: &str) -> String {
    let root = root.file_name().unwrap_or_default().to_string_lossy();
    format!("{root}/{name}")
}

/// Reads the beginning of a file.
pub(super) fn read_head(file: &Path) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    open(file)?.take(MAX_HEAD).read_to_end(&mut head)?;
    Ok(head)
}

pub(super) fn read_whole(file: &Path) -> Result<Vec<u8>, Unreadable> {
    let mut text = Vec::new();
    open(file)?.take(MAX_SIZE + 1).read_to_end(&mut text)?;
    if text.len() as u64 > MAX_SIZE {
        return Err(Unreadable::TooLarge);
    }
    Ok(text)
}

/// Opens a file if it is still a regular one.
fn open(file: &Path) -> io::Result<File> {
    regular_file::open(file)?.ok_or_else(|| io::Error::other("not a regular file"))
}

/// Returns the path of a sidecar below the root.
fn sidecar_path(candidate: &Candidate, sidecar: &Path) -> String {
    let name = sidecar.file_name().unwrap_or_default().to_string_lossy();
    match candidate.path.as_str().rsplit_once('/') {
        Some((directory, _)) => format!("{directory}/{name}"),
        None => name.into_owned(),
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn file_replaced_by_a_pipe_does_not_block() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RWXU, 0).unwrap();
        assert!(matches!(read_whole(&pipe), Err(Unreadable::Io(_))));
    }
}
