//! Process creation with vfork semantics, and the few system calls that no safe library offers.
//! All unsafe code of the crate is here and below.
//!
//! The child runs on its own stack in the memory of this process, while the calling thread sleeps
//! until the child has reached its program or has ended. So the child may only make system calls:
//! it must not allocate, lock or panic. Everything it needs is prepared before, and it reports
//! back in two words, [`ChildReport`].
#![expect(
    unsafe_code,
    reason = "std can only confine a child after fork, which takes the longer the larger we are"
)]

pub(crate) mod init;
#[cfg(test)]
pub(crate) mod injection;
pub(crate) mod lease;

use std::cell::RefCell;
use std::convert::Infallible;
use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use libc::{c_char, c_int, c_long, c_void};
use rustix::process::Pid;
use seccompiler::BpfProgramRef;

use crate::outcome::Usage;
use crate::sandbox::RunAs;
use crate::variables::Variables;

/// Stack size of the child, for its few frames.
const STACK_SIZE: usize = 64 * 1024;
/// Last standard signal. The real-time signals after it are never ignored, and resetting each
/// would cost every run a system call.
const LAST_SIGNAL: c_int = 31;

/// Address space that an arena of the allocator reserves at a time. It becomes memory only when
/// it is used.
#[cfg(target_env = "gnu")]
const ARENA_STEP: c_int = 4 << 20;
/// Smallest allocation that gets its own mapping. Once any option is set, glibc stops adapting
/// this threshold by itself.
#[cfg(target_env = "gnu")]
const MMAP_THRESHOLD: c_int = 1 << 20;

/// Lets the allocator take memory in large pieces.
pub(crate) fn prepare_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: It sets numbers that the allocator reads under its locks.
    unsafe {
        libc::mallopt(libc::M_TOP_PAD, ARENA_STEP);
        libc::mallopt(libc::M_MMAP_THRESHOLD, MMAP_THRESHOLD);
    }
}

/// Lets the allocator return free memory to the system.
pub(crate) fn release_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: It touches nothing but free memory, and that under the locks of the allocator.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Makes children waitable, and ignores SIGXFSZ unless it has a handler.
pub(crate) fn prepare_signals() {
    if loses_children() {
        // SAFETY: no handler is installed.
        unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    }
    if action(libc::SIGXFSZ).sa_sigaction == libc::SIG_DFL {
        // SAFETY: no handler is installed.
        unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    }
}

/// Returns whether the exit statuses of children are lost, so that their numbers may be reused
/// unnoticed.
pub(crate) fn loses_children() -> bool {
    let action = action(libc::SIGCHLD);
    action.sa_sigaction == libc::SIG_IGN || action.sa_flags & libc::SA_NOCLDWAIT != 0
}

/// Returns whether `close_range` can mark descriptors close-on-exec in a child (Linux 5.11), even
/// those the host has not marked.
pub(crate) fn marks_descriptors() -> bool {
    // SAFETY: there is no such descriptor.
    unsafe {
        libc::syscall(
            libc::SYS_close_range,
            u32::MAX,
            u32::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        ) == 0
    }
}

/// Returns the action of this process on a signal.
fn action(signal: c_int) -> libc::sigaction {
    // SAFETY: an all-zero action is valid; nothing is set.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, null(), &raw mut action);
        action
    }
}

/// Program with its arguments and environment, as the kernel takes them.
#[derive(Debug)]
pub(crate) struct Image {
    /// Owners of the strings that the pointers refer to.
    _strings: [Vec<CString>; 2],
    _inherited: Variables,
    argv: Vec<*const c_char>,
    envp: Vec<*const c_char>,
}

impl Image {
    /// The first argument is the path of the program. Inherited variables are included if `keep`
    /// is true of their name.
    pub(crate) fn new(
        arguments: Vec<CString>,
        inherited: Variables,
        keep: impl Fn(&OsStr) -> bool,
        set: Vec<CString>,
    ) -> Self {
        let kept = inherited.entries().filter(|(name, _)| keep(name));
        let entries = kept.map(|(_, entry)| entry);
        let entries = entries.chain(set.iter().map(CString::as_c_str));
        let argv = arguments.iter().map(|text| text.as_ptr());
        Self {
            argv: argv.chain([null()]).collect(),
            envp: entries.map(CStr::as_ptr).chain([null()]).collect(),
            _strings: [arguments, set],
            _inherited: inherited,
        }
    }
}

/// Steps of the child on its way to the program, in the order of the fields.
#[derive(Debug)]
pub(crate) struct SpawnPlan<'a> {
    /// Own namespaces, and the steps to set them up.
    pub(crate) namespaces: Option<&'a Namespaces<'a>>,
    /// Standard input, output and error. Their numbers are above [`SpawnPlan::LAST_RESERVED_FD`].
    pub(crate) stdio: [BorrowedFd<'a>; 3],
    /// `RLIMIT_*`, soft and hard.
    pub(crate) limits: &'a [(c_int, u64, u64)],
    /// The `cgroup.procs` of the group to join, open for writing.
    pub(crate) cgroup: Option<BorrowedFd<'a>>,
    /// The mark that identifies it and all its descendants, and the secret word that the filter
    /// demands for setting it.
    pub(crate) mark: Option<(u64, u64)>,
    pub(crate) run_as: Option<RunAs>,
    pub(crate) directory: Option<&'a CStr>,
    /// Starts a session, which detaches it from the terminal of this process. Otherwise it only
    /// starts a group.
    pub(crate) session: bool,
    /// Neither the process nor any program it executes gains privileges, not even root's.
    pub(crate) unprivileged: bool,
    /// Landlock ruleset to enter.
    pub(crate) ruleset: Option<BorrowedFd<'a>>,
    /// Filter to add to that of the calling thread.
    pub(crate) filter: Option<BpfProgramRef<'a>>,
    pub(crate) image: &'a Image,
}

impl SpawnPlan<'_> {
    /// Last descriptor that the child gives a new meaning on the way.
    pub(crate) const LAST_RESERVED_FD: RawFd = 3;
}

/// Namespaces for one process, and the steps of their mount plan.
#[derive(Debug)]
pub(crate) struct Namespaces<'a> {
    /// `CLONE_NEW*`.
    pub(crate) flags: c_int,
    pub(crate) steps: &'a [Step],
    /// The program that runs as the first process of the namespace, and starts the real one.
    pub(crate) init: BorrowedFd<'a>,
    /// Pipe to which that program reports, as its descriptor 3.
    pub(crate) status: BorrowedFd<'a>,
}

/// One step of a mount plan.
#[derive(Debug)]
pub(crate) enum Step {
    /// Writes text to a file.
    Write { path: CString, text: CString },
    /// Mounts a file system, or changes the propagation of mounts.
    Mount {
        source: CString,
        target: CString,
        kind: CString,
        flags: u64,
        data: CString,
    },
    /// Takes a copy of the mount tree at a path, to be attached later.
    Take { path: CString, slot: usize },
    /// Makes a directory. An existing one is fine.
    Directory { path: CString },
    /// Makes an empty file. An existing one is fine.
    File { path: CString },
    /// Makes a symbolic link, unless the name exists.
    Link { path: CString, target: CString },
    /// Attaches the tree of a slot.
    Attach { slot: usize, path: CString },
    /// Sets attributes of the mount at a path, and of all mounts below if asked to.
    Attributes {
        path: CString,
        set: u64,
        below: bool,
    },
}

/// Number of trees that one plan may take.
pub(crate) const MAX_TREES: usize = 32;

/// Process that has reached its program.
#[derive(Debug)]
pub(crate) struct Spawned {
    pub(crate) pid: Pid,
    pub(crate) pidfd: OwnedFd,
}

/// Stage at which a start failed, and its error.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) stage: SetupStage,
    pub(crate) error: io::Error,
}

/// Activity of the child when it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum SetupStage {
    Clone,
    Namespaces,
    Session,
    Stdio,
    Descriptors,
    Limits,
    Cgroup,
    Mark,
    User,
    Directory,
    Privileges,
    Lifeline,
    Landlock,
    Signals,
    Seccomp,
    Exec,
}

const SETUP_STAGES: [SetupStage; 16] = [
    SetupStage::Clone,
    SetupStage::Namespaces,
    SetupStage::Session,
    SetupStage::Stdio,
    SetupStage::Descriptors,
    SetupStage::Limits,
    SetupStage::Cgroup,
    SetupStage::Mark,
    SetupStage::User,
    SetupStage::Directory,
    SetupStage::Privileges,
    SetupStage::Lifeline,
    SetupStage::Landlock,
    SetupStage::Signals,
    SetupStage::Seccomp,
    SetupStage::Exec,
];

impl SetupStage {
    /// Returns the text that completes "failed to".
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::Clone => "create a process",
            Self::Namespaces => "set up namespaces",
            Self::Session => "start a session or a group",
            Self::Stdio => "connect its pipes",
            Self::Descriptors => "keep descriptors from it",
            Self::Limits => "set its limits",
            Self::Cgroup => "put it into its control group",
            Self::Mark => "mark it",
            Self::User => "change its user",
            Self::Directory => "enter its directory",
            Self::Privileges => "drop its privileges",
            Self::Lifeline => "tie it to this process",
            Self::Landlock => "enter its Landlock ruleset",
            Self::Signals => "reset its signals",
            Self::Seccomp => "install its system call filter",
            Self::Exec => "execute it",
        }
    }
}

/// Report of the child. `errno` stays 0 unless it gives up.
#[derive(Debug, Default)]
struct ChildReport {
    stage: AtomicU32,
    errno: AtomicI32,
}

struct ChildContext<'a> {
    plan: &'a SpawnPlan<'a>,
    report: ChildReport,
}

thread_local! {
    static STACK_MEMORY: RefCell<Vec<u128>> = RefCell::new(vec![0; STACK_SIZE / size_of::<u128>()]);
}

/// Creates a process and waits until it has reached its program.
///
/// # Errors
///
/// The stage at which the child failed. It has ended then.
pub(crate) fn spawn(plan: &SpawnPlan<'_>) -> Result<Spawned, Failure> {
    let mut job = ChildContext {
        plan,
        report: ChildReport::default(),
    };
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD | libc::SIGCHLD;
    let flags = flags | plan.namespaces.map_or(0, |namespaces| namespaces.flags);
    let mut pidfd: RawFd = -1;
    let _dumpable = plan.run_as.map(|_| Dumpable::new());
    let cloned = STACK_MEMORY.with_borrow_mut(|stack| {
        let job: *mut ChildContext<'_> = &raw mut job;
        let _quiet = BlockedSignals::new();
        // SAFETY: the stack is this thread's alone, aligned, and unused until the child is done
        // with it, since CLONE_VFORK makes this thread sleep meanwhile; `job` lives longer than
        // that, and `child` does only what CLONE_VM allows.
        unsafe {
            let top = stack.as_mut_ptr_range().end.cast::<c_void>();
            check_call(|| libc::clone(child, top, flags, job.cast(), &raw mut pidfd) as c_long)
        }
    });
    let pid = cloned.map_err(|error| Failure {
        stage: SetupStage::Clone,
        error,
    })?;
    let failed = job.report.errno.load(Relaxed);
    let (Some(pid), true) = (Pid::from_raw(pid as i32), pidfd >= 0) else {
        return Err(Failure {
            stage: SetupStage::Clone,
            error: io::Error::other("the kernel gave no pidfd"),
        });
    };
    // SAFETY: CLONE_PIDFD has created it for this call.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
    if failed == 0 {
        return Ok(Spawned { pid, pidfd });
    }
    // The child has ended, or is about to.
    reap(pid, true).ok();
    Err(Failure {
        stage: SETUP_STAGES[job.report.stage.load(Relaxed) as usize],
        error: io::Error::from_raw_os_error(failed),
    })
}

/// Guard that restores `PR_DUMPABLE` when the last one is dropped. A child that changes its user
/// in our memory clears the flag, so no process of that user can look into this one meanwhile.
struct Dumpable;

impl Dumpable {
    /// Number of guards, and the value of the flag before the first.
    fn guards() -> MutexGuard<'static, (usize, c_int)> {
        static GUARDS: Mutex<(usize, c_int)> = Mutex::new((0, 0));
        GUARDS.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn new() -> Self {
        let mut guards = Self::guards();
        if guards.0 == 0 {
            // SAFETY: no pointers.
            guards.1 = unsafe { libc::prctl(libc::PR_GET_DUMPABLE) };
        }
        guards.0 += 1;
        Self
    }
}

impl Drop for Dumpable {
    fn drop(&mut self) {
        let mut guards = Self::guards();
        guards.0 -= 1;
        if guards.0 == 0 {
            // SAFETY: no pointers.
            unsafe { libc::prctl(libc::PR_SET_DUMPABLE, guards.1) };
        }
    }
}

/// Guard that blocks all signals of this thread: a handler would run in the child, on our memory.
struct BlockedSignals(libc::sigset_t);

impl BlockedSignals {
    fn new() -> Self {
        // SAFETY: both sets are valid, and written before they are read.
        unsafe {
            let (mut all, mut before) = std::mem::zeroed();
            libc::sigfillset(&raw mut all);
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, &raw mut before);
            Self(before)
        }
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        // SAFETY: the set was filled in by the kernel.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, null_mut()) };
    }
}

fn errno() -> c_int {
    // SAFETY: it points to this thread's errno, which the child shares.
    unsafe { *libc::__errno_location() }
}

/// Runs a system call and turns its result into a `Result`.
fn check_call(call: impl FnOnce() -> c_long) -> io::Result<c_long> {
    match call() {
        result if result < 0 => Err(io::Error::from_raw_os_error(errno())),
        result => Ok(result),
    }
}

/// Entry point of the child. Only system calls are allowed from here on.
extern "C" fn child(job: *mut c_void) -> c_int {
    // SAFETY: `spawn` passes a `ChildContext` and sleeps until the child is gone.
    let job = unsafe { &*job.cast::<ChildContext<'_>>() };
    // SAFETY: this is the child.
    let Err((stage, errno)) = unsafe { become_program(job.plan) };
    job.report.stage.store(stage as u32, Relaxed);
    job.report.errno.store(errno, Relaxed);
    // SAFETY: ends the child without running any exit handler of this process.
    unsafe { libc::_exit(127) }
}

/// Failed step, with the error number of the kernel.
type FailedStep = (SetupStage, c_int);

/// Runs a system call in the child.
fn try_step(stage: SetupStage, call: impl FnOnce() -> c_long) -> Result<c_long, FailedStep> {
    match call() {
        result if result < 0 => Err((stage, errno())),
        result => Ok(result),
    }
}

/// Performs the plan, step by step, and executes the program.
///
/// # Safety
///
/// Only for a child made by [`spawn`], like everything below.
unsafe fn become_program(plan: &SpawnPlan<'_>) -> Result<Infallible, FailedStep> {
    // SAFETY: this is the child.
    unsafe {
        // In this order: mounts need the privileges that later steps drop. A change of user
        // clears the parent death signal, so that is set after it. Landlock and seccomp require
        // `no_new_privs`. The filter comes last, as it may refuse the other steps.
        if let Some(namespaces) = plan.namespaces {
            perform_mount_plan(namespaces)?;
        }
        leave_group(plan.session)?;
        connect_pipes(plan)?;
        set_limits(plan)?;
        if let Some(run_as) = plan.run_as {
            change_user(run_as)?;
        }
        if let Some(directory) = plan.directory {
            try_step(SetupStage::Directory, || {
                c_long::from(libc::chdir(directory.as_ptr()))
            })?;
        }
        if plan.unprivileged {
            drop_privileges()?;
        }
        if plan.namespaces.is_some() {
            // The first process, and with it all others, ends with the thread that starts it.
            // Such a thread lives as long as its executor, or until the whole host is killed.
            try_step(SetupStage::Lifeline, || {
                let signal = libc::SIGKILL;
                c_long::from(libc::prctl(libc::PR_SET_PDEATHSIG, signal, 0, 0, 0))
            })?;
        }
        if let Some(ruleset) = plan.ruleset {
            try_step(SetupStage::Landlock, || {
                libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0)
            })?;
        }
        reset_signals()?;
        if let Some(filter) = plan.filter {
            let program = libc::sock_fprog {
                len: filter.len() as u16,
                filter: filter.as_ptr().cast_mut().cast(),
            };
            try_step(SetupStage::Seccomp, || {
                let mode = libc::SECCOMP_SET_MODE_FILTER;
                libc::syscall(libc::SYS_seccomp, mode, 0, &raw const program)
            })?;
        }
        execute(plan)
    }
}

/// Starts a session, or only a group.
unsafe fn leave_group(session: bool) -> Result<(), FailedStep> {
    // SAFETY: neither touches memory.
    let begin = || unsafe {
        match session {
            true => libc::setsid(),
            false => libc::setpgid(0, 0),
        }
    };
    try_step(SetupStage::Session, || c_long::from(begin())).map(drop)
}

/// Sets everything by which the kernel limits the run, counts it, and tells it from others.
unsafe fn set_limits(plan: &SpawnPlan<'_>) -> Result<(), FailedStep> {
    let pair = |soft, hard| libc::rlimit64 {
        rlim_cur: soft,
        rlim_max: hard,
    };
    for &(resource, soft, hard) in plan.limits {
        let new = pair(soft, hard);
        // SAFETY: a live limit is set, none is asked for.
        try_step(SetupStage::Limits, || unsafe {
            let nothing = null::<c_void>();
            libc::syscall(libc::SYS_prlimit64, 0, resource, &raw const new, nothing)
        })?;
    }
    if let Some(cgroup) = plan.cgroup {
        // SAFETY: writes from a live string. "0" stands for the writing process.
        try_step(SetupStage::Cgroup, || unsafe {
            libc::write(cgroup.as_raw_fd(), c"0".as_ptr().cast(), 1) as c_long
        })?;
    }
    if let Some((mark, word)) = plan.mark {
        let mark = pair(mark, mark);
        // SAFETY: the limit is live. The kernel ignores the third argument; the filter on this
        // thread checks it.
        try_step(SetupStage::Mark, || unsafe {
            let resource = libc::RLIMIT_LOCKS;
            libc::syscall(libc::SYS_setrlimit, resource, &raw const mark, word)
        })?;
    }
    Ok(())
}

unsafe fn execute(plan: &SpawnPlan<'_>) -> Result<Infallible, FailedStep> {
    let (argv, envp) = (plan.image.argv.as_ptr(), plan.image.envp.as_ptr());
    let failed = try_step(SetupStage::Exec, || {
        // SAFETY: both arrays end with a null pointer, as do the strings, and `argv` is not empty.
        unsafe {
            match plan.namespaces {
                Some(namespaces) => {
                    let init = namespaces.init.as_raw_fd();
                    let flags = libc::AT_EMPTY_PATH;
                    libc::syscall(libc::SYS_execveat, init, c"".as_ptr(), argv, envp, flags)
                }
                None => c_long::from(libc::execve(*argv, argv, envp)),
            }
        }
    });
    // `execve` only returns if it failed.
    Err(failed.err().unwrap_or((SetupStage::Exec, libc::EINVAL)))
}

/// Connects the pipes to 0, 1 and 2 and the report of the first process to 3. All other
/// descriptors are marked close-on-exec.
unsafe fn connect_pipes(plan: &SpawnPlan<'_>) -> Result<(), FailedStep> {
    for (target, source) in plan.stdio.iter().enumerate() {
        // SAFETY: the descriptors are the caller's.
        try_step(SetupStage::Stdio, || unsafe {
            c_long::from(libc::dup2(source.as_raw_fd(), target as c_int))
        })?;
    }
    let mut first = SpawnPlan::LAST_RESERVED_FD;
    if let Some(namespaces) = plan.namespaces {
        // SAFETY: `status` is the caller's.
        try_step(SetupStage::Stdio, || unsafe {
            c_long::from(libc::dup2(namespaces.status.as_raw_fd(), first))
        })?;
        first += 1;
    }
    // SAFETY: only marks descriptors of the child's own table.
    let marked = try_step(SetupStage::Descriptors, || unsafe {
        libc::syscall(
            libc::SYS_close_range,
            first,
            u32::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        )
    });
    match marked {
        // The flag exists since Linux 5.11: see `marks_descriptors`.
        Err((_, libc::ENOSYS | libc::EINVAL)) => Ok(()),
        other => other.map(drop),
    }
}

/// Changes the user by plain system calls: the functions of libc would change that of all our
/// threads.
unsafe fn change_user(run_as: RunAs) -> Result<(), FailedStep> {
    let (user, group) = (run_as.user, run_as.group);
    // SAFETY: no pointers but a null one with length 0.
    unsafe {
        try_step(SetupStage::User, || {
            libc::syscall(libc::SYS_setgroups, 0, null::<c_void>())
        })?;
        try_step(SetupStage::User, || {
            libc::syscall(libc::SYS_setresgid, group, group, group)
        })?;
        try_step(SetupStage::User, || {
            libc::syscall(libc::SYS_setresuid, user, user, user)
        })?;
    }
    Ok(())
}

/// Drops all privileges, and keeps root from regaining its capabilities with the next program.
unsafe fn drop_privileges() -> Result<(), FailedStep> {
    /// SECBIT_NOROOT and SECBIT_NO_SETUID_FIXUP, both locked: root has no special rights, for
    /// good.
    const NO_ROOT_SECUREBITS: c_long = 0b1111;
    const VERSION_3: u32 = 0x2008_0522;
    let header = [VERSION_3, 0];
    let none = [0_u32; 6];
    // SAFETY: the two arrays have the layout of the kernel's structures.
    unsafe {
        try_step(SetupStage::Privileges, || {
            c_long::from(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        })?;
        // Without CAP_SETPCAP this is refused, and not needed.
        let special = try_step(SetupStage::Privileges, || {
            c_long::from(libc::prctl(
                libc::PR_SET_SECUREBITS,
                NO_ROOT_SECUREBITS,
                0,
                0,
                0,
            ))
        });
        if !matches!(special, Ok(_) | Err((_, libc::EPERM))) {
            return special.map(drop);
        }
        try_step(SetupStage::Privileges, || {
            libc::syscall(libc::SYS_capset, header.as_ptr(), none.as_ptr())
        })?;
    }
    Ok(())
}

/// Resets all signals to their default action, then unblocks them. In this order, because a
/// pending one would run our handler.
unsafe fn reset_signals() -> Result<(), FailedStep> {
    // SAFETY: an all-zero action is the default one, an all-zero set is empty.
    unsafe {
        let default: libc::sigaction = std::mem::zeroed();
        for signal in 1..=LAST_SIGNAL {
            // Fails for KILL, STOP and those reserved by libc, which are never ignored.
            libc::sigaction(signal, &raw const default, null_mut());
        }
        let empty: libc::sigset_t = std::mem::zeroed();
        try_step(SetupStage::Signals, || {
            let set = libc::SIG_SETMASK;
            c_long::from(libc::sigprocmask(set, &raw const empty, null_mut()))
        })?;
    }
    Ok(())
}

/// Performs the steps of the mount plan.
unsafe fn perform_mount_plan(namespaces: &Namespaces<'_>) -> Result<(), FailedStep> {
    let mut taken: [c_long; MAX_TREES] = [-1; MAX_TREES];
    // Files made on the way must be accessible to the user of the run. The umask of the child is
    // its own.
    // SAFETY: no pointers.
    let mask = unsafe { libc::umask(0o022) };
    for step in namespaces.steps {
        // SAFETY: the strings of the step are live.
        try_step(SetupStage::Namespaces, || unsafe {
            perform_step(step, &mut taken)
        })?;
    }
    // SAFETY: no pointers.
    unsafe { libc::umask(mask) };
    Ok(())
}

// Flags of mount calls that `libc` lacks.
const OPEN_TREE_CLONE: c_int = 1;
const AT_RECURSIVE: c_int = 0x8000;
const MOVE_MOUNT_F_EMPTY_PATH: c_int = 4;

unsafe fn perform_step(step: &Step, taken: &mut [c_long; MAX_TREES]) -> c_long {
    let here = libc::AT_FDCWD;
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
                // `RESOLVE_NO_SYMLINKS`: a component may have become a link elsewhere since the
                // plan was made.
                let how = [
                    (libc::O_PATH | libc::O_CLOEXEC) as u64,
                    0,
                    libc::RESOLVE_NO_SYMLINKS,
                ];
                let (path, size) = (path.as_ptr(), size_of_val(&how));
                let place = libc::syscall(libc::SYS_openat2, here, path, how.as_ptr(), size);
                if place < 0 {
                    return place;
                }
                let flags = OPEN_TREE_CLONE | libc::O_CLOEXEC | AT_RECURSIVE | libc::AT_EMPTY_PATH;
                taken[*slot] = libc::syscall(libc::SYS_open_tree, place, c"".as_ptr(), flags);
                libc::close(place as c_int);
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
            Step::Attach { slot, path } => {
                let (tree, flags) = (taken[*slot], MOVE_MOUNT_F_EMPTY_PATH);
                let (itself, path) = (c"".as_ptr(), path.as_ptr());
                libc::syscall(libc::SYS_move_mount, tree, itself, here, path, flags)
            }
            Step::Attributes { path, set, below } => {
                let attributes = [*set, 0, 0, 0];
                let flags = if *below { AT_RECURSIVE } else { 0 };
                let (path, size) = (path.as_ptr(), size_of_val(&attributes));
                let attributes = attributes.as_ptr();
                libc::syscall(libc::SYS_mount_setattr, here, path, flags, attributes, size)
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

/// Takes the status and resource usage of a child that has ended. With `wait`, it waits for the
/// end.
///
/// # Errors
///
/// It is not, or no longer, a child of this process.
pub(crate) fn reap(pid: Pid, wait: bool) -> io::Result<Option<(ExitStatus, Usage)>> {
    let mut status: c_int = 0;
    let options = if wait { 0 } else { libc::WNOHANG };
    loop {
        // SAFETY: an all-zero rusage is valid, and both pointers are to live values.
        let (reaped, usage) = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            let pid = pid.as_raw_nonzero().get();
            let reaped = libc::wait4(pid, &raw mut status, options, &raw mut usage);
            (reaped, usage)
        };
        match reaped {
            0 => return Ok(None),
            1.. => return Ok(Some((ExitStatus::from_raw(status), usage_from(&usage)))),
            _ => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
}

fn usage_from(usage: &libc::rusage) -> Usage {
    let peak = |usage: &libc::rusage| usage.ru_maxrss.unsigned_abs() * 1024;
    // Before `execve`, a child has our memory, and the kernel counts that in its peak.
    let ours = peak(&own_usage());
    let time = |time: libc::timeval| {
        Duration::new(
            time.tv_sec.unsigned_abs(),
            time.tv_usec.unsigned_abs() as u32 * 1000,
        )
    };
    Usage {
        user: time(usage.ru_utime),
        system: time(usage.ru_stime),
        peak_memory: Some(peak(usage)).filter(|peak| *peak > ours),
    }
}

fn own_usage() -> libc::rusage {
    // SAFETY: an all-zero rusage is valid, and the pointer is to a live value.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage
    }
}

/// Returns the hard limit of another process.
///
/// # Errors
///
/// There is no such process, or it belongs to another user and this process lacks
/// `CAP_SYS_RESOURCE`.
pub(crate) fn hard_limit_of(pid: Pid, resource: c_int) -> io::Result<u64> {
    // SAFETY: an all-zero rlimit is valid; nothing is set.
    unsafe {
        let mut limit: libc::rlimit64 = std::mem::zeroed();
        let pid = pid.as_raw_nonzero().get();
        let nothing = null::<c_void>();
        match libc::syscall(libc::SYS_prlimit64, pid, resource, nothing, &raw mut limit) {
            0 => Ok(limit.rlim_max),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::{DumpableBehavior, dumpable_behavior, set_dumpable_behavior};

    use super::*;

    #[test]
    fn dumpable_flag_is_restored_by_the_last_guard() {
        let (first, second) = (Dumpable::new(), Dumpable::new());
        // The kernel does this when a child in our memory changes its user.
        set_dumpable_behavior(DumpableBehavior::NotDumpable).unwrap();
        let third = Dumpable::new();
        drop((first, second));
        assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
        drop(third);
        assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::Dumpable);
    }
}
