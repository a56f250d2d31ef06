//! Temporary directories for runs: one for each run at a time, emptied after it, and kept for the next one, so that the
//! Landlock rulesets that allow writing there can be kept too.

use std::fs::{self, DirBuilder, Metadata};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::{io, thread};

use super::landlock::Ruleset;
use super::tree;
use crate::sandbox::{RunAs, Sandbox};

/// The directories of one executor, below one that is made when it is needed and removed with this.
#[derive(Debug)]
pub(crate) struct Directories {
    root: PathBuf,
    made: OnceLock<()>,
    idle: Mutex<Vec<Directory>>,
    /// Empties what was used.
    tidier: OnceLock<mpsc::Sender<Directory>>,
}

/// One of them.
#[derive(Debug)]
struct Directory {
    path: PathBuf,
    owner: Option<RunAs>,
    /// As it was when it was empty.
    untouched: Touched,
    /// For the sandboxes that were used with it last.
    rulesets: Vec<(Sandbox, Arc<Ruleset>)>,
}

/// Changes whenever an entry of a directory comes or goes.
type Touched = (i64, i64);

fn touched(metadata: &Metadata) -> Touched {
    (metadata.mtime(), metadata.mtime_nsec())
}

impl Directories {
    /// Nothing is made yet.
    pub(crate) fn below(parent: &Path) -> Self {
        Self {
            root: parent.join(format!("mcpd-run-{:016x}", tree::random())),
            made: OnceLock::new(),
            idle: Mutex::default(),
            tidier: OnceLock::new(),
        }
    }

    /// Where all of them are.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// An empty directory that nobody else uses, and only its owner can enter.
    ///
    /// # Errors
    ///
    /// It can't be made, or somebody else has made one of its name.
    pub(crate) fn lease(self: &Arc<Self>, owner: Option<RunAs>) -> io::Result<Lease> {
        let idle = self.idle().pop();
        let mut directory = match idle {
            Some(directory) => directory,
            None => self.make()?,
        };
        if directory.owner != owner {
            let RunAs { user, group } = owner.unwrap_or_else(ourselves);
            std::os::unix::fs::chown(&directory.path, Some(user), Some(group))?;
            directory.owner = owner;
        }
        directory.untouched = touched(&fs::metadata(&directory.path)?);
        Ok(Lease {
            directory: Some(directory),
            home: Arc::clone(self),
        })
    }

    fn make(&self) -> io::Result<Directory> {
        if self.made.get().is_none() {
            // Passable, for those who run as somebody else.
            make_directory(&self.root, 0o711)?;
            self.made.get_or_init(|| ());
        }
        static NUMBER: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let path = self.root.join(number.to_string());
        make_directory(&path, 0o700)?;
        Ok(Directory {
            path,
            owner: None,
            untouched: Touched::default(),
            rulesets: Vec::new(),
        })
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Directory>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_back(self: &Arc<Self>, directory: Directory) {
        let is_untouched = |metadata: &Metadata| touched(metadata) == directory.untouched;
        if fs::metadata(&directory.path).is_ok_and(|metadata| is_untouched(&metadata)) {
            self.idle().push(directory);
        } else if let Some(tidier) = self.tidier() {
            // The thread lives as long as its senders.
            tidier.send(directory).ok();
        }
    }

    fn tidier(self: &Arc<Self>) -> Option<&mpsc::Sender<Directory>> {
        if self.tidier.get().is_none() {
            let (sender, receiver) = mpsc::channel::<Directory>();
            let home = Arc::downgrade(self);
            let tidy = move || {
                for directory in receiver {
                    empty(&directory.path);
                    if let Some(home) = home.upgrade() {
                        home.idle().push(directory);
                    }
                }
            };
            // Without the thread the directory goes when everything goes.
            thread::Builder::new()
                .name("mcpd-exec-tidy".to_owned())
                .spawn(tidy)
                .ok()?;
            self.tidier.set(sender).ok();
        }
        self.tidier.get()
    }
}

/// With this mode whatever the umask. Fails if there is anything of that name.
fn make_directory(path: &Path, mode: u32) -> io::Result<()> {
    DirBuilder::new().mode(mode).create(path)?;
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode))
}

fn ourselves() -> RunAs {
    RunAs {
        user: rustix::process::geteuid().as_raw(),
        group: rustix::process::getegid().as_raw(),
    }
}

impl Drop for Directories {
    fn drop(&mut self) {
        if self.made.get().is_some() {
            // What can't be removed is not ours any more.
            fs::remove_dir_all(&self.root).ok();
        }
    }
}

/// Removes everything in a directory, as far as that goes.
fn empty(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => fs::remove_dir_all(path).ok(),
            _ => fs::remove_file(path).ok(),
        };
    }
}

/// A directory for one run. It is emptied and goes back when this is dropped.
#[derive(Debug)]
pub(crate) struct Lease {
    /// Taken on drop.
    directory: Option<Directory>,
    home: Arc<Directories>,
}

impl Lease {
    pub(crate) fn path(&self) -> &Path {
        self.directory
            .as_ref()
            .map_or(Path::new(""), |directory| &directory.path)
    }

    /// The ruleset made for this directory and `sandbox`, or the one `make` makes of it now.
    ///
    /// # Errors
    ///
    /// Those of `make`.
    pub(crate) fn ruleset<E>(
        &mut self,
        sandbox: &Sandbox,
        make: impl FnOnce(&Path) -> Result<Ruleset, E>,
    ) -> Result<Option<Arc<Ruleset>>, E> {
        /// Each holds a descriptor.
        const KEPT: usize = 4;
        let Some(directory) = &mut self.directory else {
            return Ok(None);
        };
        directory
            .rulesets
            .retain(|(made_for, ruleset)| made_for != sandbox || ruleset.is_current());
        let mut kept = directory.rulesets.iter();
        if let Some((_, ruleset)) = kept.find(|(made_for, _)| made_for == sandbox) {
            return Ok(Some(Arc::clone(ruleset)));
        }
        let ruleset = Arc::new(make(&directory.path)?);
        directory.rulesets.truncate(KEPT - 1);
        let kept = (sandbox.clone(), Arc::clone(&ruleset));
        directory.rulesets.insert(0, kept);
        Ok(Some(ruleset))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(directory) = self.directory.take() {
            self.home.take_back(directory);
        }
    }
}
