//! Mount plan of a child, step by step. Its unsafe functions are for a child made by
//! [`spawn`](super::spawn()) alone.

use std::ffi::CStr;

use libc::{c_int, c_long};

use super::child::{FailedStep, try_step};
use super::errno;
use super::plan::{FixedPlace, MAX_TREES, SetupStage, Step};

/// Performs the steps of a plan. If one of them takes the tree at the path of `fixed`, it must be
/// that directory.
pub(super) unsafe fn perform_steps(
    steps: &[Step],
    fixed: Option<FixedPlace<'_>>,
    stage: SetupStage,
) -> Result<(), FailedStep> {
    let mut taken: [c_long; MAX_TREES] = [-1; MAX_TREES];
    // Files made on the way must be accessible to the user of the run. The umask of the child is
    // its own.
    // SAFETY: no pointers.
    let mask = unsafe { libc::umask(0o022) };
    for step in steps {
        // SAFETY: the strings of the step are live.
        try_step(stage, || unsafe { perform_step(step, fixed, &mut taken) })?;
    }
    // SAFETY: no pointers.
    unsafe { libc::umask(mask) };
    Ok(())
}

// Flags of mount calls that `libc` lacks.
const OPEN_TREE_CLONE: c_int = 1;

const AT_RECURSIVE: c_int = 0x8000;

const MOVE_MOUNT_F_EMPTY_PATH: c_int = 4;

const MOVE_MOUNT_T_EMPTY_PATH: c_int = 0x40;

/// Opens a path without following links: a component may have become a link elsewhere since the
/// plan was made.
unsafe fn open_place(path: &CStr) -> c_long {
    let how = [
        (libc::O_PATH | libc::O_CLOEXEC) as u64,
        0,
        libc::RESOLVE_NO_SYMLINKS,
    ];
    let (path, how, size) = (path.as_ptr(), how.as_ptr(), size_of_val(&how));
    // SAFETY: the string and the structure are live.
    unsafe { libc::syscall(libc::SYS_openat2, libc::AT_FDCWD, path, how, size) }
}

/// Fails with `ESTALE` unless `place`, an open directory or `AT_FDCWD`, is `fixed`.
pub(super) unsafe fn check_identity(place: c_int, fixed: FixedPlace<'_>) -> c_long {
    // SAFETY: the structure is plain data, live, and filled by the kernel; `errno` is the child's.
    unsafe {
        let mut found: libc::stat64 = std::mem::zeroed();
        let path = c"".as_ptr();
        let result = libc::fstatat64(place, path, &raw mut found, libc::AT_EMPTY_PATH);
        if result == 0 && (found.st_dev, found.st_ino) != (fixed.device, fixed.inode) {
            *libc::__errno_location() = libc::ESTALE;
            return -1;
        }
        c_long::from(result)
    }
}

/// Copies the mount tree at a path. If that is the path of `fixed`, it must be that directory: a
/// mount needs a descriptor of this namespace, so the path is opened and compared, and what was
/// compared is taken.
unsafe fn take_tree(path: &CStr, fixed: Option<FixedPlace<'_>>) -> c_long {
    // SAFETY: the strings are live, and the descriptor is this child's.
    unsafe {
        let place = open_place(path);
        if place < 0 {
            return place;
        }
        let fixed = fixed.filter(|fixed| fixed.path == path);
        if let Some(fixed) = fixed
            && check_identity(place as c_int, fixed) < 0
        {
            return -1;
        }
        let flags = OPEN_TREE_CLONE | libc::O_CLOEXEC | AT_RECURSIVE | libc::AT_EMPTY_PATH;
        let tree = libc::syscall(libc::SYS_open_tree, place, c"".as_ptr(), flags);
        libc::close(place as c_int);
        tree
    }
}

/// Attaches a copied tree at a path, without following links.
unsafe fn attach_tree(tree: c_long, path: &CStr) -> c_long {
    // SAFETY: the strings are live, and the descriptors are this child's.
    unsafe {
        let target = open_place(path);
        if target < 0 {
            return target;
        }
        let flags = MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH;
        let itself = c"".as_ptr();
        let moved = libc::syscall(libc::SYS_move_mount, tree, itself, target, itself, flags);
        libc::close(target as c_int);
        moved
    }
}

unsafe fn perform_step(
    step: &Step,
    fixed: Option<FixedPlace<'_>>,
    taken: &mut [c_long; MAX_TREES],
) -> c_long {
    // SAFETY: all pointers are to strings of the step.
    unsafe {
        match step {
            Step::Write { path, text } => write(path, text),
            Step::Mount {
                source,
                target,
                kind,
                flags,
                data,
            } => {
                let (source, target) = (source.as_ptr(), target.as_ptr());
                let data = data.as_ptr().cast();
                c_long::from(libc::mount(source, target, kind.as_ptr(), *flags, data))
            }
            Step::Take { path, slot } => {
                taken[*slot] = take_tree(path, fixed);
                taken[*slot]
            }
            Step::Directory { path } => {
                accept_existing(c_long::from(libc::mkdir(path.as_ptr(), 0o755)))
            }
            Step::File { path } => {
                let flags = libc::O_CREAT | libc::O_WRONLY | libc::O_CLOEXEC;
                let file = libc::open(path.as_ptr(), flags, 0o644);
                if file >= 0 {
                    // An open file would keep its file system from being made read-only.
                    libc::close(file);
                }
                accept_existing(c_long::from(file))
            }
            Step::Link { path, target } => {
                accept_existing(c_long::from(libc::symlink(target.as_ptr(), path.as_ptr())))
            }
            Step::Attach { slot, path } => attach_tree(taken[*slot], path),
            Step::Attributes { path, set, below } => {
                let attributes = [*set, 0, 0, 0];
                let flags = if *below { AT_RECURSIVE } else { 0 };
                let (path, size) = (path.as_ptr(), size_of_val(&attributes));
                let attributes = attributes.as_ptr();
                libc::syscall(
                    libc::SYS_mount_setattr,
                    libc::AT_FDCWD,
                    path,
                    flags,
                    attributes,
                    size,
                )
            }
        }
    }
}

/// Accepts the error that the file exists.
fn accept_existing(result: c_long) -> c_long {
    if result < 0 && errno() == libc::EEXIST {
        0
    } else {
        result
    }
}

unsafe fn write(path: &CStr, text: &CStr) -> c_long {
    // SAFETY: both strings are live.
    unsafe {
        let file = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        if file < 0 {
            return -1;
        }
        // If this fails, the descriptor is closed with the child's table.
        let written = libc::write(file, text.as_ptr().cast(), text.to_bytes().len());
        if written >= 0 {
            libc::close(file);
        }
        written as c_long
    }
}
