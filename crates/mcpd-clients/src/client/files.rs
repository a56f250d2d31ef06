//! Files of a client that exist, where it has one for each server.

use std::fs;

use super::Client;
use crate::{ConfigFile, Places, Scope};

impl Client {
    /// Files of a scope: one, or those in the directory where the client has a file for each
    /// server, by name.
    #[must_use]
    pub fn files(&'static self, scope: Scope, places: &Places) -> Vec<ConfigFile> {
        let named = |name: &str| self.file(scope, places, name);
        let (Some(file), Some(other)) = (named("a"), named("b")) else {
            return Vec::new();
        };
        if file.path() == other.path() {
            return vec![file];
        }
        let directory = file.path().parent().map(fs::read_dir);
        let entries = directory
            .and_then(Result::ok)
            .into_iter()
            .flatten()
            .flatten();
        let paths = entries.map(|entry| entry.path());
        let paths = paths.filter(|path| path.extension() == file.path().extension());
        let mut files: Vec<_> = paths
            .filter_map(|path| named(path.file_stem()?.to_str()?).filter(|one| one.path() == path))
            .collect();
        files.sort_by(|a, b| a.path().cmp(b.path()));
        files
    }
}
