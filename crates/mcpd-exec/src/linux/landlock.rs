//! Landlock rulesets: which files a process may open, and whom it may signal. Made once, entered by many.
//!
//! Landlock knows only permission: what is allowed below a directory can't be taken back for a part of it. A hidden
//! path is left out by allowing everything beside it and beside each directory on the way to it.

use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::io;
use std::io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
use std::ops::Bound::{Excluded, Unbounded};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, LandlockStatus, PathBeneath, RestrictSelf,
    RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetError, Scope,
};
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};
use rustix::io::Errno;

use super::home::Homes;
use super::pipe;
use super::watch::Watch;
use super::writable::{Readable, Writable};
use crate::enforced::MissingMechanism;
use crate::os::{self, Fault};
use crate::sandbox::{Network, Sandbox};

/// The newest interface whose restrictions are asked for. Those the kernel does not know are left out.
const NEWEST: ABI = ABI::V9;

/// What every program expects to write. Of the rest of `/dev` only names can be seen: disks and memory hold all that
/// is hidden. Nothing in `/proc` is here, as rules can't tell a process's own part of it from the others'.
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

/// A set of rules, ready to be entered by one process after another.
#[derive(Debug)]
pub(crate) struct Ruleset {
    descriptor: OwnedFd,
    abi: u32,
    watch: Watch,
    skipped: Vec<String>,
}

impl Ruleset {
    /// Everything can be read but what is hidden, and only what is writable or in `temporary` be
    /// written. What is hidden only because programs keep such things in a home can be read if it
    /// is `needed`.
    ///
    /// Where two entries speak of a path, the more specific counts, and of equals the writable one. In a writable directory on
    /// the way to a hidden path nothing new can be made directly, only further down. The names of hidden files can still be
    /// listed. Symbolic links on the way to a hidden path can't be moved. What is not writable although it was to be, is in
    /// [`skipped`](Self::skipped).
    ///
    /// As far as the kernel can, nothing outside is signalled or reached by an abstract socket, and without network
    /// no TCP port is used.
    ///
    /// # Errors
    ///
    /// The kernel has no Landlock, or refuses it, or something is short now.
    pub(crate) fn new(
        sandbox: &Sandbox,
        needed: &[&Path],
        temporary: Option<&Path>,
    ) -> Result<Self, Refusal> {
        let abi = supported()?;
        Rules::new(sandbox, needed, temporary)?.finish(abi)
    }

    /// Only what is not about files: for a process that sees none but its own.
    ///
    /// # Errors
    ///
    /// The kernel has no Landlock that can do so, or refuses it.
    pub(crate) fn scopes(network: Network) -> Result<Self, Refusal> {
        let abi = supported()?;
        Rules::scopes(network)?.finish(abi)
    }

    /// False once the rules would turn out differently: then they have to be made again.
    pub(crate) fn is_current(&self) -> bool {
        self.watch.is_current()
    }

    /// The version of the kernel's interface in use.
    pub(crate) fn abi(&self) -> u32 {
        self.abi
    }

    /// What was to be writable and is not, each as a sentence.
    pub(crate) fn skipped(&self) -> &[String] {
        &self.skipped
    }
}

impl AsFd for Ruleset {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// The version of the interface this kernel and this program have in common.
fn supported() -> Result<u32, Refusal> {
    // Without any flag this asks for the version and restricts nothing.
    let status = RestrictSelf::default().no_new_privs(false).apply();
    let reason = match status?.landlock {
        LandlockStatus::Available { effective_abi, .. } => return Ok(effective_abi as u32),
        LandlockStatus::NotEnabled => "this kernel was booted without it",
        LandlockStatus::NotImplemented => "this kernel was built without it",
    };
    Err(Refusal::Missing(MissingMechanism::new("landlock", reason)))
}

/// Why there is no ruleset.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The system has none.
    Missing(MissingMechanism),
    /// There is none now.
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
            // A descriptor or memory, for one.
            Some(errno) if !matches!(errno, Errno::NOSYS | Errno::OPNOTSUPP | Errno::PERM) => {
                Self::Fault(io::Error::new(errno.kind(), error))
            }
            _ => Self::Missing(MissingMechanism::new("landlock", error.to_string())),
        }
    }
}

/// A ruleset that is being made.
#[derive(Debug)]
struct Rules {
    created: RulesetCreated,
    /// Without symbolic links.
    hidden: BTreeSet<PathBuf>,
    watch: Watch,
    skipped: Vec<String>,
    /// Directory of the last rule: the next is about a file beside it in most cases.
    parent: Option<(PathBuf, OwnedFd)>,
}

impl Rules {
    fn new(sandbox: &Sandbox, needed: &[&Path], temporary: Option<&Path>) -> Result<Self, Refusal> {
        let read = AccessFs::Execute | AccessFs::ReadFile | AccessFs::ResolveUnix;
        let all = AccessFs::from_all(NEWEST);
        let mut watch = Watch::new();
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
            created: handled(sandbox.network)?.handle_access(all)?.create()?,
            hidden: by_name.into_iter().chain(homes.kept().cloned()).collect(),
            watch,
            skipped: [skipped, readable.skipped].concat(),
            parent: None,
        };
        let root = Path::new("/");
        // Directories on the way to a hidden path could not be listed otherwise.
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
        Ok(Self {
            created: handled(network)?.create()?,
            hidden: BTreeSet::new(),
            watch: Watch::new(),
            skipped: Vec::new(),
            parent: None,
        })
    }

    fn finish(self, abi: u32) -> Result<Ruleset, Refusal> {
        let Some(descriptor) = self.created.into() else {
            let reason = format!("version {abi} of it, which this kernel has, knows no scopes");
            return Err(Refusal::Missing(MissingMechanism::new("landlock", reason)));
        };
        Ok(Ruleset {
            descriptor: pipe::above_reserved(descriptor)?,
            abi,
            watch: self.watch,
            skipped: self.skipped,
        })
    }

    /// Allows access to `path`, which has no symbolic links in it, and to all below but what is hidden there.
    fn allow(&mut self, path: &Path, access: BitFlags<AccessFs>) -> Result<(), Refusal> {
        let after = self.hidden.range::<Path, _>((Excluded(path), Unbounded));
        let hidden: Vec<_> = after
            .take_while(|hidden| hidden.starts_with(path))
            .cloned()
            .collect();
        if hidden.is_empty() {
            return self.add(path, access);
        }
        self.watch.whole(path);
        for entry in entries(path, &hidden)? {
            if !hidden.contains(&entry) {
                self.allow(&entry, access)?;
            }
        }
        Ok(())
    }

    /// Adds one rule, unless the path can't be had: what has no rule is not allowed.
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

    /// Opens what is at `path`, no part of which is a link: it could have become one to something
    /// else since it was looked at.
    ///
    /// Name by name, as a thread may be under a filter that has no `openat2`.
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

/// Opens a name in a directory, if it is no link.
fn open_step(directory: impl AsFd, name: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(directory, name, flags, Mode::empty())?;
    // The program behind a file system may have gone, too.
    match FileType::from_raw_mode(fstat(&file)?.st_mode) {
        FileType::Symlink => Err(Errno::LOOP),
        _ => Ok(file),
    }
}

fn handled(network: Network) -> Result<landlock::Ruleset, Refusal> {
    let ruleset = landlock::Ruleset::default().scope(Scope::from_all(NEWEST))?;
    match network {
        Network::Host => Ok(ruleset),
        Network::Off => Ok(ruleset.handle_access(AccessNet::from_all(NEWEST))?),
    }
}

/// What is in a directory but for symbolic links, or what leads on to the `hidden` paths below if that can't be told from it: it
/// can't be listed, or calls them otherwise, as a file system does that takes upper and lower case for the same.
///
/// # Errors
///
/// It can't be listed now.
fn entries(directory: &Path, hidden: &[PathBuf]) -> io::Result<BTreeSet<PathBuf>> {
    let next = directory.components().count() + 1;
    let ways = hidden
        .iter()
        .map(|path| path.components().take(next).collect());
    let ways: BTreeSet<PathBuf> = ways.collect();
    match list(directory) {
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

fn list(directory: &Path) -> io::Result<BTreeSet<PathBuf>> {
    let mut paths = BTreeSet::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
            paths.insert(entry.path());
        }
    }
    Ok(paths)
}

/// Paths that are hidden because the sandbox names them, where links lead to, and links on the way that a
/// process could move in what is `written`: if one was moved, the next ruleset would hide nothing.
fn hidden_by_name(
    sandbox: &Sandbox,
    written: &[PathBuf],
    watch: &mut Watch,
) -> io::Result<BTreeSet<PathBuf>> {
    let mut links = Vec::new();
    let mut hidden = BTreeSet::from([PathBuf::from("/dev")]);
    for path in &sandbox.hidden {
        hidden.extend(reachable(path, sandbox, watch, &mut links)?);
    }
    let is_movable = |link: &PathBuf| written.iter().any(|place| link.starts_with(place));
    hidden.extend(links.into_iter().filter(is_movable));
    Ok(hidden)
}

/// Where a path leads, if this user can get at that, or could after changing a mode.
///
/// There is no need to hide the rest, and it would be dear: a file in `/etc` costs a rule for each file beside it.
fn reachable(
    path: &Path,
    sandbox: &Sandbox,
    watch: &mut Watch,
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
