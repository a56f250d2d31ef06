//! Landlock rulesets: which files a process may open, and whom it may signal. Made once, entered by many.
//!
//! Landlock knows only permission: what is allowed below a directory can't be taken back for a part of it. A hidden
//! path is left out by allowing everything beside it and beside each directory on the way to it.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, LandlockStatus, PathBeneath, RestrictSelf,
    RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetError, Scope,
};
use rustix::fs::{Mode, OFlags};

use super::pipe;
use super::watch::Watch;
use crate::enforced::MissingMechanism;
use crate::sandbox::Network;

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
    skipped: Vec<PathBuf>,
}

impl Ruleset {
    /// Everything can be read but what is at or below `hidden`, and only what is at or below `write` be written.
    ///
    /// Where both lists speak of a path, the more specific entry counts, and of equals the one in `write`. In a
    /// writable directory on the way to a hidden path nothing new can be made directly, only further down. The names
    /// of hidden files can still be listed. Symbolic links are followed in both lists, and those on the way to a hidden
    /// path can't be moved; a path that can't be found is passed over, see [`skipped`](Self::skipped).
    ///
    /// As far as the kernel can, nothing outside is signalled or reached by an abstract socket, and without network
    /// no TCP port is used.
    ///
    /// # Errors
    ///
    /// The kernel has no Landlock, or refuses it.
    pub(crate) fn new(
        write: &[PathBuf],
        hidden: &[PathBuf],
        network: Network,
    ) -> Result<Self, MissingMechanism> {
        let abi = supported()?;
        Rules::new(write, hidden, network)
            .map_err(refused)?
            .finish(abi)
    }

    /// Only what is not about files: for a process that sees none but its own.
    ///
    /// # Errors
    ///
    /// The kernel has no Landlock that can do so, or refuses it.
    pub(crate) fn scopes(network: Network) -> Result<Self, MissingMechanism> {
        let abi = supported()?;
        Rules::scopes(network).map_err(refused)?.finish(abi)
    }

    /// False once the rules would turn out differently: then they have to be made again.
    pub(crate) fn is_current(&self) -> bool {
        self.watch.is_current()
    }

    /// The version of the kernel's interface in use.
    pub(crate) fn abi(&self) -> u32 {
        self.abi
    }

    /// Paths that were to be writable and could not be found.
    pub(crate) fn skipped(&self) -> &[PathBuf] {
        &self.skipped
    }
}

impl AsFd for Ruleset {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// The version of the interface this kernel and this program have in common.
fn supported() -> Result<u32, MissingMechanism> {
    // Without any flag this asks for the version and restricts nothing.
    let status = RestrictSelf::default().no_new_privs(false).apply();
    let reason = match status.map_err(refused)?.landlock {
        LandlockStatus::Available { effective_abi, .. } => return Ok(effective_abi as u32),
        LandlockStatus::NotEnabled => "this kernel was booted without it",
        LandlockStatus::NotImplemented => "this kernel was built without it",
    };
    Err(MissingMechanism::new("landlock", reason))
}

fn refused(error: RulesetError) -> MissingMechanism {
    MissingMechanism::new("landlock", error.to_string())
}

/// A ruleset that is being made.
#[derive(Debug)]
struct Rules {
    created: RulesetCreated,
    /// Without symbolic links.
    hidden: Vec<PathBuf>,
    watch: Watch,
    skipped: Vec<PathBuf>,
}

impl Rules {
    fn new(write: &[PathBuf], hidden: &[PathBuf], network: Network) -> Result<Self, RulesetError> {
        let read = AccessFs::Execute | AccessFs::ReadFile | AccessFs::ResolveUnix;
        let all = AccessFs::from_all(NEWEST);
        let mut watch = Watch::new();
        let reachable = |path: &PathBuf| reachable(path, &mut watch);
        let mut covered: Vec<_> = hidden.iter().filter_map(reachable).collect();
        covered.push(PathBuf::from("/dev"));
        let links: Vec<_> = watch.links().cloned().collect();
        let (mut writable, mut skipped) = (Vec::new(), Vec::new());
        for path in write {
            match watch.follow(path) {
                Ok(found) => writable.push(found),
                Err(_) => skipped.push(path.clone()),
            }
        }
        // If one was moved, the next ruleset would hide nothing.
        let is_movable = |link: &PathBuf| writable.iter().any(|path| link.starts_with(path));
        covered.extend(links.into_iter().filter(is_movable));
        let devices = DEVICES.iter().map(Path::new);
        let devices = devices
            .filter_map(|path| watch.follow(path).ok())
            .collect::<Vec<_>>();
        let mut rules = Self {
            created: handled(network)?.handle_access(all)?.create()?,
            hidden: covered,
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
        for path in writable {
            rules.allow(&path, all)?;
        }
        Ok(rules)
    }

    fn scopes(network: Network) -> Result<Self, RulesetError> {
        Ok(Self {
            created: handled(network)?.create()?,
            hidden: Vec::new(),
            watch: Watch::new(),
            skipped: Vec::new(),
        })
    }

    fn finish(self, abi: u32) -> Result<Ruleset, MissingMechanism> {
        let Some(descriptor) = self.created.into() else {
            let reason = format!("version {abi} of it, which this kernel has, knows no scopes");
            return Err(MissingMechanism::new("landlock", reason));
        };
        let descriptor = pipe::above_reserved(descriptor)
            .map_err(|error| MissingMechanism::new("landlock", error.to_string()))?;
        Ok(Ruleset {
            descriptor,
            abi,
            watch: self.watch,
            skipped: self.skipped,
        })
    }

    /// Allows access to `path`, which has no symbolic links in it, and to all below but what is hidden there.
    fn allow(&mut self, path: &Path, access: BitFlags<AccessFs>) -> Result<(), RulesetError> {
        let below = |hidden: &&PathBuf| *hidden != path && hidden.starts_with(path);
        let hidden: Vec<_> = self.hidden.iter().filter(below).cloned().collect();
        if hidden.is_empty() {
            return self.add(path, access);
        }
        self.watch.whole(path);
        for entry in entries(path, &hidden) {
            if !hidden.contains(&entry) {
                self.allow(&entry, access)?;
            }
        }
        Ok(())
    }

    /// Adds one rule, unless the path has gone.
    fn add(&mut self, path: &Path, access: BitFlags<AccessFs>) -> Result<(), RulesetError> {
        // Not followed: it could have become a link to something hidden since it was looked at.
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        if let Ok(file) = rustix::fs::open(path, flags, Mode::empty()) {
            (&mut self.created).add_rule(PathBeneath::new(file, access))?;
        }
        Ok(())
    }
}

fn handled(network: Network) -> Result<landlock::Ruleset, RulesetError> {
    let ruleset = landlock::Ruleset::default().scope(Scope::from_all(NEWEST))?;
    match network {
        Network::Host => Ok(ruleset),
        Network::Off => ruleset.handle_access(AccessNet::from_all(NEWEST)),
    }
}

/// What is in a directory but for symbolic links, or if it can't be listed, what leads on to the `hidden` paths below.
fn entries(directory: &Path, hidden: &[PathBuf]) -> Vec<PathBuf> {
    let next = directory.components().count() + 1;
    list(directory).unwrap_or_else(|_| {
        let ways = hidden
            .iter()
            .map(|path| path.components().take(next).collect());
        let ways: BTreeSet<PathBuf> = ways.collect();
        ways.into_iter().collect()
    })
}

fn list(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
            paths.push(entry.path());
        }
    }
    Ok(paths)
}

/// Where a path leads, if this user can get at that, or could after changing a mode.
///
/// There is no need to hide the rest, and it would be dear: a file in `/etc` costs a rule for each file beside it.
fn reachable(path: &Path, watch: &mut Watch) -> Option<PathBuf> {
    let found = match watch.follow(path) {
        Ok(found) => found,
        Err(lost) => lost.closed()?.to_owned(),
    };
    watch.is_in_reach(&found).then_some(found)
}

#[cfg(test)]
mod tests;
