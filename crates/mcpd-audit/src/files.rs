//! Files of an audit log: the newest, which is written, and older ones beside it. Several
//! processes may write them: a writer locks the file, and continues after the last record, of any
//! process.

use std::cmp::Reverse;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Take, Write as _};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use same_file::Handle;
use serde_json::json;

use crate::access::regain;
use crate::chain::{ChainPosition, Link, MAX_LINE_LENGTH};
use crate::record;
use crate::regular_file;

/// Sizes of the end of a file that are read in search of its last record, in bytes: the second if
/// the first does not contain it.
const TAIL_SIZES: [u64; 2] = [64 * 1024, MAX_LINE_LENGTH];

/// First bytes of every record.
const RECORD_START: &[u8] = br#"{"timestamp":""#;

/// A log from the writer's point of view.
#[derive(Debug, Clone)]
pub(crate) struct LogFiles {
    /// Newest file.
    pub(crate) path: PathBuf,
    /// Size in bytes at which a file is full.
    pub(crate) max_size: u64,
    /// Number of full files to keep.
    pub(crate) keep: NonZeroU32,
    /// Written records must survive a crash of the system, too.
    pub(crate) durable: bool,
}

/// Newest file as this writer left it.
#[derive(Debug)]
pub(crate) struct WrittenState {
    file: File,
    /// Length of the file.
    length: u64,
    /// End of the chain.
    link: Link,
}

/// Content at the end of a file.
#[derive(Debug, PartialEq, Eq)]
enum FileEnd {
    /// A record, perhaps followed by damaged lines or a torn one.
    Record(Last),
    /// At most a part of the first record.
    Beginning,
    /// Something else: the file is not a log.
    Unknown,
}

/// Last record of a file, and the damage behind it.
#[derive(Debug, PartialEq, Eq)]
struct Last {
    link: Link,
    /// Number of bytes in whole lines that follow and are not records.
    damaged: u64,
    /// End of the last whole line. At most a part of a record follows.
    whole: u64,
}

impl LogFiles {
    /// Appends `records`, each a JSON object, all of them or none; `written` is the state after
    /// the previous call, if any.
    ///
    /// # Errors
    ///
    /// The records cannot be written.
    pub(crate) fn append(
        &self,
        records: &[String],
        written: Option<WrittenState>,
    ) -> io::Result<WrittenState> {
        let mut notes = self.regain();
        let unchanged = written.and_then(|written| self.reopen(written));
        let (mut file, whole, mut link) = match unchanged {
            Some(unchanged) => unchanged,
            None => self.open(&mut notes)?,
        };
        let mut lines = String::new();
        for record in notes.iter().chain(records) {
            link.append(record, &mut lines);
        }
        let mut result = file.write_all(lines.as_bytes());
        if self.durable {
            result = result.and_then(|()| file.sync_data());
        }
        if result.is_err() {
            // A part of a record would look like the trace of a crash.
            file.set_len(whole).ok();
        }
        // Closing the file would release the lock, except while a process being started holds a
        // copy of the descriptor.
        file.unlock().ok();
        result.map(|()| WrittenState {
            length: whole + lines.len() as u64,
            file,
            link,
        })
    }

    /// Restores the permissions on the newest file and its directory, if a script has removed
    /// them. Returns a note for each.
    fn regain(&self) -> Vec<String> {
        let directory = self
            .path
            .parent()
            .and_then(|directory| regain(directory, 0o700));
        let file = regain(&self.path, 0o600);
        let regained = directory.into_iter().chain(file);
        regained
            .map(|regained| record::encode_regained(&regained))
            .collect()
    }

    /// Does what [`open`](Self::open) does, without reading the file, if it is unchanged. The
    /// length shows that, as every writer appends.
    fn reopen(
        &self,
        WrittenState { file, length, link }: WrittenState,
    ) -> Option<(File, u64, Link)> {
        file.lock().ok()?;
        let is_unchanged =
            length < self.max_size && file.metadata().is_ok_and(|file| file.len() == length);
        if is_unchanged && is_at(&file, &self.path).unwrap_or(false) {
            return Some((file, length, link));
        }
        file.unlock().ok();
        None
    }

    /// Opens the file to append to, locked. Returns it with its size and the end of its chain;
    /// adds a note for each irregularity.
    fn open(&self, notes: &mut Vec<String>) -> io::Result<(File, u64, Link)> {
        loop {
            let mut file = self.lock()?;
            let length = file.metadata()?.len();
            let (whole, damaged, link) = match FileEnd::of(&mut file, length)? {
                FileEnd::Record(last) => (last.whole, last.damaged, Some(last.link)),
                FileEnd::Beginning => (0, 0, None),
                FileEnd::Unknown => {
                    notes.push(self.put_aside()?);
                    continue;
                }
            };
            if damaged > 0 {
                tracing::warn!(file = %self.path.display(), bytes = damaged, "the audit log ends with lines that are not records");
                notes.push(record::note("audit/damaged", &json!({"bytes": damaged})));
            }
            if whole < length {
                tracing::warn!(file = %self.path.display(), bytes = length - whole, "the audit log ended within a record; the incomplete record was removed");
                file.set_len(whole)?;
                notes.push(record::note(
                    "audit/recovered",
                    &json!({"bytes": length - whole}),
                ));
            }
            // An empty file is never full: another one would be no better.
            if whole >= self.max_size.max(1) {
                self.rotate()?;
                continue;
            }
            let link = match link {
                Some(link) => link,
                None => self.link_before()?,
            };
            return Ok((file, whole, link));
        }
    }

    /// Opens the newest file, creating it if it is missing, and locks it.
    fn lock(&self) -> io::Result<File> {
        loop {
            let file = match create(&self.path) {
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    create_directory(self.path.parent())?;
                    create(&self.path)?
                }
                file => file?,
            };
            file.lock()?;
            // Another process may have begun a new file meanwhile.
            if is_at(&file, &self.path)? {
                return Ok(file);
            }
        }
    }

    /// Returns the link for the first record of a file: the last record of the file before it.
    fn link_before(&self) -> io::Result<Link> {
        let file = match regular_file::open(&numbered_path(&self.path, 1)) {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            file => file?,
        };
        let Some(mut file) = file else {
            return Ok(Link::default());
        };
        let length = file.metadata()?.len();
        Ok(match FileEnd::of(&mut file, length)? {
            FileEnd::Record(last) => last.link,
            FileEnd::Beginning | FileEnd::Unknown => Link::default(),
        })
    }

    /// Moves a file that is not a log to a name that is neither part of the log nor ever
    /// overwritten. Returns a note.
    fn put_aside(&self) -> io::Result<String> {
        let mut beside = self.path.clone().into_os_string();
        beside.push(".aside");
        let mut places = (1..=u32::MAX).map(|number| numbered_path(Path::new(&beside), number));
        let aside = places.find(|place| !place.exists());
        let aside = aside.ok_or(ErrorKind::AlreadyExists)?;
        tracing::warn!(file = %self.path.display(), aside = %aside.display(), "the file is not an audit log; it was moved aside and a new log started");
        fs::rename(&self.path, &aside)?;
        let name = aside.file_name().unwrap_or_default().to_string_lossy();
        Ok(record::note("audit/put-aside", &json!({"file": name})))
    }

    /// Rotates the files: the newest becomes number 1, each other one gets the next number, and
    /// the last is deleted.
    fn rotate(&self) -> io::Result<()> {
        let exists = |number: &u32| numbered_path(&self.path, *number).exists();
        let keep = self.keep.get();
        // A gap remains where a process was killed during a rotation, and leaves enough space.
        let free = (1..keep).find(|number| !exists(number)).unwrap_or(keep);
        for number in (1..free).rev() {
            fs::rename(
                numbered_path(&self.path, number),
                numbered_path(&self.path, number + 1),
            )?;
        }
        fs::rename(&self.path, numbered_path(&self.path, 1))
    }
}

impl FileEnd {
    fn of(file: &mut File, length: u64) -> io::Result<Self> {
        for size in TAIL_SIZES {
            let start = length.saturating_sub(size);
            let mut bytes = Vec::new();
            file.seek(SeekFrom::Start(start))?;
            (&*file).take(length - start).read_to_end(&mut bytes)?;
            // The first line may be incomplete.
            let from = match memchr::memchr(b'\n', &bytes) {
                Some(newline) if start > 0 => newline + 1,
                _ => 0,
            };
            let whole = memchr::memrchr(b'\n', &bytes).map_or(0, |newline| newline + 1);
            let mut end = whole;
            for line in bytes[from.min(whole)..whole]
                .split_inclusive(|byte| *byte == b'\n')
                .rev()
            {
                let text = str::from_utf8(&line[..line.len() - 1]);
                if let Some(place) = text.ok().and_then(ChainPosition::read) {
                    return Ok(Self::Record(Last {
                        link: place.link(),
                        damaged: (whole - end) as u64,
                        whole: start + whole as u64,
                    }));
                }
                end -= line.len();
            }
            // A torn first record has no line end, but begins like every record.
            let is_ours = || {
                bytes
                    .iter()
                    .zip(RECORD_START)
                    .all(|(byte, ours)| byte == ours)
            };
            if start == 0 {
                return Ok(if whole == 0 && is_ours() {
                    Self::Beginning
                } else {
                    Self::Unknown
                });
            }
        }
        Ok(Self::Unknown)
    }
}

/// Opens the files of the log at `path`, the oldest first, as they were at one moment between two
/// writers.
///
/// # Errors
///
/// The log does not exist, or a file cannot be read.
pub(crate) fn readable(path: &Path) -> io::Result<Vec<(PathBuf, Take<File>)>> {
    let newest = loop {
        let file = regular_file::open(path)?.ok_or_else(not_a_file)?;
        // Failure is harmless: on a file system without locks, no process writes.
        file.lock_shared().ok();
        if is_at(&file, path)? {
            break file;
        }
    };
    let mut files = older(path)?;
    files.push((path.to_owned(), newest.try_clone()?));
    let bounded = |(path, file): (PathBuf, File)| {
        let length = file.metadata()?.len();
        Ok((path, file.take(length)))
    };
    let files = files.into_iter().map(bounded).collect();
    newest.unlock().ok();
    files
}

/// Opens the full files of the log at `path`, the oldest first.
fn older(path: &Path) -> io::Result<Vec<(PathBuf, File)>> {
    let directory = match path.parent() {
        Some(directory) if directory != Path::new("") => directory,
        _ => Path::new("."),
    };
    let number = |name: &OsStr| -> Option<u32> {
        let (_, number) = name.to_str()?.rsplit_once('.')?;
        let number = number.parse().ok()?;
        let is_ours = numbered_path(path, number).file_name() == Some(name);
        is_ours.then_some(number)
    };
    let mut numbers = Vec::new();
    for entry in fs::read_dir(directory)? {
        numbers.extend(number(&entry?.file_name()));
    }
    numbers.sort_unstable_by_key(|number| Reverse(*number));
    let mut files = Vec::new();
    for number in numbers {
        let path = numbered_path(path, number);
        // A log is never written to anything but a regular file.
        if let Some(file) = regular_file::open(&path)? {
            files.push((path, file));
        }
    }
    Ok(files)
}

/// Returns whether `file` is the one at `path`, and not a predecessor.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    match Handle::from_path(path) {
        Ok(newest) => Ok(newest == Handle::from_file(file.try_clone()?)?),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

pub(crate) fn numbered_path(path: &Path, number: u32) -> PathBuf {
    let mut numbered = path.as_os_str().to_owned();
    numbered.push(format!(".{number}"));
    numbered.into()
}

/// Opens the file, creating it for its owner alone.
fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    refuse_pipe(&file)?;
    Ok(file)
}

/// Refuses a pipe: writing to it waits for a reader, and nothing can be read back.
#[cfg(unix)]
fn refuse_pipe(file: &File) -> io::Result<()> {
    use std::os::unix::fs::FileTypeExt as _;

    if file.metadata()?.file_type().is_fifo() {
        return Err(not_a_file());
    }
    Ok(())
}

/// Accepts any file: on other systems no path leads to a pipe.
#[cfg(not(unix))]
fn refuse_pipe(_: &File) -> io::Result<()> {
    Ok(())
}

fn not_a_file() -> io::Error {
    io::Error::other("an audit log must be a regular file")
}

fn create_directory(directory: Option<&Path>) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    directory.map_or(Ok(()), |directory| builder.create(directory))
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
