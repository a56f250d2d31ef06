//! Conversion of a command to the kernel's form: arguments, environment and resource limits.

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::process::{Resource, getrlimit};

use super::raw::Image;
use crate::command::Command;
use crate::egress::Gate;
use crate::limits::Limits;
use crate::sandbox::Level;

/// Converts text to a C string.
///
/// # Errors
///
/// It contains a NUL byte.
pub(crate) fn text(text: impl AsRef<OsStr>) -> io::Result<CString> {
    Ok(CString::new(text.as_ref().as_bytes())?)
}

/// Returns `NAME=VALUE`.
///
/// # Errors
///
/// It contains a NUL byte.
pub(crate) fn entry(name: &OsStr, value: &OsStr) -> io::Result<CString> {
    Ok(CString::new(
        [name.as_bytes(), b"=", value.as_bytes()].concat(),
    )?)
}

/// Returns the image of a process with these arguments and the environment of `command`.
pub(crate) fn image<'a>(
    command: &Command,
    arguments: impl IntoIterator<Item = &'a OsStr>,
    temporary: Option<&Path>,
    gate: Option<&Gate>,
) -> io::Result<Image> {
    let mut own_variables: Vec<(&OsStr, OsString)> = Vec::new();
    if let Some(directory) = temporary {
        let names = command.temporary_variables().chain(["TMPDIR"]);
        own_variables.extend(names.map(|name| (OsStr::new(name), directory.into())));
    }
    let proxied = gate.into_iter().flat_map(Gate::variables);
    own_variables.extend(proxied.map(|(name, value)| (OsStr::new(name), value.into())));
    let is_own = |name: &OsStr| own_variables.iter().any(|(known, _)| *known == name);
    let changes = command.changes.iter();
    let set = changes.filter_map(|(name, value)| Some((name.as_os_str(), value.as_deref()?)));
    let set = set.filter(|(name, _)| !is_own(name)).chain(
        own_variables
            .iter()
            .map(|(name, value)| (*name, value.as_os_str())),
    );
    Ok(Image::new(
        arguments.into_iter().map(text).collect::<io::Result<_>>()?,
        command.base_variables(),
        |name| !command.changes.contains_key(name) && !is_own(name),
        set.map(|(name, value)| entry(name, value))
            .collect::<io::Result<_>>()?,
    ))
}

/// Returns the resource limits of a process, none above the hard limit of this process.
pub(crate) fn resources(limits: &Limits, level: Level) -> Vec<(i32, u64, u64)> {
    let seconds = limits.cpu.map(|cpu| cpu.as_secs().max(1));
    let core = (level >= Level::Guarded).then_some(0);
    let wanted = [
        (libc::RLIMIT_CPU, Resource::Cpu, seconds),
        (libc::RLIMIT_AS, Resource::As, limits.address_space),
        (libc::RLIMIT_FSIZE, Resource::Fsize, limits.file_size),
        (libc::RLIMIT_NOFILE, Resource::Nofile, limits.open_files),
        (libc::RLIMIT_NPROC, Resource::Nproc, limits.processes),
        (libc::RLIMIT_CORE, Resource::Core, core),
    ];
    let wanted = wanted.into_iter().filter_map(|(number, resource, wish)| {
        let wish = wish?;
        let most = getrlimit(resource).maximum.unwrap_or(u64::MAX);
        let soft = wish.min(most);
        // At the soft limit of processor time the program gets SIGXCPU, a second later SIGKILL.
        let hard = if resource == Resource::Cpu {
            soft.saturating_add(1).min(most)
        } else {
            soft
        };
        Some((number as i32, soft, hard))
    });
    wanted.collect()
}
