//! Targets of the paths that a process may write, and of those that it may read although they are
//! hidden.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::path_watch::PathWatch;
use crate::sandbox::Sandbox;

/// Paths that a process may write.
#[derive(Debug)]
pub(crate) struct Writable {
    /// Each path with its target, without links.
    pub(crate) places: Vec<(PathBuf, PathBuf)>,
    /// Paths that were to be writable and are not, each as a sentence.
    pub(crate) skipped: Vec<String>,
}

impl Writable {
    /// Resolves the writable paths of `sandbox` and the directory for temporary files, whose path
    /// has no links. The places in `others` are writable as well.
    ///
    /// A process that may write a directory may plant a link in it. If that link were followed,
    /// the process could open any place of its choice to the next one.
    ///
    /// # Errors
    ///
    /// A resource is exhausted.
    pub(crate) fn of(
        sandbox: &Sandbox,
        temporary: Option<&Path>,
        others: &[PathBuf],
        watch: &mut PathWatch,
    ) -> io::Result<Self> {
        let write = sandbox.write.iter().map(|path| (&**path, sandbox.resolved));
        let temporary = temporary.map(|path| (path, true));
        let (mut found, mut skipped) = (Vec::new(), Vec::new());
        for (path, is_resolved) in write.chain(temporary) {
            let mut links = Vec::new();
            match watch.follow(path, &mut links) {
                Ok(place) => {
                    // Look into it, as it may be an automount.
                    fs::metadata(&place).ok();
                    found.push((path, is_resolved, place, links));
                }
                Err(lost) => {
                    lost.obstacle()?;
                    let path = path.display();
                    skipped.push(format!("`{path}` {lost}, so it is not writable"));
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
                "`{path}` leads through the link `{link}`, which a process may have created, so it is not writable; name the target of the link instead"
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

/// Places that can be read although they, or a directory above them, are hidden.
#[derive(Debug, Default)]
pub(crate) struct Readable {
    /// Shown by default, or needed by the run: readable unless they are hidden by name.
    pub(crate) shown: Vec<PathBuf>,
    /// Readable by name: each path with its target.
    pub(crate) declared: Vec<(PathBuf, PathBuf)>,
    /// Paths that were to be readable and are not, each as a sentence.
    pub(crate) skipped: Vec<String>,
}

impl Readable {
    /// Resolves the readable places of a sandbox for a run that needs the paths in `needed`.
    /// Links in `written` places are not followed, as a process may have planted them.
    ///
    /// # Errors
    ///
    /// A resource is exhausted.
    pub(crate) fn of(
        sandbox: &Sandbox,
        needed: &[&Path],
        written: &[PathBuf],
        watch: &mut PathWatch,
    ) -> io::Result<Self> {
        let mut readable = Self::default();
        let shown = sandbox.readable_in_homes();
        let shown = shown.iter().map(PathBuf::as_path);
        for path in shown.chain(needed.iter().copied()) {
            if let Ok(place) = resolve_target(path, written, watch)? {
                readable.shown.push(place);
            }
        }
        for path in &sandbox.read {
            match resolve_target(path, written, watch)? {
                Ok(place) => readable.declared.push((path.clone(), place)),
                Err(None) => {}
                Err(Some(link)) => {
                    let (path, link) = (path.display(), link.display());
                    readable.skipped.push(format!(
                        "`{path}` leads through the link `{link}`, which a process may have created, so it stays hidden; name the target of the link instead"
                    ));
                }
            }
        }
        Ok(readable)
    }
}

/// Returns the target of a path, or the link in a `written` place that it leads through, if any.
/// `Err(None)` means that it leads nowhere.
///
/// # Errors
///
/// A resource is exhausted.
pub(crate) fn resolve_target(
    path: &Path,
    written: &[PathBuf],
    watch: &mut PathWatch,
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
