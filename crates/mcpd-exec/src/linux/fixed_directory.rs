//! Directory that a run starts in and that other processes may try to replace by a link: it is
//! opened once without following links. The path is compared again before the start, and what the
//! child enters and mounts by that path is compared there.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, fstat, openat2};
use rustix::io::Errno;

use super::image::text;
use super::raw::FixedPlace;
use crate::command::Command;

/// Open directory, and the path that it was opened by.
#[derive(Debug)]
pub(crate) struct FixedDirectory {
    path: PathBuf,
    path_text: CString,
    /// Device and inode.
    identity: (u64, u64),
    /// Keeps the inode from being used again.
    _file: OwnedFd,
    /// Path of the descriptor, by which the child enters it.
    entrance: PathBuf,
}

impl FixedDirectory {
    /// Opens the starting directory of a command, if it must have no links.
    ///
    /// # Errors
    ///
    /// It has links now, or can't be opened.
    pub(crate) fn of(command: &Command) -> io::Result<Option<Self>> {
        let directory = command.parts.current_dir.as_deref();
        let Some(path) = directory.filter(|_| command.parts.has_fixed_directory) else {
            return Ok(None);
        };
        let path = std::path::absolute(path)?;
        let file = open(&path)?;
        let entrance = format!("/proc/self/fd/{}", file.as_raw_fd()).into();
        Ok(Some(Self {
            path_text: text(&path)?,
            path,
            identity: identity(&file)?,
            _file: file,
            entrance,
        }))
    }

    /// Path by which a child enters it, whatever happens to its own path meanwhile.
    pub(crate) fn entrance(&self) -> &Path {
        match self.entrance.exists() {
            true => &self.entrance,
            false => &self.path,
        }
    }

    /// The directory as the child recognizes it, which opens it by its path.
    pub(crate) fn place(&self) -> FixedPlace<'_> {
        FixedPlace {
            path: &self.path_text,
            device: self.identity.0,
            inode: self.identity.1,
        }
    }

    /// Checks that its path still leads to it.
    ///
    /// # Errors
    ///
    /// It leads elsewhere.
    pub(crate) fn verify(&self) -> io::Result<()> {
        match identity(&open(&self.path)?)? == self.identity {
            true => Ok(()),
            false => Err(replaced(&self.path)),
        }
    }
}

/// Returns device and inode.
fn identity(file: &OwnedFd) -> io::Result<(u64, u64)> {
    let stat = fstat(file)?;
    Ok((stat.st_dev, stat.st_ino))
}

fn open(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        Ok(file) => Ok(file),
        Err(Errno::LOOP) => Err(replaced(path)),
        // Linux before 5.6, or a filter of a container.
        Err(Errno::NOSYS | Errno::PERM) if path.canonicalize()? == path => {
            Ok(rustix::fs::open(path, flags, Mode::empty())?)
        }
        Err(Errno::NOSYS | Errno::PERM) => Err(replaced(path)),
        Err(error) => Err(error.into()),
    }
}

pub(super) fn replaced(path: &Path) -> io::Error {
    let path = path.display();
    io::Error::other(format!(
        "the directory `{path}` was replaced after it was allowed"
    ))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn directory_behind_a_link_is_refused_and_a_replaced_one_noticed() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        let [own, other, moved] = ["own", "other", "moved"].map(|name| place.join(name));
        fs::create_dir_all(own.join("inner")).unwrap();
        fs::create_dir_all(other.join("inner")).unwrap();
        let command = Command::new("true").current_dir(own.join("inner"));
        assert!(FixedDirectory::of(&command).unwrap().is_none());
        let command = command.fixed_directory();
        let fixed = FixedDirectory::of(&command).unwrap().unwrap();
        fixed.verify().unwrap();
        fs::rename(&own, &moved).unwrap();
        symlink(&other, &own).unwrap();
        assert!(fixed.verify().is_err());
        let entered = fs::canonicalize(fixed.entrance()).unwrap();
        assert_eq!(entered, moved.join("inner"));
        let refused = FixedDirectory::of(&command).unwrap_err().to_string();
        assert!(refused.contains("was replaced"), "{refused}");
    }
}
