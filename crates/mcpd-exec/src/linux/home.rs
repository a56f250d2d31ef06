//! Homes as they are found: which entries programs keep in them, and where those lead that are
//! links.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::watch::Watch;
use crate::sandbox::Sandbox;
use crate::sandbox::homes::{is_kept_by_program, is_system, moved_directories};

/// Homes of a sandbox, without links.
#[derive(Debug, Default)]
pub(crate) struct Homes {
    places: BTreeSet<PathBuf>,
    /// Entries that are no links, and places that links among the entries lead to.
    kept: BTreeSet<PathBuf>,
}

impl Homes {
    /// Looks at the homes of `sandbox`.
    ///
    /// # Errors
    ///
    /// Something is short.
    pub(crate) fn of(sandbox: &Sandbox, watch: &mut Watch) -> io::Result<Self> {
        let mut homes = Self::default();
        for home in &sandbox.homes {
            homes.places.extend(watch.find(home)?);
        }
        for directory in moved_directories() {
            homes.kept.extend(watch.find(directory)?);
        }
        Ok(homes)
    }

    /// Looks into those that are not hidden as a whole.
    ///
    /// # Errors
    ///
    /// Something is short.
    pub(crate) fn look_into(
        &mut self,
        is_open: impl Fn(&Path) -> bool,
        watch: &mut Watch,
    ) -> io::Result<()> {
        let mut links = Vec::new();
        for home in self.places.iter().filter(|home| is_open(home)) {
            // Another entry is hidden from the next run.
            watch.whole(home);
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

    /// Returns whether a link among the entries of a home leads to something that belongs to the home: not
    /// to the system, not to what a home is in, and not into another entry, which is judged by its
    /// own name.
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

    /// Paths that are hidden unless an entry says that they can be read.
    pub(crate) fn kept(&self) -> impl Iterator<Item = &PathBuf> {
        self.kept.iter()
    }
}
