//! View of the system that a run gets at level `strict`: the mounts that are laid over it.
//!
//! The system is visible and read-only. Mounts are laid over it, each at its path, and the
//! deepest one counts: private directories in memory, empty ones over hidden paths, and the parts
//! that can be written or must stay visible although a directory above them is covered. How they
//! are laid is left to [`namespaces`](super::namespaces) and [`launcher`](super::launcher).

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Bound::{Excluded, Unbounded};
use std::path::{Path, PathBuf, absolute};

use super::home::Homes;
use super::path_watch::PathWatch;
use super::writable::{Readable, Writable, resolve_target};
use crate::sandbox::{Network, Sandbox};

/// Paths that a run must see.
#[derive(Debug)]
pub(crate) struct View<'a> {
    pub(crate) sandbox: &'a Sandbox,
    /// Paths that can be read even if a directory above them is covered; a path that is itself
    /// covered stays so. They are the program, its directory, the working directory, and other
    /// files of the run. A missing one is skipped, and left to the program to complain of.
    pub(crate) visible: &'a [&'a Path],
}

/// Contents of `/proc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Proc {
    /// The processes of the run, and the statistics of the system.
    Own,
    /// Nothing. The kernel refuses other contents with EPERM if parts of our own `/proc` are
    /// covered, as in containers.
    Empty,
}

/// Size limit of a private directory.
pub(crate) const PRIVATE_BYTES: u64 = 64 << 20;

/// Private writable directories in memory.
pub(crate) const PRIVATE: &[&str] = &["/tmp", "/var/tmp", "/dev/shm"];
/// Sockets and queues of the host's services.
pub(crate) const HIDDEN: &[&str] = &["/run", "/dev/mqueue"];
/// The only usable devices. A disk could be written even on a read-only file system, by a user
/// who may open it.
const DEVICES: &[&str] = &[
    "/dev/full",
    "/dev/null",
    "/dev/random",
    "/dev/tty",
    "/dev/urandom",
    "/dev/zero",
];
/// Often a link into `/run`.
const RESOLVER: &str = "/etc/resolv.conf";

/// Mount that is laid over the system.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Mount {
    /// Writable directory in memory.
    Private,
    /// Empty directory, except for mounts in it.
    Empty,
    /// Empty file.
    Null,
    /// `/proc` with the processes of the run.
    Processes,
    /// Terminals of the run: those of the host are open to the users that work at them.
    Terminals,
    /// The part of the system at this path.
    Tree { writable: bool },
    /// Symbolic link.
    Link { target: PathBuf },
    /// Directory of a writable tree, bound to itself so that it can't be moved.
    Fixed,
}

impl Mount {
    /// Returns whether it only hides.
    fn hides(&self) -> bool {
        matches!(self, Self::Empty | Self::Null)
    }

    /// Surface that it offers to the mounts inside.
    fn ground(&self) -> Ground {
        match self {
            Self::Private | Self::Empty => Ground::Memory,
            Self::Tree { writable: true } => Ground::Writable,
            _ => Ground::ReadOnly,
        }
    }
}

/// Mount that has an effect, and the surface it lies on.
#[derive(Debug)]
pub(crate) struct Layer<'a> {
    pub(crate) path: &'a Path,
    pub(crate) mount: &'a Mount,
    /// Path of the mount below it.
    pub(crate) base: &'a Path,
    pub(crate) ground: Ground,
}

/// Mounts by path, so that one inside another comes after it.
#[derive(Debug)]
pub(crate) struct Mounts(BTreeMap<PathBuf, Mount>);

impl Mounts {
    /// Collects the mounts, and the paths that were to be writable and are not. Later mounts
    /// replace earlier ones at the same path.
    ///
    /// # Errors
    ///
    /// A path can't be inspected.
    pub(crate) fn of(
        view: &View<'_>,
        proc: Proc,
        watch: &mut PathWatch,
    ) -> io::Result<(Self, Vec<String>)> {
        let Writable { places, skipped } = Writable::of(view.sandbox, None, &[], watch)?;
        let written: Vec<_> = places.iter().map(|(_, place)| place.clone()).collect();
        let readable = Readable::of(view.sandbox, &[], &written, watch)?;
        let mut homes = Homes::of(view.sandbox, watch)?;
        let mut mounts = Self(BTreeMap::new());
        for place in homes.places().chain(homes.kept_paths()) {
            mounts.cover(place.clone());
        }
        let resolver = match view.sandbox.network {
            Network::Host => Some(Path::new(RESOLVER)),
            // The proxy resolves names.
            Network::Listed | Network::Off => None,
        };
        for path in view.visible.iter().copied().chain(resolver) {
            if let Ok(place) = resolve_target(path, &written, watch)? {
                mounts.add_at(path, place, false)?;
            }
        }
        let hidden = view.sandbox.hidden.iter().map(PathBuf::as_path);
        for path in hidden.chain(HIDDEN.iter().map(Path::new)) {
            if let Some(path) = path_to_cover(path, view.sandbox, watch)? {
                mounts.cover(path);
            }
        }
        for path in PRIVATE {
            mounts.add(Path::new(path), Mount::Private, watch)?;
        }
        mounts.add(Path::new("/dev/pts"), Mount::Terminals, watch)?;
        let processes = match proc {
            Proc::Own => Mount::Processes,
            Proc::Empty => Mount::Empty,
        };
        mounts.add(Path::new("/proc"), processes, watch)?;
        for path in DEVICES {
            mounts.add_tree(Path::new(path), true, watch)?;
        }
        for (path, place) in readable.declared {
            mounts.add_at(&path, place, false)?;
        }
        for (path, place) in places {
            mounts.add_at(&path, place, true)?;
        }
        homes.look_into(|home| !mounts.covers(home), watch)?;
        for place in homes.kept_paths() {
            if !mounts.0.contains_key(place) {
                mounts.cover(place.clone());
            }
        }
        Ok((mounts, [skipped, readable.skipped].concat()))
    }

    /// Returns the mounts that have an effect, each after those it lies on.
    ///
    /// The directories between a writable tree and a mount in it are fixed in place: otherwise a
    /// process could move them, with hidden paths in them, away from where the next run looks for
    /// those.
    ///
    /// # Errors
    ///
    /// `/` itself is to be written or hidden.
    pub(crate) fn layers(&self) -> io::Result<Vec<Layer<'_>>> {
        let mut layers = Vec::new();
        let mut fixed: BTreeSet<&Path> = BTreeSet::new();
        let mut above: Vec<(&Path, Ground)> = Vec::new();
        for (path, mount) in &self.0 {
            let is_beside = |(above, _): &mut (&Path, Ground)| !path.starts_with(above);
            while above.pop_if(is_beside).is_some() {}
            let last = above.last().copied();
            let (base, ground) = last.unwrap_or((Path::new("/"), Ground::ReadOnly));
            if !is_needed(mount, ground) {
                continue;
            }
            if path == Path::new("/") {
                let reason = "`/` can be neither writable nor hidden as a whole";
                return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
            }
            let layer = |path, mount| Layer {
                path,
                mount,
                base,
                ground,
            };
            if ground == Ground::Writable {
                let between = directories_between(base, path).into_iter();
                let new = between.filter(|directory| fixed.insert(directory));
                layers.extend(new.map(|directory| layer(directory, &Mount::Fixed)));
            }
            layers.push(layer(path, mount));
            above.push((path, mount.ground()));
        }
        Ok(layers)
    }

    /// Hides `place`.
    fn cover(&mut self, place: PathBuf) {
        let mount = match place.is_dir() {
            true => Mount::Empty,
            false => Mount::Null,
        };
        self.0.insert(place, mount);
    }

    /// Returns whether `place` is hidden, except for mounts in it.
    fn covers(&self, place: &Path) -> bool {
        self.0.get(place).is_some_and(Mount::hides)
    }

    /// Adds a mount at the target of the path, if it exists.
    fn add(&mut self, path: &Path, mount: Mount, watch: &mut PathWatch) -> io::Result<()> {
        if let Some(path) = watch.find(path)? {
            self.0.insert(path, mount);
        }
        Ok(())
    }

    /// Adds the tree at the target of the path, and a link if the target is elsewhere.
    fn add_tree(&mut self, path: &Path, writable: bool, watch: &mut PathWatch) -> io::Result<()> {
        match watch.find(path)? {
            Some(target) => self.add_at(path, target, writable),
            None => Ok(()),
        }
    }

    fn add_at(&mut self, path: &Path, target: PathBuf, writable: bool) -> io::Result<()> {
        let path = absolute(path)?;
        if path != target {
            let target = target.clone();
            self.0.insert(path, Mount::Link { target });
        }
        self.0.insert(target, Mount::Tree { writable });
        Ok(())
    }

    /// Returns whether a mount inside an empty directory must stay visible.
    pub(crate) fn has_visible_mount(&self, directory: &Path) -> bool {
        let after = self.0.range::<Path, _>((Excluded(directory), Unbounded));
        let mut below = after.take_while(|(path, _)| path.starts_with(directory));
        below.any(|(_, mount)| !mount.hides())
    }
}

/// Returns the path to cover in order to hide `path`. If a closed directory is in the way and the
/// process could open it, that is the directory. Existing paths are covered even if the process
/// can't access them now: a mode may change.
fn path_to_cover(
    path: &Path,
    sandbox: &Sandbox,
    watch: &mut PathWatch,
) -> io::Result<Option<PathBuf>> {
    let lost = match watch.follow(path, &mut Vec::new()) {
        Ok(found) => return Ok(Some(found)),
        Err(lost) => lost,
    };
    match lost.closed_directory() {
        Some(closed) if watch.is_in_reach(closed, sandbox) => Ok(Some(closed.to_owned())),
        _ => lost.passed_over(path).map(|()| None),
    }
}

/// Underlying surface of a mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ground {
    /// The system, read-only.
    ReadOnly,
    /// The system, writable.
    Writable,
    /// Memory, without any mount point yet.
    Memory,
}

/// Returns whether the mount has any effect on this ground.
fn is_needed(mount: &Mount, ground: Ground) -> bool {
    match mount {
        Mount::Private | Mount::Processes | Mount::Terminals | Mount::Fixed => true,
        // Memory is empty, so nothing needs to be hidden there.
        Mount::Empty | Mount::Null => ground != Ground::Memory,
        Mount::Tree { writable } => match ground {
            Ground::Memory => true,
            Ground::ReadOnly => *writable,
            Ground::Writable => false,
        },
        Mount::Link { .. } => ground == Ground::Memory,
    }
}

/// Returns the directories between two paths, outermost first.
pub(crate) fn directories_between<'a>(base: &Path, path: &'a Path) -> Vec<&'a Path> {
    let above = path.ancestors().skip(1);
    let mut between: Vec<_> = above.take_while(|above| *above != base).collect();
    between.reverse();
    between
}
