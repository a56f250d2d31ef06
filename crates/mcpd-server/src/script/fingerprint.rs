//! Fingerprints of files: metadata by which a change of the content is detected without reading it.

#[cfg(feature = "database")]
use std::fmt;
use std::fs::Metadata;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Metadata that must be equal for two observations of a file to have the same content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fingerprint([i64; 8]);

/// Fingerprints of a file and of its sidecar, if it has one, in a form that can be stored.
#[cfg(feature = "database")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileStamp {
    file: Fingerprint,
    sidecar: Option<Fingerprint>,
}

impl Fingerprint {
    #[cfg(unix)]
    pub(crate) fn of(metadata: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt as _;
        Self([
            metadata.dev().cast_signed(),
            metadata.ino().cast_signed(),
            metadata.size().cast_signed(),
            metadata.mtime(),
            metadata.mtime_nsec(),
            metadata.ctime(),
            metadata.ctime_nsec(),
            metadata.mode().into(),
        ])
    }

    #[cfg(not(unix))]
    pub(crate) fn of(metadata: &Metadata) -> Self {
        let modified = metadata
            .modified()
            .ok()
            .and_then(|at| at.duration_since(UNIX_EPOCH).ok())
            .unwrap_or_default();
        let size = metadata.len().cast_signed();
        let seconds = modified.as_secs().cast_signed();
        Self([0, 0, size, seconds, modified.subsec_nanos().into(), 0, 0, 0])
    }

    /// Returns whether a later change would have another fingerprint. One within the resolution of
    /// the file system's clock would not.
    pub(crate) fn is_settled(&self, now: SystemTime) -> bool {
        /// Upper bound of that resolution.
        const RESOLUTION: Duration = Duration::from_secs(2);
        let [seconds, nanoseconds] = match cfg!(unix) {
            true => [self.0[5], self.0[6]],
            false => [self.0[3], self.0[4]],
        };
        let changed = Duration::new(
            seconds.try_into().unwrap_or_default(),
            nanoseconds.try_into().unwrap_or_default(),
        );
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        changed + RESOLUTION < now
    }
}

#[cfg(feature = "database")]
impl FileStamp {
    pub(crate) fn of(file: Fingerprint, sidecar: Option<Fingerprint>) -> Self {
        Self { file, sidecar }
    }

    /// Returns whether `text` is the stored form of this stamp. Parsing numbers is faster than
    /// formatting them.
    pub(crate) fn matches_text(&self, text: &str) -> bool {
        text.split(' ').map(str::parse).eq(self.numbers().map(Ok))
    }

    fn numbers(&self) -> impl Iterator<Item = i64> {
        let sidecar = self.sidecar.iter().flat_map(|sidecar| sidecar.0);
        self.file.0.into_iter().chain(sidecar)
    }
}

#[cfg(feature = "database")]
impl fmt::Display for FileStamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<_> = self.numbers().map(|number| number.to_string()).collect();
        f.write_str(&numbers.join(" "))
    }
}

#[cfg(all(test, feature = "database"))]
mod tests {
    use super::*;

    #[test]
    fn file_stamp_matches_its_stored_form_only() {
        let file = Fingerprint([0, 1, -2, i64::MAX, i64::MIN, 5, 6, 7]);
        let stamps = [None, Some(file), Some(Fingerprint([6; 8]))]
            .map(|sidecar| FileStamp::of(file, sidecar));
        for (number, stamp) in stamps.iter().enumerate() {
            let stored = stamps.map(|other| stamp.matches_text(&other.to_string()));
            assert_eq!(stored.iter().position(|is| *is), Some(number));
            assert_eq!(stored.iter().filter(|is| **is).count(), 1);
        }
        assert!(!stamps[0].matches_text("what another version wrote"));
    }
}
