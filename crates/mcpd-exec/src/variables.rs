//! Environment shared by many processes, read and encoded for the kernel once.

use std::env;
#[cfg(all(target_os = "linux", not(mcpd_portable)))]
use std::ffi::{CStr, CString};
use std::ffi::{OsStr, OsString};
use std::fmt;
#[cfg(all(target_os = "linux", not(mcpd_portable)))]
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;

/// Snapshot of variables of this process that others start from. Cheap to clone.
///
/// ```
/// use mcpd_exec::{Command, Variables};
///
/// let variables = Variables::of_this_process(|name| name == "PATH" || name == "HOME");
/// let command = Command::new("env").inherit(&variables).env("LC_ALL", "C");
/// ```
#[derive(Clone, Default)]
pub struct Variables(Arc<Vec<Variable>>); // sorted by name, each name once

#[derive(Clone)]
struct Variable {
    name: OsString,
    value: OsString,
    /// `NAME=VALUE`.
    #[cfg(all(target_os = "linux", not(mcpd_portable)))]
    entry: CString,
}

impl Variables {
    /// Takes the variables of this process for whose names `keep` returns true.
    #[must_use]
    pub fn of_this_process(keep: impl Fn(&OsStr) -> bool) -> Self {
        let kept = env::vars_os().filter(|(name, _)| keep(name));
        let mut variables = Self::default();
        for (name, value) in kept {
            variables.change(name, Some(value));
        }
        variables
    }

    /// Returns these variables with changes applied: added, replaced, or removed if the value is
    /// `None`.
    #[must_use]
    pub fn with<'a>(
        mut self,
        changes: impl IntoIterator<Item = (&'a str, Option<OsString>)>,
    ) -> Self {
        for (name, value) in changes {
            self.change(name.into(), value);
        }
        self
    }

    fn change(&mut self, name: OsString, value: Option<OsString>) {
        let place = self.place(&name);
        let variables = Arc::make_mut(&mut self.0);
        match (place, value.and_then(|value| Variable::new(name, value))) {
            (Ok(place), Some(variable)) => variables[place] = variable,
            (Err(place), Some(variable)) => variables.insert(place, variable),
            (Ok(place), None) => drop(variables.remove(place)),
            (Err(_), None) => {}
        }
    }

    /// The value of a variable, if it is one of these.
    #[must_use]
    pub fn get(&self, name: impl AsRef<OsStr>) -> Option<&OsStr> {
        let place = self.place(name.as_ref()).ok()?;
        Some(&self.0[place].value)
    }

    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        let variables = self.0.iter();
        variables.map(|variable| (variable.name.as_os_str(), variable.value.as_os_str()))
    }

    #[cfg(all(target_os = "linux", not(mcpd_portable)))]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Index of a variable, or where to insert it.
    fn place(&self, name: &OsStr) -> Result<usize, usize> {
        let variables = &self.0;
        variables.binary_search_by(|variable| variable.name.as_os_str().cmp(name))
    }

    /// Strings of all variables as the kernel takes them, `NAME=VALUE`.
    #[cfg(all(target_os = "linux", not(mcpd_portable)))]
    pub(crate) fn entries(&self) -> impl Iterator<Item = &CStr> {
        self.0.iter().map(|variable| variable.entry.as_c_str())
    }

    /// Such a string of one variable, if it is one of these.
    #[cfg(all(target_os = "linux", not(mcpd_portable)))]
    pub(crate) fn entry(&self, name: &OsStr) -> Option<&CStr> {
        let place = self.place(name).ok()?;
        Some(&self.0[place].entry)
    }
}

impl Variable {
    /// `None` for what no environment can hold.
    #[cfg(all(target_os = "linux", not(mcpd_portable)))]
    fn new(name: OsString, value: OsString) -> Option<Self> {
        let entry = [name.as_bytes(), b"=", value.as_bytes()].concat();
        let entry = CString::new(entry).ok()?;
        Some(Self { name, value, entry })
    }

    #[cfg(not(all(target_os = "linux", not(mcpd_portable))))]
    fn new(name: OsString, value: OsString) -> Option<Self> {
        Some(Self { name, value })
    }
}

/// Shows no value: it may be a secret.
impl fmt::Debug for Variables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.0.iter().map(|variable| &variable.name);
        f.debug_set().entries(names).finish()
    }
}
