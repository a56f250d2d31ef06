//! Regular files, opened for reading. Nothing else is: opening a pipe waits for somebody to write to it, and opening a
//! device may do more than that.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

/// Opens the file at `path`; nothing if what is there is no regular file.
///
/// # Errors
///
/// Nothing is there, or it can't be opened.
pub(crate) fn open(path: &Path) -> io::Result<Option<File>> {
    if !path.metadata()?.is_file() {
        return Ok(None);
    }
    let file = open_at_once(path)?;
    // Another may have taken its place meanwhile.
    let is_regular = file.metadata()?.is_file();
    Ok(is_regular.then_some(file))
}

/// Opens whatever is there, and waits for nobody.
fn open_at_once(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        &mut options,
        rustix::fs::OFlags::NONBLOCK.bits().cast_signed(),
    );
    options.open(path)
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::fs;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn a_pipe_keeps_nobody_waiting() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RWXU, 0).unwrap();
        assert!(open(&pipe).unwrap().is_none());
        // So it would be if it had been put there between the look and this.
        assert!(open_at_once(&pipe).is_ok());
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
