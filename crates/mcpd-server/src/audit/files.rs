//! The files of an audit log: the one that is written, and older ones beside it. Several processes may write them:
//! whoever appends has locked the file, and goes on where the last record stands, whoever wrote it.

use std::cmp::Reverse;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Take, Write as _};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use same_file::Handle;
use serde_json::json;

use super::chain::{Link, MAX_LINE, Place};
use super::record;
use crate::own_files::regain;
use crate::regular;

/// How much of the end of a file is read to find its last record, in bytes, and how much if it is not in there.
const ENDS: [u64; 2] = [64 * 1024, MAX_LINE];

/// How every record begins.
const OPENING: &[u8] = br#"{"timestamp":""#;

/// A log as whoever writes it knows it.
#[derive(Debug, Clone)]
pub(super) struct Files {
    /// The newest file.
    pub(super) path: PathBuf,
    /// How many bytes make a file full.
    pub(super) max_size: u64,
    /// How many full files are kept.
    pub(super) keep: NonZeroU32,
    /// Whether what is written shall survive a crash of the system, too.
    pub(super) durable: bool,
}

/// The newest file as its writer has left it.
#[derive(Debug)]
pub(super) struct Written {
    file: File,
    /// How long it was.
    length: u64,
    /// What the next record follows.
    link: Link,
}

/// How a file ends.
#[derive(Debug, PartialEq, Eq)]
enum End {
    /// With a record, perhaps followed by what is none.
    Record(Last),
    /// It has at most a part of its first record.
    Beginning,
    /// With something else: it is no log.
    Unknown,
}

/// The last record of a file, and what is behind it.
#[derive(Debug, PartialEq, Eq)]
struct Last {
    link: Link,
    /// How many bytes of whole lines follow that are no records.
    damaged: u64,
    /// Where the last whole line ends. Behind it is at most a part of a record.
    whole: u64,
}

impl Files {
    /// Appends `records`, each a JSON object, all of them or none, to what was `written` before, if anything was.
    ///
    /// # Errors
    ///
    /// They can't be written.
    pub(super) fn append(
        &self,
        records: &[String],
        written: Option<Written>,
    ) -> io::Result<Written> {
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
            // A part of a record would be taken for the trace of a crash.
            file.set_len(whole).ok();
        }
        // Closing the file would do, but for a process that is just being started and has a copy for a moment.
        file.unlock().ok();
        result.map(|()| Written {
            length: whole + lines.len() as u64,
            file,
            link,
        })
    }

    /// Takes back the rights to the newest file and its directory, if a script has taken them.
    /// Gives a note of each.
    fn regain(&self) -> Vec<String> {
        let directory = self
            .path
            .parent()
            .and_then(|directory| regain(directory, 0o700));
        let file = regain(&self.path, 0o600);
        let regained = directory.into_iter().chain(file);
        regained
            .map(|regained| record::regained(&regained))
            .collect()
    }

    /// What [`open`](Self::open) gives, without reading the file: if it is as it was left, which its length tells, as
    /// whoever writes it appends.
    fn reopen(&self, Written { file, length, link }: Written) -> Option<(File, u64, Link)> {
        file.lock().ok()?;
        let is_unchanged =
            length < self.max_size && file.metadata().is_ok_and(|file| file.len() == length);
        if is_unchanged && is_at(&file, &self.path).unwrap_or(false) {
            return Some((file, length, link));
        }
        file.unlock().ok();
        None
    }

    /// The file to append to, locked; its size; and what the next record follows. What there is to say of its state
    /// becomes a note.
    fn open(&self, notes: &mut Vec<String>) -> io::Result<(File, u64, Link)> {
        loop {
            let mut file = self.lock()?;
            let length = file.metadata()?.len();
            let (whole, damaged, link) = match End::of(&mut file, length)? {
                End::Record(last) => (last.whole, last.damaged, Some(last.link)),
                End::Beginning => (0, 0, None),
                End::Unknown => {
                    notes.push(self.put_aside()?);
                    continue;
                }
            };
            if damaged > 0 {
                tracing::warn!(file = %self.path.display(), bytes = damaged, "the audit log has lines at its end that are no records");
                notes.push(record::note("audit/damaged", &json!({"bytes": damaged})));
            }
            if whole < length {
                tracing::warn!(file = %self.path.display(), bytes = length - whole, "the audit log ended within a record, which is removed");
                file.set_len(whole)?;
                notes.push(record::note(
                    "audit/recovered",
                    &json!({"bytes": length - whole}),
                ));
            }
            // One that has nothing in it is never full: another would be no better.
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

    /// The newest file, made if it is missing, locked.
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

    /// What the first record of a file follows: the last one of the file before it.
    fn link_before(&self) -> io::Result<Link> {
        let file = match regular::open(&numbered(&self.path, 1)) {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            file => file?,
        };
        let Some(mut file) = file else {
            return Ok(Link::default());
        };
        let length = file.metadata()?.len();
        Ok(match End::of(&mut file, length)? {
            End::Record(last) => last.link,
            End::Beginning | End::Unknown => Link::default(),
        })
    }

    /// Moves what is no log out of the way, to where it neither counts as one of the files nor is ever overwritten. Gives
    /// a note of it.
    fn put_aside(&self) -> io::Result<String> {
        let mut beside = self.path.clone().into_os_string();
        beside.push(".aside");
        let mut places = (1..=u32::MAX).map(|number| numbered(Path::new(&beside), number));
        let aside = places.find(|place| !place.exists());
        let aside = aside.ok_or(ErrorKind::AlreadyExists)?;
        tracing::warn!(file = %self.path.display(), aside = %aside.display(), "what is there is no audit log: it is put aside, and a new file begun");
        fs::rename(&self.path, &aside)?;
        let name = aside.file_name().unwrap_or_default().to_string_lossy();
        Ok(record::note("audit/put-aside", &json!({"file": name})))
    }

    /// Makes room for a new file: the newest becomes number 1, each other one gets the next number, and the last goes.
    fn rotate(&self) -> io::Result<()> {
        let exists = |number: &u32| numbered(&self.path, *number).exists();
        let keep = self.keep.get();
        // A gap was left by whoever was killed in the middle of this, and makes room enough.
        let free = (1..keep).find(|number| !exists(number)).unwrap_or(keep);
        for number in (1..free).rev() {
            fs::rename(
                numbered(&self.path, number),
                numbered(&self.path, number + 1),
            )?;
        }
        fs::rename(&self.path, numbered(&self.path, 1))
    }
}

impl End {
    fn of(file: &mut File, length: u64) -> io::Result<Self> {
        for size in ENDS {
            let start = length.saturating_sub(size);
            let mut bytes = Vec::new();
            file.seek(SeekFrom::Start(start))?;
            (&*file).take(length - start).read_to_end(&mut bytes)?;
            // Only a part of the first line may be there.
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
                if let Some(place) = text.ok().and_then(Place::read) {
                    return Ok(Self::Record(Last {
                        link: place.link(),
                        damaged: (whole - end) as u64,
                        whole: start + whole as u64,
                    }));
                }
                end -= line.len();
            }
            let is_ours = || bytes.iter().zip(OPENING).all(|(byte, ours)| byte == ours);
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

/// The files of the log at `path`, the oldest first, as they were at one moment between two writers.
///
/// # Errors
///
/// There is none, or one can't be read.
pub(super) fn readable(path: &Path) -> io::Result<Vec<(PathBuf, Take<File>)>> {
    let newest = loop {
        let file = regular::open(path)?.ok_or_else(not_a_file)?;
        // Where nothing can be locked, nobody writes.
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

/// The full files of the log at `path`, the oldest first.
fn older(path: &Path) -> io::Result<Vec<(PathBuf, File)>> {
    let directory = match path.parent() {
        Some(directory) if directory != Path::new("") => directory,
        _ => Path::new("."),
    };
    let number = |name: &OsStr| -> Option<u32> {
        let (_, number) = name.to_str()?.rsplit_once('.')?;
        let number = number.parse().ok()?;
        let is_ours = numbered(path, number).file_name() == Some(name);
        is_ours.then_some(number)
    };
    let mut numbers = Vec::new();
    for entry in fs::read_dir(directory)? {
        numbers.extend(number(&entry?.file_name()));
    }
    numbers.sort_unstable_by_key(|number| Reverse(*number));
    let mut files = Vec::new();
    for number in numbers {
        let path = numbered(path, number);
        // Nobody has written a log to anything else.
        if let Some(file) = regular::open(&path)? {
            files.push((path, file));
        }
    }
    Ok(files)
}

/// Whether `file` is the one at `path`, and not one that was there before.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    match Handle::from_path(path) {
        Ok(newest) => Ok(newest == Handle::from_file(file.try_clone()?)?),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

pub(super) fn numbered(path: &Path, number: u32) -> PathBuf {
    let mut numbered = path.as_os_str().to_owned();
    numbered.push(format!(".{number}"));
    numbered.into()
}

/// The file, for its owner alone if it is made.
fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    refuse_pipe(&file)?;
    Ok(file)
}

/// Refuses what can't be a log: writing to a pipe waits for a reader, and nothing can be read back from it.
#[cfg(unix)]
fn refuse_pipe(file: &File) -> io::Result<()> {
    use std::os::unix::fs::FileTypeExt as _;

    if file.metadata()?.file_type().is_fifo() {
        return Err(not_a_file());
    }
    Ok(())
}

/// Elsewhere no path leads to a pipe.
#[cfg(not(unix))]
fn refuse_pipe(_: &File) -> io::Result<()> {
    Ok(())
}

fn not_a_file() -> io::Error {
    io::Error::other("an audit log is a regular file, and this is none")
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
