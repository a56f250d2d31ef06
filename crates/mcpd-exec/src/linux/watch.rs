//! Paths that are looked at again and again, to know whether what was made of what they led to still holds.

use std::fs;
use std::path::{Path, PathBuf};

use super::seen::Seen;

/// What something was made of.
#[derive(Debug, Default)]
pub(crate) struct Watch(Vec<Watched>);

impl Watch {
    /// Which file or directory the path leads to counts.
    pub(crate) fn itself(&mut self, path: &Path) {
        let is_same =
            |watched: &Watched| matches!(watched.counts, Counts::Itself) && watched.path == path;
        if !self.0.iter().any(is_same) {
            self.0.push(Watched::new(path, Counts::Itself));
        }
    }

    /// What is in the directory counts.
    pub(crate) fn entries(&mut self, directory: &Path) {
        self.0.push(Watched::new(directory, Counts::Entries));
    }

    /// Whether there is something to hide at the path counts, and what it is. The directories whose entries count come
    /// before.
    pub(crate) fn hidden(&mut self, path: &Path) {
        // Nothing further down appears before the first part that is missing.
        let is_missing = |path: &&Path| !path.as_os_str().is_empty() && !path.exists();
        let missing = path.ancestors().take_while(is_missing).last();
        let path = missing.unwrap_or(path);
        // What a link leads to can appear without a change to the link.
        if path.is_symlink() {
            return self.0.push(Watched::new(path, Counts::Itself));
        }
        let tells = |watched: &Watched| match watched.counts {
            Counts::Itself => watched.path == path,
            Counts::Entries => Some(&*watched.path) == path.parent(),
            Counts::Absence(_) => false,
        };
        if self.0.iter().any(tells) {
            return;
        }
        match path.parent().filter(|parent| parent.exists()) {
            Some(parent) if missing.is_some() => self.absence(path, parent),
            _ => self.0.push(Watched::new(path, Counts::Itself)),
        }
    }

    /// Watches a path that is missing in `directory`, together with all that are missing there.
    fn absence(&mut self, path: &Path, directory: &Path) {
        for watched in &mut self.0 {
            if let Counts::Absence(paths) = &mut watched.counts
                && watched.path == directory
            {
                return paths.push(path.to_owned());
            }
        }
        let absent = Counts::Absence(vec![path.to_owned()]);
        self.0.push(Watched::new(directory, absent));
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

/// A path, and what was there.
#[derive(Debug)]
struct Watched {
    path: PathBuf,
    counts: Counts,
    seen: Option<Seen>,
    /// Another change would show.
    is_settled: bool,
}

/// What makes the difference.
#[derive(Debug)]
enum Counts {
    /// Which file or directory it is.
    Itself,
    /// What is in the directory.
    Entries,
    /// Whether one of these is in the directory. They are not looked at as long as that has not changed.
    Absence(Vec<PathBuf>),
}

impl Watched {
    fn new(path: &Path, counts: Counts) -> Self {
        let seen = seen(path);
        Self {
            path: path.to_owned(),
            counts,
            seen,
            is_settled: seen.is_none_or(Seen::is_settled),
        }
    }

    fn is_unchanged(&self) -> bool {
        let seen = seen(&self.path);
        let is_same = seen == self.seen && self.is_settled;
        match (&self.counts, seen, self.seen) {
            (Counts::Itself, Some(now), Some(then)) => now.is_same_file(then),
            (Counts::Itself, now, then) => now == then,
            (Counts::Entries, ..) => is_same,
            (Counts::Absence(paths), ..) => is_same || !paths.iter().any(|path| path.exists()),
        }
    }
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
        thread::sleep(Duration::from_millis(30));
        assert!(is_current(Watch::entries));
    }
}
