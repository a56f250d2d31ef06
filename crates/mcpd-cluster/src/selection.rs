//! Selection of the served version of each script, while workers have different ones. Pure: the
//! caller brings the catalogues and the time.
//!
//! The version that more workers have is served, and the one that was served stays until another
//! has more. A path that no worker has is gone after [`GONE_AFTER`].

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::presence::Moment;

/// Time after which a path that no worker has is not served any more.
const GONE_AFTER: Duration = Duration::from_secs(10);

/// Served version of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Served {
    version: Arc<str>,
    /// Time at which a worker was last seen to have the path.
    seen: Moment,
}

/// Served versions by path.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    served: BTreeMap<String, Served>,
}

impl Selection {
    /// Applies the scripts of all workers: path, version, and the number of workers that have it,
    /// in any number of parts. Returns whether the selection has changed.
    pub(crate) fn update<'a>(
        &mut self,
        now: Moment,
        scripts: impl Iterator<Item = (&'a str, &'a Arc<str>, usize)>,
    ) -> bool {
        let mut votes: BTreeMap<&str, BTreeMap<&Arc<str>, usize>> = BTreeMap::new();
        for (path, version, workers) in scripts {
            let count = votes.entry(path).or_default().entry(version).or_default();
            *count += workers;
        }
        let before = self.served.len();
        self.served.retain(|path, served| {
            votes.contains_key(&**path) || now.saturating_sub(served.seen) < GONE_AFTER
        });
        let mut has_changed = self.served.len() != before;
        for (path, versions) in votes {
            has_changed |= self.elect(now, path, &versions);
        }
        has_changed
    }

    fn elect(&mut self, now: Moment, path: &str, versions: &BTreeMap<&Arc<str>, usize>) -> bool {
        let most = versions.iter().max_by_key(|(_, count)| **count);
        let Some((best, most)) = most else {
            return false;
        };
        let Some(served) = self.served.get_mut(path) else {
            let served = Served {
                version: Arc::clone(best),
                seen: now,
            };
            self.served.insert(path.to_owned(), served);
            return true;
        };
        served.seen = now;
        let own = versions.get(&served.version).copied().unwrap_or_default();
        let is_outvoted = own < *most;
        if is_outvoted {
            served.version = Arc::clone(best);
        }
        is_outvoted
    }

    /// Returns path and version of every served script.
    pub(crate) fn served(&self) -> impl Iterator<Item = (&str, &Arc<str>)> {
        let served = self.served.iter();
        served.map(|(path, served)| (&**path, &served.version))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Applies versions of one path at a second. Returns the served one.
    fn apply(selection: &mut Selection, second: u64, versions: &[&str]) -> Option<String> {
        let versions: Vec<Arc<str>> = versions.iter().map(|one| Arc::from(*one)).collect();
        let scripts = versions.iter().map(|version| ("a", version, 1));
        selection.update(Duration::from_secs(second), scripts);
        let mut served = selection.served();
        served.next().map(|(_, version)| version.to_string())
    }

    #[test]
    fn majority_is_served_and_a_tie_changes_nothing() {
        let mut selection = Selection::default();
        let mut check = |second, versions: &[&str], expected: Option<&str>| {
            let served = apply(&mut selection, second, versions);
            assert_eq!(served.as_deref(), expected, "{versions:?}");
        };
        check(0, &["1", "1"], Some("1"));
        check(1, &["1", "2"], Some("1"));
        check(2, &["2", "2"], Some("2"));
        // Flapping of one of two workers changes nothing.
        check(3, &["1", "2"], Some("2"));
        check(4, &["2", "2"], Some("2"));
        check(5, &["1", "2", "1"], Some("1"));
    }

    #[test]
    fn path_is_gone_ten_seconds_after_its_last_worker() {
        let mut selection = Selection::default();
        assert_eq!(apply(&mut selection, 0, &["1"]).as_deref(), Some("1"));
        assert_eq!(apply(&mut selection, 9, &[]).as_deref(), Some("1"));
        assert_eq!(apply(&mut selection, 10, &[]), None);
    }
}
