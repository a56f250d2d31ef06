//! Which servers are there. Each holds a lock on a file of its own as long as it lives: the system lets go of it however
//! the process ends, and no other process can have it by chance.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;

/// What the names of files begin with that are not locked yet.
const UNLOCKED: char = '.';

/// The files of all servers that use one database.
#[derive(Debug)]
pub(super) struct Runners {
    directory: PathBuf,
}

/// A server that is there until this is dropped.
#[derive(Debug)]
pub(super) struct Runner {
    file: PathBuf,
    _lock: File,
}

impl Runners {
    pub(super) fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// Says that the server `name` is there.
    ///
    /// # Errors
    ///
    /// The file can't be made or locked.
    pub(super) fn announce(&self, name: &str) -> io::Result<Runner> {
        self.create()?;
        // Under its name it is locked from the first moment, so nobody takes it for one that was left.
        let unlocked = self.directory.join(format!("{UNLOCKED}{name}"));
        let lock = File::create_new(&unlocked)?;
        lock.lock()?;
        let file = self.directory.join(name);
        fs::rename(unlocked, &file)?;
        Ok(Runner { file, _lock: lock })
    }

    /// Makes the directory for this user alone: who locks a file in it is taken for a server.
    fn create(&self) -> io::Result<()> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&self.directory)
    }

    /// Whether the server `name` is there. In doubt it is.
    pub(super) fn is_there(&self, name: &str) -> bool {
        match File::open(self.directory.join(name)) {
            Ok(file) => !matches!(file.try_lock_shared(), Ok(())),
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
    }

    /// The servers that are gone without having said so.
    pub(super) fn gone(&self) -> Vec<String> {
        let files = fs::read_dir(&self.directory).into_iter().flatten();
        let names = files.filter_map(|file| file.ok()?.file_name().into_string().ok());
        names
            .filter(|name| !name.starts_with(UNLOCKED) && !self.is_there(name))
            .collect()
    }

    /// Removes what a server has left that is gone.
    pub(super) fn forget(&self, name: &str) {
        // If it stays, it is tried again another time.
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
        // As the system leaves the file of a process that was killed.
        File::create_new(directory.path().join("killed")).unwrap();
        assert_eq!(runners.gone(), ["killed"]);
        runners.forget("killed");
        assert!(runners.gone().is_empty());
    }
}
