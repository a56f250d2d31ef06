//! Registry of running servers. Each server holds a lock on a file of its own: the system
//! releases it however the process ends, and no other process acquires it by chance.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;

/// Prefix of the names of files that are not locked yet.
const UNLOCKED_PREFIX: char = '.';

/// Lock files of all servers that use one database.
#[derive(Debug)]
pub(super) struct ServerRegistry {
    directory: PathBuf,
}

/// Registration of a server until it is dropped.
#[derive(Debug)]
pub(super) struct ServerRegistration {
    file: PathBuf,
    _lock: File,
}

impl ServerRegistry {
    pub(super) fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// Registers the server `name`.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be created or locked.
    pub(super) fn register(&self, name: &str) -> io::Result<ServerRegistration> {
        self.create()?;
        // Under its final name the file is always locked, so no other server takes it for an
        // abandoned one.
        let unlocked = self.directory.join(format!("{UNLOCKED_PREFIX}{name}"));
        let lock = File::create_new(&unlocked)?;
        lock.lock()?;
        let file = self.directory.join(name);
        fs::rename(unlocked, &file)?;
        Ok(ServerRegistration { file, _lock: lock })
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
    pub(super) fn is_running(&self, name: &str) -> bool {
        match File::open(self.directory.join(name)) {
            Ok(file) => !matches!(file.try_lock_shared(), Ok(())),
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
    }

    /// Returns the servers that ended without removing their file.
    pub(super) fn ended_servers(&self) -> Vec<String> {
        let files = fs::read_dir(&self.directory).into_iter().flatten();
        let names = files.filter_map(|file| file.ok()?.file_name().into_string().ok());
        names
            .filter(|name| !name.starts_with(UNLOCKED_PREFIX) && !self.is_running(name))
            .collect()
    }

    /// Removes the file of an ended server.
    pub(super) fn remove(&self, name: &str) {
        // A failed removal is repeated another time.
        fs::remove_file(self.directory.join(name)).ok();
    }
}

impl Drop for ServerRegistration {
    fn drop(&mut self) {
        fs::remove_file(&self.file).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_is_registered_until_it_is_dropped() {
        let directory = tempfile::tempdir().unwrap();
        let registry = ServerRegistry::new(directory.path().join("runners"));
        assert!(!registry.is_running("a"));
        let a = registry.register("a").unwrap();
        assert!(registry.is_running("a"));
        drop(a);
        assert!(!registry.is_running("a"));
        assert!(registry.ended_servers().is_empty());
    }

    #[test]
    fn killed_server_is_found_and_removed() {
        let directory = tempfile::tempdir().unwrap();
        let registry = ServerRegistry::new(directory.path().to_owned());
        let _there = registry.register("there").unwrap();
        // The system leaves the file of a killed process like this.
        File::create_new(directory.path().join("killed")).unwrap();
        assert_eq!(registry.ended_servers(), ["killed"]);
        registry.remove("killed");
        assert!(registry.ended_servers().is_empty());
    }
}
