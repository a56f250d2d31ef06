//! Landlock rulesets: which files a process may open, and whom it may signal. Made once, entered by many.
//!
//! Landlock knows only permission: what is allowed below a directory can't be taken back for a part of it. A hidden
//! path is left out by allowing everything beside it and beside each directory on the way to it.

use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::io;
use std::io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, LandlockStatus, PathBeneath, RestrictSelf,
    RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetError, Scope,
};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, fstat, openat2};
use rustix::io::Errno;

use super::pipe;
use super::watch::Watch;
use super::writable::Writable;
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
    /// Everything can be read but what is hidden, and only what is writable or in `temporary` be written.
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
    pub(crate) fn new(sandbox: &Sandbox, temporary: Option<&Path>) -> Result<Self, Refusal> {
        let abi = supported()?;
        Rules::new(sandbox, temporary)?.finish(abi)
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
    hidden: Vec<PathBuf>,
    watch: Watch,
    skipped: Vec<String>,
}

impl Rules {
    fn new(sandbox: &Sandbox, temporary: Option<&Path>) -> Result<Self, Refusal> {
        let read = AccessFs::Execute | AccessFs::ReadFile | AccessFs::ResolveUnix;
        let all = AccessFs::from_all(NEWEST);
        let (mut watch, mut links) = (Watch::new(), Vec::new());
        let mut hidden = vec![PathBuf::from("/dev")];
        for path in &sandbox.hidden {
            hidden.extend(reachable(path, sandbox, &mut watch, &mut links)?);
        }
        let mut devices = Vec::new();
        for path in DEVICES {
            devices.extend(watch.find(Path::new(path))?);
        }
        let Writable { places, skipped } = Writable::of(sandbox, temporary, &devices, &mut watch)?;
        // If one was moved, the next ruleset would hide nothing.
        let places: Vec<_> = places.into_iter().map(|(_, place)| place).collect();
        let is_movable = |link: &PathBuf| {
            let mut writable = places.iter().chain(&devices);
            writable.any(|place| link.starts_with(place))
        };
        hidden.extend(links.into_iter().filter(is_movable));
        let mut rules = Self {
            created: handled(sandbox.network)?.handle_access(all)?.create()?,
            hidden,
            watch,
            skipped,
        };
        let root = Path::new("/");
        // Directories on the way to a hidden path could not be listed otherwise.
        rules.add(root, AccessFs::ReadDir.into())?;
        if !rules.hidden.iter().any(|path| path == root) {
            rules.allow(root, read)?;
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
            hidden: Vec::new(),
            watch: Watch::new(),
            skipped: Vec::new(),
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
        let below = |hidden: &&PathBuf| *hidden != path && hidden.starts_with(path);
        let hidden: Vec<_> = self.hidden.iter().filter(below).cloned().collect();
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
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        // A part of it could have become a link to something else since it was looked at.
        let strictly = ResolveFlags::NO_SYMLINKS;
        let opened = openat2(CWD, path, flags, Mode::empty(), strictly);
        // Whoever serves a file system may have gone.
        let opened = opened.and_then(|file| fstat(&file).map(|_| file));
        match opened.map_err(io::Error::from) {
            Ok(file) => (&mut self.created)
                .add_rule(PathBeneath::new(file, access))
                .map(drop)?,
            Err(error) if os::fault(&error) == Fault::Exhausted => return Err(error.into()),
            Err(_) => {}
        }
        Ok(())
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
