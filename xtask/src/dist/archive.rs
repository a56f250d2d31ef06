//! Reproducible archives: sorted files, one time, owner root, and no trace of the machine.

use std::collections::BTreeSet;
use std::io::Write as _;

use flate2::write::GzEncoder;
use flate2::{Compression, GzBuilder};
use tar::{EntryType, Header};

/// File of a package.
#[derive(Debug, Clone)]
pub(crate) struct PackageFile {
    /// Path below the root of the package; that of a directory ends with `/`.
    pub(crate) path: String,
    pub(crate) mode: u32,
    pub(crate) bytes: Vec<u8>,
}

impl PackageFile {
    /// Returns a file that everyone may read.
    pub(crate) fn data(path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            path: path.into(),
            mode: 0o644,
            bytes: bytes.into(),
        }
    }

    /// Returns a file that everyone may run.
    pub(crate) fn program(path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            mode: 0o755,
            ..Self::data(path, bytes)
        }
    }

    /// Returns an empty directory.
    pub(crate) fn directory(path: &str) -> Self {
        Self::program(format!("{path}/"), Vec::new())
    }

    pub(crate) fn is_directory(&self) -> bool {
        self.path.ends_with('/')
    }
}

/// Returns the directories above these files, each once and parents first.
pub(crate) fn parents(files: &[PackageFile]) -> Vec<PackageFile> {
    let all = files.iter().flat_map(|file| {
        let path = file.path.trim_end_matches('/');
        path.match_indices('/').map(|(end, _)| &path[..end])
    });
    let all: BTreeSet<_> = all.collect();
    all.into_iter().map(PackageFile::directory).collect()
}

/// Makes a `.tar.gz` of these files, in the order of their paths.
///
/// # Errors
///
/// Fails if a path is too long.
pub(crate) fn tar_gz(mut files: Vec<PackageFile>, time: u64) -> anyhow::Result<Vec<u8>> {
    files.sort_by(|one, other| one.path.cmp(&other.path));
    let mut archive = tar::Builder::new(gzip_writer());
    for file in &files {
        let mut header = Header::new_ustar();
        if file.is_directory() {
            header.set_entry_type(EntryType::Directory);
        }
        header.set_mode(file.mode);
        header.set_uid(0);
        header.set_gid(0);
        header.set_username("root")?;
        header.set_groupname("root")?;
        header.set_mtime(time);
        header.set_size(u64::try_from(file.bytes.len())?);
        archive.append_data(&mut header, &file.path, file.bytes.as_slice())?;
    }
    Ok(archive.into_inner()?.finish()?)
}

/// Compresses a file of a package, at the level that Debian wants.
///
/// # Errors
///
/// Never: the bytes stay in memory.
pub(crate) fn gzip(bytes: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut writer = GzBuilder::new().write(Vec::new(), Compression::best());
    writer.write_all(bytes)?;
    Ok(writer.finish()?)
}

/// Returns a writer without a time or a file name in its header.
fn gzip_writer() -> GzEncoder<Vec<u8>> {
    GzBuilder::new().write(Vec::new(), Compression::default())
}
