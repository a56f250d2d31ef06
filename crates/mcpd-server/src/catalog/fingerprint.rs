//! What tells one content of a file from another without reading it.

#[cfg(feature = "database")]
use std::fmt;
use std::fs::Metadata;

/// What must be equal for two sightings of a file to be the same content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fingerprint([i128; 6]);

/// The fingerprints of a file and of its sidecar, if it has one, in a form that can be stored.
#[cfg(feature = "database")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stamp(Vec<i128>);

impl Fingerprint {
    #[cfg(unix)]
    pub(crate) fn of(metadata: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt as _;
        let nanoseconds =
            |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
        Self([
            i128::from(metadata.dev()),
            i128::from(metadata.ino()),
            i128::from(metadata.size()),
            nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
            nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
            i128::from(metadata.mode()),
        ])
    }

    #[cfg(not(unix))]
    pub(crate) fn of(metadata: &Metadata) -> Self {
        let modified = metadata
            .modified()
            .ok()
            .and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
        let nanoseconds = modified.map_or(0, |since| i128::try_from(since.as_nanos()).unwrap_or(0));
        Self([0, 0, i128::from(metadata.len()), nanoseconds, 0, 0])
    }
}

#[cfg(feature = "database")]
impl Stamp {
    pub(crate) fn of(file: Fingerprint, sidecar: Option<Fingerprint>) -> Self {
        let prints = std::iter::once(file).chain(sidecar);
        Self(prints.flat_map(|print| print.0).collect())
    }

    /// What was stored; nothing if that is no stamp.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let numbers = text.split(' ').map(str::parse);
        numbers.collect::<Result<_, _>>().ok().map(Self)
    }
}

#[cfg(feature = "database")]
impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<_> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&numbers.join(" "))
    }
}

#[cfg(all(test, feature = "database"))]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_read_as_it_was_stored() {
        let file = Fingerprint([0, 1, -2, i128::from(i64::MAX) * 1_000_000_000, 4, 5]);
        for sidecar in [None, Some(Fingerprint([6; 6]))] {
            let stamp = Stamp::of(file, sidecar);
            assert_eq!(Stamp::read(&stamp.to_string()), Some(stamp));
        }
        assert_eq!(Stamp::read("what another version wrote"), None);
    }
}
