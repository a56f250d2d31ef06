//! Linux: processes are created with vfork semantics, and confined on the way to their program.

mod capabilities;
mod cgroup;
mod confinement;
mod file_version;
mod filter;
mod first_wait;
mod home;
mod image;
mod isolation;
mod landlock;
mod mount_plan_cache;
mod mounts;
mod namespaces;
mod path_watch;
mod pipe;
mod raw;
#[cfg(test)]
#[path = "../tests/process/skip.rs"]
mod skip;
mod spawner_class;
mod temporary;
#[cfg(test)]
mod tests;
mod tree;
mod watchdog;
mod writable;

use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, getpgid, kill_process_group,
    pidfd_send_signal, waitid,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use self::capabilities::Capabilities;
use self::cgroup::{Group, Groups};
use self::confinement::Confinement;
use self::filter::Filter;
pub(crate) use self::image::entry;
use self::image::{image, resources, text};
use self::isolation::Isolation;
use self::landlock::{Refusal, Ruleset};
use self::mount_plan_cache::MountPlanCache;
use self::namespaces::Proc;
pub(crate) use self::raw::lease::is_open_for_writing;
use self::raw::{SetupStage, SpawnPlan};
use self::temporary::DirectoryPool;
use self::tree::{ForeignZombies, Orphans};
use self::watchdog::Watchdog;
use crate::command::Command;
use crate::enforcement::{Enforcement, MissingMechanism};
use crate::error::{StartError, diagnosis};
use crate::executor::Config;
use crate::os::{ExitReport, SpawnedChild};
use crate::process::Progress;
use crate::sandbox::{Level, Missing, Network};

pub(crate) use self::cgroup::delegated_group as control_group;
pub(crate) use self::raw::{prepare_memory, prepare_signals, release_memory};
pub(crate) use self::spawner_class::{InstalledClass, SpawnerClass};
pub(crate) use self::watchdog::run as run_watchdog;

/// Name of the mechanism in [`MissingMechanism`].
const NAMESPACES: &str = "namespaces";

/// State shared by all processes of one executor.
#[derive(Debug)]
pub(crate) struct System {
    orphans: Option<&'static Orphans>,
    /// Set if foreign orphans are reaped too.
    foreign_zombies: Option<Mutex<ForeignZombies>>,
    capabilities: Capabilities,
    /// Secret word by which our own threads may set marks under a filter.
    secret: u64,
    null: OwnedFd,
    groups: Option<Arc<Groups>>,
    directories: Arc<DirectoryPool>,
    /// Filters for runs that are filtered on the way to their program, by network access.
    strict_filters: [OnceLock<Result<Filter, String>>; 2],
    /// Landlock scopes for such runs, by network access.
    strict_scopes: [OnceLock<Arc<Ruleset>>; 2],
    mount_plans: MountPlanCache,
    /// The kernel refuses to mount `/proc` in namespaces.
    no_proc: AtomicBool,
    /// `None` if none was asked for.
    watchdog: Option<Arc<Watchdog>>,
}

impl System {
    pub(crate) fn new(config: &Config) -> io::Result<Self> {
        if raw::loses_children() {
            let reason = "this process ignores SIGCHLD, so it cannot wait for its children";
            return Err(io::Error::other(reason));
        }
        let directories = DirectoryPool::below(&config.temporary());
        let capabilities = Capabilities::detect();
        // Without marks, foreign children could not be told from ours, and would never be reaped.
        let is_reaper = config.reaper && capabilities.marks;
        let orphans = is_reaper.then(Orphans::adopt).transpose()?;
        let groups = config.cgroup.as_deref().map(Groups::below).transpose()?;
        let watchdog = config
            .watchdog
            .then(|| Watchdog::for_process(directories.parent()))
            .transpose()?;
        let null = OpenOptions::new().read(true).open("/dev/null")?;
        Ok(Self {
            orphans,
            foreign_zombies: (is_reaper && config.init).then(Mutex::default),
            capabilities,
            secret: tree::random(),
            null: pipe::above_reserved(null.into())?,
            groups: groups.map(Arc::new),
            directories: Arc::new(directories),
            strict_filters: Default::default(),
            strict_scopes: Default::default(),
            mount_plans: MountPlanCache::default(),
            no_proc: AtomicBool::new(false),
            watchdog,
        })
    }

    /// Reaps dead orphans of our runs, and returns the number of living ones.
    pub(crate) fn reap_orphans(&self) -> usize {
        let Some(orphans) = self.orphans else {
            return 0;
        };
        if let Some(foreign_zombies) = &self.foreign_zombies {
            let mut foreign_zombies = foreign_zombies
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            foreign_zombies.reap(orphans);
        }
        orphans.reap()
    }

    /// Interval at which orphans are reaped even if no run can have left any.
    pub(crate) fn reap_interval(&self) -> Option<Duration> {
        self.foreign_zombies
            .is_some()
            .then_some(ForeignZombies::FOREIGN_REAP_DELAY)
    }

    /// Starts `command`, whose program is at `program`, on a spawner thread of its class.
    ///
    /// # Errors
    ///
    /// Nothing was started.
    pub(crate) fn start(
        &self,
        command: &Command,
        program: &Path,
        class: &InstalledClass,
    ) -> Result<SpawnedChild, StartError> {
        if let Some(watchdog) = &self.watchdog {
            watchdog.wake();
        }
        let no_proc = self.no_proc.load(Relaxed);
        let proc = if no_proc { Proc::Empty } else { Proc::Own };
        let result = match self.try_start(command, program, class, proc) {
            // In containers the kernel refuses a `/proc` that would show more than the
            // container's own.
            Err(failed) if failed.is_refused_mount && !no_proc => {
                let second = self.try_start(command, program, class, Proc::Empty);
                self.no_proc.store(second.is_ok(), Relaxed);
                second
            }
            result => result,
        };
        result.map_err(|failed| failed.error)
    }

    fn strict_filter(&self, network: Network) -> Result<&Filter, &str> {
        let make = || Filter::new(network, None).map_err(|error| error.to_string());
        let filter = self.strict_filters[network_index(network)].get_or_init(make);
        filter.as_ref().map_err(String::as_str)
    }

    fn strict_scopes(&self, network: Network) -> Result<Arc<Ruleset>, Refusal> {
        let place = &self.strict_scopes[network_index(network)];
        if let Some(scopes) = place.get() {
            return Ok(Arc::clone(scopes));
        }
        let made = Arc::new(Ruleset::scopes(network)?);
        Ok(Arc::clone(place.get_or_init(|| made)))
    }

    fn try_start(
        &self,
        command: &Command,
        program: &Path,
        class: &InstalledClass,
        proc: Proc,
    ) -> Result<SpawnedChild, StartFailure> {
        let failed = |source| StartError::Io {
            program: program.to_owned(),
            source,
        };
        let exhausted = |source| StartError::Resource {
            program: program.to_owned(),
            source,
        };
        let level = command.sandbox.level;
        let unprepared = |source| StartError::Setup {
            program: program.to_owned(),
            step: "prepare its sandbox",
            source,
        };
        let confinement = Confinement::prepare(command, program, self, class, proc);
        let mut confinement = confinement.map_err(unprepared)?;
        // Refuse before anything is started. What is merely reported is added afterwards.
        refuse_missing(&confinement.enforced, command, program, class)?;
        confinement.report(command, proc);
        let pipes = pipe::Pipes::new(command).map_err(exhausted)?;
        let image = image(command, program, confinement.temporary()).map_err(failed)?;
        let isolation = confinement.isolation.as_ref();
        let namespaces = isolation.map(Isolation::namespaces).transpose();
        let namespaces = namespaces
            .map_err(|error| lacks_first_process(error, program))?
            .flatten();
        let filter = isolation.and_then(|_| self.strict_filter(command.sandbox.network).ok());
        let directory = confinement.directory(command);
        let directory_text = directory.map(text).transpose().map_err(failed)?;
        let plan = SpawnPlan {
            namespaces: namespaces.as_ref(),
            stdio: pipes.ends(self.null.as_fd()),
            limits: &resources(&confinement.limits(command), level),
            cgroup: confinement.group.as_ref().map(Group::members),
            mark: confinement.mark.map(|mark| (mark.value(), self.secret)),
            run_as: command.sandbox.run_as,
            directory: directory_text.as_deref(),
            session: self.capabilities.has_terminal,
            unprivileged: level >= Level::Guarded,
            ruleset: confinement.ruleset.as_deref().map(AsFd::as_fd),
            filter: filter.map(Filter::program),
            image: &image,
        };
        let spawned = raw::spawn(&plan)
            .map_err(|failure| StartFailure::at(failure, command, program, directory))?;
        // The child has entered the ruleset. Its descriptor goes now, unless the pool caches it.
        confinement.ruleset = None;
        wait_for_start(&mut confinement, &spawned)
            .map_err(|error| not_executed(error, command, program))?;
        let (stdin, stdout, stderr) = pipes.ours();
        Ok(SpawnedChild {
            child: Child {
                pid: spawned.pid,
                pidfd: Arc::new(spawned.pidfd),
                killer: confinement.killer(),
                orphans: self.orphans,
                confinement,
            },
            stdin,
            stdout,
            stderr,
        })
    }
}

/// Index of what exists once for runs with a network and once for those without.
fn network_index(network: Network) -> usize {
    usize::from(network == Network::Off)
}

/// Failed start, and whether it is worth a try without `/proc`.
struct StartFailure {
    error: StartError,
    is_refused_mount: bool,
}

impl From<StartError> for StartFailure {
    fn from(error: StartError) -> Self {
        Self {
            error,
            is_refused_mount: false,
        }
    }
}

impl StartFailure {
    fn at(
        failure: raw::Failure,
        command: &Command,
        program: &Path,
        directory: Option<&Path>,
    ) -> Self {
        // EPERM is permanent, unlike a lack of resources.
        let is_refused = failure.error.raw_os_error() == Some(libc::EPERM);
        Self {
            is_refused_mount: is_refused && failure.stage == SetupStage::Namespaces,
            error: explain(failure, command, program, directory),
        }
    }
}

/// Waits until the first process of a namespace has started the program. Without a namespace, it
/// has started already.
fn wait_for_start(confinement: &mut Confinement, spawned: &raw::Spawned) -> io::Result<()> {
    let Some(isolation) = &mut confinement.isolation else {
        return Ok(());
    };
    if let Err(error) = isolation.wait_for_start() {
        raw::reap(spawned.pid, true).ok();
        return Err(error);
    }
    Ok(())
}

/// Refuses a run if a mechanism is missing that it insists on, or that nothing else can replace.
fn refuse_missing(
    enforced: &Enforcement,
    command: &Command,
    program: &Path,
    class: &InstalledClass,
) -> Result<(), StartError> {
    let refuses = command.sandbox.missing == Missing::Refuse || class.lacks_required_filter();
    if enforced.missing.is_empty() || !refuses {
        return Ok(());
    }
    Err(StartError::Unenforceable {
        program: program.to_owned(),
        missing: enforced.missing.clone(),
    })
}

/// Process that has not been reaped.
#[derive(Debug)]
pub(crate) struct Child {
    pid: Pid,
    pidfd: Arc<OwnedFd>,
    /// Set for a run of which nothing may be left.
    killer: Option<tree::RunKiller>,
    orphans: Option<&'static Orphans>,
    confinement: Confinement,
}

impl Child {
    /// Sends TERM to the group, and CONT so that stopped members can receive it.
    pub(crate) fn terminate(&mut self) {
        for signal in [Signal::TERM, Signal::CONT] {
            self.signal_group(signal);
            // Without its own session it may have joined another group. It must not get the
            // signals twice.
            if getpgid(Some(self.pid)) != Ok(self.pid) {
                self.signal_leader(signal);
            }
        }
    }

    /// Sends KILL to the group.
    pub(crate) fn kill(&mut self) {
        if let Some(group) = &self.confinement.group {
            group.kill();
        }
        self.signal_group(Signal::KILL);
        self.signal_leader(Signal::KILL);
    }

    /// Signals the group. Its number can't be reused before the leader is reaped.
    fn signal_group(&self, signal: Signal) {
        // Fails if the group is empty, or its members have changed their user. Either way nothing
        // more can be done.
        kill_process_group(self.pid, signal).ok();
    }

    /// Signals the leader, even if it has changed its group.
    fn signal_leader(&self, signal: Signal) {
        // Fails if it has ended, or has changed its user.
        pidfd_send_signal(self.pidfd.as_fd(), signal).ok();
    }

    /// Returns whether the leader has ended. It stays a zombie, so that its group can still be
    /// signalled.
    pub(crate) fn has_exited(&mut self) -> bool {
        match self.peek_status() {
            Ok(status) => status.is_some(),
            // The status was taken elsewhere: the host ignores SIGCHLD or waits for every child.
            Err(Errno::CHILD) => true,
            Err(_) => false,
        }
    }

    /// Returns the exit status of the leader, which stays a zombie. `None` if only the first
    /// process of its namespace knows it.
    pub(crate) fn status(&self) -> Option<ExitStatus> {
        if self.confinement.isolation.is_some() {
            return None;
        }
        let status = self.peek_status().ok()??;
        // Encoded as `wait` does.
        let core = if status.dumped() { 0x80 } else { 0 };
        let by_signal = status.terminating_signal().map(|signal| signal | core);
        let raw = status.exit_status().map(|code| (code & 0xff) << 8);
        raw.or(by_signal).map(ExitStatus::from_raw)
    }

    fn peek_status(&self) -> Result<Option<WaitIdStatus>, Errno> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        waitid(WaitId::PidFd(self.pidfd.as_fd()), options)
    }

    pub(crate) fn watch(&self) -> io::Result<ExitWatch> {
        ExitWatch::new(Arc::clone(&self.pidfd))
    }

    /// Returns whether nothing may be left of its run.
    pub(crate) fn is_confined(&self) -> bool {
        self.confinement.enforced.level >= Level::Guarded
    }

    /// Returns, without waiting, whether it is certain that only the leader, which has ended, is
    /// left of the run. `None` if that can't be known.
    pub(crate) fn is_alone(&self) -> Option<bool> {
        if self.confinement.isolation.is_some() {
            // The first process of a namespace outlives all others in it.
            return Some(true);
        }
        let (orphans, mark) = (self.orphans?, self.confinement.mark?);
        Some(orphans.has_none(mark))
    }

    /// Returns whether the number of processes that are left can be known.
    pub(crate) fn counts_leftovers(&self) -> bool {
        let can_tell = self.orphans.is_some() && self.confinement.mark.is_some();
        can_tell && self.confinement.isolation.is_none()
    }

    /// Returns the number of processes of the run that are left beside its leader, which has
    /// ended, if it can be known. May wait.
    pub(crate) fn leftover_count(&self) -> Option<u32> {
        if self.confinement.isolation.is_some() {
            return None;
        }
        let (orphans, mark) = (self.orphans?, self.confinement.mark?);
        Some(orphans.count_alive(mark))
    }

    /// Performs one round of ending what is left beside the leader.
    pub(crate) fn end_round(&mut self) -> Progress {
        let ended = self.has_exited();
        match &mut self.killer {
            Some(killer) => killer.round(self.pid, ended, self.orphans),
            None => {
                if self.is_confined() {
                    self.kill();
                }
                Progress::until(ended)
            }
        }
    }

    /// Number of processes that were killed after the leader.
    pub(crate) fn killed_count(&self) -> u32 {
        self.killer
            .as_ref()
            .map_or(0, tree::RunKiller::killed_count)
    }

    /// Takes the status of a leader that has ended. `None` if it has not.
    ///
    /// # Errors
    ///
    /// The status was taken elsewhere.
    pub(crate) fn reap(&mut self) -> io::Result<Option<ExitReport>> {
        let remains = raw::reap(self.pid, false)?;
        // The first process of a namespace reports the status of its program, unless it was
        // killed.
        let isolation = remains.and_then(|_| self.confinement.isolation.take());
        Ok(isolation.and_then(Isolation::read_ending).or(remains))
    }

    /// Returns whether the kernel has killed it for lack of memory.
    pub(crate) fn ran_out_of_memory(&self) -> bool {
        let group = self.confinement.group.as_ref();
        group.is_some_and(Group::ran_out_of_memory)
    }

    pub(crate) fn enforcement(&self) -> &Enforcement {
        &self.confinement.enforced
    }
}

/// Future of the end of a process.
#[derive(Debug)]
pub(crate) struct ExitWatch(AsyncFd<Arc<OwnedFd>>);

impl ExitWatch {
    fn new(pidfd: Arc<OwnedFd>) -> io::Result<Self> {
        #[expect(
            deprecated,
            reason = "its successor is unsafe, for types that may lose their descriptor; this one can't"
        )]
        let register = AsyncFd::with_interest;
        Ok(Self(register(pidfd, Interest::READABLE)?))
    }

    /// Resolves when the process has ended. Cancel safe.
    pub(crate) async fn wait(&mut self) {
        // The only error is that the runtime is shutting down, which drops this future next.
        if self.0.readable().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Explains a failed step in terms of the caller's command.
fn explain(
    failure: raw::Failure,
    command: &Command,
    program: &Path,
    directory: Option<&Path>,
) -> StartError {
    let raw::Failure { stage, error } = failure;
    let program = program.to_owned();
    let unenforceable = |mechanism, reason| StartError::Unenforceable {
        program: program.clone(),
        missing: vec![MissingMechanism::new(mechanism, reason)],
    };
    match stage {
        SetupStage::Exec => not_executed(error, command, &program),
        SetupStage::Directory => StartError::CwdMissing {
            directory: directory.map(Path::to_owned).unwrap_or_default(),
        },
        SetupStage::Clone | SetupStage::Namespaces
            if command.sandbox.level == Level::Strict && is_refusal(&error) =>
        {
            let reason = format!(
                "the kernel refuses them ({error}); a container's seccomp profile, `user.max_user_namespaces`, \
                 `kernel.unprivileged_userns_clone` or AppArmor may forbid them"
            );
            unenforceable(NAMESPACES, reason)
        }
        SetupStage::Namespaces if !tree::sees_processes() => {
            let reason = "`/proc` is missing, which is needed to map users into them";
            unenforceable(NAMESPACES, reason.to_owned())
        }
        SetupStage::Seccomp => unenforceable("seccomp", format!("the kernel refuses it ({error})")),
        SetupStage::Clone => StartError::Resource {
            program,
            source: error,
        },
        stage => StartError::Setup {
            program,
            step: stage.describe(),
            source: error,
        },
    }
}

/// Explains a failed `execve`. After a change of user, the limit of processes takes effect only
/// there.
fn not_executed(error: io::Error, command: &Command, program: &Path) -> StartError {
    let program = program.to_owned();
    match command.limits.at(command.sandbox.level).processes {
        Some(limit) if error.kind() == io::ErrorKind::WouldBlock => {
            StartError::TooManyProcesses { program, limit }
        }
        _ => diagnosis::diagnose(error, command, program),
    }
}

/// Explains that the first process of the namespaces, which starts the program, can't be created.
fn lacks_first_process(error: io::Error, program: &Path) -> StartError {
    let program = program.to_owned();
    if !is_refusal(&error) {
        return StartError::Resource {
            program,
            source: error,
        };
    }
    let reason = format!(
        "their first process cannot be created ({error}); `vm.memfd_noexec` or a security module may forbid programs in memory"
    );
    StartError::Unenforceable {
        program,
        missing: vec![MissingMechanism::new(NAMESPACES, reason)],
    }
}

/// Returns whether the kernel refuses, as opposed to a lack of resources or a path that is
/// missing or in use.
fn is_refusal(error: &io::Error) -> bool {
    use crate::os::{Fault, fault};
    let is_refusal = !matches!(
        fault(error),
        Fault::Exhausted | Fault::Missing | Fault::NotDirectory | Fault::Loop
    );
    is_refusal && error.kind() != io::ErrorKind::ResourceBusy
}
