//! Read access by path: of all entries of a sandbox for a path, the most specific one decides.

use std::path::{Path, PathBuf};

use super::{Level, Sandbox, homes};

/// Access that an entry gives to its path and everything below, ordered by precedence between
/// entries for the same path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Access {
    /// Hidden because programs keep such things for themselves.
    Kept,
    /// Readable although programs keep it for themselves.
    Shown,
    /// Hidden by name.
    Hidden,
    /// Readable or writable by name.
    Declared,
}

/// Entry for some path, with its depth.
type ViewEntry = (usize, Access, PathBuf);

impl Sandbox {
    /// Returns what keeps a process from reading `path`, as far as names tell: the hidden path
    /// that contains it, or the entry of a home.
    #[must_use]
    pub fn hidden_by(&self, path: &Path) -> Option<PathBuf> {
        let (_, word, entry) = self.deciding_entry(path)?;
        matches!(word, Access::Kept | Access::Hidden).then_some(entry)
    }

    /// Returns whether `path` is hidden only because programs keep such things for themselves. If
    /// a run needs it, it is readable.
    pub(crate) fn keeps(&self, path: &Path) -> bool {
        // Every run checks its own paths, and most of them are in nothing that is kept.
        if self.kept_entry(path).is_none() {
            return false;
        }
        let entry = self.deciding_entry(path);
        entry.is_some_and(|(_, word, _)| word == Access::Kept)
    }

    /// Paths in homes that can be read by default: none at `strict`.
    #[must_use]
    pub fn readable_in_homes(&self) -> Vec<PathBuf> {
        match self.level {
            Level::Guarded => homes::readable_paths(&self.homes),
            _ => Vec::new(),
        }
    }

    /// Number of names in the innermost kept entry on the way to `path`.
    pub(super) fn kept_depth(&self, path: &Path) -> Option<usize> {
        self.kept_entry(path).map(|(depth, ..)| depth)
    }

    fn deciding_entry(&self, path: &Path) -> Option<ViewEntry> {
        if self.level == Level::None {
            return None;
        }
        let named = |entries: &[PathBuf], word| deepest(entries, path, word);
        let kept = self.kept_entry(path);
        // Iterating over all shown paths is worth it only inside a kept entry.
        let shown = kept
            .as_ref()
            .and_then(|_| named(&self.readable_in_homes(), Access::Shown));
        let entries = [
            kept,
            shown,
            named(&self.hidden, Access::Hidden),
            named(&self.read, Access::Declared),
            named(&self.write, Access::Declared),
        ];
        entries.into_iter().flatten().max()
    }

    /// Returns the innermost entry on the way to `path` that programs keep for themselves.
    fn kept_entry(&self, path: &Path) -> Option<ViewEntry> {
        let within = self.homes.iter().filter_map(|home| {
            let entry = path.strip_prefix(home).ok()?.components().next();
            match entry {
                Some(entry) if homes::is_kept_by_program(entry.as_os_str()) => {
                    Some(home.join(entry))
                }
                _ => (self.level == Level::Strict).then(|| home.clone()),
            }
        });
        let moved = homes::moved_directories();
        let moved = moved.filter(|moved| path.starts_with(moved)).cloned();
        let entries = within.chain(moved);
        entries
            .map(|entry| (depth(&entry), Access::Kept, entry))
            .max()
    }
}

fn deepest(entries: &[PathBuf], path: &Path, word: Access) -> Option<ViewEntry> {
    let above = entries.iter().filter(|entry| path.starts_with(entry));
    let deepest = above.max_by_key(|entry| depth(entry))?;
    Some((depth(deepest), word, deepest.clone()))
}

fn depth(path: &Path) -> usize {
    path.components().count()
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    fn sandbox(level: Level) -> Sandbox {
        let mut sandbox = Sandbox::none();
        sandbox.level = level;
        sandbox.homes = vec!["/home/ann".into()];
        sandbox.hide("/home/ann/.cargo/credentials").hide("/vault")
    }

    #[track_caller]
    fn check(sandbox: &Sandbox, path: &str, hidden_by: Option<&str>) {
        let found = sandbox.hidden_by(Path::new(path));
        assert_eq!(found.as_deref(), hidden_by.map(Path::new), "{path}");
    }

    #[test]
    fn home_at_guarded_shows_all_but_kept_entries() {
        let sandbox = sandbox(Level::Guarded);
        for path in [
            "/home/ann",
            "/home/ann/notes/.git/config",
            "/home/ann/.cargo/bin/x",
            "/home/ann/.gitconfig",
            "/home/ann/.config/git/ignore",
            "/home/bob/.foo",
        ] {
            check(&sandbox, path, None);
        }
        for (path, by) in [
            ("/home/ann/.foo/x", "/home/ann/.foo"),
            ("/home/ann/snap/x", "/home/ann/snap"),
            ("/home/ann/.config/x", "/home/ann/.config"),
            (
                "/home/ann/.cargo/credentials",
                "/home/ann/.cargo/credentials",
            ),
            ("/vault/x", "/vault"),
        ] {
            check(&sandbox, path, Some(by));
        }
    }

    #[test]
    fn home_at_strict_shows_declared_paths() {
        let sandbox = sandbox(Level::Strict).read("/home/ann/notes");
        check(&sandbox, "/home/ann/.cargo/bin", Some("/home/ann/.cargo"));
        check(&sandbox, "/home/ann/other", Some("/home/ann"));
        check(&sandbox, "/home/ann/notes/x", None);
    }

    #[test]
    fn declared_entries_count_before_hidden_ones_of_the_same_path() {
        let sandbox = sandbox(Level::Guarded)
            .read("/vault")
            .read("/home/ann/.foo");
        check(&sandbox, "/vault/x", None);
        check(&sandbox, "/home/ann/.foo/x", None);
        let deeper = sandbox.hide("/vault/x");
        check(&deeper, "/vault/x/y", Some("/vault/x"));
    }

    #[test]
    fn home_that_is_declared_shows_no_dot_entry() {
        let sandbox = sandbox(Level::Strict).read("/home/ann");
        check(&sandbox, "/home/ann/x", None);
        check(&sandbox, "/home/ann/.x", Some("/home/ann/.x"));
    }

    #[test]
    fn level_none_hides_nothing() {
        check(&sandbox(Level::None), "/vault", None);
    }
}
