//! Archive → directory, with the distrust that an archive of a stranger deserves: no entry leaves
//! the directory, none is a link, none replaces a file, and all of it is bounded.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek};
use std::path::Path;

use zip::ZipArchive;

use crate::BundleError;
use crate::archive::{check_path, of_zip};

/// Maximum number of entries.
const MAX_ENTRIES: usize = 50_000;

/// Maximum size of all files together, in bytes.
const MAX_SIZE: u64 = 4 << 30;

/// Unpacks a bundle into a directory, which must exist. Files keep the execute permission, and no
/// other.
///
/// # Errors
///
/// The archive is damaged, an entry is unsafe, the whole is too large, or a file exists or can't
/// be written. Entries that were unpacked before the error stay.
pub fn unpack(from: impl io::Read + Seek, directory: &Path) -> Result<(), BundleError> {
    let mut archive = ZipArchive::new(from).map_err(of_zip)?;
    if archive.len() > MAX_ENTRIES {
        let what = format!("more than {MAX_ENTRIES} entries");
        return Err(BundleError::TooLarge { what });
    }
    let mut left = MAX_SIZE;
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index).map_err(of_zip)?;
        let name = entry.name().map_err(of_zip)?.into_owned();
        let path = name.strip_suffix('/').unwrap_or(&name);
        check_path(path)?;
        if entry.is_symlink() {
            let path = path.to_owned();
            let reason = "it is a link";
            return Err(BundleError::Path { path, reason });
        }
        let target = directory.join(path);
        if entry.is_dir() {
            fs::create_dir_all(&target).map_err(BundleError::of_file("make", &target))?;
            continue;
        }
        let is_executable = entry.unix_mode().is_some_and(|mode| mode & 0o111 != 0);
        let mut file = create(&target, is_executable)?;
        let mut content = entry.by_ref().take(left + 1);
        let length =
            io::copy(&mut content, &mut file).map_err(BundleError::of_file("unpack", &target))?;
        left = left.checked_sub(length).ok_or_else(|| {
            let what = format!("more than {} MiB of files", MAX_SIZE >> 20);
            BundleError::TooLarge { what }
        })?;
    }
    Ok(())
}

/// Creates a file that does not exist yet.
fn create(path: &Path, is_executable: bool) -> Result<File, BundleError> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(BundleError::of_file("make", parent))?;
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(if is_executable { 0o755 } else { 0o644 });
    }
    #[cfg(not(unix))]
    let _ = is_executable;
    options
        .open(path)
        .map_err(BundleError::of_file("create", path))
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::io::{Cursor, Write as _};
    use std::os::unix::fs::PermissionsExt as _;

    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;
    use crate::Archive;

    fn hostile(write: impl FnOnce(&mut ZipWriter<Cursor<Vec<u8>>>)) -> Cursor<Vec<u8>> {
        let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
        write(&mut archive);
        archive.finish().unwrap()
    }

    #[track_caller]
    fn check_refusal(archive: Cursor<Vec<u8>>, reason: &str) {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("inner");
        fs::create_dir(&directory).unwrap();
        let error = unpack(archive, &directory).unwrap_err();
        assert!(error.to_string().contains(reason), "{error}");
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 1);
    }

    #[test]
    fn entries_that_leave_the_directory_are_refused() {
        for path in [
            "../evil",
            "/tmp/evil",
            "a/../../evil",
            "a\\..\\..\\evil",
            "C:\\evil",
        ] {
            let archive = hostile(|archive| {
                archive
                    .start_file(path, SimpleFileOptions::default())
                    .unwrap();
                archive.write_all(b"evil").unwrap();
            });
            check_refusal(archive, "use the path `");
        }
    }

    #[test]
    fn links_in_an_archive_are_refused() {
        let archive = hostile(|archive| {
            let options = SimpleFileOptions::default();
            archive.add_symlink("out", "/", options).unwrap();
            archive.start_file("out/evil", options).unwrap();
        });
        check_refusal(archive, "it is a link");
    }

    #[test]
    fn other_bytes_are_no_archive() {
        check_refusal(Cursor::new(b"#!/bin/sh\n".to_vec()), "handle the archive");
    }

    #[test]
    fn files_come_back_with_their_execute_permission() {
        let directory = tempfile::tempdir().unwrap();
        let tool = directory.path().join("tool");
        fs::write(&tool, "#!/bin/sh\n").unwrap();
        let mut archive = Archive::default();
        archive.add_file("scripts/tool", &tool, true).unwrap();
        archive.add_bytes("scripts/lib.sh", "x=1\n").unwrap();
        let mut bytes = Cursor::new(Vec::new());
        archive.write(&mut bytes).unwrap();
        let unpacked = directory.path().join("unpacked");
        fs::create_dir(&unpacked).unwrap();
        unpack(&mut bytes, &unpacked).unwrap();
        let is_executable = |name: &str| {
            let file = unpacked.join(name).metadata().unwrap();
            file.permissions().mode() & 0o100 != 0
        };
        assert!(is_executable("scripts/tool") && !is_executable("scripts/lib.sh"));
        // A second time nothing is replaced.
        assert!(unpack(&mut bytes, &unpacked).is_err());
    }
}
