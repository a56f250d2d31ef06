//! Backends of confinement: programs that make the namespaces of a run in place of the executor,
//! or have a kernel of their own for it.
//!
//! [`Level::Strict`] says what holds, and the backend by whom. The executor keeps what surrounds
//! a run: limits, pipes, time-out, and the end of all processes.

use std::env;
use std::fmt;
use std::path::PathBuf;

use crate::os;
use crate::sandbox::{Level, Network, Sandbox};

/// Program that confines runs at [`Level::Strict`]. Linux only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "lowercase")
)]
#[non_exhaustive]
pub enum Backend {
    /// Bubblewrap, `bwrap`.
    Bwrap,
    /// gVisor, `runsc`: a kernel of its own, in the namespaces of `bwrap`. Not tested.
    Gvisor,
    /// Podman with the files of the host. Not tested.
    Podman,
    /// Firejail. Not tested.
    Firejail,
}

impl Backend {
    /// All backends.
    pub const ALL: [Self; 4] = [Self::Bwrap, Self::Gvisor, Self::Podman, Self::Firejail];

    /// Name in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bwrap => "bwrap",
            Self::Gvisor => "gvisor",
            Self::Podman => "podman",
            Self::Firejail => "firejail",
        }
    }

    /// Names of the programs that it needs; the first one starts the others.
    pub fn programs(self) -> &'static [&'static str] {
        match self {
            Self::Bwrap => &["bwrap"],
            Self::Gvisor => &["bwrap", "runsc"],
            Self::Podman => &["podman"],
            Self::Firejail => &["firejail"],
        }
    }

    /// Looks its programs up in the `PATH` of this process, not in that of a run.
    ///
    /// # Errors
    ///
    /// A program is missing, and what to do about it, as a clause.
    pub fn find(self) -> Result<Vec<PathBuf>, String> {
        let found = self.programs().iter().map(|name| {
            look_up(name).ok_or_else(|| {
                let package = match *name {
                    "bwrap" => "bubblewrap",
                    name => name,
                };
                format!(
                    "`{name}` is not in the PATH of this process; install the package `{package}`"
                )
            })
        });
        found.collect()
    }

    /// Checks that the backend can do what a sandbox asks for, wherever it is installed.
    ///
    /// # Errors
    ///
    /// Missing ability and its remedy, as a clause.
    pub fn check(self, sandbox: &Sandbox) -> Result<(), String> {
        let only_bwrap = |what| {
            let which = Self::Bwrap;
            format!("`{self}` cannot {what}; use the backend `{which}`, or none")
        };
        if sandbox.level != Level::Strict {
            return Err(format!(
                "`{self}` confines at the level `strict` alone; leave out `level`"
            ));
        }
        if self == Self::Bwrap {
            return Ok(());
        }
        if sandbox.network == Network::Listed {
            return Err(only_bwrap("limit the network to destinations"));
        }
        if sandbox.run_as.is_some() {
            return Err(only_bwrap("run a script as another user"));
        }
        Ok(())
    }
}

fn look_up(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let candidates = env::split_paths(&path).map(|directory| directory.join(program));
    // A relative entry would mean another program in each directory.
    let mut absolute = candidates.filter(|candidate| candidate.is_absolute());
    absolute.find(|candidate| {
        let metadata = candidate.metadata();
        metadata.is_ok_and(|metadata| os::is_executable(&metadata))
    })
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
