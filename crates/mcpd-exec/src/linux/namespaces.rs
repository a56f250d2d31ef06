//! View of the system at level `strict`: the namespaces of a process, and the mount plan that
//! sets them up. This module only plans; the child performs the steps in [`raw`](super::raw).
//!
//! The system is visible and read-only. Mounts are laid over it, each at its path, and the
//! deepest one counts: private directories in memory, empty ones over hidden paths, and the parts
//! that can be written or must stay visible although a directory above them is covered.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CString, OsStr};
use std::io;
use std::ops::Bound::{Excluded, Unbounded};
use std::path::{Path, PathBuf, absolute};

use libc::{MS_BIND, MS_NODEV, MS_NOEXEC, MS_NOSUID, MS_PRIVATE, MS_RDONLY, MS_REC, c_int};
use rustix::process::{getegid, geteuid};

use super::home::Homes;
use super::image::text;
use super::path_watch::PathWatch;
use super::raw::{MAX_TREES, Step};
use super::writable::{Readable, Writable, resolve_target};
use crate::sandbox::{Network, RunAs, Sandbox};

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

/// Private writable directories in memory.
const PRIVATE: &[&str] = &["/tmp", "/var/tmp", "/dev/shm"];
/// Limits of such a directory. Each file takes a page, so more inodes would be of no use.
const PRIVATE_SIZE: &str = "size=64m,nr_inodes=32k,mode=1777";
/// Sockets and queues of the host's services.
const HIDDEN: &[&str] = &["/run", "/dev/mqueue"];
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

const RDONLY: u64 = libc::MOUNT_ATTR_RDONLY;
const READ_ONLY: u64 = RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;

/// Returns the `clone` flags for a process that runs as `run_as`.
///
/// There is no network namespace, which would be the most expensive of them: a process without
/// network is denied sockets by the filter instead. One with a [gateway](super::gateway) gets one
/// from there.
pub(crate) fn flags(run_as: Option<RunAs>) -> c_int {
    let always = libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS;
    if has_own_users(run_as) {
        always | libc::CLONE_NEWUSER
    } else {
        always
    }
}

/// Returns whether the run gets a user namespace. It has a single user, so it excludes a change
/// of user; and root, which can change it, can mount without one.
pub(crate) fn has_own_users(run_as: Option<RunAs>) -> bool {
    run_as.is_none()
}

/// Mount plan of the namespaces.
#[derive(Debug)]
pub(crate) struct MountPlan {
    /// Steps of the child. Afterwards it must enter its working directory by path.
    pub(crate) steps: Vec<Step>,
    /// Paths that were to be writable and are not, each as a sentence.
    pub(crate) skipped: Vec<String>,
    /// The paths that the plan depends on.
    pub(crate) watch: PathWatch,
}

impl MountPlan {
    /// Plans the view.
    ///
    /// # Errors
    ///
    /// Too many paths are to be written or seen, `/` itself is to be written or hidden, or a path
    /// can't be inspected.
    pub(crate) fn new(view: &View<'_>, proc: Proc) -> io::Result<Self> {
        let mut watch = PathWatch::new();
        let (mounts, skipped) = Mounts::of(view, proc, &mut watch)?;
        let mut layout = Layout::default();
        layout.place(&mounts)?;
        let mut steps = Vec::new();
        if has_own_users(view.sandbox.run_as) {
            steps.extend(user_map_steps()?);
        }
        // Mount events must not propagate between the host and the run.
        steps.push(mount("none", Path::new("/"), "", MS_REC | MS_PRIVATE, "")?);
        // Order matters: a tree copied now stays writable, one copied after the next step is
        // read-only.
        steps.append(&mut layout.writable);
        steps.push(attributes(Path::new("/"), READ_ONLY, true)?);
        steps.append(&mut layout.readable);
        steps.append(&mut layout.mounts);
        steps.append(&mut layout.closing);
        Ok(Self {
            steps,
            skipped,
            watch,
        })
    }
}

/// Maps only the user itself, to the same number.
pub(crate) fn user_map_steps() -> io::Result<[Step; 3]> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    let write = |path: &str, text: String| {
        let (path, text) = (CString::new(path)?, CString::new(text)?);
        io::Result::Ok(Step::Write { path, text })
    };
    Ok([
        write("/proc/self/setgroups", "deny".to_owned())?,
        write("/proc/self/uid_map", format!("{user} {user} 1"))?,
        write("/proc/self/gid_map", format!("{group} {group} 1"))?,
    ])
}

/// Mount that is laid over the system.
#[derive(Debug, PartialEq, Eq)]
enum Mount {
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
}

impl Mount {
    /// Returns whether it only hides.
    fn hides(&self) -> bool {
        matches!(self, Self::Empty | Self::Null)
    }
}

/// Mounts by path, so that one inside another comes after it.
#[derive(Debug)]
struct Mounts(BTreeMap<PathBuf, Mount>);

impl Mounts {
    /// Collects the mounts, and the paths that were to be writable and are not. Later mounts
    /// replace earlier ones at the same path.
    fn of(view: &View<'_>, proc: Proc, watch: &mut PathWatch) -> io::Result<(Self, Vec<String>)> {
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
    fn has_visible_mount(&self, directory: &Path) -> bool {
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
enum Ground {
    /// The system, read-only.
    ReadOnly,
    /// The system, writable.
    Writable,
    /// Memory, without any mount point yet.
    Memory,
}

/// Steps, by the phase in which they are due.
#[derive(Debug, Default)]
struct Layout {
    writable: Vec<Step>,
    readable: Vec<Step>,
    mounts: Vec<Step>,
    closing: Vec<Step>,
    slots: usize,
    /// Directories that can't be moved any more.
    fixed: BTreeSet<PathBuf>,
}

impl Layout {
    fn place(&mut self, mounts: &Mounts) -> io::Result<()> {
        let mut above: Vec<(&Path, Ground)> = Vec::new();
        for (path, mount) in &mounts.0 {
            while above
                .last()
                .is_some_and(|(above, _)| !path.starts_with(above))
            {
                above.pop();
            }
            let (base, ground) = above
                .last()
                .copied()
                .unwrap_or((Path::new("/"), Ground::ReadOnly));
            if !is_needed(mount, ground) {
                continue;
            }
            if path == Path::new("/") {
                let reason = "`/` can be neither writable nor hidden as a whole";
                return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
            }
            match ground {
                Ground::Memory => self.make_mount_point(base, path, mount)?,
                Ground::Writable => self.fix_directories(base, path)?,
                Ground::ReadOnly => {}
            }
            let ground = self.lay_mount(path, mount, mounts)?;
            above.push((path, ground));
        }
        Ok(())
    }

    /// Makes the mount point of `mount` in `memory`, with the directories above it.
    fn make_mount_point(&mut self, memory: &Path, path: &Path, mount: &Mount) -> io::Result<()> {
        for above in directories_between(memory, path) {
            self.mounts.push(Step::Directory { path: text(above)? });
        }
        let path_text = text(path)?;
        self.mounts.push(match mount {
            Mount::Link { target } => Step::Link {
                path: path_text,
                target: text(target)?,
            },
            Mount::Tree { .. } if !path.is_dir() => Step::File { path: path_text },
            _ => Step::Directory { path: path_text },
        });
        Ok(())
    }

    /// Fixes the directories between `base` and `path` in place: otherwise a process could move
    /// them, with hidden paths in them, away from where the next run looks for those. Mount
    /// points can't be moved, so each becomes one.
    fn fix_directories(&mut self, base: &Path, path: &Path) -> io::Result<()> {
        for above in directories_between(base, path) {
            if self.fixed.insert(above.to_owned()) {
                let flags = MS_BIND | MS_REC;
                self.mounts.push(mount(above, above, "", flags, "")?);
            }
        }
        Ok(())
    }

    fn lay_mount(&mut self, path: &Path, mount: &Mount, mounts: &Mounts) -> io::Result<Ground> {
        match mount {
            Mount::Private => {
                let flags = MS_NOSUID | MS_NODEV;
                self.mounts
                    .push(self::mount("tmpfs", path, "tmpfs", flags, PRIVATE_SIZE)?);
                Ok(Ground::Memory)
            }
            Mount::Empty => {
                let mut flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
                if mounts.has_visible_mount(path) {
                    self.closing.push(attributes(path, RDONLY, false)?);
                } else {
                    flags |= MS_RDONLY;
                }
                self.mounts
                    .push(self::mount("tmpfs", path, "tmpfs", flags, "mode=755")?);
                Ok(Ground::Memory)
            }
            Mount::Null => {
                self.closing
                    .push(self::mount("/dev/null", path, "", MS_BIND, "")?);
                Ok(Ground::ReadOnly)
            }
            Mount::Processes => {
                // Writable, it would let root change settings of the system.
                let flags = MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC;
                self.mounts
                    .push(self::mount("proc", path, "proc", flags, "")?);
                Ok(Ground::ReadOnly)
            }
            Mount::Terminals => {
                let (flags, data) = (MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620");
                let ptmx = Path::new("/dev/ptmx");
                self.mounts
                    .push(self::mount("devpts", path, "devpts", flags, data)?);
                self.mounts
                    .push(self::mount("/dev/pts/ptmx", ptmx, "", MS_BIND, "")?);
                Ok(Ground::ReadOnly)
            }
            Mount::Tree { writable } => self.tree(path, *writable),
            // `make_mount_point` has made it.
            Mount::Link { .. } => Ok(Ground::ReadOnly),
        }
    }

    fn tree(&mut self, path: &Path, writable: bool) -> io::Result<Ground> {
        let slot = self.slots;
        if slot == MAX_TREES {
            let reason = format!("more than {MAX_TREES} writable or visible paths");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        }
        self.slots += 1;
        let take = Step::Take {
            path: text(path)?,
            slot,
        };
        self.mounts.push(Step::Attach {
            slot,
            path: text(path)?,
        });
        if writable {
            self.writable.push(take);
            Ok(Ground::Writable)
        } else {
            self.readable.push(take);
            Ok(Ground::ReadOnly)
        }
    }
}

/// Returns whether the mount has any effect on this ground.
fn is_needed(mount: &Mount, ground: Ground) -> bool {
    match mount {
        Mount::Private | Mount::Processes | Mount::Terminals => true,
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
fn directories_between<'a>(base: &Path, path: &'a Path) -> Vec<&'a Path> {
    let above = path.ancestors().skip(1);
    let mut between: Vec<_> = above.take_while(|above| *above != base).collect();
    between.reverse();
    between
}

fn mount(
    source: impl AsRef<OsStr>,
    target: &Path,
    kind: &str,
    flags: u64,
    data: &str,
) -> io::Result<Step> {
    Ok(Step::Mount {
        source: text(source)?,
        target: text(target)?,
        kind: CString::new(kind)?,
        flags,
        data: CString::new(data)?,
    })
}

fn attributes(path: &Path, set: u64, below: bool) -> io::Result<Step> {
    let path = text(path)?;
    Ok(Step::Attributes { path, set, below })
}
