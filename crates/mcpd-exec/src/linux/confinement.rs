//! Confinement of one run: the mechanisms that are asked for, as far as the system has them.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::cgroup::Group;
use super::filter::{Filter, Sockets};
use super::fixed_directory::FixedDirectory;
use super::gateway::{Gateway, Way};
use super::isolation::Isolation;
use super::landlock::{Refusal, Ruleset};
use super::launcher;
use super::outside::Outside;
use super::raw::{FixedPlace, Privileges};
use super::spawner_class::InstalledClass;
use super::temporary::Lease;
use super::tree::Mark;
use super::view::Proc;
use super::watchdog::Watchdog;
use super::{System, tree};
use crate::backend::Backend;
use crate::command::Command;
use crate::enforcement::{Containment, Enforcement, MissingMechanism};
use crate::limits::Limits;
use crate::sandbox::{Level, Network};

/// Confinement of one run.
#[derive(Debug, Default)]
pub(crate) struct Confinement {
    pub(crate) mark: Option<Mark>,
    pub(crate) fixed_directory: Option<FixedDirectory>,
    pub(crate) temporary: Option<Lease>,
    pub(crate) ruleset: Option<Arc<Ruleset>>,
    pub(crate) group: Option<Group>,
    /// Present at level `strict` without a backend.
    pub(crate) isolation: Option<Isolation>,
    /// Present with a backend.
    pub(crate) outside: Option<Outside>,
    /// Present if the network is limited to destinations.
    pub(crate) gateway: Option<Gateway>,
    /// Sockets that a filter permits which the process installs on its way to the program.
    pub(crate) late_sockets: Option<Sockets>,
    /// Paths that were to be writable and are not, each as a sentence.
    pub(crate) skipped: Vec<String>,
    pub(crate) enforced: Enforcement,
}

impl Confinement {
    /// Prepares the confinement of `command`, whose program is at `program`, and records the
    /// mechanisms that are missing.
    ///
    /// # Errors
    ///
    /// A temporary directory or a descriptor can't be had, or the writable paths can't be
    /// arranged.
    pub(crate) fn prepare(
        command: &Command,
        program: &Path,
        system: &System,
        class: &InstalledClass,
        proc: Proc,
        way: Way,
    ) -> io::Result<Self> {
        let sandbox = &command.parts.sandbox;
        let mut confinement = Self {
            mark: system.capabilities.marks.then(Mark::next),
            fixed_directory: FixedDirectory::of(command)?,
            ..Self::default()
        };
        confinement.enforced.level = sandbox.level;
        if !system.capabilities.marks_descriptors {
            let reason = "before Linux 5.11, descriptors not marked close-on-exec are inherited";
            confinement.misses("close_range", reason);
        }
        match (sandbox.backend, sandbox.level) {
            (Some(backend), _) => confinement.confine_outside(backend, command, program, system)?,
            (None, Level::None) => {}
            (None, Level::Guarded) => {
                match sandbox.network {
                    Network::Listed => confinement.limit_network(command, system, way)?,
                    Network::Off if class.is_open() => {
                        confinement.filter_late(Sockets::None, system);
                    }
                    Network::Host if class.is_open() => {
                        confinement.filter_late(Sockets::All, system);
                    }
                    _ => confinement.filter(class.fault.as_deref()),
                }
                confinement.contain(system);
                confinement.rule(command, program, system)?;
            }
            (None, Level::Strict) => {
                let isolation = Isolation::plan(command, program, &system.mount_plans, proc)?;
                confinement.skipped = isolation.skipped_paths().to_vec();
                confinement.isolation = Some(isolation);
                confinement.enforced.namespaces = true;
                confinement.enforced.containment = Containment::Proven;
                confinement.limit_sockets(command, system)?;
            }
        }
        confinement.group(&held_to(command), system)?;
        Ok(confinement)
    }

    /// Returns the filter that the child enters last, if it has one.
    pub(crate) fn late_filter<'s>(&self, system: &'s System) -> Option<&'s Filter> {
        let sockets = self.late_sockets?;
        system.late_filter(sockets).ok()
    }

    /// Limits the sockets of a run that has its own files and processes.
    fn limit_sockets(&mut self, command: &Command, system: &System) -> io::Result<()> {
        let network = command.parts.sandbox.network;
        match network {
            Network::Host => self.filter_late(Sockets::All, system),
            Network::Listed => self.limit_network(command, system, Way::Namespace)?,
            Network::Off => self.filter_late(Sockets::None, system),
        }
        match system.strict_scopes(network) {
            Ok(ruleset) => self.enter(ruleset),
            Err(Refusal::Fault(error)) => return Err(error),
            // Without other processes and sockets to them, Landlock has nothing to refuse.
            Err(Refusal::Missing(_)) if network != Network::Host => {}
            Err(Refusal::Missing(missing)) => self.enforced.missing.push(missing),
        }
        Ok(())
    }

    /// Leaves the view of the system and the namespaces to a backend.
    fn confine_outside(
        &mut self,
        backend: Backend,
        command: &Command,
        program: &Path,
        system: &System,
    ) -> io::Result<()> {
        self.enforced.backend = Some(backend);
        if let Err(reason) = backend.check(&command.parts.sandbox) {
            self.misses(backend.as_str(), reason);
            return Ok(());
        }
        let programs = match backend.find() {
            Ok(programs) => programs,
            Err(reason) => {
                self.misses(backend.as_str(), reason);
                return Ok(());
            }
        };
        let is_transparent = launcher::of(backend).is_transparent();
        if is_transparent {
            self.limit_sockets(command, system)?;
            self.enforced.namespaces = true;
        }
        // Without its filter the run is refused.
        let filter = self.late_filter(system);
        self.late_sockets = None;
        match Outside::plan(backend, &programs, command, program, filter)? {
            Ok(outside) => {
                self.skipped = outside.skipped_paths().to_vec();
                self.outside = Some(outside);
            }
            Err(reason) => self.misses(backend.as_str(), reason),
        }
        if !is_transparent {
            self.contain(system);
        } else if self.enforced.seccomp && self.mark.and(system.orphans).is_some() {
            self.enforced.containment = Containment::Proven;
        } else {
            // The backend and its namespaces end with the thread that starts it.
            self.enforced.containment = Containment::Search;
        }
        Ok(())
    }

    /// Returns whether the run can't be left to its backend, without which it must not run.
    pub(crate) fn lacks_backend(&self, command: &Command) -> bool {
        let is_ready = |outside: &Outside| !outside.needs_filter() || self.enforced.seccomp;
        command.parts.sandbox.backend.is_some() && !self.outside.as_ref().is_some_and(is_ready)
    }

    /// Returns whether our first process runs in namespaces, and reports how the program ended.
    pub(crate) fn has_first_process(&self) -> bool {
        let outside = self.outside.as_ref();
        self.isolation.is_some() || outside.is_some_and(Outside::is_transparent)
    }

    /// Privileges that the run is started with. Backends drop those of the run themselves.
    pub(crate) fn privileges(&self, command: &Command) -> Privileges {
        let sandbox = &command.parts.sandbox;
        let is_root = || match sandbox.run_as {
            Some(run_as) => run_as.user == 0,
            None => rustix::process::geteuid().is_root(),
        };
        match &self.outside {
            None if sandbox.level == Level::None => Privileges::Kept,
            None => Privileges::Dropped,
            // Root can only map itself into a namespace with its rights.
            Some(outside) if outside.is_transparent() && is_root() => Privileges::NotGained,
            Some(outside) if outside.is_transparent() => Privileges::Dropped,
            // It may need a program that gains rights.
            Some(_) => Privileges::Kept,
        }
    }

    /// Reports what is missing without being a reason to refuse the run.
    pub(crate) fn report(&mut self, command: &Command, proc: Proc) {
        if self.isolation.is_some() && proc == Proc::Empty {
            self.misses(
                "/proc",
                "the kernel refuses to mount a private one here, so it is empty",
            );
        }
        for reason in std::mem::take(&mut self.skipped) {
            self.misses("write", reason);
        }
        if let Some(reason) = self.uncounted_processes(command) {
            self.misses("process limit", reason);
        }
    }

    /// Returns why the limit of processes, if there is one, is not exact or not set.
    fn uncounted_processes(&self, command: &Command) -> Option<&'static str> {
        if held_to(command).processes.is_none() || self.counts_processes() {
            return None;
        }
        if self.outside.is_some() {
            return Some(
                "it is not set, as the kernel would count other processes of this user with those of the backend; counting only the run needs a control group",
            );
        }
        let is_own =
            command.parts.sandbox.run_as.is_none() && !rustix::process::geteuid().is_root();
        match is_own {
            // The user belongs to the namespace of the run alone.
            true if self.isolation.is_some() => None,
            true => Some(
                "the kernel counts all processes and threads of this user, including those of this process; counting only the run needs a control group",
            ),
            false => Some(
                "the kernel does not count processes of root, and counts those of another user in all runs; counting only the run needs a control group",
            ),
        }
    }

    fn counts_processes(&self) -> bool {
        matches!(&self.group, Some(group) if group.counts_processes)
    }

    /// Returns the limits of each single process.
    pub(crate) fn limits(&self, command: &Command) -> Limits {
        let mut limits = held_to(command);
        // The kernel would count processes of other runs too.
        if self.counts_processes() || self.outside.is_some() {
            limits.processes = None;
        }
        limits
    }

    /// Arguments of the process that is started: the program, our first process, or a backend.
    pub(crate) fn words<'a>(&'a self, command: &'a Command, program: &'a Path) -> Vec<&'a OsStr> {
        if let Some(outside) = &self.outside {
            return outside.words().iter().map(OsString::as_os_str).collect();
        }
        let first = self.isolation.as_ref().map(|_| OsStr::new("init"));
        let arguments = command.parts.args.iter().map(OsString::as_os_str);
        let words = first.into_iter().chain([program.as_os_str()]);
        words.chain(arguments).collect()
    }

    /// Returns the descriptors of that process besides standard streams.
    ///
    /// # Errors
    ///
    /// The first process can't be created on this system.
    pub(crate) fn handed(&self) -> io::Result<Vec<BorrowedFd<'_>>> {
        match (&self.isolation, &self.outside) {
            (Some(isolation), _) => Ok(isolation.status_end().into_iter().collect()),
            (None, Some(outside)) => outside.handed(),
            (None, None) => Ok(Vec::new()),
        }
    }

    /// Returns the directory that the program starts in, unless it is that of this process.
    pub(crate) fn directory<'a>(&'a self, command: &'a Command) -> Option<&'a Path> {
        if command.parts.starts_in_temporary
            && let Some(temporary) = self.temporary()
        {
            return Some(temporary);
        }
        let isolated = self.isolation.as_ref().map(Isolation::directory);
        let fixed = self.fixed_directory.as_ref().map(FixedDirectory::entrance);
        let outside = self.outside.as_ref().map(Outside::directory);
        let own = isolated.or(outside).or(fixed);
        own.or(command.parts.current_dir.as_deref())
    }

    /// Returns the directory that the program must start in, whatever its path leads to. A
    /// backend, and a temporary directory, have places of their own.
    pub(crate) fn fixed_place(&self, command: &Command) -> Option<FixedPlace<'_>> {
        let is_temporary = command.parts.starts_in_temporary && self.temporary().is_some();
        let fixed = self.fixed_directory.as_ref();
        let fixed = fixed.filter(|_| self.outside.is_none() && !is_temporary);
        fixed.map(FixedDirectory::place)
    }

    /// Checks, immediately before the start, that the starting directory was not replaced.
    ///
    /// # Errors
    ///
    /// It was.
    pub(crate) fn verify_directory(&self) -> io::Result<()> {
        self.fixed_directory
            .as_ref()
            .map_or(Ok(()), FixedDirectory::verify)
    }

    /// Returns the directory for temporary files of the program.
    pub(crate) fn temporary(&self) -> Option<&Path> {
        match (&self.temporary, &self.isolation) {
            (Some(lease), _) => Some(lease.path()),
            (None, Some(_)) => Some(Path::new("/tmp")),
            (None, None) => self.outside.as_ref().map(|_| Path::new("/tmp")),
        }
    }

    fn group(&mut self, limits: &Limits, system: &System) -> io::Result<()> {
        let Some(groups) = &system.groups else {
            if limits.memory.is_some() {
                self.misses(
                    "cgroup",
                    "no control group is delegated to this process: memory is not limited",
                );
            }
            return Ok(());
        };
        if let Some(reason) = groups.missing_controller(limits) {
            self.misses("cgroup", reason);
        }
        self.group = groups.group(limits)?;
        self.enforced.cgroup = self.group.is_some();
        Ok(())
    }

    fn misses(&mut self, mechanism: &'static str, reason: impl Into<String>) {
        let missing = MissingMechanism::new(mechanism, reason);
        self.enforced.missing.push(missing);
    }

    fn contain(&mut self, system: &System) {
        self.enforced.containment = match (self.mark, system.orphans) {
            // Without a filter, a process can change its mark.
            (Some(_), Some(_)) if self.enforced.seccomp => Containment::Proven,
            (Some(_), Some(_)) => Containment::Search,
            (Some(_), None) if !system.capabilities.sees_processes => {
                let reason = "it is missing, so only process groups can be killed";
                self.misses("/proc", reason);
                Containment::Group
            }
            (Some(_), None) => {
                let reason = "a descendant that keeps forking may slip through";
                self.misses("reaper", reason);
                Containment::Search
            }
            (None, _) => {
                let reason =
                    "this process is itself confined, so only process groups can be killed";
                self.misses("mark", reason);
                Containment::Group
            }
        };
        if !Watchdog::is_there() {
            self.misses(
                "watchdog",
                "leftover processes are not ended if the host itself is killed",
            );
        }
    }

    fn filter(&mut self, fault: Option<&str>) {
        self.enforced.seccomp = fault.is_none();
        if let Some(reason) = fault {
            self.misses("seccomp", reason);
        }
    }

    fn filter_late(&mut self, sockets: Sockets, system: &System) {
        self.late_sockets = Some(sockets);
        self.filter(system.late_filter(sockets).err());
    }

    /// Leaves the run no way out but its proxy.
    fn limit_network(&mut self, command: &Command, system: &System, way: Way) -> io::Result<()> {
        self.filter_late(
            match way {
                Way::Namespace => Sockets::Tcp,
                Way::Port => Sockets::TcpClient,
            },
            system,
        );
        match Gateway::prepare(&command.parts.sandbox, way) {
            Ok(gateway) => {
                if way == Way::Port {
                    self.misses(
                        "network namespace",
                        "the kernel refuses one, so only ports are limited: the process can connect to the port of its proxy on any machine",
                    );
                }
                self.gateway = Some(gateway);
            }
            Err(Refusal::Missing(missing)) => {
                self.misses("network namespace", "the kernel refuses one");
                self.enforced.missing.push(missing);
            }
            Err(Refusal::Fault(error)) => return Err(error),
        }
        Ok(())
    }

    /// Returns whether the network can't be limited as it has to be.
    pub(crate) fn lacks_gateway(&self, command: &Command) -> bool {
        let is_limited = command.parts.sandbox.level > Level::None
            && command.parts.sandbox.network == Network::Listed;
        is_limited && (self.gateway.is_none() || !self.enforced.seccomp)
    }

    /// Returns the rulesets to enter.
    pub(crate) fn rulesets(&self) -> [Option<BorrowedFd<'_>>; 2] {
        let ports = self.gateway.as_ref().and_then(Gateway::ruleset);
        [self.ruleset.as_deref(), ports].map(|ruleset| ruleset.map(AsFd::as_fd))
    }

    /// Enters a ruleset for a process that shares the system with others, and records what this
    /// version of Landlock lacks.
    fn enter_guarded(&mut self, ruleset: Arc<Ruleset>) {
        const SIZES: u32 = 3;
        const SCOPES: u32 = 6;
        let abi = ruleset.abi();
        if abi < SIZES {
            let reason = "the version of this kernel does not prevent truncating files elsewhere";
            self.misses("landlock", reason);
        }
        if abi < SCOPES {
            let reason = "the version of this kernel does not prevent signals to other processes, or connections by abstract sockets";
            self.misses("landlock", reason);
        }
        self.enter(ruleset);
    }

    fn enter(&mut self, ruleset: Arc<Ruleset>) {
        self.enforced.landlock = Some(ruleset.abi());
        self.ruleset = Some(ruleset);
    }

    fn rule(&mut self, command: &Command, program: &Path, system: &System) -> io::Result<()> {
        let sandbox = &command.parts.sandbox;
        let mut temporary = system.directories.lease(sandbox.run_as)?;
        // For most runs this is empty, and then many runs share their rules.
        let mut needed = command.needed_paths(program)?;
        needed.retain(|path| sandbox.keeps(path));
        let make = |directory: &Path| {
            let needed: Vec<_> = needed.iter().map(PathBuf::as_path).collect();
            Ruleset::new(sandbox, &needed, Some(directory))
        };
        match temporary.ruleset(sandbox, &needed, make) {
            Ok(Some(ruleset)) => {
                self.skipped = ruleset.skipped_paths().to_vec();
                self.enter_guarded(ruleset);
            }
            Ok(None) => {}
            Err(Refusal::Missing(missing)) => self.enforced.missing.push(missing),
            Err(Refusal::Fault(error)) => return Err(error),
        }
        self.temporary = Some(temporary);
        Ok(())
    }

    /// Returns the search for processes, for a run of which nothing may be left.
    pub(crate) fn killer(&self) -> Option<tree::RunKiller> {
        let is_searched = self.enforced.level == Level::Guarded || self.outside.is_some();
        self.mark.filter(|_| is_searched).map(tree::RunKiller::new)
    }
}

/// Returns the limits of a command, plus the processes of its namespaces that are not its own.
fn held_to(command: &Command) -> Limits {
    let mut limits = command.parts.limits.at(command.parts.sandbox.level);
    if command.parts.sandbox.level == Level::Strict {
        let own = match command.parts.sandbox.backend {
            None => 1,
            Some(_) => 2,
        };
        limits.processes = limits
            .processes
            .map(|processes| processes.saturating_add(own));
    }
    limits
}
