//! Directories that clients may work in.

use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Directories that the operator allows clients to work in, with everything below; without any,
/// all for the program that started the server, and none for others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ClientDirectories(Option<Arc<[PathBuf]>>);

impl ClientDirectories {
    pub(super) fn only(directories: Vec<PathBuf>) -> Self {
        Self(Some(directories.into()))
    }

    /// Resolves a directory that a client names, and checks that it is allowed. Blocks.
    ///
    /// # Errors
    ///
    /// The reason for refusing it, as a sentence fragment for the caller.
    pub(crate) fn check(&self, named: &Path, is_local: bool) -> Result<PathBuf, String> {
        let shown = named.display().to_string();
        let shown = shown.escape_debug();
        if self.0.is_none() && !is_local {
            return Err(format!(
                "the client works in `{shown}`, and the operator allows directories of this machine to no client over HTTP (`client_directories` in mcpd.toml)"
            ));
        }
        let resolved = named.canonicalize().ok().filter(|path| path.is_dir());
        let Some(resolved) = resolved else {
            return Err(format!(
                "the client works in `{shown}`, which is no directory on this machine"
            ));
        };
        let is_below = |directory: &PathBuf| {
            let directory = directory.canonicalize();
            directory.is_ok_and(|directory| resolved.starts_with(directory))
        };
        if let Some(allowed) = &self.0
            && !allowed.iter().any(is_below)
        {
            return Err(format!(
                "the client works in `{shown}`, which lies in no directory that the operator allows (`client_directories` in mcpd.toml)"
            ));
        }
        Ok(resolved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn allowed_directory_is_what_a_link_leads_to() {
        let place = tempfile::tempdir().unwrap();
        let [allowed, other] = ["allowed", "allowed-not"].map(|name| place.path().join(name));
        for directory in [&allowed, &other] {
            std::fs::create_dir(directory).unwrap();
        }
        let (inside, link) = (allowed.join("inside"), allowed.join("link"));
        std::fs::create_dir(&inside).unwrap();
        std::os::unix::fs::symlink(&other, &link).unwrap();
        std::fs::write(allowed.join("file"), "").unwrap();
        let only = ClientDirectories::only(vec![allowed.clone()]);
        let check = |path: &Path| only.check(path, true);
        assert_eq!(check(&inside), Ok(inside.canonicalize().unwrap()));
        assert!(check(&allowed).is_ok() && check(&inside.join("../inside")).is_ok());
        for refused in [&other, &link, &allowed.join("file"), &allowed.join("..")] {
            assert!(check(refused).is_err(), "{}", refused.display());
        }
        let any = ClientDirectories::default();
        assert!(any.check(&other, true).is_ok());
        assert!(any.check(&other, false).is_err());
    }
}
