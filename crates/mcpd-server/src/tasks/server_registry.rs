//! Registry of running servers. Each server holds a lock on a file of its own: the system
//! releases it however the process ends, and no other process acquires it by chance.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;

/// Prefix of the names of files that are not locked yet.
const UNLOCKED: char = '.';

/// Lock files of all servers that use one database.
#[derive(Debug)]
pub(super) struct Runners {
    directory: PathBuf,
}

/// Registration of a server until it is dropped.
#[derive(Debug)]
pub(super) struct Runner {
    file: PathBuf,
    _lock: File,
}

impl Runners {
    pub(super) fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// Registers the server `name`.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be created or locked.
    pub(super) fn announce(&self, name: &str) -> io::Result<Runner> {
        self.create()?;
        // Under its final name the file is always locked, so no other server takes it for an
        // abandoned one.
        let unlocked = self.directory.join(format!("{UNLOCKED}{name}"));
        let lock = File::create_new(&unlocked)?;
        lock.lock()?;
        let file = self.directory.join(name);
        fs::rename(unlocked, &file)?;
        Ok(Runner { file, _lock: lock })
    }

    /// Creates the directory for this user alone: a process that locks a file in it counts as a
    /// server.
    fn create(&self) -> io::Result<()> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&self.directory)
    }

    /// Returns whether the server `name` is running. In doubt it is.
    pub(super) fn is_there(&self, name: &str) -> bool {
        match File::open(self.directory.join(name)) {
            Ok(file) => !matches!(file.try_lock_shared(), Ok(())),
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
    }

    /// Returns the servers that ended without removing their file.
    pub(super) fn gone(&self) -> Vec<String> {
        let files = fs::read_dir(&self.directory).into_iter().flatten();
        let names = files.filter_map(|file| file.ok()?.file_name().into_string().ok());
        names
            .filter(|name| !name.starts_with(UNLOCKED) && !self.is_there(name))
            .collect()
    }

    /// Removes the file of an ended server.
    pub(super) fn forget(&self, name: &str) {
        // A failed removal is repeated another time.
        fs::remove_file(self.directory.join(name)).ok();
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        fs::remove_file(&self.file).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_there_until_it_is_dropped() {
        let directory = tempfile::tempdir().unwrap();
        let runners = Runners::new(directory.path().join("runners"));
        assert!(!runners.is_there("a"));
        let a = runners.announce("a").unwrap();
        assert!(runners.is_there("a"));
        drop(a);
        assert!(!runners.is_there("a"));
        assert!(runners.gone().is_empty());
    }

    #[test]
    fn one_that_was_killed_is_found_and_forgotten() {
        let directory = tempfile::tempdir().unwrap();
        let runners = Runners::new(directory.path().to_owned());
        let _there = runners.announce("there").unwrap();
        // The system leaves the file of a killed process like this.
        File::create_new(directory.path().join("killed")).unwrap();
        assert_eq!(runners.gone(), ["killed"]);
        runners.forget("killed");
        assert!(runners.gone().is_empty());
    }
}
