//! Paths that are looked at again and again, to know whether what was made of what they led to still holds.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::seen::Seen;

/// What something was made of.
#[derive(Debug, Default)]
pub(crate) struct Watch(Vec<Watched>);

impl Watch {
    /// Which file or directory the path leads to counts.
    pub(crate) fn itself(&mut self, path: &Path) {
        let is_same =
            |watched: &Watched| matches!(watched.counts, Counts::Itself(_)) && watched.path == path;
        if !self.0.iter().any(is_same) {
            self.push(path, Counts::Itself(seen(path)));
        }
    }

    /// What is in the directory counts.
    pub(crate) fn entries(&mut self, directory: &Path) {
        self.push(directory, Counts::Entries(settled(seen(directory))));
    }

    /// Whether there is something to hide at the path counts, and which file or directory it is. The directories whose
    /// entries count come before.
    pub(crate) fn hidden(&mut self, path: &Path) {
        // Nothing further down appears before the first part that is missing.
        let is_missing = |path: &&Path| !path.as_os_str().is_empty() && !path.exists();
        let path = path
            .ancestors()
            .take_while(is_missing)
            .last()
            .unwrap_or(path);
        // What a link leads to can appear without a change to the link.
        let directory = path.parent().filter(|parent| parent.exists());
        match directory.filter(|_| !path.is_symlink()) {
            Some(directory) => self.within(directory, path),
            None => self.itself(path),
        }
    }

    /// Watches a path in `directory`, together with all that are watched there.
    fn within(&mut self, directory: &Path, path: &Path) {
        let there = self
            .0
            .iter_mut()
            .filter(|watched| watched.path == directory);
        for watched in there {
            match &mut watched.counts {
                Counts::Entries(_) => return,
                Counts::Some { paths, .. } => {
                    if !paths.iter().any(|(known, _)| known == path) {
                        paths.push((path.to_owned(), seen(path)));
                    }
                    return;
                }
                Counts::Itself(_) => {}
            }
        }
        // The directory first: what happens there meanwhile has to show.
        let last = Mutex::new(settled(seen(directory)));
        let paths = vec![(path.to_owned(), seen(path))];
        self.push(directory, Counts::Some { last, paths });
    }

    fn push(&mut self, path: &Path, counts: Counts) {
        let path = path.to_owned();
        self.0.push(Watched { path, counts });
    }

    /// False once it would be made of something else.
    pub(crate) fn is_current(&self) -> bool {
        self.0.iter().all(Watched::is_unchanged)
    }

    /// The same for what is watched below a directory.
    #[cfg(test)]
    pub(crate) fn is_current_below(&self, directory: &Path) -> bool {
        let below = |watched: &&Watched| watched.path.starts_with(directory);
        self.0.iter().filter(below).all(Watched::is_unchanged)
    }
}

/// A path, and what about it makes the difference.
#[derive(Debug)]
struct Watched {
    path: PathBuf,
    counts: Counts,
}

#[derive(Debug)]
enum Counts {
    /// Which file or directory it is.
    Itself(Option<Seen>),
    /// What is in the directory, which was so when another change would have shown.
    Entries(Option<Seen>),
    /// What is at some paths in the directory. They are not looked at as long as it is as it was when they were looked at
    /// last.
    Some {
        last: Mutex<Option<Seen>>,
        paths: Vec<(PathBuf, Option<Seen>)>,
    },
}

impl Watched {
    fn is_unchanged(&self) -> bool {
        let now = seen(&self.path);
        match &self.counts {
            Counts::Itself(then) => is_same_file(now, *then),
            Counts::Entries(then) => now.is_some() && now == *then,
            Counts::Some { last, paths } => {
                let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
                if now.is_some() && now == *last {
                    return true;
                }
                let mut paths = paths.iter();
                let is_same = paths.all(|(path, then)| is_same_file(seen(path), *then));
                if is_same {
                    *last = settled(now);
                }
                is_same
            }
        }
    }
}

fn is_same_file(now: Option<Seen>, then: Option<Seen>) -> bool {
    match (now, then) {
        (Some(now), Some(then)) => now.is_same_file(then),
        (now, then) => now == then,
    }
}

/// What is remembered of a directory: nothing if it has changed so lately that another change would not show.
fn settled(seen: Option<Seen>) -> Option<Seen> {
    seen.filter(|seen| seen.is_settled())
}

/// Links are followed.
fn seen(path: &Path) -> Option<Seen> {
    fs::metadata(path).ok().map(Seen::from)
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use super::*;

    const SETTLED: Duration = Duration::from_millis(30);

    /// On older kernels what appears right after would show no later time.
    #[test]
    fn what_is_made_right_after_a_change_is_made_again() {
        let place = tempfile::tempdir().unwrap();
        let is_current = |watch: fn(&mut Watch, &Path)| {
            let mut watched = Watch::default();
            watch(&mut watched, place.path());
            watched.is_current()
        };
        // On a busy machine it may not be right after.
        assert!((0..100).any(|file: u32| {
            fs::write(place.path().join(file.to_string()), "").unwrap();
            !is_current(Watch::entries)
        }));
        assert!(is_current(Watch::itself));
        thread::sleep(SETTLED);
        assert!(is_current(Watch::entries));
    }

    #[test]
    fn what_is_beside_makes_no_difference_and_is_looked_at_once() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        fs::write(at("there"), "").unwrap();
        let mut watch = Watch::default();
        for name in ["there", "missing", "missing/further"] {
            watch.hidden(&at(name));
        }
        let last = |watch: &Watch| match &watch.0[..] {
            [
                Watched {
                    counts: Counts::Some { last, paths },
                    ..
                },
            ] if paths.len() == 2 => *last.lock().unwrap(),
            other => panic!("{other:?}"),
        };
        thread::sleep(SETTLED);
        assert!(watch.is_current());
        assert_eq!(last(&watch), seen(place.path()));

        fs::write(at("beside"), "").unwrap();
        thread::sleep(SETTLED);
        assert_ne!(last(&watch), seen(place.path()));
        assert!(watch.is_current());
        assert_eq!(last(&watch), seen(place.path()));

        fs::write(at("other"), "").unwrap();
        fs::rename(at("other"), at("there")).unwrap();
        thread::sleep(SETTLED);
        // Whoever asks.
        assert!(!watch.is_current() && !watch.is_current());
        fs::write(at("missing"), "").unwrap();
        assert!(!watch.is_current());
    }
}
