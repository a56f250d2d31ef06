//! Landlock rulesets: the files a process may open, and the processes it may signal. A ruleset is
//! made once and entered by many processes.
//!
//! Landlock can only permit: a permission on a directory can't be revoked for a part of it. A
//! hidden path is therefore left out, by permitting everything beside it and beside each
//! directory on the way to it.

use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::io;
use std::io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
use std::ops::Bound::{Excluded, Unbounded};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, LandlockStatus, NetPort, PathBeneath,
    RestrictSelf, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetError, Scope,
};
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};
use rustix::io::Errno;

use super::home::Homes;
use super::path_watch::PathWatch;
use super::pipe;
use super::writable::{Readable, Writable};
use crate::enforcement::MissingMechanism;
use crate::os::{self, Fault};
use crate::sandbox::{Network, Sandbox};

/// Newest ABI whose restrictions are requested. Older kernels ignore those they do not know.
const NEWEST: ABI = ABI::V9;

/// Devices that every program expects to write. The rest of `/dev` can only be listed: disks and
/// memory contain everything that is hidden. `/proc` is absent, as rules can't tell a process's
/// own part of it from that of others.
const DEVICES: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
    "/dev/shm",
];

/// Set of rules that one process after another enters.
#[derive(Debug)]
pub(crate) struct Ruleset {
    descriptor: OwnedFd,
    abi: u32,
    watch: PathWatch,
    skipped: Vec<String>,
}

impl Ruleset {
    /// Makes rules by which everything can be read except hidden paths, and only writable paths
    /// and `temporary` can be written. A path in `needed` can be read if it is hidden only as an
    /// entry of a home.
    ///
    /// The most specific entry for a path counts, and of equally specific ones the writable one.
    /// In a writable directory on the way to a hidden path, new entries can't be made directly,
    /// only further down. The names of hidden files can still be listed. Symbolic links on the
    /// way to a hidden path can't be moved. Paths that were to be writable and are not are in
    /// [`skipped_paths`](Self::skipped_paths).
    ///
    /// As far as the kernel supports it, processes outside can't be signalled or reached by an
    /// abstract socket, and without network no TCP port can be used.
    ///
    /// # Errors
    ///
    /// The kernel has no Landlock, or refuses it, or a resource is exhausted.
    pub(crate) fn new(
        sandbox: &Sandbox,
        needed: &[&Path],
        temporary: Option<&Path>,
    ) -> Result<Self, Refusal> {
        let abi = supported_abi()?;
        Rules::new(sandbox, needed, temporary)?.finish(abi)
    }

    /// Makes rules without any for files, for a process that sees only files of its own.
    ///
    /// # Errors
    ///
    /// The kernel's Landlock has no scopes, or refuses them.
    pub(crate) fn scopes(network: Network) -> Result<Self, Refusal> {
        let abi = supported_abi()?;
        Rules::scopes(network)?.finish(abi)
    }

    /// Makes rules by which no TCP port can be used, except that `port` can be connected to.
    ///
    /// # Errors
    ///
    /// The kernel's Landlock has no rules for ports, or refuses them.
    pub(crate) fn port(port: u16) -> Result<Self, Refusal> {
        const PORTS: u32 = 4;
        let abi = supported_abi()?;
        if abi < PORTS {
            let reason = format!("version {abi} of this kernel has no rules for ports");
            return Err(Refusal::Missing(MissingMechanism::new("landlock", reason)));
        }
        let ports = landlock::Ruleset::default().handle_access(AccessNet::from_all(NEWEST))?;
        let rule = NetPort::new(port, AccessNet::ConnectTcp);
        Rules::without_files(ports.create()?.add_rule(rule)?).finish(abi)
    }

    /// Returns whether the rules would turn out the same now. Otherwise they must be made again.
    pub(crate) fn is_current(&self) -> bool {
        self.watch.is_current()
    }

    /// Version of the Landlock ABI in use.
    pub(crate) fn abi(&self) -> u32 {
        self.abi
    }

    /// Paths that were to be writable and are not, each as a sentence.
    pub(crate) fn skipped_paths(&self) -> &[String] {
        &self.skipped
    }
}

impl AsFd for Ruleset {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// Returns the newest ABI that both this kernel and this program support.
fn supported_abi() -> Result<u32, Refusal> {
    // Without any flag this queries the version and restricts nothing.
    let status = RestrictSelf::default().no_new_privs(false).apply();
    let reason = match status?.landlock {
        LandlockStatus::Available { effective_abi, .. } => return Ok(effective_abi as u32),
        LandlockStatus::NotEnabled => "this kernel was booted without it",
        LandlockStatus::NotImplemented => "this kernel was built without it",
    };
    Err(Refusal::Missing(MissingMechanism::new("landlock", reason)))
}

/// Reason that there is no ruleset.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The system lacks the mechanism.
    Missing(MissingMechanism),
    /// It failed this time.
    Fault(io::Error),
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Self::Fault(error)
    }
}

impl From<RulesetError> for Refusal {
    fn from(error: RulesetError) -> Self {
        let mut cause: Option<&dyn Error> = Some(&error);
        let mut code = None;
        while let Some(error) = cause {
            code = error
                .downcast_ref()
                .and_then(io::Error::raw_os_error)
                .or(code);
            cause = error.source();
        }
        match code.map(Errno::from_raw_os_error) {
            // Such as a lack of descriptors or memory.
            Some(errno) if !matches!(errno, Errno::NOSYS | Errno::OPNOTSUPP | Errno::PERM) => {
                Self::Fault(io::Error::new(errno.kind(), error))
            }
            _ => Self::Missing(MissingMechanism::new("landlock", error.to_string())),
        }
    }
}

/// Ruleset in construction.
#[derive(Debug)]
struct Rules {
    created: RulesetCreated,
    /// Hidden paths, without symbolic links.
    hidden: BTreeSet<PathBuf>,
    watch: PathWatch,
    skipped: Vec<String>,
    /// Directory of the last rule: the next rule mostly concerns a file in it too.
    parent: Option<(PathBuf, OwnedFd)>,
}

impl Rules {
    fn new(sandbox: &Sandbox, needed: &[&Path], temporary: Option<&Path>) -> Result<Self, Refusal> {
        let read = AccessFs::Execute | AccessFs::ReadFile | AccessFs::ResolveUnix;
        let all = AccessFs::from_all(NEWEST);
        let mut watch = PathWatch::new();
        let mut devices = Vec::new();
        for path in DEVICES {
            devices.extend(watch.find(Path::new(path))?);
        }
        let Writable { places, skipped } = Writable::of(sandbox, temporary, &devices, &mut watch)?;
        let places: Vec<_> = places.into_iter().map(|(_, place)| place).collect();
        let written = [&places[..], &devices].concat();
        let readable = Readable::of(sandbox, needed, &written, &mut watch)?;
        let by_name = hidden_by_name(sandbox, &written, &mut watch)?;
        let shown = readable.shown.into_iter();
        let shown = shown.filter(|place| !by_name.contains(place));
        let declared = readable.declared.into_iter().map(|(_, place)| place);
        let readable_places: Vec<_> = shown.chain(declared).collect();
        let mut homes = Homes::of(sandbox, &mut watch)?;
        homes.look_into(|_| true, &mut watch)?;
        let mut rules = Self {
            created: base_ruleset(sandbox.network)?
                .handle_access(all)?
                .create()?,
            hidden: by_name
                .into_iter()
                .chain(homes.kept_paths().cloned())
                .collect(),
            watch,
            skipped: [skipped, readable.skipped].concat(),
            parent: None,
        };
        let root = Path::new("/");
        // Otherwise the directories on the way to a hidden path could not be listed.
        rules.add(root, AccessFs::ReadDir.into())?;
        if !rules.hidden.contains(root) {
            rules.allow(root, read)?;
        }
        for place in readable_places {
            rules.allow(&place, read)?;
        }
        for device in devices {
            rules.add(&device, all)?;
        }
        for place in places {
            rules.allow(&place, all)?;
        }
        Ok(rules)
    }

    fn scopes(network: Network) -> Result<Self, Refusal> {
        Ok(Self::without_files(base_ruleset(network)?.create()?))
    }

    fn without_files(created: RulesetCreated) -> Self {
        Self {
            created,
            hidden: BTreeSet::new(),
            watch: PathWatch::new(),
            skipped: Vec::new(),
            parent: None,
        }
    }

    fn finish(self, abi: u32) -> Result<Ruleset, Refusal> {
        let Some(descriptor) = self.created.into() else {
            let reason = format!("version {abi} of this kernel does not support scopes");
            return Err(Refusal::Missing(MissingMechanism::new("landlock", reason)));
        };
        Ok(Ruleset {
            descriptor: pipe::above_reserved(descriptor)?,
            abi,
            watch: self.watch,
            skipped: self.skipped,
        })
    }

    /// Allows access to `path`, which has no symbolic links in it, and to everything below except
    /// hidden paths.
    fn allow(&mut self, path: &Path, access: BitFlags<AccessFs>) -> Result<(), Refusal> {
        let after = self.hidden.range::<Path, _>((Excluded(path), Unbounded));
        let hidden: Vec<_> = after
            .take_while(|hidden| hidden.starts_with(path))
            .cloned()
            .collect();
        if hidden.is_empty() {
            return self.add(path, access);
        }
        self.watch.watch_whole(path);
        for entry in list_entries(path, &hidden)? {
            if !hidden.contains(&entry) {
                self.allow(&entry, access)?;
            }
        }
        Ok(())
    }

    /// Adds one rule, unless the path can't be opened: without a rule it is not allowed.
    fn add(&mut self, path: &Path, access: BitFlags<AccessFs>) -> Result<(), Refusal> {
        match self.open(path).map_err(io::Error::from) {
            Ok(file) => (&mut self.created)
                .add_rule(PathBeneath::new(file, access))
                .map(drop)?,
            Err(error) if os::fault(&error) == Fault::Exhausted => return Err(error.into()),
            Err(_) => {}
        }
        Ok(())
    }

    /// Opens `path` without following links, as a component may have become one since it was
    /// inspected.
    ///
    /// It opens name by name, because the thread may be under a filter that refuses `openat2`.
    fn open(&mut self, path: &Path) -> rustix::io::Result<OwnedFd> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return open_step(CWD, Path::new("/"));
        };
        let is_last = |(last, _): &(PathBuf, OwnedFd)| last == parent;
        if !self.parent.as_ref().is_some_and(is_last) {
            let mut directory = open_step(CWD, Path::new("/"))?;
            for name in parent.components().skip(1) {
                directory = open_step(&directory, name.as_ref())?;
            }
            self.parent = Some((parent.to_owned(), directory));
        }
        match &self.parent {
            Some((_, directory)) => open_step(directory, name.as_ref()),
            None => Err(Errno::NOENT),
        }
    }
}

/// Opens a name in a directory, unless it is a link.
fn open_step(directory: impl AsFd, name: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(directory, name, flags, Mode::empty())?;
    // This also fails if the server of a FUSE file system is gone.
    match FileType::from_raw_mode(fstat(&file)?.st_mode) {
        FileType::Symlink => Err(Errno::LOOP),
        _ => Ok(file),
    }
}

fn base_ruleset(network: Network) -> Result<landlock::Ruleset, Refusal> {
    let ruleset = landlock::Ruleset::default().scope(Scope::from_all(NEWEST))?;
    match network {
        // Another ruleset limits the ports, if they have to be.
        Network::Host | Network::Listed => Ok(ruleset),
        Network::Off => Ok(ruleset.handle_access(AccessNet::from_all(NEWEST))?),
    }
}

/// Lists a directory without its symbolic links. If the list does not contain the ways to the
/// `hidden` paths below, it returns those ways instead. That happens if the directory can't be
/// listed, or the file system ignores case.
///
/// # Errors
///
/// It can't be listed now.
fn list_entries(directory: &Path, hidden: &[PathBuf]) -> io::Result<BTreeSet<PathBuf>> {
    let next = directory.components().count() + 1;
    let ways = hidden
        .iter()
        .map(|path| path.components().take(next).collect());
    let ways: BTreeSet<PathBuf> = ways.collect();
    match list_directory(directory) {
        Ok(entries)
            if ways
                .iter()
                .all(|way| entries.contains(way) || way.is_symlink()) =>
        {
            Ok(entries)
        }
        Err(error) if !matches!(error.kind(), PermissionDenied | NotFound | NotADirectory) => {
            Err(error)
        }
        _ => Ok(ways),
    }
}

fn list_directory(directory: &Path) -> io::Result<BTreeSet<PathBuf>> {
    let mut paths = BTreeSet::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
            paths.insert(entry.path());
        }
    }
    Ok(paths)
}

/// Returns the targets of paths that the sandbox hides by name, and the links on the way that a
/// process could move within `written`: with such a link moved, the next ruleset would hide
/// nothing.
fn hidden_by_name(
    sandbox: &Sandbox,
    written: &[PathBuf],
    watch: &mut PathWatch,
) -> io::Result<BTreeSet<PathBuf>> {
    let mut links = Vec::new();
    let mut hidden = BTreeSet::from([PathBuf::from("/dev")]);
    for path in &sandbox.hidden {
        hidden.extend(reachable_target(path, sandbox, watch, &mut links)?);
    }
    let is_movable = |link: &PathBuf| written.iter().any(|place| link.starts_with(place));
    hidden.extend(links.into_iter().filter(is_movable));
    Ok(hidden)
}

/// Returns the target of a path, if this user can access it, or could after changing a mode.
///
/// Others need not be hidden, and hiding them would be expensive: a file in `/etc` costs a rule
/// for each file beside it.
fn reachable_target(
    path: &Path,
    sandbox: &Sandbox,
    watch: &mut PathWatch,
    links: &mut Vec<PathBuf>,
) -> io::Result<Option<PathBuf>> {
    let found = match watch.follow(path, links) {
        Ok(found) => found,
        Err(lost) => match lost.obstacle()? {
            Some(obstacle) => obstacle.to_owned(),
            None => return Ok(None),
        },
    };
    Ok(watch.is_in_reach(&found, sandbox).then_some(found))
}

#[cfg(test)]
mod tests;
