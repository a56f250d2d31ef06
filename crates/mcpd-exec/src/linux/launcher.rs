//! Launchers: the command lines by which programs outside of this one confine a run.

mod bwrap;
mod firejail;
mod gvisor;
mod podman;
#[cfg(test)]
mod tests;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::view::Layer;
use crate::backend::Backend;
use crate::sandbox::Network;

/// Run as it is to be started.
#[derive(Debug)]
pub(crate) struct Launch<'a> {
    /// The programs of the backend, by their absolute paths.
    pub(crate) programs: &'a [PathBuf],
    /// The program, by its absolute path, and its arguments.
    pub(crate) words: &'a [OsString],
    /// Directory that it starts in.
    pub(crate) directory: &'a Path,
    pub(crate) network: Network,
    /// Names of the variables that it gets.
    pub(crate) variables: &'a [OsString],
    /// Its view of the system, from the top down.
    pub(crate) layers: &'a [Layer<'a>],
}

/// Maker of command lines for one program.
///
/// Command lines can be read by every user of the machine, so they never contain the value of a
/// variable: the program inherits the environment of the run, and passes it on.
pub(crate) trait Launcher: Sync {
    /// Returns whether the run is made of processes of this system that inherit what the program
    /// inherits: descriptors, marks and the ruleset. Our [first process](super::raw::init) runs
    /// inside then, and the program gets our filter.
    fn is_transparent(&self) -> bool;

    /// Returns the arguments of the first program, which end with those of the run.
    ///
    /// # Errors
    ///
    /// The program can't express what is asked for, as a clause.
    fn arguments(&self, launch: &Launch<'_>) -> Result<Vec<OsString>, String>;
}

/// Returns the launcher of a backend.
pub(crate) fn of(backend: Backend) -> &'static dyn Launcher {
    match backend {
        Backend::Bwrap => &bwrap::Bwrap,
        Backend::Gvisor => &gvisor::Gvisor,
        Backend::Podman => &podman::Podman,
        Backend::Firejail => &firejail::Firejail,
    }
}

/// Arguments in construction.
#[derive(Debug, Default)]
struct Arguments(Vec<OsString>);

impl Arguments {
    fn add(&mut self, words: impl IntoIterator<Item = impl AsRef<OsStr>>) {
        let words = words.into_iter();
        self.0.extend(words.map(|word| word.as_ref().to_owned()));
    }

    /// Adds one word that ends with a path.
    fn joined(&mut self, option: &str, path: &Path) {
        let mut word = OsString::from(option);
        word.push(path);
        self.0.push(word);
    }

    /// Adds an option with the path it concerns.
    fn option(&mut self, name: &str, path: &Path) {
        self.add([OsStr::new(name), path.as_os_str()]);
    }
}

/// Checks that a path has none of the characters that mean something to a program.
///
/// # Errors
///
/// It has one, as a clause.
fn check_path(path: &Path, special: &str) -> Result<(), String> {
    let text = path.to_string_lossy();
    let is_special = |one: char| one.is_control() || special.contains(one);
    match text.chars().find(|one| is_special(*one)) {
        Some(one) => Err(format!(
            "it cannot be told of the path `{text}`, which contains {one:?}; rename it, or use the backend `bwrap`",
            text = text.escape_debug()
        )),
        None => Ok(()),
    }
}
