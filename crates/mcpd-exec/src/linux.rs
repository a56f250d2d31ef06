//! Linux: processes are created with vfork semantics, and confined on the way to their program.

mod capabilities;
mod cgroup;
mod child;
mod confinement;
mod file_version;
mod filter;
mod first_wait;
mod fixed_directory;
mod gateway;
mod home;
mod image;
mod isolation;
mod landlock;
mod launcher;
mod mount_plan_cache;
mod mounts;
mod namespaces;
mod outside;
mod path_watch;
mod pipe;
mod raw;
#[cfg(test)]
#[path = "../tests/process/skip.rs"]
mod skip;
mod spawner_class;
mod start_failure;
mod temporary;
#[cfg(test)]
mod tests;
mod tree;
mod view;
mod warm;
mod watchdog;
mod writable;

use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use self::capabilities::Capabilities;
use self::cgroup::{Group, Groups};
use self::confinement::Confinement;
use self::filter::{Filter, Sockets};
use self::gateway::{Gateway, Way};
use self::image::{image, resources, text};
use self::isolation::Isolation;
use self::landlock::{Refusal, Ruleset};
use self::mount_plan_cache::MountPlanCache;
use self::raw::SpawnPlan;
pub(crate) use self::raw::lease::is_open_for_writing;
use self::start_failure::{StartFailure, lacks_first_process, not_executed, refused_by};
use self::temporary::DirectoryPool;
use self::tree::{ForeignZombies, Orphans};
use self::view::Proc;
use self::warm::WarmPool;
use self::watchdog::Watchdog;
use crate::command::Command;
use crate::error::StartError;
use crate::executor::Config;
use crate::os::SpawnedChild;
use crate::sandbox::{Missing, Network};
use crate::warm::Warmth;

pub(crate) use self::cgroup::delegated_group as control_group;
pub(crate) use self::child::{Child, ExitWatch};
pub use self::raw::Allocator;
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
    /// Filters for runs that are filtered on the way to their program, by their sockets.
    late_filters: [OnceLock<Result<Filter, String>>; 4],
    /// Landlock scopes for runs at `strict`, by network access.
    strict_scopes: [OnceLock<Arc<Ruleset>>; 3],
    mount_plans: MountPlanCache,
    /// The kernel refuses to mount `/proc` in namespaces.
    no_proc: AtomicBool,
    warm: WarmPool,
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
        let directories = Arc::new(directories);
        let (session, marks) = (capabilities.has_terminal, capabilities.marks);
        Ok(Self {
            warm: WarmPool::new(&directories, session, marks),
            orphans,
            foreign_zombies: (is_reaper && config.init).then(Mutex::default),
            capabilities,
            secret: tree::random(),
            null: pipe::above_reserved(null.into())?,
            groups: groups.map(Arc::new),
            directories,
            late_filters: Default::default(),
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
        let warm = command.parts.warm.as_ref();
        let warm = warm.map(|warm| self.start_warm(command, program, warm));
        let reason = match warm {
            Some(Ok(started)) => return Ok(started),
            Some(Err(reason)) => Some(reason),
            None => None,
        };
        let no_proc = self.no_proc.load(Relaxed);
        let proc = if no_proc { Proc::Empty } else { Proc::Own };
        let result = match self.try_start(command, program, class, proc, Way::Namespace) {
            // In containers the kernel refuses a `/proc` that would show more than the
            // container's own.
            Err(failed) if failed.is_refused_mount && !no_proc => {
                let second = self.try_start(command, program, class, Proc::Empty, Way::Namespace);
                self.no_proc.store(second.is_ok(), Relaxed);
                second
            }
            Err(failed) if failed.is_refused_network => {
                self.try_start(command, program, class, proc, Way::Port)
            }
            result => result,
        };
        let mut started = result.map_err(|failed| failed.error)?;
        started.warmth = reason.map(Warmth::Cold);
        Ok(started)
    }

    fn late_filter(&self, sockets: Sockets) -> Result<&Filter, &str> {
        let make = || Filter::new(sockets, None).map_err(|error| error.to_string());
        let filter = self.late_filters[sockets as usize].get_or_init(make);
        filter.as_ref().map_err(String::as_str)
    }

    fn strict_scopes(&self, network: Network) -> Result<Arc<Ruleset>, Refusal> {
        let place = &self.strict_scopes[network as usize];
        if let Some(scopes) = place.get() {
            return Ok(Arc::clone(scopes));
        }
        let made = Arc::new(Ruleset::scopes(network)?);
        Ok(Arc::clone(place.get_or_init(|| made)))
    }

    /// Prepares the confinement of a run, unless that lacks something it insists on.
    fn confine(
        &self,
        command: &Command,
        program: &Path,
        class: &InstalledClass,
        proc: Proc,
        way: Way,
    ) -> Result<Confinement, StartError> {
        let confinement = Confinement::prepare(command, program, self, class, proc, way);
        let mut confinement = confinement.map_err(|error| unprepared(error, program))?;
        // Refuse before anything is started. What is merely reported is added afterwards.
        refuse_missing(&confinement, command, program, class)?;
        outside::inspect(command, program)?;
        confinement.report(command, proc);
        Ok(confinement)
    }

    fn try_start(
        &self,
        command: &Command,
        program: &Path,
        class: &InstalledClass,
        proc: Proc,
        way: Way,
    ) -> Result<SpawnedChild, StartFailure> {
        let failed = |source| StartError::Io {
            program: program.to_owned(),
            source,
        };
        let exhausted = |source| StartError::Resource {
            program: program.to_owned(),
            source,
        };
        let mut confinement = self.confine(command, program, class, proc, way)?;
        let pipes = pipe::Pipes::new(command).map_err(exhausted)?;
        let gate = confinement.gateway.as_ref().map(Gateway::gate);
        let words = confinement.words(command, program);
        let image = image(command, &words, confinement.temporary(), gate).map_err(failed)?;
        let namespaces = namespaces(&confinement, program)?;
        let no_first = |error| lacks_first_process(error, program);
        let handed = confinement.handed().map_err(no_first)?;
        let filter = confinement.late_filter(self);
        let directory = confinement.directory(command);
        let directory_text = directory.map(text).transpose().map_err(failed)?;
        let plan = SpawnPlan {
            namespaces: namespaces.as_ref(),
            network: confinement.gateway.as_ref().and_then(Gateway::network),
            stdio: pipes.ends(self.null.as_fd()),
            handed: &handed,
            limits: &resources(&confinement.limits(command), command.parts.sandbox.level),
            cgroup: confinement.group.as_ref().map(Group::members),
            mark: confinement.mark.map(|mark| (mark.value(), self.secret)),
            run_as: command.parts.sandbox.run_as,
            directory: directory_text.as_deref(),
            fixed: confinement.fixed_place(command),
            session: self.capabilities.has_terminal,
            privileges: confinement.privileges(command),
            rulesets: confinement.rulesets(),
            filter: filter.map(Filter::program),
            image: &image,
        };
        let verified = confinement.verify_directory();
        verified.map_err(|error| unprepared(error, program))?;
        let spawned = raw::spawn(&plan)
            .map_err(|failure| StartFailure::at(failure, command, program, directory))?;
        // The child has entered the ruleset. Its descriptor goes now, unless the pool caches it.
        confinement.ruleset = None;
        let started = wait_for_start(&mut confinement, &spawned);
        let (stdin, stdout, stderr) = pipes.ours();
        if let Err(error) = started {
            return Err(not_started(error, stderr, command, program).into());
        }
        Ok(SpawnedChild {
            proxy: confinement.gateway.take().map(Gateway::open),
            warmth: None,
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

fn unprepared(source: io::Error, program: &Path) -> StartError {
    StartError::Setup {
        program: program.to_owned(),
        step: "prepare its sandbox",
        source,
    }
}

/// Returns the namespaces that a run enters, if there are any.
fn namespaces<'a>(
    confinement: &'a Confinement,
    program: &Path,
) -> Result<Option<raw::Namespaces<'a>>, StartFailure> {
    let isolation = confinement.isolation.as_ref();
    let namespaces = isolation.map(Isolation::namespaces).transpose();
    let namespaces = namespaces.map_err(|error| lacks_first_process(error, program))?;
    Ok(namespaces.flatten())
}

/// Waits until the first process of a namespace has started the program. Without a namespace, it
/// has started already.
fn wait_for_start(confinement: &mut Confinement, spawned: &raw::Spawned) -> io::Result<()> {
    let started = match (&mut confinement.isolation, &mut confinement.outside) {
        (Some(isolation), _) => isolation.wait_for_start(),
        (None, Some(outside)) => outside.wait_for_start(),
        (None, None) => return Ok(()),
    };
    started.inspect_err(|_| drop(raw::reap(spawned.pid, true)))
}

/// Explains that the program was not started: by the kernel, or by a backend that has ended before.
fn not_started(error: io::Error, stderr: OwnedFd, command: &Command, program: &Path) -> StartError {
    let is_early = error.kind() == io::ErrorKind::UnexpectedEof;
    match command.parts.sandbox.backend.filter(|_| is_early) {
        Some(backend) => refused_by(backend, outside::last_words(stderr), program),
        None => not_executed(error, command, program),
    }
}

/// Refuses a run if a mechanism is missing that it insists on, or that nothing else can replace.
fn refuse_missing(
    confinement: &Confinement,
    command: &Command,
    program: &Path,
    class: &InstalledClass,
) -> Result<(), StartError> {
    let enforced = &confinement.enforced;
    let refuses = command.parts.sandbox.missing == Missing::Refuse
        || class.lacks_required_filter()
        || confinement.lacks_gateway(command)
        || confinement.lacks_backend(command);
    if enforced.missing.is_empty() || !refuses {
        return Ok(());
    }
    Err(StartError::Unenforceable {
        program: program.to_owned(),
        missing: enforced.missing.clone(),
    })
}
