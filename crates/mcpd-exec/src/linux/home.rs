//! Contents of home directories: the entries that programs keep there, and the targets of links
//! among them.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::path_watch::PathWatch;
use crate::sandbox::Sandbox;
use crate::sandbox::homes::{is_kept_by_program, is_system, moved_directories};

/// Homes of a sandbox, without links.
#[derive(Debug, Default)]
pub(crate) struct Homes {
    places: BTreeSet<PathBuf>,
    /// Entries that are no links, and the targets of those that are.
    kept: BTreeSet<PathBuf>,
}

impl Homes {
    /// Resolves the homes of `sandbox`.
    ///
    /// # Errors
    ///
    /// A resource is exhausted.
    pub(crate) fn of(sandbox: &Sandbox, watch: &mut PathWatch) -> io::Result<Self> {
        let mut homes = Self::default();
        for home in &sandbox.homes {
            homes.places.extend(watch.find(home)?);
        }
        for directory in moved_directories() {
            homes.kept.extend(watch.find(directory)?);
        }
        Ok(homes)
    }

    /// Lists the homes that are not hidden as a whole.
    ///
    /// # Errors
    ///
    /// A resource is exhausted.
    pub(crate) fn look_into(
        &mut self,
        is_open: impl Fn(&Path) -> bool,
        watch: &mut PathWatch,
    ) -> io::Result<()> {
        let mut links = Vec::new();
        for home in self.places.iter().filter(|home| is_open(home)) {
            // A new entry must be hidden from the next run.
            watch.watch_whole(home);
            let Ok(entries) = fs::read_dir(home) else {
                // A directory that can't be listed can't be hidden entry by entry.
                self.kept.insert(home.clone());
                continue;
            };
            for entry in entries.flatten() {
                if !is_kept_by_program(&entry.file_name()) {
                    continue;
                }
                match entry.file_type() {
                    Ok(kind) if kind.is_symlink() => links.push(entry.path()),
                    _ => drop(self.kept.insert(entry.path())),
                }
            }
        }
        for link in links {
            let place = watch.find(&link)?;
            self.kept.extend(place.filter(|place| self.is_own(place)));
        }
        Ok(())
    }

    /// Returns whether the target of a link belongs to the home: it does unless it is of the
    /// system, a directory above a home, or inside another entry, which is judged by its own
    /// name.
    fn is_own(&self, place: &Path) -> bool {
        let is_apart = |home: &PathBuf| match place.strip_prefix(home) {
            Ok(entry) => {
                let entry = entry.components().next();
                entry.is_some_and(|entry| !is_kept_by_program(entry.as_os_str()))
            }
            Err(_) => !home.starts_with(place),
        };
        !is_system(place) && self.places.iter().all(is_apart)
    }

    pub(crate) fn places(&self) -> impl Iterator<Item = &PathBuf> {
        self.places.iter()
    }

    /// Paths that are hidden unless an entry makes them readable.
    pub(crate) fn kept_paths(&self) -> impl Iterator<Item = &PathBuf> {
        self.kept.iter()
    }
}
