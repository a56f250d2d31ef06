//! Where the paths lead that a process may write, and those that it may read although they are
//! hidden.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::watch::Watch;
use crate::sandbox::Sandbox;

/// What a process may write.
#[derive(Debug)]
pub(crate) struct Writable {
    /// Each path, and where it leads, without links.
    pub(crate) places: Vec<(PathBuf, PathBuf)>,
    /// What was to be writable and is not, each as a sentence.
    pub(crate) skipped: Vec<String>,
}

impl Writable {
    /// What `sandbox` allows, and the directory for temporary files, which has no links on its way. It may be that `others` can be
    /// written as well.
    ///
    /// Whoever may write a directory may put a link into it. If such a link was followed, the next process could write wherever
    /// this one wanted it to.
    ///
    /// # Errors
    ///
    /// Something is short.
    pub(crate) fn of(
        sandbox: &Sandbox,
        temporary: Option<&Path>,
        others: &[PathBuf],
        watch: &mut Watch,
    ) -> io::Result<Self> {
        let write = sandbox.write.iter().map(|path| (&**path, sandbox.resolved));
        let temporary = temporary.map(|path| (path, true));
        let (mut found, mut skipped) = (Vec::new(), Vec::new());
        for (path, is_resolved) in write.chain(temporary) {
            let mut links = Vec::new();
            match watch.follow(path, &mut links) {
                Ok(place) => {
                    // It may be mounted as soon as somebody looks into it.
                    fs::metadata(&place).ok();
                    found.push((path, is_resolved, place, links));
                }
                Err(lost) => {
                    lost.obstacle()?;
                    let path = path.display();
                    skipped.push(format!("`{path}` {lost}, so it can't be written"));
                }
            }
        }
        let places = found.iter().map(|(_, _, place, _)| place.clone());
        let places: Vec<_> = places.chain(others.iter().cloned()).collect();
        let is_written = |link: &PathBuf| places.iter().any(|place| link.starts_with(place));
        found.retain(|(path, is_resolved, _, links)| {
            let planted = links.iter().find(|link| *is_resolved || is_written(link));
            let Some(link) = planted else { return true };
            let (path, link) = (path.display(), link.display());
            skipped.push(format!(
                "`{path}` leads through the link `{link}`, which a process may have made, so it can't be written: \
                 name what it leads to"
            ));
            false
        });
        let places = found
            .into_iter()
            .map(|(path, _, place, _)| (path.to_owned(), place));
        Ok(Self {
            places: places.collect(),
            skipped,
        })
    }
}

/// Places that can be read although they, or something above them, are hidden.
#[derive(Debug, Default)]
pub(crate) struct Readable {
    /// Shown by default, or needed by the run: readable unless they are hidden by name.
    pub(crate) shown: Vec<PathBuf>,
    /// Readable by name: each path, and where it leads.
    pub(crate) declared: Vec<(PathBuf, PathBuf)>,
    /// Paths that were to be readable and are not, each as a sentence.
    pub(crate) skipped: Vec<String>,
}

impl Readable {
    /// Places of a sandbox for a run that needs the paths in `needed`, where others are `written`:
    /// no link in these is followed, as a process may have made it.
    ///
    /// # Errors
    ///
    /// Something is short.
    pub(crate) fn of(
        sandbox: &Sandbox,
        needed: &[&Path],
        written: &[PathBuf],
        watch: &mut Watch,
    ) -> io::Result<Self> {
        let mut readable = Self::default();
        let shown = sandbox.shown();
        let shown = shown.iter().map(PathBuf::as_path);
        for path in shown.chain(needed.iter().copied()) {
            if let Ok(place) = lead(path, written, watch)? {
                readable.shown.push(place);
            }
        }
        for path in &sandbox.read {
            match lead(path, written, watch)? {
                Ok(place) => readable.declared.push((path.clone(), place)),
                Err(None) => {}
                Err(Some(link)) => {
                    let (path, link) = (path.display(), link.display());
                    readable.skipped.push(format!(
                        "`{path}` leads through the link `{link}`, which a process may have made, so it stays hidden: \
                         name what it leads to"
                    ));
                }
            }
        }
        Ok(readable)
    }
}

/// Where a path leads, or which link in what is `written` it leads through, if it leads anywhere.
///
/// # Errors
///
/// Something is short.
pub(crate) fn lead(
    path: &Path,
    written: &[PathBuf],
    watch: &mut Watch,
) -> io::Result<Result<PathBuf, Option<PathBuf>>> {
    let mut links = Vec::new();
    let place = match watch.follow(path, &mut links) {
        Ok(place) => place,
        Err(lost) => return lost.obstacle().map(|_| Err(None)),
    };
    let is_written = |link: &PathBuf| written.iter().any(|place| link.starts_with(place));
    Ok(match links.into_iter().find(is_written) {
        Some(link) => Err(Some(link)),
        None => Ok(place),
    })
}
