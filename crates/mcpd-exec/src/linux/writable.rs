//! Where the paths lead that a process may write.

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
