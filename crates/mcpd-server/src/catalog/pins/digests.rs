//! SHA-256 digests of files, cached by their fingerprints: a file that has not changed is not read
//! again.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use sha2::{Digest as _, Sha256};

use crate::script::fingerprint::Fingerprint;
use crate::support::random_id::hex;
use crate::support::regular_file;
use crate::support::sync::lock;

/// Digests of files that were read before.
#[derive(Debug, Default)]
pub(crate) struct FileDigests(Mutex<BTreeMap<PathBuf, Known>>);

/// Digest of a file as it was once.
#[derive(Debug)]
struct Known {
    fingerprint: Fingerprint,
    digest: Arc<str>,
    /// Tells whether every later change has another fingerprint.
    is_settled: bool,
}

impl FileDigests {
    /// Returns the digest of the file at `path`, or of the target of a link. Blocks.
    ///
    /// # Errors
    ///
    /// Fails if it is no readable regular file, or is being written.
    pub(crate) fn digest(&self, path: &Path) -> io::Result<Arc<str>> {
        let fingerprint = Fingerprint::of(&path.metadata()?);
        if let Some(known) = lock(&self.0).get(path)
            && known.is_settled
            && known.fingerprint == fingerprint
        {
            return Ok(Arc::clone(&known.digest));
        }
        let file = regular_file::open(path)?;
        let mut file = file.ok_or_else(|| io::Error::other("not a regular file"))?;
        let before = Fingerprint::of(&file.metadata()?);
        let now = SystemTime::now();
        let hash = hash(&mut file)?;
        if Fingerprint::of(&file.metadata()?) != before {
            return Err(io::Error::other("it is being written"));
        }
        let known = Known {
            fingerprint: before,
            digest: hash.into(),
            is_settled: before.is_settled(now),
        };
        let digest = Arc::clone(&known.digest);
        lock(&self.0).insert(path.to_owned(), known);
        Ok(digest)
    }
}

impl FileDigests {
    /// Returns the digest of several files together, which for one file is its own.
    ///
    /// # Errors
    ///
    /// See [`digest`](Self::digest).
    pub(crate) fn digest_together<'a>(
        &self,
        files: impl IntoIterator<Item = &'a Path>,
    ) -> io::Result<String> {
        let digests: io::Result<Vec<_>> = files.into_iter().map(|file| self.digest(file)).collect();
        Ok(match &digests?[..] {
            [digest] => digest.to_string(),
            digests => hex(&Sha256::digest(digests.join("\n"))),
        })
    }
}

fn hash(file: &mut File) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut part = vec![0; 64 << 10];
    loop {
        match file.read(&mut part)? {
            0 => return Ok(hex(&hash.finalize())),
            length => hash.update(&part[..length]),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn changed_file_of_the_same_size_has_another_digest() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        let digests = FileDigests::default();
        fs::write(&file, "a").unwrap();
        let first = digests.digest(&file).unwrap();
        assert_eq!(*first, hex(&Sha256::digest("a")));
        // Within the resolution of the clock, so the fingerprint may be the same.
        fs::write(&file, "b").unwrap();
        assert_ne!(digests.digest(&file).unwrap(), first);
        fs::write(&file, "a").unwrap();
        assert_eq!(digests.digest(&file).unwrap(), first);
        assert!(digests.digest(directory.path()).is_err());
    }
}
