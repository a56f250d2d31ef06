//! Namespaces of a process at level `strict`, and the mount plan that lays its
//! [view](super::view) of the system. This module only plans; the child performs the steps in
//! [`raw`](super::raw).

#[cfg(test)]
mod tests;

use std::ffi::{CString, OsStr};
use std::io;
use std::path::Path;

use libc::{MS_BIND, MS_NODEV, MS_NOEXEC, MS_NOSUID, MS_PRIVATE, MS_RDONLY, MS_REC, c_int};
use rustix::process::{getegid, geteuid};

use super::image::text;
use super::path_watch::PathWatch;
use super::raw::{MAX_TREES, Step};
use super::view::{Ground, Mount, Mounts, Proc, View, directories_between};
use crate::sandbox::RunAs;

/// Limits of such a directory. Each file takes a page, so more inodes would be of no use.
const PRIVATE_SIZE: &str = "size=64m,nr_inodes=32k,mode=1777";
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

/// Steps, by the phase in which they are due.
#[derive(Debug, Default)]
struct Layout {
    writable: Vec<Step>,
    readable: Vec<Step>,
    mounts: Vec<Step>,
    closing: Vec<Step>,
    slots: usize,
}

impl Layout {
    fn place(&mut self, mounts: &Mounts) -> io::Result<()> {
        for layer in mounts.layers()? {
            if layer.ground == Ground::Memory {
                self.make_mount_point(layer.base, layer.path, layer.mount)?;
            }
            self.lay_mount(layer.path, layer.mount, mounts)?;
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

    fn lay_mount(&mut self, path: &Path, mount: &Mount, mounts: &Mounts) -> io::Result<()> {
        match mount {
            Mount::Private => {
                let flags = MS_NOSUID | MS_NODEV;
                self.mounts
                    .push(self::mount("tmpfs", path, "tmpfs", flags, PRIVATE_SIZE)?);
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
            }
            Mount::Null => {
                self.closing
                    .push(self::mount("/dev/null", path, "", MS_BIND, "")?);
            }
            Mount::Processes => {
                // Writable, it would let root change settings of the system.
                let flags = MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC;
                self.mounts
                    .push(self::mount("proc", path, "proc", flags, "")?);
            }
            Mount::Terminals => {
                let (flags, data) = (MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620");
                let ptmx = Path::new("/dev/ptmx");
                self.mounts
                    .push(self::mount("devpts", path, "devpts", flags, data)?);
                self.mounts
                    .push(self::mount("/dev/pts/ptmx", ptmx, "", MS_BIND, "")?);
            }
            Mount::Tree { writable } => self.tree(path, *writable)?,
            // `make_mount_point` has made it.
            Mount::Link { .. } => {}
            Mount::Fixed => {
                let flags = MS_BIND | MS_REC;
                self.mounts.push(self::mount(path, path, "", flags, "")?);
            }
        }
        Ok(())
    }

    fn tree(&mut self, path: &Path, writable: bool) -> io::Result<()> {
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
        } else {
            self.readable.push(take);
        }
        Ok(())
    }
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
