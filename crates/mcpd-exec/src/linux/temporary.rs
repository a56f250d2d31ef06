//! Pool of temporary directories: each run has one to itself. It is emptied after the run and
//! reused, so that the Landlock rulesets that allow writing there can be reused too.

use std::ffi::CString;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _, lchown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use rustix::buffer::spare_capacity;
use rustix::fs::{
    AtFlags, CWD, Dir, Mode, OFlags, flistxattr, fremovexattr, fstat, lstat, openat, renameat,
    unlinkat,
};
use rustix::io::Errno;
use rustix::path::Arg;

use super::file_version::FileVersion;
use super::landlock::Ruleset;
use super::tree;
use crate::sandbox::{RunAs, Sandbox};

/// Mode of the directories: only the owner can enter.
const PRIVATE_MODE: u32 = 0o700;

/// Pool of one executor. Its root is made on demand and removed on drop.
#[derive(Debug)]
pub(crate) struct DirectoryPool {
    root: PathBuf,
    idle_directories: Arc<IdleDirectories>,
    cleaner: OnceLock<Cleaner>,
}

/// Directories that no run uses.
#[derive(Debug, Default)]
struct IdleDirectories {
    idle: Mutex<Vec<Directory>>,
    /// Number of directories in the queue of the cleaner.
    queued: AtomicUsize,
    /// Set when the pool closes.
    is_closed: AtomicBool,
}

/// Thread that empties used directories, and its queue.
#[derive(Debug)]
struct Cleaner {
    used: mpsc::Sender<Directory>,
    thread: JoinHandle<()>,
}

/// Directory of the pool. A run may do anything to it that its sandbox allows, such as replacing
/// it.
#[derive(Debug)]
struct Directory {
    path: PathBuf,
    owner: Option<RunAs>,
    /// Version of the empty directory.
    empty: FileVersion,
    /// Rulesets with the sandbox and the needed paths that each was made for, the last used first
    /// (LRU).
    rulesets: Vec<(Arc<Sandbox>, Vec<PathBuf>, Arc<Ruleset>)>,
}

impl DirectoryPool {
    /// Prepares a pool below `parent`. Nothing is made yet.
    pub(crate) fn below(parent: &Path) -> Self {
        // Resolve links now and follow none later: a run may have planted it.
        let parent = parent
            .canonicalize()
            // It may not exist yet. A run starts in another directory, so the path must be
            // absolute.
            .or_else(|_| std::path::absolute(parent))
            .unwrap_or_else(|_| parent.to_owned());
        Self {
            root: parent.join(format!("{}{:016x}", prefix(tree::nonce()), tree::random())),
            idle_directories: Arc::default(),
            cleaner: OnceLock::new(),
        }
    }

    /// Directory that the pool is in.
    pub(crate) fn parent(&self) -> &Path {
        self.root.parent().unwrap_or(&self.root)
    }

    /// Returns the directory of all directories, which exists.
    ///
    /// # Errors
    ///
    /// It can't be made.
    pub(crate) fn root(&self) -> io::Result<&Path> {
        self.make_root()?;
        Ok(&self.root)
    }

    /// Leases an empty directory that no other run uses, and that only its owner can enter.
    ///
    /// # Errors
    ///
    /// It can't be made.
    pub(crate) fn lease(self: &Arc<Self>, owner: Option<RunAs>) -> io::Result<Lease> {
        let directory = self.directory(owner).map_err(|error| {
            let parent = self.parent().display();
            let told = format!("create a temporary directory in `{parent}`: {error}");
            io::Error::new(error.kind(), told)
        })?;
        Ok(Lease {
            settled: directory.empty.is_settled(SystemTime::now()),
            directory: Some(directory),
            home: Arc::clone(self),
        })
    }

    fn directory(&self, owner: Option<RunAs>) -> io::Result<Directory> {
        self.make_root()?;
        self.idle_directory(owner)
            .map_or_else(|| self.make(owner), Ok)
    }

    /// Takes an idle directory of the same user: a former user may have kept a descriptor of it.
    fn idle_directory(&self, owner: Option<RunAs>) -> Option<Directory> {
        loop {
            let mut idle = self.idle_directories.idle();
            let place = idle
                .iter()
                .rposition(|directory| directory.owner == owner)?;
            let directory = idle.remove(place);
            drop(idle);
            if directory.is_empty() {
                return Some(directory);
            }
            self.clean_later(directory);
        }
    }

    fn make(&self, owner: Option<RunAs>) -> io::Result<Directory> {
        // Unpredictable, so that no other process can have made it.
        let path = self.root.join(format!("{:016x}", tree::random()));
        make_directory(&path, PRIVATE_MODE)?;
        // Drop attributes inherited from the directory above, to which a run may have added them.
        remove_attributes(&open(&hold(CWD, &path)?)?)?;
        if let Some(RunAs { user, group }) = owner {
            lchown(&path, Some(user), Some(group))?;
        }
        Ok(Directory {
            empty: file_version(&path)?,
            path,
            owner,
            rulesets: Vec::new(),
        })
    }

    /// Makes the root, or repairs it. A temporary file cleaner may have removed it, and a run of
    /// the same user may have closed it.
    fn make_root(&self) -> io::Result<()> {
        /// Other users must be able to pass through, for `run_as`.
        const PASSABLE_MODE: u32 = 0o711;
        match fs::symlink_metadata(&self.root) {
            Ok(metadata) if metadata.is_dir() && metadata.mode() & 0o7777 == PASSABLE_MODE => {
                Ok(())
            }
            Ok(_) => set_mode(&by_number(&hold(CWD, &self.root)?), PASSABLE_MODE),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                match make_directory(&self.root, PASSABLE_MODE) {
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
                    other => other,
                }
            }
            Err(error) => Err(error),
        }
    }

    fn clean_later(&self, mut directory: Directory) {
        /// Queue length beyond which rulesets are dropped: a run that leaves a million files
        /// blocks the queue, and each ruleset holds a descriptor.
        const MAX_QUEUED_WITH_RULESETS: usize = 32;
        if self.idle_directories.queued.fetch_add(1, Relaxed) >= MAX_QUEUED_WITH_RULESETS {
            directory.rulesets.clear();
        }
        if let Some(cleaner) = self.cleaner() {
            // The thread lives as long as the pool.
            cleaner.used.send(directory).ok();
        }
    }

    fn cleaner(&self) -> Option<&Cleaner> {
        if self.cleaner.get().is_none() {
            let (used, receiver) = mpsc::channel();
            let idle_directories = Arc::clone(&self.idle_directories);
            // Without the thread, the directory is removed with the root.
            let thread = thread::Builder::new()
                .name("mcpd-exec-tidy".to_owned())
                .spawn(move || idle_directories.fill(receiver))
                .ok()?;
            self.cleaner.set(Cleaner { used, thread }).ok();
        }
        self.cleaner.get()
    }
}

impl Drop for DirectoryPool {
    fn drop(&mut self) {
        self.idle_directories.is_closed.store(true, Relaxed);
        if let Some(cleaner) = self.cleaner.take() {
            drop(cleaner.used);
            // Wait for the thread: two that remove the same tree get in each other's way.
            cleaner.thread.join().ok();
        }
        // Entries that can't be removed no longer belong to this user.
        remove(&self.root).ok();
    }
}

impl IdleDirectories {
    fn idle(&self) -> MutexGuard<'_, Vec<Directory>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Empties used directories and makes them available again. Runs on the cleaner thread.
    fn fill(&self, used: mpsc::Receiver<Directory>) {
        for mut directory in used {
            if self.is_closed.load(Relaxed) {
                return;
            }
            let cleared = directory.clear();
            self.queued.fetch_sub(1, Relaxed);
            // A directory that is gone or can't be emptied is not reused.
            if cleared.is_ok() {
                self.idle().push(directory);
            }
        }
    }
}

impl Directory {
    fn is_empty(&self) -> bool {
        file_version(&self.path).is_ok_and(|version| version == self.empty)
    }

    /// Removes everything in it.
    ///
    /// # Errors
    ///
    /// It is gone, or an entry stays.
    fn clear(&mut self) -> io::Result<()> {
        let held = hold(CWD, &self.path)?;
        let found = fstat(&held)?;
        if !FileVersion::from(found).is_same_file(self.empty) {
            return Err(io::ErrorKind::NotFound.into());
        }
        if found.st_mode & 0o7777 != PRIVATE_MODE {
            set_mode(&by_number(&held), PRIVATE_MODE)?;
        }
        let opened = open(&held)?;
        remove_attributes(&opened)?;
        for name in names(&opened)? {
            remove_at(&held, &*name)?;
        }
        self.empty = fstat(&held)?.into();
        Ok(())
    }
}

/// Returns the version of the file at a path, without following links.
fn file_version(path: &Path) -> io::Result<FileVersion> {
    Ok(lstat(path)?.into())
}

/// Makes a directory with this mode, regardless of the umask. Fails if the name exists.
fn make_directory(path: &Path, mode: u32) -> io::Result<()> {
    DirBuilder::new().mode(mode).create(path)?;
    set_mode(path, mode)
}

/// Removes attributes that any owner can set, such as access control lists.
fn remove_attributes(directory: &OwnedFd) -> io::Result<()> {
    /// Upper bound of the kernel's list of attributes.
    const MAX_ATTRIBUTE_LIST: usize = 64 * 1024;
    let mut names = Vec::with_capacity(MAX_ATTRIBUTE_LIST);
    match flistxattr(directory, spare_capacity(&mut names)) {
        // The file system has no attributes.
        Err(Errno::NOTSUP) => return Ok(()),
        other => other?,
    };
    let names = names.split(|byte| *byte == 0);
    for name in names.filter(|name| name.starts_with(b"user.") || name.starts_with(b"system.")) {
        fremovexattr(directory, name)?;
    }
    Ok(())
}

fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

/// Prefix of the names of all directories of one process.
fn prefix(nonce: u32) -> String {
    format!("mcpd-run-{nonce:08x}-")
}

/// Removes the directories below `parent` that the process with this nonce has left.
pub(crate) fn remove_all(parent: &Path, nonce: u32) {
    let prefix = prefix(nonce);
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if name.as_encoded_bytes().starts_with(prefix.as_bytes()) {
            // Entries that can't be removed no longer belong to this user.
            remove(&entry.path()).ok();
        }
    }
}

/// Removes a file or a directory with everything in it.
///
/// # Errors
///
/// It does not exist, or an entry stays.
fn remove(path: &Path) -> io::Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    remove_at(&rustix::fs::open(parent, flags, Mode::empty())?, name)
}

/// Removes the entry with this name in a directory, and everything in it.
///
/// The owner of the directory may still run and replace any entry, for example by a link to files
/// of this user. So nothing is accessed by its path, and no link is followed. Directories can be
/// nested deeper than the stack is, or than there are descriptors. So there is no recursion: each
/// pass moves nested directories up to the top.
fn remove_at(parent: &OwnedFd, name: impl Arg + Copy) -> io::Result<()> {
    if remove_file(parent, name)? {
        return Ok(());
    }
    /// Time limit, as a process of its owner may go on making files.
    const REMOVAL_TIMEOUT: Duration = Duration::from_secs(60);
    let directory = open_up(parent, name)?;
    let start = Instant::now();
    while remove_level(&directory)? {
        if start.elapsed() > REMOVAL_TIMEOUT {
            return Err(io::ErrorKind::TimedOut.into());
        }
    }
    Ok(unlinkat(parent, name, AtFlags::REMOVEDIR)?)
}

/// Removes the entries of `directory`, and moves up what is nested two levels deep. Returns
/// whether there was any entry.
fn remove_level(directory: &OwnedFd) -> io::Result<bool> {
    let mut found = false;
    for name in names(directory)? {
        found = true;
        if remove_file(directory, &*name)? {
            continue;
        }
        let inner = open_up(directory, &*name)?;
        for nested in names(&inner)? {
            if !remove_file(&inner, &*nested)? {
                // Moving a directory requires write access to it.
                open_up(&inner, &*nested)?;
                let new = format!("{:016x}", tree::random());
                renameat(&inner, &*nested, directory, new)?;
            }
        }
        unlinkat(directory, &*name, AtFlags::REMOVEDIR)?;
    }
    Ok(found)
}

/// Removes a file. Returns false if it is a directory.
fn remove_file(parent: &OwnedFd, name: impl Arg) -> io::Result<bool> {
    match unlinkat(parent, name, AtFlags::empty()) {
        Ok(()) => Ok(true),
        Err(Errno::ISDIR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Opens a directory for reading, even if its owner has removed its own access.
fn open_up(parent: &OwnedFd, name: impl Arg) -> io::Result<OwnedFd> {
    let held = hold(parent, name)?;
    // If this fails, opening it fails too.
    set_mode(&by_number(&held), PRIVATE_MODE).ok();
    open(&held)
}

/// Opens a held directory for reading.
fn open(held: &OwnedFd) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(openat(held, ".", flags, Mode::empty())?)
}

/// Holds a directory by a descriptor, which does not change if another one takes its place. A
/// link is not followed.
fn hold(parent: impl AsFd, name: impl Arg) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(parent, name, flags, Mode::empty())?)
}

/// Path of a held directory.
fn by_number(held: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/", held.as_raw_fd()))
}

/// Lists the names in a directory that is open for reading.
fn names(directory: &OwnedFd) -> io::Result<impl Iterator<Item = CString>> {
    let entries = Dir::read_from(directory)?.filter_map(Result::ok);
    let names = entries.map(|entry| entry.file_name().to_owned());
    Ok(names.filter(|name| !matches!(name.to_bytes(), b"." | b"..")))
}

/// Directory leased to one run. On drop it is emptied and goes back to the pool.
#[derive(Debug)]
pub(crate) struct Lease {
    /// Taken on drop.
    directory: Option<Directory>,
    /// Any change to the directory is noticeable by its version.
    settled: bool,
    home: Arc<DirectoryPool>,
}

impl Lease {
    pub(crate) fn path(&self) -> &Path {
        self.directory
            .as_ref()
            .map_or(Path::new(""), |directory| &directory.path)
    }

    /// Returns the cached ruleset for this directory, `sandbox` and the `needed` paths, or the
    /// one that `make` makes now.
    ///
    /// # Errors
    ///
    /// Those of `make`.
    pub(crate) fn ruleset<E>(
        &mut self,
        sandbox: &Arc<Sandbox>,
        needed: &[PathBuf],
        make: impl FnOnce(&Path) -> Result<Ruleset, E>,
    ) -> Result<Option<Arc<Ruleset>>, E> {
        /// Number of cached rulesets. Each holds a descriptor.
        const MAX_CACHED_RULESETS: usize = 4;
        let Some(directory) = &mut self.directory else {
            return Ok(None);
        };
        let kept = &mut directory.rulesets;
        kept.retain(|(made_for, _, ruleset)| made_for != sandbox || ruleset.is_current());
        let mut made = kept.iter();
        let last = made.position(|(made_for, read, _)| made_for == sandbox && read == needed);
        let ruleset = match last {
            Some(last) => kept.remove(last).2,
            None => Arc::new(make(&directory.path)?),
        };
        kept.truncate(MAX_CACHED_RULESETS - 1);
        kept.insert(
            0,
            (Arc::clone(sandbox), needed.to_vec(), Arc::clone(&ruleset)),
        );
        Ok(Some(ruleset))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(directory) = self.directory.take() {
            if self.settled && directory.is_empty() {
                self.home.idle_directories.idle().push(directory);
            } else {
                self.home.clean_later(directory);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use rustix::fs::mkdirat;

    use super::*;

    #[test]
    fn missing_parent_becomes_an_absolute_path() {
        let directories = DirectoryPool::below(Path::new("not/there"));
        assert!(directories.parent().is_absolute());
        assert!(directories.parent().ends_with("not/there"));
    }

    /// The depth exceeds the stack of a recursive removal, and the number of descriptors.
    #[test]
    fn deeply_nested_directories_are_removed() {
        // In memory: on a disk it may exceed the time limit.
        let parent = tempfile::tempdir_in("/dev/shm").unwrap();
        let path = parent.path().join("deep");
        fs::create_dir(&path).unwrap();
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let mut directory = rustix::fs::open(&path, flags, Mode::empty()).unwrap();
        for _ in 0..20_000 {
            mkdirat(&directory, "d", Mode::RWXU).unwrap();
            directory = openat(&directory, "d", flags, Mode::empty()).unwrap();
        }
        drop(directory);
        remove(&path).unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn links_are_not_followed_on_removal() {
        let parent = tempfile::tempdir().unwrap();
        let [path, outside] = ["run", "outside"].map(|name| parent.path().join(name));
        fs::create_dir_all(path.join("inner/most")).unwrap();
        fs::create_dir_all(outside.join("inner")).unwrap();
        set_mode(&outside, 0o755).unwrap();
        for link in ["link", "inner/link", "inner/most/link"] {
            symlink(&outside, path.join(link)).unwrap();
        }
        remove(&path).unwrap();
        symlink(&outside, &path).unwrap();
        let held = hold(CWD, parent.path()).unwrap();
        assert!(
            open_up(&held, "run").is_err(),
            "put there in the last moment"
        );
        remove(&path).unwrap();
        assert!(!path.exists() && outside.join("inner").exists());
        let mode = fs::metadata(outside).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o755);
    }

    #[test]
    fn closed_directories_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("closed");
        let inner = path.join("inner");
        fs::create_dir_all(inner.join("most")).unwrap();
        fs::write(inner.join("most/file"), "x").unwrap();
        for directory in [inner.join("most"), inner, path.clone()] {
            set_mode(&directory, 0).unwrap();
        }
        remove(&path).unwrap();
        assert!(!path.exists());
    }
}
