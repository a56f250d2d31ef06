//! Examination of scripts: a scan of directories and single files that trusts no cache, with the
//! settings that they would be served with.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mcpd_exec::Limits;
use mcpd_server::catalog::pins::Locked;
use mcpd_server::catalog::scan::{Scan, Scanner, UnusableFile};
use mcpd_server::{Catalog, Interpreters};

use crate::file::File;
use crate::options::Confinement;
use crate::server::{execution_settings, executor};

/// Scan of directories and files, before it begins.
#[derive(Debug)]
pub struct Examination {
    scanner: Scanner,
    unreadable: Vec<UnusableFile>,
}

impl Examination {
    /// Prepares the examination of `paths`, with the configured interpreters as changed by `adapt`.
    /// If it `is_static`, nothing runs.
    ///
    /// # Errors
    ///
    /// A faulty value in the file, with its place, or a system that runs no processes.
    pub async fn prepare(
        paths: &[PathBuf],
        confinement: &Confinement,
        file: &File,
        is_static: bool,
        adapt: fn(Interpreters) -> Interpreters,
    ) -> anyhow::Result<Self> {
        let (mut roots, mut unreadable) = (Vec::new(), Vec::new());
        for path in paths {
            match canonical(path) {
                Ok(root) if roots.contains(&root) => {}
                Ok(root) => roots.push(root),
                Err(error) => {
                    unreadable.push(UnusableFile::new(path, format!("not readable: {error}")));
                }
            }
        }
        let executor = executor(None, confinement.cgroup.as_deref())?;
        // Programs may print secrets, so the policy needs an executor.
        let runner = (!is_static).then_some(&executor);
        let running = execution_settings(file, confinement, Limits::default(), runner).await?;
        // Every script is probed: the cache may be out of date on this machine.
        let scanner = Scanner::new(executor, running.policy, adapt(running.interpreters), roots);
        let mut scanner = scanner.thorough();
        if is_static {
            scanner = scanner.static_only();
        }
        Ok(Self {
            scanner,
            unreadable,
        })
    }

    /// Holds back what is not approved.
    #[must_use]
    pub fn locked(self, locked: Locked) -> Self {
        Self {
            scanner: self.scanner.locked(Arc::new(locked)),
            ..self
        }
    }

    /// Scans, and returns all that was found: each script once, with its faults.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends all processes.
    pub async fn run(mut self) -> Catalog {
        let mut scan = self.scanner.scan().await;
        keep_each_once(&mut scan);
        scan.unusable.extend(self.unreadable);
        Catalog::from(scan)
    }
}

/// Removes duplicates of scripts that two of the paths contain, such as a
/// directory and a file in it.
fn keep_each_once(scan: &mut Scan) {
    let (mut roots, mut seen) = (BTreeMap::new(), BTreeMap::<_, Vec<_>>::new());
    scan.scripts.retain(|script| {
        let file = script.file.canonicalize();
        let file = file.unwrap_or_else(|_| script.file.clone());
        // A root may well have several tools in one file.
        let root = roots.entry(file.clone()).or_insert(script.root.clone());
        // The faults of the second distinguish two scripts with one name.
        let faults = seen.entry((file, script.path.clone())).or_default();
        let is_news = !faults.contains(&script.diagnostics);
        if is_news {
            faults.push(script.diagnostics.clone());
        }
        *root == script.root && is_news
    });
    for files in [&mut scan.unusable, &mut scan.overlooked] {
        let mut seen = BTreeSet::new();
        files.retain(|file| seen.insert(file.file.clone()));
    }
    let mut seen = BTreeSet::new();
    (scan.passed_over).retain(|passed| seen.insert(passed.file.clone()));
}

/// Resolves a path, and checks that it can be read.
///
/// # Errors
///
/// It can't, or is neither a file nor a directory.
pub fn canonical(path: &Path) -> io::Result<PathBuf> {
    let path = path.canonicalize()?;
    if path.is_dir() {
        std::fs::read_dir(&path)?;
    } else if !path.is_file() {
        return Err(io::Error::other("neither a file nor a directory"));
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_resolves_to_a_file_or_a_directory() {
        for path in [".", "Cargo.toml"] {
            assert!(canonical(Path::new(path)).is_ok(), "{path}");
        }
        let error = canonical(Path::new("gone")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        if cfg!(unix) {
            let error = canonical(Path::new("/dev/null")).unwrap_err();
            assert_eq!(error.to_string(), "neither a file nor a directory");
        }
    }
}
