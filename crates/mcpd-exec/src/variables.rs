//! Environment shared by many processes, read and encoded for the kernel once.

use std::collections::BTreeMap;
use std::env;
#[cfg(all(target_os = "linux", not(mcpd_portable)))]
use std::ffi::CString;
use std::ffi::{OsStr, OsString};
use std::fmt;
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
pub struct Variables(Arc<BTreeMap<OsString, Variable>>);

#[derive(Clone)]
struct Variable {
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
        let variables = kept.filter_map(|(name, value)| {
            let variable = Variable::new(&name, value)?;
            Some((name, variable))
        });
        Self(Arc::new(variables.collect()))
    }

    /// Returns these variables with changes applied: added, replaced, or removed if the value is
    /// `None`.
    #[must_use]
    pub fn with<'a>(
        mut self,
        changes: impl IntoIterator<Item = (&'a str, Option<OsString>)>,
    ) -> Self {
        for (name, value) in changes {
            let variables = Arc::make_mut(&mut self.0);
            match value.and_then(|value| Variable::new(name.as_ref(), value)) {
                Some(variable) => variables.insert(name.into(), variable),
                None => variables.remove(OsStr::new(name)),
            };
        }
        self
    }

    /// The value of a variable, if it is one of these.
    #[must_use]
    pub fn get(&self, name: impl AsRef<OsStr>) -> Option<&OsStr> {
        let variable = self.0.get(name.as_ref())?;
        Some(&variable.value)
    }

    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        let variables = self.0.iter();
        variables.map(|(name, variable)| (name.as_os_str(), variable.value.as_os_str()))
    }

    /// Names, each with what the kernel is given for it.
    #[cfg(all(target_os = "linux", not(mcpd_portable)))]
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&OsStr, &std::ffi::CStr)> {
        let variables = self.0.iter();
        variables.map(|(name, variable)| (name.as_os_str(), variable.entry.as_c_str()))
    }
}

impl Variable {
    /// `None` for what no environment can hold.
    #[cfg(all(target_os = "linux", not(mcpd_portable)))]
    fn new(name: &OsStr, value: OsString) -> Option<Self> {
        let entry = crate::os::entry(name, &value).ok()?;
        Some(Self { value, entry })
    }

    #[cfg(not(all(target_os = "linux", not(mcpd_portable))))]
    fn new(_: &OsStr, value: OsString) -> Option<Self> {
        Some(Self { value })
    }
}

/// Shows no value: it may be a secret.
impl fmt::Debug for Variables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
