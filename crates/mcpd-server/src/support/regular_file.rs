//! Regular files, opened for reading. Other files are never opened: a named pipe would block
//! until a writer comes, and opening a device may have side effects.

#[cfg(unix)]
use std::fs::Metadata;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use mcpd_exec::RunAs;

/// Opens the file at `path`; returns `None` if it is no regular file.
///
/// # Errors
///
/// Fails if it does not exist, or cannot be opened.
pub(crate) fn open(path: &Path) -> io::Result<Option<File>> {
    if !path.metadata()?.is_file() {
        return Ok(None);
    }
    let file = open_nonblocking(path)?;
    // It may have been replaced in the meantime.
    let is_regular = file.metadata()?.is_file();
    Ok(is_regular.then_some(file))
}

/// Returns whether `run_as` may read `file`, opened at `path`, by the modes of the file and of
/// the directories above it. Ignores access control lists that grant more.
///
/// # Errors
///
/// Fails if the metadata is unavailable.
#[cfg(unix)]
pub(crate) fn is_readable_by(run_as: RunAs, file: &File, path: &Path) -> io::Result<bool> {
    if !has_mode_bit(run_as, &file.metadata()?, READ_BIT) {
        return Ok(false);
    }
    let mut directories = path.ancestors().skip(1);
    directories.try_fold(true, |may_enter, directory| {
        Ok(may_enter && has_mode_bit(run_as, &directory.metadata()?, ENTER_BIT))
    })
}

/// Returns false: on this system scripts run as the same user.
#[cfg(not(unix))]
pub(crate) fn is_readable_by(_: RunAs, _: &File, _: &Path) -> io::Result<bool> {
    Ok(false)
}

/// Mode bits of one class of users: to read a file, and to enter a directory.
#[cfg(unix)]
const READ_BIT: u32 = 0o4;
#[cfg(unix)]
const ENTER_BIT: u32 = 0o1;

#[cfg(unix)]
fn has_mode_bit(run_as: RunAs, metadata: &Metadata, wanted: u32) -> bool {
    use std::os::unix::fs::MetadataExt as _;

    // The first matching class decides, even if a later one has more rights.
    let class = if run_as.user == metadata.uid() {
        metadata.mode() >> 6
    } else if run_as.group == metadata.gid() {
        metadata.mode() >> 3
    } else {
        metadata.mode()
    };
    run_as.user == 0 || class & wanted != 0
}

/// Opens any kind of file without blocking.
fn open_nonblocking(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        &mut options,
        rustix::fs::OFlags::NONBLOCK.bits().cast_signed(),
    );
    options.open(path)
}

/// Returns the location of the opened file, even if its path leads elsewhere by now.
#[cfg(target_os = "linux")]
pub(crate) fn real_path(file: &File, _: &Path) -> io::Result<PathBuf> {
    use std::os::fd::AsRawFd as _;
    std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Returns the target of the path: the system has no query for the location of an opened file.
#[cfg(not(target_os = "linux"))]
pub(crate) fn real_path(_: &File, path: &Path) -> io::Result<PathBuf> {
    path.canonicalize()
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn opening_a_pipe_does_not_block() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RWXU, 0).unwrap();
        assert!(open(&pipe).unwrap().is_none());
        // This happens if the pipe replaces a file between the check and the open.
        assert!(open_nonblocking(&pipe).is_ok());
    }

    #[test]
    fn readability_follows_from_modes_of_file_and_directories() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        fs::write(&path, "x").unwrap();
        let file = open(&path).unwrap().unwrap();
        let (owner, group) = (
            file.metadata().unwrap().uid(),
            file.metadata().unwrap().gid(),
        );
        // Root may read everything, and tests often run as root.
        let own = (owner != 0).then(|| RunAs::new(owner, group));
        let (of_group, other) = (
            RunAs::new(owner + 1, group),
            RunAs::new(owner + 1, group + 1),
        );
        let check = |directory_mode, mode, expected: [bool; 3]| {
            let set = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode));
            set(directory.path(), directory_mode).unwrap();
            set(&path, mode).unwrap();
            let may = |run_as| is_readable_by(run_as, &file, &path).unwrap();
            let own = own.map_or(expected[0], may);
            assert_eq!(
                [own, may(of_group), may(other)],
                expected,
                "{directory_mode:o} {mode:o}"
            );
            assert!(may(RunAs::new(0, 0)));
        };
        check(0o755, 0o644, [true, true, true]);
        check(0o755, 0o640, [true, true, false]);
        check(0o755, 0o600, [true, false, false]);
        check(0o755, 0o404, [true, false, true]);
        check(0o750, 0o644, [true, true, false]);
        check(0o700, 0o644, [true, false, false]);
    }

    #[test]
    fn only_regular_files_are_opened() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        fs::write(&file, "x").unwrap();
        assert!(open(&file).unwrap().is_some());
        assert!(open(directory.path()).unwrap().is_none());
        assert!(open(Path::new("/dev/null")).unwrap().is_none());
        let error = open(&directory.path().join("none")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
