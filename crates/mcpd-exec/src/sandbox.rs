//! Confinement that is asked for, as plain data.

mod hidden_files;
pub(crate) mod homes;
mod read_access;
mod secrets;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;
use std::sync::LazyLock;

use crate::backend::Backend;
use crate::egress::{self, Destination};

/// Level of confinement. Each level includes all restrictions of the one before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Level {
    /// Hygiene only: own process group, no terminal, no inherited descriptors, limits.
    #[default]
    None,
    /// No new privileges, writing only where it is allowed, no reading of secrets, no signals to
    /// other processes, a deny-list of system calls, and no descendant that survives the run.
    Guarded,
    /// Own user, mount, process, IPC and host name namespaces on a read-only system, without a
    /// network.
    Strict,
}

impl Level {
    /// Name in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Guarded => "guarded",
            Self::Strict => "strict",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Name that is no level.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a sandbox level; use none, guarded or strict")]
pub struct UnknownLevel(String);

impl FromStr for Level {
    type Err = UnknownLevel;

    fn from_str(name: &str) -> Result<Self, UnknownLevel> {
        [Self::None, Self::Guarded, Self::Strict]
            .into_iter()
            .find(|level| level.as_str() == name)
            .ok_or_else(|| UnknownLevel(name.to_owned()))
    }
}

/// Access of a process to the network.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Network {
    /// The access of the host.
    #[default]
    Host,
    /// The [destinations](Sandbox::destinations), through a proxy of this process.
    Listed,
    /// No socket of any family, not even to a local service. Connected pairs of sockets stay.
    Off,
}

/// Policy for mechanisms of a level that the system lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Missing {
    /// The process runs without it, and the outcome says so.
    Report,
    /// Nothing is run. For this, [`Level::Guarded`] includes
    /// [`Config::reaper`](crate::Config::reaper) and
    /// [`Config::watchdog`](crate::Config::watchdog).
    ///
    /// Three things are only reported all the same: a missing path in [`Sandbox::write`], an
    /// empty `/proc`, and [`Limits::processes`](crate::Limits::processes) that the kernel does
    /// not count, or counts with other processes.
    Refuse,
}

/// User and group that a process runs as, by number. Only root can start a process as another
/// user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct RunAs {
    /// The user's number.
    pub user: u32,
    /// The group's number; supplementary groups are dropped.
    pub group: u32,
}

impl RunAs {
    /// Names the user with the number `user`, in no group but `group`.
    pub fn new(user: u32, group: u32) -> Self {
        Self { user, group }
    }
}

/// Confinement of one process.
///
/// ```
/// use mcpd_exec::{Network, Sandbox};
///
/// let sandbox = Sandbox::guarded().write("/srv/reports").network(Network::Off);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct Sandbox {
    /// Level of confinement. At `none` the other fields have no effect, except `run_as`.
    pub level: Level,
    /// Program that makes the namespaces in place of this one. With it, nothing runs at a level
    /// other than `strict`.
    pub backend: Option<Backend>,
    /// Files and directories that it may write, with everything below, besides its temporary
    /// directory. One that is missing at the start does not prevent the run; the outcome reports
    /// it. A relative path is relative to the caller's directory.
    ///
    /// Links are followed, except those that lie where the process may write: it may have made
    /// such a link itself, and to any place. Name the target of such a link instead.
    pub write: Vec<PathBuf>,
    /// The paths in [`write`](Self::write) are free of links, as far as they existed when they
    /// were resolved. A link that is there when the process starts is not followed: it was not
    /// there when the path was allowed.
    pub resolved: bool,
    /// Files and directories that it may read although they, or a directory above them, are
    /// hidden. The most specific entry for a path counts, and of equally specific ones the one
    /// that allows. Links are followed as in [`write`](Self::write).
    pub read: Vec<PathBuf>,
    /// Home directories. `guarded` hides what programs keep in them, which is `snap` and every
    /// entry whose name begins with a dot, except entries that are
    /// [readable](Self::readable_in_homes). `strict` hides everything in them. The run can read
    /// what it needs: its program and the paths that are [visible](crate::Command::visible). The
    /// default is all homes: `$HOME`, that of the caller's account, and for root those of regular
    /// users.
    ///
    /// Only entries that exist when the process starts are hidden. An entry that appears later
    /// where the process may write is not.
    pub homes: Vec<PathBuf>,
    /// Files and directories that it may not read, with everything below. The default is
    /// [`Sandbox::secrets`].
    ///
    /// Only paths that exist when it starts are hidden. It may read a hidden path that appears
    /// later, and at `strict` a file that the host renames to a hidden path. At `strict`, a link
    /// on the way to a hidden path protects nothing from the next process if the process may move
    /// the link: hide the target instead.
    pub hidden: Vec<PathBuf>,
    /// Access to the network.
    pub network: Network,
    /// Destinations with [`Network::Listed`]. Variables such as `HTTP_PROXY` name their proxy.
    pub destinations: Vec<Destination>,
    /// User it runs as, if not the caller. In force at every level.
    pub run_as: Option<RunAs>,
    /// Policy for what the system can't enforce.
    pub missing: Missing,
}

impl Default for Sandbox {
    fn default() -> Self {
        Self::none()
    }
}

impl Sandbox {
    /// Returns a sandbox without confinement.
    pub fn none() -> Self {
        Self {
            level: Level::None,
            backend: None,
            write: Vec::new(),
            resolved: false,
            read: Vec::new(),
            homes: Vec::new(),
            hidden: Vec::new(),
            network: Network::Host,
            destinations: Vec::new(),
            run_as: None,
            missing: Missing::Report,
        }
    }

    /// Returns the confinement for code that was not reviewed: see [`Level::Guarded`].
    pub fn guarded() -> Self {
        // The database of users may be slow, and every probe asks.
        static GUARDED: LazyLock<Sandbox> = LazyLock::new(|| {
            let homes = homes::of_caller();
            Sandbox {
                level: Level::Guarded,
                hidden: secrets::of_caller(&homes, |name| std::env::var_os(name)),
                homes,
                ..Sandbox::none()
            }
        });
        GUARDED.clone()
    }

    /// Returns the strongest confinement that the system has: see [`Level::Strict`].
    pub fn strict() -> Self {
        Self {
            level: Level::Strict,
            network: Network::Off,
            missing: Missing::Refuse,
            ..Self::guarded()
        }
    }

    /// Returns [`none`](Self::none), [`guarded`](Self::guarded) or [`strict`](Self::strict).
    pub fn at(level: Level) -> Self {
        match level {
            Level::None => Self::none(),
            Level::Guarded => Self::guarded(),
            Level::Strict => Self::strict(),
        }
    }

    /// Leaves the namespaces of [`Level::Strict`] to a program of the system.
    #[must_use]
    pub fn backend(mut self, backend: Backend) -> Self {
        self.backend = Some(backend);
        self
    }

    /// Lets the process write a file or directory, and everything below.
    #[must_use]
    pub fn write(mut self, path: impl AsRef<Path>) -> Self {
        self.write.push(path.as_ref().to_owned());
        self
    }

    /// Lets the process read a file or directory although it is hidden, and everything below that
    /// is not hidden itself.
    #[must_use]
    pub fn read(mut self, path: impl AsRef<Path>) -> Self {
        self.read.push(path.as_ref().to_owned());
        self
    }

    /// Keeps the process from reading a file or directory, and everything below.
    #[must_use]
    pub fn hide(mut self, path: impl AsRef<Path>) -> Self {
        self.hidden.push(path.as_ref().to_owned());
        self
    }

    /// Sets its access to the network.
    #[must_use]
    pub fn network(mut self, network: Network) -> Self {
        self.network = network;
        self
    }

    /// Lets the process connect to these destinations and no others.
    ///
    /// They are reached through a proxy, from a network namespace without any other way out. At
    /// [`Level::Guarded`], a system without user namespaces limits ports by Landlock instead: the
    /// process can connect to the port of the proxy on any machine, and the outcome says so.
    #[must_use]
    pub fn destinations(mut self, list: impl IntoIterator<Item = Destination>) -> Self {
        self.network = Network::Listed;
        self.destinations = list.into_iter().collect();
        self
    }

    /// Runs the process as another user, whose secrets are hidden from it too.
    #[must_use]
    pub fn run_as(mut self, run_as: RunAs) -> Self {
        self.run_as = Some(run_as);
        for home in homes::of_user(run_as.user) {
            add_new(&mut self.hidden, secrets::below(&home));
            add_new(&mut self.homes, [home]);
        }
        self
    }

    /// Sets the policy for what the system can't enforce.
    #[must_use]
    pub fn missing(mut self, missing: Missing) -> Self {
        self.missing = missing;
        self
    }

    /// Returns this sandbox with the restrictions that `wish` adds. A wish can forbid, never
    /// allow.
    ///
    /// A backend stays: two sandboxes with different ones have no common confinement, so the
    /// wish's is ignored. A path may be written if both allow it by name. Paths with `..` never
    /// match, and callers that have links to fear must resolve them first.
    #[must_use]
    pub fn tighten(mut self, wish: &Self) -> Self {
        let base = Self::at(wish.level);
        if self.level == Level::None {
            self.write.clone_from(&wish.write);
        } else if wish.level != Level::None {
            let allowed = wish.write.iter().filter(|path| self.may_write(path));
            let wanted = self.write.iter().filter(|path| wish.may_write(path));
            let mut both: Vec<_> = allowed.chain(wanted).cloned().collect();
            both.sort();
            both.dedup();
            self.write = both;
        }
        self.narrow_reading(&base, wish);
        add_new(
            &mut self.hidden,
            base.hidden.iter().chain(&wish.hidden).cloned(),
        );
        add_new(
            &mut self.homes,
            base.homes.iter().chain(&wish.homes).cloned(),
        );
        self.level = self.level.max(wish.level);
        self.backend = self.backend.or(wish.backend);
        self.tighten_network(wish);
        self.missing = self.missing.max(wish.missing);
        self
    }

    /// Leaves the network that both sandboxes allow.
    pub fn tighten_network(&mut self, other: &Self) {
        match (self.network, other.network) {
            (Network::Host, _) => self.destinations.clone_from(&other.destinations),
            (Network::Listed, Network::Listed) => {
                self.destinations = egress::intersect(&self.destinations, &other.destinations);
            }
            _ => {}
        }
        self.network = self.network.max(other.network);
    }

    /// Keeps readable what is, unless `wish` names it as hidden. A path that `wish` reads becomes
    /// readable if nothing here hides it. `base` holds the paths that every wish of its level
    /// hides.
    fn narrow_reading(&mut self, base: &Self, wish: &Self) {
        if self.level == Level::None {
            self.read.clone_from(&wish.read);
            return;
        }
        let common: BTreeSet<&PathBuf> = base.hidden.iter().collect();
        let is_own = |path: &&PathBuf| !common.contains(path);
        let named: Vec<_> = wish.hidden.iter().filter(is_own).collect();
        let is_named = |path: &PathBuf| named.iter().any(|hidden| path.starts_with(hidden));
        self.read.retain(|path| !is_named(path));
        let goes_up = |path: &Path| path.components().any(|part| part == Component::ParentDir);
        let is_readable = |path: &&PathBuf| !goes_up(path) && self.hidden_by(path).is_none();
        let readable: Vec<_> = wish.read.iter().filter(is_readable).cloned().collect();
        add_new(&mut self.read, readable);
    }

    /// Returns whether the most specific entry for `path` is in `write`. Of equally specific
    /// entries, `write` wins.
    fn may_write(&self, path: &Path) -> bool {
        let depth = |entries: &[PathBuf]| {
            let above = entries.iter().filter(|entry| path.starts_with(entry));
            above.map(|entry| entry.components().count()).max()
        };
        let goes_up = path.components().any(|part| part == Component::ParentDir);
        let allowed = depth(&self.write);
        let kept = self.kept_depth(path);
        !goes_up && allowed.is_some() && allowed >= depth(&self.hidden).max(kept)
    }

    /// Paths where users keep what only its own program should read: keys, tokens, passwords,
    /// sockets of agents.
    ///
    /// They are paths of the system and paths below every [home](Self::homes), or the directories
    /// that `XDG_CONFIG_HOME`, `XDG_DATA_HOME`, `XDG_STATE_HOME` and `XDG_CACHE_HOME` name
    /// instead.
    pub fn secrets() -> Vec<PathBuf> {
        Self::guarded().hidden
    }
}

/// Appends the paths that are not yet in the list.
fn add_new(paths: &mut Vec<PathBuf>, new: impl IntoIterator<Item = PathBuf>) {
    // Hundreds of paths meet hundreds, and comparing two paths is slow.
    let mut known: BTreeSet<PathBuf> = paths.iter().cloned().collect();
    for path in new {
        if known.insert(path.clone()) {
            paths.push(path);
        }
    }
}
