//! Temporary directories for runs: one for each run at a time, emptied after it, and kept for the next one, so that the
//! Landlock rulesets that allow writing there can be kept too.

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

use super::landlock::Ruleset;
use super::seen::Seen;
use super::tree;
use crate::sandbox::{RunAs, Sandbox};

/// Only its owner can enter it.
const PRIVATE: u32 = 0o700;

/// The directories of one executor, below one that is made when it is needed and removed with this.
#[derive(Debug)]
pub(crate) struct Directories {
    root: PathBuf,
    shelf: Arc<Shelf>,
    tidier: OnceLock<Tidier>,
}

/// Directories that nobody uses.
#[derive(Debug, Default)]
struct Shelf {
    idle: Mutex<Vec<Directory>>,
    /// How many the tidier has before it.
    untidy: AtomicUsize,
    /// No directory is needed any more.
    is_closed: AtomicBool,
}

/// Who empties what was used.
#[derive(Debug)]
struct Tidier {
    used: mpsc::Sender<Directory>,
    thread: JoinHandle<()>,
}

/// One of them. A run may do to it whatever its sandbox allows, which may be to put something else in its place.
#[derive(Debug)]
struct Directory {
    path: PathBuf,
    owner: Option<RunAs>,
    /// As it was when it was empty.
    empty: Seen,
    /// For the sandboxes that were used with it last, and what runs needed to read.
    rulesets: Vec<(Arc<Sandbox>, Vec<PathBuf>, Arc<Ruleset>)>,
}

impl Directories {
    /// Nothing is made yet.
    pub(crate) fn below(parent: &Path) -> Self {
        // No link on the way is followed later: somebody who runs may have put it there.
        let parent = parent
            .canonicalize()
            // It may be there later, and runs start elsewhere.
            .or_else(|_| std::path::absolute(parent))
            .unwrap_or_else(|_| parent.to_owned());
        Self {
            root: parent.join(format!("{}{:016x}", prefix(tree::nonce()), tree::random())),
            shelf: Arc::default(),
            tidier: OnceLock::new(),
        }
    }

    /// Where they are made.
    pub(crate) fn parent(&self) -> &Path {
        self.root.parent().unwrap_or(&self.root)
    }

    /// An empty directory that nobody else uses, and only its owner can enter.
    ///
    /// # Errors
    ///
    /// It can't be made.
    pub(crate) fn lease(self: &Arc<Self>, owner: Option<RunAs>) -> io::Result<Lease> {
        let directory = self.directory(owner).map_err(|error| {
            let parent = self.parent().display();
            let told = format!("make a temporary directory in `{parent}`: {error}");
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

    /// One that was the same user's before: whose it was may have kept a way in.
    fn idle_directory(&self, owner: Option<RunAs>) -> Option<Directory> {
        loop {
            let mut idle = self.shelf.idle();
            let place = idle
                .iter()
                .rposition(|directory| directory.owner == owner)?;
            let directory = idle.remove(place);
            drop(idle);
            if directory.is_empty() {
                return Some(directory);
            }
            self.tidy(directory);
        }
    }

    fn make(&self, owner: Option<RunAs>) -> io::Result<Directory> {
        // Not to be guessed, so that nobody else has made it.
        let path = self.root.join(format!("{:016x}", tree::random()));
        make_directory(&path, PRIVATE)?;
        // What a run has given to the directory above has come down to it.
        remove_attributes(&open(&hold(CWD, &path)?)?)?;
        if let Some(RunAs { user, group }) = owner {
            lchown(&path, Some(user), Some(group))?;
        }
        Ok(Directory {
            empty: seen(&path)?,
            path,
            owner,
            rulesets: Vec::new(),
        })
    }

    /// It may have been cleaned away since it was made, or closed by a run, to which it belongs as much as to us.
    fn make_root(&self) -> io::Result<()> {
        /// Passable, for those who run as somebody else.
        const PASSABLE: u32 = 0o711;
        match fs::symlink_metadata(&self.root) {
            Ok(metadata) if metadata.is_dir() && metadata.mode() & 0o7777 == PASSABLE => Ok(()),
            Ok(_) => set_mode(&by_number(&hold(CWD, &self.root)?), PASSABLE),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                match make_directory(&self.root, PASSABLE) {
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
                    other => other,
                }
            }
            Err(error) => Err(error),
        }
    }

    fn tidy(&self, mut directory: Directory) {
        /// So many wait with their rulesets: a run that leaves a million files keeps all others waiting.
        const PATIENT: usize = 32;
        if self.shelf.untidy.fetch_add(1, Relaxed) >= PATIENT {
            directory.rulesets.clear();
        }
        if let Some(tidier) = self.tidier() {
            // The thread lives as long as this.
            tidier.used.send(directory).ok();
        }
    }

    fn tidier(&self) -> Option<&Tidier> {
        if self.tidier.get().is_none() {
            let (used, receiver) = mpsc::channel();
            let shelf = Arc::clone(&self.shelf);
            // Without the thread the directory goes when everything goes.
            let thread = thread::Builder::new()
                .name("mcpd-exec-tidy".to_owned())
                .spawn(move || shelf.fill(receiver))
                .ok()?;
            self.tidier.set(Tidier { used, thread }).ok();
        }
        self.tidier.get()
    }
}

impl Drop for Directories {
    fn drop(&mut self) {
        self.shelf.is_closed.store(true, Relaxed);
        if let Some(tidier) = self.tidier.take() {
            drop(tidier.used);
            // Two who remove the same are in each other's way.
            tidier.thread.join().ok();
        }
        // What can't be removed is not ours any more.
        remove(&self.root).ok();
    }
}

impl Shelf {
    fn idle(&self) -> MutexGuard<'_, Vec<Directory>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what was used, and empties it.
    fn fill(&self, used: mpsc::Receiver<Directory>) {
        for mut directory in used {
            if self.is_closed.load(Relaxed) {
                return;
            }
            let cleared = directory.clear();
            self.untidy.fetch_sub(1, Relaxed);
            // One that is not there or stays full is not used again.
            if cleared.is_ok() {
                self.idle().push(directory);
            }
        }
    }
}

impl Directory {
    fn is_empty(&self) -> bool {
        seen(&self.path).is_ok_and(|seen| seen == self.empty)
    }

    /// Removes everything in it.
    ///
    /// # Errors
    ///
    /// It is not there, or something stays.
    fn clear(&mut self) -> io::Result<()> {
        let held = hold(CWD, &self.path)?;
        let found = fstat(&held)?;
        if !Seen::from(found).is_same_file(self.empty) {
            return Err(io::ErrorKind::NotFound.into());
        }
        if found.st_mode & 0o7777 != PRIVATE {
            set_mode(&by_number(&held), PRIVATE)?;
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

/// Links are not followed.
fn seen(path: &Path) -> io::Result<Seen> {
    Ok(lstat(path)?.into())
}

/// With this mode whatever the umask. Fails if there is anything of that name.
fn make_directory(path: &Path, mode: u32) -> io::Result<()> {
    DirBuilder::new().mode(mode).create(path)?;
    set_mode(path, mode)
}

/// Removes those that everybody can give to what is their own, such as access lists.
fn remove_attributes(directory: &OwnedFd) -> io::Result<()> {
    /// What the kernel lists at most.
    const MOST: usize = 64 * 1024;
    let mut names = Vec::with_capacity(MOST);
    match flistxattr(directory, spare_capacity(&mut names)) {
        // There are none on this file system.
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

/// What the names of all directories of one process begin with.
fn prefix(nonce: u32) -> String {
    format!("mcpd-run-{nonce:08x}-")
}

/// Removes those below `parent` that the process with this nonce has left there.
pub(crate) fn remove_all(parent: &Path, nonce: u32) {
    let prefix = prefix(nonce);
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if name.as_encoded_bytes().starts_with(prefix.as_bytes()) {
            // What can't be removed is not ours any more.
            remove(&entry.path()).ok();
        }
    }
}

/// Removes whatever is there, with all that is in it.
///
/// # Errors
///
/// There is nothing, or something stays.
fn remove(path: &Path) -> io::Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    remove_at(&rustix::fs::open(parent, flags, Mode::empty())?, name)
}

/// Removes whatever has this name in a directory, with all that is in it.
///
/// Whoever the directory belongs to may still be alive and put something else in the place of anything, such as a link to
/// what is ours. So nothing is gone through by its path, and no link is followed. And as directories can be nested deeper
/// than any stack is, or than there are descriptors, this does not go down: it brings up what is nested.
fn remove_at(parent: &OwnedFd, name: impl Arg + Copy) -> io::Result<()> {
    if remove_file(parent, name)? {
        return Ok(());
    }
    /// Whoever it belongs to may go on making files.
    const MOST: Duration = Duration::from_secs(60);
    let directory = open_up(parent, name)?;
    let start = Instant::now();
    while remove_level(&directory)? {
        if start.elapsed() > MOST {
            return Err(io::ErrorKind::TimedOut.into());
        }
    }
    Ok(unlinkat(parent, name, AtFlags::REMOVEDIR)?)
}

/// Removes what is in `directory`, but for what is in directories there: that it brings up. False if nothing was there.
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
                // Whoever moves a directory has to be able to write it.
                open_up(&inner, &*nested)?;
                let new = format!("{:016x}", tree::random());
                renameat(&inner, &*nested, directory, new)?;
            }
        }
        unlinkat(directory, &*name, AtFlags::REMOVEDIR)?;
    }
    Ok(found)
}

/// False if it is a directory.
fn remove_file(parent: &OwnedFd, name: impl Arg) -> io::Result<bool> {
    match unlinkat(parent, name, AtFlags::empty()) {
        Ok(()) => Ok(true),
        Err(Errno::ISDIR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Opens a directory, even one that its owner has closed to itself.
fn open_up(parent: &OwnedFd, name: impl Arg) -> io::Result<OwnedFd> {
    let held = hold(parent, name)?;
    // If it can't be done that shows in what follows.
    set_mode(&by_number(&held), PRIVATE).ok();
    open(&held)
}

/// Opens what is held for reading.
fn open(held: &OwnedFd) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(openat(held, ".", flags, Mode::empty())?)
}

/// A directory that stays the same, whatever is put in its place. Not behind a link.
fn hold(parent: impl AsFd, name: impl Arg) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(parent, name, flags, Mode::empty())?)
}

/// What is held, as a path.
fn by_number(held: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/", held.as_raw_fd()))
}

/// The names in a directory that is open for reading.
fn names(directory: &OwnedFd) -> io::Result<impl Iterator<Item = CString>> {
    let entries = Dir::read_from(directory)?.filter_map(Result::ok);
    let names = entries.map(|entry| entry.file_name().to_owned());
    Ok(names.filter(|name| !matches!(name.to_bytes(), b"." | b"..")))
}

/// A directory for one run. It is emptied and goes back when this is dropped.
#[derive(Debug)]
pub(crate) struct Lease {
    /// Taken on drop.
    directory: Option<Directory>,
    /// Whatever is done to it shows.
    settled: bool,
    home: Arc<Directories>,
}

impl Lease {
    pub(crate) fn path(&self) -> &Path {
        self.directory
            .as_ref()
            .map_or(Path::new(""), |directory| &directory.path)
    }

    /// The ruleset made for this directory, `sandbox` and what is `needed`, or the one `make` makes
    /// of it now.
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
        /// Each holds a descriptor.
        const KEPT: usize = 4;
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
        kept.truncate(KEPT - 1);
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
                self.home.shelf.idle().push(directory);
            } else {
                self.home.tidy(directory);
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
    fn a_parent_that_is_not_there_yet_is_the_same_from_everywhere() {
        let directories = Directories::below(Path::new("not/there"));
        assert!(directories.parent().is_absolute());
        assert!(directories.parent().ends_with("not/there"));
    }

    /// Deeper than a stack is, were it to be gone down, or than there are descriptors.
    #[test]
    fn directories_nested_without_end_are_removed() {
        // In memory: a disk may take as long as there is time.
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
    fn no_link_is_followed() {
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
