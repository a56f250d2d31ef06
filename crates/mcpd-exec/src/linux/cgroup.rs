//! Control groups, version 2: limits that all processes of a run share, and a kill of all of them
//! at once.
//!
//! Groups are made only below a directory that was delegated to this process, and only for runs
//! whose limits need one: making a group and joining it costs about as much as starting a
//! process.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::{pipe, tree};
use crate::limits::Limits;

/// Prefix of the names of groups.
const PREFIX: &str = "run-";
/// Age at which an empty group counts as abandoned: its maker moves a process into it at once.
const ABANDONED_AGE: Duration = Duration::from_secs(60);

/// Groups of one executor.
#[derive(Debug)]
pub(crate) struct Groups {
    parent: PathBuf,
    /// Memory controller, or the reason that it can't be used.
    memory: Result<(), String>,
    processes: bool,
    /// Groups that could not be removed yet, because a process in them was still dying.
    stale: Mutex<Vec<PathBuf>>,
}

impl Groups {
    /// Opens the groups below `parent`.
    ///
    /// # Errors
    ///
    /// It is no group of version 2, or this process may not make groups in it, or may not move
    /// into one if it is itself in `parent`.
    pub(crate) fn below(parent: &Path) -> io::Result<Self> {
        Self::open(parent).map_err(|error| {
            let parent = parent.display();
            let what = format!(
                "`{parent}` is not a control group in which others can be created: {error}"
            );
            io::Error::new(error.kind(), what)
        })
    }

    fn open(parent: &Path) -> io::Result<Self> {
        let controllers = fs::read_to_string(parent.join("cgroup.controllers"))?;
        if own_group().as_deref() == Some(parent) {
            // A group that hands its controllers down may have no members of its own.
            let host = parent.join("host");
            fs::create_dir_all(&host)?;
            fs::write(host.join("cgroup.procs"), "0")?;
        }
        let control = parent.join("cgroup.subtree_control");
        let enable = |name: &str| {
            if !controllers.split_whitespace().any(|known| known == name) {
                return Err(format!("the control group has no `{name}` controller"));
            }
            fs::write(&control, format!("+{name}")).map_err(|error| match error.raw_os_error() {
                Some(libc::EBUSY) => format!(
                    "the control group contains other processes, so its `{name}` controller cannot be used"
                ),
                _ => format!("the control group refuses its `{name}` controller ({error})"),
            })
        };
        let groups = Self {
            memory: enable("memory"),
            processes: enable("pids").is_ok(),
            parent: parent.to_owned(),
            stale: Mutex::default(),
        };
        remove_abandoned(parent, ABANDONED_AGE);
        // Try it at once: the caller that configured the group must learn of a failure now, not
        // with the first run.
        let trial = groups.make_directory()?;
        fs::remove_dir(trial)?;
        Ok(groups)
    }

    /// Returns what `limits` need and the group can't do.
    pub(crate) fn missing_controller(&self, limits: &Limits) -> Option<String> {
        let reason = self
            .memory
            .as_ref()
            .err()
            .filter(|_| limits.memory.is_some());
        reason.map(|reason| format!("{reason}: memory is not limited"))
    }

    /// Makes a group for one run, if its limits need one.
    ///
    /// # Errors
    ///
    /// It can't be made, or does not accept the limits.
    pub(crate) fn group(self: &Arc<Self>, limits: &Limits) -> io::Result<Option<Group>> {
        let memory = limits.memory.filter(|_| self.memory.is_ok());
        let processes = limits.processes.filter(|_| self.processes);
        if memory.is_none() && processes.is_none() {
            return Ok(None);
        }
        self.remove_stale();
        let mut group = Group::in_directory(self.make_directory()?, Arc::clone(self))?;
        if let Some(memory) = memory {
            group.set("memory.max", memory)?;
            group.set("memory.oom.group", 1)?;
            // Absent on systems without swap.
            group.set("memory.swap.max", 0).ok();
        }
        if let Some(processes) = processes {
            group.set("pids.max", processes)?;
            group.counts_processes = true;
        }
        Ok(Some(group))
    }

    fn make_directory(&self) -> io::Result<PathBuf> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Relaxed);
        let directory = self
            .parent
            .join(format!("{PREFIX}{:08x}-{number}", tree::nonce()));
        fs::create_dir(&directory)?;
        Ok(directory)
    }

    fn remove_stale(&self) {
        let mut stale = self.stale.lock().unwrap_or_else(PoisonError::into_inner);
        stale.retain(|directory| !is_removed(directory));
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        self.remove_stale();
    }
}

/// Removes a group, if no process in it is still dying. It may have been removed elsewhere
/// before.
fn is_removed(directory: &Path) -> bool {
    match fs::remove_dir(directory) {
        Ok(()) => true,
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// Removes groups below `parent` that killed processes have left behind. Groups in use have
/// members, or are younger than `age`.
fn remove_abandoned(parent: &Path, age: Duration) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    for entry in entries {
        let is_group = entry
            .file_name()
            .as_encoded_bytes()
            .starts_with(PREFIX.as_bytes());
        let is_old = || {
            let made = entry.metadata()?.modified()?;
            io::Result::Ok(made.elapsed().is_ok_and(|elapsed| elapsed >= age))
        };
        if is_group && is_old().unwrap_or_default() {
            fs::remove_dir(entry.path()).ok();
        }
    }
}

/// Group of one run. It is removed on drop, or when the next one is made.
#[derive(Debug)]
pub(crate) struct Group {
    directory: PathBuf,
    /// File by which the first process of the run joins.
    members: OwnedFd,
    /// The group itself limits the number of its processes.
    pub(crate) counts_processes: bool,
    home: Arc<Groups>,
}

impl Group {
    fn in_directory(directory: PathBuf, home: Arc<Groups>) -> io::Result<Self> {
        let members = OpenOptions::new()
            .write(true)
            .open(directory.join("cgroup.procs"))
            .map(File::into)
            .and_then(pipe::above_reserved);
        match members {
            Ok(members) => Ok(Self {
                directory,
                members,
                counts_processes: false,
                home,
            }),
            Err(error) => {
                fs::remove_dir(&directory).ok();
                Err(error)
            }
        }
    }

    fn set(&self, name: impl AsRef<OsStr>, value: u64) -> io::Result<()> {
        fs::write(self.directory.join(name.as_ref()), value.to_string())
    }

    /// File to which a process writes "0" in order to join.
    pub(crate) fn members(&self) -> BorrowedFd<'_> {
        self.members.as_fd()
    }

    /// Kills all its members at once (Linux 5.14).
    pub(crate) fn kill(&self) {
        self.set("cgroup.kill", 1).ok();
    }

    /// Returns whether the kernel has killed it for lack of memory.
    pub(crate) fn ran_out_of_memory(&self) -> bool {
        let events = fs::read_to_string(self.directory.join("memory.events"));
        let killed = |line: &str| line.strip_prefix("oom_kill ").is_some_and(|n| n != "0");
        events.is_ok_and(|events| events.lines().any(killed))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !is_removed(&self.directory) {
            let mut stale = self
                .home
                .stale
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            stale.push(std::mem::take(&mut self.directory));
        }
    }
}

/// Returns the group of this process, if systemd has delegated it, with the memory controller.
pub(crate) fn delegated_group() -> Option<PathBuf> {
    use rustix::fs::{Access, access};

    let own = own_group().filter(|own| is_delegated(own))?;
    let controllers = fs::read_to_string(own.join("cgroup.controllers")).ok()?;
    let has_memory = controllers.split_whitespace().any(|name| name == "memory");
    (has_memory && access(&own, Access::WRITE_OK).is_ok()).then_some(own)
}

/// Returns whether systemd has marked the group as delegated. Root may write to every group, also
/// to those of systemd itself.
fn is_delegated(group: &Path) -> bool {
    let mut value = [0; 1];
    let length = rustix::fs::getxattr(group, "user.delegate", &mut value);
    length == Ok(1) && value == *b"1"
}

/// Returns the group of this process, if it is in one of version 2.
fn own_group() -> Option<PathBuf> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let mount = mounts.lines().find(|line| line.contains(" - cgroup2 "))?;
    Some(Path::new(mount.split(' ').nth(4)?).join(path))
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use super::*;
    use crate::command::Command;
    use crate::linux::confinement::Confinement;
    use crate::linux::skip::skip;
    use crate::sandbox::Sandbox;

    /// Directory like a delegated one, removed on drop.
    struct Delegated(PathBuf);

    impl Delegated {
        fn new(name: &str) -> Option<Self> {
            let directory = own_group()?.join(format!("mcpd-test-{name}-{}", std::process::id()));
            match fs::create_dir(&directory) {
                Ok(()) => Some(Self(directory)),
                Err(error) => {
                    skip(&format!("`{}`: {error}", directory.display()));
                    None
                }
            }
        }
    }

    impl Drop for Delegated {
        fn drop(&mut self) {
            fs::remove_dir(&self.0).unwrap();
        }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "no executor is needed to sleep")]
    fn group_kills_its_members_at_once_and_is_removed() {
        let Some(delegated) = Delegated::new("kill") else {
            return;
        };
        let groups = Arc::new(Groups::below(&delegated.0).unwrap());
        let group =
            Group::in_directory(groups.make_directory().unwrap(), Arc::clone(&groups)).unwrap();
        let mut sleep = std::process::Command::new("sleep");
        let mut sleep = sleep.arg("300").stdin(Stdio::null()).spawn().unwrap();
        group.set("cgroup.procs", u64::from(sleep.id())).unwrap();
        group.kill();
        let status = sleep.wait().unwrap();
        assert_eq!(crate::os::signal(status), Some(crate::os::KILL));
        assert!(!group.ran_out_of_memory());
        let directory = group.directory.clone();
        drop(group);
        groups.remove_stale();
        assert!(!directory.exists());
    }

    #[test]
    fn limits_without_a_controller_are_named() {
        let Some(delegated) = Delegated::new("lack") else {
            return;
        };
        let groups = Arc::new(Groups::below(&delegated.0).unwrap());
        let limits = Limits {
            memory: Some(64 << 20),
            ..Limits::default()
        };
        if groups.memory.is_ok() {
            let group = groups.group(&limits).unwrap().unwrap();
            let limit = fs::read_to_string(group.directory.join("memory.max")).unwrap();
            assert_eq!(limit.trim(), (64 << 20).to_string());
        } else {
            assert!(
                groups
                    .missing_controller(&limits)
                    .unwrap()
                    .contains("memory")
            );
            assert!(groups.group(&limits).unwrap().is_none());
        }
    }

    /// Makes a directory that looks like a group, as far as its members are not involved.
    fn group_like(directory: &Path) -> Group {
        fs::write(directory.join("cgroup.procs"), "").unwrap();
        let groups = Groups {
            parent: directory.to_owned(),
            memory: Ok(()),
            processes: true,
            stale: Mutex::default(),
        };
        Group::in_directory(directory.to_owned(), Arc::new(groups)).unwrap()
    }

    #[test]
    fn group_removed_elsewhere_is_forgotten() {
        let stale = |groups: &Groups| groups.stale.lock().unwrap().len();
        let directory = tempfile::tempdir().unwrap();
        let group = group_like(directory.path());
        let groups = Arc::clone(&group.home);
        drop(group);
        assert_eq!(stale(&groups), 1);
        directory.close().unwrap();
        groups.remove_stale();
        assert_eq!(stale(&groups), 0);

        let directory = tempfile::tempdir().unwrap();
        let group = group_like(directory.path());
        let groups = Arc::clone(&group.home);
        directory.close().unwrap();
        drop(group);
        assert_eq!(stale(&groups), 0);
    }

    #[test]
    fn process_limit_of_a_group_replaces_that_of_the_user() {
        let directory = tempfile::tempdir().unwrap();
        let mut group = group_like(directory.path());
        group.counts_processes = true;
        let mut confinement = Confinement {
            group: Some(group),
            ..Confinement::default()
        };
        let command = Command::new("true").sandbox(Sandbox::strict());
        assert_eq!(confinement.limits(&command).processes, None);
        confinement.group = None;
        // One more for the first process of the namespaces.
        assert_eq!(confinement.limits(&command).processes, Some(256 + 1));
    }

    #[test]
    fn abandoned_groups_are_removed_when_old() {
        let parent = tempfile::tempdir().unwrap();
        for name in ["run-1-2", "run-3-4/member", "other"] {
            fs::create_dir_all(parent.path().join(name)).unwrap();
        }
        let is_there = |name: &str| parent.path().join(name).exists();
        remove_abandoned(parent.path(), Duration::from_secs(60));
        assert!(is_there("run-1-2"));
        remove_abandoned(parent.path(), Duration::ZERO);
        assert!(!is_there("run-1-2") && is_there("run-3-4") && is_there("other"));
    }

    #[test]
    fn directory_that_is_no_group_is_refused() {
        let error = Groups::below(Path::new("/tmp")).unwrap_err().to_string();
        assert!(error.contains("`/tmp`"), "{error}");
    }
}
